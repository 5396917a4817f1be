"""What a processor may look like, and what it is given."""

import asyncio
import functools

import pytest

from forebay.core.records import Record
from forebay.testing import eventually


def shapes(seen):
    def one(value):
        seen.append(value)

    def two(value, message):
        seen.append((value, message.key))

    def named(record):
        seen.append((record.value, record.key))

    def keyword(value, *, record):
        seen.append((value, record.key))

    def optional(value, flag=None):
        seen.append((value, flag))

    def named_optional(value, record=None):
        seen.append((value, record.key))

    async def waits(value):
        await asyncio.sleep(0)
        seen.append(value)

    async def waits_for_two(value, record):
        await asyncio.sleep(0)
        seen.append((value, record.key))

    class Callable:
        def __call__(self, value):
            seen.append(value)

        def method(self, value, record):
            seen.append((value, record.key))

    pair = (b"1", b"k")
    return {
        "one": (one, b"1"),
        "two": (two, pair),
        "named": (named, pair),
        "keyword": (keyword, pair),
        "optional": (optional, (b"1", None)),
        "named_optional": (named_optional, pair),
        "waits": (waits, b"1"),
        "waits_for_two": (waits_for_two, pair),
        "object": (Callable(), b"1"),
        "method": (Callable().method, pair),
        "partial": (functools.partial(optional, flag=3), (b"1", 3)),
        "built_in": (seen.append, b"1"),
    }


@pytest.mark.parametrize("shape", shapes([]))
def test_a_processor_gets_the_value_and_where_it_wants_the_record(mod, shape):
    seen = []
    processor, expected = shapes(seen)[shape]
    mod.produce([b"1"], key=b"k")
    with mod.running(processor):
        eventually(lambda: seen == [expected])


def test_the_record_has_all_that_the_message_had(mod):
    producer = mod.broker.producer()
    producer.send(Record(b"v", b"k", [("h", b"1"), ("h", None)], mod.topic))
    producer.close()
    seen = []

    def keep(record):
        seen.append(record)

    with mod.running(keep):
        eventually(lambda: len(seen) == 1)
    (record,) = seen
    assert list(record.headers) == [("h", b"1"), ("h", None)]
    assert (record.topic, record.partition, record.offset) == (mod.topic, 0, 0)
    assert record.timestamp_ms > 0


async def fail_later(value):
    await asyncio.sleep(0)
    raise LookupError(value.decode())


def test_an_async_processor_that_fails_is_dead_lettered(mod):
    mod.produce([b"1"])
    with mod.running(fail_later) as run:
        run.wait_for("mod.message_failed")
        eventually(lambda: mod.letters)
    assert mod.letters[0].error_type == "LookupError"
    assert mod.letters[0].reason == "1"


def test_the_result_is_ignored_whatever_it_is(mod):
    mod.produce([b"1", b"2"])
    run = mod.start(lambda value: {"handled": value})
    eventually(lambda: len(run.said("mod.message_processed")) == 2)
    assert run.stop().metrics["failed"] == 0
