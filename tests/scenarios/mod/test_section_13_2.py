"""Section 13.2 of the mod's document, by name, on a real Kafka."""

import signal
import threading

from forebay.testing import eventually


def numbers(count):
    return [b"%d" % number for number in range(count)]


def ends_of(mod):
    return [mod.committed(partition) or 0 for partition in range(4)]


def refuse_odd(value):
    if int(value) % 2:
        raise ValueError(f"{value.decode()} is odd")


def test_13_2_1_happy_path(mod):
    mod.produce(numbers(100))
    run = mod.start()
    mod.wait_for(100)
    ended = run.stop()
    assert sorted(mod.processed.values, key=int) == numbers(100)
    assert sum(ends_of(mod)) == 100
    assert len(mod.rows) == 100
    assert (ended.exit_code, ended.metrics["committed"]) == (0, 100)


def test_13_2_2_processing_failures(mod):
    mod.produce(numbers(100))
    run = mod.start(refuse_odd)
    eventually(lambda: sum(ends_of(mod)) == 100, within_seconds=40)
    ended = run.stop()
    assert (ended.metrics["processed"], ended.metrics["failed"]) == (50, 50)
    assert len(mod.letters) == 50
    assert {letter.error_type for letter in mod.letters} == {"ValueError"}
    assert {int(letter.record.value) % 2 for letter in mod.letters} == {1}
    assert ended.exit_code == 10


def test_13_2_3_backpressure(mod):
    mod.produce(numbers(300))
    mod.processed.may_go_on.clear()
    run = mod.start(queue_size=10, worker_count=2, queue_put_timeout=1, log_level="DEBUG")
    run.wait_for("mod.backpressure")
    threading.Event().wait(2)  # a poll that only says it lives may bring one record more
    assert 12 <= sum(batch["batch_size"] for batch in run.said("mod.batch_polled")) <= 14
    mod.processed.may_go_on.set()
    mod.wait_for(300)
    run.stop()
    assert sum(ends_of(mod)) == 300


PROCESS_SLOWLY = """
def process(value):
    time.sleep(0.05)
    note(value.decode())
"""


def test_13_2_4_graceful_shutdown(mod, processes):
    processes.declare(PROCESS_SLOWLY)
    mod.produce(numbers(200))
    run = processes.start()
    processes.wait_for_notes(50)
    result = run.terminate()
    done = processes.notes.total()
    assert run.process.returncode == 0
    assert sum(ends_of(mod)) == done == result["metrics"]["processed"]
    assert max(processes.notes.values()) == 1
    (initiated,) = run.said("mod.shutdown_initiated")
    assert (initiated["reason"], initiated["signal"]) == ("signal", "SIGTERM")
    (complete,) = run.said("mod.shutdown_complete")
    assert complete["clean_shutdown"]
    told = [line["message"] for line in run.log]
    assert [message for message in told if message in SHUTDOWN] == list(SHUTDOWN)


SHUTDOWN = (
    *("Shutdown initiated", "Polling thread stopped", "Draining processing queue"),
    *("All workers stopped", "Final commit", "Shutdown complete"),
)


def test_13_2_5_timeout_shutdown(mod, processes):
    processes.declare("""
def process(value):
    if int(value) >= 4:
        note("hangs")
        time.sleep(60)
    note(value.decode())
""")
    mod.produce(numbers(100), partition=0)
    run = processes.start(shutdown_timeout_seconds=5, queue_size=100)
    eventually(lambda: processes.notes["hangs"] == 4, within_seconds=40)
    result = run.terminate()
    assert (run.process.returncode, result["exit_code"]) == (1, 40)
    assert result["status"] == "error"
    assert mod.committed(0) == 4
    (complete,) = run.said("mod.shutdown_complete")
    assert not complete["clean_shutdown"]
    assert 5_000 <= complete["total_duration_ms"] < 15_000


def test_13_2_6_dev_mode(mod):
    mod.produce(numbers(100))
    for count in (100, 200):
        run = mod.start(dev_mode=True)
        mod.wait_for(count)
        run.stop()
    assert ends_of(mod) == [0, 0, 0, 0]
    assert len(mod.processed.values) == 200
    assert set(mod.processed.values) == set(numbers(100))


def test_13_2_7_stop_at_offset(mod):
    """By ruling 20 it is exclusive: a stop at 50 processes 0 to 49."""
    mod.produce(numbers(100), partition=0)
    run = mod.start(stop_at_offset={(mod.topic, 0): 50})
    ended = run.end()
    assert sorted(mod.processed.values, key=int) == numbers(50)
    assert mod.committed(0) == 50
    assert ended.exit_code == 0
    (initiated,) = run.said("mod.shutdown_initiated")
    assert (initiated["reason"], initiated["signal"]) == ("stop_at_offset", None)


def test_a_second_signal_does_not_wait(mod, processes):
    processes.declare("""
def process(value):
    note("begun")
    time.sleep(60)
""")
    mod.produce([b"1"])
    run = processes.start(shutdown_timeout_seconds=60)
    processes.wait_for_notes(1)
    run.process.send_signal(signal.SIGINT)
    run.wait_for("mod.shutdown_initiated")
    run.process.send_signal(signal.SIGINT)
    result = run.end(20)
    assert (run.process.returncode, result["exit_code"]) == (130, 50)
