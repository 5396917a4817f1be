"""Downloads alone: beside aria2c on the same files, and what the guard costs of each."""

import asyncio
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.results import Row, Target
from benchmarks.xact_host import NginxHost
from forebay.observability.catalogue import silent
from forebay.observability.clock import SystemClock
from forebay.outbound.downloads import Downloads
from forebay.outbound.guard import Guard
from forebay.outbound.rules import HostRules, check_url
from forebay.outbound.settings import ConnectionSettings, DownloadSettings

FILES = 2_000
AT_ONCE = 50
GUARDED = 20_000
MEMORY = Path("/dev/shm")
PUBLIC = ("93.184.216.34", 443)
PUBLIC_RULES = HostRules(allowed=("files.example",))
RULES = HostRules(allowed=("127.0.0.1",), allow_loopback=True, allowed_types=("pdf",))


class DownloadRows:
    def __init__(self, host: NginxHost) -> None:
        self._host = host

    def rows(self) -> Iterator[Row]:
        yield Row(
            "downloads_over_aria2c",
            "ratio",
            Target(at_least=0.5),
            self._over_aria2c,
            f"files per second over aria2c's, {FILES:,} files of 100 KB over https from nginx, "
            f"{AT_ONCE} at once, hashed and renamed, in memory",
        )
        yield Row(
            "download_guard_us",
            "us",
            Target(at_most=150),
            self._guard,
            "the rules for its URL, a resolver's answer judged, its socket judged and made, as for "
            "a download on a connection of its own",
        )

    def _over_aria2c(self) -> tuple[float, dict[str, float]]:
        theirs, ours = self._aria2c(), self._ours()
        return theirs / ours, {"ours_per_second": FILES / ours, "aria2c_per_second": FILES / theirs}

    def _ours(self) -> float:
        with _in_memory() as folder:
            return asyncio.run(self._fetch_all(Path(folder)))

    async def _fetch_all(self, folder: Path) -> float:
        settings = DownloadSettings(
            concurrency=AT_ONCE, connections=ConnectionSettings(ca_file=self._host.ca_file)
        )
        async with Downloads(settings, SystemClock(), silent) as downloads:
            begun = time.perf_counter()
            await asyncio.gather(
                *(
                    downloads.fetch(self._host.link("100k", number), folder / str(number), RULES)
                    for number in range(FILES)
                )
            )
            return time.perf_counter() - begun

    def _aria2c(self) -> float:
        program = shutil.which("aria2c")
        if program is None:
            raise FileNotFoundError("aria2c is not installed; make setup-bench installs it")
        with _in_memory() as folder:
            links = Path(folder) / "links"
            lines = (
                f"{self._host.link('100k', number)}\n  out={number}\n" for number in range(FILES)
            )
            links.write_text("".join(lines))
            begun = time.perf_counter()
            subprocess.run(
                [
                    *(program, "-q", "-i", str(links), "-d", folder, "-j", str(AT_ONCE)),
                    *("-x", "1", "-s", "1", f"--ca-certificate={self._host.ca_file}"),
                    *("--file-allocation=none", "--auto-file-renaming=false"),
                ],
                check=True,
            )
            return time.perf_counter() - begun

    def _guard(self) -> tuple[float, dict[str, float]]:
        guard, info = (
            Guard(allow_loopback=False),
            (socket.AF_INET, socket.SOCK_STREAM, 0, "", PUBLIC),
        )
        begun = time.perf_counter()
        for number in range(GUARDED):
            check_url(f"https://files.example/{number}.pdf?X-Amz-Signature={number}", PUBLIC_RULES)
            guard.allows(PUBLIC[0])
            guard.socket(info).close()
        return (time.perf_counter() - begun) / GUARDED * 1e6, {}


def _in_memory() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="forebay-bench-", dir=MEMORY)
