"""The dead-letter file as the mod wants it: what is written is told, and so is what cannot be."""

import time
from collections.abc import Sequence
from pathlib import Path

from forebay.core.errors import ForebayError
from forebay.engine.dead_letters import DeadLetter, LetterFile
from forebay.engine.letter_file import Locked
from forebay.mods.kafka_consumer.telling import Teller, milliseconds


class ToldLetters:
    """A LetterFile. With `skips` what cannot be written is told, counted and lost.

    A file that is only locked is waited for all the same: who holds it lets go of it.
    """

    def __init__(self, letters: LetterFile, path: Path, tell: Teller, *, skips: bool) -> None:
        self._letters = letters
        self._path = str(path)
        self._tell = tell
        self._skips = skips
        self.written = 0
        self.skipped = 0
        self.trouble = ""

    def write(self, letters: Sequence[DeadLetter]) -> None:
        if not letters:
            return
        started_at = time.monotonic()
        try:
            self._letters.write(letters)
        except ForebayError as error:
            self.trouble = str(error)
            is_skipped = self._skips and not isinstance(error, Locked)
            self._tell_failure(letters, error, is_skipped=is_skipped)
            if not is_skipped:
                raise
            self.skipped += len(letters)
            return
        self.written += len(letters)
        self.trouble = ""
        self._tell(
            "mod.dlq_batch_written",
            failures_written=len(letters),
            file_path=self._path,
            write_time_ms=milliseconds(time.monotonic() - started_at),
        )

    def close(self) -> None:
        self._letters.close()

    def _tell_failure(
        self, letters: Sequence[DeadLetter], error: ForebayError, *, is_skipped: bool
    ) -> None:
        places = [f"{letter.record.at}@{letter.record.offset}" for letter in letters]
        self._tell(
            "mod.dlq_write_failed",
            file_path=self._path,
            reason=str(error),
            failures_held=0 if is_skipped else len(letters),
            failures_skipped=len(letters) if is_skipped else 0,
            messages=places,
        )
