"""The real command line in processes of its own, on an embedded broker in a folder of the test."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafka_fixtures import kafka  # noqa: F401  one Kafka for all of a process

ENVIRONMENT_OF_OURS = ("FOREBAY_", "KAFKA_", "EVENTHUB_", "LOG_")


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def object(self):
        return json.loads(self.out.splitlines()[-1])

    @property
    def items(self):
        return self.object["items"]


class CommandLine:
    def __init__(self, folder: Path, bytecode: Path) -> None:
        self.folder = folder
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(ENVIRONMENT_OF_OURS)
        } | {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(bytecode)}

    def start(self, *arguments, **options):
        return subprocess.Popen(
            [sys.executable, "-m", "forebay", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def __call__(self, *arguments, say="", environment=None):
        answer = subprocess.run(
            [sys.executable, "-m", "forebay", *arguments],
            cwd=self.folder,
            env=self.environment | (environment or {}),
            input=say,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "Traceback" not in answer.stderr, answer.stderr
        return Answer(answer.returncode, answer.stdout, answer.stderr)


@pytest.fixture(scope="session")
def bytecode(tmp_path_factory):
    """Compiled once: most of the time of these tests would otherwise be compiling."""
    return tmp_path_factory.mktemp("bytecode")


@pytest.fixture
def forebay(tmp_path, bytecode):
    return CommandLine(tmp_path, bytecode)
