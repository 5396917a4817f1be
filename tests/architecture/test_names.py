"""What must not be written, wherever somebody might write it."""

import ast
import re

import pytest

from architecture.tree import PACKAGE, TESTS, modules, shown, texts

BANNED_NAMES = {
    *("utils", "util", "common", "helpers", "helper", "base", "misc", "shared"),
    *("manager", "managers", "processor", "processors"),
}
_CAMEL_WORD = re.compile(r"[A-Z][a-z0-9]*")
_NOQA = re.compile(r"#.*\bnoqa\b(?P<codes>:\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)?(?P<rest>.*)")

# Put together, so that this file does not break its own rule.
TYPE_IGNORE = "type: " + "ignore"
MOCK = "unittest" + ".mock"
MACHINE_PATHS = tuple(f"/{folder}/" for folder in ("work", "root", "home", "Users"))

# Hosts a text may name. Those that end in .example are nobody's; a registry's is in no text.
HOSTS = {
    *("127.0.0.1", "10.0.0.1", "localhost", "maven.apache.org", "www.w3.org"),
    "storage.azure.com",
    *("keepachangelog.com", "semver.org", "sqlite.org", "www.sqlite.org"),
}
_HOST = re.compile(r"https?://(?:[^\s/@\"'<>]*@)?(?P<host>[A-Za-z0-9.-]+)")


def _words(class_name: str) -> set[str]:
    return {word.lower() for word in _CAMEL_WORD.findall(class_name)}


def test_no_module_has_a_name_that_says_nothing():
    parts = {
        part: shown(path)
        for path in modules(PACKAGE)
        for part in (*path.relative_to(PACKAGE).parts[:-1], path.stem)
    }
    assert parts.keys() & BANNED_NAMES == set()


def test_no_class_has_a_name_that_says_nothing():
    named = [
        (node.name, shown(path))
        for path in modules(PACKAGE)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and _words(node.name) & BANNED_NAMES
    ]
    assert named == []


def test_no_type_error_is_silenced_in_the_product():
    assert [shown(path) for path in modules(PACKAGE) if TYPE_IGNORE in path.read_text()] == []


def test_nothing_is_mocked():
    assert [shown(path) for path in modules(PACKAGE, TESTS) if MOCK in path.read_text()] == []


def _lacks_a_reason(line: str) -> bool:
    found = _NOQA.search(line)
    return found is not None and not (found["codes"] and found["rest"].strip(" -:"))


def test_whoever_silences_the_linter_says_why():
    silenced = [
        f"{shown(path)}:{number}: {line.strip()}"
        for path in modules(PACKAGE)
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if _lacks_a_reason(line)
    ]
    assert silenced == []


@pytest.mark.parametrize(
    ("line", "lacks"),
    [
        ("x = 1  # noqa", True),
        ("x = 1  # noqa: S101", True),
        ("x = 1  # noqa: S101, E501", True),
        ("x = 1  # noqa: S101 - inserted above", False),
        ("# ruff: noqa: SLF001  its codes begin with an underscore", False),
        ("x = 1", False),
    ],
)
def test_a_silenced_line_with_a_reason_is_told_from_one_without(line, lacks):
    assert _lacks_a_reason(line) is lacks


def test_no_text_tells_of_the_machine_it_was_written_on():
    told = [
        f"{shown(path)}: {place}"
        for path in texts()
        for place in MACHINE_PATHS
        if place in path.read_text()
    ]
    assert told == []


def test_no_text_names_a_host_that_is_not_on_the_list():
    named = {
        found["host"].rstrip("."): shown(path)
        for path in texts()
        for found in _HOST.finditer(path.read_text())
    }
    strangers = {
        host: where
        for host, where in named.items()
        if host not in HOSTS and not host.endswith(".example")
    }
    assert strangers == {}
