"""forebay tables: list, show, history, verify."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from typer import Argument, Option, Typer

from forebay.bootstrap import tables
from forebay.cli.command import DONE, FOUND_A_PROBLEM, Command
from forebay.cli.dlq_progress import LongWork
from forebay.cli.errors import WrongUse
from forebay.cli.output import Table, print_table, remark
from forebay.cli.times import iso
from forebay.lakehouse.tables import port

TableName = Annotated[
    str, Argument(metavar="TABLE", help="Its name below --dir, or a path or address.")
]


@dataclass(frozen=True)
class ListTables(Command):
    def run(self) -> int:
        settings = self.session().settings
        found = tables.table_locations(settings)
        opened = {name: tables.open_table(at, settings.azure) for name, at in found.items()}
        rows = [_summary_row(name, table) for name, table in opened.items()]
        heads = ("table", "version", "rows", "files", "bytes", "changed", "location")
        print_table(Table(heads, rows), as_json=self.as_json, empty="There is no table yet.")
        return DONE


@dataclass(frozen=True)
class ShowTable(Command):
    table: TableName

    def run(self) -> int:
        opened = _opened(self, self.table)
        told = opened.describe()
        rows = [(*column, _part_played(column.name, told)) for column in told.columns]
        heads = ("column", "type", "nullable", "part")
        facts = _facts(opened, told)
        if not self.as_json:
            for line in _remarks(opened, told):
                remark(line)
        print_table(Table(heads, rows, facts=facts), as_json=self.as_json, empty="")
        if not self.as_json and told.positions:
            _print_positions(told.positions)
        return DONE


@dataclass(frozen=True)
class ShowHistory(Command):
    table: TableName
    limit: Annotated[int, Option("--limit", metavar="N", min=1, help="The newest so many.")] = 20

    def run(self) -> int:
        opened = _opened(self, self.table)
        rows = [
            (commit.version, iso(commit.at_ms), commit.operation, commit.detail)
            for commit in opened.history(self.limit)
        ]
        facts = {"location": opened.location, "versions": opened.summary().version + 1}
        heads = ("version", "at", "operation", "detail")
        print_table(Table(heads, rows, facts=facts), as_json=self.as_json, empty="")
        return DONE


@dataclass(frozen=True)
class VerifyTable(Command):
    table: TableName
    key: Annotated[
        str,
        Option(
            "--key",
            metavar="A,B",
            help="Columns that make a row one of a kind, where no sink has declared them.",
        ),
    ] = ""

    def run(self) -> int:
        opened = _opened(self, self.table)
        told = opened.describe()
        key = tuple(name.strip() for name in self.key.split(",") if name.strip())
        with LongWork("files looked at", told.summary.files) as work:

            def tell(done: int) -> None:
                if work.is_due:
                    work.show(done)

            faults = list(opened.verify(key, tell))
        facts = {
            "ok": not faults,
            "location": opened.location,
            "files": told.summary.files,
            "rows": told.summary.rows,
            "key": list(key or told.key),
            "keys_checked": bool(key or told.key) and not _are_of_files(faults),
        }
        print_table(
            Table(("kind", "subject", "detail"), faults, facts=facts),
            as_json=self.as_json,
            empty=_all_is_well(told, key),
        )
        return FOUND_A_PROBLEM if faults else DONE


def _opened(command: Command, table: str) -> port.Table:
    settings = command.session().settings
    found = tables.table_locations(settings)
    if table not in found and "/" not in table:
        names = ", ".join(found) or "none yet"
        raise WrongUse(
            f"There is no table {table}; there are: {names}. Name one, or write a path or address."
        )
    return tables.open_table(found.get(table, table), settings.azure)


def _summary_row(name: str, table: port.Table) -> tuple[object, ...]:
    told = table.summary()
    changed = None if told.changed_at_ms is None else iso(told.changed_at_ms)
    return (name, told.version, told.rows, told.files, told.size, changed, table.location)


def _part_played(column: str, told: port.TableDescription) -> str | None:
    parts = {"key": column in told.key, "partition": column in told.partition_by}
    return ", ".join(part for part, is_played in parts.items() if is_played) or None


def _facts(table: port.Table, told: port.TableDescription) -> dict[str, object]:
    summary = told.summary
    return {
        "location": table.location,
        "version": summary.version,
        "rows": summary.rows,
        "files": summary.files,
        "bytes": summary.size,
        "partitions": told.partitions,
        "partition_by": list(told.partition_by),
        "key": list(told.key),
        "positions": [
            {
                "sink": stored.sink,
                "topic": stored.source.topic,
                "partition": stored.source.partition,
                "incarnation": stored.source.incarnation,
                "next_offset": stored.next_offset,
            }
            for stored in told.positions
        ],
    }


def _remarks(table: port.Table, told: port.TableDescription) -> Iterator[str]:
    summary = told.summary
    yield (
        f"{table.location}: version {summary.version}, {summary.rows:,} rows in "
        f"{summary.files:,} files of {summary.size:,} bytes"
    )
    if told.partition_by:
        yield f"{told.partitions:,} partitions by {', '.join(told.partition_by)}"


def _print_positions(positions: Sequence[port.StoredPosition]) -> None:
    rows = [(stored.sink, *stored.source, stored.next_offset) for stored in positions]
    heads = ("sink", "topic", "partition", "incarnation", "stored up to")
    print_table(Table(heads, rows), as_json=False, empty="")


def _are_of_files(faults: Sequence[port.TableFault]) -> bool:
    """Keys are looked for only in files that can all be read."""
    return any(fault.kind != "doubled_row" for fault in faults)


def _all_is_well(told: port.TableDescription, key: tuple[str, ...]) -> str:
    named = ", ".join(key or told.key)
    about_keys = f"no {named} is there twice" if named else "no key is known to look for doubles"
    files, rows = told.summary.files, told.summary.rows
    return f"{files:,} files with {rows:,} rows are as the log says, and {about_keys}."


def add_table_commands(app: Typer) -> None:
    app.command("list", help="List the Delta tables below --dir.\n\nforebay tables list --json")(
        ListTables
    )
    app.command(
        "show",
        help="Show a table: columns, partitions, and how far sinks have stored.\n\n"
        "forebay tables show xact_events",
    )(ShowTable)
    app.command(
        "history",
        help="Show the newest commits of a table.\n\nforebay tables history xact_events",
    )(ShowHistory)
    app.command(
        "verify",
        help="Look for files that are missing or damaged, and for doubled keys.\n\n"
        "forebay tables verify xact_attachments --key trace_id,attachment_url",
    )(VerifyTable)
