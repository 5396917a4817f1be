import os
import signal
from pathlib import Path

import pytest

from forebay.testing.waiting import eventually

DEMO = ("demo", "--exit-when-done", "--json", "--events", "3000", "--rate", "1500")


def test_a_killed_consumer_loses_nothing_and_is_taken_over(forebay):
    answer = forebay(*DEMO)
    assert answer.code == 0, answer.err
    found = answer.object
    assert (found["produced"], found["consumed"], found["lost"]) == (3000, 3000, 0)
    assert 0 < found["taken_over_ms"] < 10_000
    assert found["repeated"] >= 0
    assert found["seconds"] > 0
    assert answer.err.startswith(
        "forebay demo · broker embedded (one machine, one disk, fsync on every acknowledgement) · "
        "data ./demo-data\n"
    )
    assert not list((forebay.folder / "demo-data").glob("*ledgers"))


def children_of(pid):
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]


def is_alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize(("ending", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_demo_that_is_interrupted_leaves_no_process_behind(forebay, ending, code):
    with forebay.start("demo", "--events", "100000") as demo:
        children = eventually(lambda: len(children_of(demo.pid)) == 7 and children_of(demo.pid))
        os.kill(demo.pid, ending)
        _, err = demo.communicate(timeout=30)
    assert demo.returncode == code, err
    eventually(lambda: not any(is_alive(child) for child in children))
    if ending == signal.SIGINT:
        assert "Traceback" not in err
        assert forebay("topics", "list", "--dir", "demo-data", "--json").object["total"] == 0


def test_a_demo_says_what_it_does_when_it_cannot_start(forebay):
    (forebay.folder / "demo-data").write_text("no folder")
    answer = forebay(*DEMO)
    assert answer.code == 1
    assert "demo-data" in answer.err


def test_event_hubs_is_no_place_for_a_demo(forebay):
    answer = forebay(
        *DEMO, "--broker", "eventhub", environment={"EVENTHUB_CONNECTION_STRING": "Endpoint=sb://x"}
    )
    assert (answer.code, answer.out) == (2, "")
