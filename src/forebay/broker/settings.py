from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from forebay.core.errors import Unusable

RECORD_BYTES_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    delivery_timeout_seconds: float = 30.0
    linger_seconds: float = 0.005
    pending_records_max: int = 100_000
    pending_bytes_max: int = 64 * 2**20


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """`session_timeout_seconds` finds a frozen process, `poll_interval_max_seconds` a hung one."""

    client_id: str = "forebay"
    session_timeout_seconds: float = 10.0
    poll_interval_max_seconds: float = 300.0
    heartbeat_seconds: float = 1.0
    prefetch_bytes_max: int = 16 * 2**20
    metadata_refresh_seconds: float = 30.0
    group_protocol: Literal["classic", "consumer"] = "classic"
    isolation_level: Literal["read_committed", "read_uncommitted"] = "read_committed"
    response_bytes_max: int = 100_000_000

    def __post_init__(self) -> None:
        if self.heartbeat_seconds * 2 > self.session_timeout_seconds:
            raise Unusable(
                f"A heartbeat every {self.heartbeat_seconds:g} s cannot keep a session of "
                f"{self.session_timeout_seconds:g} s alive; set heartbeat_seconds to at most half "
                f"of session_timeout_seconds."
            )


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    folder: Path
    record_bytes_max: int = RECORD_BYTES_MAX
    maintenance_seconds: float = 5.0
    wal_bytes_max: int = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Secret:
    """A value whose repr gives nothing away."""

    reveal: str = field(repr=False)

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__


@dataclass(frozen=True, slots=True)
class Token:
    value: Secret
    expires_at: float
    principal: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """`token` is asked on a thread of the client's own and must answer within seconds."""

    bootstrap_servers: str
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = None
    username: str | None = None
    password: Secret | None = None
    token: Callable[[], Token] | None = None
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    key_password: Secret | None = None
    record_bytes_max: int = RECORD_BYTES_MAX
    may_create_topics: bool = True
    connection_idle_seconds: float = 180.0
    metadata_max_age_seconds: float = 180.0
    request_timeout_seconds: float = 60.0
