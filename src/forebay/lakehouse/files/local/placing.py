"""How a finished file gets its name: whole, and never over another."""

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from forebay.core.errors import Unusable
from forebay.core.probe import Probe
from forebay.lakehouse.files.content import Content, pieces
from forebay.lakehouse.files.faults import in_the_way, other_content, told_plainly
from forebay.lakehouse.files.local.torn import is_torn
from forebay.lakehouse.files.local.tree import NOT_THERE, Tree, new_file
from forebay.lakehouse.files.names import without_last_part
from forebay.lakehouse.files.source import Original, compared_source, opened_file
from forebay.observability.catalogue import Emit

# Begins with a dot, as no name of a file does.
INCOMING = ".incoming"

_CANNOT_LINK = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS}
_OWNER_ONLY = 0o600


@dataclass(frozen=True, slots=True)
class Spot:
    """Where the file goes: its folder, open, and what it is called there."""

    name: str
    folder: int
    leaf: str


class Placing:
    def __init__(self, folder: Path, tree: Tree, emit: Emit, probe: Probe) -> None:
        self._folder = folder
        self._tree = tree
        self._emit = emit
        self._probe = probe

    def place(self, source: Path, parts: Sequence[str], content: Content) -> str | None:
        """Gives a copy that must be kept until the file is durable, if it had to make one."""
        name = "/".join(parts)
        with (
            compared_source(source, content) as original,
            told_plainly(self._folder, name),
            self._tree.folder(parts[:-1], make=True) as folder,
        ):
            self._probe.hit("files.before_placing")
            return self._give_name(original, Spot(name, folder, parts[-1]))

    def drop_copy(self, copy: str) -> None:
        """What stays behind is swept."""
        with suppress(OSError), self._tree.folder([INCOMING]) as incoming:
            os.unlink(copy, dir_fd=incoming)

    def sweep(self, older_than: float) -> int:
        swept = 0
        with (
            suppress(*NOT_THERE),
            self._tree.folder([INCOMING]) as incoming,
            os.scandir(incoming) as entries,
        ):
            for entry in entries:
                swept += _remove_if_older(entry, incoming, older_than)
        return swept

    def _give_name(self, original: Original, spot: Spot) -> str | None:
        try:
            return self._link(original, spot)
        except FileExistsError:
            return self._settle_with_what_is_there(original, spot)

    def _link(self, original: Original, spot: Spot) -> str | None:
        """No copy where a link does: it costs a third."""
        if not _is_ours_alone(original.descriptor):
            return self._link_a_copy(original, spot)
        try:
            os.link(original.path, spot.leaf, dst_dir_fd=spot.folder, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _CANNOT_LINK:
                raise
            return self._link_a_copy(original, spot)
        return None

    def _link_a_copy(self, original: Original, spot: Spot) -> str:
        with self._copy(original) as (incoming, copy):
            _link_within(incoming, copy, spot.folder, spot.leaf)
            return copy

    def _settle_with_what_is_there(self, original: Original, spot: Spot) -> str | None:
        if self._is_there_already(original, spot):
            return None
        # Only one at a time replaces: between the last look and the rename nobody else may.
        fcntl.flock(spot.folder, fcntl.LOCK_EX)
        if self._is_there_already(original, spot):
            return None
        return self._replace_torn(original, spot)

    def _is_there_already(self, original: Original, spot: Spot) -> bool:
        """False if it is a torn write of the same. Raises Differs."""
        try:
            with opened_file(spot.leaf, spot.folder) as stored:
                if original.content.is_in(stored):
                    return True
                if is_torn(stored, original.descriptor):
                    return False
        except IsADirectoryError as error:
            raise in_the_way(self._folder, spot.name) from error
        raise other_content(self._folder, spot.name)

    def _replace_torn(self, original: Original, spot: Spot) -> str:
        with self._copy(original) as (incoming, copy):
            second = f"{copy}.second"
            _link_within(incoming, copy, incoming, second)
            os.rename(second, spot.leaf, src_dir_fd=incoming, dst_dir_fd=spot.folder)
        self._emit(
            "files.torn_replaced",
            blob_path=without_last_part(spot.name),
            bytes=original.content.size,
            folder=str(self._folder),
        )
        return copy

    @contextmanager
    def _copy(self, original: Original) -> Iterator[tuple[int, str]]:
        """A copy under a name of its own, which stays only if the block ends well."""
        copy = f"{secrets.token_hex(8)}.part"
        incoming = self._open_incoming()
        try:
            with new_file(copy, incoming) as written:
                self._probe.hit("files.while_copying")
                _copy_content(original, written)
            yield incoming, copy
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(copy, dir_fd=incoming)
            raise
        finally:
            os.close(incoming)

    def _open_incoming(self) -> int:
        try:
            return self._tree.open_folder([INCOMING], make=True)
        except NotADirectoryError as error:
            raise Unusable(
                f"{self._folder / INCOMING} is no folder, or a symbolic link. Nothing was stored. "
                f"Files are copied there first; move away what has its name."
            ) from error


def _is_ours_alone(descriptor: int) -> bool:
    """A link has the owner and the rights of its source."""
    found = os.fstat(descriptor)
    if found.st_uid != os.geteuid():
        return False
    if stat.S_IMODE(found.st_mode) != _OWNER_ONLY:
        os.fchmod(descriptor, _OWNER_ONLY)
    return True


def _link_within(from_folder: int, from_leaf: str, to_folder: int, to_leaf: str) -> None:
    folders = {"src_dir_fd": from_folder, "dst_dir_fd": to_folder}
    os.link(from_leaf, to_leaf, **folders, follow_symlinks=False)


def _copy_content(original: Original, written: int) -> None:
    for piece in pieces(original.descriptor):
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(written, rest) :]


def _remove_if_older(entry: os.DirEntry[str], incoming: int, older_than: float) -> int:
    with suppress(*NOT_THERE):
        if entry.stat(follow_symlinks=False).st_ctime < older_than:
            os.unlink(entry.name, dir_fd=incoming)
            return 1
    return 0
