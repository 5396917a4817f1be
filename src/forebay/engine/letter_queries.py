"""Between the ledger's table and dead letters: what to ask for, and what a row says."""

from forebay.core.envelope import Origin
from forebay.core.markers import EntryState
from forebay.core.records import unpack_headers
from forebay.engine.ledger_rows import LETTER_COLUMNS, search_pattern
from forebay.engine.letters import DeadLetter, LetterFilter
from forebay.engine.standing import STANDING_COLUMNS, read_history
from forebay.state.port import Row, Value

_COLUMNS = (*LETTER_COLUMNS, *STANDING_COLUMNS)
SELECT = f"SELECT {', '.join(_COLUMNS)} FROM dead_letters"  # noqa: S608 - constants
_STATES: dict[str, EntryState] = {
    "open": "open",
    "replaying": "replaying",
    "resolved": "resolved",
    "discarded": "discarded",
}


def matching(wanted: LetterFilter) -> tuple[str, list[Value]]:
    """A condition made of constants, and the values for its question marks."""
    cause = None if wanted.cause is None else beginning(wanted.cause)
    text = None if wanted.text is None else search_pattern(wanted.text)
    asked: list[tuple[str, Value]] = [
        ("pipeline = ?", wanted.pipeline),
        ("stage = ?", wanted.stage),
        ("? IN (origin_topic, dlq_topic)", wanted.topic),
        ("record_key = ?", wanted.key),
        ("failed_ms >= ?", wanted.since_ms),
        ("failed_ms < ?", wanted.until_ms),
        ("category = ?", wanted.category),
        ("fingerprint LIKE ? ESCAPE '!'", cause),
        ("search_text LIKE ? ESCAPE '!'", text),
        ("state = ?", wanted.state),
    ]
    conditions = [condition for condition, value in asked if value is not None]
    values: list[Value] = [value for _, value in asked if value is not None]
    if wanted.ids:
        conditions.append(f"id IN ({', '.join('?' * len(wanted.ids))})")
        values.extend(wanted.ids)
    return " AND ".join(conditions) or "1 = 1", values


def beginning(text: str) -> str:
    """For `LIKE ? ESCAPE '!'`: what begins with the text."""
    return search_pattern(text).removeprefix("%")


def letter_from(row: Row) -> DeadLetter:
    told = _Told(row)
    return DeadLetter(
        id=told.text("id"),
        group=told.text("consumer_group"),
        pipeline=told.text("pipeline"),
        stage=told.text("stage"),
        origin=told.origin,
        dlq_topic=told.text("dlq_topic"),
        dlq_partition=told.number("dlq_partition"),
        dlq_offset=told.number("dlq_offset"),
        trace_id=told.text("trace_id") or None,
        category=told.text("category"),
        reason=told.text("reason"),
        error=told.text("error"),
        stack=told.text("stack"),
        fingerprint=told.text("fingerprint"),
        attempts=told.number("attempts"),
        accepted_ms=told.number("accepted_ms"),
        first_failed_ms=told.number("first_failed_ms"),
        failed_ms=told.number("failed_ms"),
        history=read_history(told.text("history")),
        key=told.content("record_key"),
        value=told.content("record_value"),
        headers=unpack_headers(told.content("record_headers") or b""),
        state=_STATES[told.text("state")],
        replay_number=told.number("replay_number"),
        replay_id=told.text("replay_id"),
        state_ms=told.number("state_ms"),
        state_by=told.text("state_by"),
        state_reason=told.text("state_reason"),
        times_dead_lettered=told.number("times_dead_lettered"),
        note=told.text("note"),
    )


class _Told:
    """A row by its columns' names."""

    def __init__(self, row: Row) -> None:
        self._values = dict(zip(_COLUMNS, row, strict=True))

    def text(self, name: str) -> str:
        return str(self._values[name] or "")

    def number(self, name: str) -> int:
        return int(self._values[name] or 0)

    def content(self, name: str) -> bytes | None:
        value = self._values[name]
        return value if isinstance(value, bytes) else None

    @property
    def origin(self) -> Origin:
        return Origin(
            self.text("origin_topic"),
            self.number("origin_partition"),
            self.number("origin_offset"),
            self.number("origin_timestamp_ms"),
        )
