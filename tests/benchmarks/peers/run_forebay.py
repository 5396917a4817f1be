"""Forebay in key order, fifty at once: with `async` as a last word on its event loop."""

import sys
from pathlib import Path

from meter import Meter, task

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.engine_stage import Declared, running, site_on
from forebay.engine.context import Context


def main() -> None:
    given = task()
    meter = Meter(given.records)

    def handle(payload: bytes, context: Context) -> None:
        meter()

    async def handle_async(payload: bytes, context: Context) -> None:
        meter()

    function = handle_async if sys.argv[-1] == "async" else handle
    pipeline = Declared(given.group, given.topic, function).pipeline()
    with site_on(given.bootstrap) as site, running(pipeline, site):
        assert meter.is_done.wait(120)
    meter.tell()


if __name__ == "__main__":
    main()
