"""What a run came to: exit code, figures, and what a person should look at."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from forebay.engine.health import StageHealth
from forebay.mods.kafka_consumer.backup import CsvBackup
from forebay.mods.kafka_consumer.configuration import Configuration
from forebay.mods.kafka_consumer.ending import Ending
from forebay.mods.kafka_consumer.letters import ToldLetters
from forebay.mods.kafka_consumer.watched_consumer import Watch
from forebay.mods.result import (
    CANCELLED,
    FAILED,
    SUCCESS,
    TIMED_OUT,
    WITH_WARNINGS,
    Ended,
    ExitCode,
)

STUCK_SHARE_MAX = 0.2
NOTHING_DONE: Mapping[str, float] = {
    "processed": 0,
    "failed": 0,
    "backed_up": 0,
    "backup_dropped": 0,
    "committed": 0,
    "seconds": 0.0,
}


class Failures(NamedTuple):
    """`skipped` ones are lost, as was asked for. `trouble` is why the last write failed."""

    failed: int
    written: int
    skipped: int
    trouble: str

    @property
    def unwritten(self) -> int:
        """What was revoked before its turn is none of them: somebody else has it now."""
        return max(0, self.failed - self.written - self.skipped) if self.trouble else 0


def outcome_of(ending: Ending, watch: Watch, letters: ToldLetters | None, stuck: int) -> Ended:
    configuration, backup, health = watch.configuration, watch.backup, ending.health
    failures = _failures(health, letters)
    dropped = backup.dropped if backup else 0
    warnings = list(_warnings(configuration, health, failures, dropped))
    errors = [
        *_errors(ending, configuration, ending.left_behind - failures.unwritten),
        *_unwritten(configuration, failures),
        *_stuck(configuration, stuck),
    ]
    return Ended(
        _exit_code(ending, is_well=not errors, has_warnings=bool(warnings)),
        metrics={
            "processed": max(0, _count(health, "handled") - failures.written - failures.skipped),
            "failed": failures.failed,
            "backed_up": backup.backed_up if backup else 0,
            "backup_dropped": dropped,
            "committed": watch.seen.messages_committed,
            "seconds": round(ending.seconds, 3),
        },
        artifacts=_artifacts(configuration, backup, failures),
        warnings=warnings,
        errors=errors,
    )


def _exit_code(ending: Ending, *, is_well: bool, has_warnings: bool) -> ExitCode:
    if isinstance(ending.failure, KeyboardInterrupt) or ending.was_urged:
        return CANCELLED
    if ending.failure is not None:
        return FAILED
    if not ending.is_clean:
        return TIMED_OUT
    if not is_well:
        return FAILED
    return WITH_WARNINGS if has_warnings else SUCCESS


def _errors(ending: Ending, configuration: Configuration, running: int) -> Iterator[str]:
    if ending.failure is not None:
        yield f"{type(ending.failure).__name__}: {ending.failure}"
    elif running > 0:
        yield (
            f"{running} messages were still being processed after "
            f"{configuration.shutdown_timeout_seconds} s; they were not committed and come again. "
            f"Raise shutdown_timeout_seconds, or make the processor faster."
        )


def _stuck(configuration: Configuration, stuck: int) -> Iterator[str]:
    if stuck > configuration.worker_count * STUCK_SHARE_MAX:
        yield (
            f"{stuck} of {configuration.worker_count} workers did not return within "
            f"processing_timeout. Their messages are in {configuration.dlq_path}; look at what "
            f"processor_callable waits for."
        )


def _unwritten(configuration: Configuration, failures: Failures) -> Iterator[str]:
    if failures.unwritten:
        yield (
            f"{failures.unwritten} failed messages could not be written to "
            f"{configuration.dlq_path}; they were not committed and come again. {failures.trouble}"
        )


def _failures(health: StageHealth | None, letters: ToldLetters | None) -> Failures:
    failed = _count(health, "dead_lettered")
    if letters is None:
        return Failures(failed, 0, 0, "")
    return Failures(failed, letters.written, letters.skipped, letters.trouble)


def _warnings(
    configuration: Configuration,
    health: StageHealth | None,
    failures: Failures,
    dropped: int,
) -> Iterator[str]:
    if failures.written:
        yield (
            f"{failures.written} messages failed and are in {configuration.dlq_path}. Look at "
            f"them, then: forebay mod reprocess-dlq."
        )
    if failures.skipped:
        yield (
            f"{failures.skipped} messages failed and could not be written to "
            f"{configuration.dlq_path}; dlq_on_error is skip, so only their places are in the log."
        )
    if dropped:
        yield f"{dropped} messages were processed without a row in {configuration.backup_path}."
    if expired := _count(health, "expired"):
        yield f"{expired} messages were deleted by retention before they were read."


def _artifacts(
    configuration: Configuration, backup: CsvBackup | None, failures: Failures
) -> dict[str, str]:
    artifacts = {"backup_path": str(configuration.backup_path)} if backup else {}
    return artifacts | ({"dlq_path": str(configuration.dlq_path)} if failures.written else {})


def _count(health: StageHealth | None, name: str) -> int:
    return 0 if health is None else int(str(health.counters[name]))
