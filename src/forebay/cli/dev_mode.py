"""forebay run --dev-mode: the pipeline on real records, with what it would do on the screen."""

import signal
from collections import Counter
from threading import Lock
from typing import Any

from forebay import bootstrap
from forebay.cli.command import DONE, Command
from forebay.cli.errors import WrongUse
from forebay.cli.output import print_object, remark, say
from forebay.cli.payload import one_line
from forebay.core.envelope import user_headers
from forebay.core.records import Record
from forebay.engine.pipeline import Pipeline
from forebay.engine.run import PipelineRun, Until

VALUE_LENGTH_MAX = 200


class Screen:
    """Called from the threads of all stages."""

    def __init__(self) -> None:
        self._writing = Lock()
        self.counts: Counter[str] = Counter()

    def show(self, place: str, what: Any) -> None:
        with self._writing:
            self.counts[place] += 1
            say(f"would go to {place}: {_told(what)}")


def run_in_dev_mode(command: Command, pipeline: Pipeline, until: Until) -> int:
    if pipeline.name in bootstrap.DOMAINS:
        raise WrongUse(
            f"--dev-mode is for your own pipelines: the stages of {pipeline.name} store files by "
            f"themselves. Nothing was started. Run it with another --dir instead."
        )
    screen = Screen()
    session = command.session()
    with (
        session.broker() as broker,
        bootstrap.open_site(session.settings, broker, session.emit) as site,
    ):
        run = PipelineRun(pipeline, site, until=until, show=screen.show)
        signal.signal(signal.SIGINT, lambda *_: run.stop())
        signal.signal(signal.SIGTERM, lambda *_: run.stop())
        remark(f"dev mode · {pipeline.name} · {broker.describe().sentence}")
        receipt = run.run()
    remark(f"{receipt.handled:,} handled. Nothing was sent, stored or committed.")
    if command.as_json:
        print_object(receipt.as_object() | {"dev_mode": True, "shown": dict(screen.counts)})
    return DONE


def _told(what: Any) -> str:
    if not isinstance(what, Record):
        return str(what)
    key = one_line(what.key, VALUE_LENGTH_MAX)
    names = [name for name, _ in user_headers(what.headers)]
    headers = f" [{', '.join(names)}]" if names else ""
    return f"{key}  {one_line(what.value, VALUE_LENGTH_MAX)}{headers}"
