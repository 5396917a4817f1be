"""forebay groups: list, describe, reset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from typer import Argument, Option, Typer

from forebay.broker.port import Broker, GroupDescription
from forebay.cli.asking import Deed, agreed, tell
from forebay.cli.command import DONE, FOUND_A_PROBLEM, Command, DestructiveCommand
from forebay.cli.output import Table, print_table, remark
from forebay.cli.positions import chosen_partitions, look_at, offsets_at, parse_place
from forebay.core.errors import GroupActive, UnknownGroup
from forebay.core.records import Offset, TopicPartition

GroupName = Annotated[str, Argument(metavar="GROUP", help="The name of the group.")]


@dataclass(frozen=True)
class ListGroups(Command):
    def run(self) -> int:
        with self.session().broker() as broker:
            groups = _described(broker)
        rows = [(group.name, _state(group), group.lag, len(group.members)) for group in groups]
        table = Table(("group", "state", "lag", "members"), rows)
        print_table(table, as_json=self.as_json, empty="No group has read anything yet.")
        return DONE


@dataclass(frozen=True)
class DescribeGroup(Command):
    group: GroupName

    def run(self) -> int:
        with self.session().broker() as broker:
            group = broker.admin().describe_group(self.group)
        if not self.as_json:
            remark(f"{group.name}: {_state(group)}, {len(group.members)} members")
        facts = {"group": group.name, "state": _state(group), "lag": group.lag}
        members = [
            {"member": member.id, "client_id": member.client_id, "host": member.host}
            for member in group.members
        ]
        heads = ("topic", "partition", "committed", "end", "lag", "member")
        table = Table(heads, _position_rows(group), facts=facts | {"members": members})
        print_table(table, as_json=self.as_json, empty="It has no committed offsets.")
        return DONE


@dataclass(frozen=True)
class ResetGroup(DestructiveCommand):
    group: GroupName
    topic: Annotated[str, Option("--topic", metavar="TOPIC", help="Of which topic.")]
    to: Annotated[
        str,
        Option(
            "--to", metavar="WHERE", help="earliest, latest, an offset, or a time (2h, 2026-11-18)."
        ),
    ]
    partition: Annotated[
        int | None, Option("--partition", metavar="N", min=0, help="Only this one.")
    ] = None

    def run(self) -> int:
        session = self.session()
        place = parse_place(self.to)
        with session.broker() as broker:
            group = _inactive(broker, self.group)
            _, held = look_at(broker.admin(), self.topic)
            offsets = offsets_at(broker, chosen_partitions(held, self.partition), place)
            rows = _reset_rows(group, offsets)
            deed = self._deed(rows)
            if not agreed(self, deed):
                return self._show(rows) if self.dry_run else FOUND_A_PROBLEM
            broker.admin().reset_offsets(self.group, offsets)
            tell(session, self, deed)
        return self._show(rows)

    def _deed(self, rows: Sequence[tuple[str, int, Offset | None, Offset]]) -> Deed:
        return Deed(
            action="groups.reset",
            target=f"{self.group} {self.topic}",
            would=f"would set group {self.group} to {self.to} on {len(rows)} partitions of "
            f"{self.topic}",
            how_many=len(rows),
        )

    def _show(self, rows: Sequence[Sequence[object]]) -> int:
        heads = ("topic", "partition", "from", "to")
        facts = {"group": self.group, "dry_run": self.dry_run}
        print_table(Table(heads, rows, facts=facts), as_json=self.as_json, empty="Nothing to set.")
        return DONE


def _described(broker: Broker) -> list[GroupDescription]:
    """A group may vanish between the list and the look at it."""
    admin = broker.admin()
    groups = []
    for summary in admin.list_groups():
        try:
            groups.append(admin.describe_group(summary.name))
        except UnknownGroup:
            continue
    return sorted(groups, key=lambda group: group.name)


def _inactive(broker: Broker, name: str) -> GroupDescription:
    group = broker.admin().describe_group(name)
    if group.active:
        raise GroupActive(
            f"Group {name} has {len(group.members)} active members, which would overwrite a reset. "
            f"Stop them, then try again."
        )
    return group


def _state(group: GroupDescription) -> str:
    return "active" if group.active else "inactive"


def _position_rows(group: GroupDescription) -> list[Sequence[object]]:
    owners = {place: member.id for member in group.members for place in member.partitions}
    return [
        (
            *position.partition,
            position.committed.offset if position.committed else None,
            position.watermarks.end,
            position.lag,
            owners.get(position.partition),
        )
        for position in sorted(group.positions, key=lambda position: position.partition)
    ]


def _reset_rows(
    group: GroupDescription, offsets: Mapping[TopicPartition, Offset]
) -> list[tuple[str, int, Offset | None, Offset]]:
    committed = {
        position.partition: position.committed.offset
        for position in group.positions
        if position.committed
    }
    return [(*place, committed.get(place), offset) for place, offset in sorted(offsets.items())]


def add_group_commands(app: Typer) -> None:
    app.command("list", help="List the groups.\n\nforebay groups list --json")(ListGroups)
    app.command("describe", help="Show a group.\n\nforebay groups describe billing")(DescribeGroup)
    app.command(
        "reset",
        help="Set where an inactive group resumes.\n\n"
        "forebay groups reset billing --topic orders --to earliest --dry-run",
    )(ResetGroup)
