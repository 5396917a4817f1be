"""Which mods there are."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

import orjson


@dataclass(frozen=True, slots=True)
class Listed:
    """`module` exports METADATA, CONFIG_SCHEMA and run(params), its `running` run_to_its_end."""

    module: str
    version: str
    category: str


def listed_mods() -> Mapping[str, Listed]:
    text = resources.files(__package__).joinpath("registry.json").read_bytes()
    return {name: Listed(**entry) for name, entry in orjson.loads(text).items()}
