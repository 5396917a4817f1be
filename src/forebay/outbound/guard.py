"""Where connections are judged: every answer of a resolver, and every socket before it connects."""

import asyncio
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from aiohttp.abc import AbstractResolver, ResolveResult

from forebay.outbound.addresses import is_allowed, is_loopback
from forebay.outbound.hosts import denied

AddressInfo: TypeAlias = tuple[int, int, int, str, tuple[Any, ...]]
Lookup: TypeAlias = Callable[..., Sequence[AddressInfo]]

_ANY_PORT = 9


class AddressDenied(OSError):
    """An OSError, for the client passes nothing else on from where it connects."""


class Guard:
    """One for all connections with one permission: what may be reused was judged alike."""

    def __init__(self, *, allow_loopback: bool) -> None:
        self.allow_loopback = allow_loopback

    def allows(self, address: str) -> bool:
        if not is_allowed(address, allow_loopback=self.allow_loopback):
            return False
        return is_loopback(address) or not _is_own(address)

    def socket(self, info: AddressInfo) -> socket.socket:
        """Sees the address that is really connected to, whatever was said of it before."""
        family, kind, protocol, _, address = info
        if not self.allows(str(address[0])):
            raise AddressDenied(f"{address[0]} may not be connected to")
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)  # noqa: FBT003  its only parameter
        return made


class GuardedResolver(AbstractResolver):
    """One denied address denies the name. Threads of its own: names may be slow, others not."""

    def __init__(self, guard: Guard, threads: ThreadPoolExecutor, lookup: Lookup) -> None:
        self._guard = guard
        self._threads = threads
        self._lookup = lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: self._lookup(host, port, family, socket.SOCK_STREAM)
        )
        if not all(self._guard.allows(str(info[4][0])) for info in found):
            raise denied(host)
        return [_result(host, info) for info in found]

    async def close(self) -> None:
        """The threads are their owner's."""


def _result(host: str, info: AddressInfo) -> ResolveResult:
    family, _, protocol, _, address = info
    return ResolveResult(
        hostname=host,
        host=str(address[0]),
        port=int(address[1]),
        family=family,
        proto=protocol,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )


def _is_own(address: str) -> bool:
    """Whether packets to it would not leave this machine. Asks the kernel; sends nothing."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, _ANY_PORT))
            return str(probe.getsockname()[0]) == address
    except OSError:
        return False
