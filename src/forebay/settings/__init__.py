"""What a person decided, read once into the frozen slices that the rooms declare.

The only room that reads the environment and forebay.yaml.
"""

from forebay.settings.kinds import BROKER_FORMS
from forebay.settings.options import Mechanism, SecurityProtocol
from forebay.settings.reading import read_settings
from forebay.settings.slices import (
    DATA_FOLDER,
    BrokerSettings,
    Chosen,
    EventHubs,
    Flags,
    HealthSettings,
    Settings,
    StorageSettings,
    TrialKafka,
)

__all__ = [
    "BROKER_FORMS",
    "DATA_FOLDER",
    "BrokerSettings",
    "Chosen",
    "EventHubs",
    "Flags",
    "HealthSettings",
    "Mechanism",
    "SecurityProtocol",
    "Settings",
    "StorageSettings",
    "TrialKafka",
    "read_settings",
]
