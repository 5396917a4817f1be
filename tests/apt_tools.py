"""Programs that tests run and apt has: logrotate rotates the mod's files, the others read its log.

`make setup-tools` installs what is missing, and so does `make test` under CI=true. `make
setup-bench` names those of the benchmarks.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

TOOLS = ("logrotate", "jq", "bc")
PACKAGES = {"nginx": "nginx-light", "aria2c": "aria2"}
FOR_ROOT = "/usr/sbin:/sbin"


def place_of(tool: str) -> str | None:
    """Users other than root seldom have the folder of logrotate on their path."""
    return shutil.which(tool) or shutil.which(tool, path=FOR_ROOT)


def missing(tools: Sequence[str] = TOOLS) -> str | None:
    absent = [tool for tool in tools if place_of(tool) is None]
    if not absent:
        return None
    return f"{', '.join(absent)} not found; run `make setup-tools`, on Debian as root"


def install(tools: Sequence[str] = TOOLS) -> None:
    """Tries; `missing` says how it went."""
    absent = [PACKAGES.get(tool, tool) for tool in tools if place_of(tool) is None]
    if not absent or not shutil.which("apt-get"):
        return
    print(f"installing {', '.join(absent)} with apt (about 10 s, once)", flush=True)
    if not _apt("install", "-y", "--no-install-recommends", *absent):
        _apt("update")
        _apt("install", "-y", "--no-install-recommends", *absent)


def _apt(*words: str) -> bool:
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    try:
        done = subprocess.run(
            [*as_root, "apt-get", "-qq", *words], stdout=subprocess.DEVNULL, check=False
        )
    except FileNotFoundError:  # no sudo here
        return False
    return done.returncode == 0


def main() -> int:
    tools = sys.argv[1:] or TOOLS
    install(tools)
    if complaint := missing(tools):
        print(complaint)
        return 1
    print(f"ready: {', '.join(tools)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
