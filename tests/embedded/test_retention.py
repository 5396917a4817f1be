import pytest

from forebay.broker.settings import EmbeddedSettings
from forebay.core.errors import OffsetOutOfRange
from forebay.core.records import TopicPartition
from forebay.core.topics import TopicSpec
from forebay.testing.clock import FakeClock
from forebay.testing.waiting import eventually

PARTITION = TopicPartition("old", 0)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def quick_broker(open_broker, folder, clock):
    settings = EmbeddedSettings(folder, maintenance_seconds=0.05)
    return open_broker(settings=settings, clock=clock)


def marks(broker):
    return broker.admin().watermarks([PARTITION])[PARTITION]


def test_records_older_than_the_retention_time_go_and_younger_ones_stay(
    quick_broker, clock, send, read
):
    quick_broker.admin().create_topic(TopicSpec("old", retention_ms=60_000))
    send(quick_broker, "old", [b"old"] * 7)
    clock.advance(50)
    send(quick_broker, "old", [b"young"] * 3)
    clock.advance(20)
    eventually(lambda: marks(quick_broker) == (7, 10))
    assert read(quick_broker, "old") == [b"young"] * 3


def test_the_oldest_records_go_when_a_partition_holds_too_many_bytes(quick_broker, send, read):
    quick_broker.admin().create_topic(TopicSpec("old", retention_bytes=5_000))
    send(quick_broker, "old", [b"x" * 1_000] * 20)
    eventually(lambda: marks(quick_broker) == (15, 20))
    assert read(quick_broker, "old") == [b"x" * 1_000] * 5


def test_a_long_tail_goes_in_pieces_and_its_rows_are_really_gone(quick_broker, folder, send):
    quick_broker.admin().create_topic(TopicSpec("old"))
    for _ in range(12):
        send(quick_broker, "old", [b"x"] * 1_000)
    quick_broker.admin().trim({PARTITION: 11_500})
    assert marks(quick_broker) == (11_500, 12_000)
    eventually(lambda: rows_in(folder) == 500)


def test_a_deleted_topic_leaves_no_rows_behind(quick_broker, folder, send):
    quick_broker.admin().create_topic(TopicSpec("old"))
    send(quick_broker, "old", [b"x"] * 1_000)
    quick_broker.admin().delete_topic("old")
    eventually(lambda: rows_in(folder) == 0)


def test_an_idle_broker_writes_nothing(quick_broker, folder, send, clock):
    quick_broker.admin().create_topic(TopicSpec("old", retention_ms=1_000_000))
    send(quick_broker, "old", [b"x"])
    size = (folder / "broker.db-wal").stat().st_size
    clock.advance(100)
    looks = []
    eventually(lambda: looks.append(1) or len(looks) > 30)
    assert (folder / "broker.db-wal").stat().st_size == size


def test_a_reader_that_retention_passed_is_told_once_and_stays(quick_broker, send):
    quick_broker.admin().create_topic(TopicSpec("old"))
    send(quick_broker, "old", [b"x"] * 10)
    consumer = quick_broker.consumer(None)
    consumer.assign({PARTITION: 0})
    quick_broker.admin().trim({PARTITION: 4})
    with pytest.raises(OffsetOutOfRange) as told:
        consumer.poll(0)
    assert (told.value.low, told.value.high) == (4, 10)
    assert consumer.poll(0) == []
    assert consumer.position(PARTITION) == 0
    consumer.seek(PARTITION, 4)
    assert [record.offset for record in consumer.poll(0)] == [4, 5, 6, 7, 8, 9]


def rows_in(folder) -> int:
    import apsw

    connection = apsw.Connection(str(folder / "broker.db"), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        return connection.execute("SELECT count(*) FROM log").get
    finally:
        connection.close()
