"""Children that end, die, hang and ask to be started again: what their supervisor does about it."""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable

import orjson
import pytest

from forebay.engine.counters import Counters
from forebay.engine.health import StageHealth
from forebay.engine.single_file import Named, Place
from forebay.engine.supervision import (
    ASKS_FOR_RESTART,
    ENDED_LATE,
    ENDED_WELL,
    MERCY_SECONDS,
    RESTART_SECONDS,
    STOPPED_BY_HANDLER,
    ChildPlan,
    Supervisor,
)
from forebay.testing import eventually

A = Place("shop-charge", "orders", 0)
WAITS = (
    "import signal, sys, time; signal.signal(15, lambda *_: sys.exit({code})); {say}time.sleep(60)"
)
IGNORES = "import signal, time; signal.signal(15, signal.SIG_IGN); {say}time.sleep(60)"
ENDS = "import sys; {say}sys.exit({code})"
DIES = "import os; {say}os.kill(os.getpid(), 9)"


def told(kind="record", *, waiting=0, idle=False, left_behind=0, due_ms=None, **counts) -> bytes:
    health = StageHealth(
        stage=kind,
        group="shop-charge",
        kind=kind,
        unresolved=waiting,
        bytes_held=0,
        running=0,
        stuck=0,
        oldest_seconds=0.0,
        next_due_ms=due_ms,
        is_idle=idle,
        is_stopping=False,
        reasons=(),
        partitions=(),
        counters=Counters(**counts).as_object(),
    )
    said: dict[str, object] = {"healths": [health.as_object()], "is_idle": idle, "is_whole": True}
    said["left_behind"] = left_behind
    return orjson.dumps(said) + b"\n"


def named(place: Place, offset: int) -> bytes:
    return orjson.dumps({"named": [*place, offset]}) + b"\n"


class Nursery:
    """Real processes, each of them one line of Python. The scripts are used in turn."""

    def __init__(self, *scripts: str, says: bytes = b"") -> None:
        self.scripts = deque(scripts)
        self.says = deque([says])
        self.spawned: list[subprocess.Popen[bytes]] = []
        self.suspected: list[list[Named]] = []
        self.while_spawning: Callable[[], object] = lambda: None

    def spawn(self, plan, suspicion, status: int) -> subprocess.Popen[bytes]:
        script = self.scripts[0] if len(self.scripts) == 1 else self.scripts.popleft()
        says = self.says[0] if len(self.says) == 1 else self.says.popleft()
        self.suspected.append(suspicion.killers)
        self.while_spawning()
        say = f"import os; os.write({status}, {says!r}); "
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", script.format(code=0, say=say)],
            stdin=subprocess.PIPE,
            pass_fds=(status,),
        )
        self.spawned.append(process)
        return process


@pytest.fixture
def supervise():
    """Gives supervisors; whatever happens, nobody is left behind."""
    made = []

    def make(nursery: Nursery, *plans: ChildPlan, **options) -> Supervisor:
        fields = {"drain_seconds": 5.0} | options
        supervisor = Supervisor(plans or [ChildPlan("records")], nursery.spawn, **fields)
        made.append(supervisor)
        supervisor.start()
        return supervisor

    yield make
    for supervisor in made:
        supervisor.close()


