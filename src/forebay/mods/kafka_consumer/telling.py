"""How the mod says what happens: every line carries its type and name."""

from collections.abc import Callable
from typing import Any, TypeAlias

from forebay.observability.catalogue import Emit, EventName, Level, is_logged

MOD_TYPE = "kafka_consumer"

_SHOWN_MAX = 1_000

Translation: TypeAlias = Callable[..., None]


class Teller:
    """An Emit that adds who speaks, and passes nothing on that would not be logged.

    `translations` are events of the engine that the mod's document has other words for.
    """

    def __init__(self, emit: Emit, level: Level, mod_name: str) -> None:
        self._emit = emit
        self._level = level
        self._named = {"mod_type": MOD_TYPE, "mod_name": mod_name}
        self.translations: dict[EventName, Translation] = {}

    def tells(self, event: EventName) -> bool:
        """For who would have to work for what is told."""
        return is_logged(event, self._level)

    def __call__(self, event: EventName, **fields: Any) -> None:
        translated = self.translations.get(event)
        if translated is not None:
            translated(**fields)
        elif is_logged(event, self._level):
            self._emit(event, **(self._named | fields))


def milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)
