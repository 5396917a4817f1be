"""Durable event pipelines."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forebay.core.outcomes import Done, Reject, Retry, Skip
    from forebay.core.records import Record
    from forebay.engine.pipeline import Pipeline
    from forebay.engine.stages import RecordStage, SinkStage, Topic
    from forebay.mods.running import run_mod

__all__ = [
    "Done",
    "Pipeline",
    "Record",
    "RecordStage",
    "Reject",
    "Retry",
    "SinkStage",
    "Skip",
    "Topic",
    "run_mod",
]

_HOMES = {
    "Done": "forebay.core.outcomes",
    "Pipeline": "forebay.engine.pipeline",
    "Record": "forebay.core.records",
    "RecordStage": "forebay.engine.stages",
    "Reject": "forebay.core.outcomes",
    "Retry": "forebay.core.outcomes",
    "SinkStage": "forebay.engine.stages",
    "Skip": "forebay.core.outcomes",
    "Topic": "forebay.engine.stages",
    "run_mod": "forebay.mods.running",
}


def __getattr__(name: str) -> object:
    """Loaded on first use: a command that needs none of it does not pay for it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
