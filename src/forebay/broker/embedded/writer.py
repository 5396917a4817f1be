"""The one thread of a process that writes: group commit behind the gate."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from queue import SimpleQueue
from random import Random
from typing import Generic, Protocol, TypeVar

import apsw

from forebay.broker.embedded.bells import BellTower
from forebay.broker.embedded.faults import (
    commit_failed,
    is_failed_sync,
    sync_refused,
    translate,
    wal_deleted,
)
from forebay.broker.embedded.folder import Folder
from forebay.broker.embedded.gate import Gate
from forebay.broker.embedded.transaction import Transaction
from forebay.core.errors import Closed, ForebayError, OutcomeUnknown, Unusable
from forebay.core.probe import Probe
from forebay.observability.catalogue import Emit

# One transaction holds the gate for about 10 ms at most.
WEIGHT_MAX = 5_000
ANSWER_SECONDS = 30.0

Result = TypeVar("Result")


class Work(Protocol):
    """Something to do in a write transaction, and where its outcome goes."""

    weight: int

    def apply(self, transaction: Transaction) -> None:
        """Look first, write after. A ForebayError raised before writing is this work's own."""
        ...

    def settle(self, error: ForebayError | None) -> None:
        """Called once, after the transaction is durable or has failed. Must not raise."""
        ...


class Operation(Generic[Result]):
    """Work with one result, waited for or not."""

    def __init__(self, decide: Callable[[Transaction], Result], weight: int = 1) -> None:
        self.weight = weight
        self.future: Future[Result] = Future()
        self._decide = decide
        self._result: Result

    def apply(self, transaction: Transaction) -> None:
        self._result = self._decide(transaction)

    def settle(self, error: ForebayError | None) -> None:
        if error is None:
            self.future.set_result(self._result)
        else:
            self.future.set_exception(error)


