"""One dead letter on a page: where it came from, what happened to it, and what one can do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import orjson

from forebay.cli.dlq_masking import Mask, NoMask
from forebay.cli.dlq_rows import place_of
from forebay.cli.payload import one_line, printable, to_json
from forebay.cli.times import iso
from forebay.core.envelope import AttemptNote, user_headers
from forebay.engine.letters import DeadLetter
from forebay.engine.standing import DEAD_LETTERED, NOTE, Telling

PAYLOAD_LENGTH_MAX = 20_000

Cover: TypeAlias = Mask | NoMask

_TOLD = {
    "replaying": "sent back by replay",
    "open_again": "open again",
    "resolved": "resolved by",
    "discarded": "discarded by",
    NOTE: "note of",
}


@dataclass(frozen=True, slots=True)
class LetterPage:
    """`reference` is the pipeline's, as the next commands would name it."""

    letter: DeadLetter
    story: Sequence[Telling]
    cover: Cover
    reference: str | None

    def lines(self) -> Iterator[str]:
        letter, cover = self.letter, self.cover
        yield f"{letter.id} · {place_of(letter)} · {letter.state}"
        yield f"  reason    {_shown(cover, letter.reason)}"
        error = f" · {letter.error}" if letter.error else ""
        yield f"  cause     {letter.fingerprint} · {letter.category}{error}"
        yield f"  origin    {self._origin()}"
        yield f"  lies on   {letter.dlq_topic}[{letter.dlq_partition}] at {letter.dlq_offset}"
        if letter.trace_id:
            yield f"  trace id  {_shown(cover, letter.trace_id)}"
        if letter.note:
            yield f"  note      {_shown(cover, letter.note)}"
        yield ""
        yield from self._attempts()
        yield from self._headers()
        yield f"key  {_shown(cover, one_line(letter.key))}"
        yield from self._payload()
        yield from self._stack()
        yield from self._what_to_do()

    def as_object(self) -> dict[str, object]:
        letter, cover = self.letter, self.cover
        return {
            "id": letter.id,
            "state": letter.state,
            "pipeline": place_of(letter),
            "stage": letter.stage,
            "group": letter.group,
            "topic": letter.origin.topic,
            "partition": letter.origin.partition,
            "offset": letter.origin.offset,
            "timestamp": letter.origin.timestamp_ms,
            "trace_id": letter.trace_id,
            "category": letter.category,
            "reason": cover.text(letter.reason),
            "error": letter.error,
            "cause": letter.fingerprint,
            "attempts": letter.attempts,
            "history": [self._attempt(note) for note in letter.history],
            "story": [self._telling(telling) for telling in self.story],
            "stack": cover.text(letter.stack),
            "key": _content(cover, letter.key),
            "headers": self._header_pairs(),
            "payload": cover.payload(letter.value),
            "accepted": iso(letter.accepted_ms),
            "first_failed": iso(letter.first_failed_ms),
            "failed": iso(letter.failed_ms),
            "replay_number": letter.replay_number,
            "note": cover.text(letter.note),
            "dlq_topic": letter.dlq_topic,
            "dlq_partition": letter.dlq_partition,
            "dlq_offset": letter.dlq_offset,
            "what_to_do": letter.what_to_do,
            "revealed": isinstance(cover, NoMask),
        }

    def _origin(self) -> str:
        origin = self.letter.origin
        written = iso(origin.timestamp_ms)
        return f"{origin.topic}[{origin.partition}] at {origin.offset}, written {written}"

    def _attempts(self) -> Iterator[str]:
        """And what was done about it in between."""
        moments = [(note.at_ms, self._failure(note)) for note in self.letter.history]
        moments += [
            (telling.at_ms, self._deed(telling))
            for telling in self.story
            if telling.kind != DEAD_LETTERED
        ]
        for at_ms, told in sorted(moments):
            yield f"  {iso(at_ms)}  {told}"
        yield ""

    def _failure(self, note: AttemptNote) -> str:
        reason = _shown(self.cover, note.reason)
        return f"attempt {note.attempt} failed: {reason} ({note.category})"

    def _deed(self, telling: Telling) -> str:
        who = telling.replay_id if telling.kind == "replaying" else telling.actor
        said = f"{_TOLD.get(telling.kind, telling.kind)} {printable(who)}".rstrip()
        reason = _shown(self.cover, telling.reason)
        return f"{said}: {reason}" if reason else said

    def _headers(self) -> Iterator[str]:
        headers = user_headers(self.letter.headers)
        if headers:
            yield "headers"
            for name, value in headers:
                yield f"  {printable(name)}  {_shown(self.cover, one_line(value))}"
            yield ""

    def _payload(self) -> Iterator[str]:
        value = self.letter.value
        if value is None:
            yield "payload  (null)"
            return
        yield f"payload ({len(value):,} bytes)"
        shown = self.cover.payload(value)
        text = shown if isinstance(shown, str) else _pretty(shown)
        for line in text[:PAYLOAD_LENGTH_MAX].split("\n"):
            yield f"  {printable(line)}"
        if len(text) > PAYLOAD_LENGTH_MAX:
            yield "  … (all of it: forebay dlq export)"

    def _stack(self) -> Iterator[str]:
        if self.letter.stack:
            yield ""
            yield "stack"
            for line in self.cover.text(self.letter.stack).rstrip().split("\n"):
                yield f"  {printable(line)}"

    def _what_to_do(self) -> Iterator[str]:
        id, of = self.letter.id, f" --of {self.reference}" if self.reference else ""
        yield ""
        yield f"What to do: {self.letter.what_to_do}"
        if self.letter.state == "open":
            yield f'  forebay dlq replay {id}{of} --reason "…"'
            yield f'  forebay dlq discard {id} --reason "…"'
        yield f"  forebay dlq debug {id}{of}"
        yield f"  forebay dlq view {id} --as-test{of}"

    def _attempt(self, note: AttemptNote) -> dict[str, object]:
        return {
            "attempt": note.attempt,
            "at": iso(note.at_ms),
            "category": note.category,
            "reason": self.cover.text(note.reason),
        }

    def _telling(self, telling: Telling) -> dict[str, object]:
        return {
            "at": iso(telling.at_ms),
            "event": telling.kind,
            "replay_id": telling.replay_id,
            "actor": telling.actor,
            "reason": self.cover.text(telling.reason),
        }

    def _header_pairs(self) -> list[list[object]]:
        headers = user_headers(self.letter.headers)
        return [[name, _content(self.cover, value)] for name, value in headers]


def _shown(cover: Cover, text: str) -> str:
    return printable(cover.text(text))


def _content(cover: Cover, value: bytes | None) -> object:
    content = to_json(value)
    return cover.text(content) if isinstance(content, str) else content


def _pretty(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()
