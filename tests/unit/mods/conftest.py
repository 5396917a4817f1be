import pytest

from forebay.testing import MemoryBroker
from mod_place import ModPlace


class ListeningBroker(MemoryBroker):
    """Remembers what its consumers are asked for."""

    def __init__(self) -> None:
        super().__init__(record_bytes_max=200 * 2**20)
        self.asked = []
        self.polls = []

    def consumer(self, group, settings=None):
        self.asked.append((group, settings))
        return ListeningConsumer(super().consumer(group, settings), self.polls)


class ListeningConsumer:
    def __init__(self, consumer, polls) -> None:
        self._consumer = consumer
        self._polls = polls

    def poll(self, timeout_seconds, max_records=500, max_bytes=8 * 2**20):
        records = self._consumer.poll(timeout_seconds, max_records, max_bytes)
        self._polls.append((timeout_seconds, max_records, len(records)))
        return records

    def __getattr__(self, name):
        return getattr(self._consumer, name)


@pytest.fixture
def mod(tmp_path):
    """The mod over a broker in this process, with one topic of one partition."""
    place = ModPlace(tmp_path, ListeningBroker())
    place.create()
    yield place
    place.close()
