"""`make bench-xact`: the whole xact pipeline beside nginx, on the cores of this machine.

`xact.py flow downloads` measures these families alone.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.results import Bench, Row
from benchmarks.xact_downloads import DownloadRows
from benchmarks.xact_flow import FlowRows
from benchmarks.xact_host import NginxHost, nginx_host
from benchmarks.xact_memory import MemoryRows
from benchmarks.xact_recovery import RecoveryRows
from benchmarks.xact_tables import append_rows, keyed_rows, memory_rows

# Where files are as durable as they get; a folder for temporary files may be in memory.
DISK = Path(__file__).parents[2] / ".cache"


def rows(host: NginxHost, wanted: list[str]) -> Iterator[Row]:
    families: dict[str, Callable[[], Iterator[Row]]] = {
        "flow": FlowRows(host).rows,
        "memory": MemoryRows(host).rows,
        "tables": memory_rows,
        "downloads": DownloadRows(host).rows,
        "append": append_rows,
        "keyed": keyed_rows,
        "recovery": RecoveryRows(host).rows,
    }
    for name in wanted or families:
        yield from families[name]()


def main() -> int:
    print("measuring xact beside nginx on this machine; about twenty minutes", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="forebay-bench-", dir=DISK) as folder,
        nginx_host(Path(folder) / "host") as host,
    ):
        met = Bench("xact").run(rows(host, sys.argv[1:]))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
