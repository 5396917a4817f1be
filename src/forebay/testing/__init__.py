"""Shipped fakes, for users' tests and our own."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forebay.testing.clock import FakeClock
    from forebay.testing.memory import MemoryBroker
    from forebay.testing.pipelines import run
    from forebay.testing.probe import RecordingProbe
    from forebay.testing.waiting import eventually

__all__ = ["FakeClock", "MemoryBroker", "RecordingProbe", "eventually", "run"]

_HOMES = {
    "FakeClock": "forebay.testing.clock",
    "MemoryBroker": "forebay.testing.memory",
    "RecordingProbe": "forebay.testing.probe",
    "eventually": "forebay.testing.waiting",
    "run": "forebay.testing.pipelines",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
