"""The mod's runbooks name commands and options that exist, and each of the document has a page."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from forebay.cli.main import _app

HOWTO = Path(__file__).parents[3] / "docs" / "howto"
PAGES = sorted(HOWTO.glob("mod-*.md"))
RUNBOOKS = {f"14.{number}" for number in range(1, 8)}

_COMMAND = re.compile(r"(?:^\$ |&& |`)(forebay [^`\n]*)", re.MULTILINE)
_WHAT_FOLLOWS = re.compile(r"\s(?:2?>>?|\||&&).*")
_PARAMETER = re.compile(r"`([a-z]+_[a-z_]+)(?:: [^`]*)?`")


def commands(page):
    found = _COMMAND.findall(page.read_text())
    return [_WHAT_FOLLOWS.sub("", command).strip() for command in found]


def test_every_runbook_of_the_document_has_a_page():
    told = [re.findall(r"^Runbook (14\.\d) ", page.read_text(), re.MULTILINE) for page in PAGES]
    assert sorted(number for numbers in told for number in numbers) == sorted(RUNBOOKS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_runbook_is_one_that_forebay_takes(page):
    for written in commands(page):
        command, words = typer.main.get_command(_app()), shlex.split(written)[1:]
        while hasattr(command, "commands"):
            name, *words = words
            command = command.commands[name]
        if words:
            command.make_context(name, words)


def test_the_pages_have_commands_to_be_checked():
    assert sum(len(commands(page)) for page in PAGES) > 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_parameter_that_a_runbook_names_is_one_of_the_mod(page):
    from forebay.mods.kafka_consumer.parameters import PARAMETERS

    known = {parameter.name for parameter in PARAMETERS}
    fields = {"retry_count", "active_workers", "messages_remaining", "backup_dropped", "run_mod"}
    assert set(_PARAMETER.findall(page.read_text())) - known - fields == set()
