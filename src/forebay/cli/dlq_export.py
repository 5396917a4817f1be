"""forebay dlq export: dead letters in full, an object a line."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TextIO

from typer import Argument, Option

from forebay.cli.command import DONE
from forebay.cli.dlq_choice import Choice, every_letter
from forebay.cli.dlq_progress import LongWork
from forebay.cli.dlq_state import Look, open_state, write_audit
from forebay.cli.errors import WrongUse
from forebay.cli.output import json_line, print_object, remark
from forebay.cli.payload import to_json
from forebay.cli.times import iso
from forebay.core.envelope import user_headers
from forebay.engine.ledger import Ledger
from forebay.engine.letters import DeadLetter


@dataclass(frozen=True)
class Export(Choice):
    file: Annotated[
        Path | None, Argument(metavar="FILE", help="Where to; without it to stdout.")
    ] = None
    reason: Annotated[
        str | None, Option("--reason", metavar="TEXT", help="Why; kept in the audit trail.")
    ] = None

    def run(self) -> int:
        wanted = self.wanted()
        session = self.session()
        with open_state(session) as database, _opened(self.file) as target:
            ledger = Ledger(database)
            total = ledger.count(wanted)
            meant = total if self.limit is None else min(total, self.limit)
            write_audit(session, database, Look("export", self.told, meant, self.reason or ""))
            exported = 0
            with LongWork("exported", meant) as work:
                for letter in every_letter(ledger, wanted, self.limit):
                    target.write(f"{json_line(as_object(letter))}\n")
                    exported += 1
                    if work.is_due and self.file is not None:
                        work.show(exported)
        self._tell(exported, total)
        return DONE

    def _tell(self, exported: int, total: int) -> None:
        place = str(self.file) if self.file else "stdout"
        remark(f"{exported:,} dead letters in full to {place}; keep them as the topic is kept.")
        if self.as_json:
            items = [{"file": place, "exported": exported}]
            print_object({"items": items, "total": total, "exported": exported})


@contextmanager
def _opened(file: Path | None) -> Iterator[TextIO]:
    """A file that is there is not written over."""
    if file is None:
        with os.fdopen(os.dup(1), "w", encoding="utf-8") as stdout:
            yield stdout
        return
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError as problem:
        raise WrongUse(f"{file} exists, and is left as it is. Name another file.") from problem
    with os.fdopen(descriptor, "w", encoding="utf-8") as target:
        yield target


def as_object(letter: DeadLetter) -> dict[str, object]:
    """Key, value and headers byte for byte: text, null or {"base64": "…"}."""
    return {
        "id": letter.id,
        "state": letter.state,
        "pipeline": letter.pipeline,
        "stage": letter.stage,
        "group": letter.group,
        "topic": letter.origin.topic,
        "partition": letter.origin.partition,
        "offset": letter.origin.offset,
        "timestamp": letter.origin.timestamp_ms,
        "trace_id": letter.trace_id,
        "category": letter.category,
        "cause": letter.fingerprint,
        "reason": letter.reason,
        "error": letter.error,
        "stack": letter.stack,
        "attempts": letter.attempts,
        "first_failed": iso(letter.first_failed_ms),
        "failed": iso(letter.failed_ms),
        "replay_number": letter.replay_number,
        "note": letter.note,
        "dlq_topic": letter.dlq_topic,
        "dlq_partition": letter.dlq_partition,
        "dlq_offset": letter.dlq_offset,
        "key": to_json(letter.key),
        "value": to_json(letter.value),
        "headers": [[name, to_json(value)] for name, value in user_headers(letter.headers)],
    }
