"""Which network addresses may be connected to. What is not known to be public is denied."""

import ipaddress
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

_DENIED_4 = tuple(
    IPv4Network(block)
    for block in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24"),
        *("192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        "168.63.129.16/32",  # the host of every Azure machine
    )
)
_PUBLIC_6 = IPv6Network("2000::/3")
_DENIED_6 = tuple(
    IPv6Network(block)
    for block in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "2620:4f:8000::/48")
)


@lru_cache(maxsize=4_096)
def is_allowed(address: str, *, allow_loopback: bool = False) -> bool:
    """`address` as a resolver or a socket gives it: numbers, without brackets."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address):
        return _is_allowed_6(parsed, allow_loopback=allow_loopback)
    return _is_allowed_4(parsed, allow_loopback=allow_loopback)


def is_loopback(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return (mapped or parsed).is_loopback


def _is_allowed_4(address: IPv4Address, *, allow_loopback: bool) -> bool:
    if allow_loopback and address.is_loopback:
        return True
    return not any(address in block for block in _DENIED_4)


def _is_allowed_6(address: IPv6Address, *, allow_loopback: bool) -> bool:
    if address.scope_id is not None:
        return False
    if address.ipv4_mapped is not None:
        return _is_allowed_4(address.ipv4_mapped, allow_loopback=allow_loopback)
    if allow_loopback and address.is_loopback:
        return True
    return address in _PUBLIC_6 and not any(address in block for block in _DENIED_6)
