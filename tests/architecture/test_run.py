"""`make test` fails for everything that it should fail for."""

import importlib.util
import os
import subprocess
import sys

import pytest

from architecture.tree import TESTS

_SPEC = importlib.util.spec_from_file_location("run", TESTS / "run.py")
assert _SPEC is not None
assert _SPEC.loader is not None
run = importlib.util.module_from_spec(_SPEC)
sys.modules["run"] = run
_SPEC.loader.exec_module(run)


def test_ci_refuses_to_leave_the_kafka_tests_out():
    answer = subprocess.run(
        [sys.executable, TESTS / "run.py"],
        env={**os.environ, "CI": "true", "JAVA_HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert "nothing may be left out" in answer.stdout
    assert "no Java found" in answer.stdout


def test_a_run_without_ci_says_what_it_leaves_out_and_why(capsys):
    run._announce(["the tests on a real Kafka cannot run: no Java found."])
    told = capsys.readouterr().out
    assert "left out: the tests on a real Kafka cannot run: no Java found." in told


def test_a_run_without_npm_leaves_the_tests_on_azurite_out_and_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "the tests on Azurite cannot run: no Node found." in " ".join(run._left_out())


@pytest.mark.parametrize(
    ("counts", "is_covered", "must_be_whole", "code"),
    [
        (run.Counts(passed=9), True, True, 0),
        (run.Counts(passed=9, skipped=1), True, False, 0),
        (run.Counts(passed=9, skipped=1), True, True, 1),
        (run.Counts(passed=8, failed=1), True, False, 1),
        (run.Counts(passed=9), False, False, 1),
    ],
)
def test_a_run_is_good_only_if_nothing_failed(counts, is_covered, must_be_whole, code, capsys):
    assert run._verdict(counts, is_covered=is_covered, must_be_whole=must_be_whole) == code
    closing = capsys.readouterr().out.splitlines()[-1]
    assert closing == f"{counts.passed} passed, {counts.failed} failed"


def test_errors_count_as_failures_and_no_tests_at_all_as_one(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite tests="9" failures="1" errors="2" skipped="3"/></testsuites>'
    )
    assert run._counted(report) == run.Counts(passed=3, failed=3, skipped=3)
    report.write_text('<testsuites><testsuite tests="0"/></testsuites>')
    assert run._counted(report).failed == 1


@pytest.mark.parametrize("output", ["", "torturing…", '{"ok": false}\n', '{"ok": true}\nTrace'])
def test_torture_that_does_not_say_ok_at_its_end_is_not_ok(output):
    assert run._last_line(output).get("ok") is not True


def test_coverage_below_the_floor_fails_and_well_above_asks_to_raise_it(
    tmp_path, monkeypatch, capsys
):
    floor = tmp_path / "coverage.floor"
    floor.write_text("90.0\n")
    monkeypatch.setattr(run, "FLOOR", floor)
    monkeypatch.setattr(run, "_total_coverage", lambda folder: 89.9)
    assert not run._compare_coverage(tmp_path, is_whole=True)
    assert run._compare_coverage(tmp_path, is_whole=False)
    monkeypatch.setattr(run, "_total_coverage", lambda folder: 91.0)
    assert run._compare_coverage(tmp_path, is_whole=True)
    assert "raise the floor" in capsys.readouterr().out
