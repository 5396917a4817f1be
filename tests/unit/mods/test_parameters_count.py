"""Each parameter changes what the mod does; its name is in the name of its test."""

import fcntl
import re
import threading
from pathlib import Path

import pytest

from forebay.mods.kafka_consumer.parameters import PARAMETERS
from forebay.testing import eventually
from mod_place import TOPIC

MIB = 2**20


def numbers(count, start=0):
    return [b"%d" % number for number in range(start, start + count)]


def fail(value):
    raise ValueError(f"bad {value!r}")


class Locked:
    """Somebody else has the file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def release(self) -> None:
        self._file.close()


def test_every_parameter_has_a_test_here_that_names_it():
    tests = " ".join(re.findall(r"def test_(\w+)", Path(__file__).read_text()))
    untested = [p.name for p in PARAMETERS if p.name not in tests and p.name not in ELSEWHERE]
    assert untested == []


# Whose effect shows only on a real broker: in tests/scenarios/mod.
ELSEWHERE = {"bootstrap_servers"}


def test_topics_are_the_only_ones_read(mod):
    mod.create("payments")
    mod.produce([b"order"])
    mod.produce([b"payment"], "payments")
    mod.run_until(1, topics=["payments"])
    assert mod.processed.values == [b"payment"]


def test_group_id_names_the_group_that_shares_the_work(mod):
    mod.produce(numbers(3))
    mod.run_until(3, group_id="one")
    mod.run_until(6, group_id="another")
    mod.produce([b"new"])
    mod.run_until(7, group_id="one")
    assert mod.processed.values[-1] == b"new"
    assert mod.committed(group="one") == 4
    assert mod.committed(group="another") == 3


def test_processor_callable_is_what_is_called(mod):
    mod.produce([b"1"])
    seen = []
    with mod.running(seen.append) as run:
        eventually(lambda: seen == [b"1"])
    assert run.ended.metrics["processed"] == 1


@pytest.mark.parametrize(("given", "longest"), [(100, 0.1), (1000, 1.0), (60_000, 1.0)])
def test_poll_timeout_ms_is_how_long_an_idle_poll_waits(mod, given, longest):
    with mod.running(poll_timeout_ms=given):
        eventually(lambda: mod.broker.polls, within_seconds=5)
        eventually(lambda: max(timeout for timeout, _, _ in mod.broker.polls) == longest)


def test_max_poll_records_bounds_what_a_poll_brings(mod):
    mod.produce(numbers(30))
    mod.run_until(30, max_poll_records=7)
    assert max(count for _, _, count in mod.broker.polls) == 7


def test_session_timeout_ms_heartbeat_interval_ms_and_max_poll_interval_ms_reach_the_client(mod):
    with mod.running(
        session_timeout_ms=45_000, heartbeat_interval_ms=5_000, max_poll_interval_ms=600_000
    ) as run:
        run.wait_for("mod.all_started")
    (_, settings), *_ = mod.broker.asked
    assert settings.session_timeout_seconds == 45
    assert settings.heartbeat_seconds == 5
    assert settings.poll_interval_max_seconds == 600


def test_isolation_level_reaches_the_client(mod):
    for level in ("read_committed", "read_uncommitted"):
        with mod.running(isolation_level=level) as run:
            run.wait_for("mod.all_started")
    assert [settings.isolation_level for _, settings in mod.broker.asked] == [
        "read_committed",
        "read_uncommitted",
    ]


def test_auto_offset_reset_latest_says_how_many_messages_it_leaves_and_reads_the_new_ones(mod):
    mod.produce(numbers(5))
    with mod.running(auto_offset_reset="latest") as run:
        eventually(lambda: mod.committed() == 5)
        mod.produce([b"new"])
        mod.wait_for(1)
    assert mod.processed.values == [b"new"]
    assert run.said("mod.starts_at_end")[0]["messages"] == 5


def test_auto_offset_reset_earliest_reads_all_and_says_nothing(mod):
    mod.produce(numbers(5))
    run = mod.start(auto_offset_reset="earliest")
    mod.wait_for(5)
    run.stop()
    assert run.said("mod.starts_at_end") == []


def test_enable_auto_commit_is_refused_with_its_reason(mod):
    run = mod.start(enable_auto_commit=True)
    with pytest.raises(Exception, match="a crash would lose them"):
        run.end()


@pytest.mark.parametrize("workers", [1, 6])
def test_worker_count_is_how_many_run_at_once(mod, workers):
    mod.produce(numbers(20))
    mod.processed.may_go_on.clear()
    run = mod.start(worker_count=workers)
    eventually(lambda: mod.processed.running == workers)
    mod.processed.may_go_on.set()
    mod.wait_for(20)
    run.stop()
    assert mod.processed.running_max == workers


@pytest.mark.parametrize("size", [10, 25])
def test_queue_size_bounds_what_waits_for_a_worker(mod, size):
    mod.produce(numbers(100))
    mod.processed.may_go_on.clear()
    run = mod.start(worker_count=2, queue_size=size, queue_put_timeout=1, log_level="DEBUG")
    run.wait_for("mod.backpressure")
    polled = sum(batch["batch_size"] for batch in run.said("mod.batch_polled"))
    assert polled == size + 2
    assert run.said("mod.backpressure")[0]["queue_capacity"] == size
    mod.processed.may_go_on.set()
    mod.wait_for(100)
    run.stop()


def test_max_message_size_sends_what_is_larger_to_the_dead_letters(mod):
    mod.produce([b"x" * 2_000, b"x" * 2_001, b"", None])
    run = mod.start(max_message_size=2_000)
    mod.wait_for(3)
    run.stop()
    (letter,) = mod.letters
    assert len(letter.record.value) == 2_001
    assert letter.error_type == "MessageTooLargeError"
    assert letter.reason == "Message size 2001 exceeds max 2000"
    assert run.said("mod.message_too_large")[0]["size"] == 2_001
    assert mod.committed() == 4


def test_processing_timeout_gives_up_what_does_not_return_and_goes_on(mod):
    mod.produce([b"hangs", b"works"])
    release = threading.Event()
    done = []

    def process(value):
        if value == b"hangs":
            release.wait(30)
        done.append(value)

    run = mod.start(process, processing_timeout=1, worker_count=1)
    eventually(lambda: mod.letters and done == [b"works"], within_seconds=20)
    release.set()
    run.stop()
    (letter,) = mod.letters
    assert (letter.record.value, letter.error_type) == (b"hangs", "TimeoutError")
    assert mod.committed() == 2
    assert [said["error_type"] for said in run.said("mod.message_failed")] == ["TimeoutError"]


def test_without_processing_timeout_a_slow_message_is_waited_for(mod):
    mod.produce([b"slow"])
    mod.processed.may_go_on.clear()
    run = mod.start(commit_interval_seconds=1)
    eventually(lambda: mod.processed.running == 1)
    threading.Timer(2.5, mod.processed.may_go_on.set).start()
    mod.wait_for(1)
    run.stop()
    assert mod.letters == []


def test_queue_put_timeout_is_how_long_the_queue_is_full_before_it_is_said(mod):
    mod.produce(numbers(40))
    mod.processed.may_go_on.clear()
    params = {"worker_count": 1, "queue_size": 10}
    quick = mod.start(queue_put_timeout=1, **params)
    quick.wait_for("mod.backpressure")
    mod.processed.may_go_on.set()
    mod.wait_for(40)
    quick.stop()
    assert quick.said("mod.backpressure")[0]["full_seconds"] < 10


def test_a_long_queue_put_timeout_says_nothing_yet(mod):
    mod.produce(numbers(40))
    mod.processed.may_go_on.clear()
    patient = mod.start(queue_put_timeout=3_600, worker_count=1, queue_size=10, log_level="DEBUG")
    eventually(lambda: mod.processed.running == 1)
    mod.processed.may_go_on.wait(2)
    assert patient.said("mod.backpressure") == []
    mod.processed.may_go_on.set()
    mod.wait_for(40)
    patient.stop()


def test_commit_interval_seconds_is_how_soon_what_is_done_is_committed(mod):
    mod.produce(numbers(3))
    with mod.running(commit_interval_seconds=1):
        eventually(lambda: mod.committed() == 3, within_seconds=10)
    mod.produce(numbers(3))
    seldom = mod.start(commit_interval_seconds=300)
    mod.wait_for(6)
    threading.Event().wait(2)
    assert mod.committed() == 3
    seldom.stop()
    assert mod.committed() == 6


@pytest.mark.parametrize(("commits", "left_at"), [(True, 3), (False, 0)])
def test_commit_on_shutdown_decides_about_the_last_commit(mod, commits, left_at):
    mod.produce(numbers(3))
    run = mod.start(commit_on_shutdown=commits, commit_interval_seconds=300)
    mod.wait_for(3)
    ended = run.stop()
    assert mod.committed() == left_at
    assert ended.metrics["committed"] == left_at
    assert len(run.said("mod.final_commit")) == commits
    assert len(run.said("mod.final_commit_skipped")) == (not commits)


def test_dev_mode_commits_nothing_joins_no_group_and_reads_all_again(mod):
    mod.produce(numbers(3))
    for count in (3, 6):
        ended = mod.run_until(count, dev_mode=True)
    assert ended.metrics["committed"] == 0
    assert [group for group, _ in mod.broker.asked] == [None, None]
    assert mod.broker.admin().list_groups() == []
    assert len(mod.rows) == 6


def test_dev_mode_says_what_it_would_have_committed(mod):
    mod.produce([b"1", b"2"])
    run = mod.start(dev_mode=True, commit_interval_seconds=1)
    run.wait_for("mod.dev_mode_would_have_committed")
    run.stop()
    (said, *_) = run.said("mod.dev_mode_would_have_committed")
    assert said["partition_offsets"] == {f"{TOPIC}:0": 2}
    assert run.said("mod.dev_mode_enabled")
    assert run.said("mod.shutdown_complete")[0]["messages_committed"] == "skipped"


def test_backup_enabled_decides_whether_there_is_a_backup(mod):
    mod.produce(numbers(3))
    mod.run_until(3, backup_enabled=False)
    assert not mod.backup.exists()
    mod.run_until(6, group_id="another", backup_enabled=True)
    assert len(mod.rows) == 3


def test_backup_path_is_where_it_is_written(mod):
    mod.produce(numbers(3))
    elsewhere = mod.folder / "elsewhere.csv"
    mod.run_until(3, backup_path=str(elsewhere))
    assert elsewhere.exists()
    assert not mod.backup.exists()


@pytest.mark.parametrize(("seconds", "rows"), [(1, 3), (300, 0)])
def test_csv_flush_interval_seconds_is_how_long_a_few_rows_wait(mod, seconds, rows):
    mod.produce(numbers(3))
    run = mod.start(csv_flush_interval_seconds=seconds)
    mod.wait_for(3)
    threading.Event().wait(2.5)
    assert len(mod.rows) == rows
    run.stop()
    assert len(mod.rows) == 3


@pytest.mark.parametrize(("size", "rows"), [(2, 4), (1_000, 0)])
def test_csv_batch_size_is_how_many_rows_are_written_at_once(mod, size, rows):
    mod.produce(numbers(4))
    run = mod.start(csv_batch_size=size, csv_flush_interval_seconds=300)
    mod.wait_for(4)
    threading.Event().wait(1)
    assert len(mod.rows) == rows
    run.stop()
    assert len(mod.rows) == 4


def test_backup_on_full_drop_goes_on_without_rows_and_counts_them(mod):
    mod.produce([b"x" * MIB] * 40)
    locked = Locked(mod.backup)
    ended = mod.run_until(40, backup_on_full="drop")
    locked.release()
    assert ended.metrics["processed"] == 40
    assert ended.metrics["backup_dropped"] >= 8
    assert ended.exit_code == 10


def test_backup_on_full_block_waits_for_room_and_loses_no_row(mod):
    mod.produce([b"x" * MIB] * 40)
    locked = Locked(mod.backup)
    run = mod.start(backup_on_full="block")
    eventually(lambda: len(mod.processed.values) >= 30)
    threading.Event().wait(1)
    assert len(mod.processed.values) < 40
    locked.release()
    mod.wait_for(40)
    ended = run.stop()
    assert len(mod.processed.values) == 40
    assert (ended.metrics["backed_up"], ended.metrics["backup_dropped"]) == (40, 0)


def test_dlq_path_is_where_failures_are_written(mod):
    mod.produce([b"1"])
    elsewhere = mod.folder / "failures.csv"
    with mod.running(fail, dlq_path=str(elsewhere)):
        eventually(elsewhere.exists)
    assert not mod.letters_file.exists()


@pytest.mark.parametrize(("size", "written"), [(2, 2), (50, 0)])
def test_dlq_csv_batch_size_is_how_many_failures_are_written_at_once(mod, size, written):
    mod.produce([b"1", b"2"])
    run = mod.start(fail, dlq_csv_batch_size=size, csv_flush_interval_seconds=300)
    run.wait_for("mod.message_failed", 2)
    threading.Event().wait(1)
    assert len(mod.letters) == written
    run.stop()
    assert len(mod.letters) == 2


def test_dlq_on_error_hold_keeps_the_message_until_it_can_be_written(mod):
    mod.produce([b"1"])
    locked = Locked(mod.letters_file)
    run = mod.start(fail, dlq_on_error="hold", commit_interval_seconds=1)
    run.wait_for("mod.dlq_write_failed", 2)
    assert mod.committed() == 0
    locked.release()
    eventually(lambda: mod.committed() == 1)
    run.stop()
    assert len(mod.letters) == 1


def test_dlq_on_error_skip_goes_on_and_says_that_it_is_lost(mod):
    mod.produce([b"1"])
    mod.letters_file.write_text("name,price\n")
    run = mod.start(fail, dlq_on_error="skip", commit_interval_seconds=1)
    eventually(lambda: mod.committed() == 1)
    ended = run.stop()
    assert run.said("mod.dlq_write_failed")[0]["failures_skipped"] == 1
    assert mod.letters_file.read_text() == "name,price\n"
    assert [("only their places are in the log" in told) for told in ended.warnings] == [True]
    assert (ended.metrics["processed"], ended.metrics["failed"]) == (0, 1)


def test_dlq_on_error_skip_waits_for_a_file_that_is_only_locked(mod):
    mod.produce([b"1"])
    locked = Locked(mod.letters_file)
    run = mod.start(fail, dlq_on_error="skip", commit_interval_seconds=1)
    run.wait_for("mod.dlq_write_failed", 2)
    assert mod.committed() == 0
    locked.release()
    eventually(lambda: mod.committed() == 1)
    ended = run.stop()
    assert {told["failures_skipped"] for told in run.said("mod.dlq_write_failed")} == {0}
    assert len(mod.letters) == 1
    assert ended.errors == []


def test_shutdown_timeout_seconds_is_how_long_what_runs_is_waited_for(mod):
    mod.produce([b"1"])
    mod.processed.may_go_on.clear()
    run = mod.start(shutdown_timeout_seconds=5)
    eventually(lambda: mod.processed.running == 1)
    ended = run.stop()
    (complete,) = run.said("mod.shutdown_complete")
    assert 5_000 <= complete["total_duration_ms"] < 12_000
    assert not complete["clean_shutdown"]
    assert ended.exit_code == 40
    assert mod.committed() == 0


def test_a_longer_shutdown_timeout_seconds_lets_it_end(mod):
    mod.produce([b"1"])
    mod.processed.may_go_on.clear()
    run = mod.start(shutdown_timeout_seconds=60)
    eventually(lambda: mod.processed.running == 1)
    run.ask_to_stop()
    threading.Timer(6, mod.processed.may_go_on.set).start()
    assert run.end().exit_code == 0
    assert mod.committed() == 1


@pytest.mark.parametrize(("drains", "committed"), [(True, 10), (False, 1)])
def test_shutdown_drain_queue_decides_whether_the_queue_is_processed(mod, drains, committed):
    mod.produce(numbers(10))
    mod.processed.may_go_on.clear()
    run = mod.start(shutdown_drain_queue=drains, worker_count=1, log_level="DEBUG")
    eventually(lambda: mod.processed.running == 1)
    run.ask_to_stop()
    run.wait_for("mod.draining")
    mod.processed.may_go_on.set()
    assert run.end().exit_code == 0
    assert mod.committed() == committed


def test_stop_at_offset_is_exclusive(mod):
    mod.produce(numbers(10))
    run = mod.start(stop_at_offset={(TOPIC, 0): 4})
    assert run.end().exit_code == 0
    assert sorted(mod.processed.values) == numbers(4)
    assert mod.committed() == 4
    assert len(mod.rows) == 4
    (said,) = run.said("mod.shutdown_initiated")
    assert said["reason"] == "stop_at_offset"
    assert run.said("mod.stop_at_offset_reached")[0]["target_offset"] == 4


def test_stop_at_offset_that_is_passed_ends_at_once_with_a_sentence(mod):
    mod.produce(numbers(10))
    mod.run_until(10)
    run = mod.start(stop_at_offset={f"{TOPIC}:0": 4})
    run.end()
    assert len(mod.processed.values) == 10
    (said,) = run.said("mod.stop_at_offset_passed")
    assert (said["offset"], said["target_offset"]) == (10, 4)


@pytest.mark.parametrize(("mode", "committed"), [("any", 3), ("all", 8)])
def test_stop_at_offset_mode_any_ends_with_the_first_and_all_with_the_last(mod, mode, committed):
    mod.create("two", 2)
    for partition in (0, 1):
        mod.produce(numbers(3), "two", partition=partition)
    run = mod.start(
        topics=["two"],
        stop_at_offset={("two", 0): 2, ("two", 1): 8},
        stop_at_offset_mode=mode,
    )
    run.wait_for("mod.all_started")
    if mode == "all":
        mod.wait_for(5)
        assert run.is_alive
        mod.produce(numbers(7), "two", partition=1)
    assert run.end().exit_code == 0
    assert mod.committed(0, "two") == 2
    assert mod.committed(1, "two") == committed


def test_log_level_decides_what_is_said(mod):
    mod.produce(numbers(3))
    loud = mod.start(log_level="DEBUG")
    mod.wait_for(3)
    loud.stop()
    mod.produce(numbers(3))
    quiet = mod.start(log_level="WARNING")
    mod.wait_for(6)
    quiet.stop()
    assert loud.said("mod.batch_polled")
    assert len(loud.said("mod.message_processed")) == 3
    assert quiet.events == []


def test_mod_name_is_in_every_line(mod):
    run = mod.start(mod_name="orders-eu")
    run.wait_for("mod.all_started")
    run.stop()
    assert {fields["mod_name"] for _, fields in run.events} == {"orders-eu"}
