"""One circuit breaker for each host, so that a host that is down costs the others nothing."""

from forebay.core.breaker import BreakerPolicy, CircuitBreaker
from forebay.core.clock import Clock
from forebay.core.failures import AUTH, PERMANENT, TRANSIENT
from forebay.observability.catalogue import Emit
from forebay.outbound.errors import Answer, OutboundFailed

_HOSTS_MAX = 1_024
_OF_ONE_LINK = frozenset({"empty_file", "target_busy"})


class Circuits:
    def __init__(
        self, policy: BreakerPolicy, clock: Clock, emit: Emit, refusal: type[OutboundFailed]
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._emit = emit
        self._refusal = refusal
        self._breakers: dict[str, CircuitBreaker] = {}

    def check(self, host: str) -> None:
        """Raises where the host is left alone for now."""
        breaker, now = self._breakers.get(host), self._clock.monotonic()
        if breaker is None or breaker.allows(now):
            return
        wait_seconds = max(0.0, breaker.probe_at - now)
        raise self._refusal(
            "circuit_open",
            f"{host} has failed again and again and is not asked for now. It is tried again "
            f"without using an attempt up; look whether the host is down.",
            Answer(retry_after_seconds=wait_seconds),
        )

    def succeeded(self, host: str) -> None:
        breaker = self._breakers.get(host)
        if breaker is not None:
            was_open = breaker.state(self._clock.monotonic()) != "closed"
            breaker.succeeded()
            if was_open and breaker.state(self._clock.monotonic()) == "closed":
                del self._breakers[host]
                self._emit("circuit.closed", host=host)

    def failed(self, host: str, failure: OutboundFailed) -> None:
        """What is wrong with one link says nothing of its host, except that it answers."""
        if failure.category in {TRANSIENT, AUTH} and failure.kind not in _OF_ONE_LINK:
            self._count(host)
        elif failure.category == PERMANENT and self._is_probing(host):
            self.succeeded(host)

    def _count(self, host: str) -> None:
        now = self._clock.monotonic()
        breaker = self._breakers.get(host)
        if breaker is None:
            self._make_room(now)
            breaker = self._breakers[host] = CircuitBreaker(self._policy)
        was_closed = breaker.state(now) == "closed"
        breaker.failed(now)
        if was_closed and breaker.state(now) == "open":
            self._emit(
                "circuit.opened",
                host=host,
                failures=self._policy.failures,
                open_seconds=self._policy.open_seconds,
            )

    def _is_probing(self, host: str) -> bool:
        breaker = self._breakers.get(host)
        return breaker is not None and breaker.state(self._clock.monotonic()) != "closed"

    def _make_room(self, now: float) -> None:
        """Hosts of a suffix may be many; those that are open are kept."""
        if len(self._breakers) >= _HOSTS_MAX:
            kept = {h: b for h, b in self._breakers.items() if b.state(now) != "closed"}
            self._breakers = kept
