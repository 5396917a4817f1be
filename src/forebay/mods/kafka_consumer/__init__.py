"""Consumes Kafka topics with a Python function. For frameworks: METADATA, CONFIG_SCHEMA, run."""

from collections.abc import Mapping
from typing import Any

from forebay.mods.kafka_consumer.metadata import CONFIG_SCHEMA, METADATA
from forebay.mods.running import run_mod

__all__ = ["CONFIG_SCHEMA", "METADATA", "run"]


def run(params: Mapping[str, Any]) -> dict[str, object]:
    """As a framework calls a mod: it may have put `_mod_name` and `_mod_type` in."""
    name = params.get("_mod_name") or params.get("mod_name")
    return run_mod(str(METADATA["type"]), params, name and str(name))
