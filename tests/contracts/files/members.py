"""Processes that store one file each, to be started together or to die on the way."""

import json
import os
import subprocess
import sys
from pathlib import Path

from contracts.files.places import Place, Source

_MEMBER = Path(__file__).with_name("member.py")
_TESTS = _MEMBER.parents[2]


class Member:
    """Ready to store; `go` lets it, `outcome` waits for what it said: "" if it died."""

    def __init__(
        self,
        place: Place,
        given: Source,
        name: str,
        *,
        die_at: str = "",
        as_nobody: bool = False,
        wrapper: tuple[str, ...] = (),
    ) -> None:
        request = {
            "kind": place.kind,
            "address": place.address,
            "options": place.options,
            "source": str(given.path),
            "promised": given.promised,
            "name": name,
            "die_at": die_at,
            "as_nobody": as_nobody,
        }
        self._process = subprocess.Popen(
            [*wrapper, sys.executable, str(_MEMBER), json.dumps(request)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(_TESTS), *_given_path()])},
        )
        assert self._process.stdout.readline() == "ready\n"

    def go(self) -> None:
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def outcome(self) -> str:
        try:
            said, _ = self._process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        return said.strip()


def _given_path() -> list[str]:
    path = os.environ.get("PYTHONPATH")
    return [path] if path else []


def store_once(place: Place, given: Source, name: str, **options: object) -> str:
    member = Member(place, given, name, **options)
    member.go()
    return member.outcome()
