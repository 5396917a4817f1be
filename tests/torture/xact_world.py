"""One deployment of xact: a broker, places for files and tables, and the file host outside."""

import json
import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from azurite.server import ACCOUNT, KEY, Azurite
from forebay.broker.kafka.trial import TrialCluster
from forebay.simulator.control import RunningFileHost, file_host_process

CACHE_BYTES = 256 * 2**20
FAILPOINTS = Path(__file__).parent / "failpoints"
HOST = "127.0.0.1"


class World(ABC):
    """`name` says which; what is below `folder` is all that is kept on this machine."""

    name: str
    broker_url: str

    def __init__(self, home: Path, host: RunningFileHost, closing: ExitStack) -> None:
        self.home, self.host = home, host
        self.folder = home / "data"
        self.cache = home / "cache"
        self.log = home / "run.log"
        self.hits = home / "hits"
        self.hits.touch()
        self.cache.mkdir()
        _mount(self.cache, closing)

    @abstractmethod
    def bounce(self) -> str | None:
        """What stands outside goes away and comes back; says which, or None where nothing does."""

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "ALLOWED_ATTACHMENT_DOMAINS": f"{HOST},localhost",
            "FOREBAY_CA_FILE": str(self.host.ca_file),
            "RETRY_DELAYS": "1,2,4,8",
            "BATCH_TIMEOUT_SECONDS": "1",
            "CACHE_DIR": str(self.cache),
        }

    @property
    def options(self) -> list[str]:
        return ["--dir", str(self.folder), "--broker", self.broker_url]

    def start(self, seed: int, chance: float) -> subprocess.Popen[bytes]:
        """A supervisor, whose children die at failpoints with this chance at each."""
        more = {
            "PYTHONPATH": str(FAILPOINTS),
            "FOREBAY_FAILPOINTS": str(chance),
            "FOREBAY_FAILPOINTS_HIT": str(self.hits),
            "FOREBAY_SEED": str(seed),
        }
        return self._forebay("run", "xact", "--dev", more=more)

    def run_until_idle(self, seconds: float) -> int:
        process = self._forebay("run", "xact", "--dev", "--until", "idle")
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            process.wait()
            return -1

    def audit(self) -> dict[str, Any]:
        return self._asked("audit", "xact")

    def causes(self) -> list[dict[str, Any]]:
        """Of dead letters, grouped."""
        items: list[dict[str, Any]] = self._asked("dlq", "stats")["items"]
        return items

    def _asked(self, *words: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "forebay", *words, "--json", *self.options],
            env=os.environ | self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if not done.stdout.strip():
            raise RuntimeError(f"{words[0]} said nothing: {done.stderr[-2000:]}")
        told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return told

    def _forebay(
        self, *words: str, more: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "forebay", *words, *self.options],
                env=os.environ | self.environment | (more or {}),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


class OneMachine(World):
    name = "embedded"

    def __init__(self, home: Path, host: RunningFileHost, closing: ExitStack) -> None:
        super().__init__(home, host, closing)
        self.broker_url = f"embedded:{self.folder}"

    def bounce(self) -> str | None:
        return None


class ManyMachines(World):
    """Apache Kafka and Azurite stand in for what is elsewhere."""

    name = "kafka"

    def __init__(self, home: Path, host: RunningFileHost, closing: ExitStack) -> None:
        super().__init__(home, host, closing)
        self._kafka = closing.enter_context(TrialCluster())
        self._azurite = closing.enter_context(Azurite())
        self._place = self._azurite.new_container("lakehouse")
        self.broker_url = f"kafka://{self._kafka.bootstrap}"
        self._is_kafkas_turn = True

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            **super().environment,
            "ONELAKE_BASE_PATH": f"{self._place}/Files",
            "DELTA_EVENTS_TABLE": f"{self._place}/Tables/xact_events",
            "DELTA_INVENTORY_TABLE": f"{self._place}/Tables/xact_attachments",
            "DELTA_FAILED_TABLE": f"{self._place}/Tables/xact_attachments_failed",
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:{self._azurite.port}/{ACCOUNT}",
        }

    def bounce(self) -> str | None:
        """Azurite is stopped in good order: killed, it forgets what it had acknowledged."""
        self._is_kafkas_turn = not self._is_kafkas_turn
        if self._is_kafkas_turn:
            self._azurite.stop()
            time.sleep(1.5)
            self._azurite.start()
            return "azurite_restarted"
        node = self._kafka.nodes[0]
        node.kill()
        time.sleep(1.0)
        node.start()
        return "broker_bounced"


WORLDS: Mapping[str, type[World]] = {"embedded": OneMachine, "kafka": ManyMachines}


@contextmanager
def world_of(broker: str, home: Path) -> Iterator[World]:
    with ExitStack() as closing:
        host = closing.enter_context(file_host_process(home / "host"))
        yield WORLDS[broker](home, host, closing)


def _mount(folder: Path, closing: ExitStack) -> None:
    """A small disk for the cache, that a campaign can fill."""
    asked = ["mount", "-t", "tmpfs", "-o", f"size={CACHE_BYTES}", "tmpfs", str(folder)]
    subprocess.run(asked, check=True)
    closing.callback(subprocess.run, ["umount", "-l", str(folder)], check=False)
