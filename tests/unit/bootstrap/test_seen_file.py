"""Two runs on one folder must not take each other's events for repeats."""

from dataclasses import replace
from pathlib import Path

import pytest

from forebay.bootstrap.seen import seen_file
from forebay.settings import Flags, read_settings

EVENT_HUB = "Endpoint=sb://hub.example/;SharedAccessKeyName=a;SharedAccessKey=771177"


def file_of(broker: str = "embedded:here", **environment: str) -> Path:
    return seen_file(read_settings(Flags(broker=broker, folder=Path("data")), environment))


@pytest.mark.parametrize(
    "shadow",
    [
        {"KAFKA_CONSUMER_GROUP_PREFIX": "shadow"},
        {"KAFKA_TOPIC_PREFIX": "shadow."},
        {"KAFKA_EVENTS_TOPIC": "xact.events.other"},
    ],
)
def test_a_shadow_run_on_the_same_folder_remembers_in_a_file_of_its_own(shadow):
    assert file_of(**shadow) != file_of()
    assert file_of(**shadow).parent == file_of().parent == Path("data")


def test_another_broker_has_other_events_of_the_same_name():
    brokers = ("embedded:here", "embedded:there", "kafka://a.example:1", "kafka://b.example:1")
    assert len({file_of(broker) for broker in brokers}) == 4


def test_the_same_run_finds_its_file_again_in_whatever_order_its_servers_are_named():
    assert file_of() == file_of()
    one, other = "kafka://a.example:1,b.example:1", "kafka://b.example:1,a.example:1"
    assert file_of(one) == file_of(other)


def test_the_name_of_the_file_tells_the_group_and_no_secret():
    path = file_of("eventhub", EVENTHUB_CONNECTION_STRING=EVENT_HUB)
    assert path.name.startswith("seen-xact-")
    assert len(path.stem) == len("seen-xact-") + 8
    renewed = EVENT_HUB.replace("771177", "881188")
    assert file_of("eventhub", EVENTHUB_CONNECTION_STRING=renewed) == path


def test_a_long_prefix_leaves_room_for_the_names_of_a_database():
    settings = read_settings(Flags(), {})
    names = {
        seen_file(replace(settings, xact=replace(settings.xact, group_prefix="p" * 248 + end))).name
        for end in "ab"
    }
    assert len(names) == 2
    assert all(len(f"{name}-journal") <= 255 for name in names)
