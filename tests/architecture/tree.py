"""The tree as the architecture tests read it."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "forebay"
TESTS = ROOT / "tests"
DOCS = ROOT / "docs"

_TEXTS = {".py", ".md", ".toml", ".xml", ".lock", ".yaml", ".yml", ".ndjson", ".json", ".txt", ""}
_PLACES = ("src", "tests", "docs", ".ci", "deploy")


def modules(*folders: Path) -> list[Path]:
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def texts() -> Iterator[Path]:
    """Every text that is ours; what a lock file names is not."""
    at_the_top = [path for path in ROOT.iterdir() if path.is_file()]
    below = [path for place in _PLACES for path in (ROOT / place).rglob("*") if path.is_file()]
    for path in sorted(at_the_top + below):
        is_built = "__pycache__" in path.parts or path.name.startswith(".coverage")
        if path.suffix in _TEXTS and not is_built and path.name not in {"uv.lock", "LICENSE"}:
            yield path


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
