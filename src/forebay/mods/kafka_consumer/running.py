"""The mod's edge: parameters in, an ending out, whatever happens between."""

import sys
from collections.abc import Mapping
from threading import Event
from typing import Any

from forebay import bootstrap
from forebay.core.errors import ForebayError, InvalidRequest
from forebay.mods.kafka_consumer.consumer_run import run_consumer
from forebay.mods.kafka_consumer.outcome import NOTHING_DONE
from forebay.mods.kafka_consumer.stopping import Wish
from forebay.mods.kafka_consumer.telling import Teller
from forebay.mods.kafka_consumer.validation import configuration_of
from forebay.mods.result import CANCELLED, FAILED, WRONG_PARAMETERS, Ended
from forebay.observability.settings import LogSettings


def run_to_its_end(
    params: Mapping[str, Any], stop: Event | None = None, log_format: str | None = None
) -> Ended:
    try:
        configuration = configuration_of(params, log_format=log_format)
    except InvalidRequest as problem:
        return Ended(WRONG_PARAMETERS, NOTHING_DONE, errors=[str(problem)])
    level = configuration.log_level
    emit = bootstrap.open_emitter(LogSettings(level, configuration.settings.log.format), sys.stderr)
    tell = Teller(emit, level, configuration.mod_name)
    try:
        return run_consumer(configuration, tell, Wish(stop))
    except KeyboardInterrupt:
        return Ended(CANCELLED, NOTHING_DONE, errors=["It was interrupted before it had started."])
    except ForebayError as problem:
        tell("mod.failed", error_type=type(problem).__name__, error_message=str(problem))
        return Ended(FAILED, NOTHING_DONE, errors=[str(problem)])
