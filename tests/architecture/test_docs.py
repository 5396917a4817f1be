"""Documents say what the code does, name commands that exist and link to what is there."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from architecture.tree import DOCS, PACKAGE, ROOT, modules, shown

CASES = {*range(1, 59)} - {47, 53, 54, 55}

_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
_MAKE = re.compile(r"(?:`|^|\$ )make ([a-z][a-z-]*)", re.MULTILINE)
_CASE = re.compile(r"\bc(\d\d)\b")
_COUNTED = re.compile(r"`(?P<path>[a-z_/]+\.py)` \((?P<lines>\d+)\)")
_VARIABLES_READ = (
    re.compile(r"environ\.get\(\s*\"([A-Z_]+)\""),
    re.compile(r"\b_(?:get|chosen)\(\s*\"([A-Z_]+)\""),
    re.compile(r"\"((?:FOREBAY|KAFKA|EVENTHUB|LOG)_[A-Z_]+)\""),
)


def _documents() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = _generator()


@pytest.mark.parametrize("page", generate.pages().items(), ids=lambda page: page[0].name)
def test_a_generated_page_says_what_the_code_says(page):
    path, text = page
    assert path.read_text() == text, "run `make docs` and look at what changed"


def test_every_contract_case_has_exactly_one_test():
    assert generate.contract_cases().keys() == CASES


def test_every_contract_case_runs_on_both_durable_brokers():
    one_sided = {
        number: ids
        for number, (_, _, ids) in generate.contract_cases().items()
        if not {f"c{number:02d}-embedded", f"c{number:02d}-kafka"} <= set(ids)
    }
    assert one_sided == {}


def test_every_variable_that_is_read_is_documented():
    read = {
        name
        for path in modules(PACKAGE)
        for pattern in _VARIABLES_READ
        for name in pattern.findall(path.read_text())
    }
    assert read - generate.variables() == set()


def test_a_variable_of_no_option_is_documented_only_where_somebody_reads_it():
    texts = "".join(path.read_text() for path in modules(PACKAGE))
    assert {name for name in generate.variables() if f'"{name}"' not in texts} == set()


def test_the_story_of_a_record_counts_its_lines_rightly():
    told = {
        found["path"]: int(found["lines"])
        for found in _COUNTED.finditer((ROOT / "ARCHITECTURE.md").read_text())
    }
    there = {path: len((PACKAGE / path).read_text().splitlines()) for path in told}
    assert len(told) >= 10
    assert told == there


@pytest.mark.parametrize("path", _documents(), ids=shown)
def test_a_document_names_only_what_exists(path):
    text = path.read_text()
    targets = set(_TARGET.findall((ROOT / "Makefile").read_text()))
    assert set(_MAKE.findall(text)) - targets == set()
    assert {int(number) for number in _CASE.findall(text)} <= CASES


@pytest.mark.parametrize("path", _documents(), ids=shown)
def test_every_relative_link_leads_somewhere(path):
    text = _FENCE.sub("", path.read_text())
    targets = {found["target"].partition("#")[0] for found in _LINK.finditer(text)}
    relative = {target for target in targets if target and "://" not in target}
    assert {target for target in relative if not (path.parent / target).exists()} == set()


def test_the_readme_fits_on_a_few_screens():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
