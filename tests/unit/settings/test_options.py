import json
from pathlib import Path

import pytest

from forebay.broker.settings import EmbeddedSettings, Secret
from forebay.settings import Flags, Settings, TrialKafka, azure, options, read_settings
from forebay.settings.options import OPTIONS

SERVERS = {"kafka.connection.bootstrap_servers": "k:1"}
SASL = SERVERS | {
    "kafka.connection.security_protocol": "SASL_SSL",
    "kafka.connection.sasl_mechanism": "SCRAM-SHA-512",
    "kafka.connection.sasl_plain_username": "app",
    "kafka.connection.sasl_plain_password": "hunter2",
}
ONELAKE = "abfss://c@a.example/lakehouse"
HERE = Path(__file__)

# Key: what a file says, how a variable writes it, where it arrives, as what, what else it needs.
ARRIVALS = {
    "dir": ("elsewhere", "", lambda s: s.folder, Path("elsewhere"), {}),
    "broker": ("kafka", "kafka", lambda s: s.broker, TrialKafka(), {}),
    "kafka.connection.bootstrap_servers": (
        *("k:1, l:2", "k:1, l:2", lambda s: s.broker.bootstrap_servers, "k:1,l:2", {}),
    ),
    "kafka.connection.security_protocol": (
        *("ssl", "ssl", lambda s: s.broker.security_protocol, "SSL", SERVERS),
    ),
    "kafka.connection.sasl_mechanism": (
        *("plain", "plain", lambda s: s.broker.sasl_mechanism, "PLAIN", SASL),
    ),
    "kafka.connection.sasl_plain_username": ("me", "me", lambda s: s.broker.username, "me", SASL),
    "kafka.connection.sasl_plain_password": (
        *("sesame", "sesame", lambda s: s.broker.password, Secret("sesame"), SASL),
    ),
    "kafka.connection.ssl_cafile": (
        *(str(HERE), str(HERE), lambda s: s.broker.ca_file, HERE, SERVERS),
    ),
    "kafka.connection.eventhub_connection_string": (
        *("Endpoint=sb://x", "Endpoint=sb://x", lambda s: s.broker.connection_string),
        *(Secret("Endpoint=sb://x"), {"broker": "eventhub"}),
    ),
    "kafka.connection.request_timeout_ms": (
        *(9_000, "", lambda s: s.broker.request_timeout_seconds, 9.0, SERVERS),
    ),
    "kafka.connection.metadata_max_age_ms": (
        *(9_000, "", lambda s: s.broker.metadata_max_age_seconds, 9.0, SERVERS),
    ),
    "kafka.connection.connections_max_idle_ms": (
        *(9_000, "", lambda s: s.broker.connection_idle_seconds, 9.0, SERVERS),
    ),
    "kafka.consumer_defaults.session_timeout_ms": (
        *(30_000, "30000", lambda s: s.consumer.session_timeout_seconds, 30.0, {}),
    ),
    "kafka.consumer_defaults.heartbeat_interval_ms": (
        *(3_000, "", lambda s: s.consumer.heartbeat_seconds, 3.0, {}),
    ),
    "kafka.consumer_defaults.max_poll_interval_ms": (
        *(60_000, "", lambda s: s.consumer.poll_interval_max_seconds, 60.0, {}),
    ),
    "kafka.topic_prefix": (
        *("p.", "p.", lambda s: s.xact.topics.uploads_retry, "p.xact.uploads.retry", {}),
    ),
    "kafka.xact.topics.events": ("a", "a", lambda s: s.xact.topics.events, "a", {}),
    "kafka.xact.topics.downloads_pending": (
        *("a", "a", lambda s: s.xact.topics.downloads_pending, "a", {}),
    ),
    "kafka.xact.topics.downloads_cached": (
        *("a", "a", lambda s: s.xact.topics.downloads_cached, "a", {}),
    ),
    "kafka.xact.topics.downloads_results": (
        *("a", "a", lambda s: s.xact.topics.downloads_results, "a", {}),
    ),
    "kafka.xact.topics.dlq": ("a", "a", lambda s: s.xact.topics.downloads_dlq, "a", {}),
    "kafka.xact.consumer_group_prefix": ("b", "b", lambda s: s.xact.group_prefix, "b", {}),
    "kafka.xact.retry_delays": (
        *([1, "2m"], "1,2m", lambda s: s.xact.retry.delays_seconds, (1.0, 120.0), {}),
    ),
    "kafka.xact.max_retries": (
        *(2, "2", lambda s: s.xact.retry.delays_seconds, (300.0, 600.0), {}),
    ),
    "kafka.xact.download.processing.concurrency": (
        *(20, "20", lambda s: s.xact.download_concurrency, 20, {}),
    ),
    "kafka.xact.download.processing.timeout_seconds": (
        *(60.5, "60.5", lambda s: s.xact.download_seconds, 60.5, {}),
    ),
    "kafka.xact.upload.processing.concurrency": (
        *(20, "20", lambda s: s.xact.upload_concurrency, 20, {}),
    ),
    "kafka.xact.result_processor.processing.batch_size": (
        *(500, "500", lambda s: s.xact.batch.records, 500, {}),
    ),
    "kafka.xact.result_processor.processing.batch_timeout_seconds": (
        *(1, "1", lambda s: s.xact.batch.seconds, 1.0, {}),
    ),
    "xact.allowed_hosts": (
        *(["A.example", ".b.example"], "a.example, .b.example,"),
        *(lambda s: s.xact.allowed_hosts, ("a.example", ".b.example"), {}),
    ),
    "xact.file_types": (["PDF", "xml"], "", lambda s: s.xact.file_types, ("pdf", "xml"), {}),
    "xact.follow_redirects": (True, "", lambda s: s.xact.follow_redirects, True, {}),
    "xact_eventhouse.dedup.xact_events_window_hours": (
        *(1, "1", lambda s: s.xact.seen_window_seconds, 3_600.0, {}),
    ),
    "storage.onelake_base_path": (
        *(ONELAKE, ONELAKE, lambda s: s.storage.files_of("other"), f"{ONELAKE}/other", {}),
    ),
    "storage.onelake_domain_paths.xact": (
        *(ONELAKE, ONELAKE, lambda s: s.storage.files_of("xact"), ONELAKE, {}),
    ),
    "storage.cache_dir": ("c", "c", lambda s: s.storage.cache_folder, Path("c"), {}),
    "storage.cache_max_bytes": (
        *("2 GiB", "", lambda s: s.storage.cache_bytes_max, 2 * 2**30, {}),
    ),
    "delta.enable_writes": (False, "", lambda s: s.xact.writes_tables, False, {}),
    "delta.xact.events_table_path": (
        *(f"{ONELAKE}/", ONELAKE, lambda s: s.xact.events_table, ONELAKE, {}),
    ),
    "delta.xact.inventory_table_path": (*("t", "t", lambda s: s.xact.attachments_table, "t", {}),),
    "delta.xact.failed_table_path": ("t", "t", lambda s: s.xact.failed_table, "t", {}),
    "azure.token_file": (str(HERE), str(HERE), lambda s: s.azure.token_file, HERE, {}),
    "azure.tenant_id": ("t", "t", lambda s: s.azure.tenant_id, "t", {}),
    "azure.client_id": ("c", "c", lambda s: s.azure.client_id, "c", {}),
    "azure.client_secret": ("s", "s", lambda s: s.azure.client_secret, "s", {}),
    "azure.federated_token_file": (
        *(str(HERE), str(HERE), lambda s: s.azure.federated_token_file, HERE, {}),
    ),
    "azure.account_name": ("a", "a", lambda s: s.azure.account_name, "a", {}),
    "azure.account_key": ("k", "k", lambda s: s.azure.account_key, "k", {}),
    "azure.endpoint": (
        "http://e.example",
        "http://e.example",
        lambda s: s.azure.endpoint,
        "http://e.example",
        {},
    ),
    "outbound.ca_file": (str(HERE), str(HERE), lambda s: s.tls_ca_file, HERE, {}),
    "outbound.file_max_bytes": (4096, "", lambda s: s.file_bytes_max, 4096, {}),
    "outbound.circuit_open_seconds": (2, "", lambda s: s.circuit_open_seconds, 2.0, {}),
    "health.port": (9_090, "9090", lambda s: s.health.port, 9_090, {}),
    "health.host": ("::1", "", lambda s: s.health.host, "::1", {}),
    "logging.level": ("INFO", "INFO", lambda s: s.log.level, "info", {}),
    "logging.format": ("tab", "tab", lambda s: s.log.format, "tab", {}),
}


