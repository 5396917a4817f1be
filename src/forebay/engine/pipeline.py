"""A pipeline as its author declares it. What cannot work is refused here, with a sentence."""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast, get_args
from urllib.parse import parse_qs, urlsplit

from forebay.core.batches import BatchRule
from forebay.core.durations import seconds
from forebay.core.errors import InvalidRequest
from forebay.core.retries import RetryPolicy, retry_policy
from forebay.core.topics import check_name, check_partitions
from forebay.engine.functions import inspect_function
from forebay.engine.payloads import column_type, columns_of
from forebay.engine.routes import LEDGER, SCHEDULER, Route, record_route, sink_route
from forebay.engine.stages import (
    DeltaTable,
    OrderBy,
    RecordStage,
    RowFile,
    SinkStage,
    SinkTarget,
    SqlTable,
    Stage,
    StartAt,
    Topic,
)
from forebay.lakehouse.tables.port import WriteMode
from forebay.outbound.listed_hosts import rules_of

Call = TypeVar("Call", bound=Callable[..., Any])
Shared: TypeAlias = Callable[[], AbstractContextManager[Any] | AbstractAsyncContextManager[Any]]

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,99}\Z")
_TABLE = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,99}\Z")
_RESERVED = (SCHEDULER, LEDGER)


class Pipeline:
    """Stages over topics. `hosts` are all that `context.http` may reach.

    Stages are given as values or by decorators; both make the same RecordStage and SinkStage.
    """

    def __init__(
        self,
        name: str,
        *,
        topics: Sequence[Topic] = (),
        stages: Sequence[Stage] = (),
        hosts: Sequence[str] = (),
        group_prefix: str | None = None,
    ) -> None:
        self.name = _checked_name("pipeline", name)
        self.group_prefix = _checked_name("group prefix", group_prefix or name)
        self.topics = _checked_topics(topics)
        rules_of(hosts)
        self.hosts = tuple(hosts)
        self.shared: dict[str, Shared] = {}
        self._stages: dict[str, Stage] = {}
        for stage in stages:
            self.add(stage)

    def add(self, stage: Stage) -> None:
        _check_stage(stage)
        if stage.name in self._stages:
            raise InvalidRequest(
                f"Pipeline {self.name} has two stages named {stage.name}; give one another name=."
            )
        self._stages[stage.name] = stage
        try:
            self._check_whole()
        except InvalidRequest:
            del self._stages[stage.name]
            raise

    def stage(self, topic: str | Sequence[str], **options: Any) -> Callable[[Call], Call]:
        """The function handles each record of `topic`. Options are those of `record_stage`."""

        def declare(function: Call) -> Call:
            self.add(record_stage(topic, function, **options))
            return function

        return declare

    def sink(self, topic: str | Sequence[str], **options: Any) -> Callable[[Call], Call]:
        """The function makes a row of each record. Options are those of `sink_stage`."""

        def declare(function: Call) -> Call:
            self.add(sink_stage(topic, function, **options))
            return function

        return declare

    def share(self, opens: Call) -> Call:
        """What all handlers of a process use, open from before the first record to after the last.

        `opens` gives a context manager, plain or async; handlers find it in `context.shared`.
        """
        self.shared[opens.__name__] = cast("Shared", opens)
        return opens

    @property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(self._stages.values())

    @property
    def record_stages(self) -> tuple[RecordStage, ...]:
        return tuple(stage for stage in self.stages if isinstance(stage, RecordStage))

    @property
    def sink_stages(self) -> tuple[SinkStage, ...]:
        return tuple(stage for stage in self.stages if isinstance(stage, SinkStage))

    def route(self, stage: Stage) -> Route:
        if isinstance(stage, SinkStage):
            return sink_route(self.name, self.group_prefix, stage)
        readers = Counter(topic for other in self.stages for topic in other.topics)
        alone = frozenset(
            name
            for name, topic in self.topics.items()
            if readers[name] == 1 and not topic.read_by_others
        )
        return record_route(self.name, self.group_prefix, stage, owns_alone=alone)

    @property
    def routes(self) -> tuple[Route, ...]:
        return tuple(self.route(stage) for stage in self.stages)

    @property
    def scheduler_group(self) -> str:
        return f"{self.group_prefix}-{SCHEDULER}"

    @property
    def ledger_group(self) -> str:
        return f"{self.group_prefix}-{LEDGER}"

    def _check_whole(self) -> None:
        derived = [topic for route in self.routes for topic in route.derived_topics]
        for topic, count in Counter(derived).items():
            check_name(topic)
            if count > 1:
                raise InvalidRequest(
                    f"Two stages of {self.name} would share the topic {topic}; give one of them "
                    f"another name, retry_topics or dead_letters."
                )
        _check_places(self.name, [stage.target for stage in self.sink_stages])
        read = {topic for stage in self.stages for topic in stage.topics}
        for topic in read & set(derived):
            raise InvalidRequest(
                f"A stage of {self.name} reads {topic}, which belongs to another stage's retries "
                f"or dead letters; only Forebay reads those."
            )


