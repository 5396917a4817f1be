"""The brokers under test: how to reach each, how long it may take, how to break it."""

import fcntl
import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from contracts.broker.processes import Process
from forebay.broker.port import Broker
from forebay.broker.settings import EmbeddedSettings, KafkaSettings
from forebay.observability.catalogue import silent
from forebay.testing.memory import MemoryBroker

ALL = ("embedded", "kafka", "memory")
DURABLE = ("embedded", "kafka")
GAPPY = range(23, 53)  # the fetch, group and commit cases


@dataclass(frozen=True)
class Asked:
    """`own`: the test breaks the broker, so it must be alone on it."""

    name: str
    own: bool = False


def case(number: int, brokers: tuple[str, ...] = ALL, *, own: bool = False):
    """One case of the contract, once for each broker that must pass it."""
    names = list(brokers)
    if number in GAPPY:
        names.append("gappy")
    for_each = pytest.mark.parametrize(
        "adapter",
        [pytest.param(Asked(name, own), id=f"c{number:02d}-{name}") for name in names],
        indirect=True,
    )

    def decorate(test):
        test.case_number = number
        return for_each(test)

    return decorate


@dataclass(frozen=True)
class Bounds:
    """The only thing in which the brokers may differ, besides what the port says."""

    wake_up_seconds: float
    takeover_after_kill_seconds: float
    batches_appear_whole: bool


@dataclass(frozen=True)
class Adapter:
    """`silenced` keeps the broker from answering; `crash` kills what writes; `restart` kills the
    engine and brings it back."""

    broker: Broker
    url: str
    bounds: Bounds
    silenced: Callable[[], AbstractContextManager[None]]
    crash: Callable[[Process], None]
    restart: Callable[[], None]


def _cannot(*_arguments: object) -> AbstractContextManager[None]:
    raise NotImplementedError("nothing survives this broker's process")


def memory_adapter() -> Adapter:
    bounds = Bounds(0.05, 0, batches_appear_whole=True)
    return Adapter(MemoryBroker(), "", bounds, _cannot, _cannot, _cannot)


def embedded_adapter(folder: Path, *, gappy: bool) -> Adapter:
    from forebay.broker.embedded.broker import EmbeddedBroker

    gaps = random.Random(4711) if gappy else None
    broker = EmbeddedBroker(EmbeddedSettings(folder), gaps=gaps)
    url = f"embedded:{folder}"
    return Adapter(
        broker,
        url,
        Bounds(0.05, 1.0, batches_appear_whole=True),
        silenced=lambda: _gate_held(folder / "gate"),
        crash=lambda writer: writer.kill(),
        restart=lambda: _kill_a_bystander_that_writes(broker, url),
    )


@contextmanager
def _gate_held(gate: Path) -> Iterator[None]:
    with gate.open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _kill_a_bystander_that_writes(broker: Broker, url: str) -> None:
    """There is no engine to restart but the processes: one dies while it writes."""
    from contracts.broker.stories import new_topic

    with Process("produce", url, new_topic(broker)) as bystander:
        bystander.wait_for("acked")
        bystander.kill()


def kafka_adapter(cluster) -> Adapter:
    from forebay.broker.kafka.broker import KafkaBroker

    (node,) = cluster.nodes

    def restart() -> None:
        node.kill()
        node.start()

    return Adapter(
        KafkaBroker(KafkaSettings(cluster.bootstrap), silent),
        f"kafka://{cluster.bootstrap}",
        Bounds(0.25, 6.0, batches_appear_whole=False),
        silenced=lambda: _stopped(node.pid),
        crash=lambda _writer: restart(),
        restart=restart,
    )


@contextmanager
def _stopped(process_id: int) -> Iterator[None]:
    os.kill(process_id, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process_id, signal.SIGCONT)
