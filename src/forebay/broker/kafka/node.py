"""One process of a trial cluster."""

import base64
import os
import random
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from forebay.broker.kafka import jars, readiness
from forebay.core.errors import Unavailable, Unusable

# Below the usual ephemeral range (from 32768), so that no client's socket takes a port between
# our look and the broker's bind.
_PORTS = (15_000, 32_000)


class TrialNode:
    """Start it from the main thread: the kernel ends the broker with the thread it came from, so
    that nothing is left behind when its parent is killed.
    """

    def __init__(self, number: int, folder: Path, cluster_id: str) -> None:
        self.number = number
        self.client_port, self.internal_port, self.controller_port = free_ports(3)
        self.log_file = folder / f"node-{number}.log"
        self._data = folder / f"node-{number}"
        self._properties_file = folder / f"node-{number}.properties"
        self._cluster_id = cluster_id
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def configure(self, properties: Mapping[str, object]) -> None:
        lines = {**properties, "node.id": self.number, "log.dirs": self._data}
        self._properties_file.write_text(
            "".join(f"{name}={value}\n" for name, value in lines.items())
        )

    def start(self) -> None:
        self.spawn(jars.archive_flags())
        self.wait_until_it_serves()

    def spawn(self, flags: Sequence[str]) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise Unusable("Start Kafka nodes from the main thread: they end with their thread.")
        if not self._data.exists():
            self._format()
        command = [jars.java(), *jars.JVM_FLAGS, *flags, "-cp", jars.class_path(), "kafka.Kafka"]
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [*_ends_with_its_parent(), *command, str(self._properties_file)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until_it_serves(self, timeout_seconds: float = 60.0) -> None:
        deadline = time.monotonic() + timeout_seconds
        while not readiness.serves(self.internal_port):
            if not self.running:
                raise Unusable(f"Kafka node {self.number} ended at start. Its log ends: {self.log}")
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"Kafka node {self.number} did not serve within {timeout_seconds:g} s. Its "
                    f"log ends: {self.log}"
                )
            time.sleep(0.02)

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")[-4000:]

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self, timeout_seconds: float = 20.0) -> None:
        """Ends in good order; a node without a quorum would hang, and is killed."""
        if self._process is None or not self.running:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def _format(self) -> None:
        """Writes what Kafka's storage tool writes, without a second JVM."""
        self._data.mkdir(parents=True)
        (self._data / "bootstrap.checkpoint").write_bytes(jars.bootstrap_checkpoint())
        (self._data / "meta.properties").write_text(
            f"node.id={self.number}\ndirectory.id={new_id()}\nversion=1\n"
            f"cluster.id={self._cluster_id}\n"
        )


def new_id() -> str:
    """A Kafka id; one must not begin with a dash."""
    return "A" + base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")[1:]


def free_ports(count: int) -> list[int]:
    sockets = [_bound_socket() for _ in range(count)]
    ports = [int(bound.getsockname()[1]) for bound in sockets]
    for bound in sockets:
        bound.close()
    return ports


def _bound_socket() -> socket.socket:
    while True:
        bound = socket.socket()
        try:
            bound.bind(("127.0.0.1", random.randint(*_PORTS)))  # noqa: S311 - no secret
        except OSError:
            bound.close()
        else:
            return bound


def _ends_with_its_parent() -> list[str]:
    wrapper = shutil.which("setpriv")
    return [wrapper, "--pdeathsig", "KILL", "--"] if wrapper else []
