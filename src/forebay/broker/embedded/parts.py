"""What a broker lends to the consumers and producers that it gives out."""

from collections.abc import Callable
from dataclasses import dataclass

from forebay.broker.embedded.folder import Folder
from forebay.broker.embedded.guard import ForkGuard
from forebay.broker.embedded.keeper import Keeper
from forebay.broker.embedded.topics import TopicIndex
from forebay.broker.embedded.writer import Writer
from forebay.core.clock import Clock
from forebay.core.probe import Probe
from forebay.observability.catalogue import Emit


@dataclass(frozen=True, slots=True)
class Parts:
    """`forget` is what a consumer or producer calls when it was closed."""

    folder: Folder
    writer: Writer
    keeper: Keeper
    topics: TopicIndex
    fork: ForkGuard
    clock: Clock
    emit: Emit
    probe: Probe
    record_bytes_max: int
    forget: Callable[[object], None]
