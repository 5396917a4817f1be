"""What the tests of the backup offer to it, read from it and hear of it."""

import csv
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from forebay.core.records import Record
from forebay.engine.csv_files import as_text
from forebay.mods.kafka_consumer.backup import BackupSettings, CsvBackup
from forebay.mods.kafka_consumer.backup_rows import records_in
from forebay.testing.clock import FakeClock
from forebay.testing.waiting import eventually

POLLED = 1_705_312_801.123
NEVER_SECONDS = 3_600.0
SOON_SECONDS = 0.01


def polled(offset=0, value=b"{}", key=b"k", headers=()) -> Record:
    return Record(value, key, headers, "orders", 0, offset, 1_000 + offset)


class Events:
    """In order, from any thread."""

    def __init__(self):
        self._heard = []
        self._lock = Lock()

    def __call__(self, event, **fields):
        with self._lock:
            self._heard.append((event, fields))

    def named(self, name):
        with self._lock:
            return [fields for event, fields in self._heard if event == name]


@contextmanager
def backup_to(path, events=None, **settings):
    """Writes when a batch is full and at its end, unless asked for otherwise."""
    wanted = {"flush_seconds": NEVER_SECONDS} | settings
    backup = CsvBackup(BackupSettings(Path(path), **wanted), FakeClock(POLLED), events or Events())
    try:
        yield backup
    finally:
        backup.close()


def wait_until_written(backup, count):
    eventually(lambda: backup.backed_up == count)


def read(path):
    with path.open("rb") as raw, as_text(raw) as text:
        return list(records_in(csv.reader(text), path))


def offsets(path):
    return [None if record is None else record.offset for record in read(path)]
