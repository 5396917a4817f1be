import gzip
import os

import orjson
import pytest

from forebay.bootstrap import connect
from forebay.cli.errors import WrongUse
from forebay.cli.mod_replay import ReplayBackup
from forebay.core.errors import UnknownTopic, Unusable
from forebay.core.records import UNSET, Record, TopicPartition
from forebay.core.topics import TopicSpec
from forebay.engine.csv_values import as_lines
from forebay.mods.kafka_consumer.backup_rows import HEAD, Polled, rows_of
from forebay.mods.kafka_consumer.calls import calls_of
from forebay.mods.kafka_consumer.processing import processor_of
from forebay.mods.kafka_consumer.replay import Backup, ToCallable, ToTopic, Wanted
from forebay.testing.memory import MemoryBroker

NINE_MS = 1_705_309_200_000  # 2024-01-15T09:00:00Z
HOUR_MS = 3_600_000

RECORDS = [
    Record(b'{"n":0}', b"a", [("h", b"\xff")], "orders", 0, 0),
    Record(None, b"a", (), "orders", 0, 1),
    Record(b'\xff\x00"\r\n', None, (), "orders", 1, 0),
    Record(b"", b"b", (), "payments", 0, 7),
]


def csv_of(records):
    polled = [Polled(NINE_MS + n * HOUR_MS, record) for n, record in enumerate(records)]
    return HEAD + as_lines(rows_of(polled))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "kafka_backup.csv"
    path.write_bytes(csv_of(RECORDS))
    return path


@pytest.fixture
def url(tmp_path):
    return f"embedded:{tmp_path / 'data'}"


@pytest.fixture
def topic(url):
    broker = connect(url)
    broker.admin().create_topic(TopicSpec("again", partitions=1))
    broker.close()
    return "again"


def stored(url):
    broker = connect(url)
    consumer = broker.consumer(None)
    consumer.assign({TopicPartition("again", 0): 0})
    records = consumer.poll(0.2)
    consumer.close()
    broker.close()
    return [(record.key, record.value, list(record.headers)) for record in records]


def content(*records):
    return [(record.key, record.value, list(record.headers)) for record in records]


def last_line(capsys):
    return orjson.loads(capsys.readouterr().out.splitlines()[-1])


def test_records_go_to_a_topic_as_they_were_from_plain_and_packed_files(
    path, topic, url, tmp_path, capsys
):
    packed = tmp_path / "kafka_backup.csv.1.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.write_bytes(csv_of([Record(b"last", b"z", (), "orders", 0, 2)]))
    command = ReplayBackup(files=[packed, path], topic=topic, broker=url, as_json=True)
    assert command.run() == 0
    told = last_line(capsys)
    assert (told["total"], told["done"], told["failed"], told["read"]) == (5, 5, 0, 5)
    assert stored(url) == content(*RECORDS, Record(b"last", b"z"))


@pytest.mark.parametrize(
    ("chosen", "numbers"),
    [
        ({"of_topic": "orders"}, [0, 1, 2]),
        ({"of_topic": "orders", "partition": 1}, [2]),
        ({"partition": 0}, [0, 1, 3]),
        ({"key": "a"}, [0, 1]),
        ({"grep": '"n"'}, [0]),
        ({"since": "2024-01-15T10:00Z"}, [1, 2, 3]),
        ({"until": "2024-01-15T11:00Z"}, [0, 1]),
        ({"since": "2024-01-15T10:00Z", "until": "2024-01-15T11:00Z"}, [1]),
        ({"skip": 1, "limit": 2}, [1, 2]),
        ({"of_topic": "orders", "skip": 2}, [2]),
    ],
)
def test_only_what_was_asked_for_goes(path, topic, url, chosen, numbers):
    assert ReplayBackup(files=[path], topic=topic, broker=url, **chosen).run() == 0
    assert stored(url) == content(*(RECORDS[number] for number in numbers))


def test_a_dry_run_tells_where_they_came_from_and_sends_nothing(path, topic, url, capsys):
    command = {"files": [path], "topic": topic, "broker": url, "dry_run": True, "rate": 0.01}
    assert ReplayBackup(**command).run() == 0
    said = capsys.readouterr().out
    assert "4 records would go to again, 4 rows read." in said
    assert "orders[0] 2, orders[1] 1, payments[0] 1" in said
    assert ReplayBackup(**command, as_json=True).run() == 0
    assert last_line(capsys)["items"][0] == {"topic": "orders", "partition": 0, "records": 2}
    assert stored(url) == []


SHOP = """
import time
got = []
def process(value, record):
    got.append((time.monotonic(), value, record))
    if value == b"":
        raise ValueError("empty")
"""


