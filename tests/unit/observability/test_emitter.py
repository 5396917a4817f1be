import io
import json
import threading

import pytest

from forebay.core.records import TopicPartition
from forebay.observability.emitter import Emitter
from forebay.observability.settings import LogSettings
from forebay.testing.clock import FakeClock

NOON = 1_795_003_200.125


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Broken(io.StringIO):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def write(self, text: str, /) -> int:
        raise self._error


def emitter(stream=None, *, level="debug", form="json", strict=True):
    settings = LogSettings(level, form)
    return Emitter(stream or io.StringIO(), settings, FakeClock(NOON), strict=strict)


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_has_its_envelope_first_and_its_fields_after():
    stream = io.StringIO()
    emitter(stream).emit("broker.lost", error_message="no route", client_id="a")
    [line] = lines(stream)
    assert list(line) == ["timestamp", "level", "event", "message", "error_message", "client_id"]
    assert line["timestamp"] == "2026-11-18T12:00:00.125Z"
    assert line["level"] == "warning"
    assert line["message"] == "The broker cannot be reached; trying again. no route"


def test_an_unknown_event_is_refused():
    with pytest.raises(ValueError, match="no event"):
        emitter().emit("nobody.knows")


def test_an_undeclared_field_stops_a_test_but_not_production():
    stream = io.StringIO()
    with pytest.raises(ValueError, match="has no field reviewer"):
        emitter().emit("broker.lost", reviewer="Jane Roe")
    lenient = emitter(stream, strict=False)
    lenient.emit("broker.lost", reviewer="Jane Roe", error_message="x")
    assert "Jane" not in stream.getvalue()
    assert lenient.dropped_fields == 1


def test_an_event_below_the_level_is_not_written():
    stream = io.StringIO()
    emitter(stream, level="warning").emit("broker.connected", detail="x")
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    "error", [BrokenPipeError(), OSError(28, "No space left on device"), ValueError("closed file")]
)
def test_a_closed_pipe_or_a_full_disk_does_not_stop_the_work(error):
    broken = emitter(Broken(error))
    broken.emit("broker.lost", error_message="x")
    assert broken.dropped_lines == 1


def test_partitions_are_written_as_people_write_them():
    stream = io.StringIO()
    owned = frozenset({TopicPartition("orders", 2), TopicPartition("orders", 1)})
    emitter(stream).emit("consumer.assigned", partitions=owned, consumer_group="billing")
    [line] = lines(stream)
    assert line["partitions"] == ["orders[1]", "orders[2]"]
    assert line["message"] == (
        "Partitions orders[1], orders[2] were assigned to this member of group billing."
    )


def test_values_no_encoder_takes_do_not_raise():
    stream = io.StringIO()
    emitter(stream).emit(
        "retention.trimmed", records=2**80, topic="\udcff", reason=object(), bytes=float("nan")
    )
    assert len(lines(stream)) == 1


def test_lines_of_many_threads_stay_whole():
    stream = io.StringIO()
    shared = emitter(stream)
    threads = [
        threading.Thread(
            target=lambda: [shared.emit("broker.lost", error_message="y" * 500) for _ in range(50)]
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines(stream)) == 400


def test_secrets_leave_neither_the_message_nor_the_fields():
    stream = io.StringIO()
    emitter(stream).emit("broker.refused", error_message="password=hunter2 for jane@example.org")
    assert "hunter2" not in stream.getvalue()
    assert "jane" not in stream.getvalue()


def test_the_tab_format_is_seven_columns_on_one_line_whatever_is_said():
    stream = io.StringIO()
    emitter(stream, form="tab").emit("broker.refused", error_message="one\ttwo\nthree")
    [line] = stream.getvalue().splitlines()
    timestamp, level, logger, mod_type, mod_name, message, extra = line.split("\t")
    assert (timestamp, level, logger) == ("2026-11-18T12:00:00.125Z", "ERROR", "forebay.broker")
    assert (mod_type, mod_name) == ("-", "-")
    assert message.endswith("one\\ttwo\\nthree")
    assert json.loads(extra)["event"] == "broker.refused"


def test_a_terminal_gets_one_coloured_line_and_no_control_characters():
    stream = Terminal()
    emitter(stream, form=None).emit("broker.lost", error_message="\x1b[2Jgone\r\nnext")
    assert stream.getvalue().count("\n") == 1
    assert "\x1b[2J" not in stream.getvalue()
    assert "12:00:00.125" in stream.getvalue()


def test_a_pipe_gets_json_by_default():
    stream = io.StringIO()
    emitter(stream, form=None).emit("broker.lost", error_message="x")
    assert lines(stream)[0]["event"] == "broker.lost"
