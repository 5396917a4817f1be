from contextlib import closing

import pytest

from forebay.bootstrap import connect
from forebay.core.records import CommittedOffset, TopicPartition
from forebay.testing.waiting import eventually


class Listener:
    def __init__(self, consumer) -> None:
        self._consumer = consumer

    def assigned(self, committed) -> None:
        for place in committed:
            self._consumer.seek(place, 0)

    def revoked(self, partitions) -> None:
        pass

    def lost(self, partitions) -> None:
        pass


@pytest.fixture
def broker(forebay):
    forebay("topics", "create", "orders", "-p", "1")
    forebay("topics", "produce", "orders", say="one\ntwo\nthree\n")
    with closing(connect(f"embedded:{forebay.folder / 'forebay-data'}", environment={})) as broker:
        yield broker


def join_and_commit(broker):
    consumer = broker.consumer("billing")
    consumer.subscribe(["orders"], Listener(consumer))
    eventually(lambda: consumer.poll(0.1))
    consumer.commit({TopicPartition("orders", 0): CommittedOffset(2)})
    return consumer


def test_a_group_is_listed_refused_while_active_and_reset_after(forebay, broker):
    reset = ("groups", "reset", "billing", "--topic", "orders", "--to", "earliest")
    with closing(join_and_commit(broker)):
        [item] = forebay("groups", "list", "--json").items
        assert item == {"group": "billing", "state": "active", "lag": 1, "members": 1}
        [row] = forebay("groups", "describe", "billing", "--json").items
        assert (row["committed"], row["end"], row["lag"]) == (2, 3, 1)
        refused = forebay(*reset, "--yes")
        assert (refused.code, "active" in refused.err) == (1, True)
    looked = forebay(*reset, "--dry-run", "--json")
    assert looked.items == [{"topic": "orders", "partition": 0, "from": 2, "to": 0}]
    assert forebay(*reset).code == 2
    assert forebay("groups", "list", "--json").items[0]["lag"] == 1
    assert forebay(*reset, "--yes", "--reason", "again").code == 0
    assert forebay("groups", "list", "--json").items[0]["lag"] == 3
