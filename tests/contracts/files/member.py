"""A process of its own that stores one file: `member.py REQUEST`, which is JSON.

It says that it is ready, waits for a line, stores, and says how that ended. `die_at` names the
point of the adapter at which it kills itself.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from contracts.files.places import open_files
from forebay.core.errors import ForebayError

NOBODY = 65_534


class DeadlyProbe:
    def __init__(self, point: str) -> None:
        self._point = point

    def hit(self, point: str) -> None:
        if point == self._point:
            os.kill(os.getpid(), signal.SIGKILL)


async def store(request: dict) -> str:
    files = open_files(
        request["kind"], request["address"], request["options"], DeadlyProbe(request["die_at"])
    )
    try:
        await files.put(Path(request["source"]), request["name"], **request["promised"])
        return "stored"
    finally:
        await files.close()


def main(given: str) -> None:
    request = json.loads(given)
    print("ready", flush=True)
    sys.stdin.readline()
    if request["as_nobody"]:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        outcome = asyncio.run(store(request))
    except ForebayError as error:
        outcome = f"{type(error).__name__}: {error}"
    print(outcome, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
