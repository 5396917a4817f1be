"""What is around the pipeline: the simulated file host, and a Kafka where one was asked for."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from forebay.bootstrap.trial import KafkaOnTrial, kafka_on_trial
from forebay.cli.demo.latest import Latest
from forebay.core.errors import Unavailable, Unusable
from forebay.simulator.control import FileHostSilent, RunningFileHost, file_host_process
from forebay.simulator.endings import FileHostAddress

AWAY_SECONDS = 2.0


class World:
    """Belongs to the main thread, but for the host's outages."""

    def __init__(self, host: RunningFileHost, kafka: KafkaOnTrial | None, latest: Latest) -> None:
        self._host = host
        self.kafka = kafka
        self._latest = latest
        self._killed_at: float | None = None
        self._started_at: float | None = None
        self.bounced = 0

    def begin_outage(self, seconds: float) -> None:
        """As the scenario has it."""
        with _answering():
            self._host.fail_for(seconds)
        self._latest.done(f"the scenario makes the file host fail for {seconds:.0f} s")

    def fail_host(self, seconds: float) -> None:
        with _answering():
            self._host.fail_for(seconds)
        self._latest.done(f"you made the file host fail for {seconds:.0f} s")

    def bounce(self, now: float) -> None:
        """Without warning; it is started again in `step`."""
        self.bounced += 1
        if self.kafka is None or self._killed_at is not None:
            return
        pid = self.kafka.process_id
        self.kafka.kill()
        self._killed_at = now
        self._latest.done(f"you killed the broker {pid}; it is started again in two seconds")

    def step(self, now: float, answered_at: float) -> None:
        """`answered_at`: when the broker last answered somebody."""
        if self.kafka is None or self._killed_at is None:
            return
        if self._started_at is None and now - self._killed_at >= AWAY_SECONDS:
            self.kafka.start_again()
            self._started_at = now
        if self._started_at is not None and answered_at > self._started_at:
            away = answered_at - self._killed_at
            told = f"the broker is back as process {self.kafka.process_id}"
            self._latest.done(f"{told} and answers, {away:.1f} s after you killed it")
            self._killed_at = self._started_at = None

    def faults(self) -> dict[str, int]:
        with _answering():
            return {**self._host.faults(), "broker_bounced": self.bounced}

    @property
    def links(self) -> FileHostAddress:
        """Where links lead: https, as the pipeline wants it."""
        return self._host.https

    @property
    def ca_file(self) -> Path:
        return self._host.ca_file.resolve()

    @property
    def process_ids(self) -> Mapping[str, int]:
        found = {"file-host": self._host.pid, "demo": os.getpid()}
        if self.kafka is not None and self.kafka.process_id is not None:
            found["kafka"] = self.kafka.process_id
        return found


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except (FileHostSilent, OSError) as silence:
        raise Unavailable(
            f"The simulated file host does not answer any more ({silence}), so the demo was "
            f"stopped. Look whether something ended it, then start another demo."
        ) from silence


@contextmanager
def open_world(folder: Path, latest: Latest, *, with_kafka: bool) -> Iterator[World]:
    if shutil.which("openssl") is None:
        raise Unusable(
            "The simulated file host makes itself a certificate with the openssl command, which is "
            "not on PATH. Nothing was started. Install openssl."
        )
    with ExitStack() as opened:
        kafka = opened.enter_context(kafka_on_trial()) if with_kafka else None
        try:
            host = opened.enter_context(file_host_process(folder))
        except FileHostSilent as silence:
            raise Unusable(str(silence)) from silence
        yield World(host, kafka, latest)