@pytest.fixture
def shop(tmp_path, monkeypatch):
    name = f"replayed_{os.urandom(4).hex()}"
    (tmp_path / f"{name}.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    return f"{name}:process"


def test_records_go_through_a_function_and_its_failures_are_told(path, shop, capsys):
    assert ReplayBackup(files=[path], function=shop).run() == 1
    told = capsys.readouterr()
    assert "3 records went through" in told.out
    assert "payments[0] offset 7: ValueError: empty" in told.err
    got = __import__(shop.partition(":")[0]).got
    assert [value for _, value, _ in got] == [record.value for record in RECORDS]
    assert [record[:6] for _, _, record in got] == [
        (*record[:2], list(record.headers), *record[3:6]) for record in RECORDS
    ]
    assert [record.timestamp_ms for _, _, record in got] == [
        NINE_MS + n * HOUR_MS for n in range(4)
    ]


def test_a_rate_is_kept(path, shop):
    assert ReplayBackup(files=[path], function=shop, rate=20, limit=3).run() == 0
    times = [at for at, _, _ in __import__(shop.partition(":")[0]).got]
    assert times[2] - times[0] >= 0.09


def test_rows_that_cannot_be_read_are_counted_and_the_others_go(path, topic, url, capsys):
    path.write_bytes(path.read_bytes().replace(b'""base64""', b'""rot13""') + b"2024,torn")
    assert ReplayBackup(files=[path], topic=topic, broker=url).run() == 1
    assert "rows were cut or changed" in capsys.readouterr().err
    assert 0 < len(stored(url)) < len(RECORDS)


def test_a_packed_file_that_was_cut_gives_what_it_holds_and_is_told(path, topic, url, capsys):
    path.write_bytes(gzip.compress(csv_of(RECORDS * 500))[:-60])
    command = ReplayBackup(files=[path], topic=topic, broker=url, as_json=True)
    assert command.run() == 1
    told = last_line(capsys)
    assert told["unreadable"] >= 1
    assert told["done"] == told["read"] - told["unreadable"]


def test_what_cannot_work_is_refused_before_anything_is_sent(path, topic, url, shop, tmp_path):
    wrong = [
        {"files": [path]},
        {"files": [path], "topic": topic, "function": shop},
        {"files": [tmp_path / "none.csv"], "topic": topic},
        {"files": [path], "function": "nowhere:process"},
        {"files": [path], "topic": topic, "since": "soon"},
    ]
    for words in wrong:
        with pytest.raises(WrongUse):
            ReplayBackup(broker=url, **words).run()
    with pytest.raises(UnknownTopic):
        ReplayBackup(files=[path], topic="nobody", broker=url).run()
    (tmp_path / "other.csv").write_text("name,price\nhammer,3\n")
    with pytest.raises(Unusable, match="is no backup of the mod"):
        ReplayBackup(files=[tmp_path / "other.csv"], topic=topic, broker=url).run()
    assert stored(url) == []


def test_an_interrupt_tells_where_to_go_on_and_nothing_is_sent_twice(path, shop, tmp_path, capsys):
    module = tmp_path / "halting.py"
    module.write_text(
        "got = []\n"
        "def process(value, record):\n"
        "    if len(got) == 2 and not (globals().get('told') or globals().update(told=1)):\n"
        "        raise KeyboardInterrupt\n"
        "    got.append(record.offset)\n"
    )
    assert ReplayBackup(files=[path], function="halting:process", skip=1).run() == 130
    assert "--skip 3" in capsys.readouterr().err
    assert ReplayBackup(files=[path], function="halting:process", skip=3).run() == 0
    assert __import__("halting").got == [1, 0, 7]


def test_records_a_broker_refuses_are_told_with_the_place_they_came_from():
    broker = MemoryBroker(record_bytes_max=100)
    broker.admin().create_topic(TopicSpec("again"))
    target = ToTopic(broker.producer(), "again")
    for number in range(1_200):
        target.hand_over(Record(b"x" * (500 if number == 3 else 5), None, (), "orders", 1, number))
    target.finish()
    assert (target.done, target.failures.count) == (1_199, 1)
    (told,) = target.failures.told
    assert told.startswith("orders[1] offset 3: ")
    broker.refuse_writes("again")
    refused = ToTopic(broker.producer(), "again")
    for number in range(20):
        refused.hand_over(Record(b"x", None, (), "orders", 1, number))
    refused.finish()
    assert (refused.done, refused.failures.count, len(refused.failures.told)) == (0, 20, 10)


def test_a_function_that_gives_up_the_program_is_a_failure_and_no_memory_stops_it():
    def leave(value):
        raise SystemExit(1) if value else MemoryError

    with calls_of(processor_of(leave)) as attempt:
        target = ToCallable(attempt)
        target.hand_over(Record(b"x", None, (), "orders", 0, 0))
        assert target.failures.told == ["orders[0] offset 0: SystemExit: 1"]
        with pytest.raises(MemoryError):
            target.hand_over(Record(b"", None, (), "orders", 0, 0))


def test_progress_is_measured_in_bytes_of_the_files_as_they_lie(path, tmp_path):
    packed = tmp_path / "b.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    backup = Backup([path, packed])
    read = [backup.bytes_read for _ in backup.records()]
    assert read == sorted(read)
    assert backup.bytes_read == path.stat().st_size + packed.stat().st_size


def test_nothing_asked_for_takes_everything():
    assert Wanted().takes(Record(None, None, (), "orders", UNSET, UNSET, UNSET))
