"""Whether each row of the inventory has its file, and each file its row."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from forebay.core.errors import InvalidName
from forebay.domains.xact.audit_books import Books
from forebay.domains.xact.audit_places import AuditPlaces
from forebay.domains.xact.audit_rows import Advance, StoredRow
from forebay.lakehouse.files.names import without_last_part
from forebay.lakehouse.files.port import FileStat
from forebay.operations.marks import Marks

THERE = 1
CLAIMED = 2
FILES_AT_ONCE = 64
READERS = 4
LISTED_AT_ONCE = 2_000


class FileReader:
    """`content`: files are read and hashed where their row has a hash."""

    def __init__(
        self, places: AuditPlaces, books: Books, advance: Advance, *, content: bool
    ) -> None:
        self._files = places.files
        self._send_again = places.send_again
        self._books = books
        self._advance = advance
        self._content = content
        self._listed = Marks()

    def take_stock(self) -> None:
        """Of all files there are."""
        listed = 0
        for file in self._files.list():
            self._listed.mark(_number(file), THERE)
            listed += 1
            if listed % LISTED_AT_ONCE == 0:
                self._advance(LISTED_AT_ONCE)
        self._books.facts["files_listed"] = listed

    def check(self, rows: Sequence[StoredRow]) -> None:
        sound: list[StoredRow] = []
        measured: list[StoredRow] = []
        for row in rows:
            (sound if self._is_claimed(row) else measured).append(row)
        for at in range(0, len(measured), FILES_AT_ONCE):
            some = measured[at : at + FILES_AT_ONCE]
            found = asyncio.run(self._stats(some))
            sound += [row for row, file in zip(some, found, strict=True) if self._fits(row, file)]
        self._books.facts["files_checked"] += len(rows)
        self._books.facts["files_without_hash"] += sum(1 for row in rows if not row.content_sha256)
        if self._content:
            self._compare([row for row in sound if row.content_sha256])

    def tell_orphans(self) -> None:
        """A second look at the names, only where some file has no row."""
        orphans = self._listed.counts()[THERE]
        if not orphans:
            return
        for file in self._files.list():
            if self._listed.of(_number(file)) == THERE and not self._books.paths.of(
                hash(file.name)
            ):
                self._books.add(
                    "orphan_file",
                    f"No row of xact_attachments names the file {without_last_part(file.name)} "
                    f"({file.size:,} bytes), and no result of it is on its way. Restore its row, "
                    f"or delete it.",
                )

    def _is_claimed(self, row: StoredRow) -> bool:
        """True where a file of that name and size was listed."""
        number = hash((row.blob_path, row.bytes_downloaded))
        return bool(self._listed.mark_known(number, CLAIMED))

    def _fits(self, row: StoredRow, file: FileStat | None) -> bool:
        if file is None:
            self._missing(row)
            return False
        self._listed.mark_known(_number(file), CLAIMED)
        if row.bytes_downloaded is None or file.size == row.bytes_downloaded:
            return True
        self._other_content(row, f"{file.size:,} bytes, its row says {row.bytes_downloaded:,}")
        return False

    def _compare(self, rows: Sequence[StoredRow]) -> None:
        with ThreadPoolExecutor(READERS, thread_name_prefix="forebay-audit") as readers:
            for at in range(0, len(rows), FILES_AT_ONCE):
                some = rows[at : at + FILES_AT_ONCE]
                for row, file in zip(some, readers.map(self._digest, some), strict=True):
                    self._compare_one(row, file)
        self._books.facts["files_hashed"] += len(rows)

    def _compare_one(self, row: StoredRow, file: FileStat | None) -> None:
        if file is None:
            self._missing(row)
        elif file.sha256 != str(row.content_sha256).lower():
            told = f"{str(file.sha256)[:12]}…, its row says {str(row.content_sha256)[:12]}…"
            self._other_content(row, f"the hash {told}")

    def _digest(self, row: StoredRow) -> FileStat | None:
        return self._files.digest(str(row.blob_path))

    async def _stats(self, rows: Sequence[StoredRow]) -> list[FileStat | None]:
        return await asyncio.gather(*(self._stat(row.blob_path) for row in rows))

    async def _stat(self, path: str | None) -> FileStat | None:
        """A name that no place could keep has no file."""
        try:
            return await self._files.stat(path) if path else None
        except InvalidName:
            return None

    def _missing(self, row: StoredRow) -> None:
        self._books.add(
            "missing_file",
            f"The row of an attachment of {row.trace_id} names {_file_of(row)}, which is not "
            f"there. Restore it; or delete the row, and {self._send_again}.",
            row.trace_id,
            row.attachment_url,
        )

    def _other_content(self, row: StoredRow, what: str) -> None:
        self._books.add(
            "wrong_content",
            f"Of {row.trace_id} {_file_of(row)} has {what}. Somebody changed the file, or the disk "
            f"did: restore it.",
            row.trace_id,
            row.attachment_url,
        )


def _file_of(row: StoredRow) -> str:
    return f"the file {without_last_part(row.blob_path)}" if row.blob_path else "no file"


def _number(file: FileStat) -> int:
    return hash((file.name, file.size))
