"""What a pipeline is made of, as values: topics, record stages and sink stages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from forebay.core.backpressure import Bounds
from forebay.core.batches import BatchRule
from forebay.core.failures import Failure
from forebay.core.outcomes import Emit
from forebay.core.records import Record
from forebay.core.retries import RetryPolicy
from forebay.core.sinks import Sink
from forebay.lakehouse.tables.port import WriteMode

OrderBy: TypeAlias = Literal["unordered", "key", "partition"]
StartAt: TypeAlias = Literal["earliest", "latest"]
Run: TypeAlias = Callable[..., Any]
WhenDeadLettered: TypeAlias = Callable[[Record, Failure], Emit | None]
WhenDone: TypeAlias = Callable[..., None]
WaitsFor: TypeAlias = Callable[..., str | None]

HANDLER_SECONDS = 300.0
COMMIT_SECONDS = 5.0
WEEK_MS = 7 * 86_400_000
MONTH_MS = 30 * 86_400_000


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that the pipeline owns: `run` creates it.

    `read_by_others`: retries never come back on it, even where one stage alone reads it here.
    """

    name: str
    partitions: int = 4
    retention_ms: int | None = WEEK_MS
    read_by_others: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordStage:
    """One record in, one outcome out, many at once.

    `emits` are topics it writes, where nothing else says so. `group`, `retry_topics` and
    `dead_letters` are names that replace the derived ones; `dead_letters` may be a file instead.
    `letter_batch` says when a file's rows are written; without it, at once.
    `stops_on` are the exceptions that stop the stage rather than the record.
    `when_done(records, shared=…)` is told of records that ended in Done with all outputs durable,
    in batches, before their offsets are committed; it runs between two polls and must be quick.
    `waits_for(shared=…)` gives a reason, in a sentence, while the stage is to start nothing.
    """

    name: str
    reads: str | Sequence[str]
    run: Run
    order_by: OrderBy = "unordered"
    concurrency: int = 50
    inline: bool = False
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    group: str | None = None
    retry_topics: str | None = None
    dead_letters: str | Path | None = None
    letter_batch: BatchRule | None = None
    when_dead_lettered: WhenDeadLettered | None = None
    when_done: WhenDone | None = None
    waits_for: WaitsFor | None = None
    timeout_seconds: float | None = HANDLER_SECONDS
    start_at: StartAt = "earliest"
    commit_seconds: float = COMMIT_SECONDS
    bounds: Bounds = field(default_factory=Bounds)
    emits: Sequence[str] = ()
    sensitive: Sequence[str] = ()
    stops_on: tuple[type[BaseException], ...] = (SystemExit, KeyboardInterrupt, MemoryError)

    @property
    def topics(self) -> tuple[str, ...]:
        return (self.reads,) if isinstance(self.reads, str) else tuple(self.reads)


@dataclass(frozen=True, slots=True)
class SqlTable:
    """`sqlite:///file?table=name`."""

    file: Path
    name: str


@dataclass(frozen=True, slots=True)
class RowFile:
    """One JSON object a line."""

    path: Path


@dataclass(frozen=True, slots=True)
class DeltaTable:
    """A Delta table of that name below the data folder's `tables`, or at `path`.

    append keeps every row, append_missing the first of each key, upsert the newest of each key; a
    key is one within its partition, so what it is partitioned by must come from the record.
    """

    name: str
    partition_by: tuple[str, ...] = ()
    mode: WriteMode = "append"
    path: str | None = None


SinkTarget: TypeAlias = SqlTable | RowFile | DeltaTable | Callable[[], Sink[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkStage:
    """Records in order, one durable batch after the other; the position is kept with the rows."""

    name: str
    reads: str | Sequence[str]
    row: Run
    target: SinkTarget
    columns: Mapping[str, type] | None = None
    key: Sequence[str] = ()
    keyed_by_record: bool = False
    batch: BatchRule = field(default_factory=BatchRule)
    dead_letters: str | None = None
    start_at: StartAt = "earliest"

    @property
    def topics(self) -> tuple[str, ...]:
        return (self.reads,) if isinstance(self.reads, str) else tuple(self.reads)


Stage: TypeAlias = RecordStage | SinkStage
