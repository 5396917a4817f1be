"""Lets retries through while what is in front of them is short, and a trickle when it is not."""

HOLD_ABOVE = 1_000
RELEASE_AT = 500


class LagGate:
    """Closes above one number, opens at a smaller one, so that it does not flutter.

    A lag that nobody knows holds everything but the trickle.
    """

    def __init__(self, hold_above: int = HOLD_ABOVE, release_at: int = RELEASE_AT) -> None:
        self._hold_above = hold_above
        self._release_at = release_at
        self._allowance = 0
        self.is_open = True
        self.lag: int | None = None

    def look(self, lag: int | None) -> None:
        self.lag = lag
        if lag is None or lag > self._hold_above:
            self.is_open = False
        elif lag <= self._release_at:
            self.is_open = True
        self._allowance = max(0, self._hold_above - lag) if self.is_open and lag is not None else 0

    @property
    def allowance(self) -> int:
        """How many may still be released before the lag is looked at again."""
        return self._allowance

    def released(self) -> None:
        self._allowance = max(0, self._allowance - 1)
