import pytest

from contracts.broker.adapters import case
from contracts.broker.stories import (
    Member,
    new_topic,
    numbered,
    partitions_of,
    produce,
    read_from_start,
    take_turns,
    unique,
    values,
)
from forebay.core.errors import InvalidName, InvalidRequest, TopicExists, UnknownTopic
from forebay.core.records import Record, TopicPartition
from forebay.core.topics import TopicSpec

DAY_MS = 86_400_000


@case(1)
def test_a_topic_is_created_with_as_many_empty_partitions_as_asked(admin, broker):
    topic = new_topic(broker, partitions=3)
    assert [described.partitions for described in admin.describe_topics([topic])] == [3]
    watermarks = admin.watermarks(partitions_of(topic, 3))
    assert set(watermarks.values()) == {(0, 0)}


@case(2)
def test_creating_a_topic_that_exists_is_refused_or_on_request_ignored(admin, broker):
    topic = new_topic(broker, partitions=2)
    with pytest.raises(TopicExists, match=topic):
        admin.create_topic(TopicSpec(topic, partitions=5))
    admin.create_topic(TopicSpec(topic, partitions=5), exists_ok=True)
    assert admin.describe_topics([topic])[0].partitions == 2


@case(3)
def test_sending_to_an_unknown_topic_fails_and_creates_nothing(admin, broker):
    topic = unique("nobody-made-this")
    producer = broker.producer()
    with pytest.raises(UnknownTopic, match=topic):
        producer.send(Record(b"lost?", topic=topic))
    assert producer.outstanding == 0
    with pytest.raises(UnknownTopic, match=topic):
        admin.describe_topics([topic])
    assert topic not in [described.name for described in admin.describe_topics()]


@case(4)
def test_a_description_tells_partitions_and_limits_as_they_were_set(admin):
    names = sorted(unique("described") for _ in range(2))
    for name in names:
        admin.create_topic(TopicSpec(name, 2, retention_ms=DAY_MS, retention_bytes=5_000_000))
    described = admin.describe_topics(names[::-1])
    assert [each.name for each in described] == names
    assert {(d.partitions, d.retention_ms, d.retention_bytes) for d in described} == {
        (2, DAY_MS, 5_000_000)
    }
    assert set(names) <= {each.name for each in admin.describe_topics()}
    admin.extend_topic(names[0], 4)
    assert admin.describe_topics([names[0]])[0].partitions == 4
    with pytest.raises(InvalidRequest, match=names[0]):
        admin.extend_topic(names[0], 3)


@case(5)
def test_a_topic_made_anew_starts_at_0_and_old_commits_do_not_apply_to_it(admin, broker, group):
    topic = new_topic(broker)
    first_id = admin.describe_topics([topic])[0].id
    produce(broker, numbered(topic, 5))
    reader = Member(broker, group, [topic])
    take_turns(reader, until=lambda: len(reader.records) == 5)
    reader.commit_all()
    reader.consumer.close()
    admin.delete_topic(topic)
    with pytest.raises(UnknownTopic, match=topic):
        admin.delete_topic(topic)
    admin.create_topic(TopicSpec(topic))

    assert admin.describe_topics([topic])[0].id != first_id
    partition = TopicPartition(topic, 0)
    assert admin.watermarks([partition])[partition] == (0, 0)
    assert broker.consumer(group).committed([partition]) == {partition: None}
    (report,) = produce(broker, [Record(b"new", topic=topic)])
    assert report.offset == 0
    assert values(read_from_start(broker, [partition])) == [b"new"]


@case(6)
def test_names_that_no_broker_can_keep_are_refused_alike(admin):
    taken = unique("dotted.name")
    admin.create_topic(TopicSpec(taken))
    too_long = "a" * 250
    for name in ("", ".", "..", too_long, "two words", "sl/ash", "ümlaut", taken.replace(".", "_")):
        with pytest.raises(InvalidName):
            admin.create_topic(TopicSpec(name))
    with pytest.raises(InvalidRequest):
        admin.create_topic(TopicSpec(unique("none"), partitions=0))
    longest = unique("longest").ljust(249, "x")
    admin.create_topic(TopicSpec(longest))
    assert admin.describe_topics([longest])[0].partitions == 1
