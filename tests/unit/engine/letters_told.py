"""Records as a stage, a person and a replay put them on a dead-letter topic."""

from dataclasses import replace

from forebay.core.envelope import Envelope, Origin, first_envelope, seal
from forebay.core.failures import Failure
from forebay.core.markers import Marker, MarkerKind, mark
from forebay.core.records import Header, Record
from forebay.core.sinks import SourcePartition
from forebay.engine.ledger_rows import StageName

GROUP = "shop-charge"
INPUT = "orders"
LETTERS = "shop-charge.dlq"
HERE = SourcePartition(LETTERS, 0, "topic-1")
STAGES = {LETTERS: StageName("shop", "charge")}
BUSY = Failure("transient", "the bank is busy (503)", "HTTPError", "Traceback: …")


def source(number: int = 0, value: bytes | None = b"{}", headers=()) -> Record:
    return Record(value, b"customer-%d" % number, list(headers), INPUT, 0, number, 1_000 + number)


def letter(
    record: Record,
    failure: Failure = BUSY,
    *,
    at_ms: int = 5_000,
    replay: tuple[int, str] = (0, ""),
) -> Record:
    """As the stage gives up on its record, at the first time or in a replay."""
    number, replay_id = replay
    begun = replace(first_envelope(GROUP, record), replay_number=number, replay_id=replay_id)
    first = begun.failed(failure, at_ms - 100, attempt=2)
    return given_up(record, first.failed(failure, at_ms, attempt=2))


def given_up(record: Record, envelope: Envelope, extra: list[Header] | None = None) -> Record:
    return Record(record.value, record.key, seal(record, envelope, extra or []), LETTERS)


def id_of(record: Record) -> str:
    return first_envelope(GROUP, record).id


def marked(
    record: Record, kind: MarkerKind, number: int = 0, *, at_ms: int = 6_000, **more: str
) -> Record:
    marker = Marker(id_of(record), GROUP, kind, number, at_ms=at_ms, **more)
    return mark(marker, LETTERS, record.key)


def placed(records: list[Record], first_offset: int = 0) -> list[Record]:
    """As they are read back from the topic."""
    return [
        record._replace(partition=0, offset=offset, timestamp_ms=9_000)
        for offset, record in enumerate(records, start=first_offset)
    ]


def origin_of(record: Record) -> Origin:
    return Origin(record.topic, record.partition, record.offset, record.timestamp_ms)
