"""Makes commits of tables on this machine outlive a power cut: the client never calls fsync.

A cut may still come between the client's commit and ours. Nobody was told of such a commit, so when
the table is opened next it is set aside, its position with it, and its rows are read again.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import orjson

from forebay.core.errors import OutcomeUnknown

LOG = "_delta_log"
TORN = ".torn"


def make_durable(table: Path, version: int) -> None:
    """What commit `version` has written. Raises OutcomeUnknown where the disk fails."""
    log = table / LOG
    commit = log / commit_name(version)
    try:
        files = [table / path for path, _ in added_files(commit.read_bytes())]
        folders = {folder for file in files for folder in _folders_up_to(table, file)}
        checkpoint = _checkpoint(log, version)
        for path in [*files, *sorted(folders), *checkpoint, commit, log]:
            _sync(path)
        if version == 0:
            _sync(table)
            _sync(table.parent)
    except (OSError, ValueError) as error:
        raise OutcomeUnknown(
            f"Rows for table {table} were written, and may not outlive a power cut ({error}). The "
            f"position is looked up before anything more is written. Look at the disk."
        ) from error


def set_torn_commits_aside(table: Path) -> list[int]:
    """The versions at the end of the log that a power cut has left half written."""
    log = table / LOG
    torn: list[int] = []
    for version in sorted(_versions(log), reverse=True):
        commit = log / commit_name(version)
        if _is_whole(table, commit) or _checkpoint(log, version):
            break
        commit.replace(commit.with_name(f"{commit.name}{TORN}"))
        _sync(log)
        torn.append(version)
    return torn


def _checkpoint(log: Path, version: int) -> list[Path]:
    """As this client writes one: a single file. A listing would cost more with each commit."""
    path = log / f"{version:020d}.checkpoint.parquet"
    return [path] if path.exists() else []


def commit_name(version: int) -> str:
    return f"{version:020d}.json"


def added_files(commit: bytes) -> Iterator[tuple[str, int]]:
    """Path and size. Raises ValueError for a commit that is not whole."""
    if not commit.endswith((b"\n", b"}")):
        raise ValueError("the commit is cut off")
    for line in commit.splitlines():
        action = orjson.loads(line)
        if "add" in action:
            yield unquote(action["add"]["path"]), action["add"]["size"]


def _is_whole(table: Path, commit: Path) -> bool:
    try:
        added = list(added_files(commit.read_bytes()))
        return all((table / path).stat().st_size == size for path, size in added)
    except (OSError, ValueError):
        return False


def _versions(log: Path) -> Iterator[int]:
    for path in log.glob("*.json"):
        if len(path.stem) == 20 and path.stem.isdigit():
            yield int(path.stem)


def _folders_up_to(table: Path, file: Path) -> Iterator[Path]:
    for folder in file.parents:
        yield folder
        if folder == table:
            return


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
