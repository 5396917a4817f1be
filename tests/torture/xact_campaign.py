"""Events arrive, and everything that can fail does; then all of it must be accounted for."""

import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forebay import bootstrap
from forebay.bootstrap.xact import open_xact
from forebay.core.errors import ForebayError, Full
from forebay.core.records import Record
from forebay.engine.topics import create_topics, plan_topics
from forebay.observability.catalogue import silent
from forebay.settings import Flags, read_settings
from forebay.simulator.scenarios import SimulatedEvent, script
from forebay.simulator.truth import Expected, expected
from torture.xact_world import World

CHANCE = 0.003
EVENTS_PER_SECOND = 60
DRAIN_SECONDS = 240.0
SETTLE_ROUNDS = 12
DISK_FULL_SECONDS = 3.0
SCENARIO = "storm"
STEPS = ("download_begun", "download_published", "upload_begun", "cached_file_dropped")
LOCAL_STEPS = ("upload_linked", "table_rows_written", "table_committed")


@dataclass(frozen=True)
class Plan:
    seed: int
    seconds: float

    @property
    def events(self) -> int:
        return max(60, int(self.seconds * EVENTS_PER_SECOND))


class Campaign:
    """`faults` counts what was hit, by name."""

    def __init__(self, world: World, plan: Plan) -> None:
        self.world, self.plan = world, plan
        self.faults: Counter[str] = Counter()
        self.acked = 0
        self._chances = random.Random(plan.seed)
        self._begun_at = datetime.now(UTC)
        self._process: subprocess.Popen[bytes] | None = None
        self._fed = threading.Event()
        self._trouble: BaseException | None = None

    def run(self) -> tuple[dict[str, Any], Expected]:
        """The audit at the end, and what the script says must come out."""
        self._prepare()
        feeding = threading.Thread(target=self._feed, name="feeder")
        feeding.start()
        self._process = self._start()
        try:
            self._hurt()
            feeding.join()
        finally:
            self._fed.set()
            self._end()
        if self._trouble is not None:
            raise self._trouble
        self._count_failpoints()
        self._drain()
        return self.world.audit(), expected(self.script())

    def script(self) -> Iterator[SimulatedEvent]:
        return script(
            SCENARIO,
            self.plan.seed,
            self.plan.events,
            self.world.host.https,
            signed_at=self._begun_at,
        )

    def _prepare(self) -> None:
        flags = Flags(self.world.broker_url, self.world.folder, development=True)
        self._settings = read_settings(flags, self.world.environment)
        broker = bootstrap.open_broker(self._settings.broker, silent)
        pipeline = open_xact(self._settings, silent)
        create_topics(broker.admin(), plan_topics(pipeline), foreign_too=True)
        broker.close()

    def _start(self) -> subprocess.Popen[bytes]:
        return self.world.start(self.plan.seed, CHANCE)

    def _feed(self) -> None:
        """At a steady rate; what is not acknowledged is sent again, as any source would."""
        try:
            self._send_all()
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            self._trouble = error
        finally:
            self._fed.set()

    def _send_all(self) -> None:
        broker = bootstrap.open_broker(self._settings.broker, silent)
        producer = broker.producer()
        begun = time.monotonic()
        events = self.plan.events
        for number, event in enumerate(self.script()):
            while time.monotonic() - begun < number * self.plan.seconds * 0.8 / events:
                time.sleep(0.01)
            record = Record(event.value, event.key, event.headers, self._topic)
            self._send_surely(producer, record)
        producer.close()
        broker.close()

    @property
    def _topic(self) -> str:
        return self._settings.xact.topics.events

    def _send_surely(self, producer: Any, record: Record) -> None:
        """One at a time: a source that is not sure that it was taken sends it again."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                producer.send(record)
            except (Full, ForebayError):
                time.sleep(0.1)
                continue
            while producer.outstanding:
                reports = producer.poll(0.5)
                if any(report.error is None for report in reports):
                    self.acked += 1
                    return
                if reports:
                    break
        raise TimeoutError("an event was not taken for two minutes")

    def _hurt(self) -> None:
        deeds: list[Callable[[], str | None]] = [
            *(self._kill_a_child, self._kill_all, self._freeze_a_child, self._fail_the_host),
            *(self._fill_the_cache, self._start_a_second, self.world.bounce, self.world.bounce),
        ]
        deadline = time.monotonic() + self.plan.seconds
        turn = 0
        while time.monotonic() < deadline or not self._fed.is_set():
            time.sleep(self._chances.uniform(0.7, 2.0))
            self._restart_if_gone()
            deed = deeds[turn % len(deeds)] if turn < len(deeds) else self._chances.choice(deeds)
            turn += 1
            if time.monotonic() < deadline and (name := deed()) is not None:
                self.faults[name] += 1

    def _children(self) -> list[int]:
        assert self._process is not None
        place = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        with suppress(FileNotFoundError):
            return [int(pid) for pid in place.read_text().split()]
        return []

    def _kill_a_child(self) -> str | None:
        pid = self._a_child()
        if pid is None:
            return None
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return "child_killed"

    def _freeze_a_child(self) -> str | None:
        pid = self._a_child()
        if pid is None:
            return None
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(2.0)
            os.kill(pid, signal.SIGCONT)
        return "child_frozen"

    def _a_child(self) -> int | None:
        """One of those that are there, or that come within a moment: some died just now."""
        for _ in range(50):
            if children := self._children():
                return self._chances.choice(children)
            time.sleep(0.1)
        return None

    def _kill_all(self) -> str:
        assert self._process is not None
        for pid in [self._process.pid, *self._children()]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        return "everything_killed"

    def _fail_the_host(self) -> str:
        self.world.host.fail_for(1.5, self._chances.choice(["reset", "busy"]))
        return "file_host_down"

    def _fill_the_cache(self) -> str:
        """With a file of somebody else's, for a while."""
        ballast = self.world.cache / "ballast"
        try:
            with ballast.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(self.world.cache).free)
            time.sleep(DISK_FULL_SECONDS)
        finally:
            ballast.unlink(missing_ok=True)
        return "cache_disk_full"

    def _start_a_second(self) -> str:
        """Two supervisors on one folder; the second is ended as a person would."""
        second = self._start()
        time.sleep(4.0)
        second.send_signal(signal.SIGTERM)
        try:
            second.wait(40)
        except subprocess.TimeoutExpired:
            os.killpg(second.pid, signal.SIGKILL)
            second.wait()
        return "second_supervisor"

    def _restart_if_gone(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            self._process = self._start()

    def _end(self) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _count_failpoints(self) -> None:
        self.faults.update(self.world.hits.read_text().split())
        self.faults.update(
            {f"host_{name}": hits for name, hits in self.world.host.faults().items()}
        )

    def _drain(self) -> None:
        """Until nothing waits for a retry any more."""
        deadline = time.monotonic() + DRAIN_SECONDS
        for _ in range(SETTLE_ROUNDS):
            code = self.world.run_until_idle(deadline - time.monotonic())
            told = self.world.audit()
            if code == 0 and not told["attachments"].get("waiting"):
                return
            time.sleep(2.0)
        raise TimeoutError(f"attachments still wait after {DRAIN_SECONDS:g} s: {told}")
