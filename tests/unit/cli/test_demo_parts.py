"""The parts of the demo that decide, without a pipeline."""

import os
from dataclasses import replace

import pytest

from forebay.cli.demo.figures import Latencies, Peaks, percentile
from forebay.cli.demo.latest import Latest, death_sentence, failure_sentence, name_of, spaced
from forebay.cli.demo.observer import Tally
from forebay.cli.demo.outcome import Asked, Measured, Outcome, audit_lines
from forebay.cli.demo.pace import Pace
from forebay.cli.demo.picture import Moment, folded, lines, plain_line
from forebay.cli.demo.place import claim, environment_for, write_settings
from forebay.core.envelope import Envelope, Origin
from forebay.core.failures import Failure
from forebay.engine.counters import Counters
from forebay.engine.health import StageHealth
from forebay.operations.domain_audit import DomainReport, Problem, Problems
from forebay.settings import Flags, read_settings
from forebay.simulator.truth import Expected

BUSY = "127.0.0.1 answered (HTTP 503). It is tried again."


def envelope(**more):
    origin = Origin("in", 0, 0, 0)
    return Envelope("id", "group", origin, failure=Failure("transient", BUSY), **more)


def health(stage, kind="record", *, handled=0, delivered=0, unresolved=0, due_ms=None):
    return StageHealth(
        stage=stage,
        group=f"xact-{stage}",
        kind=kind,
        unresolved=unresolved,
        bytes_held=0,
        running=0,
        stuck=0,
        oldest_seconds=0.0,
        next_due_ms=due_ms,
        is_idle=False,
        is_stopping=False,
        reasons=(),
        partitions=(),
        counters=Counters(handled=handled, delivered=delivered).as_object(),
    )


def moment(**more):
    given = {"pace": Pace(), "tally": Tally(), "sent": 5, "events": 10, "healths": [], "now_ms": 0}
    return Moment(**(given | more))


def test_a_folder_with_an_older_demo_keeps_it(tmp_path):
    wanted = tmp_path / "demo-data"
    assert claim(wanted) == wanted
    assert claim(wanted) == wanted / "run-2"
    assert claim(wanted) == wanted / "run-3"


