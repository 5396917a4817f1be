"""Cards dealt in a seeded order: every card of a deck comes once before any comes again."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Generic, TypeVar

Card = TypeVar("Card")


class Deck(Generic[Card]):
    def __init__(self, cards: Sequence[Card], random: Random) -> None:
        self._cards = list(cards)
        self._random = random
        self._left: list[Card] = []

    def deal(self) -> Card:
        if not self._left:
            self._left = self._cards.copy()
            self._random.shuffle(self._left)
        return self._left.pop()


def cards(counts: Mapping[str, int]) -> list[str]:
    return [name for name, count in counts.items() for _ in range(count)]
