"""Kinds of values: how each is written in a file, a variable or a flag, and what it must be."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from forebay.broker.settings import Secret
from forebay.core.durations import seconds
from forebay.core.errors import ForebayError
from forebay.core.retries import RetryPolicy
from forebay.core.topics import check_name

BROKER_FORMS = "embedded:DIR, embedded:///path, kafka://host:port, kafka or eventhub"
DELAY_SECONDS_MAX = 86_400.0
PLACE_SCHEMES = ("abfss", "abfs", "az", "https", "file")

Value_co = TypeVar("Value_co", covariant=True)
Word = TypeVar("Word", bound=str)

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}\Z")
_SIZE = re.compile(r"([0-9]{1,15})\s*(KiB|MiB|GiB|TiB)?\Z")
_SIZE_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_HOST = re.compile(r"\.?([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]*[a-z0-9])?\Z")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # a Path makes one slash of two
_FILE_TYPE = re.compile(r"[a-z0-9]{1,10}\Z")


class Misfit(Exception):
    """The value is none of its kind. Its text, if any, says why."""


class Kind(Protocol[Value_co]):
    @property
    def shape(self) -> str:
        """What to write, after the word "write"."""
        ...

    def read(self, raw: object) -> Value_co:
        """Raises Misfit."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    shape: str = "text, in quotes where it looks like a number"

    def read(self, raw: object) -> str:
        return _text(raw)


@dataclass(frozen=True, slots=True)
class SecretText:
    shape: str = "text, in quotes where it looks like a number"

    def read(self, raw: object) -> Secret:
        return Secret(_text(raw))


@dataclass(frozen=True, slots=True)
class YesNo:
    shape: str = "true or false"

    def read(self, raw: object) -> bool:
        if isinstance(raw, bool):
            return raw
        word = _text(raw).lower()
        if word in {"true", "yes", "on", "1"}:
            return True
        if word in {"false", "no", "off", "0"}:
            return False
        raise Misfit


@dataclass(frozen=True, slots=True)
class Whole:
    minimum: int
    maximum: int

    @property
    def shape(self) -> str:
        return f"a whole number from {self.minimum} to {self.maximum}"

    def read(self, raw: object) -> int:
        if isinstance(raw, str) and _WHOLE.match(raw.strip()):
            raw = int(raw)
        if not isinstance(raw, int) or isinstance(raw, bool):
            raise Misfit
        if not self.minimum <= raw <= self.maximum:
            raise Misfit
        return raw


@dataclass(frozen=True, slots=True)
class Number:
    minimum: float
    maximum: float

    @property
    def shape(self) -> str:
        return f"a number from {self.minimum:g} to {self.maximum:g}"

    def read(self, raw: object) -> float:
        number = _number(raw)
        if number is None or not self.minimum <= number <= self.maximum:
            raise Misfit
        return number


@dataclass(frozen=True, slots=True)
class Size:
    minimum: int
    shape: str = "bytes, or a whole number with KiB, MiB, GiB or TiB"

    def read(self, raw: object) -> int:
        found = _SIZE.match(str(raw).strip()) if isinstance(raw, int | str) else None
        if found is None:
            raise Misfit
        size = int(found[1]) * _SIZE_UNITS.get(found[2], 1)
        if size < self.minimum:
            raise Misfit(f"less than {self.minimum:,} bytes")
        return size


@dataclass(frozen=True, slots=True)
class OneOf(Generic[Word]):
    words: tuple[Word, ...]

    @property
    def shape(self) -> str:
        return f"one of {', '.join(self.words)}"

    def read(self, raw: object) -> Word:
        written = _text(raw).lower()
        for word in self.words:
            if word.lower() == written:
                return word
        raise Misfit


@dataclass(frozen=True, slots=True)
class BrokerUrl:
    shape: str = BROKER_FORMS

    def read(self, raw: object) -> str:
        url = raw.strip() if isinstance(raw, str) else ""
        has_scheme = url.startswith(("embedded:", "kafka://"))
        if not (has_scheme or url in {"embedded", "kafka", "eventhub"}):
            raise Misfit("which names no broker")
        return url