def _check_places(pipeline: str, targets: Sequence[SinkTarget]) -> None:
    files = [str(target.path.absolute()) for target in targets if isinstance(target, RowFile)]
    tables = [f"table {t.path or t.name}" for t in targets if isinstance(t, DeltaTable)]
    for place, count in Counter([*files, *tables]).items():
        if count > 1:
            raise InvalidRequest(
                f"Two sinks of {pipeline} would write {place}, which has one writer; give one of "
                f"them another place."
            )


def record_stage(
    topic: str | Sequence[str],
    function: Callable[..., Any],
    *,
    retry: Sequence[float | str] | RetryPolicy | None = None,
    timeout: float | str | None = "5m",
    **options: Any,
) -> RecordStage:
    """Options: name, order_by, concurrency, in-place tries, and the other fields of RecordStage."""
    in_place = options.pop("retry_in_place", 0)
    policy = retry if isinstance(retry, RetryPolicy) else _policy(retry, in_place)
    letters = options.pop("dead_letters", None)
    if isinstance(letters, str) and letters.startswith("file:"):
        letters = Path(letters.removeprefix("file:"))
    name = options.pop("name", None) or _function_name(function)
    try:
        return RecordStage(
            name=name,
            reads=topic,
            run=function,
            retry=policy,
            timeout_seconds=None if timeout is None else seconds(timeout),
            dead_letters=letters,
            **options,
        )
    except TypeError as problem:
        raise _unknown_option(name, problem) from problem


def sink_stage(
    topic: str | Sequence[str],
    function: Callable[..., Any],
    *,
    table: str | None = None,
    file: str | Path | None = None,
    key: str | Sequence[str] = (),
    **options: Any,
) -> SinkStage:
    """Options: batch (100), every ("5s"), name, and the other fields of SinkStage."""
    rule = BatchRule(options.pop("batch", 100), seconds(options.pop("every", "5s")))
    name = options.pop("name", None) or _function_name(function)
    keys = (key,) if isinstance(key, str) else tuple(key)
    target = options.pop("target", None) or _target(name, table, file, is_keyed=bool(keys))
    declared = options.pop("columns", None) or columns_of(inspect_function(function).returns)
    columns = declared and {column: column_type(kind) for column, kind in declared.items()}
    if columns is None and isinstance(target, SqlTable | DeltaTable):
        raise InvalidRequest(
            f"Sink {name} does not say which columns its rows have: annotate what {name} returns "
            f"with a model or dataclass, or give columns={{'name': type}}."
        )
    try:
        return SinkStage(
            name=name,
            reads=topic,
            row=function,
            target=target,
            columns=columns,
            key=keys,
            batch=rule,
            **options,
        )
    except TypeError as problem:
        raise _unknown_option(name, problem) from problem


def _policy(retry: object, in_place: int) -> RetryPolicy:
    if isinstance(retry, str | bytes) or not isinstance(retry, Sequence | None):
        raise InvalidRequest(
            f"retry is {retry!r}; write the delays as a list, such as retry=[{retry!r}]."
        )
    return retry_policy(retry, in_place)


def _target(name: str, table: str | None, file: str | Path | None, *, is_keyed: bool) -> SinkTarget:
    if (table is None) == (file is None):
        raise InvalidRequest(
            f'Sink {name} needs one place for its rows: table="name" (a Delta table), '
            f'table="sqlite:///rows.db?table=name" or file="rows.ndjson".'
        )
    if file is not None:
        return RowFile(Path(file))
    if urlsplit(str(table)).scheme:
        return _sql_table(name, str(table))
    return DeltaTable(str(table), mode="upsert" if is_keyed else "append")


def _sql_table(name: str, url: str) -> SqlTable:
    parts = urlsplit(url)
    tables = parse_qs(parts.query).get("table", [])
    if parts.scheme != "sqlite" or parts.netloc or not parts.path.strip("/") or len(tables) != 1:
        raise InvalidRequest(
            f"Sink {name}: {url!r} is no table; write sqlite:///FILE?table=NAME (four slashes "
            f"before a path from the root)."
        )
    return SqlTable(Path(parts.path.removeprefix("/")), tables[0])


def _check_stage(stage: Stage) -> None:
    _checked_name("stage", stage.name)
    if stage.name in _RESERVED:
        raise InvalidRequest(f"A stage cannot be named {stage.name}: Forebay has a worker of it.")
    if not stage.topics:
        raise InvalidRequest(f"Stage {stage.name} reads no topic; name one.")
    for topic in stage.topics:
        check_name(topic)
    if len(set(stage.topics)) < len(stage.topics):
        raise InvalidRequest(f"Stage {stage.name} reads a topic twice; name each topic once.")
    if isinstance(stage, RecordStage):
        _check_record_stage(stage)
    else:
        _check_sink_stage(stage)


