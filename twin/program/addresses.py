"""Addresses a block accesses, as sums of registers it is entered with and of words in memory.

What is no such sum (an index that was masked, a pointer that may have been stored before) begins a
stretch of its own at the access: registers are looked at once more there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from hwmodels.frozen import frozen, record
from hwmodels.program.listing import disassembler

MASK = 0xFFFFFFFF
READ, WRITE = range(2)
SUM, LOAD, APART = 4, 5, 6
"""A sum, the word at one, and a check that what is stored at one is not the word before it."""
FIRST_MADE, MOST_VALUES = 34, 64
"""Values: 0, registers (number + 1), and from 34 on those made of others, 64 together."""
Row = tuple[int, int, int, int, int, int]
"""READ or WRITE, bytes (of another kind: the value made), two values, what the second is multiplied
by, and a constant beside them."""


@record
class Sum:
    """A value plus a constant."""

    value: int
    constant: int = 0


@frozen
class Stretch:
    """Accesses whose addresses are known once registers are, at the stretch's first instruction.

    Parameters
    ----------
    making
        Values made of registers and others, in order.
    accesses
        In order.
    """

    address: int
    making: tuple[Row, ...]
    accesses: tuple[Row, ...]

    @property
    def registers(self) -> frozenset[int]:
        """Those addresses rest on, numbers + 1."""
        return frozenset(number for row in (*self.making, *self.accesses)
                         for number in row[2:4] if 0 < number < FIRST_MADE)


class LostError(Exception):
    """The stretch ends before this instruction."""


class DoneError(Exception):
    """The stretch ends behind this instruction."""


class Reader:
    """Reads instructions in order, from one at which all registers are known.

    Parameters
    ----------
    word_at
        Address -> the word of code memory there.
    loads
        Whether words of memory are values, too.
    """

    machine: ClassVar[str]
    letter: ClassVar[str]
    """What the emulator's names of registers begin with."""
    detailed = False
    """Whether the disassembler has to say which registers are written."""
    registers: ClassVar[Mapping[str, int]]
    """Numbers of the core's, by the names instructions have them."""
    ahead = 0
    """How far the program counter reads ahead."""

    def __init__(self, address: int, word_at: Callable[[int], int], loads: bool = False) -> None:
        self.start, self.word_at, self.loads = address, word_at, loads
        self.made: list[tuple[Row, ...]] = []
        self.state: dict[str, Sum | None] = {}
        self.accesses: list[Row] = []
        self.odd: list[str] = []

    def read(self, one: Any) -> None:
        """Take one instruction of capstone's.

        Raises
        ------
        LostError
            Where it begins a stretch of its own.
        DoneError
            Where it ends one.
        """
        raise NotImplementedError

    def get(self, name: str, place: int) -> Sum | None:
        """Return what a register holds, None where that is not known."""
        if name == "pc":
            return Sum(0, place + self.ahead)
        number = self.registers.get(name)
        return self.state.setdefault(name, None if number is None else Sum(number + 1))

    def add(self, first: Sum | None, second: Sum | None, shift: int = 0, sign: int = 1
            ) -> Sum | None:
        """Return first + sign x (second << shift); None where one of them is not known."""
        if first is None or second is None:
            return None
        constant = first.constant + sign * (second.constant << shift) & MASK
        if not second.value:
            return Sum(first.value, constant)
        if not (first.value or shift or sign < 0):
            return Sum(second.value, constant)
        return self._make((SUM, 0, first.value, second.value, sign << shift, constant))

    def _make(self, row: Row, *checks: Row) -> Sum | None:
        """Return a new value; None where there is no room for another."""
        number = FIRST_MADE + len(self.made)
        if number == MOST_VALUES:
            return None
        self.made.append(((row[0], number, *row[2:]), *checks))
        return Sum(number)

    def _load(self, row: Row) -> Sum | None:
        """Return the word at an address; None where it is not known, or stored to before."""
        _, size, first, second, factor, place = row
        if size != 4 or not self.loads:
            return None
        stores = [one for one in self.accesses if one[0] == WRITE]
        unlike = [one for one in stores if one[2:5] != (first, second, factor)]
        if any(place - one[5] & MASK < one[1] or one[5] - place & MASK < size
               for one in stores if one not in unlike):
            return None
        return self._make((LOAD, 0, first, second, factor, place),
                          *((APART, *one[1:]) for one in unlike))

    def stretch(self) -> Stretch:
        """Return the accesses read, and of values made those their addresses rest on."""
        needed = {number for row in self.accesses for number in row[2:4]}
        rows: list[Row] = []
        for made in reversed(self.made):
            if made[0][1] in needed:
                rows[:0] = made
                needed.update(number for row in made for number in row[2:4])
        return Stretch(address=self.start, making=tuple(rows), accesses=tuple(self.accesses))

    def access(self, kind: int, base: Sum | None, index: Sum | None, shift: int,
               pieces: Sequence[int], loaded: Iterable[str],
               after: tuple[str, Sum | None] | None) -> None:
        """Write an access down (`shift` -1: no index), and what it leaves in registers."""
        if base is None or (shift >= 0 and index is None):
            raise LostError
        place = base.constant + (index.constant << shift if index else 0)
        first = len(self.accesses)
        for size in pieces:
            self.accesses.append((kind, size, base.value, index.value if index else 0,
                                  1 << max(shift, 0), place & MASK))
            place += size
        self.state.update({name: self._load(row) if name in self.registers else None
                           for name, row in zip(loaded, self.accesses[first:], strict=False)})
        if after is not None:
            self.state[after[0]] = after[1]


def find_stretches(reader_type: type[Reader], address: int, code: bytes,
                   word_at: Callable[[int], int], loads: bool
                   ) -> tuple[tuple[Stretch, ...], tuple[str, ...]]:
    """Return the stretches of a block, and what in it accesses memory in a way not known.

    Parameters
    ----------
    reader_type
        Of the instruction set.
    word_at
        Address -> the word of code memory there.
    loads
        Whether addresses of the first stretch may rest on words of memory.
    """
    reader, odd = reader_type(address, word_at, loads), []
    found = [reader]
    waits = False
    listing = disassembler(reader_type.machine, detail=reader_type.detailed)
    for one in listing.disasm(code, address):
        if waits:
            reader = reader_type(one.address, word_at)
        try:
            try:
                reader.read(one)
            except LostError:
                reader = reader_type(one.address, word_at)
                waits = True
                reader.read(one)
            ends = False
        except DoneError:
            ends = True
        odd += reader.odd[:]
        reader.odd.clear()
        if waits and reader.accesses:
            found.append(reader)
        waits = ends or (waits and not reader.accesses)
    return tuple(one.stretch() for one in found), tuple(odd)