class Steps:
    """Steps a supervisor in time of its own: as fast as its children end."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor = supervisor
        self.now = time.monotonic()

    def until_over(self) -> None:
        eventually(lambda: self._step() or self.supervisor.is_over)

    def until_restarted(self, times: int) -> None:
        eventually(lambda: self._step() or self.supervisor.restarts >= times)
        self.now += RESTART_SECONDS[-1]
        self._step()

    def _step(self) -> None:
        self.supervisor.step(self.now)


def test_children_that_are_told_to_stop_end_well_and_nothing_is_started_again(supervise):
    nursery = Nursery(WAITS, says=told(handled=3))
    supervisor = supervise(nursery, ChildPlan("records"), ChildPlan("sinks"))
    eventually(lambda: len(supervisor.healths()) == 2)
    supervisor.stop()
    Steps(supervisor).until_over()
    assert (supervisor.worst, supervisor.restarts, len(nursery.spawned)) == (ENDED_WELL, 0, 2)
    assert supervisor.receipt(1.0).handled == 6


def test_one_child_that_has_done_its_work_ends_them_all(supervise):
    nursery = Nursery(ENDS, WAITS, WAITS, says=told())
    supervisor = supervise(nursery, ChildPlan("records"), ChildPlan("sinks"))
    eventually(supervisor.healths)
    Steps(supervisor).until_over()
    assert supervisor.restarts == 0
    assert len(nursery.spawned) == 2


def test_no_record_is_suspected_of_a_death_that_somebody_asked_for(supervise):
    nursery = Nursery(WAITS, says=told() + named(A, 7))
    supervisor = supervise(nursery, look=lambda: {A: 7})
    steps = Steps(supervisor)
    for deaths in (1, 2, 3):
        eventually(lambda: supervisor.children and supervisor.children[0].told.named)
        supervisor.kill(supervisor.children[0])
        steps.until_restarted(deaths)
    assert nursery.suspected == [[]] * 4


def test_a_child_that_dies_is_started_again_and_not_at_once(supervise):
    nursery = Nursery(DIES, WAITS, says=told())
    supervisor = supervise(nursery)
    steps = Steps(supervisor)
    eventually(lambda: steps._step() or supervisor.restarts == 1)
    supervisor.step(steps.now + RESTART_SECONDS[0] - 0.01)
    assert len(nursery.spawned) == 1
    supervisor.step(steps.now + RESTART_SECONDS[0])
    assert len(nursery.spawned) == 2


def test_a_child_that_goes_on_dying_is_started_less_and_less_often(supervise):
    told_pauses = []
    nursery = Nursery(DIES)
    supervisor = supervise(
        nursery, emit=lambda event, **fields: told_pauses.append(fields["restart_seconds"])
    )
    steps = Steps(supervisor)
    for times in range(1, 8):
        steps.until_restarted(times)
    assert told_pauses == [*RESTART_SECONDS, RESTART_SECONDS[-1]]


def test_a_child_that_makes_progress_between_its_deaths_is_started_soon(supervise):
    told_pauses, offsets = [], iter(range(100))
    supervisor = supervise(
        Nursery(DIES),
        look=lambda: {A: next(offsets)},
        emit=lambda event, **fields: told_pauses.append(fields["restart_seconds"]),
    )
    steps = Steps(supervisor)
    for times in range(1, 5):
        steps.until_restarted(times)
    assert told_pauses == [RESTART_SECONDS[0]] * 4


def test_a_child_that_asks_for_it_is_started_at_once_and_has_not_died(supervise):
    nursery = Nursery(ENDS.replace("{code}", str(ASKS_FOR_RESTART)), WAITS)
    looked = []
    supervisor = supervise(nursery, look=lambda: looked.append(1) or {})
    steps = Steps(supervisor)
    eventually(lambda: steps._step() or len(nursery.spawned) == 2)
    assert (supervisor.restarts, looked) == (1, [])


@pytest.mark.parametrize("code", [STOPPED_BY_HANDLER, 2])
def test_a_child_that_would_end_the_same_way_again_is_not_started_again(supervise, code):
    nursery = Nursery(ENDS.replace("{code}", str(code)))
    supervisor = supervise(nursery)
    Steps(supervisor).until_over()
    assert (supervisor.worst, supervisor.restarts, len(nursery.spawned)) == (ENDED_LATE, 0, 1)


def test_who_does_not_end_in_time_is_killed_and_the_exit_is_a_failure(supervise):
    nursery = Nursery(IGNORES, says=told())
    supervisor = supervise(nursery, drain_seconds=0.0)
    eventually(supervisor.healths)
    supervisor.stop()
    steps = Steps(supervisor)
    steps._step()
    assert not supervisor.is_over
    steps.now += MERCY_SECONDS
    steps.until_over()
    assert (supervisor.worst, nursery.spawned[0].returncode) == (ENDED_LATE, -signal.SIGKILL)


def test_the_second_signal_asks_nobody_any_more(supervise):
    nursery = Nursery(IGNORES, says=told())
    supervisor = supervise(nursery, drain_seconds=600)
    eventually(supervisor.healths)
    supervisor.stop()
    supervisor.stop()
    Steps(supervisor).until_over()
    assert (supervisor.worst, nursery.spawned[0].returncode) == (ENDED_LATE, -signal.SIGKILL)


def test_a_signal_while_a_child_is_being_started_reaches_that_child(supervise):
    """It was marked as done, never told, and killed in the middle of its work."""
    nursery = Nursery(DIES, WAITS, says=told())
    supervisor = supervise(nursery)
    steps = Steps(supervisor)
    eventually(lambda: steps._step() or supervisor.restarts == 1)
    nursery.while_spawning = supervisor.stop
    steps.now += RESTART_SECONDS[-1]
    steps._step()
    nursery.while_spawning = lambda: None
    eventually(lambda: supervisor.healths() or steps._step() or supervisor.is_over)
    steps.until_over()
    assert nursery.spawned[1].poll() is not None
    assert nursery.spawned[1].returncode != -signal.SIGKILL


def test_a_child_that_is_told_to_stop_before_it_has_begun_has_ended_well(supervise):
    nursery = Nursery("import time; time.sleep(60)")
    supervisor = supervise(nursery)
    supervisor.stop()
    Steps(supervisor).until_over()
    assert (nursery.spawned[0].returncode, supervisor.worst) == (-signal.SIGTERM, ENDED_WELL)


def test_a_child_that_waits_to_be_started_again_is_not_started_after_the_stop(supervise):
    nursery = Nursery(DIES)
    supervisor = supervise(nursery)
    steps = Steps(supervisor)
    eventually(lambda: steps._step() or supervisor.restarts == 1)
    supervisor.stop()
    steps.now += RESTART_SECONDS[-1]
    steps._step()
    assert (supervisor.is_over, len(nursery.spawned)) == (True, 1)


def test_what_a_child_said_counts_although_it_died(supervise):
    nursery = Nursery(DIES, WAITS, says=told(handled=5, retried=2))
    supervisor = supervise(nursery)
    steps = Steps(supervisor)
    steps.until_restarted(1)
    eventually(supervisor.healths)
    assert supervisor.receipt(1.0).handled == 10


def test_retries_that_a_dead_scheduler_had_read_are_not_counted_twice(supervise):
    nursery = Nursery(DIES, WAITS)
    nursery.says = deque(
        [told("scheduler", waiting=38, due_ms=1_000), told("scheduler", waiting=38, due_ms=9_000)]
    )
    supervisor = supervise(nursery)
    Steps(supervisor).until_restarted(1)
    eventually(supervisor.healths)
    receipt = supervisor.receipt(1.0)
    assert (receipt.waiting, receipt.next_due_ms) == (38, 9_000)


def test_a_line_that_is_none_costs_that_line_alone(supervise):
    nursery = Nursery(WAITS, says=b'{"half": \n' + b"7\n" + told(handled=4))
    supervisor = supervise(nursery)
    eventually(supervisor.healths)
    assert supervisor.receipt(1.0).handled == 4


def test_a_record_that_was_named_before_two_deaths_is_told_to_the_next_child(supervise):
    nursery = Nursery(DIES, DIES, DIES, DIES, WAITS)
    nursery.says = deque([b"", b"", named(A, 5), named(A, 5), told()])
    supervisor = supervise(nursery, look=lambda: {A: 5})
    steps = Steps(supervisor)
    for times in range(1, 5):
        steps.until_restarted(times)
    assert nursery.suspected == [[], [], [], [], [Named(A, 5)]]


def test_all_are_idle_when_every_one_of_them_says_so(supervise):
    nursery = Nursery(WAITS)
    nursery.says = deque([told(idle=True), told(idle=False)])
    supervisor = supervise(nursery, ChildPlan("records"), ChildPlan("sinks"))
    eventually(lambda: len(supervisor.healths()) == 2)
    assert not supervisor.is_idle
    silent = supervise(Nursery(WAITS))
    assert not silent.is_idle, "nothing was heard yet"
    other = supervise(Nursery(WAITS, says=told(idle=True)))
    eventually(lambda: other.is_idle)


def test_whatever_happens_nobody_is_left_behind(supervise):
    nursery = Nursery(IGNORES, says=told())
    supervisor = supervise(nursery, ChildPlan("records", 0), ChildPlan("records", 1))
    eventually(lambda: len(supervisor.healths()) == 2)
    assert set(supervisor.process_ids) == {"records", "records-1"}
    supervisor.close()
    for process in nursery.spawned:
        assert process.poll() is not None
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)
