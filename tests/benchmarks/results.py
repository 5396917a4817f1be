"""Rows of a benchmark: three runs, their median, and whether it meets its target."""

import json
import statistics
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


def in_turn(*speeds: Callable[[], float]) -> list[float]:
    """The mean speed of each over three rounds, so that a busy moment hits all of them."""
    rounds = [[speed() for speed in speeds] for _ in range(3)]
    return [statistics.harmonic_mean(figures) for figures in zip(*rounds, strict=True)]


@dataclass(frozen=True)
class Target:
    """At least or at most this much; without either the row is only reported."""

    at_least: float | None = None
    at_most: float | None = None

    def is_met(self, value: float) -> bool:
        if self.at_least is not None and value < self.at_least:
            return False
        return self.at_most is None or value <= self.at_most

    def __str__(self) -> str:
        if self.at_least is not None:
            return f">= {self.at_least:g}"
        return "" if self.at_most is None else f"<= {self.at_most:g}"


@dataclass(frozen=True)
class Row:
    """`measure` gives the value and whatever figures stand behind it."""

    name: str
    unit: str
    target: Target
    measure: Callable[[], tuple[float, dict[str, float]]]
    includes: str
    runs: int = 3


@dataclass
class Bench:
    name: str
    results: list[dict[str, object]] = field(default_factory=list)

    def run(self, rows: Iterator[Row]) -> bool:
        for row in rows:
            result = _measured(row)
            self.results.append(result)
            print(_line(result), flush=True)
        print(json.dumps({"bench": self.name, "results": self.results}))
        return all(result["ok"] for result in self.results)


def _measured(row: Row) -> dict[str, object]:
    result: dict[str, object] = {
        "name": row.name,
        "value": None,
        "unit": row.unit,
        "target": str(row.target),
        "ok": False,
        "includes": row.includes,
    }
    values, details = [], []
    try:
        for _ in range(row.runs):
            value, detail = row.measure()
            values.append(value)
            details.append(detail)
    except Exception as error:  # noqa: BLE001 - a row that could not run says why
        traceback.print_exc()
        return result | {"runs": values, "why": f"{type(error).__name__}: {error}"}
    median = statistics.median(values)
    behind = details[values.index(statistics.median_low(values))]
    return result | {
        "value": round(median, 3),
        "ok": row.target.is_met(median),
        "runs": [round(value, 3) for value in values],
        "behind": {name: round(figure, 3) for name, figure in behind.items()},
    }


def _line(result: dict[str, object]) -> str:
    verdict = "ok  " if result["ok"] else "MISS"
    behind = ", ".join(f"{name} {figure:g}" for name, figure in result.get("behind", {}).items())
    value = result.get("why") or f"{result['value']} {result['unit']}"
    return f"{verdict} {result['name']:<32} {value} (target {result['target']}) · {behind}"
