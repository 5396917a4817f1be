import re
from collections.abc import Iterable
from dataclasses import dataclass

from forebay.core.errors import InvalidName, InvalidRequest

NAME_LENGTH_MAX = 249  # Kafka's limit: a partition's folder name must fit a file system
PARTITIONS_MAX = 10_000

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+\Z")


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create. Unset limits are the broker's defaults; `replication` is Kafka's alone."""

    name: str
    partitions: int = 1
    retention_ms: int | None = None
    retention_bytes: int | None = None
    replication: int | None = None


def check_spec(spec: TopicSpec, existing: Iterable[str]) -> None:
    check_name(spec.name)
    check_partitions(spec.name, spec.partitions)
    check_collision(spec.name, existing)


def check_name(name: str) -> None:
    if not name:
        raise InvalidName("A topic needs a name.")
    if name in {".", ".."}:
        raise InvalidName(f"A topic cannot be named {name!r}: that is a folder's name.")
    if len(name) > NAME_LENGTH_MAX:
        raise InvalidName(
            f"The topic name {name[:20]!r}… has {len(name)} characters; use at most "
            f"{NAME_LENGTH_MAX}."
        )
    if not _LEGAL.match(name):
        raise InvalidName(
            f"The topic name {name!r} has characters a broker refuses; use letters, digits, "
            f"'.', '_' and '-'."
        )


def check_partitions(name: str, partitions: int) -> None:
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise InvalidRequest(
            f"Topic {name} cannot have {partitions} partitions; use 1 to {PARTITIONS_MAX}."
        )


def check_collision(name: str, existing: Iterable[str]) -> None:
    """Kafka refuses names that differ only in '.' and '_': their metrics would collide."""
    flat = name.replace(".", "_")
    for other in existing:
        if other != name and other.replace(".", "_") == flat:
            raise InvalidName(
                f"The topic name {name!r} collides with {other!r}: they differ only in '.' and "
                f"'_'. Choose another name."
            )
