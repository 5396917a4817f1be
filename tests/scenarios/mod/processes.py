"""`forebay mod run` as whole processes, with a processor that keeps a notebook outside of them."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from forebay.testing.waiting import eventually
from mod_place import ModPlace
from scenarios.place import OURS

HEAD = """
import os, signal, sys, time
from pathlib import Path

HERE = Path(__file__).parent

def note(word):
    with HERE.joinpath("notes").open("ab", buffering=0) as notes:
        notes.write(f"{word}\\n".encode())
"""


class ModProcess:
    def __init__(self, process: subprocess.Popen[bytes], out: Path, err: Path) -> None:
        self.process = process
        self._out, self._err = out, err

    @property
    def log(self) -> list[dict[str, Any]]:
        lines = self._err.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    @property
    def text(self) -> str:
        return self._err.read_text()

    def said(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.log if line["event"] == event]

    def wait_for(self, event: str, within_seconds: float = 30) -> None:
        eventually(lambda: self.said(event), within_seconds=within_seconds)

    def end(self, within_seconds: float = 60) -> dict[str, Any]:
        self.process.wait(within_seconds)
        result: dict[str, Any] = json.loads(self._out.read_text().splitlines()[-1])
        return result

    def terminate(self, within_seconds: float = 60) -> dict[str, Any]:
        self.process.send_signal(signal.SIGTERM)
        return self.end(within_seconds)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class ModProcesses:
    def __init__(self, mod: ModPlace, bytecode: Path) -> None:
        self.mod = mod
        self.folder = mod.folder
        self._bytecode = bytecode
        self._started: list[ModProcess] = []

    def declare(self, source: str) -> None:
        (self.folder / "work.py").write_text(HEAD + source)

    def start(
        self, *, wrapper: tuple[str, ...] = (), options: tuple[str, ...] = (), **params: Any
    ) -> ModProcess:
        number = len(self._started)
        given = {
            "bootstrap_servers": self.mod.servers,
            "topics": [self.mod.topic],
            "group_id": self.mod.group,
            "auto_offset_reset": "earliest",
            "backup_path": str(self.mod.backup),
            "dlq_path": str(self.mod.letters_file),
            "worker_count": 4,
            "csv_flush_interval_seconds": 1,
            "commit_interval_seconds": 1,
        }
        config = self.folder / f"config-{number}.yaml"
        config.write_text(json.dumps(given | params))
        out, err = self.folder / f"out-{number}", self.folder / f"err-{number}"
        command = [sys.executable, "-m", "forebay", "mod", "run", "kafka_consumer", "--json"]
        command += ["--config", str(config), "--processor", "work:process", *options]
        with out.open("wb") as to_out, err.open("wb") as to_err:
            process = subprocess.Popen(
                [*wrapper, *command],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=to_out,
                stderr=to_err,
            )
        self._started.append(ModProcess(process, out, err))
        return self._started[-1]

    @property
    def notes(self) -> Counter[str]:
        notes = self.folder / "notes"
        return Counter(notes.read_text().split()) if notes.exists() else Counter()

    def wait_for_notes(self, count: int, within_seconds: float = 40) -> None:
        eventually(lambda: self.notes.total() >= count, within_seconds=within_seconds)

    @property
    def _environment(self) -> dict[str, str]:
        mine = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        return mine | {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(self._bytecode)}

    def close(self) -> None:
        for started in self._started:
            if started.process.poll() is None:
                started.kill()
