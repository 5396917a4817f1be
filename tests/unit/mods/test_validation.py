"""Section 13.1.2: what cannot work is refused before anything starts, all of it in one message."""

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from forebay.core.errors import InvalidRequest
from forebay.mods.kafka_consumer import CONFIG_SCHEMA, METADATA
from forebay.mods.kafka_consumer.metadata import described
from forebay.mods.kafka_consumer.parameters import PARAMETERS
from forebay.mods.kafka_consumer.validation import configuration_of

# Section 15 of the document, and what section 10 adds to it.
DOCUMENTED = {
    "poll_timeout_ms": (1000, 100, 60_000),
    "max_poll_records": (100, 1, 10_000),
    "worker_count": (50, 1, 1_000),
    "queue_size": (200, 10, 100_000),
    "max_message_size": (10_485_760, 1_024, 2**30),
    "processing_timeout": (None, 1, 3_600),
    "commit_interval_seconds": (5, 1, 300),
    "dev_mode": (False, None, None),
    "backup_enabled": (True, None, None),
    "backup_path": ("kafka_backup.csv", None, None),
    "dlq_path": ("kafka_dlq.csv", None, None),
    "csv_flush_interval_seconds": (5, 1, 300),
    "shutdown_timeout_seconds": (30, 5, 300),
    "stop_at_offset": (None, None, None),
    "log_level": ("INFO", None, None),
}
DEFAULTS = {
    "session_timeout_ms": 10_000,
    "heartbeat_interval_ms": 3_000,
    "max_poll_interval_ms": 300_000,
    "auto_offset_reset": "latest",
    "enable_auto_commit": False,
    "isolation_level": "read_uncommitted",
    "queue_put_timeout": 60,
    "commit_on_shutdown": True,
    "csv_batch_size": 1_000,
    "dlq_csv_batch_size": 100,
    "shutdown_drain_queue": True,
    "mod_name": "kafka_consumer",
}
KNOWN = {parameter.name: parameter for parameter in PARAMETERS}


@pytest.fixture
def given(tmp_path):
    return {
        "bootstrap_servers": "localhost:9092",
        "topics": ["orders"],
        "group_id": "g",
        "processor_callable": print,
        "backup_path": str(tmp_path / "backup.csv"),
        "dlq_path": str(tmp_path / "dlq.csv"),
    }


def problems(given, **params):
    with pytest.raises(InvalidRequest) as refused:
        configuration_of(given | params, {})
    return str(refused.value)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_documented_parameter_has_the_documented_default_and_bounds(name):
    parameter = KNOWN[name]
    assert (parameter.default, parameter.minimum, parameter.maximum) == DOCUMENTED[name]


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_parameter_of_section_10_has_its_default(name):
    assert KNOWN[name].default == DEFAULTS[name]


@pytest.mark.parametrize("name", ["bootstrap_servers", "topics", "group_id", "processor_callable"])
def test_a_missing_required_parameter_is_named(given, name):
    del given[name]
    assert f"{name} is missing" in problems(given)


def test_an_unknown_name_is_refused_with_the_nearest_known_one(given):
    assert "worker_cnt is no parameter of kafka_consumer; write worker_count" in problems(
        given, worker_cnt=3
    )


BOUNDED = [parameter for parameter in PARAMETERS if parameter.kind in {"int", "int/None"}]


@pytest.mark.parametrize("parameter", BOUNDED, ids=lambda parameter: parameter.name)
def test_a_number_outside_its_bounds_or_of_another_type_is_refused(given, parameter):
    wrong = [parameter.minimum - 1, parameter.maximum + 1, str(parameter.minimum), True, 1.5]
    for value in wrong:
        assert parameter.name in problems(given, **{parameter.name: value})


