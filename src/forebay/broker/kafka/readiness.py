"""Asks a starting broker, in its own wire protocol, whether it serves and coordinates yet."""

import socket
import struct

_FIND_COORDINATOR = 10
_API_VERSIONS = 18
_OFFSET_FETCH = 9
_INIT_PRODUCER_ID = 22

_GROUP = 0
_TRANSACTION = 1

_NAME = struct.pack(">h", 4) + b"warm"
_ANSWER_SECONDS = 5.0


def serves(port: int) -> bool:
    """A bare connect succeeds too early, from the listen backlog."""
    try:
        return len(_ask(port, _API_VERSIONS, 0, b"")) > 6
    except (OSError, struct.error):
        return False


def coordinates(port: int) -> bool:
    """Makes the broker create and load its internal topics, and says whether it has.

    Else the first group and the first transaction each lose a second to their client's back-off.
    """
    try:
        groups = _coordinator(port, _GROUP)
        transactions = _coordinator(port, _TRANSACTION)
        if groups is None or transactions is None:
            return False
        offsets = _ask(groups, _OFFSET_FETCH, 2, _NAME + struct.pack(">i", 0))
        producer = _ask(transactions, _INIT_PRODUCER_ID, 0, _NAME + struct.pack(">i", 60_000))
    except (OSError, struct.error):
        return False
    return _short(offsets[-2:]) == 0 and _short(producer[8:10]) == 0


def _coordinator(port: int, kind: int) -> int | None:
    answer = _ask(port, _FIND_COORDINATOR, 1, _NAME + struct.pack(">b", kind))
    error, message_length = struct.unpack(">hh", answer[8:12])
    if error:
        return None
    host_at = 12 + max(message_length, 0) + 4
    port_at = host_at + 2 + _short(answer[host_at : host_at + 2])
    (found,) = struct.unpack(">i", answer[port_at : port_at + 4])
    return int(found)


def _short(two_bytes: bytes) -> int:
    (number,) = struct.unpack(">h", two_bytes)
    return int(number)


def _ask(port: int, request: int, version: int, body: bytes) -> bytes:
    message = struct.pack(">hhih", request, version, 1, 4) + b"test" + body
    with socket.create_connection(("127.0.0.1", port), _ANSWER_SECONDS) as connection:
        connection.sendall(struct.pack(">i", len(message)) + message)
        with connection.makefile("rb") as answer:
            (length,) = struct.unpack(">i", answer.read(4))
            return answer.read(length)
