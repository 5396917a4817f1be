"""`make test`: every test, short rounds of torture, and coverage that may not fall."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import apt_tools
from azurite import server as azurite
from forebay.broker.kafka import trial as kafka
from forebay.core.errors import Unusable

ROOT = Path(__file__).parents[1]
FLOOR = ROOT / "tests" / "coverage.floor"
TORTURE_SECONDS = 15
TORTURES = (("broker.py",), ("engine.py", "--broker", "embedded"))
RAISE_FROM_POINTS = 1.0

ALL_PASSED, SOME_FAILED = 0, 1  # pytest's; any other code is a run that did not happen
FAILED = 1
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped
        )


def main() -> int:
    must_be_whole = os.environ.get("CI") == "true"
    if must_be_whole:
        apt_tools.install()
    left_out = _left_out()
    if left_out and must_be_whole:
        for complaint in left_out:
            print(f"Under CI=true nothing may be left out, but {complaint}")
        return FAILED
    _announce(left_out)
    with tempfile.TemporaryDirectory(prefix="forebay-test-") as folder:
        torture = sum((_torture(*program) for program in TORTURES), Counts())
        tests = _pytest(Path(folder))
        is_covered = _compare_coverage(Path(folder), is_whole=not left_out)
    return _verdict(torture + tests, is_covered=is_covered, must_be_whole=must_be_whole)


def _left_out() -> list[str]:
    """Which tests cannot run here, and why. What npm can fetch is fetched first."""
    left_out = []
    if complaint := kafka.missing():
        left_out.append(f"the tests on a real Kafka cannot run: {complaint}")
    if complaint := azurite.missing() or _fetch_azurite():
        left_out.append(f"the tests on Azurite cannot run: {complaint}")
    if complaint := apt_tools.missing():
        left_out.append(f"the tests of the mod's rotation and log queries cannot run: {complaint}")
    return left_out


def _fetch_azurite() -> str | None:
    if azurite.is_fetched():
        return None
    print("fetching Azurite with npm into .cache (about 40 s, once)", flush=True)
    try:
        azurite.fetch()
    except Unusable as error:
        return str(error)
    return None


def _announce(left_out: list[str]) -> None:
    for complaint in left_out or ["nothing"]:
        print(f"left out: {complaint}")
    minutes = 5 if left_out else 8
    print(
        f"torturing the embedded broker and the engine for {TORTURE_SECONDS} s each, then running "
        f"all tests on two cores (about {minutes} min)",
        flush=True,
    )


def _torture(script: str, *options: str) -> Counts:
    """A short round of a campaign: one more test, judged by its last line."""
    seconds = str(TORTURE_SECONDS)
    done = subprocess.run(
        [sys.executable, f"tests/torture/{script}", "--duration", seconds, *options],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(done.stdout, end="", flush=True)
    is_well = done.returncode == 0 and _last_line(done.stdout).get("ok") is True
    return Counts(passed=1) if is_well else Counts(failed=1)


def _last_line(output: str) -> dict[str, object]:
    lines = output.strip().splitlines()
    try:
        found = json.loads(lines[-1]) if lines else {}
    except json.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _pytest(folder: Path) -> Counts:
    """Under coverage, and so are the processes that tests start."""
    report = folder / "report.xml"
    program = ["coverage", "run", "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal"]
    leaving_out = ["--ignore=tests/torture", "--ignore=tests/benchmarks"]
    done = subprocess.run(
        [sys.executable, "-m", *program, *leaving_out, f"--junitxml={report}", "tests"],
        cwd=ROOT,
        env=_environment(folder),
        check=False,
    )
    if done.returncode not in {ALL_PASSED, SOME_FAILED} or not report.exists():
        return Counts(failed=1)
    return _counted(report)


def _counted(report: Path) -> Counts:
    """Its own report: pytest's closing line is for people."""
    suite = ET.parse(report).getroot().find("testsuite")  # noqa: S314 - ours
    if suite is None:
        return Counts(failed=1)
    total, failures, errors, skipped = (
        int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")
    )
    failed = failures + errors
    if total == 0:
        return Counts(failed=1)
    return Counts(total - failed - skipped, failed, skipped)


def _compare_coverage(folder: Path, *, is_whole: bool) -> bool:
    """The floor only rises. A run that left tests out is measured, not judged."""
    total = _total_coverage(folder)
    floor = float(FLOOR.read_text())
    print(f"coverage {total:.2f} %, the floor is {floor:.2f} % (tests/coverage.floor)")
    if total >= floor + RAISE_FROM_POINTS:
        print(f"raise the floor: write {total - 0.5:.1f} into tests/coverage.floor")
    if total < floor and is_whole:
        print("coverage fell below the floor: test what is new, or delete what is not used")
        return False
    return True


def _total_coverage(folder: Path) -> float:
    for step in (["combine", "-q"], ["json", "-q", "-o", str(folder / "coverage.json")]):
        subprocess.run(
            [sys.executable, "-m", "coverage", *step],
            cwd=ROOT,
            env=_environment(folder),
            check=False,
        )
    summary = folder / "coverage.json"
    if not summary.exists():
        return 0.0
    return float(json.loads(summary.read_text())["totals"]["percent_covered"])


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "COVERAGE_FILE": str(folder / "coverage")}


def _verdict(counts: Counts, *, is_covered: bool, must_be_whole: bool) -> int:
    forbidden = counts.skipped if must_be_whole else 0
    if forbidden:
        print(f"Under CI=true nothing may be left out, but {forbidden} tests were skipped.")
    print(f"{counts.passed} passed, {counts.failed} failed")
    return FAILED if counts.failed or forbidden or not is_covered else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
