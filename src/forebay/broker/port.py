"""What Forebay asks of a broker. Kafka's behaviour is the truth; every adapter passes one suite.

Everything is synchronous. A producer and a consumer belong to the first thread that uses them; a
call from another raises Closed. Only `Consumer.close` and `Producer.close` may also come from a
signal handler: a poll in progress then returns at once. Brokers and admins may be shared.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from forebay.broker.settings import ConsumerSettings, ProducerSettings
from forebay.core.errors import ForebayError
from forebay.core.records import CommittedOffset, Offset, Record, TopicPartition
from forebay.core.topics import TopicSpec


@dataclass(frozen=True, slots=True)
class BrokerDescription:
    """`sentence` is what a start line says: kind, place, durability."""

    kind: str
    identity: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of `forebay doctor`; `do` says what a person does about it."""

    check: str
    ok: bool
    detail: str
    do: str = ""


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """`id` tells a topic from another of the same name that was deleted before it."""

    name: str
    id: str
    partitions: int
    retention_ms: int | None
    retention_bytes: int | None
    replication: int = 1


class Watermarks(NamedTuple):
    """The log of a partition holds offsets from low up to and without end."""

    low: Offset
    end: Offset


@dataclass(frozen=True, slots=True)
class GroupSummary:
    name: str
    active: bool
    members: int


@dataclass(frozen=True, slots=True)
class GroupMember:
    id: str
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class GroupPosition:
    partition: TopicPartition
    committed: CommittedOffset | None
    watermarks: Watermarks

    @property
    def lag(self) -> int:
        """Records a group has not committed; all that the log holds where it never committed."""
        start = self.watermarks.low if self.committed is None else self.committed.offset
        return max(0, self.watermarks.end - max(start, self.watermarks.low))


@dataclass(frozen=True, slots=True)
class GroupDescription:
    name: str
    active: bool
    members: tuple[GroupMember, ...]
    positions: tuple[GroupPosition, ...]

    @property
    def lag(self) -> int:
        return sum(position.lag for position in self.positions)


class Report(NamedTuple):
    """What became of one sent record. `error` None means stored durably at `offset`."""

    token: object
    topic: str
    partition: int
    offset: Offset
    timestamp_ms: int
    error: ForebayError | None


class CommitResult(NamedTuple):
    """`failures` empty means every offset in `offsets` is committed."""

    offsets: Mapping[TopicPartition, CommittedOffset]
    failures: Mapping[TopicPartition, ForebayError]


class Rebalance(Protocol):
    """Told of changes as deltas, inside `poll`, on the consumer's thread.

    A call may use the consumer (commit, seek, pause) but not poll or close it. What it raises
    comes out of `poll`, after the change itself was carried through.
    """

    def assigned(self, committed: Mapping[TopicPartition, CommittedOffset | None]) -> None:
        """New partitions, each with the group's committed offset.

        A partition starts there unless this call seeks it elsewhere. One with None that is not
        sought makes the next poll raise NoCommittedOffset.
        """
        ...

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions about to leave. Until this returns nobody else owns them: commit here."""
        ...

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions already gone, perhaps owned elsewhere. A commit would fail: drop them."""
        ...


