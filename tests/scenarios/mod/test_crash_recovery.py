"""Section 4.3 of the mod's document: killed at any moment, nothing is lost."""

import random
import threading
from functools import partial

import pytest

from forebay.testing import eventually

KILLS = 5
MESSAGES = 3_000
WORKERS, QUEUE = 8, 40
QUICK_TO_MISS = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 1_000}

PROCESS = """
def process(value):
    if value.endswith(b"7"):
        raise ValueError(value.decode())
    note(value.decode())
"""


def test_4_3_killed_at_random_moments_it_loses_nothing_and_repeats_little(mod, processes):
    processes.declare(PROCESS)
    values = [b"%d" % number for number in range(MESSAGES)]
    failing = {value for value in values if value.endswith(b"7")}
    mod.produce(values)
    moments = random.Random(2_024)
    repeats_max = 0
    for _ in range(KILLS):
        run = processes.start(worker_count=WORKERS, queue_size=QUEUE, **QUICK_TO_MISS)
        known = len(processes.notes)
        eventually(partial(has_moved, processes, known), within_seconds=30)
        threading.Event().wait(moments.random() / 2)
        run.kill()
        repeats_max += done(mod, processes) - committed(mod)
    run = processes.start(worker_count=WORKERS, queue_size=QUEUE, **QUICK_TO_MISS)
    eventually(lambda: committed(mod) == MESSAGES, within_seconds=60)
    run.terminate()
    handled = {word.encode() for word in processes.notes}
    buried = {letter.record.value for letter in mod.letters}
    assert handled == set(values) - failing
    assert buried == failing
    repeats = processes.notes.total() - len(handled) + len(mod.letters) - len(buried)
    assert repeats <= repeats_max


def has_moved(processes, known):
    return len(processes.notes) > known or len(processes.notes) >= MESSAGES * 0.85


def done(mod, processes):
    return len(processes.notes) + len({letter.record.value for letter in mod.letters})


def committed(mod):
    return sum(mod.committed(partition) or 0 for partition in range(4))


STOPS_BEFORE_COMMIT = """
from forebay.mods.kafka_consumer.letters import ToldLetters
from forebay.engine.letter_file import CsvLetters

write = CsvLetters.write

def write_then_die(letters_file, letters):
    {before}
    write(letters_file, letters)
    {after}

CsvLetters.write = write_then_die

def process(value):
    raise ValueError(value.decode())
"""


@pytest.mark.parametrize("dies", ["before", "after"])
def test_a_dead_letter_is_on_disk_before_its_offset_is_committed(mod, processes, dies):
    """Killed just before the row is written, and between the row and the commit."""
    kill = "os.kill(os.getpid(), signal.SIGKILL)"
    source = {"before": "pass", "after": "pass"} | {dies: kill}
    processes.declare(STOPS_BEFORE_COMMIT.format(**source))
    mod.produce([b"1"])
    run = processes.start()
    run.process.wait(30)
    assert committed(mod) == 0
    assert len(mod.letters) == (dies == "after")
    processes.declare("def process(value):\n    raise ValueError(value.decode())\n")
    again = processes.start()
    eventually(lambda: committed(mod) == 1, within_seconds=30)
    again.terminate()
    assert {letter.record.value for letter in mod.letters} == {b"1"}
    assert len(mod.letters) == (2 if dies == "after" else 1)


def test_two_processes_share_the_work_and_write_two_backups_and_one_dead_letter_file(
    mod, processes
):
    processes.declare(PROCESS)
    first = processes.start(backup_path=str(mod.folder / "first.csv"))
    second = processes.start(backup_path=str(mod.folder / "second.csv"))
    for run in (first, second):
        run.wait_for("consumer.assigned")
    mod.produce([b"%d" % number for number in range(500)])
    eventually(lambda: committed(mod) == 500, within_seconds=60)
    first.terminate()
    second.terminate()
    assert len({letter.record.value for letter in mod.letters}) == 50
    rows = sum(
        len((mod.folder / name).read_text().splitlines()) - 1
        for name in ("first.csv", "second.csv")
    )
    assert rows >= 500


def test_a_processor_that_ends_its_process_loses_nothing(mod, processes):
    processes.declare("""
def process(value):
    if value == b"7" and not HERE.joinpath("ended").exists():
        HERE.joinpath("ended").touch()
        os._exit(1)
    note(value.decode())
""")
    mod.produce([b"%d" % number for number in range(20)])
    first = processes.start(**QUICK_TO_MISS)
    first.process.wait(40)
    second = processes.start(**QUICK_TO_MISS)
    eventually(lambda: committed(mod) == 20, within_seconds=40)
    second.terminate()
    assert {int(word) for word in processes.notes} == set(range(20))
