from dataclasses import dataclass
from pathlib import Path

from forebay.core.breaker import BreakerPolicy
from forebay.core.errors import Unusable

EXTERNAL_DOWNLOAD = BreakerPolicy(failures=10, open_seconds=30.0, successes=3, probes=5)


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """`ca_file` vouches in addition to the system's certificates."""

    ca_file: Path | None = None
    connect_seconds: float = 10.0
    keep_alive_seconds: float = 30.0
    dns_threads: int = 16
    dns_cache_seconds: int = 60


@dataclass(frozen=True, slots=True)
class DownloadSettings:
    """A download slower than `rate_bytes_min` a second for `rate_window_seconds` is given up."""

    concurrency: int = 50
    file_bytes_max: int = 2**30
    total_seconds: float = 300.0
    head_seconds: float = 30.0
    rate_window_seconds: float = 30.0
    rate_bytes_min: int = 10 * 2**10
    breaker: BreakerPolicy = EXTERNAL_DOWNLOAD
    connections: ConnectionSettings = ConnectionSettings()

    def __post_init__(self) -> None:
        amounts = (self.concurrency, self.file_bytes_max, self.rate_bytes_min)
        spans = (self.total_seconds, self.head_seconds, self.rate_window_seconds)
        if min(amounts) < 1 or min(spans) <= 0:
            raise Unusable(
                "Downloads need a concurrency of 1 or more, sizes of 1 byte or more and times "
                "longer than nothing; mend the settings of downloads."
            )
