"""How often each link has failed so far. Bounded: what was asked for longest ago is forgotten."""

from collections import OrderedDict


class Attempts:
    def __init__(self, most: int = 200_000) -> None:
        self._most = most
        self._failures: OrderedDict[str, int] = OrderedDict()

    def fails(self, path: str, times: int) -> bool:
        """Counts this attempt. False once the link has failed so often."""
        failures = self._failures.pop(path, 0)
        self._failures[path] = min(failures + 1, times)
        if len(self._failures) > self._most:
            self._failures.popitem(last=False)
        return failures < times

    def __len__(self) -> int:
        return len(self._failures)
