from collections.abc import Iterator, Sequence
from struct import Struct
from typing import NamedTuple, TypeAlias, overload

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
    payload = len(record.value or b"") + len(record.key or b"")
    return payload + sum(len(name.encode()) + len(value or b"") for name, value in record.headers)


_LENGTHS = Struct(">Hi")


def pack_headers(headers: Headers) -> bytes | None:
    if not headers:
        return None
    parts = []
    for name, value in headers:
        encoded = name.encode()
        parts += [_LENGTHS.pack(len(encoded), -1 if value is None else len(value)), encoded]
        if value:
            parts.append(value)
    return b"".join(parts)


def unpack_headers(packed: bytes) -> list[Header]:
    headers: list[Header] = []
    at = 0
    while at < len(packed):
        name_length, value_length = _LENGTHS.unpack_from(packed, at)
        at += _LENGTHS.size
        name = packed[at : at + name_length].decode()
        at += name_length
        if value_length < 0:
            headers.append((name, None))
            continue
        headers.append((name, packed[at : at + value_length]))
        at += value_length
    return headers


class PackedHeaders(Sequence[Header]):
    """Headers as stored, decoded on first use: most readers never look at them."""

    __slots__ = ("_decoded", "_packed")

    def __init__(self, packed: bytes) -> None:
        self._packed = packed
        self._decoded: list[Header] | None = None

    def _headers(self) -> list[Header]:
        if self._decoded is None:
            self._decoded = unpack_headers(self._packed)
        return self._decoded

    def __len__(self) -> int:
        return len(self._headers())

    @overload
    def __getitem__(self, index: int) -> Header: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Header]: ...
    def __getitem__(self, index: int | slice) -> Header | Sequence[Header]:
        return self._headers()[index]

    def __iter__(self) -> Iterator[Header]:
        return iter(self._headers())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(self._packed)

    def __repr__(self) -> str:
        return repr(self._headers())
