"""A host as it stands in a URL: what it means, or why it is not one."""

import ipaddress
import re
import socket

from forebay.outbound.addresses import is_allowed
from forebay.outbound.errors import UrlRefused, ending

_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
_NUMBER = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)\Z")
_HOST_LENGTH_MAX = 253
_INTERNAL = (
    *(".localhost", ".local", ".localdomain", ".internal", ".intranet", ".lan", ".home", ".corp"),
    *(".private", ".home.arpa"),
)


def checked_host(written: str, *, allow_loopback: bool) -> str:
    """In lower case, without its last dot, an address without brackets. Raises UrlRefused."""
    host = written.lower()
    if host.startswith("["):
        return _checked_address(_address_6(host), allow_loopback=allow_loopback)
    host = host.removesuffix(".")
    if not host:
        raise UrlRefused("no_host", f"The link names no host. {ending('no_host')}")
    labels = host.split(".")
    if _NUMBER.match(labels[-1]):
        return _checked_address(_address_4(host), allow_loopback=allow_loopback)
    if len(host) > _HOST_LENGTH_MAX or not all(_is_label(label) for label in labels):
        raise _invalid()
    is_internal = len(labels) == 1 or host.endswith(_INTERNAL)
    if is_internal and not (allow_loopback and host == "localhost"):
        raise UrlRefused(
            "internal_name",
            f"{host} is a name of an internal network, which no link may lead to. "
            f"{ending('internal_name')}",
        )
    return host


def _checked_address(address: str, *, allow_loopback: bool) -> str:
    if not is_allowed(address, allow_loopback=allow_loopback):
        raise denied(address)
    return address


def denied(host: str) -> UrlRefused:
    return UrlRefused(
        "denied_address",
        f"{host} is or leads to an address that is not public, and is not connected to. "
        f"{ending('denied_address')}",
    )


def _address_6(host: str) -> str:
    """Zones and addresses of future versions are refused with all else that is none."""
    if "%" in host:
        raise _invalid()
    try:
        return str(ipaddress.IPv6Address(host.removeprefix("[").removesuffix("]")))
    except ValueError:
        raise _invalid() from None


def _address_4(host: str) -> str:
    """Resolvers read 2130706433, 0x7f.1 and 0177.0.0.1 as addresses, too: only one way is taken."""
    try:
        return str(ipaddress.IPv4Address(host))
    except ValueError:
        pass
    try:
        socket.inet_aton(host)
    except OSError:
        raise _invalid() from None
    raise UrlRefused(
        "noncanonical_address",
        f"The link's host is an address in an unusual notation, as attacks use it. "
        f"{ending('noncanonical_address')}",
    )


def _is_label(label: str) -> bool:
    if not _LABEL.match(label):
        return False
    if not label.startswith("xn--"):
        return True
    try:
        return bool(label[4:].encode().decode("punycode"))
    except UnicodeError:
        return False


def _invalid() -> UrlRefused:
    return UrlRefused(
        "invalid_host",
        f"The link's host is neither a name nor an address. {ending('invalid_host')}",
    )
