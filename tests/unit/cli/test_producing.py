import io

import pytest

from forebay.broker.settings import ProducerSettings
from forebay.cli.errors import WrongUse
from forebay.cli.sending import Sending
from forebay.cli.topics_produce import Format, parse_record, read_records
from forebay.core.records import UNSET, Record
from forebay.core.topics import TopicSpec
from forebay.testing.memory import MemoryBroker


@pytest.fixture
def broker():
    broker = MemoryBroker(record_bytes_max=100)
    broker.admin().create_topic(TopicSpec("t", 2))
    yield broker
    broker.close()


def read(content, form=Format.JSON):
    return [record for _, record in read_records(io.BytesIO(content), "t", form)]


def test_a_plain_line_is_a_value_byte_for_byte_without_its_newline():
    values = [record.value for record in read(b"a\n\xff \r\n\nlast", Format.LINES)]
    assert values == [b"a", b"\xff \r", b"", b"last"]


def test_an_object_may_set_everything():
    [record] = read(
        b'{"key":"k","value":{"base64":"/w=="},"headers":{"a":null},"partition":1,"timestamp":5}'
    )
    assert record == Record(b"\xff", b"k", (("a", None),), "t", 1, UNSET, 5)


def test_what_was_read_can_be_sent_again():
    content = (
        b'{"topic":"o","partition":0,"offset":9,"timestamp":5,"time":"x","key":null,"value":null,'
        b'"headers":{}}\n{"items":[],"total":1}\n'
    )
    [record] = read(content)
    assert record == Record(None, None, (), "t", 0, UNSET, 5)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"nonsense", "it is no JSON"),
        (b"[1]", "no object"),
        (b'{"key":"k"}', 'no "value"'),
        (b'{"value":1}', "the value must be"),
        (b'{"value":"v","extra":1}', "nobody knows 'extra'"),
        (b'{"value":"v","partition":-1}', "number from 0"),
        (b'{"value":"v","partition":true}', "number from 0"),
        (b'{"value":"v","timestamp":"soon"}', "ISO 8601"),
    ],
)
def test_a_line_that_is_no_record_is_named_by_its_number(line, says):
    with pytest.raises(WrongUse, match="Line 7 was not sent") as caught:
        parse_record(line, "t", 7)
    assert says in str(caught.value)


def test_a_full_buffer_is_waited_for_and_nothing_is_dropped(broker):
    sending = Sending(broker.producer(ProducerSettings(pending_records_max=3)))
    for number in range(50):
        sending.send(Record(b"v", topic="t", partition=number % 2), number)
    sending.finish()
    assert sending.produced == 50
    assert sending.offsets() == [(0, (0, 24)), (1, (0, 24))]


def test_a_record_that_is_refused_is_told_with_its_line_and_the_others_go_on(broker):
    sending = Sending(broker.producer())
    sending.send(Record(b"x" * 101, topic="t", partition=0), 1)
    sending.send(Record(b"x", topic="t", partition=9), 2)
    sending.send(Record(b"x", topic="t", partition=0), 3)
    sending.finish()
    assert sending.produced == 1
    assert [failure[:7] for failure in sending.failures] == ["Line 1:", "Line 2:"]


def test_a_report_of_failure_is_no_success(broker):
    broker.refuse_writes("t")
    sending = Sending(broker.producer())
    sending.send(Record(b"x", topic="t", partition=0), 1)
    sending.finish()
    assert (sending.produced, len(sending.failures)) == (0, 1)
    assert sending.as_object("t")["offsets"] == {}