class Admin(Protocol):
    """Every method blocks for a bounded time and raises Unavailable past it."""

    def create_topic(self, spec: TopicSpec, *, exists_ok: bool = False) -> None:
        """Durable on return. Raises TopicExists unless `exists_ok`; the topic is not altered."""
        ...

    def describe_topics(self, names: Collection[str] | None = None) -> list[TopicDescription]:
        """Sorted by name; all topics of users without `names`. Raises UnknownTopic."""
        ...

    def extend_topic(self, name: str, partitions: int) -> None:
        """Grow to `partitions` in all. Raises InvalidRequest if that is not more."""
        ...

    def delete_topic(self, name: str) -> None:
        """Its records and every group's offsets of it are gone. Raises UnknownTopic."""
        ...

    def trim(self, before: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
        """Delete all below an offset; gives the new low watermarks. Idempotent.

        Raises OffsetOutOfRange above the end.
        """
        ...

    def watermarks(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, Watermarks]: ...

    def list_groups(self) -> list[GroupSummary]: ...

    def describe_group(self, name: str) -> GroupDescription:
        """Members, committed offsets and lag. Raises UnknownGroup."""
        ...

    def reset_offsets(self, group: str, offsets: Mapping[TopicPartition, Offset]) -> None:
        """Set where an inactive group resumes. Idempotent. Raises GroupActive.

        All of them or none on embedded; on Kafka each partition for itself (CommitFailed).
        """
        ...


class Producer(Protocol):
    """Sends in order per partition; every accepted record gets exactly one report.

    Acknowledged means durable by the broker's level, and there once: retries do not double.
    """

    @property
    def outstanding(self) -> int:
        """Records accepted and not yet handed out as reports."""
        ...

    def send(self, record: Record, token: object = None) -> None:
        """Accept one record; its report carries `token`. Does not wait for the broker.

        The first send to a topic asks the broker about it, within seconds. Raises UnknownTopic,
        UnknownPartition, RecordTooLarge, and Full at once when too much is outstanding: poll, then
        send again. Nothing is created by sending.
        """
        ...

    def send_many(self, records: Sequence[Record], token: object = None) -> int:
        """Accept records in order until the buffer is full; says how many it took.

        All are checked first: one that is refused refuses all. Full if it could take none.
        Embedded takes all or none, and readers see all of them or none.
        """
        ...

    def poll(self, timeout_seconds: float) -> list[Report]:
        """Reports since the last call; waits for one if there is none yet."""
        ...

    def flush(self, timeout_seconds: float) -> int:
        """Wait until all is reported or time is up; says how many are still unreported.

        Reports stay for `poll`.
        """
        ...

    def close(self, timeout_seconds: float = 10.0) -> list[Report]:
        """Flush, then report what is left as OutcomeUnknown. Closing again gives nothing."""
        ...


class Consumer(Protocol):
    """Reads partitions it was assigned by its group (`subscribe`) or by hand (`assign`)."""

    def subscribe(self, topics: Collection[str], listener: Rebalance) -> None:
        """Join the group at the next poll. May be called again with other topics."""
        ...

    def assign(self, positions: Mapping[TopicPartition, Offset]) -> None:
        """Read exactly these from these offsets, in no group. Raises UnknownTopic."""
        ...

    @property
    def assignment(self) -> frozenset[TopicPartition]: ...

    def poll(
        self, timeout_seconds: float, max_records: int = 500, max_bytes: int = 8 * 2**20
    ) -> list[Record]:
        """Records in offset order per partition, as soon as there is one; [] at the timeout.

        At least one record whatever its size, then at most `max_bytes`. Offsets may have gaps.
        Raises OffsetOutOfRange once per partition that cannot go on, UnknownTopic for one that
        vanished, AccessDenied, Unavailable; the other partitions go on with the next poll.
        Members must poll within `poll_interval_max_seconds`.
        """
        ...

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Deliver nothing of these until resumed. Ends with the assignment."""
        ...

    def resume(self, partitions: Iterable[TopicPartition]) -> None: ...

    def seek(self, partition: TopicPartition, offset: Offset) -> None:
        """Go on from `offset`; one outside the log surfaces at the next poll."""
        ...

    def position(self, partition: TopicPartition) -> Offset:
        """Where the next record will be looked for."""
        ...

    def at_end(self, partition: TopicPartition) -> bool:
        """True once all that the broker held at the last look was delivered. Asks nobody."""
        ...

    def watermarks(self, partition: TopicPartition) -> Watermarks:
        """Asks the broker. Blocking."""
        ...

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int) -> Offset:
        """The first offset with that timestamp or a later one; the end if there is none."""
        ...

    def committed(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """Asks the broker. Blocking."""
        ...

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Durable on return. Idempotent. Raises CommitFailed naming each partition that failed."""
        ...

    def start_commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Like `commit` without waiting; the outcome comes from `finished_commits` after polls."""
        ...

    def finished_commits(self) -> list[CommitResult]: ...

    def close(self) -> None:
        """Leave the group: `revoked` is called, partitions are handed over, nothing is committed.

        From a signal handler it only ends the poll in progress, which then closes. May repeat.
        """
        ...


class Broker(Protocol):
    def describe(self) -> BrokerDescription: ...

    def diagnose(self) -> list[Finding]:
        """Look at everything a person may have to mend. Raises nothing: findings say it."""
        ...

    @property
    def record_bytes_max(self) -> int:
        """The largest record, counted by `size_bytes`, that a producer accepts."""
        ...

    def admin(self) -> Admin: ...

    def producer(self, settings: ProducerSettings | None = None) -> Producer: ...

    def consumer(self, group: str | None, settings: ConsumerSettings | None = None) -> Consumer:
        """Without a group it can only `assign`, and cannot commit."""
        ...

    def close(self) -> None:
        """Close what it gave out, then itself. May repeat."""
        ...
