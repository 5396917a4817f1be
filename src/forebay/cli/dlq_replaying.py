"""Carries a replay out: from the state file to the broker, step by step, saying how far it is."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial

from forebay.broker.port import Broker
from forebay.cli.dlq_pipelines import named_or_found
from forebay.cli.dlq_progress import LongWork
from forebay.cli.dlq_way_back import Origins, WayBack, origins_of, way_back
from forebay.cli.errors import WrongUse
from forebay.cli.output import remark
from forebay.cli.session import Session
from forebay.core.errors import ForebayError
from forebay.engine.ledger import Ledger
from forebay.engine.replay import Progress, ReplayRun
from forebay.engine.replay_plans import Plan
from forebay.state.port import Database


class Replaying:
    """The broker is opened when it is needed: a dry run seldom does."""

    def __init__(
        self, session: Session, database: Database, reference: str | None, closing: ExitStack
    ) -> None:
        self.session = session
        self.database = database
        self.ledger = Ledger(database)
        self._find = partial(named_or_found, session, reference)
        self._closing = closing

    @cached_property
    def _broker(self) -> Broker:
        return self._closing.enter_context(self.session.broker())

    def way_back(self, origins: Origins) -> WayBack:
        back = way_back(self.ledger, origins, self._find, self._topics)
        if back.nowhere and not back.targets:
            raise WrongUse(
                f"Where these {back.nowhere:,} dead letters go back to cannot be told: no pipeline "
                f"with a stage that takes them back is found here, nor a topic for their return. "
                f"Nothing was sent. Say where the pipeline is: --of module:pipeline. (What a sink "
                f"gave up cannot be replayed.)"
            )
        return back

    def way_back_of(self, plan: Plan) -> WayBack:
        return self.way_back(origins_of(self.ledger, plan.entries))

    def carry_out(self, plan: Plan, back: WayBack, rate: float | None) -> Progress:
        producer = self._broker.producer()
        run = ReplayRun(self.database, producer, plan, back.routes, rate)
        with _hint(plan), LongWork("sent", len(plan.entries)) as work:
            while (wait := run.step(time.time())) is not None:
                if work.is_due:
                    progress = run.progress
                    work.show(progress.published + progress.sent, progress.trouble)
                time.sleep(wait)
            producer.close()
        return run.progress

    def _topics(self) -> set[str]:
        return {topic.name for topic in self._broker.admin().describe_topics()}


@contextmanager
def _hint(plan: Plan) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, ForebayError):
        remark(
            f"Replay {plan.id} is not at its end; what was sent stays sent. Go on with: forebay "
            f"dlq replay --resume {plan.id}"
        )
        raise
