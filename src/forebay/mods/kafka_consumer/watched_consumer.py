"""A consumer that backs up and tells what it polls, and tells what it commits."""

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from forebay.broker.port import CommitResult, Consumer, Rebalance, Watermarks
from forebay.core.errors import CommitFailed, ForebayError
from forebay.core.records import CommittedOffset, Offset, Record, TopicPartition
from forebay.mods.kafka_consumer.backup import CsvBackup
from forebay.mods.kafka_consumer.configuration import Configuration
from forebay.mods.kafka_consumer.seen import Seen, named
from forebay.mods.kafka_consumer.telling import Teller, milliseconds


@dataclass(slots=True)
class Watch:
    """`is_ending`: commits are told by who ends the run, as the final one."""

    configuration: Configuration
    tell: Teller
    seen: Seen
    backup: CsvBackup | None
    is_ending: bool = False


class WatchedConsumer:
    """Belongs to the engine's thread, as the consumer behind it does.

    Where no row of the backup may be dropped and its queue is full, what does not fit is read
    again later; all is paused until then and polled all the same: this member stays in its group.
    """

    def __init__(self, consumer: Consumer, watch: Watch) -> None:
        configuration = watch.configuration
        self._consumer = consumer
        self._watch = watch
        self._tell = watch.tell
        self._seen = watch.seen
        self._backup = watch.backup
        self._blocks = configuration.backup_on_full == "block"
        self._records_max = configuration.max_poll_records
        stops = configuration.stop_at_offset
        self._stops: dict[tuple[str, int], Offset] = {
            (at.topic, at.partition): stops[at] for at in stops
        }
        self._counts_commits = not configuration.dev_mode
        self._tells_polls = watch.tell.tells("mod.batch_polled")
        self._has_no_room_for: Record | None = None
        self._paused: set[TopicPartition] = set()
        self._asked_at: dict[TopicPartition, float] = {}

    def poll(
        self, timeout_seconds: float, max_records: int = 500, max_bytes: int = 8 * 2**20
    ) -> list[Record]:
        if self._must_wait_for_backup():
            self._consumer.pause(self._consumer.assignment)
            timeout_seconds = min(timeout_seconds, 0.05)
        started_at = time.monotonic()
        wanted = min(max_records, self._records_max)
        records = self._consumer.poll(timeout_seconds, wanted, max_bytes)
        if not records:
            return records
        if self._backup is not None or self._stops:
            records = self._kept(records)
        if self._counts_commits:
            self._seen.take(records)
        if self._tells_polls and records:
            self._tell_poll(records, time.monotonic() - started_at)
        return records

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        started_at = time.monotonic()
        failures: Mapping[TopicPartition, ForebayError] = {}
        try:
            self._consumer.commit(offsets)
        except CommitFailed as error:
            failures = error.failures
            raise
        except ForebayError as error:
            failures = dict.fromkeys(offsets, error)
            raise
        finally:
            self._answered(offsets, failures, started_at)

    def start_commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        self._asked_at.update(dict.fromkeys(offsets, time.monotonic()))
        self._consumer.start_commit(offsets)

    def finished_commits(self) -> list[CommitResult]:
        results = self._consumer.finished_commits()
        for offsets, failures in results:
            now = time.monotonic()
            asked_at = min((self._asked_at.pop(at, now) for at in offsets), default=now)
            self._answered(offsets, failures, asked_at)
        return results

    def seek(self, partition: TopicPartition, offset: Offset) -> None:
        self._seen.forget(partition)
        self._consumer.seek(partition, offset)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        paused = list(partitions)
        self._paused.update(paused)
        self._consumer.pause(paused)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        resumed = list(partitions)
        self._paused.difference_update(resumed)
        self._consumer.resume(resumed)

    def subscribe(self, topics: Collection[str], listener: Rebalance) -> None:
        self._consumer.subscribe(topics, Forgetting(self._seen, self._paused, listener))

    def assign(self, positions: Mapping[TopicPartition, Offset]) -> None:
        self._consumer.assign(positions)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._consumer.assignment

    def position(self, partition: TopicPartition) -> Offset:
        return self._consumer.position(partition)

    def at_end(self, partition: TopicPartition) -> bool:
        return self._consumer.at_end(partition)

    def watermarks(self, partition: TopicPartition) -> Watermarks:
        return self._consumer.watermarks(partition)

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int) -> Offset:
        return self._consumer.offset_for_time(partition, timestamp_ms)

    def committed(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset | None]:
        return self._consumer.committed(partitions)

    def close(self) -> None:
        self._consumer.close()

    def _kept(self, records: list[Record]) -> list[Record]:
        """In their order, up to the first that the backup has no room for."""
        for number, record in enumerate(records):
            if self._is_beyond(record) or self._backup is None:
                continue
            if self._blocks and not self._backup.has_room_for(record):
                self._put_back(records[number:])
                return records[:number]
            self._backup.offer(record)
        return records

    def _put_back(self, records: list[Record]) -> None:
        first = {record.at: record.offset for record in reversed(records)}
        for at, offset in first.items():
            self._consumer.seek(at, offset)
        self._has_no_room_for = records[0]

    def _must_wait_for_backup(self) -> bool:
        record, backup = self._has_no_room_for, self._backup
        if record is None or backup is None:
            return False
        if not backup.has_room_for(record):
            return True
        self._has_no_room_for = None
        self._consumer.resume(self._consumer.assignment - self._paused)
        return False

    def _is_beyond(self, record: Record) -> bool:
        stop = self._stops.get(record[3:5])
        if stop is None or record[5] < stop:
            return False
        self._seen.beyond.setdefault(record.at, record.offset)
        return True

    def _tell_poll(self, records: list[Record], seconds: float) -> None:
        offsets = [record.offset for record in records]
        self._tell(
            "mod.batch_polled",
            batch_size=len(records),
            partitions=sorted({record.partition for record in records}),
            offset_range=f"{min(offsets)}-{max(offsets)}",
            poll_time_ms=milliseconds(seconds),
        )

    def _answered(
        self,
        offsets: Mapping[TopicPartition, CommittedOffset],
        failures: Mapping[TopicPartition, ForebayError],
        asked_at: float,
    ) -> None:
        done = {at: stored for at, stored in offsets.items() if at not in failures}
        if done:
            messages = self._seen.store(done)
            if not self._watch.is_ending:
                self._tell(
                    "mod.offsets_committed",
                    partition_offsets=named({at: stored.offset for at, stored in done.items()}),
                    messages_committed=messages,
                    commit_time_ms=milliseconds(time.monotonic() - asked_at),
                )
        for error in dict.fromkeys(failures.values()):
            self._tell(
                "mod.commit_failed",
                partitions=[str(at) for at, failure in failures.items() if failure is error],
                error_type=type(error).__name__,
                error_message=str(error),
            )


@dataclass(frozen=True, slots=True)
class Forgetting:
    """Passes a rebalance on; what was seen of a partition that comes or goes counts no more."""

    seen: Seen
    paused: set[TopicPartition]
    listener: Rebalance

    def assigned(self, committed: Mapping[TopicPartition, CommittedOffset | None]) -> None:
        self._forget(committed)
        self.listener.assigned(committed)

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.listener.revoked(partitions)
        self._forget(partitions)

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        self.listener.lost(partitions)
        self._forget(partitions)

    def _forget(self, partitions: Iterable[TopicPartition]) -> None:
        for at in partitions:
            self.seen.forget(at)
            self.paused.discard(at)
