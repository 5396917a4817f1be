"""Where reading begins: at the group's commit, else where the stage says, never by accident."""

from collections.abc import Mapping

from forebay.core.commit_notes import CommitNote, read_note
from forebay.core.records import CommittedOffset, Offset, TopicPartition
from forebay.engine.doors import Doors
from forebay.engine.stages import StartAt


def note_of(committed: CommittedOffset) -> CommitNote:
    """What goes on being told of a partition that was committed before."""
    note = read_note(committed.metadata) or CommitNote()
    return CommitNote(0, note.partitions, note.since_ms)


class Starts:
    """`inputs`: where a group without a commit begins; what is not in it, at the beginning."""

    def __init__(self, doors: Doors, inputs: Mapping[str, StartAt]) -> None:
        self._consumer = doors.consumer
        self._admin = doors.admin
        self._clock = doors.clock
        self._inputs = inputs

    def of(self, at: TopicPartition) -> tuple[Offset, CommitNote]:
        """Of a partition that the group never committed. Asks the broker. Blocking.

        A group that reads the topic already began at a time that its notes tell: what was there
        then begins as it did, what was added since begins at its beginning.
        """
        count = self._partitions(at.topic)
        note = self._note_of_others(at.topic, count)
        if note is None:
            note = CommitNote(partitions=count, since_ms=int(self._clock.now() * 1000))
            return self._first_start(at), note
        is_older = at.partition < note.partitions
        if is_older and self._inputs.get(at.topic) == "latest":
            return self._consumer.offset_for_time(at, note.since_ms), note
        return self._consumer.watermarks(at).low, note

    def _first_start(self, at: TopicPartition) -> Offset:
        low, end = self._consumer.watermarks(at)
        return end if self._inputs.get(at.topic) == "latest" else low

    def _note_of_others(self, topic: str, count: int) -> CommitNote | None:
        places = [TopicPartition(topic, number) for number in range(count)]
        known = [found for found in self._consumer.committed(places).values() if found]
        notes = [note_of(found) for found in known]
        return max(notes, key=lambda note: note.partitions, default=None)

    def _partitions(self, topic: str) -> int:
        (description,) = self._admin.describe_topics([topic])
        return description.partitions
