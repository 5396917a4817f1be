"""What a pipeline's functions may reach over HTTP."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from forebay.core.clock import Clock
from forebay.engine.event_loop import EventLoop
from forebay.engine.lifespan import CLOSE_SECONDS
from forebay.engine.pipeline import Pipeline
from forebay.observability.catalogue import Emit

if TYPE_CHECKING:
    from forebay.outbound.http import HttpClient


def http_client(pipeline: Pipeline, clock: Clock, emit: Emit) -> "HttpClient | None":
    """None where it lists no hosts. Connects when it is first used, on the loop it is used on."""
    if not pipeline.hosts:
        return None
    from forebay.outbound.http import HttpClient  # noqa: PLC0415  heavy, for who lists hosts

    return HttpClient(pipeline.hosts, clock, emit)


@contextmanager
def open_http(
    pipeline: Pipeline, clock: Clock, emit: Emit, event_loop: EventLoop
) -> "Iterator[HttpClient | None]":
    client = http_client(pipeline, clock, emit)
    try:
        yield client
    finally:
        if client is not None:
            event_loop.run(client.close(), CLOSE_SECONDS)
