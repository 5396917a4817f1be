"""Links that the ingester must refuse, names that must not become paths, values that are no events.

Authorities stand without their scheme, which is put before them when they are used.
"""

import json
from collections.abc import Mapping
from typing import Any

from forebay.simulator.endings import FileHostAddress

DENIED_AUTHORITIES: tuple[tuple[str, str], ...] = (
    ("2130706433", "noncanonical_address"),
    ("0x7f000001", "noncanonical_address"),
    ("0177.0.0.1", "noncanonical_address"),
    ("0x7f.1", "noncanonical_address"),
    ("127.1", "noncanonical_address"),
    ("127.0.1", "noncanonical_address"),
    ("0", "noncanonical_address"),
    ("0.0.0.0", "denied_address"),  # noqa: S104  nothing is bound to it
    ("10.0.0.5", "denied_address"),
    ("192.168.1.1", "denied_address"),
    ("100.64.0.1", "denied_address"),
    ("08.0.0.1", "invalid_host"),
    ("256.1.1.1", "invalid_host"),
    ("1.2.3.4.5", "invalid_host"),
    ("[::]", "denied_address"),
    ("[::ffff:7f00:1]", "denied_address"),
    ("[0:0:0:0:0:ffff:169.254.169.254]", "denied_address"),
    ("[::127.0.0.1]", "denied_address"),
    ("[64:ff9b::a9fe:a9fe]", "denied_address"),
    ("[64:ff9b:1::a00:1]", "denied_address"),
    ("[2002:7f00:1::]", "denied_address"),
    ("[2001::1]", "denied_address"),
    ("[::ffff:0:127.0.0.1]", "denied_address"),
    ("[fe80::1%25eth0]", "invalid_host"),
    ("[fd00:ec2::254]", "denied_address"),
    ("[fec0::1]", "denied_address"),
    ("[ff02::1]", "denied_address"),
    ("[v1.fe]", "invalid_host"),
    ("169.254.169.254", "denied_address"),
    ("169.254.169.254.", "denied_address"),
    ("169.254.170.2", "denied_address"),
    ("168.63.129.16", "denied_address"),
    ("192.0.0.192", "denied_address"),
    ("100.100.100.200", "denied_address"),
    ("metadata.google.internal", "internal_name"),
    ("files.localhost", "internal_name"),
    ("printer.local", "internal_name"),
    ("intranet", "internal_name"),
    ("①②⑦.⓪.⓪.①", "bad_character"),
    ("127。0。0。1", "bad_character"),
    ("%31%32%37.0.0.1", "invalid_host"),
    ("a.b%00.example", "invalid_host"),
    ("a..b.example", "invalid_host"),
    ("-a.example", "invalid_host"),
    ("xn--99999999999.example", "invalid_host"),
    ("attacker.example", "host_refused"),
)


def refused_links(host: FileHostAddress) -> list[tuple[str, str]]:
    """Each with the word for why, as far as one word says it: an allow-list may say it first."""
    denied = [(f"{host.scheme}://{name}/secret.pdf", word) for name, word in DENIED_AUTHORITIES]
    return [*denied, *_tricks(host), *_strange_schemes(host)]


def _tricks(host: FileHostAddress) -> list[tuple[str, str]]:
    scheme, name, place = host.scheme, host.host, f"{host.host}:{host.port}"
    return [
        (f"{scheme}://user:password@{place}/a.pdf", "userinfo"),
        (f"{scheme}://{place}@169.254.169.254/a.pdf", "userinfo"),
        (f"{scheme}://{place}\\@169.254.169.254/a.pdf", "bad_character"),
        (f"{scheme}://169.254.169.254\\@{place}/a.pdf", "bad_character"),
        (f"{scheme}://169.254.169.254#@{place}/a.pdf", "denied_address"),
        (f"{scheme}://{name}.attacker.example/a.pdf", "host_refused"),
        (f"{scheme}://files.example:22/a.pdf", "port_refused"),
        (f"{scheme}://{name}:99999/a.pdf", "port_refused"),
        (f"{scheme}://{name}:-1/a.pdf", "port_refused"),
        (f"{scheme}://{name}:80:90/a.pdf", "port_refused"),
        (f"{scheme}://{name}:８０/a.pdf", "bad_character"),  # noqa: RUF001  int() takes these digits
        (f"{scheme}://{place}/a b.pdf", "bad_character"),
        (f"{scheme}://{place}/a\tb.pdf", "bad_character"),
        (f"{scheme}://{place}/a\r\nHost: x/b.pdf", "bad_character"),
        (f"{scheme}://{place}/rapport-é.pdf", "bad_character"),
        (f"{scheme}://{place}/{'long/' * 1700}a.pdf", "too_long"),
        (f"{scheme}:///{name}/a.pdf", "no_host"),
        (f"//{place}/a.pdf", "no_scheme"),
    ]


