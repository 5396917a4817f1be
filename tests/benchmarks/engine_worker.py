"""One scenario in a process of its own: `engine_worker.py FAMILY SCENARIO ARGUMENTS`.

A scenario is a function of `engine_FAMILY`; what it returns is the last line, as JSON.
"""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

TIMEOUT_SECONDS = 180.0
READY = "ready"


class Worker:
    """The scenario's side is below: `say_ready`, and a result."""

    def __init__(self, family: str, scenario: str, **arguments: object) -> None:
        command = [sys.executable, __file__, family, scenario, json.dumps(arguments)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait_until_ready(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() == READY:
                return
        raise RuntimeError("the worker ended before it was ready")

    def result(self) -> dict[str, float]:
        told, _ = self._process.communicate(timeout=TIMEOUT_SECONDS)
        if self._process.returncode:
            raise RuntimeError(f"the worker ended with {self._process.returncode}")
        return json.loads(told.splitlines()[-1])


def measured(family: str, scenario: str, **arguments: object) -> dict[str, float]:
    with Worker(family, scenario, **arguments) as worker:
        return worker.result()


def say_ready() -> None:
    print(READY, flush=True)


def main() -> None:
    family, scenario, arguments = sys.argv[1:]
    sys.path.insert(0, str(Path(__file__).parents[1]))
    module: Any = import_module(f"benchmarks.engine_{family}")
    print(json.dumps(getattr(module, scenario)(**json.loads(arguments))), flush=True)


if __name__ == "__main__":
    main()
