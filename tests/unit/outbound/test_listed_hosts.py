import pytest

from forebay import Pipeline
from forebay.core.errors import InvalidRequest
from forebay.outbound.errors import UrlRefused
from forebay.outbound.listed_hosts import rules_of
from forebay.outbound.rules import check_url

HTTP, HTTPS = "http" + "://", "https" + "://"


def is_reached(url: str, hosts: list[str]) -> bool:
    for rules in rules_of(hosts):
        try:
            check_url(url, rules)
        except UrlRefused:
            continue
        return True
    return False


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (f"{HTTPS}bank.example/charge", True),
        (f"{HTTPS}bank.example:8443/charge", True),
        (f"{HTTPS}a.partner.example/", True),
        (f"{HTTP}localhost:8080/", True),
        (f"{HTTP}[::1]:9/", True),
        (f"{HTTP}bank.example/charge", False),
        (f"{HTTPS}bank.example:9/charge", False),
        (f"{HTTPS}other.example/", False),
        (f"{HTTP}127.0.0.1:8080/", False),
    ],
)
def test_a_pipeline_reaches_the_hosts_it_lists_and_local_ones_only_where_they_are_listed(
    url, expected
):
    hosts = ["Bank.example:8443", ".partner.example", "localhost:8080", "[::1]:9"]
    assert is_reached(url, hosts) is expected


def test_without_hosts_nothing_is_reached():
    assert not is_reached(f"{HTTPS}bank.example/", [])


@pytest.mark.parametrize(
    "hosts", ["bank.example", ["https" + "://bank.example"], ["bank.example:x"]]
)
def test_a_list_that_could_never_match_is_refused_at_the_declaration(hosts):
    with pytest.raises(InvalidRequest, match="write a"):
        Pipeline("shop", hosts=hosts)
