import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from forebay.core.errors import InvalidRequest
from forebay.outbound.connections import url_of
from forebay.outbound.errors import UrlRefused
from forebay.outbound.rules import HostRules, check_url

HTTPS = "https" + "://"
RULES = HostRules(("files.example", ".storage.example"))


@pytest.mark.parametrize(
    "entry",
    ["https" + "://files.example", "files.example/x", "files.example:443", "", "*.example", "a b"],
)
def test_an_entry_that_could_never_match_is_refused_with_what_to_write(entry):
    with pytest.raises(InvalidRequest, match="write a host such as"):
        HostRules((entry,))


def test_capitals_in_an_entry_mean_nothing():
    assert check_url(f"{HTTPS}files.example/x", HostRules(("Files.Example",))).host


def test_another_scheme_than_http_and_https_is_no_rule():
    with pytest.raises(InvalidRequest, match="https or http"):
        HostRules(("files.example",), schemes=("ftp",))


def test_an_address_may_be_allowed_by_itself():
    rules = HostRules(("8.8.8.8", "2606:4700::1111"))
    assert check_url(f"{HTTPS}8.8.8.8/x", rules).host == "8.8.8.8"
    target = check_url(f"{HTTPS}[2606:4700:0::1111]/x", rules)
    assert str(url_of(target)) == f"{HTTPS}[2606:4700::1111]/x"


def test_loopback_must_be_allowed_by_name_all_the_same():
    rules = HostRules(("files.example",), allow_loopback=True)
    for host in ("127.0.0.1", "localhost", "[::1]"):
        with pytest.raises(UrlRefused) as refused:
            check_url(f"{HTTPS}{host}:8443/x", rules)
        assert refused.value.kind == "host_refused"


def test_any_port_of_loopback_is_open_where_it_is_allowed_and_no_other():
    rules = HostRules(("127.0.0.1", "localhost", "files.example"), allow_loopback=True)
    assert check_url(f"{HTTPS}localhost:9/x", rules).port == 9
    with pytest.raises(UrlRefused) as refused:
        check_url(f"{HTTPS}files.example:9/x", rules)
    assert refused.value.kind == "port_refused"


def test_what_was_judged_for_other_rules_is_judged_again():
    url = f"{HTTPS}x.storage.example/x"
    assert check_url(url, RULES)
    assert check_url(url, RULES)
    with pytest.raises(UrlRefused):
        check_url(url, HostRules(("files.example",)))


def test_hosts_without_end_do_not_fill_the_memory():
    for number in range(3_000):
        check_url(f"{HTTPS}h{number}.storage.example/x", RULES)
    assert len(RULES._known) <= 1_024


PATHS = st.text(st.sampled_from("abc%2F+~/.;,=&?@:!$'()*-_"), max_size=40)


@given(PATHS)
def test_what_is_sent_is_what_the_link_says_to_the_letter(rest):
    url = url_of(check_url(f"{HTTPS}files.example/{rest}", RULES))
    assert url.raw_path_qs.rstrip("?") == f"/{rest}".rstrip("?")


@given(st.text(st.sampled_from("fx.:/?#@[]%\\ aé\t0127"), max_size=30))
def test_no_text_leads_where_the_client_reads_another_host(text):
    url = f"{HTTPS}{text}"
    try:
        target = check_url(url, HostRules((".f", ".a", ".x")))
    except UrlRefused:
        return
    assert URL(url, encoded=True).raw_host in {target.host, f"{target.host}."}
