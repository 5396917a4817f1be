"""A byte for each of millions of numbers, in about twenty bytes a number: for audits."""

from array import array
from collections import Counter
from collections.abc import Iterator

_SLOTS_FIRST = 1 << 10


class Marks:
    """Numbers are 64-bit hashes, marks are bits from 1 to 255. A number without a mark is not here.

    Two keys of a million meet in one hash with a chance of one in ten million. A dictionary would
    take five times the memory.
    """

    def __init__(self) -> None:
        self._numbers = array("q", bytes(8 * _SLOTS_FIRST))
        self._marks = bytearray(_SLOTS_FIRST)
        self._mask = _SLOTS_FIRST - 1
        self._length = 0
        self._length_max = _SLOTS_FIRST * 2 // 3

    def __len__(self) -> int:
        return self._length

    def mark(self, number: int, bits: int) -> int:
        """Adds bits to those of the number; gives what it had before, 0 if it is new."""
        slot = self._slot(number)
        marks = self._marks
        before = marks[slot]
        marks[slot] = before | bits
        if not before:
            self._numbers[slot] = number
            self._length += 1
            if self._length > self._length_max:
                self._grow()
        return before

    def mark_known(self, number: int, bits: int) -> int:
        """Like `mark`, but a number that is not here stays away."""
        if not self._length:
            return 0
        slot = self._slot(number)
        before = self._marks[slot]
        if before:
            self._marks[slot] = before | bits
        return before

    def of(self, number: int) -> int:
        return self._marks[self._slot(number)] if self._length else 0

    def counts(self) -> Counter[int]:
        """How many numbers have exactly these bits."""
        counted = Counter(self._marks)
        del counted[0]
        return counted

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for number, bits in zip(self._numbers, self._marks, strict=True):
            if bits:
                yield number, bits

    def _slot(self, number: int) -> int:
        """Where it is, or where it would be."""
        numbers, marks, mask = self._numbers, self._marks, self._mask
        slot = number & mask
        while marks[slot] and numbers[slot] != number:
            slot = (slot + 1) & mask
        return slot

    def _grow(self) -> None:
        numbers, marks = self._numbers, self._marks
        slots = 2 * len(marks)
        self._numbers, self._marks = array("q", bytes(8 * slots)), bytearray(slots)
        self._mask, self._length_max = slots - 1, slots * 2 // 3
        for number, bits in zip(numbers, marks, strict=True):
            if bits:
                slot = self._slot(number)
                self._numbers[slot], self._marks[slot] = number, bits
