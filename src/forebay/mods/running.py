"""`run_mod`: runs a mod by its name, with parameters, to a result that says all of it."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from threading import Event
from typing import Any

from forebay.mods.registry import listed_mods
from forebay.mods.result import WRONG_PARAMETERS, Ended, Result, RunName, result_of


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a command gives a mod beside its parameters."""

    stop: Event | None = None
    log_format: str | None = None


def run_mod(
    mod_type: str,
    params: Mapping[str, Any],
    mod_name: str | None = None,
    *,
    stop: Event | None = None,
) -> Result:
    """Blocking until the mod has ended. Wrong parameters are told in the result, with code 20.

    `stop` ends it from another thread. On the main thread SIGTERM and SIGINT end it, too.
    """
    return run_in(mod_type, params, mod_name, Surroundings(stop))


def run_in(
    mod_type: str, params: Mapping[str, Any], mod_name: str | None, surroundings: Surroundings
) -> Result:
    run_id = uuid.uuid4().hex
    if mod_type not in (known := listed_mods()):
        problem = f"There is no mod {mod_type!r}; there are: {', '.join(known)}."
        ended = Ended(WRONG_PARAMETERS, errors=[problem])
        return result_of(ended, RunName(run_id, mod_type, mod_name or mod_type))
    name = mod_name or str(params.get("mod_name", mod_type))
    given = dict(params) | {"mod_name": name}
    mod: Any = import_module(f"{known[mod_type].module}.running")
    ended = mod.run_to_its_end(given, surroundings.stop, surroundings.log_format)
    return result_of(ended, RunName(run_id, mod_type, name))
