"""The folder of one demo, and the forebay.yaml that it works by."""

from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import orjson

from forebay.settings.options import OPTIONS

DATA_FOLDER = Path("demo-data")
FILE_NAME = "forebay.yaml"
RETRY_SECONDS = (1, 2, 4, 8)
BATCH_SECONDS = 1
CIRCUIT_SECONDS = 1
FILE_BYTES_MAX = 80 * 2**20

_HEAD = (
    "# Written by forebay demo. Its delays are short, so that minutes show what takes an hour.\n"
)
_KEPT = ("kafka.connection.", "logging.")


def claim(wanted: Path) -> Path:
    """The folder itself where it is new or empty, else a new one in it: nothing is overwritten."""
    wanted.mkdir(parents=True, exist_ok=True)
    if not any(wanted.iterdir()):
        with suppress(FileExistsError):  # another demo was quicker
            (wanted / FILE_NAME).touch(exist_ok=False)
            return wanted
    for number in count(2):
        folder = wanted / f"run-{number}"
        with suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise AssertionError


def write_settings(folder: Path, said: Mapping[str, object]) -> Path:
    """`said` by the keys of forebay.yaml."""
    tree: dict[str, Any] = {}
    for key, value in said.items():
        *sections, name = key.split(".")
        place = tree
        for section in sections:
            place = place.setdefault(section, {})
        place[name] = value
    file = folder / FILE_NAME
    file.write_text(_HEAD + _as_yaml(tree))
    return file


def environment_for(variables: Mapping[str, str]) -> dict[str, str]:
    """Without what would lead a demo elsewhere: real lakehouses, other topics, other delays."""
    leads_elsewhere = {
        name for option in OPTIONS if not option.key.startswith(_KEPT) for name in option.variables
    }
    return {name: value for name, value in variables.items() if name not in leads_elsewhere}


def _as_yaml(tree: Mapping[str, object], indent: str = "") -> str:
    """JSON's values are YAML's too."""
    lines = []
    for name, value in tree.items():
        if isinstance(value, Mapping):
            lines.append(f"{indent}{name}:\n{_as_yaml(value, indent + '  ')}")
        else:
            lines.append(f"{indent}{name}: {orjson.dumps(value).decode()}\n")
    return "".join(lines)
