"""Reads forebay.yaml: what it says by key, and all in it that nobody knows."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from forebay.settings.options import OPTIONS
from forebay.settings.unbuilt import UNUSED_KEYS

FILE_NAME = "forebay.yaml"

_OPTION_KEYS = frozenset(option.key for option in OPTIONS)
_KNOWN_KEYS = _OPTION_KEYS | UNUSED_KEYS
_QUOTED = re.compile(r"'.*'")


@dataclass(slots=True)
class Tree:
    """What one file says. Problems are sentences; `unused` is known and means nothing yet."""

    name: str = FILE_NAME
    values: dict[str, object] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_tree(named: Path | None) -> Tree:
    """The file that somebody named must be there; the one in this folder may be."""
    tree = Tree(str(named or FILE_NAME))
    path = named or Path(FILE_NAME)
    if named is None and not path.exists():
        return tree
    try:
        text = path.expanduser().read_text(encoding="utf-8")
    except UnicodeDecodeError:
        tree.problems.append(f"{tree.name} is not UTF-8 text; write it as YAML in UTF-8.")
    except OSError as problem:
        tree.problems.append(
            f"{tree.name} cannot be read ({problem.strerror}); write the path of a YAML file."
        )
    else:
        _take_in(tree, text)
    return tree


def _take_in(tree: Tree, text: str) -> None:
    import yaml  # noqa: PLC0415  most commands read no file and need not wait for it

    try:
        content = yaml.safe_load(text)
        doubled = list(_doubled(yaml.compose(text, yaml.SafeLoader), set()))
    except yaml.YAMLError as problem:
        tree.problems.append(_not_yaml(tree.name, problem))
    except (RecursionError, ValueError):
        tree.problems.append(f"{tree.name} is not YAML that can be read; write plain sections.")
    else:
        tree.problems += [
            f"{tree.name}, line {line}, has {key} a second time, so the first is lost; write it "
            f"once, with everything below it."
            for key, line in doubled
        ]
        _walk(tree, "", content)


def _not_yaml(name: str, problem: Any) -> str:
    """Without what YAML quotes: it may be a secret."""
    mark = getattr(problem, "problem_mark", None)
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    why = _QUOTED.sub("…", str(getattr(problem, "problem", "") or "odd characters"))
    return (
        f"{name} is not YAML{where} ({why}); write key: value, indented by spaces, and text with "
        f"special characters in quotes."
    )


def _doubled(node: Any, seen: set[int]) -> Iterator[tuple[str, int]]:
    """Keys that stand twice in one section, with the line of the second."""
    if node is None or id(node) in seen or isinstance(node.value, str):
        return
    seen.add(id(node))
    names: set[str] = set()
    for item in node.value:
        if not isinstance(item, tuple):
            yield from _doubled(item, seen)
            continue
        key, value = item
        if str(key.value) in names:
            yield str(key.value), key.start_mark.line + 1
        names.add(str(key.value))
        yield from _doubled(value, seen)


def _walk(tree: Tree, section: str, content: object) -> None:
    if content is None:
        return
    if not isinstance(content, Mapping):
        tree.problems.append(
            f"{_place(tree, section)} is no section; write below it {_listed(_children(section))}."
        )
        return
    for name, value in content.items():
        key = f"{section}.{name}" if section else str(name)
        if key in _OPTION_KEYS:
            tree.values[key] = value
        elif key in UNUSED_KEYS:
            tree.unused.append(f"{tree.name}:{key}")
        elif _children(key):
            _walk(tree, key, value)
        else:
            tree.problems.append(f"{_place(tree, key)} is not known; {_instead(section, key)}.")


def _place(tree: Tree, key: str) -> str:
    return f"{tree.name}:{key}" if key else tree.name


def _children(section: str) -> list[str]:
    """The names that may stand directly below it."""
    start = f"{section}." if section else ""
    names = (key.removeprefix(start) for key in _KNOWN_KEYS if key.startswith(start))
    return sorted({name.partition(".")[0] for name in names})


def _instead(section: str, key: str) -> str:
    """The nearest name beside it, else the nearest anywhere, else all that may stand there."""
    name = key.rpartition(".")[2]
    start = f"{section}." if section else ""
    children = _children(section)
    if beside := get_close_matches(name, children, 1):
        return f"write {start}{beside[0]}"
    elsewhere = {known.rpartition(".")[2]: known for known in sorted(_OPTION_KEYS)}
    if anywhere := get_close_matches(name, elsewhere, 1, 0.75):
        return f"write {elsewhere[anywhere[0]]}"
    if whole := get_close_matches(key, sorted(_OPTION_KEYS), 1, 0.75):
        return f"write {whole[0]}"
    return f"write one of {_listed(children)}"


def _listed(names: list[str]) -> str:
    return ", ".join(names)