def _strange_schemes(host: FileHostAddress) -> list[tuple[str, str]]:
    place = f"{host.host}:{host.port}"
    links = [
        ("file:///etc/passwd", "scheme_refused"),
        (f"ftp://{place}/a.pdf", "scheme_refused"),
        (f"gopher://{place}/a.pdf", "scheme_refused"),
        ("data:application/pdf;base64,JVBERi0=", "scheme_refused"),
        (f"jar:{host.scheme}://{place}/a.jar!/a.pdf", "scheme_refused"),
    ]
    if host.scheme == "https":
        links.append((f"http://{place}/a.pdf", "scheme_refused"))
    return links


# As they stand in a URL's path. Each file is stored, none of them outside its folder.
HOSTILE_NAMES: tuple[str, ...] = (
    "..%2f..%2f..%2fetc%2fpasswd.pdf",
    "%2e%2e%5c%2e%2e%5cwindows.pdf",
    "%2fetc%2fshadow.pdf",
    "C%3a%5cCON.pdf",
    "CON.pdf",
    "nul%00byte.pdf",
    "line%0d%0abreak.pdf",
    "bell%07.pdf",
    "%e2%80%aefdp.live.pdf",
    "%f0%9f%94%a5.pdf",
    "e%cc%81tude.pdf",
    "%ff%fe-not-utf8.pdf",
    "%20%20spaced%20.%20.pdf",
    "a%3cb%3ec%7cd%3fe%2a.pdf",
    "%27%3b%20drop%20table%20x%3b--.pdf",
    "%24%28reboot%29.pdf",
    "%253cscript%253e.pdf",
    "-rf.pdf",
    f"{'n' * 300}.pdf",
    f"{'%c3%a9' * 140}.pdf",
)
HOSTILE_ASSIGNMENTS: tuple[str, ...] = (
    "../../A-1",
    "/etc/A-2",
    "A\\..\\3",
    "A\x004",
    ".. ",
    "A-5/../../x",
    "A-6\r\nx",
    "a" * 300,
    "\u202eA-7",
    "_fallback",
)
HOSTILE_SUBTYPES: tuple[str, ...] = (
    "documents/Received",
    "documents\\Received",
    "documents%2fReceived",
    "nobodyKnowsThis",
    "documents Received",
    "dokument\u00e9",
    "s" * 300,
)


def not_an_event(number: int, trace_id: str, event: Mapping[str, Any]) -> tuple[bytes, bool]:
    """The value, and whether its trace id can be read. `event` would be a good one."""
    spoilt = [*_spoilt_values(trace_id), *((_text(e), k) for e, k in _spoilt_fields(event))]
    return spoilt[number % len(spoilt)]


MALFORMED_VARIANTS = 17


def _spoilt_values(trace_id: str) -> list[tuple[bytes, bool]]:
    return [
        (b'{"type": "verisk.claims.property.xn.documentsReceived", "traceId": ', False),
        (b"", False),
        (b"not JSON at all", False),
        (b"\xff\xfe\x00{\x80}", False),
        (b"[]", False),
        (_text([trace_id]), False),
        (b"null", False),
        (b"42", False),
        (_text("a text"), False),
    ]


def _spoilt_fields(event: Mapping[str, Any]) -> list[tuple[dict[str, Any], bool]]:
    without_id = {name: value for name, value in event.items() if name != "traceId"}
    without_type = {name: value for name, value in event.items() if name != "type"}
    return [
        (without_id, False),
        ({**event, "traceId": ""}, False),
        ({**event, "traceId": {"id": 1}}, False),
        (without_type, True),
        ({**event, "type": ""}, True),
        ({**event, "type": ["documentsReceived"]}, True),
        ({**event, "data": '{"assignmentId": "A-1", "attach'}, True),
        ({**event, "utcDateTime": "the day before yesterday"}, True),
    ]


def _text(value: object) -> bytes:
    return json.dumps(value).encode()
