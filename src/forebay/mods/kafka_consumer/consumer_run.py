"""One run of the consumer, from the first line of its log to the last."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from forebay import bootstrap
from forebay.broker.port import Broker
from forebay.engine.assembly import Site
from forebay.engine.dead_letters import LetterFile
from forebay.engine.doors import told_by_events_alone
from forebay.engine.run import PipelineRun
from forebay.mods.kafka_consumer.backup import BackupSettings, CsvBackup
from forebay.mods.kafka_consumer.configuration import Configuration
from forebay.mods.kafka_consumer.declaration import client_of, options_of, pipeline_of, until_of
from forebay.mods.kafka_consumer.ending import Ending
from forebay.mods.kafka_consumer.letters import ToldLetters
from forebay.mods.kafka_consumer.messages import Messages, timeout_teller
from forebay.mods.kafka_consumer.observation import Observer
from forebay.mods.kafka_consumer.outcome import outcome_of
from forebay.mods.kafka_consumer.seen import Seen
from forebay.mods.kafka_consumer.starting import Start
from forebay.mods.kafka_consumer.stopping import Wish, listening
from forebay.mods.kafka_consumer.telling import Teller
from forebay.mods.kafka_consumer.watched_broker import WatchedBroker
from forebay.mods.kafka_consumer.watched_consumer import Watch
from forebay.mods.result import Ended
from forebay.observability.clock import SystemClock


def run_consumer(configuration: Configuration, tell: Teller, wish: Wish) -> Ended:
    """Until somebody wants it to end, or it ends by itself. Raises only what the start raises."""
    broker = bootstrap.open_broker(configuration.settings.broker, tell)
    try:
        return run_on(broker, configuration, tell, wish)
    finally:
        broker.close()


def run_on(broker: Broker, configuration: Configuration, tell: Teller, wish: Wish) -> Ended:
    with ExitStack() as closing:
        closing.enter_context(listening(wish, tell))
        start = Start(configuration, broker.admin(), tell)
        start.announce()
        start.look_at_topics()
        watch = Watch(configuration, tell, Seen(), _open_backup(configuration, tell, closing))
        consumer = ConsumerRun(watch, wish)
        site = closing.enter_context(consumer.site(broker))
        return consumer.run(start, site)


class ConsumerRun:
    """Belongs to the thread that runs the mod; engine and backup have threads of their own."""

    def __init__(self, watch: Watch, wish: Wish) -> None:
        self._configuration = watch.configuration
        self._tell = watch.tell
        self._watch = watch
        self._wish = wish
        self._letters: ToldLetters | None = None
        self._is_started = False
        self._observer = Observer(watch.configuration, watch.tell)
        self._ending = Ending(watch, wish)
        watch.tell.translations["record.timed_out"] = timeout_teller(watch.tell)

    def run(self, start: Start, site: Site) -> Ended:
        pipeline = pipeline_of(self._configuration, Messages(self._configuration, self._tell))
        (route,) = pipeline.routes
        by_hand = None
        if self._configuration.dev_mode:
            by_hand = start.positions(route, lambda: self._wish.reason is not None)
        run = None
        if by_hand is not None or not self._configuration.dev_mode:
            options = options_of(self._configuration, by_hand)
            run = PipelineRun(pipeline, site, until=until_of(self._configuration), options=options)
        self._drive(run)
        return outcome_of(self._ending, self._watch, self._letters, self._observer.stuck_max)

    @contextmanager
    def site(self, broker: Broker) -> Iterator[Site]:
        """No state is kept, and nothing but the two files is written."""
        configuration = self._configuration
        with bootstrap.open_site(configuration.settings, broker, self._tell) as site:
            yield replace(
                site,
                broker=WatchedBroker(broker, self._watch),
                open_letter_file=lambda path: self._open_letters(site, path),
                expired=told_by_events_alone,
                consumer=client_of(configuration),
            )

    def _open_letters(self, site: Site, path: Path) -> LetterFile:
        skips = self._configuration.dlq_on_error == "skip"
        self._letters = ToldLetters(site.open_letter_file(path), path, self._tell, skips=skips)
        return self._letters

    def _drive(self, run: PipelineRun | None) -> None:
        try:
            if run is not None:
                run.start()
                while not run.wait():
                    self._look(run)
        finally:
            self._ending.close(run)

    def _look(self, run: PipelineRun) -> None:
        if not self._is_started and run.health():
            self._is_started = True
            self._tell("mod.all_started", total_threads=threading.active_count())
        for health in run.health():
            self._observer.look(health, time.monotonic())
        self._ending.look(run)


def _open_backup(
    configuration: Configuration, tell: Teller, closing: ExitStack
) -> CsvBackup | None:
    if not configuration.backup_enabled:
        return None
    settings = BackupSettings(
        configuration.backup_path,
        batch_size=configuration.csv_batch_size,
        flush_seconds=configuration.csv_flush_interval_seconds,
    )
    backup = CsvBackup(settings, SystemClock(), tell)
    closing.callback(backup.close)
    return backup