@pytest.mark.parametrize("parameter", BOUNDED, ids=lambda parameter: parameter.name)
def test_a_number_at_its_bounds_is_accepted(given, parameter):
    together = {
        "session_timeout_ms": {"max_poll_interval_ms": 86_400_000, "heartbeat_interval_ms": 100},
        "heartbeat_interval_ms": {
            "session_timeout_ms": 1_800_000,
            "max_poll_interval_ms": 86_400_000,
        },
    }
    for value in (parameter.minimum, parameter.maximum):
        params = together.get(parameter.name, {}) | {parameter.name: value}
        assert getattr(configuration_of(given | params, {}), parameter.name) == value


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *[(p.name, wrong) for p in PARAMETERS if p.choices for wrong in ("nonsense", 1, None)],
        *[(p.name, wrong) for p in PARAMETERS if p.kind == "bool" for wrong in (1, "yes", None)],
        ("topics", "orders"),
        ("topics", []),
        ("topics", [""]),
        ("topics", ["orders", "orders"]),
        ("topics", ["with space"]),
        ("group_id", ""),
        ("group_id", 7),
        ("bootstrap_servers", "localhost"),
        ("bootstrap_servers", ["localhost:9092"]),
        ("bootstrap_servers", "localhost:99999"),
        ("bootstrap_servers", "kafka"),
        ("processor_callable", 7),
        ("processor_callable", "nowhere"),
        ("processor_callable", "nowhere:process"),
        ("processor_callable", "json:nothing"),
        ("backup_path", ""),
        ("backup_path", "/does/not/exist/backup.csv"),
        ("backup_path", "/tmp"),
        ("dlq_path", "/does/not/exist/dlq.csv"),
        ("stop_at_offset", [("orders", 0)]),
        ("stop_at_offset", {"orders": 1}),
        ("stop_at_offset", {("orders", 0): -1}),
        ("stop_at_offset", {("orders", 0): True}),
        ("stop_at_offset", {("orders", "0"): 1}),
        ("stop_at_offset", {("payments", 0): 1}),
        ("heartbeat_interval_ms", 9_000),
        ("mod_name", ""),
    ],
)
def test_what_cannot_work_is_refused(given, name, wrong):
    assert name in problems(given, **{name: wrong})


def test_all_problems_are_in_one_message(given):
    told = problems(given, worker_count=0, queue_size=1, dev_mode="yes", group_id="", typo=1)
    assert told.startswith("5 parameters are wrong; nothing was started:")
    for name in ("worker_count", "queue_size", "dev_mode", "group_id", "typo"):
        assert f"\n  - {name}" in told


def test_one_file_for_backup_and_dead_letters_is_refused(given):
    assert "are one file" in problems(given, dlq_path=given["backup_path"])


def test_a_backup_that_is_off_needs_no_folder(given):
    made = configuration_of(given | {"backup_enabled": False, "backup_path": "/no/b.csv"}, {})
    assert not made.backup_enabled


@pytest.mark.parametrize("key", [("orders", 3), "orders:3"])
def test_a_stop_is_keyed_by_a_tuple_or_by_text(given, key):
    made = configuration_of(given | {"stop_at_offset": {key: 5}}, {})
    assert list(made.stop_at_offset.items()) == [(("orders", 3), 5)]


def test_a_file_that_may_not_be_written_is_refused(given):
    path = Path(given["backup_path"])
    path.touch(mode=0o400)
    with read_only(path.parent):
        assert "cannot be written by this user" in problems(given)


@contextmanager
def read_only(folder):
    """For root, too, to whom the rights of a file forbid nothing."""
    if os.geteuid() != 0:
        yield
        return
    for options in (["--bind", str(folder)], ["-o", "remount,ro,bind"]):
        subprocess.run(["mount", *options, str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def yields(value):
    yield value


def needs_more(value, record, more):
    return value, record, more


def needs_a_keyword(value, *, session):
    return value, session


@pytest.mark.parametrize("processor", [yields, needs_more, needs_a_keyword, lambda: None])
def test_a_callable_that_could_never_be_called_is_refused(given, processor):
    assert "processor_callable" in problems(given, processor_callable=processor)


def test_what_frameworks_read_has_every_parameter():
    assert [*CONFIG_SCHEMA["required"], *CONFIG_SCHEMA["optional"]] == list(KNOWN)
    assert {field["type"] for part in CONFIG_SCHEMA.values() for field in part.values()} <= {
        *("str", "int", "float", "bool", "list", "dict", "object")
    }
    assert METADATA["version"] == "1.1.0"
    assert len(METADATA["description"]) >= 10


def test_a_description_has_exactly_what_its_readers_expect():
    told = described()
    assert told.keys() == {"mod", "version", "parameters"}
    for parameter in told["parameters"]:
        assert parameter.keys() == {
            *("name", "type", "required", "default", "min", "max", "description")
        }
        assert parameter["description"].endswith(".")
