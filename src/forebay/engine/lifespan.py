"""What a pipeline's handlers share: opened before the first record, closed after the last."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from types import MappingProxyType
from typing import Any

from forebay.core.errors import InvalidRequest
from forebay.engine.event_loop import EventLoop
from forebay.engine.pipeline import Pipeline

OPEN_SECONDS = 60.0
CLOSE_SECONDS = 10.0


class Lifespan:
    """Opened on the event loop, where the handlers that use them run."""

    def __init__(self, pipeline: Pipeline, event_loop: EventLoop) -> None:
        self._pipeline = pipeline
        self._event_loop = event_loop
        self._closing = AsyncExitStack()

    def open(self) -> Mapping[str, Any]:
        """All of it, or nothing is left open."""
        try:
            return MappingProxyType(self._event_loop.run(self._open(), OPEN_SECONDS))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._event_loop.run(self._closing.aclose(), CLOSE_SECONDS)

    async def _open(self) -> dict[str, Any]:
        return {name: await self._enter(name) for name in self._pipeline.shared}

    async def _enter(self, name: str) -> Any:
        manager: object = self._pipeline.shared[name]()
        if isinstance(manager, AbstractAsyncContextManager):
            return await self._closing.enter_async_context(manager)
        if isinstance(manager, AbstractContextManager):
            return self._closing.enter_context(manager)
        raise InvalidRequest(
            f"What {name} gives is no context manager; decorate it with contextlib.contextmanager "
            f"or asynccontextmanager, and yield what the handlers share."
        )
