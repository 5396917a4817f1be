"""The shutdown, told in the order in which it happens, and what the run comes to."""

import time
import traceback

from forebay.core.errors import ForebayError
from forebay.engine.health import StageHealth
from forebay.engine.run import PipelineRun
from forebay.mods.kafka_consumer.messages import text_of
from forebay.mods.kafka_consumer.observation import handled_of, queue_depth, watermarks_of
from forebay.mods.kafka_consumer.seen import named
from forebay.mods.kafka_consumer.stopping import Reason, Wish
from forebay.mods.kafka_consumer.telling import Teller, milliseconds
from forebay.mods.kafka_consumer.watched_consumer import Watch


class Ending:
    """Belongs to the thread that runs the mod."""

    def __init__(self, watch: Watch, wish: Wish) -> None:
        self._configuration = watch.configuration
        self._tell: Teller = watch.tell
        self._watch = watch
        self._wish = wish
        self._began_at: float | None = None
        self._started_at = time.monotonic()
        self._has_stopped_polling = False
        self.reason: Reason | None = None
        self.failure: BaseException | None = None
        self.left_behind = 0
        self.health: StageHealth | None = None
        self.seconds = 0.0

    def look(self, run: PipelineRun) -> None:
        """Begin it when somebody wants it, or when the run itself has begun."""
        health = next(iter(run.health()), None)
        if self._began_at is None:
            reason = self._wish.reason or _own_reason(run, health)
            if reason is None:
                return
            self._begin(reason, health)
            run.stop(self._configuration.shutdown_timeout_seconds)
        if self._wish.is_urgent:
            run.stop(0.0)
        if health is not None and health.is_stopping:
            self._tell_draining(health)

    def close(self, run: PipelineRun | None) -> None:
        """Blocking until all is closed. What went wrong is told and kept. None: it never began."""
        own_reason = None if run is None else self._close_run(run)
        if self.failure is not None:
            self._tell_failure(self.failure)
        if self._began_at is None:
            self._begin(self._wish.reason or own_reason or "error", self.health)
        if self.health is not None:
            self._tell_draining(self.health)
        self._tell_stopped()
        if self._watch.backup is not None:
            self._watch.backup.close()
        self._tell_complete()

    @property
    def is_clean(self) -> bool:
        return not self.left_behind and self.failure is None

    @property
    def was_urged(self) -> bool:
        return self._wish.is_urgent

    def _close_run(self, run: PipelineRun) -> Reason | None:
        try:
            self.left_behind = run.close().left_behind
        except BaseException as error:  # noqa: BLE001  whatever a loop raised is the run's result
            self.failure = error
        self.failure = self.failure or run.stopped_by
        self.health = next(iter(run.health()), None)
        return _own_reason(run, self.health)

    def _begin(self, reason: Reason, health: StageHealth | None) -> None:
        self._began_at = time.monotonic()
        self.reason = reason
        self._watch.is_ending = True
        if reason == "stop_at_offset" and health is not None:
            self._tell_stops(health)
        self._tell(
            "mod.shutdown_initiated",
            signal=self._wish.signal,
            queue_depth=0 if health is None else queue_depth(health),
            active_workers=0 if health is None else health.running,
            reason=reason,
        )

    def _tell_stops(self, health: StageHealth) -> None:
        """A target that lies at the end of a log is reached before a message is seen there."""
        seen = self._watch.seen
        watermarks = watermarks_of(health)
        for at, target in self._configuration.stop_at_offset.items():
            offset = seen.beyond.get(at, watermarks.get(f"{at.topic}:{at.partition}", -1))
            if offset < target:
                continue
            was_read = at in seen.polled or at in seen.beyond
            self._tell(
                "mod.stop_at_offset_reached" if was_read else "mod.stop_at_offset_passed",
                topic=at.topic,
                partition=at.partition,
                offset=offset,
                target_offset=target,
            )

    def _tell_draining(self, health: StageHealth) -> None:
        if not self._has_stopped_polling:
            self._has_stopped_polling = True
            self._tell("mod.polling_stopped")
            self._tell("mod.draining", messages_remaining=queue_depth(health))

    def _tell_stopped(self) -> None:
        began_at = self._began_at or time.monotonic()
        self._tell("mod.workers_stopped", duration_ms=milliseconds(time.monotonic() - began_at))
        if self._configuration.dev_mode:
            handled = 0 if self.health is None else handled_of(self.health)
            self._tell("mod.dev_mode_final_commit_skipped", messages_processed=handled)
            return
        committed = self._configuration.commit_on_shutdown
        self._tell(
            "mod.final_commit" if committed else "mod.final_commit_skipped",
            partition_offsets=named(self._watch.seen.committed),
            messages_committed=self._watch.seen.messages_committed,
        )

    def _tell_failure(self, error: BaseException) -> None:
        """A sentence of ours needs no stack beside it."""
        stack = (
            "" if isinstance(error, ForebayError) else "".join(traceback.format_exception(error))
        )
        self._tell(
            "mod.failed",
            error_type=type(error).__name__,
            error_message=text_of(error),
            stack_trace=stack,
        )

    def _tell_complete(self) -> None:
        now = time.monotonic()
        self.seconds = now - self._started_at
        is_dev_mode = self._configuration.dev_mode
        self._tell(
            "mod.shutdown_complete",
            total_duration_ms=milliseconds(now - (self._began_at or now)),
            messages_committed="skipped" if is_dev_mode else self._watch.seen.messages_committed,
            clean_shutdown=self.is_clean,
            dev_mode=is_dev_mode,
        )


def _own_reason(run: PipelineRun, health: StageHealth | None) -> Reason | None:
    if run.failure is not None or run.stopped_by is not None:
        return "error"
    return "stop_at_offset" if health is not None and health.is_stopping else None
