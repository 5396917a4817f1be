"""A process of its own that writes dead letters: `letter_writer.py FILE FIRST COUNT`.

It says that it is ready and waits for a line. A batch that is refused is written again.
"""

import sys
from pathlib import Path

from forebay.core.envelope import first_envelope
from forebay.core.errors import Unavailable
from forebay.core.failures import Failure
from forebay.core.records import Record
from forebay.engine.dead_letters import DeadLetter
from forebay.engine.letter_file import CsvLetters

FAILED_MS = 1_705_313_123_456
BATCH = 5


def dead(number=0, value=b"{}", key=b"k", headers=(), reason="the bank is busy") -> DeadLetter:
    record = Record(value, key, list(headers), "orders", 0, number, 1_000 + number)
    failure = Failure("transient", reason, "TimeoutError", 'Traceback:\n  File "x"\n')
    envelope = first_envelope("shop-charge", record).failed(failure, FAILED_MS, attempt=1)
    return DeadLetter(record, envelope)


def main(path: str, first: str, count: str) -> None:
    letters = CsvLetters(Path(path))
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(first), int(first) + int(count), BATCH):
        batch = [dead(at, b'"\n' * (at % 50)) for at in range(number, number + BATCH)]
        while not written(letters, batch):
            pass


def written(letters: CsvLetters, batch: list[DeadLetter]) -> bool:
    try:
        letters.write(batch)
    except Unavailable:
        return False
    return True


if __name__ == "__main__":
    main(*sys.argv[1:])
