from pathlib import Path

import pytest

from forebay.settings import Flags, read_settings


def test_all_problems_are_told_at_once_and_each_says_who_said_it(refused):
    message = refused(
        "{storage: {cache_max_bytes: a lot}, kafka: {xact: {max_retries: many}}}",
        {"LOG_LEVEL": "loud", "KAFKA_SECURITY_PROTOCOL": "x"},
        broker="kafka://h",
        log_format="neat",
    )
    assert message.startswith("6 settings are wrong:")
    for origin in (
        *("forebay.yaml:storage.cache_max_bytes is 'a lot'; write bytes", "--broker: 'h'"),
        *("forebay.yaml:kafka.xact.max_retries is 'many'; write a whole number", "LOG_LEVEL is"),
        *("KAFKA_SECURITY_PROTOCOL is 'x'; write one of", "--log-format is 'neat'; write one of"),
    ):
        assert origin in message


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("kafka: {xct: {}}", "forebay.yaml:kafka.xct is not known; write kafka.xact."),
        ("kafka: {xact: {retry_delay: 5}}", "write kafka.xact.retry_delays."),
        ("storge: {}", "forebay.yaml:storge is not known; write storage."),
        ("cache_dir: x", "forebay.yaml:cache_dir is not known; write storage.cache_dir."),
        ("delta: {xact: {zzz: 1}}", "write one of events_table_path, failed_table_path, inve"),
        ("8080: x", "forebay.yaml:8080 is not known"),
        ("storage: 5", "forebay.yaml:storage is no section; write below it cache_dir, "),
        ("[1, 2]", "forebay.yaml is no section; write below it "),
        ("health: {port: {a: 1}}", "forebay.yaml:health.port is a section; write a whole number"),
    ],
)
def test_a_name_that_nobody_knows_is_told_with_the_nearest(text, instead, refused):
    assert instead in refused(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [1", "is not YAML at line 1, column 6"),
        ("dir: x\n\tbroker: y", "at line 2, column 1"),
        ("logging: {level: info}\nlogging: {format: json}", "line 2, has logging a second time"),
        ("xact: {file_types: [pdf], file_types: [xml]}", "has file_types a second time"),
        ("[" * 5_000, "is not YAML that can be read"),
        ("dir: \x01", "is not YAML (odd characters)"),
    ],
)
def test_a_file_that_is_no_yaml_is_told_with_its_line(text, says, refused):
    assert says in refused(text)


def test_a_file_that_is_named_and_not_there_is_told(tmp_path, refused):
    missing = tmp_path / "missing.yaml"
    for flags, environment in ((Flags(config=missing), {}), (Flags(), {"FOREBAY_CONFIG": missing})):
        with pytest.raises(Exception, match=r"missing\.yaml cannot be read .* write the path"):
            read_settings(flags, {name: str(path) for name, path in environment.items()})


def test_a_file_in_another_encoding_is_told(tmp_path):
    path = tmp_path / "latin.yaml"
    path.write_bytes("dir: Brücke".encode("latin-1"))
    with pytest.raises(Exception, match="not UTF-8"):
        read_settings(Flags(config=path), {})


