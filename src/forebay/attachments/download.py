"""From a link to a file in the cache."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from forebay.attachments.cache import Cache
from forebay.attachments.files import CachedFile, Link
from forebay.attachments.strategy import DomainStrategy
from forebay.core.clock import Clock
from forebay.outbound.downloads import Downloaded
from forebay.outbound.errors import DownloadFailed
from forebay.outbound.expiry import is_expired
from forebay.outbound.rules import HostRules

REFRESHES_MAX = 3
REFRESH_WITHIN_SECONDS = 60.0


class Fetches(Protocol):
    async def fetch(self, url: str, into: Path, rules: HostRules) -> Downloaded: ...


@dataclass(frozen=True, slots=True)
class DownloadTools:
    downloads: Fetches
    cache: Cache
    strategy: DomainStrategy
    clock: Clock


async def download(link: Link, tools: DownloadTools) -> tuple[CachedFile, Link]:
    """The file, and the link that gave it. Raises DownloadFailed, as the domain classifies it.

    A link that has expired, or is about to, is asked for anew where the domain can do that.
    """
    link = await _fresh(link, tools)
    while True:
        try:
            return await _fetch(link, tools), link
        except DownloadFailed as failed:
            failed.category = tools.strategy.classify_error(failed)
            if failed.kind != "expired" or not _may_refresh(link, tools):
                raise
            link = await _refreshed(link, tools)


async def _fetch(link: Link, tools: DownloadTools) -> CachedFile:
    place = tools.cache.place()
    got = await tools.downloads.fetch(link.url, place, tools.strategy.rules)
    return CachedFile(got.path, got.bytes, got.sha256, got.content_type)


async def _fresh(link: Link, tools: DownloadTools) -> Link:
    """A link that says itself when it ends need not be tried to know that it did."""
    soon = tools.clock.now() + REFRESH_WITHIN_SECONDS
    if _may_refresh(link, tools) and is_expired(link.url, soon):
        return await _refreshed(link, tools)
    return link


def _may_refresh(link: Link, tools: DownloadTools) -> bool:
    return tools.strategy.can_refresh_expired_url() and link.refreshes < REFRESHES_MAX


async def _refreshed(link: Link, tools: DownloadTools) -> Link:
    url = await tools.strategy.refresh_url(link.url, link.context)
    if url is None:
        raise DownloadFailed(
            "expired",
            "The link has expired and its sender gives no other. It is not tried again; ask the "
            "sender to send the event with a fresh link.",
        )
    return replace(link, url=url, refreshes=link.refreshes + 1)
