"""What a deployment may change of the xact pipeline; settings.py reads it."""

from dataclasses import dataclass, field

from forebay.core.batches import BatchRule
from forebay.core.retries import RetryPolicy

DOMAIN = "xact"
DAY_SECONDS = 86_400.0

ALLOWED_HOSTS = ("usw2-prod-xn-exportreceiver-publish.s3.us-west-2.amazonaws.com",)
FILE_TYPES = ("pdf", "xml", "jpg", "jpeg", "png", "gif", "bmp", "tiff", "tif", "webp")


@dataclass(frozen=True, slots=True)
class XactTopics:
    events: str = "xact.events.raw"
    downloads_pending: str = "xact.downloads.pending"
    downloads_cached: str = "xact.downloads.cached"
    downloads_results: str = "xact.downloads.results"
    downloads_retry: str = "xact.downloads.retry"
    downloads_dlq: str = "xact.downloads.dlq"
    uploads_retry: str = "xact.uploads.retry"
    uploads_dlq: str = "xact.uploads.dlq"
    events_retry: str = "xact.events.retry"
    events_dlq: str = "xact.events.dlq"


@dataclass(frozen=True, slots=True)
class XactSettings:
    """`allowed_hosts`: an exact host, or a suffix that begins with a dot; none refuses all.

    `development`: links to this machine are allowed, where one of these names it.
    """

    topics: XactTopics = field(default_factory=XactTopics)
    group_prefix: str = DOMAIN
    retry: RetryPolicy = field(default_factory=lambda: RetryPolicy(in_place=2))
    batch: BatchRule = field(default_factory=BatchRule)
    allowed_hosts: tuple[str, ...] = ALLOWED_HOSTS
    file_types: tuple[str, ...] = FILE_TYPES
    follow_redirects: bool = False
    download_concurrency: int = 50
    download_seconds: float = 300.0
    upload_concurrency: int = 10
    seen_window_seconds: float = DAY_SECONDS
    writes_tables: bool = True
    events_table: str | None = None
    attachments_table: str | None = None
    failed_table: str | None = None
    other_domains: tuple[str, ...] = ("claimx",)
    development: bool = False
