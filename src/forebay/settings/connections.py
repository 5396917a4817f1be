"""Which broker, how to get into it, and how its readers behave."""

from pathlib import Path

from forebay.broker.settings import ConsumerSettings, EmbeddedSettings, KafkaSettings, Secret
from forebay.identity import AzureSettings
from forebay.settings import azure, options
from forebay.settings.slices import BrokerSettings, EventHubs, TrialKafka
from forebay.settings.values import Values, shown_value


def read_broker(values: Values, folder: Path) -> BrokerSettings:
    url, servers = values.get(options.BROKER), values.get(options.BOOTSTRAP_SERVERS)
    names_servers_first = values.rank(options.BOOTSTRAP_SERVERS) < values.rank(options.BROKER)
    if servers is not None and names_servers_first:
        return _kafka(values, values.name(options.BOOTSTRAP_SERVERS), servers)
    if url is not None:
        return _named_broker(values, url, folder)
    return EmbeddedSettings(folder)


def read_consumer(values: Values) -> ConsumerSettings:
    session = values.get(options.SESSION_TIMEOUT)
    heartbeat = values.get(options.HEARTBEAT)
    poll_interval_max = values.get(options.POLL_INTERVAL_MAX)
    if heartbeat * 2 > session:
        values.problem(
            f"{values.name(options.SESSION_TIMEOUT)} is {session}, with a heartbeat every "
            f"{heartbeat} ms; write at least twice that, or less as {options.HEARTBEAT.ways}."
        )
        return ConsumerSettings()
    if poll_interval_max < session:
        values.problem(
            f"{values.name(options.POLL_INTERVAL_MAX)} is {poll_interval_max}, less than the "
            f"session timeout of {session} ms; write at least that."
        )
    return ConsumerSettings(
        session_timeout_seconds=session / 1000,
        heartbeat_seconds=heartbeat / 1000,
        poll_interval_max_seconds=poll_interval_max / 1000,
    )


def _named_broker(values: Values, url: str, folder: Path) -> BrokerSettings:
    source = values.name(options.BROKER)
    if url == "kafka":
        return TrialKafka()
    if url == "eventhub":
        return _event_hubs(values, source)
    if url == "embedded":
        return EmbeddedSettings(folder)
    if url.startswith("embedded:"):
        return EmbeddedSettings(_embedded_folder(values, url, folder))
    return _kafka(values, source, url.removeprefix("kafka://"))


def _embedded_folder(values: Values, url: str, otherwise: Path) -> Path:
    source = values.name(options.BROKER)
    place = url.removeprefix("embedded:")
    if place.startswith("//") and not place.startswith("///"):
        values.problem(
            f"{source} is {_shown(url)}; after two slashes a host would follow. Write "
            f"embedded:{place[2:]} for a folder here or embedded:///{place[2:]} from the root."
        )
    if not place.strip("/"):
        values.problem(f"{source} is {_shown(url)}, without a folder; write embedded:DIR.")
        return otherwise
    return Path(place.removeprefix("//")).expanduser()


def _event_hubs(values: Values, source: str) -> EventHubs:
    secret = values.get(options.EVENTHUB_CONNECTION)
    if secret is None and not values.is_said(options.EVENTHUB_CONNECTION):
        values.problem(
            f"{source} is eventhub, but EVENTHUB_CONNECTION_STRING is not set; set it to the "
            f"connection string of the namespace (Endpoint=sb://…)."
        )
    return EventHubs(secret or Secret(""))


def _kafka(values: Values, source: str, servers: str) -> KafkaSettings:
    for server in servers.split(","):
        if problem := _server_problem(server.strip()):
            values.problem(f"{source}: {problem}; write kafka://host:port[,host:port].")
    _check_sasl(values)
    return KafkaSettings(
        bootstrap_servers=",".join(server.strip() for server in servers.split(",")),
        security_protocol=values.get(options.SECURITY_PROTOCOL),
        sasl_mechanism=values.get(options.SASL_MECHANISM),
        username=values.get(options.SASL_USERNAME),
        password=values.get(options.SASL_PASSWORD),
        ca_file=values.get(options.SSL_CAFILE),
        connection_idle_seconds=values.get(options.CONNECTIONS_MAX_IDLE) / 1000,
        metadata_max_age_seconds=values.get(options.METADATA_MAX_AGE) / 1000,
        request_timeout_seconds=values.get(options.REQUEST_TIMEOUT) / 1000,
    )


def _check_sasl(values: Values) -> None:
    protocol = values.get(options.SECURITY_PROTOCOL)
    mechanism = values.get(options.SASL_MECHANISM)
    protocol_name = values.name(options.SECURITY_PROTOCOL)
    mechanism_name = values.name(options.SASL_MECHANISM)
    wants_sasl = protocol.startswith("SASL_")
    if wants_sasl and not values.is_said(options.SASL_MECHANISM):
        values.problem(
            f"{protocol_name} is {protocol}, but {mechanism_name} is not set; write PLAIN, "
            f"SCRAM-SHA-256 or SCRAM-SHA-512 as {options.SASL_MECHANISM.ways}."
        )
    if not wants_sasl and mechanism is not None:
        values.problem(
            f"{mechanism_name} is {mechanism}, but {protocol_name} is {protocol}; write SASL_SSL "
            f"(or SASL_PLAINTEXT on a trusted network) as {options.SECURITY_PROTOCOL.ways}."
        )
    if wants_sasl and mechanism == "OAUTHBEARER":
        values.problem(
            f"{mechanism_name} is OAUTHBEARER, which needs a token provider that settings cannot "
            f"name yet; write PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."
        )
    elif wants_sasl and mechanism and not _has_credentials(values):
        values.problem(
            f"{mechanism} needs credentials; set {options.SASL_USERNAME.ways} and "
            f"{options.SASL_PASSWORD.ways}."
        )


def _has_credentials(values: Values) -> bool:
    return values.is_said(options.SASL_USERNAME) and values.is_said(options.SASL_PASSWORD)


def _server_problem(server: str) -> str | None:
    if "@" in server:
        return (
            "a broker address holds no credentials (set KAFKA_SASL_PLAIN_USERNAME and "
            "KAFKA_SASL_PLAIN_PASSWORD)"
        )
    host, _, port = server.rpartition(":")
    if "/" in server:
        return f"{server!r} has a path, a broker address has none"
    if not host or (":" in host and not (host.startswith("[") and host.endswith("]"))):
        return f"{server!r} is not host:port"
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65_535):
        return f"{server!r} has no port between 1 and 65535"
    return None


def _shown(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    return shown_value(f"{scheme}{mark}…@{rest.rpartition('@')[2]}" if "@" in rest else url)


def read_azure(values: Values) -> AzureSettings:
    return AzureSettings(
        token_file=values.get(azure.TOKEN_FILE),
        tenant_id=values.get(azure.TENANT),
        client_id=values.get(azure.CLIENT),
        client_secret=_revealed(values.get(azure.SECRET)),
        federated_token_file=values.get(azure.FEDERATED),
        account_name=values.get(azure.ACCOUNT),
        account_key=_revealed(values.get(azure.KEY)),
        endpoint=values.get(azure.ENDPOINT),
    )


def _revealed(secret: Secret | None) -> str | None:
    return secret.reveal if secret else None
