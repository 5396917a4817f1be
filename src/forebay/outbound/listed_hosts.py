"""The hosts that a pipeline lists, as rules. Loads no client: a declaration is checked with it."""

from collections.abc import Sequence

from forebay.core.errors import InvalidRequest
from forebay.outbound.addresses import is_loopback
from forebay.outbound.rules import HostRules


def rules_of(hosts: Sequence[str]) -> tuple[HostRules, ...]:
    """To be tried in order. What is listed as local may be local; nothing else gains by it.

    Exact hosts, suffixes that begin with a dot, either with a port. Raises InvalidRequest.
    """
    if isinstance(hosts, str):
        raise InvalidRequest(f"hosts is one text; write a list: hosts=[{hosts!r}].")
    parts = [_host_and_port(host) for host in hosts]
    local = tuple(host for host, _ in parts if _is_local(host))
    public = tuple(host for host, _ in parts if not _is_local(host))
    ports = tuple(port for host, port in parts if port and not _is_local(host))
    rules = HostRules(public, ports=ports)
    if not local:
        return (rules,)
    return HostRules(local, schemes=("https", "http"), allow_loopback=True), rules


def _is_local(host: str) -> bool:
    return host == "localhost" or is_loopback(host)


def _host_and_port(written: str) -> tuple[str, int | None]:
    text = written.strip().lower()
    host, colon, port = text.rpartition(":")
    is_bare_address = text.count(":") > 1 and not host.endswith("]")
    if not colon or is_bare_address:
        return text.strip("[]"), None
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65_535):
        raise InvalidRequest(
            f"{written!r} is no host of a pipeline; write a host such as bank.example, or with a "
            f"port, bank.example:8443, without scheme and path."
        )
    return host.strip("[]"), int(port)
