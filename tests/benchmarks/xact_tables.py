"""What position, fence, keys and durability cost over a bare append of the Delta client."""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

import polars as pl
from deltalake import DeltaTable, write_deltalake

from benchmarks.results import Row, Target
from benchmarks.xact_run import peak_mib
from forebay.core.sinks import SourcePartition
from forebay.lakehouse.tables.delta.location import TableLocation
from forebay.lakehouse.tables.delta.sink import DeclaredTable, DeltaSink
from forebay.lakehouse.tables.port import WriteMode
from forebay.state.sql_values import Column

BATCH = 1_000
ROUNDS = 30
WARM_UP = 5
DAYS = 30
TABLE_ROWS = 1_000_000
SOURCES = [SourcePartition("xact.downloads.results", number, "topic-1") for number in range(6)]
KEY = ("trace_id", "attachment_url")
COLUMNS = (
    *(Column(name) for name in (*KEY, "blob_path", "status_subtype", "file_type", "status")),
    Column("bytes_downloaded", int),
    Column("created_at", datetime),
    Column("event_date", date),
)
SCHEMA = {
    **{column.name: pl.String for column in COLUMNS[:6]},
    "bytes_downloaded": pl.Int64,
    "created_at": pl.Datetime("us", "UTC"),
    "event_date": pl.Date,
}
LAST_DAY = date(2026, 1, DAYS)
NOON = datetime(2026, 1, DAYS, 12, tzinfo=UTC)


def append_rows() -> Iterator[Row]:
    yield Row(
        "delta_append_over_bare",
        "x",
        Target(at_most=2.0),
        _append_over_bare,
        "median ms of 1,000 rows (dicts, 9 columns) into a table by date, with the positions of 6 "
        "partitions, fence and fsync, over write_deltalake(table, frame of them) on a table kept "
        "open; `path` opens it each time, as write_deltalake(path, …) does",
    )


def keyed_rows() -> Iterator[Row]:
    includes = (
        "median ms of 1,000 rows, half of them sent before, into 1M rows by date, with position, "
        "fence and fsync, over an append of them by write_deltalake to such a table kept open"
    )
    yield Row(
        "delta_keyed_over_bare", "x", Target(at_most=8.0), _missing_over_bare, includes, runs=1
    )
    yield Row(
        "delta_upsert_over_bare",
        "x",
        Target(at_most=8.0),
        _upsert_over_bare,
        f"{includes}; the half that was sent before has changed and is rewritten",
        runs=1,
    )


def memory_rows() -> Iterator[Row]:
    yield Row(
        "table_writer_rss_mib",
        "MiB",
        Target(at_most=350.0),
        _peak_of_a_writer,
        "peak of a process that upserts 60 batches of 1,000 rows over all 30 days of 1M rows by "
        "date, a tenth of them changed",
    )


