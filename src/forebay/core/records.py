from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import NamedTuple, TypeAlias

Offset: TypeAlias = int
Header: TypeAlias = tuple[str, bytes | None]
Headers: TypeAlias = Sequence[Header]

UNSET = -1


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


class Record(NamedTuple):
    """One record. Before it is sent, partition, offset and timestamp may be unset.

    A named tuple because the reader builds one for every record: a frozen dataclass costs more
    than the client's whole poll.
    """

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    topic: str = ""
    partition: int = UNSET
    offset: Offset = UNSET
    timestamp_ms: int = UNSET

    @property
    def at(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class CommittedOffset(NamedTuple):
    """The next offset to read, with a note of the committer's."""

    offset: Offset
    metadata: str = ""


def size_bytes(record: Record) -> int:
    """What counts against the size limit, the same on every broker."""
    size = len(record.value or b"") + len(record.key or b"")
    for name, value in record.headers:
        size += len(name) if name.isascii() else len(name.encode())
        size += len(value) if value else 0
    return size


_LENGTH = Struct(">i")
_NULL = _LENGTH.pack(UNSET)

# What a packed header takes beyond the bytes of its name and value.
HEADER_FRAME_BYTES = 2 * _LENGTH.size


def pack_headers(headers: Headers) -> bytes | None:
    """Name and value of each, with their lengths before them."""
    if not headers:
        return None
    parts = []
    for name, value in headers:
        parts.append(_packed_name(name))
        if value is None:
            parts.append(_NULL)
        else:
            parts += (_LENGTH.pack(len(value)), value)
    return b"".join(parts)


@lru_cache(maxsize=1024)
def _packed_name(name: str) -> bytes:
    encoded = name.encode()
    return _LENGTH.pack(len(encoded)) + encoded


def unpack_headers(packed: bytes) -> list[Header]:
    headers: list[Header] = []
    at = 0
    while at < len(packed):
        (length,) = _LENGTH.unpack_from(packed, at)
        value_at = at + _LENGTH.size + length
        name = packed[at + _LENGTH.size : value_at].decode()
        (length,) = _LENGTH.unpack_from(packed, value_at)
        at = value_at + _LENGTH.size
        if length == UNSET:
            headers.append((name, None))
            continue
        headers.append((name, packed[at : at + length]))
        at += length
    return headers


class StoredRecord(Record):
    """A record whose headers stay packed until somebody asks for them: most readers never do.

    Read it by its names; unpacked as a tuple it shows the packed headers.
    """

    __slots__ = ()

    @property
    def headers(self) -> Headers:
        stored: object = self[2]
        return unpack_headers(stored) if isinstance(stored, bytes) else self[2] or ()

    def __repr__(self) -> str:
        value, key, _, topic, partition, offset, timestamp_ms = self
        return repr(Record(value, key, self.headers, topic, partition, offset, timestamp_ms))