def as_tree(values):
    tree = {}
    for key, value in values.items():
        *sections, name = key.split(".")
        section = tree
        for part in sections:
            section = section.setdefault(part, {})
        section[name] = value
    return json.dumps(tree)  # every JSON is YAML


def test_every_option_has_a_row_and_every_row_an_option():
    assert ARRIVALS.keys() == {option.key for option in OPTIONS}
    assert len(OPTIONS) == len(ARRIVALS)


def test_every_option_that_is_declared_is_on_the_list():
    named = [*vars(options).values(), *vars(azure).values()]
    declared = {value.key for value in named if isinstance(value, options.Option)}
    assert declared == {option.key for option in OPTIONS}


def test_no_variable_means_two_options():
    names = [name for option in OPTIONS for name in option.variables]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("key", ARRIVALS)
def test_what_the_file_says_arrives(key, written):
    value, _, look, expected, needs = ARRIVALS[key]
    settings = read_settings(Flags(config=written(as_tree(needs | {key: value}))), {})
    assert look(settings) == expected
    assert settings.chosen[0].origin.endswith("forebay.yaml:" + settings.chosen[0].key)
    assert key in {chosen.key for chosen in settings.chosen}


@pytest.mark.parametrize(
    ("key", "variable"),
    [(option.key, variable) for option in OPTIONS for variable in option.variables],
)
def test_what_the_environment_says_arrives_over_what_the_file_says(key, variable, written):
    value, text, look, expected, needs = ARRIVALS[key]
    other = as_tree(needs | {key: "kafka" if key == "broker" else value})
    settings = read_settings(Flags(config=written(other)), {variable: text})
    assert look(settings) == expected
    assert (key, variable) in {(chosen.key, chosen.origin) for chosen in settings.chosen}


