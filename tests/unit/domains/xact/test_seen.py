"""A repeat is an event whose trace id and every link are known."""

import pytest

from forebay.bootstrap import open_database
from forebay.core.errors import Unavailable
from forebay.domains.xact.messages import read_event
from forebay.domains.xact.seen import FORGET_EVERY_SECONDS, SeenEvents
from forebay.state.seen import SeenTable
from forebay.testing.clock import FakeClock
from unit.domains.xact.events import event_record

DAY = 86_400.0


@pytest.fixture
def table(tmp_path):
    database = open_database(tmp_path / "seen.db")
    yield SeenTable(database)
    database.close()


def event(*links):
    return read_event(event_record(data={"attachments": list(links)}))


def pairs(*links):
    return [("tr-1", url) for url in links]


def seen(table, clock=None, said=None):
    emit = (lambda name, **_: said.append(name)) if said is not None else lambda *_, **__: None
    return SeenEvents(lambda: table, DAY, clock or FakeClock(), emit)


def test_nothing_is_seen_before_it_was_marked(table):
    known = seen(table)
    assert list(known.unseen(event("a", "b"))) == ["a", "b"]
    known.mark(pairs("a", "b"))
    assert list(known.unseen(event("a", "b"))) == []


def test_an_event_sent_again_with_a_fresh_link_is_handled_for_that_link(table):
    known = seen(table)
    known.mark(pairs("a?signature=1"))
    assert list(known.unseen(event("a?signature=1", "a?signature=2"))) == ["a?signature=2"]


def test_what_was_seen_before_the_window_is_handled_again(table):
    clock = FakeClock()
    known = seen(table, clock)
    known.mark(pairs("a"))
    clock.advance(DAY + FORGET_EVERY_SECONDS)
    known.mark(pairs("b"))
    assert list(known.unseen(event("a"))) == ["a"]


def test_while_nobody_knows_everything_is_handled_and_that_is_said_once():
    said: list[str] = []

    class Away:
        def known(self, keys):
            raise Unavailable("The state is away.")

    known = seen(Away(), said=said)
    for _ in range(5):
        assert list(known.unseen(event("a"))) == ["a"]
    assert said == ["seen.away"]
