"""How far the rows of a sink reach, kept in the database that holds the rows."""

from collections.abc import Collection, Mapping

from forebay.core.errors import Fenced, InvalidRequest
from forebay.core.records import Offset
from forebay.core.sinks import SourcePartition
from forebay.state.port import Database, Transaction
from forebay.state.schema import migrations

_UPSERT = (
    "INSERT INTO sink_positions (sink, topic, source_partition, incarnation, next_offset) "
    "VALUES (?, ?, ?, ?, ?) ON CONFLICT (sink, topic, source_partition, incarnation) "
    "DO UPDATE SET next_offset = excluded.next_offset "
    "WHERE excluded.next_offset > sink_positions.next_offset"
)


class SinkPositions:
    """Positions only ever move forward."""

    def __init__(self, database: Database, sink: str) -> None:
        self._database = database
        self._sink = sink

    def prepare(self, transaction: Transaction) -> None:
        """For a database that is not Forebay's own, where no migration ran."""
        for step in migrations():
            if step.name == "sink_positions":
                transaction.execute(step.sql)

    def read(
        self, partitions: Collection[SourcePartition], transaction: Transaction | None = None
    ) -> dict[SourcePartition, Offset | None]:
        ask = self._database.read if transaction is None else transaction.execute
        rows = ask(
            "SELECT topic, source_partition, incarnation, next_offset FROM sink_positions "
            "WHERE sink = ?",
            (self._sink,),
        )
        stored = {
            SourcePartition(str(topic), int(partition or 0), str(incarnation)): int(offset or 0)
            for topic, partition, incarnation, offset in rows
        }
        return {partition: stored.get(partition) for partition in partitions}

    def advance(
        self, transaction: Transaction, next_offsets: Mapping[SourcePartition, Offset]
    ) -> None:
        transaction.execute_many(
            _UPSERT, [(self._sink, *partition, at) for partition, at in next_offsets.items()]
        )


def is_stored_already(
    stored: Mapping[SourcePartition, Offset | None],
    expected: Mapping[SourcePartition, Offset | None],
    next_offsets: Mapping[SourcePartition, Offset],
) -> bool:
    """True for a batch that reaches no further than what is stored: a commit told twice.

    `expected` is where the writer believes each partition stands. Where it stands elsewhere,
    somebody else has stored rows, and some of the batch would be doubled: Fenced, so that the
    caller begins again where the sink stands.
    """
    if not next_offsets:
        raise InvalidRequest(
            "Rows came to a sink without the position they reach. Nothing was stored, for they "
            "could be doubled. Give the next offset of each partition they came from."
        )
    if all(at <= (stored.get(partition) or 0) for partition, at in next_offsets.items()):
        return True
    for partition, at in next_offsets.items():
        now = stored.get(partition)
        if at < (now or 0) or expected.get(partition, now) != now:
            raise Fenced(
                f"{partition.topic}[{partition.partition}] was stored up to {now or 0} by another "
                f"writer. Nothing of this batch was stored. It goes on from there; make sure that "
                f"only one process writes here."
            )
    return False
