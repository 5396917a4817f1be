"""Which file remembers what a run has seen."""

# ruff: noqa: PLC0415  imported where it is needed, so that no command pays for what it leaves out

import hashlib
from pathlib import Path
from typing import assert_never

from forebay.broker.settings import EmbeddedSettings, KafkaSettings
from forebay.settings import BrokerSettings, EventHubs, Settings, TrialKafka

MARK_CHARACTERS = 8
PREFIX_LENGTH_MAX = 100


def seen_file(settings: Settings) -> Path:
    """One for each that reads the same events in groups of its own: a shadow handles them too."""
    prefix = settings.xact.group_prefix
    read = "\n".join((_where(settings.broker), settings.xact.topics.events, prefix))
    mark = hashlib.sha256(read.encode("utf-8", "backslashreplace")).hexdigest()[:MARK_CHARACTERS]
    return settings.folder / f"seen-{prefix[:PREFIX_LENGTH_MAX]}-{mark}.db"


def _where(broker: BrokerSettings) -> str:
    """What the settings say: a broker that is away now must not be another one."""
    match broker:
        case EmbeddedSettings(folder=folder):
            return f"embedded:{folder.resolve()}"
        case KafkaSettings(bootstrap_servers=servers):
            return ",".join(sorted(servers.split(",")))
        case EventHubs(connection_string=secret):
            from forebay.broker.kafka.configuration import event_hubs

            return event_hubs(secret).bootstrap_servers
        case TrialKafka():
            return "a trial"
        case _:
            assert_never(broker)
