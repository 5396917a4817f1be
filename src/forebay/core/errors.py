"""The errors of Forebay, branched by what the caller does about them.

ForebayError
├── Unavailable            may pass by itself: hold, try again
│   ├── Full               a buffer or disk is full: poll or free space, then try again
│   └── OutcomeUnknown     no answer in time: it may or may not have happened
├── Rejected               will never pass as it is
│   ├── InvalidName, UnknownTopic, UnknownPartition, UnknownGroup, TopicExists
│   ├── RecordTooLarge, InvalidRequest
│   ├── OffsetOutOfRange, NoCommittedOffset
│   ├── GroupActive
│   ├── UnknownLetter, SeveralLetters   of the ledger, in engine/letters.py
│   ├── Undecodable        a value that its function cannot take, in engine/payloads.py
│   └── RowsRefused        by a sink: some of the rows can never be stored as they are
├── Fenced                 somebody else owns it now: forget it, commit nothing
├── Unusable               a person must act: credentials, files, versions, settings
│   ├── AccessDenied
│   └── Damaged
├── CommitFailed           per partition, one of the above
└── Closed                 its owner closed it, or another thread owns it
"""

from collections.abc import Mapping

from forebay.core.records import TopicPartition


class ForebayError(Exception):
    """The message says what happened, what the system does about it, and what a person can do."""


class Unavailable(ForebayError):
    pass


class Full(Unavailable):
    pass


class OutcomeUnknown(Unavailable):
    pass


class Rejected(ForebayError):
    pass


class InvalidName(Rejected):
    pass


class UnknownTopic(Rejected):
    pass


class UnknownPartition(Rejected):
    pass


class UnknownGroup(Rejected):
    pass


class TopicExists(Rejected):
    pass


class RecordTooLarge(Rejected):
    pass


class InvalidRequest(Rejected):
    pass


class OffsetOutOfRange(Rejected):
    """The partition's reader stays where it is until its owner seeks."""

    def __init__(self, partition: TopicPartition, offset: int, low: int, high: int) -> None:
        super().__init__(
            f"Offset {offset} of {partition} is outside the log, which holds {low} to {high} "
            f"(exclusive). The reader stays where it is; seek to an offset in that range."
        )
        self.partition, self.offset, self.low, self.high = partition, offset, low, high

    def __reduce__(self) -> tuple[type["OffsetOutOfRange"], tuple[TopicPartition, int, int, int]]:
        return type(self), (self.partition, self.offset, self.low, self.high)


class NoCommittedOffset(Rejected):
    """The group never committed this partition and its reader was not told where to start."""


class GroupActive(Rejected):
    pass


class RowsRefused(Rejected):
    pass


class Fenced(ForebayError):
    pass


class Unusable(ForebayError):
    pass


class AccessDenied(Unusable):
    pass


class Damaged(Unusable):
    pass


class CommitFailed(ForebayError):
    """Partitions that are not named in `failures` were committed."""

    def __init__(self, failures: Mapping[TopicPartition, ForebayError]) -> None:
        named = "; ".join(f"{partition}: {error}" for partition, error in failures.items())
        super().__init__(f"The commit failed for {len(failures)} partitions. {named}")
        self.failures = failures

    def __reduce__(self) -> tuple[type["CommitFailed"], tuple[dict[TopicPartition, ForebayError]]]:
        return type(self), (dict(self.failures),)


class Closed(ForebayError):
    pass
