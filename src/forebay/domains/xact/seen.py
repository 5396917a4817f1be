"""Which links of which events were handled before, within a window."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from threading import Lock

from forebay.core.clock import Clock
from forebay.core.errors import ForebayError
from forebay.domains.xact.messages import Event
from forebay.observability.catalogue import Emit
from forebay.state.seen import SeenTable, Sighting

FORGET_EVERY_SECONDS = 600.0


def fingerprint(url: str) -> str:
    return hashlib.blake2b(url.encode("utf-8", "backslashreplace"), digest_size=12).hexdigest()


class SeenEvents:
    """A help, not a promise: without it repeats are handled again, and the tables absorb them.

    `opens` is called by the first who asks.
    """

    def __init__(
        self, opens: Callable[[], SeenTable], window_seconds: float, clock: Clock, emit: Emit
    ) -> None:
        self._opens = opens
        self._window_ms = round(window_seconds * 1000)
        self._clock = clock
        self._emit = emit
        self._table: SeenTable | None = None
        self._opening = Lock()
        self._forgot_at = float("-inf")
        self._is_away = False

    def unseen(self, event: Event) -> Sequence[str]:
        """Its links that were not handled in the window; all of them where nobody knows."""
        try:
            known = self._open().known([event.trace_id])
        except ForebayError as error:
            self._is_gone(error)
            return event.links_to_store
        self._is_away = False
        if not known:
            return event.links_to_store
        return [
            url for url in event.links_to_store if (event.trace_id, fingerprint(url)) not in known
        ]

    def mark(self, links: Iterable[tuple[str, str]]) -> None:
        """Pairs of a trace id and a link. Durable on return. Raises what the state raises."""
        now_ms = int(self._clock.now() * 1000)
        table = self._open()
        table.add([Sighting(trace_id, fingerprint(url), now_ms) for trace_id, url in links])
        if self._clock.monotonic() - self._forgot_at >= FORGET_EVERY_SECONDS:
            self._forgot_at = self._clock.monotonic()
            table.forget_before(now_ms - self._window_ms)

    def _open(self) -> SeenTable:
        with self._opening:
            if self._table is None:
                self._table = self._opens()
            return self._table

    def _is_gone(self, error: ForebayError) -> None:
        """Said when it goes, not for every event while it is away."""
        if not self._is_away:
            self._is_away = True
            self._emit("seen.away", error_message=str(error))
