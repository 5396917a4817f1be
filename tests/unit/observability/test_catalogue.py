import ast
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest

import forebay
from forebay.observability.catalogue import EVENTS, EventName, entry, is_logged
from forebay.observability.mod_events import MOD_EVENTS


def needed(name):
    return {field for _, field, _, _ in Formatter().parse(EVENTS[name].message) if field}


def test_a_name_without_an_entry_would_raise_when_it_happens():
    assert set(get_args(EventName)) == set(EVENTS)


@pytest.mark.parametrize("name", sorted(EVENTS))
def test_a_sentence_that_needs_an_undeclared_field_would_say_question_mark(name):
    assert needed(name) <= EVENTS[name].fields


@pytest.mark.parametrize("name", sorted(EVENTS.keys() - MOD_EVENTS.keys()))
def test_every_message_is_a_sentence_but_for_those_that_the_mods_document_words(name):
    message = EVENTS[name].message
    assert message[0] in "{ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    assert message.endswith((".", "}"))


def test_an_event_outside_the_catalogue_is_refused():
    with pytest.raises(ValueError, match=r"no event 'broker\.exploded'"):
        entry("broker.exploded")


def test_what_a_person_did_is_told_at_every_level():
    assert is_logged("audit.action", "critical")
    assert not is_logged("broker.connected", "warning")
    assert is_logged("broker.refused", "error")


def emitted():
    """Every call in the product that names an event, with the fields it gives."""
    for file in sorted(Path(forebay.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(
                    func=ast.Name(id=name) | ast.Attribute(attr=name),
                    args=[ast.Constant(value=str(event)), *_],
                ) if name in {"emit", "_emit"}:
                    fields = {field.arg for field in node.keywords if field.arg}
                    yield pytest.param(event, fields, id=f"{file.stem}-{event}-{node.lineno}")


@pytest.mark.parametrize(("event", "fields"), list(emitted()))
def test_the_product_gives_each_event_what_its_sentence_needs_and_nothing_undeclared(event, fields):
    assert needed(event) <= fields <= entry(event).fields
