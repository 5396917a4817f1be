"""The import contracts hold, and each of them would notice being broken."""

import os
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path

import pytest

from architecture.tree import PACKAGE, ROOT

FLOORS = "The floor plan"
PURE_CORE = "core decides without clock, I/O or await"
ADAPTERS = "Only bootstrap names an adapter"
CLIENTS = "A client library is used in its adapter alone"
FAKES = "Only the command line may use testing"
OUTSIDE = "The simulator imports no product room and no broker client"
CYCLES = "No cycles between siblings"

_BROKEN = re.compile(r"^(.*) BROKEN\b", re.MULTILINE)


@dataclass(frozen=True)
class Offence:
    """Lines added to modules, made if need be, and the contracts that must notice."""

    lines: dict[str, str]
    breaks: set[str]


OFFENCES = {
    "a room called utils that is not on the plan": Offence(
        {"utils/__init__.py": "", "utils/strings.py": "import string"}, {FLOORS}
    ),
    "a room that uses one above it": Offence(
        {"observability/alarms.py": "import forebay.broker.port"}, {FLOORS, CYCLES}
    ),
    "a decision in core that looks at the clock": Offence(
        {"core/leases.py": "import time"}, {PURE_CORE}
    ),
    "a command that opens an adapter by itself": Offence(
        {"cli/shortcut.py": "import forebay.broker.embedded.broker"}, {ADAPTERS}
    ),
    "an import that only the type checker sees": Offence(
        {
            "cli/shortcut.py": "from typing import TYPE_CHECKING\n"
            "if TYPE_CHECKING:\n    import forebay.broker.kafka.broker"
        },
        {ADAPTERS},
    ),
    "a command that opens a table by itself": Offence(
        {"cli/shortcut.py": "import forebay.lakehouse.tables.delta.sink"}, {ADAPTERS}
    ),
    "a table's figures that a command works out itself": Offence(
        {"cli/shortcut.py": "import polars"}, {CLIENTS}
    ),
    "an adapter that leans on the other": Offence(
        {"broker/kafka/borrowed.py": "import forebay.broker.embedded.gate"}, {ADAPTERS}
    ),
    "a command that uses a client library": Offence({"cli/shortcut.py": "import apsw"}, {CLIENTS}),
    "an adapter that uses the other's client library": Offence(
        {"broker/embedded/borrowed.py": "import confluent_kafka"}, {CLIENTS}
    ),
    "a product that runs on fakes": Offence(
        {"__main__.py": "import forebay.testing.clock"}, {FAKES}
    ),
    "a simulator that shares code with what it tests": Offence(
        {"simulator/borrowed.py": "import forebay.core.errors"}, {OUTSIDE}
    ),
    "two modules that need each other": Offence(
        {
            "core/chicken.py": "import forebay.core.egg",
            "core/egg.py": "import forebay.core.chicken",
        },
        {CYCLES},
    ),
}


def test_the_tree_keeps_every_contract():
    answer = _check(ROOT)
    assert answer.returncode == 0, answer.stdout


@pytest.mark.parametrize("offence", OFFENCES.values(), ids=OFFENCES.keys())
def test_a_contract_notices(offence, tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "src" / "forebay", ignore=_built)
    shutil.copy(ROOT / ".importlinter", tmp_path)
    for module, lines in offence.lines.items():
        _add(tmp_path / "src" / "forebay" / module, lines)
    answer = _check(tmp_path)
    assert set(_BROKEN.findall(answer.stdout)) == offence.breaks, answer.stdout
    assert answer.returncode == 1


def test_every_contract_has_an_offence_that_breaks_it():
    plan = ConfigParser()
    plan.read(ROOT / ".importlinter")
    contracts = {plan[name]["name"] for name in plan.sections() if ":contract:" in name}
    assert contracts == set().union(*(offence.breaks for offence in OFFENCES.values()))


def _add(module: Path, lines: str) -> None:
    module.parent.mkdir(exist_ok=True)
    with module.open("a") as written:
        written.write(f"\n{lines}\n")


def _check(folder: Path) -> subprocess.CompletedProcess[str]:
    lint_imports = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [lint_imports, "--no-cache", "--config", folder / ".importlinter"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src"), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


_built = shutil.ignore_patterns("__pycache__")
