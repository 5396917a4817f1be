"""Clients in processes of their own, so that they can be killed and frozen."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from forebay.testing.waiting import eventually

_SCRIPT = Path(__file__).with_name("member.py")


class Process:
    """`said` holds every line it printed, oldest first: {"assigned": …}, {"acked": …} and so on."""

    def __init__(self, *arguments: str) -> None:
        self.said: list[dict[str, Any]] = []
        self._process = subprocess.Popen(
            [sys.executable, str(_SCRIPT), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self.kill()
        self._listening.join()
        self._process.stdin.close()
        self._process.stdout.close()

    def all_said(self, what: str) -> list[Any]:
        return [item for line in list(self.said) for item in line.get(what, ())]

    def wait_for(self, what: str, count: int = 1) -> list[Any]:
        return eventually(lambda: self._heard(what, count), within_seconds=20)

    def _heard(self, what: str, count: int) -> list[Any] | None:
        heard = self.all_said(what)
        if len(heard) < count:
            assert self._process.poll() is None, f"it ended before it said {what}: {self.said}"
        return heard if len(heard) >= count else None

    def ask(self, **request: object) -> None:
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def finish(self) -> None:
        """Let it end in good order, if it still lives."""
        if self._process.poll() is None:
            self.ask(finish=True)
        self._process.wait(40)
        self._listening.join()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._listening.join()

    def freeze(self) -> None:
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def _listen(self) -> None:
        for line in self._process.stdout:
            self.said.append(json.loads(line))
