"""Links that are refused before any name is resolved or any socket is made."""

import pytest

from contracts.downloads.hosts import HTTP, HTTPS
from forebay.outbound.errors import UrlRefused
from forebay.outbound.rules import HostRules, check_url

DENIED = "denied_address"
NONCANONICAL = "noncanonical_address"
INVALID = "invalid_host"
INTERNAL = "internal_name"
BAD = "bad_character"

# Everything public is allowed, so that nothing is refused for its host alone.
OPEN = HostRules((".com", ".io", ".example", "8.8.8.8"), schemes=("https", "http"))

CASES = {
    1: [(DENIED, f"{HTTP}127.0.0.1/")],
    2: [(NONCANONICAL, f"{HTTP}2130706433/")],
    3: [(NONCANONICAL, f"{HTTP}0x7f000001/"), (NONCANONICAL, f"{HTTP}0X7F000001/")],
    4: [(NONCANONICAL, f"{HTTP}0177.0.0.1/")],
    5: [(NONCANONICAL, f"{HTTP}{host}/") for host in ("0x7f.1", "127.1", "127.0.1")],
    6: [(NONCANONICAL, f"{HTTP}0/"), (DENIED, f"{HTTP}0.0.0.0/")],
    7: [(INVALID, f"{HTTP}{host}/") for host in ("08.0.0.1", "256.1.1.1", "1.2.3.4.5")],
    8: [(DENIED, f"{HTTP}[::1]/"), (DENIED, f"{HTTP}[::]/")],
    9: [
        (DENIED, f"{HTTP}[::ffff:127.0.0.1]/"),
        (DENIED, f"{HTTP}[::ffff:7f00:1]/"),
        (DENIED, f"{HTTP}[0:0:0:0:0:ffff:169.254.169.254]/"),
    ],
    10: [(DENIED, f"{HTTP}[::127.0.0.1]/")],
    11: [(DENIED, f"{HTTP}[64:ff9b::a9fe:a9fe]/"), (DENIED, f"{HTTP}[64:ff9b:1::a00:1]/")],
    12: [(DENIED, f"{HTTP}[2002:7f00:1::]/"), (DENIED, f"{HTTP}[2001::1]/")],
    13: [(DENIED, f"{HTTP}[::ffff:0:127.0.0.1]/")],
    14: [(INVALID, f"{HTTP}[fe80::1%25eth0]/"), (INVALID, f"{HTTP}[fe80::1%eth0]/")],
    15: [(DENIED, f"{HTTP}[{host}]/") for host in ("fd00:ec2::254", "fec0::1", "ff02::1")],
    16: [(DENIED, f"{HTTP}169.254.169.254/"), (DENIED, f"{HTTP}169.254.170.2/")],
    17: [
        (DENIED, f"{HTTP}{host}/") for host in ("168.63.129.16", "192.0.0.192", "100.100.100.200")
    ],
    18: [(DENIED, f"{HTTP}169.254.169.254./"), (INTERNAL, f"{HTTP}localhost./")],
    19: [
        (INTERNAL, f"{HTTP}{host}/")
        for host in ("LOCALHOST", "foo.localhost", "x.internal", "x.local", "intranet")
    ],
    20: [(INTERNAL, f"{HTTP}metadata.google.internal/")],
    21: [("userinfo", f"{HTTPS}user:pw@files.example/x")],
    22: [
        ("userinfo", f"{HTTPS}files.example@127.0.0.1/"),
        ("userinfo", f"{HTTPS}files.example:80@127.0.0.1:8080/"),
    ],
    23: [(DENIED, f"{HTTPS}127.0.0.1#@files.example/")],
    24: [(BAD, f"{HTTPS}files.example\\@127.0.0.1/"), (BAD, f"{HTTPS}127.0.0.1\\@files.example/")],
    25: [
        (BAD, f"{HTTPS}files{character}.example/{place}")
        for character, place in (
            *(("\t", ""), ("\r\n", ""), (" ", ""), ("\0", ""), ("\x7f", "")),
            *(("", "a b"), ("", "a\tb"), ("", "a\r\nHost: x"), ("", "\u00fc"), ("", "a\\b")),
        )
    ],
    26: [
        (BAD, f"{HTTP}{host}/")
        for host in (
            "\u2460\u2461\u2466.\u24ea.\u24ea.\u2460",
            "\uff11\uff12\uff17.0.0.1",
            "127\u30020\u30020\u30021",
        )
    ],
    27: [
        (BAD, f"{HTTPS}b\u00fccher.example/"),
        (INVALID, f"{HTTPS}xn--999999999999.example/"),
        ("host_refused", f"{HTTPS}xn--pypal-4ve.net/"),
    ],
    28: [(INVALID, f"{HTTPS}%31%32%37.0.0.1/"), (INVALID, f"{HTTPS}a.b%00.com/")],
    29: [
        ("no_host", "http:///127.0.0.1/"),
        ("no_host", "http:127.0.0.1/"),
        ("no_scheme", "//127.0.0.1/"),
        ("no_scheme", ""),
        ("no_host", HTTPS),
    ],
    30: [
        ("scheme_refused", url)
        for url in (
            *("file:///etc/passwd", "ftp://h/x", "gopher://h/", "data:,x", "dict://h/"),
            "jar:http:x!/",
        )
    ],
    32: [
        ("port_refused", f"{HTTPS}files.example:{port}/x")
        for port in ("0", "22", "99999", "80:90", "-1", "+443", "", "443a", "80")
    ]
    + [(BAD, f"{HTTPS}files.example:\uff18\uff10/x")],
    33: [
        (INVALID, f"{HTTPS}{host}/")
        for host in (
            "a" * 64 + ".example",
            ".".join(["a" * 60] * 5) + ".example",
            *("a..example", "-a.example", "a-.example", "a_b.example", ".example"),
        )
    ],
    34: [("too_long", f"{HTTPS}files.example/" + "a" * 8_192)],
    36: [(INVALID, f"{HTTPS}[v1.fe]/"), (INVALID, f"{HTTPS}[]/"), (INVALID, f"{HTTPS}[::1/")],
}


