import json
import tracemalloc
from collections import Counter
from datetime import UTC, datetime
from itertools import islice, pairwise

import pytest

from forebay.simulator.behaviours import ALWAYS, FLAKY, Behaviour, behaviour, dead_end
from forebay.simulator.hostile import HOSTILE_NAMES, refused_links
from forebay.simulator.scenarios import (
    SCENARIOS,
    FileHostAddress,
    UnknownScenario,
    script,
)
from forebay.simulator.truth import endings, expected

HOST = FileHostAddress("https", "127.0.0.1", 8443)
SIGNED_AT = datetime(2026, 1, 5, 10, 30, tzinfo=UTC)
RECORD_BYTES_MAX = 1_000_000


def played(name, seed=7, events=1000, **more):
    return list(script(name, seed, events, HOST, signed_at=SIGNED_AT, **more))


def data_of(event):
    data = json.loads(event.value)["data"]
    return json.loads(data) if isinstance(data, str) else data


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_same_seed_tells_the_same_story(name):
    assert played(name) == played(name)


@pytest.mark.parametrize("name", SCENARIOS)
def test_another_seed_tells_another_story(name):
    assert played(name, events=50) != played(name, seed=8, events=50)


def test_a_later_signature_changes_times_and_nothing_that_is_counted():
    later = script("storm", 7, 1000, HOST, signed_at=datetime(2027, 3, 1, tzinfo=UTC))
    assert expected(later) == expected(played("storm"))


def test_an_unknown_scenario_names_those_that_exist():
    with pytest.raises(UnknownScenario, match=r"no scenario 'stom'.*calm, storm"):
        script("stom", 1, 1, HOST)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_script_is_as_long_as_asked_and_its_sums_add_up(name):
    sums = expected(played(name))
    assert sums.records == 1000
    assert sums.records == sums.events + sums.repeats + sums.renewed
    assert sums.events == sums.with_attachments + sums.nothing_to_do + sums.malformed
    assert sums.attachments == sums.stored + sums.dead_lettered + sums.refused
    assert sums.stored > 0


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_attachment_is_promised_twice(name):
    promised = Counter((trace_id, url) for trace_id, url, _ in endings(played(name)))
    assert promised.most_common(1)[0][1] == 1


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_record_is_larger_than_a_broker_takes(name):
    for event in played(name, events=5000):
        assert len(event.value) + len(event.key) + 200 < RECORD_BYTES_MAX


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_truth_is_about_links_that_the_event_really_carries(name):
    for event in played(name):
        for attachment in event.truth.attachments:
            assert attachment.url in data_of(event)["attachments"]


def test_a_repeat_is_an_earlier_event_byte_for_byte():
    sent = set()
    repeats = 0
    for event in played("duplicates"):
        if event.truth.kind == "repeat":
            repeats += 1
            assert (event.truth.trace_id, event.key, event.value) in sent
        sent.add((event.truth.trace_id, event.key, event.value))
    assert repeats > 100


def test_a_renewed_event_brings_links_that_are_new_and_lead_to_a_known_file():
    links = {}
    renewed = 0
    for event in played("duplicates"):
        urls = {attachment.url for attachment in event.truth.attachments}
        known = links.setdefault(event.truth.trace_id, set())
        if event.truth.renewed:
            renewed += 1
            assert urls
            assert not urls & known
            assert {url.partition("?")[0] for url in urls} <= {u.partition("?")[0] for u in known}
        known |= urls
    assert renewed > 50


def test_a_doubled_link_is_one_attachment():
    doubled = [
        event
        for event in played("duplicates")
        if event.truth.kind == "attachments"
        and len(data_of(event)["attachments"]) > len(event.truth.attachments)
    ]
    assert doubled
    for event in doubled:
        urls = [attachment.url for attachment in event.truth.attachments]
        assert set(data_of(event)["attachments"]) == set(urls)
        assert len(urls) == len(set(urls))


def test_poison_holds_every_denied_notation_and_every_hostile_name():
    events = played("poison", events=2000)
    urls = {url for _, url, _ in endings(events)}
    assert {url for url, _ in refused_links(HOST)} <= urls
    names = {url.partition("?")[0].rpartition("/")[2] for url in urls}
    assert set(HOSTILE_NAMES) <= names


def test_poison_holds_events_that_no_parser_takes_and_events_without_an_id():
    malformed = [event for event in played("poison") if event.truth.kind == "malformed"]
    headers = Counter(dict(event.headers)["domain"] for event in malformed)
    assert headers[b"nowhere"] > 0
    assert any(not event.truth.trace_id for event in malformed)
    assert any(event.truth.trace_id for event in malformed)
    assert all(event.key for event in malformed)


def test_a_crowd_comes_once():
    sizes = sorted(len(event.truth.attachments) for event in played("poison", events=2000))
    assert sizes[-1] == 4000
    assert sizes[-2] <= 3


def test_expired_links_are_dead_letters_and_their_renewal_is_stored():
    words = Counter(
        (event.truth.renewed, attachment.ending.state)
        for event in played("expiry")
        for attachment in event.truth.attachments
    )
    assert words[False, "dead_lettered"] > 100
    assert words[True, "stored"] > 10
    assert words[True, "dead_lettered"] == 0


def test_http_is_refused_only_where_the_host_speaks_https():
    plain = FileHostAddress("http", "127.0.0.1", 8080)
    assert not [url for url, _ in refused_links(plain) if url.startswith(f"{plain}/a.pdf")]
    assert [url for url, _ in refused_links(HOST) if url.startswith("http:")]


def test_bursts_come_ten_times_as_fast():
    at = [event.at_seconds for event in played("storm", events_per_second=50.0)]
    gaps = {round(after - before, 4) for before, after in pairwise(at)}
    assert gaps == {0.02, 0.002}
    assert at == sorted(at)


def test_storm_meets_every_kind_of_event_and_of_failure_in_two_thousand_events():
    events = played("storm", events=2000)
    assert {event.truth.kind for event in events} == {
        "attachments",
        "nothing_to_do",
        "malformed",
        "repeat",
    }
    words = {ending.word for _, _, ending in endings(events)}
    assert words >= {
        *("expired", "denied", "not_found", "wrong_type", "too_large", "empty_file"),
        *("denied_address", "too_many_redirects", "truncated", "server_error", "userinfo"),
    }


@pytest.mark.parametrize("name", FLAKY)
def test_who_fails_a_few_times_is_stored_and_who_always_fails_is_not(name):
    assert dead_end(Behaviour(name, 3)) is None
    dead = dead_end(Behaviour(name, ALWAYS))
    assert dead is not None
    assert (dead.state, dead.category) == ("dead_lettered", "transient")


@pytest.mark.parametrize("text", ["ok", "busy.3", "error.always", "redirect-denied.2"])
def test_a_behaviour_survives_its_way_through_a_path(text):
    assert str(behaviour(text)) == text


def test_a_long_script_stays_small_in_memory():
    events = script("storm", 3, 100_000, HOST, signed_at=SIGNED_AT)
    for _ in islice(events, 1500):
        pass
    tracemalloc.start()
    for _ in islice(events, 3000):
        pass
    grown, _peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 3_000_000
