from typing import Protocol


class Clock(Protocol):
    """Time, injected. Decisions take `now` as an argument and never see a clock."""

    def now(self) -> float:
        """Seconds since the epoch; may jump. For timestamps and due times."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump. For leases, deadlines and back-off."""
        ...