def _check_record_stage(stage: RecordStage) -> None:
    function = inspect_function(stage.run)
    if stage.order_by not in get_args(OrderBy):
        raise InvalidRequest(
            f"Stage {stage.name}: order_by is {stage.order_by!r}; write one of "
            f"{', '.join(get_args(OrderBy))}."
        )
    if stage.start_at not in get_args(StartAt):
        raise InvalidRequest(
            f"Stage {stage.name}: start_at is {stage.start_at!r}; write earliest or latest."
        )
    for option, names in (("emits", stage.emits), ("sensitive", stage.sensitive)):
        if isinstance(names, str):
            raise InvalidRequest(
                f"Stage {stage.name}: {option} is one text; write a list: {option}=[{names!r}]."
            )
    for topic in stage.emits:
        check_name(topic)
    if stage.concurrency < 1:
        raise InvalidRequest(f"Stage {stage.name}: concurrency is at least 1.")
    if stage.inline and (function.is_async or stage.concurrency != 1):
        raise InvalidRequest(
            f"Stage {stage.name}: an inline function is a plain one with concurrency=1, for it "
            f"runs between two polls."
        )
    if stage.timeout_seconds is not None and stage.timeout_seconds <= 0:
        raise InvalidRequest(f"Stage {stage.name}: a timeout is longer than nothing, or None.")
    if inspect.iscoroutinefunction(stage.when_dead_lettered):
        raise InvalidRequest(
            f"Stage {stage.name}: when_dead_lettered makes outputs of a record and must be a plain "
            f"function."
        )


def _check_sink_stage(stage: SinkStage) -> None:
    function = inspect_function(stage.row)
    if function.is_async:
        raise InvalidRequest(
            f"Sink {stage.name}: the function that makes a row must be a plain one; do what waits "
            f"in a stage before it."
        )
    if stage.start_at != "earliest":
        raise InvalidRequest(
            f"Sink {stage.name}: start_at is {stage.start_at!r}, but a sink goes on where its "
            f"store stands and begins at the beginning; leave start_at out."
        )
    if not isinstance(stage.dead_letters, str | None):
        raise InvalidRequest(
            f"Sink {stage.name}: dead_letters is {str(stage.dead_letters)!r}, but a sink's dead "
            f"letters go to a topic; name one, or leave it out."
        )
    missing = [name for name in stage.key if stage.columns and name not in stage.columns]
    if missing:
        raise InvalidRequest(
            f"Sink {stage.name}: key {missing[0]} is none of its columns "
            f"({', '.join(stage.columns or ())})."
        )
    if isinstance(stage.target, DeltaTable):
        _check_delta_table(stage, stage.target)


def _check_delta_table(stage: SinkStage, table: DeltaTable) -> None:
    if not _TABLE.match(table.name):
        raise InvalidRequest(
            f"Sink {stage.name}: {table.name!r} cannot be a table's name; use a letter, then "
            f"letters, digits, - and _, 100 at most. Another place goes into "
            f"target=DeltaTable(name, path=…)."
        )
    if table.mode not in get_args(WriteMode):
        raise InvalidRequest(
            f"Sink {stage.name}: mode is {table.mode!r}; write one of "
            f"{', '.join(get_args(WriteMode))}."
        )
    if (table.mode == "append") == bool(stage.key):
        raise InvalidRequest(
            f"Sink {stage.name}: mode append keeps every row and takes no key, append_missing and "
            f"upsert need one; it was declared with mode {table.mode} and the key "
            f"{', '.join(stage.key) or 'none'}."
        )
    missing = [column for column in table.partition_by if column not in (stage.columns or ())]
    if missing:
        raise InvalidRequest(
            f"Sink {stage.name}: {missing[0]}, which its table is partitioned by, is none of its "
            f"columns ({', '.join(stage.columns or ()) or 'none'})."
        )
    binary = [name for name in table.partition_by if (stage.columns or {})[name] is bytes]
    if binary:
        raise InvalidRequest(
            f"Sink {stage.name}: {binary[0]}, which its table is partitioned by, holds bytes, and "
            f"a partition has a text for its name; partition by a column of another type."
        )


def _checked_name(what: str, name: str) -> str:
    if not isinstance(name, str) or not _NAME.match(name):
        raise InvalidRequest(
            f"{name!r} cannot be a {what}'s name; use a letter, then letters, digits, - and _, "
            f"100 at most."
        )
    return name


def _checked_topics(topics: Sequence[Topic]) -> dict[str, Topic]:
    for name, count in Counter(topic.name for topic in topics).items():
        if count > 1:
            raise InvalidRequest(f"Topic {name} is declared twice; declare it once.")
    for topic in topics:
        check_name(topic.name)
        check_partitions(topic.name, topic.partitions)
    return {topic.name: topic for topic in topics}


def _function_name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "")
    if not name or name == "<lambda>":
        raise InvalidRequest("A stage made of a function without a name needs name=.")
    return name


def _unknown_option(name: str, problem: TypeError) -> InvalidRequest:
    return InvalidRequest(f"Stage {name} was declared with something it does not have: {problem}.")