def test_a_file_that_holds_nothing_says_nothing(written):
    assert (
        read_settings(Flags(config=written("# nothing\nkafka:\nlogging: {level: }")), {}).chosen
        == ()
    )


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"DOWNLOAD_CONCURRENCY": "0"}, "DOWNLOAD_CONCURRENCY is '0'; write a whole number from 1"),
        ({"DOWNLOAD_CONCURRENCY": "501"}, "from 1 to 500"),
        ({"DOWNLOAD_CONCURRENCY": "5.5"}, "write a whole number"),
        ({"DOWNLOAD_TIMEOUT_SECONDS": "nan"}, "write a number from 1 to 3600"),
        ({"BATCH_SIZE": "5001"}, "from 1 to 5000"),
        ({"METRICS_PORT": "65536"}, "from 0 to 65535"),
        ({"RETRY_DELAYS": "600,300"}, "RETRY_DELAYS is '600,300'; write delays that grow"),
        ({"RETRY_DELAYS": "0,1"}, "write delays that grow"),
        ({"RETRY_DELAYS": "5 minutes"}, "write delays that grow"),
        ({"RETRY_DELAYS": "2d"}, "none over a day"),
        ({"MAX_RETRIES": "5"}, "MAX_RETRIES is 5, but RETRY_DELAYS has 4; write at most 4"),
        ({"KAFKA_EVENTS_TOPIC": "a b"}, "write a topic's name"),
        ({"KAFKA_DLQ_TOPIC": "xact.events.raw"}, "is 'xact.events.raw', as KAFKA_EVENTS_TOPIC is"),
        ({"KAFKA_DLQ_TOPIC": "xact.events_raw"}, "collides with 'xact.events.raw'"),
        ({"ALLOWED_ATTACHMENT_DOMAINS": "https://a.example"}, "'https://a.example' is no host"),
        ({"ALLOWED_ATTACHMENT_DOMAINS": "*.a.example"}, "suffixes that begin with a dot"),
        ({"ONELAKE_BASE_PATH": "ftp://x/y"}, "ftp:// is none of abfss"),
        ({"ONELAKE_BASE_PATH": "abfss://"}, "which names no place"),
        (
            {"CACHE_DIR": "abfss://w@h/cache"},
            "'abfss://w@h/cache', a URL and no folder of this machine; write the path of a folder",
        ),
        ({"CACHE_DIR": "file:///var/cache"}, "a URL and no folder of this machine"),
        ({"FOREBAY_CA_FILE": "nowhere.pem"}, "'nowhere.pem', where no file is; write the path"),
        ({"KAFKA_SESSION_TIMEOUT_MS": "1500"}, "with a heartbeat every 1000 ms; write at least"),
        ({"KAFKA_SESSION_TIMEOUT_MS": "400000"}, "less than the session timeout of 400000 ms"),
        (
            {"ONELAKE_BASE_PATH": "a", "ONELAKE_FILES_PATH": "b"},
            "ONELAKE_BASE_PATH and ONELAKE_FILES_PATH mean the same and differ; write one.",
        ),
    ],
)
def test_a_value_out_of_its_bounds_is_told_with_what_to_write(environment, says, refused):
    assert says in refused("", environment)


@pytest.mark.parametrize(
    ("text", "environment"),
    [
        ("kafka: {connection: {sasl_plain_password: 771177}}", {}),
        ("kafka: {connection: {sasl_plain_password: *771177 }}", {}),
        ("kafka: {connection: {sasl_plain_password: {771177: 1}}}", {}),
        ("", {"DELTA_EVENTS_TABLE": "abfss://c@a/t?sig=771177"}),
        ("", {"ONELAKE_BASE_PATH": "https://me:771177@a.example/t"}),
        ("", {"FOREBAY_BROKER": "kafka://me:771177@h:1"}),
        ("", {"FOREBAY_BROKER": "amqp://me:771177@h:1"}),
    ],
)
def test_a_problem_with_a_secret_does_not_show_it(text, environment, refused):
    assert "771177" not in refused(text, environment)


def test_a_data_folder_in_an_object_store_is_refused_however_it_is_said(refused):
    assert "--dir is abfss:/w@h/x, a URL and" in refused(folder=Path("abfss://w@h/x"))
    assert "forebay.yaml:dir is 'az://w/x', a URL and" in refused("dir: az://w/x")


def test_what_is_changed_can_be_shown_without_its_secrets(written):
    settings = read_settings(
        Flags(config=written("kafka: {connection: {sasl_plain_password: '771177'}}")),
        {"EVENTHUB_CONNECTION_STRING": "771177"},
    )
    assert [chosen.value for chosen in settings.chosen] == ["***", "***"]
    assert "771177" not in repr(settings)


def test_a_value_that_says_the_default_is_not_shown_as_changed(written):
    path = written("kafka: {xact: {retry_delays: [5m, 10m, 20m, 40m]}}")
    assert read_settings(Flags(config=path), {"DOWNLOAD_CONCURRENCY": "50"}).chosen == ()


def test_names_of_parts_that_are_not_built_are_remembered_and_do_not_fail(written):
    path = written(
        "{event_source: eventhub, claimx: {api: {base_url: x}}, xact_eventhouse: {poller: {}},\n"
        "kafka: {producer_defaults: {acks: all}, xact: {download: {consumer: {a: 1}}}}}"
    )
    unused = read_settings(Flags(config=path), {"CLAIMX_API_TOKEN": "771177"}).unused
    keys = [name.rpartition(":")[2] for name in unused]
    assert keys == [
        *("event_source", "claimx", "xact_eventhouse.poller", "kafka.producer_defaults"),
        *("kafka.xact.download.consumer", "CLAIMX_API_TOKEN"),
    ]


def test_an_empty_list_of_hosts_refuses_all_and_is_not_the_default(written):
    path = written("xact: {allowed_hosts: []}")
    assert read_settings(Flags(config=path), {}).xact.allowed_hosts == ()
