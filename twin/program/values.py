"""What instructions make of the registers a stretch of code is entered with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

MASK = 0xFFFFFFFF
(ENTRY, READ, WRITE, ADD, SUBTRACT, MULTIPLY, SHIFT_RIGHT, SHIFT_SIGNED, AND, OR, SIGN,
 LOAD) = range(12)
"""Steps: a register of the core; an access; a value made of others; a value memory holds."""
MOST_VALUES = 256

Row = tuple[int, int, int, int, int, int]
"""A step: kind, value made (or bytes of an access), two values, shift (or bits), constant."""


@dataclass(frozen=True, slots=True)
class Sum:
    """A value made before, plus a constant; value 0 is 0."""

    value: int
    constant: int = 0


class LostError(Exception):
    """The stretch ends before this instruction."""


class Values:
    """Registers of the core as sums of values, and the steps that make those."""

    registers: ClassVar[Mapping[str, int]]
    """Numbers of the core's, by the names instructions have them."""
    ahead = 0
    """How far the program counter reads ahead."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.state: dict[str, Sum | None] = {}
        self.values = 0

    def make(self, kind: int, first: int = 0, second: int = 0, shift: int = 0,
             constant: int = 0) -> Sum:
        """Write a step down and return the value it makes.

        Raises
        ------
        LostError
            When there are too many.
        """
        if self.values + 1 >= MOST_VALUES:
            raise LostError
        self.values += 1
        self.rows.append((kind, self.values, first, second, shift, constant))
        return Sum(self.values)

    def get(self, name: str, place: int) -> Sum | None:
        """Return what a register holds, None where that is not known."""
        if name == "pc":
            return Sum(0, place + self.ahead)
        if name not in self.state:
            number = self.registers.get(name)
            self.state[name] = None if number is None else self.make(ENTRY, shift=number)
        return self.state[name]

    def add(self, first: Sum | None, second: Sum | None, shift: int = 0,
            sign: int = 1) -> Sum | None:
        """Return first + sign x (second << shift)."""
        if first is None or second is None:
            return None
        constant = first.constant + sign * (second.constant << shift)
        if not second.value:
            return Sum(first.value, constant & MASK)
        if not first.value and not shift and sign > 0:
            return Sum(second.value, constant & MASK)
        return self.make(ADD if sign > 0 else SUBTRACT, first.value, second.value, shift,
                          constant & MASK)

    def plain(self, one: Sum) -> int:
        """Value of a sum without a constant beside it."""
        if not one.constant:
            return one.value
        return self.make(ADD, one.value, 0, 0, one.constant).value

    def change(self, kind: int, one: Sum | None, shift: int, constant: int) -> Sum | None:
        """Return a value made of one other."""
        return None if one is None else self.make(kind, self.plain(one), 0, shift, constant)