@pytest.mark.parametrize(
    ("flags", "look", "expected"),
    [
        ({"broker": "embedded:x"}, lambda s: s.broker, EmbeddedSettings(Path("x"))),
        ({"folder": Path("y")}, lambda s: s.folder, Path("y")),
        ({"log_level": "error"}, lambda s: s.log.level, "error"),
        ({"log_format": "json"}, lambda s: s.log.format, "json"),
    ],
)
def test_a_flag_wins_over_environment_and_file(flags, look, expected, written):
    path = written("{dir: d, broker: kafka, logging: {level: debug, format: tab}}")
    environment = {"FOREBAY_BROKER": "kafka", "LOG_LEVEL": "info", "LOG_FORMAT": "tab"}
    settings = read_settings(Flags(config=path, **flags), environment)
    assert look(settings) == expected
    assert any(chosen.origin.startswith("--") for chosen in settings.chosen)


def test_without_a_word_everything_is_as_the_rooms_declare_it():
    settings = read_settings(Flags(), {})
    assert settings.chosen == settings.unused == ()
    folder = Path("forebay-data")
    plain = Settings(folder, EmbeddedSettings(folder), settings.log, settings.storage)
    assert settings == plain


def test_files_tables_and_cache_are_in_the_data_folder_until_somebody_says_where():
    settings = read_settings(Flags(folder=Path("d")), {})
    assert settings.storage.files_of("xact") == "d/files/xact"
    assert settings.storage.cache_folder == Path("d/cache")
    assert settings.tables_folder == Path("d/tables")


def test_a_domain_with_a_place_of_its_own_leaves_the_place_for_all_to_the_others():
    environment = {"ONELAKE_BASE_PATH": ONELAKE, "ONELAKE_XACT_PATH": "mine"}
    storage = read_settings(Flags(), environment).storage
    assert (storage.files_of("xact"), storage.files_of("b")) == ("mine", f"{ONELAKE}/b")


def test_a_second_run_writes_elsewhere_and_reads_the_same_events_in_groups_of_its_own():
    xact = read_settings(Flags(), {"KAFKA_TOPIC_PREFIX": "shadow."}).xact
    names = {name: getattr(xact.topics, name) for name in xact.topics.__slots__}
    assert names.pop("events") == "xact.events.raw"
    assert [name for name in names.values() if not name.startswith("shadow.xact.")] == []
    assert xact.group_prefix == "shadow-xact"


def test_all_names_of_the_plan_are_taken_together():
    settings = read_settings(
        Flags(),
        {
            "KAFKA_BOOTSTRAP_SERVERS": "kafka.example:9093",
            "KAFKA_SECURITY_PROTOCOL": "SSL",
            "KAFKA_EVENTS_TOPIC": "xact.events.raw",
            "KAFKA_CONSUMER_GROUP_PREFIX": "xact",
            "KAFKA_MAX_POLL_RECORDS": "100",
            "KAFKA_SESSION_TIMEOUT_MS": "30000",
            "DOWNLOAD_CONCURRENCY": "20",
            "BATCH_SIZE": "100",
            "BATCH_TIMEOUT_SECONDS": "5",
            "ONELAKE_FILES_PATH": f"{ONELAKE}/Files",
            "RETRY_DELAYS": "300,600,1200,2400",
            "MAX_RETRIES": "4",
            "LOG_LEVEL": "INFO",
            "METRICS_PORT": "9090",
            "AZURE_TENANT_ID": "xxx",
        },
    )
    assert settings.storage.files_of("xact") == f"{ONELAKE}/Files/xact"
    assert settings.xact.retry.in_place == 2
    assert settings.unused == ("KAFKA_MAX_POLL_RECORDS",)
