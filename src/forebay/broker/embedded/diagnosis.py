"""What `forebay doctor` looks at in an embedded broker."""

import shutil

import apsw

from forebay.broker.embedded.faults import translate
from forebay.broker.embedded.folder import Folder
from forebay.broker.embedded.guard import LockGuard
from forebay.broker.port import Finding

FREE_BYTES_MIN = 256 * 2**20


def diagnose(folder: Folder, guard: LockGuard) -> list[Finding]:
    return [
        _file(folder),
        _durability(folder),
        _locks(folder, guard),
        _disk(folder),
        Finding("versions", ok=True, detail=f"SQLite {apsw.sqlite_lib_version()} (apsw)"),
    ]


def _file(folder: Folder) -> Finding:
    try:
        connection = folder.connect()
        try:
            answer = connection.execute("PRAGMA quick_check(1)").get
        finally:
            connection.close()
    except apsw.Error as error:
        return Finding("file intact", ok=False, detail=str(translate(error, folder.file)))
    if answer != "ok":
        return Finding(
            "file intact",
            ok=False,
            detail=f"{folder.file}: {answer}",
            do="Stop all processes, copy the folder away, and restore it from a backup.",
        )
    return Finding("file intact", ok=True, detail=str(folder.file))


def _durability(folder: Folder) -> Finding:
    connection = folder.connect()
    try:
        journal = connection.execute("PRAGMA journal_mode").get
        synchronous = connection.execute("PRAGMA synchronous").get
    finally:
        connection.close()
    ok = journal == "wal" and synchronous == 2
    return Finding(
        "durability",
        ok=ok,
        detail="fsync before every acknowledgement" if ok else f"{journal}, level {synchronous}",
        do="" if ok else "Another program changed the file's mode: close it and start again.",
    )


def _locks(folder: Folder, guard: LockGuard) -> Finding:
    ok = guard.is_held()
    return Finding(
        "locks",
        ok=ok,
        detail="held" if ok else f"the kernel does not list our lock on {folder.file}",
        do="" if ok else "Move the folder to a local disk of this machine.",
    )


def _disk(folder: Folder) -> Finding:
    free = shutil.disk_usage(folder.path).free
    ok = free >= FREE_BYTES_MIN
    return Finding(
        "disk",
        ok=ok,
        detail=f"{free / 2**30:.1f} GiB free, {_held(folder) / 2**20:.0f} MiB used by the broker",
        do="" if ok else "Free space, or trim topics: forebay topics trim",
    )


def _held(folder: Folder) -> int:
    return sum(path.stat().st_size for path in folder.path.glob("broker.db*"))
