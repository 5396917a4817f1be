"""What must hold before and while the file is open, or data is lost without an error."""

import fcntl
import os
import struct
import sys
from pathlib import Path

import apsw

from forebay.core.errors import Unusable

# Older ones can corrupt a WAL that several processes write ("WAL-reset database corruption bug",
# sqlite.org/changes.html, fixed in 3.51.3).
SQLITE_OLDEST = (3, 51, 3)

NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "gpfs"}
    | {"fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.blobfuse", "fuse.blobfuse2", "virtiofs"}
)

# The range of bytes that SQLite locks for readers (sqlite.org/src, os.h: SHARED_FIRST).
_SHARED_FIRST = 0x40000002
_SHARED_SIZE = 510


def check_sqlite(version: str | None = None) -> None:
    version = version or apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")) < SQLITE_OLDEST:
        oldest = ".".join(map(str, SQLITE_OLDEST))
        raise Unusable(
            f"SQLite {version} can corrupt a file that several processes write. Nothing was "
            f"opened. Install apsw {oldest} or newer, which brings its own."
        )


def check_file_system(folder: Path, mounts: str | None = None) -> None:
    if sys.platform != "linux":
        return
    if mounts is None:
        mounts = Path("/proc/self/mountinfo").read_text()
    kind = file_system_of(folder.resolve(), mounts)
    if kind in NETWORK_FILE_SYSTEMS:
        raise Unusable(
            f"{folder} is on a network file system ({kind}), whose locks cannot be trusted. "
            f"Nothing was opened. Choose a folder on a local disk, or use Kafka."
        )


def file_system_of(folder: Path, mounts: str) -> str:
    """The type of the innermost mount above the folder, from the text of mountinfo."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        mount_point = Path(left.split()[4].encode().decode("unicode_escape"))
        if folder.is_relative_to(mount_point) and len(mount_point.parts) >= best:
            best, kind = len(mount_point.parts), right.split()[0]
    return kind


class LockGuard:
    """Keeps SQLite's files when something in this process drops its POSIX locks.

    A plain open() and close() of the file anywhere in the process drops them silently. Another
    process that closes then believes to be the last one and deletes the WAL with committed data
    in it. This lock belongs to its descriptor, not to the process, and forbids that. Open it
    before the first connection, close it after the last.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        if hasattr(fcntl, "F_OFD_SETLKW"):
            lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, _SHARED_FIRST, _SHARED_SIZE, 0)
            fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLKW, lock)

    def is_held(self) -> bool:
        """What the kernel says, by inode."""
        if sys.platform != "linux":
            return True
        inode = os.fstat(self._descriptor).st_ino
        return any(
            " OFDLCK " in line and f":{inode} " in line
            for line in Path("/proc/locks").read_text().splitlines()
        )

    def close(self) -> None:
        os.close(self._descriptor)


class ForkGuard:
    """A connection carried through fork() corrupts the file for both processes."""

    __slots__ = ("_process",)

    def __init__(self) -> None:
        self._process = os.getpid()

    def check(self) -> None:
        if os.getpid() != self._process:
            raise Unusable(
                f"This broker was opened by process {self._process} and came here by fork. "
                f"Nothing was done. Open a broker of its own in each process."
            )
