"""What docs/howto/run-xact.md shows is what a person types."""

import re
from pathlib import Path

import pytest
import yaml

from forebay.core.errors import Unusable
from forebay.domains.xact.settings import XactSettings
from forebay.domains.xact.strategy import XactStrategy
from forebay.settings import Flags, options, read_settings

HOWTO = (Path(__file__).parents[3] / "docs" / "howto" / "run-xact.md").read_text()
FILE = re.findall(r"^```yaml\n(.*?)^```", HOWTO, re.MULTILINE | re.DOTALL)[0]
CREDENTIALS = re.findall(r"`(KAFKA_SASL_\w+)`", HOWTO)


def test_the_file_is_taken_as_printed_with_the_variables_that_the_page_names(written):
    settings = read_settings(Flags(config=written(FILE)), dict.fromkeys(CREDENTIALS, "x"))
    assert (
        settings.broker.security_protocol
        == yaml.safe_load(FILE)["kafka"]["connection"]["security_protocol"]
    )
    assert settings.unused == ()
    places = (settings.storage.files_of("xact"), settings.xact.events_table)
    assert all(place.startswith("abfss://") for place in places)


@pytest.mark.parametrize("missing", CREDENTIALS)
def test_a_variable_that_the_page_names_is_needed(missing, written):
    others = dict.fromkeys(set(CREDENTIALS) - {missing}, "x")
    with pytest.raises(Unusable, match=missing):
        read_settings(Flags(config=written(FILE)), others)


def test_events_are_sent_as_lines_not_as_objects_of_key_and_value():
    (produce,) = re.findall(r"^forebay topics produce .*$", HOWTO, re.MULTILINE)
    assert "--format" not in produce


def test_redirects_are_told_as_they_are_followed():
    follows = XactStrategy(XactSettings(follow_redirects=True)).should_follow_redirect
    assert follows("https://a.example/1", "https://a.example/2")
    assert not follows("https://a.example/1", "https://b.example/1")
    assert "to another host it never may" in options.FOLLOW_REDIRECTS.meaning
