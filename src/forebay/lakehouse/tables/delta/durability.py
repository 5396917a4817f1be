"""Makes commits of tables on this machine outlive a power cut: the client never calls fsync.

A cut may still come between the client's commit and ours. Nobody was told of such a commit, so when
the table is opened next it is set aside, its position with it, and its rows are read again. A
process that died there leaves a whole commit: who opens the table next makes that one durable.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote

import orjson

from forebay.core.errors import Damaged, OutcomeUnknown

LOG = "_delta_log"
TORN = ".torn"
TORN_MAX = 3

_PARQUET_MAGIC = b"PAR1"


def make_durable(table: Path, version: int) -> None:
    """What commit `version` has written. Raises OutcomeUnknown where the disk fails."""
    with _unknown_where_it_fails(table):
        files = _added_by(table, version)
        for path in _written_with(table, version, files):
            _sync(path)


def make_what_is_left_durable(table: Path, versions: Iterable[int]) -> None:
    """The same of commits by whomever, whose files others may have taken away since."""
    with _unknown_where_it_fails(table):
        paths: dict[Path, None] = {}
        for version in versions:
            files: list[Path] = []
            with suppress(FileNotFoundError, ValueError):  # what a checkpoint holds may be gone
                files = _added_by(table, version)
            paths.update(dict.fromkeys(_written_with(table, version, files)))
        for path in paths:
            with suppress(FileNotFoundError):
                _sync(path)


def set_torn_commits_aside(table: Path) -> list[int]:
    """The versions at the end of the log that a power cut has left half written.

    Raises OSError where that cannot be told, and Damaged where it is more than a cut would leave:
    nothing is touched then.
    """
    log = table / LOG
    checkpoints, at = _torn_checkpoints(log)
    torn = _torn_commits(table, at)
    if len(torn) > TORN_MAX:
        raise Damaged(
            f"The last {len(torn)} commits of table {table} are not whole, or more; a power cut "
            f"leaves {TORN_MAX} at most. Nothing was touched. Look at the disk, and restore the "
            f"table's files."
        )
    if checkpoints and (hint := log / "_last_checkpoint").exists():
        checkpoints.append(hint)
    for path in [*(log / commit_name(version) for version in torn), *checkpoints]:
        path.replace(path.with_name(f"{path.name}{TORN}"))
        _sync(log)
    return torn


def _torn_commits(table: Path, checkpoint: int) -> list[int]:
    """The newest first. What a whole checkpoint holds is needed no more."""
    torn: list[int] = []
    for version in sorted(_versions(table / LOG, "json"), reverse=True):
        if version <= checkpoint or len(torn) > TORN_MAX or _is_whole(table, version):
            break
        torn.append(version)
    return torn


def _torn_checkpoints(log: Path) -> tuple[list[Path], int]:
    """And the version of the newest whole one, -1 where there is none."""
    torn: list[Path] = []
    for version in sorted(_versions(log, "checkpoint.parquet"), reverse=True):
        path = _checkpoint(log, version)
        if _is_whole_parquet(path):
            return torn, version
        torn.append(path)
    return torn, -1


def _written_with(table: Path, version: int, files: list[Path]) -> Iterator[Path]:
    log = table / LOG
    yield from files
    yield from sorted({folder for file in files for folder in _folders_up_to(table, file)})
    if (checkpoint := _checkpoint(log, version)).exists():
        yield checkpoint
    yield log / commit_name(version)
    yield log
    if version == 0:
        yield table
        yield table.parent


def _checkpoint(log: Path, version: int) -> Path:
    """As this client writes one: a single file."""
    return log / f"{version:020d}.checkpoint.parquet"


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


def _added_by(table: Path, version: int) -> list[Path]:
    commit = (table / LOG / commit_name(version)).read_bytes()
    return [table / path for path, _ in added_files(commit)]


def _is_whole(table: Path, version: int) -> bool:
    """A file that cannot be looked at now is none that a power cut has torn."""
    try:
        added = list(added_files((table / LOG / commit_name(version)).read_bytes()))
        return all((table / path).stat().st_size == size for path, size in added)
    except (FileNotFoundError, ValueError):
        return False


def _is_whole_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(_PARQUET_MAGIC)))
        return file.read() == _PARQUET_MAGIC


def _versions(log: Path, ending: str) -> Iterator[int]:
    for path in log.glob(f"*.{ending}"):
        number = path.name.removesuffix(f".{ending}")
        if len(number) == 20 and number.isdigit():
            yield int(number)


def _folders_up_to(table: Path, file: Path) -> Iterator[Path]:
    for folder in file.parents:
        yield folder
        if folder == table:
            return


@contextmanager
def _unknown_where_it_fails(table: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise OutcomeUnknown(
            f"Rows for table {table} were written, and may not outlive a power cut ({error}). The "
            f"position is looked up before anything more is written. Look at the disk."
        ) from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
