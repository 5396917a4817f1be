"""What the consumer's thread has seen, for the thread that runs the mod."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from forebay.core.records import CommittedOffset, Offset, Record, TopicPartition


@dataclass(slots=True)
class Seen:
    """Written by the consumer's thread alone. Places are (topic, partition).

    `beyond` are the first offsets polled at a stop or above it, `committed` what the broker said
    that it stored, `messages_committed` how many of the polled lie below that.
    """

    polled: dict[tuple[str, int], deque[Offset]] = field(default_factory=dict)
    beyond: dict[TopicPartition, Offset] = field(default_factory=dict)
    committed: dict[TopicPartition, Offset] = field(default_factory=dict)
    messages_committed: int = 0

    def take(self, records: Iterable[Record]) -> None:
        polled = self.polled
        for record in records:
            place = record[3:5]
            offsets = polled.get(place)
            if offsets is None:
                offsets = polled[place] = deque()
            offsets.append(record[5])

    def store(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> int:
        """Says how many messages were committed with these."""
        before = self.messages_committed
        for at, stored in offsets.items():
            self.committed[at] = stored.offset
            waiting = self.polled.get(at)
            while waiting and waiting[0] < stored.offset:
                waiting.popleft()
                self.messages_committed += 1
        return self.messages_committed - before

    def forget(self, at: TopicPartition) -> None:
        """Somebody else reads it from now on, or it is read again from its commit."""
        self.polled.pop(at, None)


def named(offsets: Mapping[TopicPartition, Offset]) -> dict[str, Offset]:
    """As a log and a receipt write places."""
    return {f"{topic}:{partition}": offset for (topic, partition), offset in offsets.items()}
