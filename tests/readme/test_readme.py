"""The README's own words, run as they are printed, from the wheel, in a folder of their own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
HOW_TO = (ROOT / "docs" / "howto" / "declare-a-pipeline.md").read_text()
(PROGRAM,) = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
(TEST,) = re.findall(
    r"^```python\n(import forebay.testing.*?)^```", HOW_TO, re.MULTILINE | re.DOTALL
)
CONSOLE, MOD_CONSOLE = re.findall(r"^```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def commands_in(console):
    return [line.removeprefix("$ ") for line in console.splitlines() if line.startswith("$ ")]


COMMANDS = commands_in(CONSOLE)
RECEIPTS = [line for line in CONSOLE.splitlines() if line.startswith("{")]


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """An empty environment with nothing in it but the wheel and what that asks for."""
    place = tmp_path_factory.mktemp("installed")
    uv = [sys.executable, "-m", "uv", "-q"]
    subprocess.run([*uv, "build", "--wheel", "-o", str(place), str(ROOT)], check=True, cwd=place)
    (wheel,) = place.glob("*.whl")
    subprocess.run([*uv, "venv", "--python", sys.executable, str(place / "venv")], check=True)
    python = place / "venv" / "bin" / "python"
    subprocess.run([*uv, "pip", "install", "--python", str(python), str(wheel)], check=True)
    return python.parent


class Folder:
    def __init__(self, folder: Path, programs: Path, broker: str | None) -> None:
        self.folder = folder
        ours = ("FOREBAY_", "KAFKA_", "EVENTHUB_", "LOG_", "VIRTUAL_ENV", "PYTHON")
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        path = f"{programs}{os.pathsep}{inherited['PATH']}"
        self.environment = inherited | {"PATH": path, "HOME": str(folder)}
        if broker is not None:
            self.environment["FOREBAY_BROKER"] = broker

    def run(self, command):
        done = subprocess.run(  # noqa: S602 - in a shell, as the README's reader would
            command,
            shell=True,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert not re.search("^Traceback", done.stderr, re.MULTILINE)
        return done.stdout


@pytest.mark.parametrize("broker", ["embedded", "kafka"])
def test_the_example_runs_as_printed(broker, installed, tmp_path, request):
    url = None
    if broker == "kafka":
        url = f"kafka://{request.getfixturevalue('kafka').bootstrap}"
    folder = Folder(tmp_path, installed, url)
    (tmp_path / "orders.py").write_text(PROGRAM)
    said = {command: folder.run(command) for command in COMMANDS}
    assert sorted(said["cat receipts.ndjson"].splitlines()) == sorted(RECEIPTS)
    assert "the amount must be positive" in said["forebay dlq list"]
    assert "every one accounted for" in said["forebay audit orders:orders"]
    left = json.loads(folder.run("forebay dlq list --state open --json").splitlines()[-1])
    assert left["total"] == 0


@pytest.mark.parametrize("broker", ["embedded", "kafka"])
def test_the_example_of_the_mod_runs_as_printed(broker, installed, tmp_path, request):
    url = None
    if broker == "kafka":
        url = f"kafka://{request.getfixturevalue('kafka').bootstrap}"
    folder = Folder(tmp_path, installed, url)
    said = {command: folder.run(command) for command in commands_in(MOD_CONSOLE)}
    (printed,) = [said[command] for command in said if "mod run" in command]
    expected = [line for line in MOD_CONSOLE.splitlines() if line.startswith(("charged", "1 "))]
    for line, wanted in zip(printed.splitlines(), expected, strict=True):
        assert line.startswith(wanted.removesuffix("…"))


def test_the_test_of_the_example_passes(tmp_path):
    (tmp_path / "orders.py").write_text(PROGRAM)
    (tmp_path / "test_orders.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_orders.py"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
