"""What a handler may know besides the payload."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forebay.core.clock import Clock
from forebay.core.envelope import Envelope, entry_id, first_origin, user_headers
from forebay.core.errors import InvalidRequest
from forebay.core.records import Header, Record
from forebay.observability.catalogue import Emit, silent
from forebay.observability.clock import SystemClock

if TYPE_CHECKING:  # the client is loaded where a pipeline lists hosts
    from forebay.outbound.http import HttpClient


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all records of one stage have in common."""

    pipeline: str
    stage: str
    group: str
    clock: Clock = field(default_factory=SystemClock)
    emit: Emit = silent
    shared: Mapping[str, Any] = field(default_factory=dict)
    http: "HttpClient | None" = None


class Context:
    """`attempt` counts from 1; `id` is the same for every attempt and replay of one record."""

    __slots__ = ("_envelope", "_surroundings", "attempt", "record")

    def __init__(
        self, record: Record, envelope: Envelope | None, surroundings: Surroundings
    ) -> None:
        self.record = record
        self.attempt = 1 if envelope is None else envelope.attempt
        self._envelope = envelope
        self._surroundings = surroundings

    @property
    def id(self) -> str:
        if self._envelope is not None:
            return self._envelope.id
        return entry_id(self._surroundings.group, first_origin(self.record))

    @property
    def key(self) -> bytes | None:
        return self.record.key

    @property
    def headers(self) -> list[Header]:
        """The user's own."""
        return user_headers(self.record.headers)

    @property
    def is_replay(self) -> bool:
        return self._envelope is not None and bool(self._envelope.replay_id)

    @property
    def clock(self) -> Clock:
        return self._surroundings.clock

    @property
    def shared(self) -> Mapping[str, Any]:
        """What the pipeline's `share` functions opened, by their names."""
        return self._surroundings.shared

    @property
    def http(self) -> "HttpClient":
        """Requests to the hosts that the pipeline lists; what they raise is tried again or not."""
        stage, client = self._surroundings.stage, self._surroundings.http
        if client is None:
            raise InvalidRequest(
                f"{stage} uses context.http, but pipeline {self._surroundings.pipeline} lists no "
                f"hosts; declare it with hosts=[...], the hosts that its functions may reach."
            )
        if not _is_on_event_loop():
            raise InvalidRequest(
                f"{stage} uses context.http in a plain function; it works in functions that are "
                f"declared with async def."
            )
        return client

    def log(self, message: str, **fields: object) -> None:
        """One line in Forebay's log, with the record's place in it."""
        self._surroundings.emit(
            "handler.said",
            text=message,
            details=fields,
            stage=self._surroundings.stage,
            pipeline=self._surroundings.pipeline,
            topic=self.record.topic,
            partition=self.record.partition,
            offset=self.record.offset,
            attempt=self.attempt,
        )


def _is_on_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
