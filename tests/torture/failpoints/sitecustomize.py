"""Kills its process at named steps. First on PYTHONPATH it watches what Python asks of the system.

FOREBAY_FAILPOINTS is the chance of each step; FOREBAY_FAILPOINTS_HIT a file that names the hits.
"""

import os
import random
import signal
import sys

_CHANCE = float(os.environ.get("FOREBAY_FAILPOINTS", "0"))
_HITS = os.environ.get("FOREBAY_FAILPOINTS_HIT", "")
_CHANCES = random.Random(f"{os.environ.get('FOREBAY_SEED', '')}-{os.getpid()}")


def _text(path):
    return os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""


def _step(event, given):
    match event:
        case "open":
            return _opened(_text(given[0]))
        case "os.rename":
            return "download_published" if _text(given[0]).endswith(".part") else None
        case "os.link":
            return "upload_linked"
        case "os.remove":
            return "cached_file_dropped" if _is_cached(_text(given[0])) else None
    return None


def _is_cached(path):
    name = path.rpartition("/")[2]
    return len(name) == 32 and name.isalnum()


def _opened(path):
    if path.endswith(".part"):
        return "download_begun"
    if path.endswith(".parquet"):
        return "table_rows_written"
    if path.endswith(".json") and "_delta_log" in path:
        return "table_committed"
    return "upload_begun" if _is_cached(path) else None


def _die_at(event, given):
    step = _step(event, given)
    if step is None or _CHANCES.random() >= _CHANCE * (25 if step.startswith("table") else 1):
        return
    hits = os.open(_HITS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(hits, f"{step}\n".encode())
    os.kill(os.getpid(), signal.SIGKILL)


if _CHANCE and "child" in sys.orig_argv:
    sys.addaudithook(_die_at)
