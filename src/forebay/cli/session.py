"""What one command uses: its settings, its broker, its log on stderr."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

from forebay import bootstrap
from forebay.broker.port import Broker
from forebay.broker.settings import EmbeddedSettings
from forebay.cli.errors import WrongUse
from forebay.cli.output import remark
from forebay.core.errors import Unusable
from forebay.observability.catalogue import Emit, EventName, is_logged
from forebay.observability.settings import LogSettings
from forebay.settings import Flags, Settings, read_settings


class Session:
    """A command is quiet by default: below a warning only what a person did is told."""

    def __init__(self, flags: Flags) -> None:
        self.settings = _read(flags)
        self._log = LogSettings(self.settings.log.level or "warning", self.settings.log.format)

    @property
    def owns_broker(self) -> bool:
        """An embedded broker is ours: what a pipeline reads may be created on it."""
        return isinstance(self.settings.broker, EmbeddedSettings)

    def tell_unused(self) -> None:
        """Once, by who starts the work: its children know it too."""
        if unused := self.settings.unused:
            remark(f"known, but not used by this version: {', '.join(unused)}")

    @contextmanager
    def broker(self) -> Iterator[Broker]:
        broker = bootstrap.open_broker(self.settings.broker, self.emit)
        try:
            yield broker
        finally:
            broker.close()

    def emit(self, event: EventName, **fields: object) -> None:
        if is_logged(event, self._log.level or "warning"):
            self._emitter(event, **fields)

    @cached_property
    def _emitter(self) -> Emit:
        """Built when there is something to say: its libraries take longer than most commands."""
        return bootstrap.open_emitter(self._log, sys.stderr)


def _read(flags: Flags) -> Settings:
    try:
        return read_settings(flags)
    except Unusable as problem:
        raise WrongUse(str(problem)) from problem
