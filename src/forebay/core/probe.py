from typing import Protocol


class Probe(Protocol):
    """Named points in the product's life that tests wait for and inject faults at."""

    def hit(self, point: str) -> None: ...


class NoProbe:
    __slots__ = ()

    def hit(self, point: str) -> None:
        pass
