"""What a run came to: exit code, figures, and what a person should look at."""

from collections.abc import Iterator, Mapping

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


def outcome_of(ending: Ending, watch: Watch, letters: ToldLetters | None, stuck: int) -> Ended:
    configuration, backup, health = watch.configuration, watch.backup, ending.health
    failed, handled = _count(health, "dead_lettered"), _count(health, "handled")
    dropped = backup.dropped if backup else 0
    warnings = list(_warnings(configuration, health, letters, dropped))
    errors = list(_errors(ending, configuration, stuck))
    return Ended(
        _exit_code(ending, is_well=not errors, has_warnings=bool(warnings)),
        metrics={
            "processed": handled - failed,
            "failed": failed,
            "backed_up": backup.backed_up if backup else 0,
            "backup_dropped": dropped,
            "committed": watch.seen.messages_committed,
            "seconds": round(ending.seconds, 3),
        },
        artifacts=_artifacts(configuration, backup, failed),
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


def _errors(ending: Ending, configuration: Configuration, stuck: int) -> Iterator[str]:
    if ending.failure is not None:
        yield f"{type(ending.failure).__name__}: {ending.failure}"
    elif not ending.is_clean:
        yield (
            f"{ending.left_behind} messages were still being processed after "
            f"{configuration.shutdown_timeout_seconds} s; they were not committed and come again. "
            f"Raise shutdown_timeout_seconds, or make the processor faster."
        )
    if stuck > configuration.worker_count * STUCK_SHARE_MAX:
        yield (
            f"{stuck} of {configuration.worker_count} workers did not return within "
            f"processing_timeout. Their messages are in {configuration.dlq_path}; look at what "
            f"processor_callable waits for."
        )


def _warnings(
    configuration: Configuration,
    health: StageHealth | None,
    letters: ToldLetters | None,
    dropped: int,
) -> Iterator[str]:
    skipped = letters.skipped if letters else 0
    failed = _count(health, "dead_lettered") - skipped
    if failed > 0:
        yield (
            f"{failed} messages failed and are in {configuration.dlq_path}. Look at them, then: "
            f"forebay mod reprocess-dlq."
        )
    if skipped:
        yield (
            f"{skipped} messages failed and could not be written to {configuration.dlq_path}; "
            f"dlq_on_error is skip, so they are only in the log."
        )
    if dropped:
        yield f"{dropped} messages were processed without a row in {configuration.backup_path}."
    if expired := _count(health, "expired"):
        yield f"{expired} messages were deleted by retention before they were read."


def _artifacts(
    configuration: Configuration, backup: CsvBackup | None, failed: int
) -> dict[str, str]:
    artifacts = {"backup_path": str(configuration.backup_path)} if backup else {}
    return artifacts | ({"dlq_path": str(configuration.dlq_path)} if failed else {})


def _count(health: StageHealth | None, name: str) -> int:
    return 0 if health is None else int(str(health.counters[name]))