def test_a_folder_with_files_of_somebody_is_left_as_it_is(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    assert claim(tmp_path) == tmp_path / "run-2"
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["mine.txt", "run-2"]


def test_settings_written_for_the_workers_are_read_as_meant(tmp_path):
    said = {
        "kafka.xact.retry_delays": [1, 2],
        "xact.allowed_hosts": ["a.example"],
        "dir": "with: 7",
    }
    settings = read_settings(Flags(config=write_settings(tmp_path, said)), {})
    assert settings.xact.retry.delays_seconds == (1.0, 2.0)
    assert settings.xact.allowed_hosts == ("a.example",)
    assert str(settings.folder) == "with: 7"


def test_a_demo_is_not_led_to_a_real_lakehouse_by_the_environment():
    real = {"ONELAKE_BASE_PATH": "abfss://w@a/b", "DELTA_EVENTS_TABLE": "x", "RETRY_DELAYS": "9"}
    kept = {"PATH": "/bin", "KAFKA_SASL_MECHANISM": "PLAIN", "LOG_LEVEL": "info"}
    assert environment_for(real | kept) == kept


def test_percentiles_are_values_that_were_measured():
    assert [percentile([1, 2, 3, 4], share) for share in (50, 95, 100)] == [2, 4, 4]
    assert percentile([], 50) is None
    found = Latencies()
    for value in (30, 10.4, -3):
        found.add(value)
    assert (found.share(50), found.share(95)) == (10, 30)


def test_the_peak_of_a_process_that_died_is_kept():
    peaks = Peaks()
    peaks.look({"records": os.getpid()})
    before = peaks.as_object()["records"]
    peaks.look({"records": 2**22 + 1})
    assert peaks.as_object()["records"] == before > 5


def test_a_retry_is_told_as_a_sentence():
    told = failure_sentence("tr-1 estimateCreated", envelope(attempt=2), 2.0, 5)
    assert told == (
        "tr-1 estimateCreated: 127.0.0.1 answered (HTTP 503); trying again in 2 s (attempt 2 of 5)"
    )
    uncounted = failure_sentence("tr-1", envelope(uncounted_since_ms=1), 0.2, 5)
    assert uncounted.endswith("trying again in 200 ms (not counted as an attempt)")
    assert death_sentence("tr-1", envelope()).endswith("(HTTP 503); now a dead letter")
    assert [spaced(60), spaced(8)] == ["1 m", "8 s"]


def test_names_out_of_events_cannot_speak_to_the_terminal():
    told = name_of("tr\x1b[2J\n\u202e" + "x" * 100, None)
    assert told.isprintable()
    assert len(told) < 60
    assert name_of(None, "") == "an event without a name"


def test_failures_are_told_no_faster_than_read_and_what_was_done_always():
    latest = Latest()
    for number in range(5):
        latest.failed(f"127.0.0.1 failed {number}", now=100.0)
    latest.done("killed; waits")
    latest.done("killed; taken over", instead_of="killed; waits")
    assert latest.sentences() == ["the file host failed 0", "killed; taken over"]
    assert latest.take_untold() == ["killed; waits", "killed; taken over"]
    assert latest.take_untold() == []


def test_a_worker_that_began_anew_does_not_count_backwards():
    pace = Pace()
    pace.look([(1, [health("download", handled=100)])], 1.0)
    pace.look([(2, [health("download", handled=10)])], 1.0)
    assert pace.moved == 10
    assert pace.bars("download") == "▁▁▁▁▁▇▂"


@pytest.mark.parametrize("width", [30, 62, 95, 96, 200])
def test_no_line_is_wider_than_its_terminal_where_it_can_be_helped(width):
    drawn = lines(moment(), width, 30)
    assert max(len(line) for line in drawn) <= max(width, 45)
    assert "sent 5 of 10" in "\n".join(drawn)


def test_on_a_low_terminal_the_latest_gives_way():
    told = [f"sentence {number}" for number in range(5)]
    assert sum("sentence" in line for line in lines(moment(latest=told), 120, 6)) == 1
    assert sum("sentence" in line for line in lines(moment(latest=told), 120, 30)) == 5
    assert lines(moment(latest=told), 120, 6)[-1].endswith("sentence 4")


def test_what_is_to_be_read_is_folded_under_its_heading():
    assert folded([" audit    " + "word " * 8], 32) == [
        " audit    word word word word",
        "          word word word word",
    ]


def test_retries_are_counted_with_the_time_of_the_next():
    healths = [health("retry-scheduler", "scheduler", unresolved=3, due_ms=5_000)]
    assert "retrying 3 (next in 4 s)" in plain_line(moment(healths=healths, now_ms=1_000))
    assert "retrying 0 ·" in plain_line(moment())


def outcome(**more):
    events = {"with_attachments": 8, "nothing_to_do": 1, "dead_lettered": 1}
    report = DomainReport(
        source="xact.events.raw",
        events=events | {"waiting": 0, "lost": 0},
        attachments={"stored": 7, "refused": 1, "dead_lettered": 2, "waiting": 0, "lost": 0},
        repeated=0,
        doubled=0,
        problems=Problems(),
        facts={"files_checked": 7},
    )
    expected = Expected(
        records=10,
        events=10,
        with_attachments=8,
        nothing_to_do=1,
        malformed=1,
        attachments=10,
        stored=7,
        dead_lettered=2,
        refused=1,
    )
    measured = Measured(10, 0, 2.0, Tally(), {}, {})
    made = Outcome(Asked("calm", "embedded", 1), report, expected, measured)
    return replace(made, **more)


def test_the_sum_of_the_audit_is_a_sentence_that_adds_up():
    (told,) = audit_lines(outcome())
    assert told == (
        " audit    10 events, 10 attachments = 7 stored + 2 dead letters + 1 refused by policy · "
        "lost 0 · doubled 0 · 7 files checked"
    )
    assert outcome().is_good


def test_what_the_script_says_otherwise_is_told_and_makes_it_bad():
    found = outcome(expected=replace(outcome().expected, stored=8, dead_lettered=1))
    assert not found.is_good
    assert audit_lines(found)[1:] == [
        "          ✗ stored: 7, where the script says 8",
        "          ✗ dead-lettered: 2, where the script says 1",
    ]


def test_an_outage_that_somebody_made_by_hand_may_change_states_and_never_lose():
    shifted = replace(outcome().asked, is_shifted=True)
    found = outcome(asked=shifted, expected=replace(outcome().expected, stored=8))
    assert found.is_good
    assert "key f" in audit_lines(found)[-1]
    states = dict(found.report.attachments) | {"lost": 1}
    assert not replace(found, report=replace(found.report, attachments=states)).is_good


def test_a_finding_of_the_audit_makes_it_bad():
    problems = Problems()
    problems.add(Problem("missing_file", "The file of tr-1 is gone."))
    found = outcome(report=replace(outcome().report, problems=problems))
    assert not found.is_good
    assert "          ✗ The file of tr-1 is gone." in audit_lines(found)


def test_a_record_sent_twice_does_not_make_the_repeats_wrong():
    more = replace(outcome().report, repeated=1)
    assert not outcome(report=more).is_good
    measured = replace(outcome().measured, sent_again=1)
    assert outcome(report=more, measured=measured).is_good
