"""Section 13.1 of the mod's document, by name. 13.1.2 is test_validation.py."""

import csv
import io

import pytest

from forebay.core.offsets import PartitionProgress
from forebay.core.records import Record
from forebay.engine.csv_values import as_lines
from forebay.mods.kafka_consumer.backup_rows import COLUMNS, Polled, record_of, rows_of


@pytest.mark.parametrize(
    ("start", "delivered", "processed", "commit"),
    [
        pytest.param(1001, range(1001, 1006), range(1001, 1006), 1006, id="no gaps"),
        pytest.param(1001, range(1001, 1007), [1001, 1002, 1003, 1005, 1006], 1004, id="one gap"),
        pytest.param(1001, range(1001, 1008), [1001, 1003, 1005, 1007], 1002, id="many gaps"),
        pytest.param(1001, [], [], 1001, id="empty"),
        pytest.param(1001, [1001], [1001], 1002, id="single element"),
        pytest.param(1001, [1001, 1005, 1009], [1001, 1005, 1009], 1010, id="gaps of the log"),
    ],
)
def test_13_1_1_max_contiguous_offset(start, delivered, processed, commit):
    """By ruling 17 only what was delivered counts, so gaps of the log itself hold up nothing."""
    progress = PartitionProgress(start)
    for offset in delivered:
        progress.deliver(offset, offset)
    for offset in processed:
        progress.resolve(offset)
    assert progress.watermark == commit


@pytest.mark.parametrize(("size", "is_processed"), [(1_000, 1), (2_000, 1), (2_001, 0)])
def test_13_1_3_message_size(mod, size, is_processed):
    mod.produce([b"x" * size])
    run = mod.start(max_message_size=2_000, stop_at_offset={(mod.topic, 0): 1})
    assert run.end().metrics["processed"] == is_processed
    assert len(mod.letters) == 1 - is_processed


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param(b"order_123", b'{"customer":"john","amount":99.99}', id="standard"),
        pytest.param(b"a,b", 'quotes " lines\r\n and ünïcödé'.encode(), id="special characters"),
        pytest.param(None, b"{}", id="null key"),
        pytest.param(b"k", b"x" * 2_000_000, id="large payload"),
        pytest.param(b"\x00\xff", None, id="binary key and null value"),
    ],
)
def test_13_1_4_csv_row(key, value):
    record = Record(value, key, (), "orders", 0, 1000)
    written = as_lines(rows_of([Polled(1_705_312_801_123, record)])).decode()
    csv.field_size_limit(10_000_000)
    (row,) = csv.reader(io.StringIO(written, newline=""))
    assert row[:4] == ["2024-01-15T10:00:01.123Z", "orders", "0", "1000"]
    assert int(row[6]) == len(value or b"")
    read = record_of(COLUMNS, row)
    assert (read.key, read.value) == (key, value)


@pytest.mark.parametrize(
    ("stops", "mode", "processed"),
    [
        pytest.param({0: 3}, "any", 3, id="single partition"),
        pytest.param({0: 3, 1: 4}, "all", 7, id="several partitions"),
        pytest.param({0: 0}, "any", 0, id="at the beginning"),
        pytest.param({0: 5}, "any", 5, id="at the end of the log"),
    ],
)
def test_13_1_5_stop_at_offset(mod, stops, mode, processed):
    mod.create("stops", 2)
    for partition in stops:
        mod.produce([b"%d" % number for number in range(5)], "stops", partition=partition)
    run = mod.start(
        topics=["stops"],
        stop_at_offset={("stops", partition): offset for partition, offset in stops.items()},
        stop_at_offset_mode=mode,
    )
    assert run.end().metrics["processed"] == processed
