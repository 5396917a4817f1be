import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forebay.testing.waiting import eventually

QUIET = ("demo", "--exit-when-done", "--json")
CALM = (*QUIET, "--scenario", "calm", "--events", "60")
KEYS = {
    *("scenario", "broker", "domains", "events", "attachments", "nothing_to_do", "stored"),
    *("dead_lettered", "refused", "waiting", "lost", "doubled", "repeated", "faults", "seconds"),
    *("events_per_second", "available_p50_ms", "available_p95_ms", "recorded_p95_ms"),
    *("peak_rss_mb", "audit_ok"),
}


def children_of(pid):
    """By what they do: a part of the pipeline, or file_host."""
    found = {}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        words = Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0")
        is_worker = "--part" in words
        found[int(child)] = words[words.index("--part") + 1] if is_worker else "file_host"
    return found


def workers_of(pid):
    """None before all are there."""
    children = children_of(pid)
    return children if len(children) == 4 else None


def read_until(terminal, wanted, within_seconds=30):
    seen = b""
    deadline = time.monotonic() + within_seconds
    while wanted not in seen:
        ready, _, _ = select.select([terminal], [], [], deadline - time.monotonic())
        assert ready, seen[-2_000:].decode(errors="replace")
        seen += os.read(terminal, 65_536)


def is_alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def check_sums(found):
    assert found.keys() >= KEYS
    assert (found["lost"], found["doubled"], found["waiting"]) == (0, 0, 0)
    states = ("stored", "dead_lettered", "refused", "waiting", "lost")
    assert found["attachments"] == sum(found[state] for state in states)
    assert found["as_expected"], found["expected"]
    assert found["audit_ok"] is True


def test_a_calm_demo_ends_with_every_key_and_nothing_lost(forebay):
    answer = forebay(*CALM)
    assert answer.code == 0, answer.err
    found = answer.object
    check_sums(found)
    assert (found["scenario"], found["broker"], found["domains"]) == ("calm", "embedded", ["xact"])
    assert found["sent"] == 60 == found["events"] + found["repeated"]
    assert found["stored"] > 50
    assert 0 < found["available_p50_ms"] <= found["available_p95_ms"] < 30_000
    assert found["available_p50_ms"] < found["recorded_p95_ms"] < 60_000
    assert found["seconds"] > 0 < found["events_per_second"]
    assert found["peak_rss_mb"].keys() == {"records", "records-1", "sinks", "file-host", "demo"}
    assert all(10 < peak < 1_000 for peak in found["peak_rss_mb"].values())
    assert answer.err.startswith(
        " forebay demo · scenario calm · broker embedded (one machine, one disk, fsync on every "
        "acknowledgement) · data ./demo-data\n retry delays 1/2/4/8 s instead of 5/10/20/40 min"
    )
    audited = forebay("audit", "xact", "--config", "demo-data/forebay.yaml", "--json")
    assert (audited.code, audited.object["ok"]) == (0, True)


def test_a_storm_with_a_killed_worker_loses_and_doubles_nothing(forebay):
    with forebay.start(*QUIET, "--scenario", "storm", "--events", "80", "--rate", "0") as demo:
        stored = forebay.folder / "demo-data" / "files"
        eventually(lambda: any(path.is_file() for path in stored.rglob("*")), within_seconds=30)
        victims = [pid for pid, part in children_of(demo.pid).items() if part == "records"]
        os.kill(victims[0], signal.SIGKILL)
        out, err = demo.communicate(timeout=100)
    assert demo.returncode == 0, err
    found = json.loads(out.splitlines()[-1])
    check_sums(found)
    assert found["faults"]["worker_killed"] == 1
    assert found["faults"]["outage"] > 0
    assert f"worker {victims[0]} (records" in err
    assert "took over" in err


@pytest.mark.parametrize(("ending", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_demo_that_is_interrupted_leaves_no_process_behind(forebay, ending, code):
    with forebay.start("demo", "--events", "5000") as demo:
        children = eventually(lambda: workers_of(demo.pid), within_seconds=30)
        os.kill(demo.pid, ending)
        _, err = demo.communicate(timeout=30)
    assert demo.returncode == code, err
    eventually(lambda: not any(is_alive(child) for child in children), within_seconds=30)
    if ending == signal.SIGINT:
        assert "Traceback" not in err


def test_keys_kill_a_worker_on_the_screen_and_leave_it(forebay):
    ours, theirs = pty.openpty()
    environment = forebay.environment | {"COLUMNS": "160", "LINES": "40", "TERM": "xterm"}
    demo = subprocess.Popen(
        [sys.executable, "-m", "forebay", "demo", "--events", "5000", "--scenario", "calm"],
        cwd=forebay.folder,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        read_until(ours, b"stored 1")
        os.write(ours, b"k")
        read_until(ours, b"you killed worker")
        read_until(ours, b"took over")
        os.write(ours, b"q")
        read_until(ours, b"at your wish; nothing was audited")
        assert demo.wait(30) == 0
    finally:
        demo.kill()
        demo.wait()
        os.close(ours)


def test_on_somebody_elses_kafka_the_demo_takes_its_topics_away_again(forebay, kafka):
    url = f"kafka://{kafka.bootstrap}"
    answer = forebay(*QUIET, "--scenario", "calm", "--events", "40", "--broker", url)
    assert answer.code == 0, answer.err
    check_sums(answer.object)
    assert answer.object["broker"] == "kafka"
    left = forebay("topics", "list", "--broker", url, "--json").items
    assert [topic["topic"] for topic in left if topic["topic"].startswith("demo-")] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--scenario", "typhoon"), "Write one of calm, storm"),
        (("--domains", "claimx"), "write --domains xact"),
        (("--config", "mine.yaml"), "leave --config out"),
        (("--broker", "eventhub"), "Event Hubs takes none"),
    ],
)
def test_what_a_demo_cannot_do_is_said_before_anything_is_written(forebay, words, told):
    environment = {"EVENTHUB_CONNECTION_STRING": "Endpoint=sb://x"}
    answer = forebay("demo", *words, environment=environment)
    assert (answer.code, answer.out) == (2, "")
    assert told in answer.err
    assert not list(forebay.folder.iterdir())


def test_a_demo_says_what_it_misses_when_it_cannot_start(forebay):
    answer = forebay(*CALM, environment={"PATH": str(forebay.folder)})
    assert (answer.code, answer.out) == (1, "")
    assert "Install openssl." in answer.err


def test_a_demo_whose_folder_is_a_file_says_so(forebay):
    (forebay.folder / "demo-data").write_text("no folder")
    answer = forebay(*CALM)
    assert answer.code == 1
    assert "demo-data" in answer.err
