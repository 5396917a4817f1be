import csv
import os
import resource
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from forebay.cli.errors import WrongUse
from forebay.cli.mod_reprocess import ReprocessDlq
from forebay.core.errors import Full, Unavailable, Unusable
from forebay.engine.letter_file import CsvLetters, read_letters
from forebay.mods.kafka_consumer.calls import calls_of
from forebay.mods.kafka_consumer.dlq_file import DlqFile, add_rows
from forebay.mods.kafka_consumer.processing import processor_of
from forebay.mods.kafka_consumer.reprocess import Reprocessing, plan_of
from forebay.testing.clock import FakeClock
from forebay.testing.waiting import eventually
from unit.engine import letter_writer
from unit.engine.letter_writer import dead

WRITER = Path(letter_writer.__file__)
OLD_HEAD = (
    "timestamp,topic,partition,offset,key,value,error_type,error_message,stack_trace,"
    "processing_time_ms,retry_count\n"
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "kafka_dlq.csv"


@pytest.fixture
def permanent(tmp_path):
    return tmp_path / "permanent_failures.csv"


def write(path, *letters):
    file = CsvLetters(path)
    file.write(letters)
    file.close()


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def offsets(path):
    return [int(row["offset"]) for row in rows(path)]


def reprocess(path, permanent, function, clock=None, max_retries=3):
    file = DlqFile(path)
    with file.alone(), calls_of(processor_of(function)) as attempt:
        snapshot = file.read()
        plan = plan_of(snapshot, max_retries)
        run = Reprocessing(file, snapshot, permanent, clock or FakeClock())
        run.set_aside(plan.hopeless)
        run.try_all(plan.tried, attempt, lambda _: None)
    return run.tally


def refuse(value):
    raise TimeoutError("API timeout")


def test_what_succeeds_leaves_the_file_and_what_fails_stays_with_its_new_failure(path, permanent):
    write(path, dead(0, b"good"), dead(1, b"bad", b"\xff", [("h", b"v")]), dead(2, b"good"))
    (_, before, _) = rows(path)

    def function(value):
        if value != b"good":
            raise ValueError('no "schema"')

    tally = reprocess(path, permanent, function)
    assert (tally.reprocessed, tally.failures.count, tally.permanent) == (2, 1, 0)
    assert tally.failures.told == ['orders[0] offset 1: ValueError: no "schema"']
    (after,) = rows(path)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {
        *("timestamp", "error_type", "error_message", "stack_trace", "processing_time_ms"),
        "retry_count",
    }
    assert (after["error_type"], after["error_message"]) == ("ValueError", 'no "schema"')
    assert (after["retry_count"], after["timestamp"]) == ("1", "2023-11-14T22:13:20.000Z")
    assert after["stack_trace"].startswith("Traceback")
    assert 'no "schema"' in after["stack_trace"]
    assert float(after["processing_time_ms"]) >= 0
    assert not permanent.exists()


def test_what_failed_too_often_moves_to_the_other_file_which_only_grows(path, permanent):
    for number in (0, 1):
        write(path, dead(number, b'"\n'))
        for tries in (1, 2):
            reprocess(path, permanent, refuse, max_retries=2)
            assert [row["retry_count"] for row in rows(path)] == [str(tries)]
        assert reprocess(path, permanent, refuse, max_retries=2).permanent == 1
        assert offsets(path) == []
    assert offsets(permanent) == [0, 1]
    assert read_letters(permanent).unreadable == 0
    assert permanent.stat().st_mode & 0o077 == 0


def test_a_function_that_is_not_called_any_more_is_not_called(path, permanent):
    write(path, dead(0))
    called = []
    assert reprocess(path, permanent, called.append, max_retries=0).permanent == 1
    assert called == []


def test_killed_between_the_two_files_a_row_is_in_both_and_later_in_one(path, permanent):
    write(path, dead(0))
    snapshot = DlqFile(path).read()
    add_rows(permanent, snapshot.head, snapshot.rows)
    assert (offsets(path), offsets(permanent)) == ([0], [0])
    assert reprocess(path, permanent, refuse, max_retries=0).permanent == 1
    assert (offsets(path), offsets(permanent)) == ([], [0])


def test_the_torn_end_of_the_permanent_failures_is_taken_off(path, permanent):
    write(permanent, dead(7), dead(8))
    permanent.write_bytes(permanent.read_bytes()[:-20])
    write(path, dead(0))
    reprocess(path, permanent, refuse, max_retries=0)
    assert offsets(permanent) == [7, 0]


def test_a_permanent_file_of_something_else_is_refused_and_keeps_the_letters(path, permanent):
    permanent.write_text("name,price\n")
    write(path, dead(0))
    with pytest.raises(Unusable, match="No row was moved there"):
        reprocess(path, permanent, refuse, max_retries=0)
    assert (offsets(path), permanent.read_text()) == ([0], "name,price\n")


def test_rows_that_cannot_be_read_stay_word_for_word(path, permanent):
    write(path, dead(0), dead(1, b"\xff"), dead(2))
    broken = path.read_bytes().replace(b'""base64""', b'""rot13""') + b'2024,orders,0,9,"torn'
    path.write_bytes(broken)
    assert reprocess(path, permanent, lambda value: None).reprocessed == 2
    left = path.read_bytes()
    assert left.count(b"rot13") == 1
    assert left.endswith(b'2024,orders,0,9,"torn')
    write(path, dead(3))
    assert read_letters(path).unreadable == 1
    assert [letter.record.offset for letter in read_letters(path).letters] == [3]


def test_a_file_of_the_mod_from_before_the_encoding_column_keeps_its_columns(path, permanent):
    row = '2024-01-15T10:05:23.456,orders,0,1005,user125,"{""a"":1}",E,m,Trace,30123.4,{count}\n'
    path.write_text(
        OLD_HEAD + row.replace("{count}", "1") + row.replace("{count}", "3").replace("1005", "1006")
    )
    assert reprocess(path, permanent, refuse).permanent == 1
    assert [(row["offset"], row["retry_count"]) for row in rows(path)] == [("1005", "2")]
    assert path.read_text().startswith(OLD_HEAD)
    assert offsets(permanent) == [1006]


def test_a_message_that_failed_twice_over_a_crash_is_handled_once(path, permanent):
    write(path, dead(0, reason="first"), dead(1), dead(0, reason="again"), dead(0, b"other"))
    values = []

    def function(value):
        values.append(value)
        raise ValueError("no")

    reprocess(path, permanent, function)
    assert values == [b"{}", b"{}", b"other"]
    assert offsets(path) == [0, 1, 0]
    assert reprocess(path, permanent, lambda value: None).reprocessed == 3
    assert offsets(path) == []


def test_the_function_gets_bytes_null_and_the_record_if_it_wants_it(path, permanent):
    write(path, dead(0, None, b"\xff", [("h", None)]), dead(1, b"\xff\x00"))
    got = []
    reprocess(path, permanent, lambda value, record: got.append((value, record)))
    assert [value for value, _ in got] == [None, b"\xff\x00"]
    record = got[0][1]
    assert (record.key, record.headers, record.topic, record.offset) == (
        *(b"\xff", [("h", None)], "orders", 0),
    )


def test_async_functions_share_one_event_loop(path, permanent):
    import asyncio

    write(path, dead(0), dead(1))
    loops = []

    async def function(value):
        loops.append(asyncio.get_running_loop())
        raise SystemExit(3)

    assert reprocess(path, permanent, function).failures.count == 2
    assert len(set(loops)) == 1
    assert [row["error_type"] for row in rows(path)] == ["SystemExit"] * 2


def test_an_interrupt_stores_what_was_settled_before_it(path, permanent):
    write(path, *(dead(number) for number in range(5)))
    calls = []

    def function(value):
        calls.append(value)
        if len(calls) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reprocess(path, permanent, function)
    assert offsets(path) == [2, 3, 4]


def test_what_is_settled_is_stored_every_few_seconds(path, permanent):
    write(path, *(dead(number) for number in range(4)))
    clock, seen = FakeClock(), []

    def function(value):
        seen.append(offsets(path))
        clock.advance(6)

    reprocess(path, permanent, function, clock)
    assert seen == [[0, 1, 2, 3], [0, 1, 2, 3], [2, 3], [2, 3]]
    assert offsets(path) == []


def test_the_new_file_belongs_to_the_one_who_wrote_the_old_one(path, permanent):
    write(path, dead(0), dead(1))
    path.chmod(0o640)
    owner = 12_345 if os.geteuid() == 0 else os.geteuid()
    os.chown(path, owner, -1)
    reprocess(path, permanent, lambda value: None)
    assert (path.stat().st_mode & 0o777, path.stat().st_uid) == (0o640, owner)


def test_a_link_to_the_file_stays_a_link(path, permanent, tmp_path):
    write(path, dead(0))
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    reprocess(link, permanent, lambda value: None)
    assert link.is_symlink()
    assert offsets(path) == []


@contextmanager
def room_for(length):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (length, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_is_full_leaves_the_letters_and_no_draft(path, permanent):
    write(path, *(dead(number) for number in range(50)))
    before = path.read_bytes()

    def function(value, record):
        if record.offset % 2:
            raise ValueError("no")

    with room_for(2_000), pytest.raises(Full, match="as they were"):
        reprocess(path, permanent, function)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_rows_that_were_rotated_away_meanwhile_are_counted_and_nothing_is_invented(path, permanent):
    write(path, dead(0), dead(1))

    def function(value, record):
        if record.offset == 0:
            path.rename(path.with_suffix(".csv.1"))
            write(path, dead(5))
            return
        raise ValueError("no")

    assert reprocess(path, permanent, function).moved_away == 2
    assert offsets(path) == [5]
    assert offsets(path.with_suffix(".csv.1")) == [0, 1]


class RotatedMeanwhile(DlqFile):
    """While its draft is written the file is renamed, and a live writer begins a new one."""

    def _take_its_place(self, file, draft):
        self.path.rename(self.path.with_suffix(".csv.1"))
        write(self.path, dead(77))
        super()._take_its_place(file, draft)


def test_a_file_rotated_while_it_is_rewritten_is_not_put_over_the_new_one(path):
    write(path, dead(0), dead(1))
    file = RotatedMeanwhile(path)
    with pytest.raises(Unavailable, match="rotated meanwhile"):
        file.replace({file.read().rows[0]: [b""]})
    assert offsets(path) == [77]
    assert offsets(path.with_suffix(".csv.1")) == [0, 1]
    assert len(list(path.parent.iterdir())) == 2


def test_two_at_once_are_refused_and_leave_nothing_behind(path, permanent):
    write(path, dead(0))
    with DlqFile(path).alone(), pytest.raises(Unavailable, match="Another process is reprocessing"):
        reprocess(path, permanent, refuse)
    reprocess(path, permanent, lambda value: None)
    assert list(path.parent.iterdir()) == [path]


def test_what_is_no_dead_letter_file_is_left_alone_and_an_empty_one_holds_none(path, permanent):
    path.write_text("a,b\n1,2\n")
    with pytest.raises(Unusable, match="is no dead-letter file"):
        reprocess(path, permanent, refuse)
    assert path.read_text() == "a,b\n1,2\n"
    path.write_text("")
    assert reprocess(path, permanent, refuse).failures.count == 0
    assert path.read_text() == ""


def start_writer(path, first):
    writer = subprocess.Popen(
        [sys.executable, WRITER, path, str(first), "1500"],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout.readline() == "ready\n"
    return writer


def test_rewriting_under_two_writers_loses_and_doubles_nothing(path, permanent):
    """Half succeed at their second try; the others never do and move away at the third."""
    writers = [start_writer(path, first) for first in (0, 5_000)]
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    eventually(lambda: path.stat().st_size > 2_000, every_seconds=0)
    tries, succeeded, files = Counter(), Counter(), []
    clock = FakeClock()

    def function(value, record):
        clock.advance(0.5)  # so that it is rewritten often
        if any(writer.poll() is None for writer in writers):
            files.append(path.stat().st_ino)
        tries[record.offset] += 1
        if record.offset % 2 or tries[record.offset] == 1:
            raise ValueError("not yet")
        succeeded[record.offset] += 1

    while any(writer.poll() is None for writer in writers):
        reprocess(path, permanent, function, clock)
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0, 0]
    assert sum(one != other for one, other in pairwise(files)) > 1
    while reprocess(path, permanent, function).failures.count:
        pass
    every = [*range(1_500), *range(5_000, 6_500)]
    assert offsets(path) == []
    assert sorted(offsets(permanent)) == [number for number in every if number % 2]
    assert succeeded == Counter(number for number in every if not number % 2)
    assert tries == Counter({number: 3 if number % 2 else 2 for number in every})


KILLED = """
import os, sys
from pathlib import Path
from unit.mods.test_reprocess import reprocess
def function(value, record):
    with open(sys.argv[3], "a") as handled:
        handled.write(f"{record.offset}\\n")
    if record.offset % 7 == 6:
        os._exit(9)
while True:
    reprocess(Path(sys.argv[1]), Path(sys.argv[2]), function)
"""


def test_a_function_that_ends_the_process_loses_no_letter(path, permanent, tmp_path):
    write(path, *(dead(number) for number in range(10)))
    command = [sys.executable, "-c", KILLED, path, permanent, tmp_path / "handled"]
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run(command, env=environment, check=False, timeout=60)
    assert killed.returncode == 9
    assert (tmp_path / "handled").read_text().split() == ["0", "1", "2", "3", "4", "5", "6"]
    assert offsets(path) == [*range(10)]
    assert reprocess(path, permanent, lambda value: None).reprocessed == 10


SHOP = """
def process(value):
    if value == b"bad":
        raise ValueError("bad")
"""


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A module of the user's, in the folder where the command is given."""
    name = f"shop_{os.urandom(4).hex()}"
    (tmp_path / f"{name}.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    return f"{name}:process"


def test_the_command_tells_what_it_did_and_whether_a_person_must_look(path, shop, capsys):
    write(path, dead(0, b"good"), dead(1, b"bad"))
    assert ReprocessDlq(file=path, function=shop, dry_run=True).run() == 0
    assert "2 dead letters would be tried" in capsys.readouterr().out
    assert offsets(path) == [0, 1]
    assert ReprocessDlq(file=path, function=shop).run() == 1
    told = capsys.readouterr()
    assert "1 dead letters succeeded and are gone, 1 failed again and stay" in told.out
    assert "orders[0] offset 1: ValueError: bad" in told.err
    assert ReprocessDlq(file=path, function=shop, max_retries=1, as_json=True).run() == 1
    assert '"permanent":1' in capsys.readouterr().out.splitlines()[-1]
    assert ReprocessDlq(file=path, function=shop).run() == 0
    assert offsets(path.with_name("permanent_failures.csv")) == [1]


def test_the_command_refuses_what_cannot_work_before_it_touches_anything(path, shop, permanent):
    write(path, dead(0))
    wrong = [
        ReprocessDlq(file=path.with_name("none.csv"), function=shop),
        ReprocessDlq(file=path, function="nowhere:process"),
        ReprocessDlq(file=path, function=shop.replace("process", "missing")),
        ReprocessDlq(file=path, function=shop, permanent=path),
    ]
    for command in wrong:
        with pytest.raises(WrongUse):
            command.run()
    assert offsets(path) == [0]