@pytest.mark.parametrize(
    "links", [pytest.param(links, id=f"case-{number:02d}") for number, links in CASES.items()]
)
def test_a_hostile_link_is_refused_for_what_is_wrong_with_it(links):
    for kind, url in links:
        with pytest.raises(UrlRefused) as refused:
            check_url(url, OPEN)
        assert (refused.value.kind, refused.value.category) == (kind, "permanent"), url
        assert "/x" not in str(refused.value)


@pytest.mark.parametrize("case", [pytest.param(23, id="case-23-fragment")])
def test_a_fragment_is_not_sent(case):
    assert check_url(f"{HTTPS}ok.example/x?a=1#frag?b", OPEN)[2:] == (443, "/x", "a=1")


@pytest.mark.parametrize("case", [pytest.param(30, id="case-30-capitals")])
def test_capitals_in_scheme_and_host_mean_nothing(case):
    assert check_url("HTTPS" + "://EX.example./A?B", OPEN) == (
        "https",
        "ex.example",
        443,
        "/A",
        "B",
    )


@pytest.mark.parametrize("case", [pytest.param(31, id="case-31")])
def test_http_is_refused_where_only_https_is_allowed(case):
    with pytest.raises(UrlRefused) as refused:
        check_url(f"{HTTP}files.example/x", HostRules((".example",)))
    assert refused.value.kind == "scheme_refused"


@pytest.mark.parametrize("case", [pytest.param(32, id="case-32-default")])
def test_the_port_of_the_scheme_and_an_allowed_one_may_be_written(case):
    rules = HostRules((".example",), ports=(8443,))
    assert check_url(f"{HTTPS}files.example:443/x", rules).port == 443
    assert check_url(f"{HTTPS}files.example:8443/x", rules).port == 8443


@pytest.mark.parametrize(
    ("allowed", "host"),
    [
        pytest.param((".amazonaws.example",), host, id="case-35")
        for host in ["evil-amazonaws.example"]
    ]
    + [
        pytest.param(
            (".amazonaws.example",), "amazonaws.example.evil.example", id="case-35-suffix"
        ),
        pytest.param((".amazonaws.example",), "amazonaws.example", id="case-35-bare"),
        pytest.param(("files.example",), "x.files.example", id="case-35-below"),
        pytest.param((), "files.example", id="case-35-empty"),
        pytest.param((".example",), "8.8.4.4", id="case-35-address"),
    ],
)
def test_a_host_that_is_not_on_the_list_is_refused(allowed, host):
    with pytest.raises(UrlRefused, match="add it to the allowed hosts") as refused:
        check_url(f"{HTTPS}{host}/x", HostRules(allowed))
    assert refused.value.kind == "host_refused"
