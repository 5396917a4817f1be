"""The environment that peers, bare client and we share: the same Python, the same client."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PINS = Path(__file__).with_name("peers") / "requirements.txt"
VERSIONS = ("3.12", "3.13")
INSTALL_SECONDS = 240


class NotInstalled(Exception):
    """Why a peer cannot be measured here."""


class PeersEnvironment:
    def __init__(self, folder: Path) -> None:
        self.python = folder / "bin" / "python"
        self._uv = Path(sys.executable).with_name("uv")
        self._folder = folder

    def create(self) -> str:
        """Says which Python it has: pyrallel-consumer wants 3.12 at least."""
        chosen = _python()
        self._run("venv", "--quiet", "--clear", "--python", chosen, str(self._folder))
        return _version_of(chosen) or "?"

    def install(self, *requirements: str) -> None:
        """Only what the pins say, whatever else is wished for."""
        where = ("--quiet", "--python", str(self.python), "--constraint", str(PINS))
        self._run("pip", "install", *where, *requirements)

    def _run(self, *command: str) -> None:
        try:
            subprocess.run(
                [self._uv, *command],
                check=True,
                capture_output=True,
                text=True,
                timeout=INSTALL_SECONDS,
                env={**os.environ, "UV_PYTHON_DOWNLOADS": "never"},
            )
        except subprocess.CalledProcessError as problem:
            raise NotInstalled(" ".join(problem.stderr.split())[-400:]) from problem
        except subprocess.TimeoutExpired as problem:
            raise NotInstalled(f"it was not installed within {INSTALL_SECONDS} s") from problem


def _python() -> str:
    """A newer one if there is one; else ours, and who cannot run on it says so."""
    for candidate in _candidates():
        if _version_of(candidate) in VERSIONS:
            return candidate
    return sys.executable


def _candidates() -> Iterator[str]:
    yield from filter(None, [os.environ.get("PEERS_PYTHON"), sys.executable])
    for version in VERSIONS:
        yield from filter(None, [shutil.which(f"python{version}")])
        found = Path.home().glob(f".pyenv/versions/{version}*/bin/python")
        yield from (str(python) for python in sorted(found))


def _version_of(python: str) -> str | None:
    """A shim on PATH may name a Python that is not there."""
    asked = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        told = subprocess.run(asked, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return told.stdout.strip() if told.returncode == 0 else None
