"""How xact's links and files behave."""

import asyncio

import pytest

from forebay.domains.xact.settings import XactSettings
from forebay.domains.xact.strategy import XactStrategy
from forebay.outbound.errors import DownloadFailed, UrlRefused
from forebay.outbound.rules import check_url

A, B = "https://files.example/a", "https://files.example/b"


def strategy(**settings):
    return XactStrategy(XactSettings(allowed_hosts=("files.example",), **settings))


def test_a_link_of_xact_cannot_be_renewed():
    assert not strategy().can_refresh_expired_url()
    assert asyncio.run(strategy().refresh_url(A, {})) is None


@pytest.mark.parametrize(
    ("code", "is_transient"), [(429, True), (503, True), (401, False), (404, False)]
)
def test_what_a_server_says_may_pass_or_not(code, is_transient):
    assert strategy().is_transient(code) is is_transient


def test_a_failure_keeps_the_category_it_came_with():
    assert strategy().classify_error(DownloadFailed("busy", "…")) == "transient"
    assert strategy().classify_error(DownloadFailed("expired", "…")) == "permanent"


def test_redirects_are_followed_only_where_that_is_set_and_never_to_another_host():
    assert not strategy().should_follow_redirect(A, B)
    assert strategy(follow_redirects=True).should_follow_redirect(A, B)
    assert not strategy(follow_redirects=True).should_follow_redirect(A, "https://other.example/")


def test_a_file_is_of_a_type_that_is_allowed():
    assert strategy().validate_file("a/Report.PDF", "application/pdf")
    assert not strategy().validate_file("a/run.exe", "application/pdf")
    assert "pdf" in strategy().allowed_file_types()


@pytest.mark.parametrize(
    "url", ["http://files.example/a.pdf", "https://other.example/a.pdf", "https://127.0.0.1/a.pdf"]
)
def test_a_link_to_elsewhere_is_refused(url):
    with pytest.raises(UrlRefused):
        check_url(url, strategy().rules)


def test_in_development_this_machine_is_allowed_where_it_is_named():
    rules = XactStrategy(XactSettings(allowed_hosts=("localhost",), development=True)).rules
    check_url("https://localhost:8080/a.pdf", rules)
    for url in ("https://127.0.0.1:8080/a.pdf", "http://localhost:8080/a.pdf"):
        with pytest.raises(UrlRefused):
            check_url(url, rules)
