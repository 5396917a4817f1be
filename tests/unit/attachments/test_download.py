"""From a link to a cached file, with and without links that can be renewed."""

import asyncio
from pathlib import Path

import pytest

from forebay.attachments.cache import Cache
from forebay.attachments.download import REFRESHES_MAX, DownloadTools, download
from forebay.attachments.files import Link
from forebay.outbound.downloads import Downloaded
from forebay.outbound.errors import DownloadFailed
from forebay.outbound.rules import HostRules
from forebay.testing.clock import FakeClock

EXPIRED = "https://files.example/a.pdf?X-Amz-Date=20200101T000000Z&X-Amz-Expires=60"
FRESH = "https://files.example/a.pdf?fresh"


class Host:
    """Answers each link as a test says; `asked` are the links it saw."""

    def __init__(self, **answers: object) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def fetch(self, url: str, into: Path, rules: HostRules) -> Downloaded:
        self.asked.append(url)
        answer = self.answers.get(url.partition("?")[2], None)
        if isinstance(answer, Exception):
            raise answer
        await asyncio.to_thread(into.write_bytes, b"content")
        return Downloaded(into, 7, "hash", "application/pdf", 0.1, 200, is_length_verified=True)


class Strategy:
    domain_name = "claims"
    rules = HostRules(allowed=("files.example",))

    def __init__(self, *links: str | None) -> None:
        self.links = list(links)
        self.asked_for: list[str] = []

    def can_refresh_expired_url(self) -> bool:
        return bool(self.links) or bool(self.asked_for)

    async def refresh_url(self, expired_url, context):
        self.asked_for.append(context["media"])
        return self.links.pop(0)

    def classify_error(self, error: Exception) -> str:
        return "auth" if getattr(error, "kind", "") == "not_found" else error.category

    def is_transient(self, status_code: int) -> bool:
        return status_code >= 500

    def should_follow_redirect(self, original_url: str, redirect_url: str) -> bool:
        return True

    def allowed_file_types(self):
        return ()

    def validate_file(self, filename: str, content_type: str) -> bool:
        return True


def expired() -> DownloadFailed:
    return DownloadFailed("expired", "The link has expired.")


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache", 10_000)


def run(link, host, strategy, cache):
    tools = DownloadTools(host, cache, strategy, FakeClock())
    return asyncio.run(download(link, tools))


def test_a_download_gives_the_cached_file_and_its_link(cache):
    file, link = run(Link(FRESH), Host(), Strategy(), cache)
    assert (file.size, file.sha256, file.path.read_bytes()) == (7, "hash", b"content")
    assert link.url == FRESH
    assert cache.file(str(file.path)) == file.path


def test_a_link_that_cannot_be_renewed_is_tried_as_it_is(cache):
    host = Host(**{EXPIRED.partition("?")[2]: expired()})
    with pytest.raises(DownloadFailed) as failed:
        run(Link(EXPIRED), host, Strategy(), cache)
    assert failed.value.kind == "expired"
    assert host.asked == [EXPIRED]


def test_a_link_that_says_that_it_expired_is_renewed_before_it_is_tried(cache):
    host, strategy = Host(), Strategy(FRESH)
    _, link = run(Link(EXPIRED, context={"media": "m1"}), host, strategy, cache)
    assert host.asked == [FRESH]
    assert strategy.asked_for == ["m1"]
    assert (link.url, link.refreshes) == (FRESH, 1)


def test_a_link_whose_server_says_that_it_expired_is_renewed(cache):
    host, strategy = Host(old=expired()), Strategy(FRESH)
    _, link = run(
        Link("https://files.example/a?old", context={"media": "m1"}), host, strategy, cache
    )
    assert link.url == FRESH


def test_a_link_is_not_renewed_for_ever(cache):
    host = Host(old=expired())
    old = "https://files.example/a?old"
    strategy = Strategy(*([old] * 10))
    with pytest.raises(DownloadFailed):
        run(Link(old, context={"media": "m1"}), host, strategy, cache)
    assert len(strategy.asked_for) == REFRESHES_MAX


def test_a_sender_without_another_link_ends_the_attachment_with_a_sentence(cache):
    strategy = Strategy(None)
    with pytest.raises(DownloadFailed, match=r"gives no other.+with a fresh link") as failed:
        run(Link(EXPIRED, context={"media": "m1"}), Host(), strategy, cache)
    assert failed.value.category == "permanent"


def test_the_domain_decides_what_a_failure_is(cache):
    host = Host(fresh=DownloadFailed("not_found", "There is no such file."))
    with pytest.raises(DownloadFailed) as failed:
        run(Link(FRESH), host, Strategy(), cache)
    assert failed.value.category == "auth"