@dataclass(frozen=True, slots=True)
class TopicName:
    shape: str = "a topic's name, of letters, digits, '.', '_' and '-'"

    def read(self, raw: object) -> str:
        name = _text(raw)
        try:
            check_name(name)
        except ForebayError as problem:
            raise Misfit from problem
        return name


@dataclass(frozen=True, slots=True)
class Folder:
    shape: str = "the path of a folder"

    def read(self, raw: object) -> Path:
        path = raw if isinstance(raw, Path) else Path(_text(raw))
        if _SCHEME.match(str(path)):
            raise Misfit("a URL and no folder of this machine")
        return path.expanduser()


@dataclass(frozen=True, slots=True)
class ExistingFile:
    shape: str = "the path of a PEM file"

    def read(self, raw: object) -> Path:
        path = Path(_text(raw)).expanduser()
        if not path.is_file():
            raise Misfit("where no file is")
        return path


@dataclass(frozen=True, slots=True)
class Location:
    """A local path, or a URL of an object store without anything secret in it."""

    shape: str = "a local path, or a URL such as abfss://workspace@account/path"

    def read(self, raw: object) -> str:
        place = _text(raw)
        scheme, mark, rest = place.partition("://")
        if not mark:
            return str(Path(place).expanduser())
        if scheme not in PLACE_SCHEMES:
            raise Misfit(f"and {scheme}:// is none of {', '.join(PLACE_SCHEMES)}")
        user, _, _ = rest.partition("/")[0].rpartition("@")
        if "?" in rest or ":" in user:
            raise Misfit("and a place holds no key, password or query")
        if not rest.strip("/"):
            raise Misfit("which names no place")
        return place.rstrip("/")


@dataclass(frozen=True, slots=True)
class Hosts:
    shape: str = "exact hosts, or suffixes that begin with a dot: files.example,.store.example"

    def read(self, raw: object) -> tuple[str, ...]:
        hosts = [host.lower() for host in _texts(raw)]
        for host in hosts:
            if len(host) > 253 or not _HOST.match(host):
                raise Misfit(f"where {host[:60]!r} is no host")
        return tuple(dict.fromkeys(hosts))


@dataclass(frozen=True, slots=True)
class FileTypes:
    shape: str = "extensions without a dot: pdf,xml,jpg"

    def read(self, raw: object) -> tuple[str, ...]:
        types = [extension.lower() for extension in _texts(raw)]
        for extension in types:
            if not _FILE_TYPE.match(extension):
                raise Misfit(f"where {extension[:60]!r} is no extension")
        return tuple(dict.fromkeys(types))


@dataclass(frozen=True, slots=True)
class Delays:
    shape: str = "delays that grow, none over a day, in seconds or as 5m,10m,20m,40m"

    def read(self, raw: object) -> tuple[float, ...]:
        items = raw if isinstance(raw, list) else _text(raw).split(",")
        try:
            delays = RetryPolicy(tuple(_delay(item) for item in items)).delays_seconds
        except ForebayError as problem:
            raise Misfit from problem
        if any(not 0.001 <= delay <= DELAY_SECONDS_MAX for delay in delays):
            raise Misfit
        return delays


def _delay(raw: object) -> float:
    number = _number(raw)
    return seconds(number if number is not None else _text(raw))


def _text(raw: object) -> str:
    if not isinstance(raw, str) or not raw.strip():
        raise Misfit
    return raw.strip()


def _texts(raw: object) -> list[str]:
    """A list, or text with commas. An empty list says none; an empty variable says nothing."""
    if isinstance(raw, list):
        return [_text(item) for item in raw]
    return [item.strip() for item in _text(raw).split(",") if item.strip()]


def _number(raw: object) -> float | None:
    """None where it is no finite number."""
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        return None
    try:
        number = float(raw)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
