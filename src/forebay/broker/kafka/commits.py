"""Commits explicit offsets and gathers what became of each partition."""

from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import Consumer as Client
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from forebay.broker.kafka.errors import translate
from forebay.broker.kafka.questions import OFFSETS, partition_of
from forebay.broker.port import CommitResult
from forebay.core.errors import CommitFailed, Fenced, ForebayError, InvalidRequest
from forebay.core.records import CommittedOffset, TopicPartition

# The client sends a closing NUL, which the broker counts against its 4,096.
METADATA_CHARACTERS_MAX = 4095

Offsets = Mapping[TopicPartition, CommittedOffset]
Failures = dict[TopicPartition, ForebayError]


class Commits:
    """`is_ours` says whether a partition may be committed: brokers check the member, not that."""

    def __init__(self, is_ours: Callable[[TopicPartition], bool]) -> None:
        self._is_ours = is_ours
        self._finished: list[CommitResult] = []

    def commit(self, client: Client, offsets: Offsets) -> None:
        failures = self._failures(offsets)
        places = _places(offsets, failures)
        if places:
            failures |= _commit(client, places)
        if failures:
            raise CommitFailed(failures)

    def start(self, client: Client, offsets: Offsets) -> None:
        failures = self._failures(offsets)
        if failures:
            refused = {at: offsets[at] for at in failures}
            self._finished.append(CommitResult(refused, failures))
        if places := _places(offsets, failures):
            try:
                client.commit(offsets=places, asynchronous=True)
            except KafkaException as error:
                self.on_commit(error.args[0], places)

    def finished(self) -> list[CommitResult]:
        finished, self._finished = self._finished, []
        return finished

    def on_commit(self, error: KafkaError | None, places: Sequence[ClientPartition]) -> None:
        offsets = {
            partition_of(place): CommittedOffset(place.offset, place.metadata or "")
            for place in places
        }
        self._finished.append(CommitResult(offsets, _outcome(places, error)))

    def _failures(self, offsets: Offsets) -> Failures:
        problems = ((at, self._problem(at, commit)) for at, commit in offsets.items())
        return {at: problem for at, problem in problems if problem is not None}

    def _problem(self, at: TopicPartition, commit: CommittedOffset) -> ForebayError | None:
        if not self._is_ours(at):
            return Fenced(f"{at} is not assigned to this consumer (any more); drop what is read.")
        if commit.offset not in OFFSETS:
            return InvalidRequest(f"Offset {commit.offset} of {at} cannot be committed.")
        if len(commit.metadata) > METADATA_CHARACTERS_MAX or "\0" in commit.metadata:
            return InvalidRequest(
                f"The metadata of the commit for {at} has {len(commit.metadata)} characters; use "
                f"at most {METADATA_CHARACTERS_MAX}, without NUL."
            )
        return None


def _commit(client: Client, places: list[ClientPartition]) -> Failures:
    try:
        return _outcome(client.commit(offsets=places, asynchronous=False), None)
    except KafkaException as error:
        return _outcome(places, error.args[0])


def _outcome(places: Sequence[ClientPartition], error: KafkaError | None) -> Failures:
    """The broker answers for each partition; an error of the whole request stands for all."""
    problems = ((place, place.error or error) for place in places)
    return {
        partition_of(place): translate(problem, f"Committing {partition_of(place)}")
        for place, problem in problems
        if problem is not None
    }


def _places(offsets: Offsets, failures: Failures) -> list[ClientPartition]:
    return [
        ClientPartition(at.topic, at.partition, commit.offset, metadata=commit.metadata)
        for at, commit in offsets.items()
        if at not in failures
    ]
