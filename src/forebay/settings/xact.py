"""What a deployment changes of xact."""

from dataclasses import replace

from forebay.core.batches import BatchRule
from forebay.core.errors import ForebayError
from forebay.core.retries import RetryPolicy
from forebay.core.topics import check_collision, check_name
from forebay.domains.xact.settings import DOMAIN, XactSettings, XactTopics
from forebay.settings import options
from forebay.settings.option import Option
from forebay.settings.values import Values

_DEFAULTS = XactSettings()


def read_xact(values: Values) -> XactSettings:
    return replace(
        _DEFAULTS,
        topics=_topics(values),
        group_prefix=_group_prefix(values),
        retry=_retry(values),
        batch=BatchRule(values.get(options.BATCH_SIZE), values.get(options.BATCH_TIMEOUT)),
        allowed_hosts=values.get(options.ALLOWED_HOSTS),
        file_types=values.get(options.FILE_TYPES),
        follow_redirects=values.get(options.FOLLOW_REDIRECTS),
        download_concurrency=values.get(options.DOWNLOAD_CONCURRENCY),
        download_seconds=values.get(options.DOWNLOAD_TIMEOUT),
        upload_concurrency=values.get(options.UPLOAD_CONCURRENCY),
        seen_window_seconds=values.get(options.SEEN_WINDOW) * 3_600,
        writes_tables=values.get(options.ENABLE_WRITES),
        events_table=values.get(options.EVENTS_TABLE),
        attachments_table=values.get(options.INVENTORY_TABLE),
        failed_table=values.get(options.FAILED_TABLE),
    )


def _topics(values: Values) -> XactTopics:
    """What others write keeps its name; what we write has the prefix, and is read with it."""
    _check_topics(values)
    prefix = values.get(options.TOPIC_PREFIX) or ""
    names = _DEFAULTS.topics
    return XactTopics(
        events=values.get(options.TOPIC_EVENTS),
        downloads_pending=prefix + values.get(options.TOPIC_PENDING),
        downloads_cached=prefix + values.get(options.TOPIC_CACHED),
        downloads_results=prefix + values.get(options.TOPIC_RESULTS),
        downloads_retry=prefix + names.downloads_retry,
        downloads_dlq=prefix + values.get(options.TOPIC_DLQ),
        uploads_retry=prefix + names.uploads_retry,
        uploads_dlq=prefix + names.uploads_dlq,
        events_retry=prefix + names.events_retry,
        events_dlq=prefix + names.events_dlq,
    )


def _check_topics(values: Values) -> None:
    prefix = values.get(options.TOPIC_PREFIX) or ""
    taken: dict[str, Option[str]] = {}
    for option in (
        *(options.TOPIC_EVENTS, options.TOPIC_PENDING, options.TOPIC_CACHED),
        *(options.TOPIC_RESULTS, options.TOPIC_DLQ),
    ):
        name = values.get(option)
        if option is not options.TOPIC_EVENTS:
            name = prefix + name
        _check_topic(values, option, name, taken)
        taken[name] = option


def _check_topic(
    values: Values, option: Option[str], name: str, taken: dict[str, Option[str]]
) -> None:
    if other := taken.get(name):
        values.problem(
            f"{values.name(option)} is {name!r}, as {values.name(other)} is; write a topic of its "
            f"own."
        )
    try:
        check_name(name)
        check_collision(name, taken)
    except ForebayError as problem:
        values.problem(f"{values.name(option)}: {problem}")


def _group_prefix(values: Values) -> str:
    """A run that writes elsewhere must not share groups with the first, nor take its events."""
    topic_prefix = values.get(options.TOPIC_PREFIX) or ""
    return values.get(options.GROUP_PREFIX) or f"{topic_prefix}{DOMAIN}".replace(".", "-")


def _retry(values: Values) -> RetryPolicy:
    delays = values.get(options.RETRY_DELAYS)
    wanted = values.get(options.MAX_RETRIES)
    if wanted is not None and wanted > len(delays):
        allowed = f"{values.name(options.RETRY_DELAYS)} has {len(delays)}"
        values.problem(
            f"{values.name(options.MAX_RETRIES)} is {wanted}, but {allowed}; write at most "
            f"{len(delays)}, or more delays."
        )
    return replace(_DEFAULTS.retry, delays_seconds=delays[:wanted])
