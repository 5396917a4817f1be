"""Whether the broker is there and lets us in, as the clients' error callbacks tell it."""

# ruff: noqa: SLF001  librdkafka's own error codes begin with an underscore

import time

from confluent_kafka import KafkaError

from forebay.broker.kafka.errors import meaning_of, translate
from forebay.core.errors import ForebayError, Unavailable, Unusable
from forebay.observability.catalogue import Emit, EventName

# A refused client asks again about every second and is refused again: longer silence is no refusal.
_REFUSAL_SECONDS = 3.0
# Who was let in before may be refused once while it authenticates again, and is then let in.
_BLIP_SECONDS = 1.0
# A single node that restarts is back within this time, and nobody needs to hear of it.
_LOST_SECONDS = 3.0


class Connection:
    """Shared by all clients of one broker. Authentication errors reach a client only here."""

    def __init__(self, address: str, emit: Emit) -> None:
        self.address = address
        self._emit = emit
        self._told: EventName | None = None
        self._let_in_before = False
        self._quiet = True
        self._lost_since: float | None = None
        self._refusal: ForebayError | None = None
        self._refused_since = 0.0
        self._refused_at = 0.0

    def on_error(self, error: KafkaError) -> None:
        if issubclass(meaning_of(error).kind, Unusable):
            self._refused(translate(error, f"Connecting to Kafka at {self.address}"))
        elif error.code() == KafkaError._ALL_BROKERS_DOWN and self._lost_since is None:
            self._quiet = False
            self._lost_since = time.monotonic()
            self._tell("broker.lost", error_message=error.str())

    def answered(self) -> None:
        if self._quiet and self._let_in_before:
            return
        self._quiet = self._let_in_before = True
        self._lost_since = None
        self._refusal = None
        self._tell("broker.connected", detail=f"kafka at {self.address}")

    @property
    def lost(self) -> bool:
        since = self._lost_since
        return since is not None and time.monotonic() - since > _LOST_SECONDS

    def check_admission(self) -> None:
        refusal = self._refusal
        recent = time.monotonic() - self._refused_at < _REFUSAL_SECONDS
        if refusal is not None and recent and self._is_no_blip():
            raise refusal.with_traceback(None)

    def check(self) -> None:
        self.check_admission()
        if self.lost:
            raise self.unreachable()

    def unreachable(self) -> Unavailable:
        return Unavailable(
            f"Kafka at {self.address} does not answer. The client keeps trying to connect. Look "
            f"whether the broker runs, and at the address and security_protocol."
        )

    def _refused(self, refusal: ForebayError) -> None:
        now = time.monotonic()
        if self._refusal is None or now - self._refused_at > _REFUSAL_SECONDS:
            self._refused_since = now
        self._refusal, self._refused_at = refusal, now
        self._quiet = False
        if self._is_no_blip():
            self._tell("broker.refused", error_message=str(refusal))

    def _is_no_blip(self) -> bool:
        lasted = self._refused_at - self._refused_since
        return not self._let_in_before or lasted >= _BLIP_SECONDS

    def _tell(self, event: EventName, **fields: str) -> None:
        if self._told != event:
            self._told = event
            self._emit(event, broker=self.address, **fields)
