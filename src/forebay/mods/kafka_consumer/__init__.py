"""Consumes Kafka topics with a Python function. For frameworks: METADATA, CONFIG_SCHEMA, run."""

import uuid
from collections.abc import Mapping
from typing import Any

from forebay.mods.kafka_consumer.metadata import CONFIG_SCHEMA, METADATA
from forebay.mods.result import RunName, result_of

__all__ = ["CONFIG_SCHEMA", "METADATA", "run"]


def run(params: Mapping[str, Any]) -> dict[str, object]:
    """As a framework calls a mod: it may have put `_mod_name` and `_mod_type` in."""
    from forebay.mods.kafka_consumer.running import run_to_its_end  # noqa: PLC0415  metadata alone needs no engine

    name = str(params.get("_mod_name") or params.get("mod_name") or METADATA["type"])
    ended = run_to_its_end({**params, "mod_name": name})
    return result_of(ended, RunName(uuid.uuid4().hex, str(METADATA["type"]), name))
