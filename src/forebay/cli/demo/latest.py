"""The sentences of what happened last: failures of the world, and what the watcher did."""

import re
from collections import deque
from threading import Lock

from forebay.cli.payload import printable
from forebay.core.durations import written
from forebay.core.envelope import Envelope

FAILURE_SECONDS = 0.8
FILE_HOST = "127.0.0.1"
FAILURES_KEPT = 2
DEEDS_KEPT = 3

_FIRST_SENTENCE = re.compile(r"(.+?[a-z0-9)'\"])\.(?:\s|\Z)")
_NAME_LENGTH_MAX = 24


class Latest:
    """Told by several threads. Failures come faster than anybody reads: some are left out."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._failures: deque[str] = deque(maxlen=FAILURES_KEPT)
        self._deeds: deque[str] = deque(maxlen=DEEDS_KEPT)
        self._untold: list[str] = []
        self._failure_at = 0.0

    def failed(self, sentence: str, now: float) -> None:
        with self._lock:
            if now - self._failure_at >= FAILURE_SECONDS:
                self._failures.append(sentence.replace(FILE_HOST, "the file host"))
                self._failure_at = now

    def done(self, sentence: str, instead_of: str | None = None) -> None:
        """`instead_of` is what was said of it before."""
        with self._lock:
            if instead_of is not None and instead_of in self._deeds:
                self._deeds.remove(instead_of)
            self._deeds.append(sentence)
            self._untold.append(sentence)

    def sentences(self) -> list[str]:
        with self._lock:
            return [*self._failures, *self._deeds]

    def take_untold(self) -> list[str]:
        """What was done since the last call, for who reads line by line."""
        with self._lock:
            untold, self._untold = self._untold, []
        return untold


def failure_sentence(who: str, envelope: Envelope, delay_seconds: float, attempts: int) -> str:
    """Of a record that goes to a tier."""
    again = f"trying again in {spaced(delay_seconds)}"
    counts = f"attempt {envelope.attempt} of {attempts}"
    if envelope.uncounted_since_ms:
        counts = "not counted as an attempt"
    return f"{who}: {_reason(envelope)}; {again} ({counts})"


def death_sentence(who: str, envelope: Envelope) -> str:
    return f"{who}: {_reason(envelope)}; now a dead letter"


def name_of(trace_id: object, subtype: object) -> str:
    return f"{_short(trace_id)} {_short(subtype)}".strip() or "an event without a name"


def spaced(seconds: float) -> str:
    text = written(seconds)
    return re.sub(r"([a-z]+)\Z", r" \1", text)


def _reason(envelope: Envelope) -> str:
    told = envelope.failure.reason if envelope.failure else "it failed"
    first = _FIRST_SENTENCE.match(told)
    sentence = printable(first[1] if first else told)
    if sentence[:2].istitle() or sentence.startswith("A "):
        sentence = sentence[0].lower() + sentence[1:]
    return sentence


def _short(text: object) -> str:
    shown = printable(str(text or "")).replace("\n", " ")
    return shown if len(shown) <= _NAME_LENGTH_MAX else f"{shown[:_NAME_LENGTH_MAX]}…"
