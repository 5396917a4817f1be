"""Hands records to the user's callable one by one, outside of any consumer."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from forebay.core.records import Record
from forebay.mods.kafka_consumer.messages import STOPS_ON
from forebay.mods.kafka_consumer.processing import UserFunction

TOLD_MAX = 10

Attempt: TypeAlias = Callable[[Record], BaseException | None]


class Failures:
    """How many there were, and what the first of them said."""

    def __init__(self) -> None:
        self.count = 0
        self.told: list[str] = []

    def add(self, sentence: str) -> None:
        self.count += 1
        if len(self.told) < TOLD_MAX:
            self.told.append(sentence)


@contextmanager
def calls_of(processor: UserFunction) -> Iterator[Attempt]:
    """An attempt gives what was raised. One event loop for all, so that connections last."""
    if not processor.is_async:
        yield lambda record: _attempt(processor.call, record)
        return
    with asyncio.Runner() as runner:

        async def wait_for(record: Record) -> None:
            await processor.call(record)

        yield lambda record: _attempt(lambda record: runner.run(wait_for(record)), record)


def _attempt(call: Callable[[Record], object], record: Record) -> BaseException | None:
    try:
        call(record)
    except STOPS_ON:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  a user's function: its failure counts
        return error
    return None


def place_of(record: Record) -> str:
    return f"{record.at} offset {record.offset}"
