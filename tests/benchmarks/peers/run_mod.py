"""The kafka_consumer mod with fifty threads. Words after the task: sleep, backup, info, large."""

import sys
import tempfile
import threading
import time
from pathlib import Path

from meter import Meter, task

from forebay import run_mod

SLEEP_SECONDS = 0.05


def main() -> None:
    given, words = task(), set(sys.argv[5:])
    meter, stop = Meter(given.records), threading.Event()

    def process(_value: bytes) -> None:
        if words & {"sleep", "large"}:
            time.sleep(SLEEP_SECONDS)
        meter()

    threading.Thread(target=lambda: (meter.is_done.wait(120), stop.set())).start()
    with tempfile.TemporaryDirectory() as folder:
        result = run_mod(
            "kafka_consumer",
            {
                "bootstrap_servers": given.bootstrap,
                "topics": [given.topic],
                "group_id": given.group,
                "processor_callable": process,
                "auto_offset_reset": "earliest",
                "backup_enabled": "backup" in words,
                "backup_path": str(Path(folder) / "backup.csv"),
                "dlq_path": str(Path(folder) / "dlq.csv"),
                "log_level": "INFO" if "info" in words else "WARNING",
            },
            stop=stop,
        )
    assert result["exit_code"] == 0, result
    meter.tell(rss_mib=_most_mib(), backed_up=result["metrics"]["backed_up"])


def _most_mib() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("this system does not tell its memory")


if __name__ == "__main__":
    main()
