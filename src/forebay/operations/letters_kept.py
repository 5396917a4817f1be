"""Every dead letter of a pipeline: those in the ledger, and those on their way to it."""

from collections.abc import Iterator
from typing import NamedTuple

from forebay.broker.port import Admin, Broker
from forebay.core.envelope import Origin, first_origin, read_envelope
from forebay.core.markers import read_marker
from forebay.core.records import Headers, Offset, TopicPartition, unpack_headers
from forebay.core.sinks import SourcePartition
from forebay.engine.ledger_sink import LEDGER
from forebay.engine.pipeline import Pipeline
from forebay.operations.spans import records_in, rest_of, watermarks_of
from forebay.state.port import Database
from forebay.state.positions import SinkPositions

LETTERS_AT_ONCE = 1_000
_STILL_DEAD = ("open", "discarded")


class KeptLetter(NamedTuple):
    """`is_dead` until somebody replays it; `origin` is the record that its stage gave up."""

    stage: str
    origin: Origin
    value: bytes | None
    headers: Headers
    is_dead: bool


def kept_letters(
    broker: Broker, pipeline: Pipeline, state: Database | None
) -> Iterator[KeptLetter]:
    """A letter may come twice. Without a ledger they come from their topics alone."""
    admin = broker.admin()
    stages = {route.dead_letter_topic: route.stage for route in pipeline.routes}
    # Before the ledger is read: what it takes in meanwhile then comes twice rather than never.
    passed = {topic: _stored_up_to(admin, topic, state) for topic in stages if topic is not None}
    if state is not None:
        yield from _entered(state, pipeline.name)
    for topic, stored in passed.items():
        for records in records_in(broker, rest_of(watermarks_of(admin, topic), stored)):
            for record in records:
                if read_marker(record) is None:
                    envelope = read_envelope(record)
                    origin = envelope.origin if envelope else first_origin(record)
                    yield KeptLetter(
                        stages[topic], origin, record.value, record.headers, is_dead=True
                    )


def forgotten_letters(broker: Broker, pipeline: Pipeline, state: Database | None) -> int:
    """Dead letters that retention took from their topics and that no ledger keeps."""
    if state is not None:
        return 0
    admin = broker.admin()
    topics = [route.dead_letter_topic for route in pipeline.routes if route.dead_letter_topic]
    return sum(low for topic in topics for low, _ in watermarks_of(admin, topic).values())


def _entered(state: Database, pipeline: str) -> Iterator[KeptLetter]:
    after = ""
    while True:
        rows = state.read(
            "SELECT id, stage, origin_topic, origin_partition, origin_offset, "
            "origin_timestamp_ms, state, record_value, record_headers FROM dead_letters "
            "WHERE pipeline = ? AND id > ? ORDER BY id LIMIT ?",
            (pipeline, after, LETTERS_AT_ONCE),
        )
        for id, stage, topic, partition, offset, timestamp_ms, standing, *content in rows:
            after = str(id)
            origin = Origin(
                str(topic), int(partition or 0), int(offset or 0), int(timestamp_ms or 0)
            )
            value, headers = (part if isinstance(part, bytes) else None for part in content)
            yield KeptLetter(
                str(stage),
                origin,
                value,
                unpack_headers(headers or b""),
                is_dead=standing in _STILL_DEAD,
            )
        if len(rows) < LETTERS_AT_ONCE:
            return


def _stored_up_to(admin: Admin, topic: str, state: Database | None) -> dict[TopicPartition, Offset]:
    marks = watermarks_of(admin, topic)
    if state is None or not marks:
        return {}
    (described,) = admin.describe_topics([topic])
    sources = [SourcePartition(*at, described.id or topic) for at in marks]
    stored = SinkPositions(state, LEDGER).read(sources)
    return {
        TopicPartition(source.topic, source.partition): offset
        for source, offset in stored.items()
        if offset is not None
    }
