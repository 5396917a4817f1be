"""Where a domain's links may lead, and the check of a URL's text: no network, about 1 µs."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from forebay.core.errors import InvalidRequest
from forebay.outbound.addresses import is_loopback
from forebay.outbound.errors import UrlRefused, ending, link
from forebay.outbound.hosts import checked_host

URL_LENGTH_MAX = 8_192
PORTS = {"https": 443, "http": 80}

_AUTHORITIES_KEPT_MAX = 1_024
_START = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://([^/?#]+)")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_AUTHORITY = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]*)(?::(?P<port>.*))?\Z")
_PORT = re.compile(r"[0-9]{1,5}\Z", re.ASCII)
_ENTRY = re.compile(r"\.?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?\Z")


def follow_none(_original: str, _next: str) -> bool:
    """Redirects are refused."""
    return False


class Authority(NamedTuple):
    """Scheme, host and port of a URL, judged."""

    scheme: str
    host: str
    port: int


class Target(NamedTuple):
    """Where a URL leads. `path` begins with a slash; signatures need it and `query` as written."""

    scheme: str
    host: str
    port: int
    path: str
    query: str


@dataclass(frozen=True, slots=True)
class HostRules:
    """`allowed`: exact hosts, or suffixes that begin with a dot; none refuses all.

    `allow_loopback` is for simulators: loopback addresses and localhost pass the table of denied
    addresses, at any port. They must be allowed by name all the same. `allowed_types` are
    extensions, `mime_types` what a server may call them; none of them leaves it open.
    """

    allowed: tuple[str, ...]
    schemes: tuple[str, ...] = ("https",)
    ports: tuple[int, ...] = ()
    allow_loopback: bool = False
    follow_redirect: Callable[[str, str], bool] = follow_none
    redirects_max: int = 5
    allowed_types: tuple[str, ...] = ()
    mime_types: tuple[str, ...] = ()
    _known: dict[str, Authority] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "allowed", tuple(_checked_entry(e) for e in self.allowed))
        unknown = set(self.schemes) - PORTS.keys()
        if unknown or not self.schemes:
            raise InvalidRequest(f"Links have the schemes https or http, not {self.schemes!r}.")
        kinds = tuple(kind.lower().removeprefix(".") for kind in self.allowed_types)
        object.__setattr__(self, "allowed_types", kinds)

    def allows(self, host: str) -> bool:
        return any(
            host.endswith(entry) if entry.startswith(".") else host == entry
            for entry in self.allowed
        )

    def authority(self, written: str, scheme: str, place: str) -> Authority:
        """Judged once for each way it is written, as long as the rules live."""
        found = _judge(scheme.lower(), place, self)
        if len(self._known) >= _AUTHORITIES_KEPT_MAX:
            self._known.clear()
        self._known[written] = found
        return found

    def known(self, written: str) -> Authority | None:
        return self._known.get(written)


def check_url(url: str, rules: HostRules) -> Target:
    """Raises UrlRefused; the order of the checks is the order of what is told."""
    check_text(url)
    start = _START.match(url)
    if start is None:
        raise _no_start(url, rules)
    authority = rules.known(start[0]) or rules.authority(start[0], start[1], start[2])
    rest = url[start.end() :].partition("#")[0]
    path, _, query = rest.partition("?")
    return Target(*authority, path or "/", query)


def check_text(url: str) -> None:
    """Raises UrlRefused for characters that two programs could read in two ways."""
    is_plain = url.isascii() and url.isprintable() and " " not in url and "\\" not in url
    if not is_plain or len(url) > URL_LENGTH_MAX:
        raise _unreadable(url)


def _judge(scheme: str, place: str, rules: HostRules) -> Authority:
    _check_scheme(scheme, rules)
    if "@" in place:
        raise UrlRefused(
            "userinfo", f"The link has a user's name before its host. {ending('userinfo')}"
        )
    parts = _AUTHORITY.match(place)
    if parts is None:
        raise UrlRefused(
            "invalid_host", f"The link's host cannot be read. {ending('invalid_host')}"
        )
    port = PORTS[scheme] if parts["port"] is None else _port_number(parts["port"])
    host = checked_host(parts["host"], allow_loopback=rules.allow_loopback)
    _check_port(host, port, scheme, rules)
    if not rules.allows(host):
        raise UrlRefused(
            "host_refused",
            f"{host} is no host that links may lead to. It is not tried again. If it is to be "
            f"trusted, add it to the allowed hosts; then replay its dead letter, or where there is "
            f"none have the event sent again.",
        )
    return Authority(scheme, host, port)


def _check_scheme(scheme: str, rules: HostRules) -> None:
    if scheme not in rules.schemes:
        raise UrlRefused(
            "scheme_refused",
            f"A link with the scheme {scheme} is not followed, only {' and '.join(rules.schemes)}. "
            f"{ending('scheme_refused')}",
        )


def _port_number(written: str) -> int:
    if not _PORT.match(written) or not 1 <= int(written) <= 65_535:
        raise UrlRefused("port_refused", f"The link's port is no port. {ending('port_refused')}")
    return int(written)


def _check_port(host: str, port: int, scheme: str, rules: HostRules) -> None:
    if port == PORTS[scheme] or port in rules.ports:
        return
    if rules.allow_loopback and (host == "localhost" or is_loopback(host)):
        return
    raise UrlRefused(
        "port_refused",
        f"Port {port} of {host} is not one that links may lead to. {ending('port_refused')}",
    )


def _no_start(url: str, rules: HostRules) -> UrlRefused:
    scheme = _SCHEME.match(url)
    if scheme is None:
        return UrlRefused("no_scheme", f"The link has no scheme. {ending('no_scheme')}")
    _check_scheme(scheme[1].lower(), rules)
    return UrlRefused("no_host", f"The link names no host. {ending('no_host')}")


def _unreadable(url: str) -> UrlRefused:
    if len(url) > URL_LENGTH_MAX:
        return UrlRefused(
            "too_long",
            f"The link has {len(url)} characters; {URL_LENGTH_MAX} are the most. "
            f"{ending('too_long')}",
        )
    return UrlRefused(
        "bad_character",
        f"The {link(url)} holds a space, a backslash, a control character or a letter that is "
        f"not ASCII. {ending('bad_character')}",
    )


def _checked_entry(entry: str) -> str:
    host = entry.strip().lower()
    is_address = host.count(":") > 1
    if not _ENTRY.match(host) and not is_address:
        raise InvalidRequest(
            f"{entry!r} is no host that can be allowed; write a host such as files.example, or a "
            f"suffix such as .files.example, without scheme, port or path."
        )
    return host.strip("[]") if is_address else host