class Writer:
    """Takes work from any thread of the process; commits what has gathered in one transaction."""

    def __init__(
        self, folder: Folder, wal_bytes_max: int, emit: Emit, probe: Probe, gaps: Random | None
    ) -> None:
        self._folder = folder
        self._wal_bytes_max = wal_bytes_max
        self._emit = emit
        self._probe = probe
        self._gaps = gaps
        self._wal = folder.wal
        self._gate = Gate(folder.gate)
        self._tower = BellTower(folder.bells)
        self._connection = folder.connect()
        self._incoming: SimpleQueue[Work | None] = SimpleQueue()
        self._entry = threading.Lock()
        self._draining = False
        self._refusal: ForebayError | None = None
        self.topics_version = 0
        self._thread = threading.Thread(target=self._run, name="forebay-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Work) -> None:
        """Hand work over. It is settled exactly once, on the writer's thread."""
        with self._entry:
            if self._refusal:
                raise self._refusal
            self._incoming.put(work)

    def run(self, decide: Callable[[Transaction], Result], weight: int = 1) -> Result:
        """Do one operation and wait until it is durable."""
        operation = Operation(decide, weight)
        self.submit(operation)
        return self.wait(operation)

    def wait(self, operation: Operation[Result]) -> Result:
        try:
            return operation.future.result(ANSWER_SECONDS)
        except NotInTime:
            raise OutcomeUnknown(self.why_no_answer(ANSWER_SECONDS)) from None

    def why_no_answer(self, seconds: float) -> str:
        return (
            f"{self._folder.file} gave no answer for {seconds:g} s; whether the write is there is "
            f"unknown. {self.who_is_writing()}"
        )

    def who_is_writing(self) -> str:
        holder = self._gate.holder()
        if holder is None:
            return "No process is writing now; look at the disk."
        return f"Process {holder} is writing: if it is frozen, let it go on or end it."

    def close(self) -> None:
        """Commit what was handed over, then stop. May repeat."""
        with self._entry:
            self._refusal = self._refusal or _closed()
            self._incoming.put(None)
        self._thread.join()

    def _run(self) -> None:
        gathered: deque[Work] = deque()
        try:
            while self._gather(gathered):
                self._commit(self._share(gathered))
        finally:
            self._abandon(gathered)
            self._connection.close()
            self._gate.close()

    def _gather(self, gathered: deque[Work]) -> bool:
        """Wait for work, then take all that has come. False once closed and empty."""
        while not self._incoming.empty() or not (gathered or self._draining):
            work = self._incoming.get()
            if work is None:
                self._draining = True
            else:
                gathered.append(work)
        return bool(gathered)

    def _share(self, gathered: deque[Work]) -> list[Work]:
        """As much as one transaction should carry."""
        share, weight = [], 0
        while gathered and weight < WEIGHT_MAX:
            work = gathered.popleft()
            share.append(work)
            weight += work.weight
        return share

    def _commit(self, works: list[Work]) -> None:
        errors: dict[int, ForebayError] = {}
        transaction = Transaction(self._connection, self._gaps)
        failure: ForebayError | None = _died(self._folder)
        try:
            with self._gate:
                failure = self._refusal_to_write() or self._write(transaction, works, errors)
            self._probe.hit("writer.before_ringing")
            if failure is None:
                self._tower.ring(transaction.topics, transaction.groups)
        finally:
            if isinstance(failure, Unusable):
                self._refusal = failure
            for at, work in enumerate(works):
                work.settle(failure or errors.get(at))

    def _refusal_to_write(self) -> ForebayError | None:
        return self._refusal if isinstance(self._refusal, Unusable) else None

    def _write(
        self, transaction: Transaction, works: list[Work], errors: dict[int, ForebayError]
    ) -> ForebayError | None:
        """The error that all share, or None once everything is durable."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for at, work in enumerate(works):
                if error := _apply(work, transaction):
                    errors[at] = error
            transaction.flush()
            self._probe.hit("writer.before_commit")
        except apsw.Error as error:
            self._roll_back()
            return translate(error, self._folder.file)
        except BaseException:
            self._roll_back()
            raise
        failure = self._make_durable()
        if failure is None and transaction.topics_version is not None:
            self.topics_version = transaction.topics_version
        return failure

    def _make_durable(self) -> ForebayError | None:
        try:
            self._connection.execute("COMMIT")
        except apsw.Error as error:
            self._roll_back()
            if is_failed_sync(error):
                self._refusal = sync_refused(self._folder.file)
            return commit_failed(error, self._folder.file)
        self._probe.hit("writer.after_commit")
        try:
            wal_bytes = self._wal.stat().st_size
        except FileNotFoundError:
            return wal_deleted(self._folder.file)
        if wal_bytes > self._wal_bytes_max:
            self._truncate_wal(wal_bytes)
        return None

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _truncate_wal(self, wal_bytes: int) -> None:
        """Commits checkpoint by themselves; a slow reader can keep the WAL from starting over."""
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error as error:
            self._emit("broker.wal_large", bytes=wal_bytes, error_message=str(error))

    def _abandon(self, gathered: deque[Work]) -> None:
        """Nobody waits for ever for a writer that is gone."""
        with self._entry:
            self._refusal = refusal = self._refusal or _died(self._folder)
            while not self._incoming.empty():
                work = self._incoming.get()
                if work is not None:
                    gathered.append(work)
        for work in gathered:
            work.settle(refusal)


def _closed() -> ForebayError:
    return Closed("The broker was closed by its owner; open another.")


def _died(folder: Folder) -> ForebayError:
    return Unusable(
        f"The writer of {folder.file} died of an error in Forebay, whose trace went to stderr. "
        f"What was acknowledged is safe; whether the last writes are there is unknown. Start the "
        f"process again, and report the trace."
    )


def _apply(work: Work, transaction: Transaction) -> ForebayError | None:
    before = transaction.writes
    try:
        work.apply(transaction)
    except ForebayError as error:
        if transaction.writes != before:
            raise
        return error
    return None
