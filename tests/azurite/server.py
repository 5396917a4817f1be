"""Azurite, the object store of the tests: fetched with npm into .cache, once per clone.

`python tests/azurite/server.py` fetches it, as `make setup-tools` does.
"""

import base64
import fcntl
import hashlib
import hmac
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from types import TracebackType
from typing import Self

from forebay.broker.kafka.node import free_ports
from forebay.core.errors import Unusable
from forebay.testing.waiting import eventually

ACCOUNT = "devstoreaccount1"
# Azurite's own, the same everywhere and in its documentation: no secret.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

_HERE = Path(__file__).parent
_LOCK_FILE = _HERE / "package-lock.json"
_CACHE = _HERE.parents[1] / ".cache" / "azurite"
_PROGRAM = Path("node_modules/azurite/dist/src/blob/main.js")
_FETCH_SECONDS_MAX = 600
_STOP_SECONDS_MAX = 20
_INSTALL = "On Debian: apt-get install nodejs npm."
_API_VERSION = "2021-12-02"


def missing() -> str | None:
    """What must be installed before Azurite can run, in one line; None if nothing."""
    if shutil.which("node") is None:
        return f"no Node found. {_INSTALL}"
    if not is_fetched() and shutil.which("npm") is None:
        return f"no npm found, which fetches Azurite once. {_INSTALL}"
    return None


def is_fetched() -> bool:
    return (_folder() / _PROGRAM).is_file()


def fetch() -> Path:
    """Its program, with the very packages that package-lock.json names."""
    _CACHE.mkdir(parents=True, exist_ok=True)
    with _one_at_a_time():
        if not is_fetched():
            _fetch_into(_folder())
    return _folder() / _PROGRAM


class Azurite:
    """One server on loopback. Its data stays when it stops, and goes when the block ends."""

    def __init__(self) -> None:
        (self.port,) = free_ports(1)
        self._folder = tempfile.TemporaryDirectory(prefix="forebay-azurite-")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def options(self) -> dict[str, str]:
        """For files and for Delta tables alike."""
        return {
            "azure_storage_account_name": ACCOUNT,
            "azure_storage_account_key": KEY,
            "azure_storage_endpoint": f"http://127.0.0.1:{self.port}/{ACCOUNT}",
            "allow_http": "true",
        }

    def new_container(self, name: str) -> str:
        """Its address, to which a path may be added."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/{ACCOUNT}/{name}?restype=container",
            method="PUT",
            headers=_signed(name),
        )
        with urllib.request.urlopen(request, timeout=10):  # noqa: S310 - loopback
            return f"abfss://{name}@{ACCOUNT}.dfs.core.windows.net"

    def start(self) -> None:
        """Also again, after `stop`, on the same port and data."""
        place = ["--blobHost", "127.0.0.1", "--blobPort", str(self.port)]
        quiet = ["--silent", "--disableTelemetry", "--skipApiVersionCheck"]
        log = Path(self._folder.name) / "azurite.log"
        with log.open("ab") as written:
            self._process = subprocess.Popen(
                [
                    *_ends_with_its_parent(),
                    *("node", str(fetch()), *place, *quiet),
                    *("--location", str(Path(self._folder.name) / "data")),
                ],
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=subprocess.STDOUT,
            )
        eventually(self._serves, within_seconds=60)

    def stop(self) -> None:
        """In good order: a killed Azurite forgets what it acknowledged in its last seconds."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_STOP_SECONDS_MAX)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        self.kill()
        self._folder.cleanup()

    def _serves(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            log = Path(self._folder.name) / "azurite.log"
            raise Unusable(f"Azurite ended at start. Its log ends: {log.read_text()[-2000:]}")
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0


def main() -> int:
    if complaint := missing():
        print(f"Azurite cannot be fetched: {complaint}")
        return 1
    if not is_fetched():
        print("fetching Azurite with npm into .cache (about 40 s, once)", flush=True)
    fetch()
    print("ready: Azurite")
    return 0


def _folder() -> Path:
    """One for each lock file, so that a newer one is fetched anew."""
    return _CACHE / hashlib.sha256(_LOCK_FILE.read_bytes()).hexdigest()[:12]


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    with (_CACHE / "fetch.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _fetch_into(folder: Path) -> None:
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(_HERE / name, part)
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    complaint = "npm could not fetch Azurite; look at your npm registry"
    try:
        done = subprocess.run(
            ["npm", "ci", *quiet],
            cwd=part,
            capture_output=True,
            text=True,
            timeout=_FETCH_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Unusable(f"{complaint}. It did not end in {_FETCH_SECONDS_MAX} s.") from error
    if done.returncode:
        raise Unusable(f"{complaint}. It said: {(done.stdout + done.stderr)[-2000:]}")
    part.rename(folder)


def _signed(container: str) -> dict[str, str]:
    """A shared key's signature, for the one request that no client here can make."""
    date = formatdate(usegmt=True)
    resource = f"/{ACCOUNT}/{ACCOUNT}/{container}\nrestype:container"
    text = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{_API_VERSION}\n{resource}"
    signature = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    return {
        "x-ms-date": date,
        "x-ms-version": _API_VERSION,
        "Content-Length": "0",
        "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(signature).decode()}",
    }


def _ends_with_its_parent() -> list[str]:
    wrapper = shutil.which("setpriv")
    return [wrapper, "--pdeathsig", "KILL", "--"] if wrapper else []


if __name__ == "__main__":
    sys.exit(main())
