"""forebay mod replay-backup: records of backup files to a topic, or through a callable."""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from forebay.cli.command import DONE, FOUND_A_PROBLEM, INTERRUPTED, Command
from forebay.cli.dlq_progress import LongWork
from forebay.cli.errors import WrongUse
from forebay.cli.mod_calling import CALLED, DryRun, Pace, Rate, attempt_with, tell_failures
from forebay.cli.output import print_object, remark, say
from forebay.cli.positions import now_ms
from forebay.cli.times import time_ms
from forebay.mods.kafka_consumer.replay import (
    Backup,
    Counting,
    Target,
    ToCallable,
    ToTopic,
    Wanted,
)


@dataclass(frozen=True)
class ReplayBackup(Command):
    files: Annotated[
        list[Path], Argument(metavar="FILE", help="Backup files, .gz as well, oldest first.")
    ]
    topic: Annotated[
        str | None, Option("--topic", metavar="TOPIC", help="Send the records to this topic.")
    ] = None
    function: Annotated[
        str | None, Option("--processor", metavar="MODULE:FUNCTION", help=CALLED)
    ] = None
    of_topic: Annotated[
        str | None, Option("--of-topic", metavar="TOPIC", help="Only what came from this topic.")
    ] = None
    partition: Annotated[
        int | None, Option("--partition", metavar="N", min=0, help="Only what came from this one.")
    ] = None
    key: Annotated[str | None, Option("--key", metavar="TEXT", help="Only this key.")] = None
    grep: Annotated[
        str | None, Option("--grep", metavar="TEXT", help="Only values with this in them.")
    ] = None
    since: Annotated[
        str | None, Option("--from", metavar="TIME", help="Polled since: 2h, 2026-11-18T09:00Z.")
    ] = None
    until: Annotated[str | None, Option("--to", metavar="TIME", help="Polled before.")] = None
    skip: Annotated[
        int, Option("--skip", metavar="N", min=0, help="Leave out the first so many that match.")
    ] = 0
    limit: Annotated[int | None, Option("--limit", metavar="N", min=1, help="So many at most.")] = (
        None
    )
    rate: Rate = None
    dry_run: DryRun = False

    def run(self) -> int:
        if (self.topic is None) == (self.function is None):
            raise WrongUse(
                "Say where the records go: --topic TOPIC, or --processor module:function."
            )
        begun = time.monotonic()
        wanted = self._wanted()
        backup = Backup(self.files)
        with ExitStack() as closing:
            target = self._target(closing)
            code = self._hand_over(backup, wanted, target)
            target.finish()
        self._tell(backup, target, code, time.monotonic() - begun)
        is_whole = not target.failures.count and not backup.unreadable
        return code or (DONE if is_whole else FOUND_A_PROBLEM)

    def _wanted(self) -> Wanted:
        now = now_ms()
        return Wanted(
            topic=self.of_topic,
            partition=self.partition,
            key=_bytes(self.key),
            text=_bytes(self.grep),
            since_ms=time_ms(self.since, now) if self.since else None,
            until_ms=time_ms(self.until, now) if self.until else None,
        )

    def _target(self, closing: ExitStack) -> Target:
        """A dry run, too, says what cannot be found."""
        if self.function is not None:
            attempt = attempt_with(self.function, closing)
            return Counting() if self.dry_run else ToCallable(attempt)
        topic = str(self.topic)
        broker = closing.enter_context(self.session().broker())
        broker.admin().describe_topics([topic])
        return Counting() if self.dry_run else ToTopic(broker.producer(), topic)

    def _hand_over(self, backup: Backup, wanted: Wanted, target: Target) -> int:
        size = sum(_size(path) for path in self.files)
        matching = filter(wanted.takes, backup.records())
        end = None if self.limit is None else self.skip + self.limit
        pace = Pace(self.rate)
        try:
            with LongWork("bytes of backup read", size) as work:
                for record in islice(matching, self.skip, end):
                    if work.is_due:
                        work.show(backup.bytes_read)
                    if not self.dry_run:
                        pace.wait()
                    target.hand_over(record)
        except KeyboardInterrupt:
            return INTERRUPTED
        return DONE

    def _tell(self, backup: Backup, target: Target, code: int, seconds: float) -> None:
        handed = target.done + target.failures.count
        tell_failures(target.failures)
        if backup.unreadable:
            remark(f"{backup.unreadable:,} rows were cut or changed and could not be read.")
        if code == INTERRUPTED:
            remark(f"Interrupted. To go on, say the same with --skip {self.skip + handed}.")
        if not self.as_json:
            say(self._sentence(backup, target))
            return
        facts = {
            "done": target.done,
            "failed": target.failures.count,
            "read": backup.rows,
            "unreadable": backup.unreadable,
            "dry_run": self.dry_run,
            "seconds": round(seconds, 3),
        }
        print_object({"items": _places(target), "total": handed, **facts})

    def _sentence(self, backup: Backup, target: Target) -> str:
        place = f"to {self.topic}" if self.topic else f"through {self.function}"
        read = f"{backup.rows:,} rows read"
        if self.dry_run:
            came = [f"{at} {count:,}" for at, count in sorted(target.places.items())]
            origin = f" They came from {', '.join(came)}." if came else ""
            return f"{target.done:,} records would go {place}, {read}.{origin} Nothing was done."
        failed = f"{target.failures.count:,} failed, " if target.failures.count else ""
        return f"{target.done:,} records went {place}, {failed}{read}."


def _places(target: Target) -> list[dict[str, object]]:
    return [
        {"topic": at.topic, "partition": at.partition, "records": count}
        for at, count in sorted(target.places.items())
    ]


def _size(path: Path) -> int:
    if not path.is_file():
        raise WrongUse(f"There is no file {path}. Name backup files of the mod, oldest first.")
    return path.stat().st_size


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")
