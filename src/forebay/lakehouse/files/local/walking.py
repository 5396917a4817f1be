"""Every file below a folder, one after the other: a million of them in flat memory."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

from forebay.lakehouse.files.local.tree import NOT_THERE, Tree
from forebay.lakehouse.files.port import FileStat


def files_below(tree: Tree, parts: Sequence[str]) -> Iterator[FileStat]:
    """Symbolic links and names that begin with a dot are not ours: they are left out."""
    with suppress(*NOT_THERE), tree.folder(parts) as folder:
        yield from _files_in(folder, "".join(f"{part}/" for part in parts))


def _files_in(folder: int, above: str) -> Iterator[FileStat]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith("."):
                yield from _found(folder, entry, above)


def _found(folder: int, entry: os.DirEntry[str], above: str) -> Iterator[FileStat]:
    """What was deleted meanwhile is left out."""
    name = f"{above}{entry.name}"
    with suppress(*NOT_THERE):
        if entry.is_dir(follow_symlinks=False):
            yield from _files_in_folder(folder, entry.name, f"{name}/")
        elif entry.is_file(follow_symlinks=False):
            yield FileStat(name, entry.stat(follow_symlinks=False).st_size)


def _files_in_folder(folder: int, part: str, above: str) -> Iterator[FileStat]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    below = os.open(part, flags, dir_fd=folder)
    try:
        yield from _files_in(below, above)
    finally:
        os.close(below)
