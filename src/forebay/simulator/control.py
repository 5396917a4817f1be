"""The file host seen from another process: start it, make it fail, ask what it did."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from forebay.simulator.endings import FileHostAddress

_ANSWER_SECONDS = 10.0
_END_SECONDS = 10.0


class FileHostSilent(Exception):
    pass


@dataclass(frozen=True, slots=True)
class RunningFileHost:
    https: FileHostAddress
    http: FileHostAddress
    ca_file: Path
    control_port: int
    pid: int

    def fail_for(self, seconds: float, how: str = "reset") -> None:
        self._ask("POST", "/_control", {"fail_for_seconds": seconds, "how": how})

    def faults(self) -> dict[str, int]:
        """How often each fault was hit, by name."""
        counted: dict[str, int] = self.standing()["faults"]
        return counted

    def standing(self) -> dict[str, Any]:
        return self._ask("GET", "/_control/faults", None)

    def _ask(self, method: str, path: str, order: dict[str, object] | None) -> dict[str, Any]:
        connection = HTTPConnection("127.0.0.1", self.control_port, timeout=_ANSWER_SECONDS)
        with closing(connection):
            connection.request(method, path, None if order is None else json.dumps(order))
            answer = connection.getresponse()
            said: dict[str, Any] = json.loads(answer.read())
        if answer.status != 200:
            raise FileHostSilent(f"The simulated file host refused an order: {said['error']}")
        return said


@contextmanager
def file_host_process(folder: Path, more: Sequence[str] = ()) -> Iterator[RunningFileHost]:
    """A file host in a process of its own, ended with the block or with this process."""
    command = [sys.executable, "-m", "forebay.simulator.file_host", "--watch-stdin"]
    process = subprocess.Popen(
        [*command, "--folder", str(folder), *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield _told(process)
        finally:
            _end(process)


def _told(process: subprocess.Popen[str]) -> RunningFileHost:
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        raise FileHostSilent(
            "The simulated file host ended before it told its address, so nothing is simulated. "
            "Its own message stands above."
        )
    told = json.loads(line)
    return RunningFileHost(
        https=FileHostAddress("https", told["host"], told["port"]),
        http=FileHostAddress("http", told["host"], told["http_port"]),
        ca_file=Path(told["ca_file"]),
        control_port=told["control_port"],
        pid=process.pid,
    )


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