def _append_over_bare() -> tuple[float, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        by_path = _bare_by_path(Path(folder, "path"))
        bare = _bare(Path(folder, "bare"))
        ours = _sink_writes(Path(folder, "ours"), "append")
        return _ratio(by_path, bare, ours)


def _missing_over_bare() -> tuple[float, dict[str, float]]:
    return _keyed_over_bare("append_missing")


def _upsert_over_bare() -> tuple[float, dict[str, float]]:
    return _keyed_over_bare("upsert")


def _keyed_over_bare(mode: WriteMode) -> tuple[float, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("path", "bare", "ours"):
            _in_a_child(_fill, Path(folder, name))
        by_path = _bare_by_path(Path(folder, "path"))
        bare = _bare(Path(folder, "bare"))
        ours = _sink_writes(Path(folder, "ours"), mode, half_is_known=True)
        return _ratio(by_path, bare, ours)


def _ratio(
    by_path: Callable[[int], None], bare: Callable[[int], None], ours: Callable[[int], None]
) -> tuple[float, dict[str, float]]:
    """In turn, so that a busy moment hits all of them."""
    taken: dict[str, list[float]] = {"path_ms": [], "bare_ms": [], "ours_ms": []}
    for number in range(WARM_UP + ROUNDS):
        for times, write in zip(taken.values(), (by_path, bare, ours), strict=True):
            began = time.perf_counter()
            write(number)
            times.append((time.perf_counter() - began) * 1000)
    figures = {name: statistics.median(times[WARM_UP:]) for name, times in taken.items()}
    figures["over_path"] = figures["ours_ms"] / figures["path_ms"]
    return figures["ours_ms"] / figures["bare_ms"], figures


def _bare_by_path(path: Path) -> Callable[[int], None]:
    def write(number: int) -> None:
        frame = pl.DataFrame(_rows(number * BATCH, "new"), schema=SCHEMA)
        write_deltalake(path, frame, mode="append", partition_by=["event_date"])

    return write


def _bare(path: Path) -> Callable[[int], None]:
    write_deltalake(path, pl.DataFrame(schema=SCHEMA), mode="append", partition_by=["event_date"])
    table = DeltaTable(path)

    def write(number: int) -> None:
        frame = pl.DataFrame(_rows(number * BATCH, "new"), schema=SCHEMA)
        write_deltalake(table, frame, mode="append")

    return write


def _sink_writes(
    path: Path, mode: WriteMode, *, half_is_known: bool = False
) -> Callable[[int], None]:
    sink = _sink(path, mode)
    sink.position(SOURCES)

    def write(number: int) -> None:
        rows = _rows(number * BATCH, "new")
        if half_is_known:
            rows[::2] = _rows(0, "known", status=f"round {number}")[::2]
        sink.commit(rows, dict.fromkeys(SOURCES, number + 1))

    return write


def _sink(path: Path, mode: WriteMode) -> DeltaSink:
    key = () if mode == "append" else KEY
    location = TableLocation(str(path))
    return DeltaSink("bench", DeclaredTable(location, COLUMNS, key, mode, ("event_date",)))


def _rows(first: int, kind: str, *, status: str = "completed") -> list[dict[str, object]]:
    """`known` are those that the table was filled with on its last day."""
    return [_row(number, kind, LAST_DAY, status) for number in range(first, first + BATCH)]


def _row(number: int, kind: str, day: date, status: str) -> dict[str, object]:
    return {
        "trace_id": f"{kind}-{number:09d}-4000-8000-{day:%Y%m%d}0000",
        "attachment_url": f"https://files.example/exports/{number}/{kind}.pdf",
        "blob_path": f"documentsReceived/A{number}/{number}.pdf",
        "status_subtype": "documentsReceived",
        "file_type": "PDF",
        "status": status,
        "bytes_downloaded": number,
        "created_at": NOON,
        "event_date": day,
    }


def _fill(path: Path) -> None:
    for back in range(DAYS):
        day = LAST_DAY - timedelta(days=back)
        rows = [_row(number, "known", day, "completed") for number in range(TABLE_ROWS // DAYS)]
        frame = pl.DataFrame(rows, schema=SCHEMA)
        write_deltalake(path, frame, mode="append", partition_by=["event_date"])


def _peak_of_a_writer() -> tuple[float, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows")
        _in_a_child(_fill, path)
        peak_mib = _in_a_child(_write_everywhere, path)
        return peak_mib, {"peak_mib": peak_mib}


def _write_everywhere(path: Path) -> float:
    sink = _sink(path, "upsert")
    sink.position(SOURCES)
    for number in range(60):
        day = LAST_DAY - timedelta(days=number % DAYS)
        rows = [_row(number * BATCH + at, "new", day, "completed") for at in range(BATCH)]
        rows[::10] = [_row(at, "known", day, f"round {number}") for at in range(0, BATCH, 10)]
        sink.commit(rows, {SOURCES[0]: number + 1})
    return peak_mib(os.getpid())  # what the system accounts to a process counts its parent, too


def _in_a_child(work: Callable[[Path], object], path: Path) -> float:
    with get_context("spawn").Pool(1) as pool:
        return float(pool.apply(work, (path,)) or 0.0)
