"""Addresses a block accesses, as sums of the registers it is entered with.

What is not such a sum (a pointer loaded on the way, an index that was computed) begins a stretch of
its own at the access: registers are looked at once more there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hwmodels.program.listing import disassembler

MASK = 0xFFFFFFFF
READ, WRITE = range(2)
Row = tuple[int, int, int, int, int, int]
"""An access: READ or WRITE, bytes, two registers (number + 1; 0 for none), how far the second is
shifted left, and a constant beside them."""


@dataclass(frozen=True, slots=True)
class Sum:
    """A register at the stretch's start (its number + 1; 0 for none) plus a constant."""

    register: int
    constant: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Accesses whose addresses are known once registers are, at the stretch's first instruction.

    Parameters
    ----------
    accesses : tuple of Row
        In order.
    """

    address: int
    accesses: tuple[Row, ...]

    @property
    def registers(self) -> frozenset[int]:
        """Those addresses rest on, numbers + 1."""
        return frozenset(number for row in self.accesses for number in row[2:4]) - {0}


class LostError(Exception):
    """The stretch ends before this instruction."""


class DoneError(Exception):
    """The stretch ends behind this instruction."""


class Reader:
    """Reads instructions in order, from one at which all registers are known.

    Parameters
    ----------
    word_at : callable
        Address -> the word of code memory there.
    """

    machine: ClassVar[str]
    registers: ClassVar[Mapping[str, int]]
    """Numbers of the core's, by the names instructions have them."""
    ahead = 0
    """How far the program counter reads ahead."""

    def __init__(self, address: int, word_at: Callable[[int], int]) -> None:
        self.start, self.word_at = address, word_at
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

    @staticmethod
    def add(first: Sum | None, second: Sum | None, shift: int = 0, sign: int = 1) -> Sum | None:
        """Return first + sign x (second << shift); None where that is no register and constant."""
        if first is None or second is None:
            return None
        constant = first.constant + sign * (second.constant << shift) & MASK
        if not second.register:
            return Sum(first.register, constant)
        return None if first.register or shift or sign < 0 else Sum(second.register, constant)

    def access(self, kind: int, base: Sum | None, index: Sum | None, shift: int,
               pieces: Sequence[int], loaded: Iterable[str],
               after: tuple[str, Sum | None] | None) -> None:
        """Write an access down (`shift` -1: no index), and what it leaves in registers."""
        if base is None or (shift >= 0 and index is None):
            raise LostError
        place = base.constant + (index.constant << shift if index else 0)
        for size in pieces:
            self.accesses.append((kind, size, base.register, index.register if index else 0,
                                  max(shift, 0), place & MASK))
            place += size
        self.state.update(dict.fromkeys(loaded))
        if after is not None:
            self.state[after[0]] = after[1]


def find_stretches(reader_type: type[Reader], address: int, code: bytes,
                   word_at: Callable[[int], int]
                   ) -> tuple[tuple[Stretch, ...], tuple[str, ...]]:
    """Return the stretches of a block, and what in it accesses memory in a way not known.

    Parameters
    ----------
    reader_type : type
        Of the instruction set.
    address : int
        Of the block.
    code : bytes
        Its instructions.
    word_at : callable
        Address -> the word of code memory there.
    """
    reader, odd = reader_type(address, word_at), []
    found = [reader]
    waits = False
    listing = disassembler(reader_type.machine, detail=reader_type.machine == "arm")
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
    return tuple(Stretch(address=one.start, accesses=tuple(one.accesses)) for one in found), \
        tuple(odd)
