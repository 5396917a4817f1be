"""Results on stdout: a table on a terminal, aligned plain lines elsewhere, or JSON."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from forebay.cli.payload import printable

_TWO_SPACES = "  "


@dataclass(frozen=True, slots=True)
class Table:
    """`extra` holds keys that only the JSON of a row has, `total` what the filter matches."""

    heads: Sequence[str]
    rows: Sequence[Sequence[object]]
    extra: Sequence[Mapping[str, object]] = ()
    facts: Mapping[str, object] = field(default_factory=dict)

    def items(self) -> list[dict[str, object]]:
        keys = [snake_case(head) for head in self.heads]
        items = [dict(zip(keys, row, strict=True)) for row in self.rows]
        if not self.extra:
            return items
        return [item | dict(more) for item, more in zip(items, self.extra, strict=True)]

    def as_object(self) -> dict[str, object]:
        items = self.items()
        return {"items": items, "total": len(items)} | dict(self.facts)

    def cells(self) -> list[list[str]]:
        return [[shown(value) for value in row] for row in self.rows]


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def remark(text: str) -> None:
    """What is not a result, out of the way of who reads stdout."""
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def print_table(table: Table, *, as_json: bool, empty: str) -> None:
    if as_json:
        print_object(table.as_object())
    elif not table.rows:
        say(empty)
    elif sys.stdout.isatty():
        _print_rich(table)
    else:
        say("\n".join(plain_lines(table)))


def print_object(value: Mapping[object, object] | Mapping[str, object]) -> None:
    say(json_line(value))


def json_line(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def snake_case(head: str) -> str:
    return head.lower().replace(" ", "_").replace("-", "_")


def shown(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case list() | tuple():
            return ", ".join(shown(item) for item in value) or "-"
        case _:
            return printable(str(value))


def plain_lines(table: Table) -> list[str]:
    """Never cut: what reads a pipe wants all of it."""
    lines = [list(table.heads), *table.cells()]
    widths = [max(len(line[at]) for line in lines) for at in range(len(table.heads))]
    numeric = _numeric_columns(table)
    return [
        _TWO_SPACES.join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    ]


def _numeric_columns(table: Table) -> list[bool]:
    return [
        all(isinstance(row[at], int | float | None) for row in table.rows)
        for at in range(len(table.heads))
    ]


def _print_rich(table: Table) -> None:
    from rich.console import Console  # noqa: PLC0415  a pipe needs no rich
    from rich.table import Table as RichTable  # noqa: PLC0415  the same

    drawn = RichTable(box=None, header_style="bold", pad_edge=False)
    for head, numeric in zip(table.heads, _numeric_columns(table), strict=True):
        drawn.add_column(head, justify="right" if numeric else "left", overflow="fold")
    for cells in table.cells():
        drawn.add_row(*(_escaped(cell) for cell in cells))
    Console().print(drawn)


def _escaped(cell: str) -> str:
    from rich.markup import escape  # noqa: PLC0415  the same

    return escape(cell)
