"""What handlers share: open before the first record, closed after the last, whatever happens."""

import asyncio
import threading
from contextlib import asynccontextmanager, contextmanager

import pytest

from forebay import Pipeline
from forebay.core.errors import InvalidRequest
from forebay.engine.event_loop import EventLoop
from forebay.engine.lifespan import Lifespan


@pytest.fixture
def event_loop():
    loop = EventLoop()
    yield loop
    loop.close()


class Shared:
    """A pipeline whose shared things say what happens to them."""

    def __init__(self):
        self.pipeline = Pipeline("shared")
        self.said = []

    def plain(self, name, *, fails=False):
        @contextmanager
        def opens():
            if fails:
                raise ConnectionRefusedError(name)
            self.said.append(f"{name} opened")
            yield name
            self.said.append(f"{name} closed")

        opens.__name__ = name
        self.pipeline.share(opens)

    def waiting(self, name):
        @asynccontextmanager
        async def opens():
            await asyncio.sleep(0)
            self.said.append(f"{name} opened in {threading.current_thread().name}")
            yield name
            self.said.append(f"{name} closed")

        opens.__name__ = name
        self.pipeline.share(opens)


def test_shared_things_are_found_by_name_and_closed_in_turn(event_loop):
    shared = Shared()
    shared.plain("database")
    shared.waiting("client")
    life = Lifespan(shared.pipeline, event_loop)
    assert dict(life.open()) == {"database": "database", "client": "client"}
    assert shared.said == ["database opened", "client opened in forebay-event-loop"]
    life.close()
    assert shared.said[2:] == ["client closed", "database closed"]


def test_nobody_can_change_what_is_shared(event_loop):
    shared = Shared()
    shared.plain("database")
    life = Lifespan(shared.pipeline, event_loop)
    opened = life.open()
    with pytest.raises(TypeError):
        opened["database"] = "mine"
    life.close()


def test_what_was_opened_before_one_that_fails_is_closed_again(event_loop):
    shared = Shared()
    shared.plain("database")
    shared.plain("queue", fails=True)
    life = Lifespan(shared.pipeline, event_loop)
    with pytest.raises(ConnectionRefusedError):
        life.open()
    assert shared.said == ["database opened", "database closed"]


def test_what_is_no_context_manager_is_refused_with_what_to_do(event_loop):
    pipeline = Pipeline("shared")

    @pipeline.share
    def number():
        return 7

    with pytest.raises(InvalidRequest, match=r"contextlib\.contextmanager"):
        Lifespan(pipeline, event_loop).open()
