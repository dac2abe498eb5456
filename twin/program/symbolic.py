"""What a block loads and stores, as expressions of the registers it is entered with.

A block's addresses are worked out from its entry as far as its own code says what becomes of
registers; where it does not (a pointer loaded behind a store, an access under a condition) a new
stretch begins, which is entered with the registers as they are there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hwmodels.program.listing import disassembler
from twin.program.values import ENTRY, LOAD, MASK, READ, WRITE, LostError, Row, Sum, Values

MOST_ACCESSES = 2000
LITERALS, FRESH, BEHIND_STORES = range(3)
"""How far memory is trusted to hold what addresses rest on."""
LITERAL_BYTES = 8192
"""From a block to where it may keep constants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Accesses whose addresses are known once registers are, at the stretch's first instruction.

    Parameters
    ----------
    address : int
        Of that instruction.
    steps : tuple of Row
        What works them out, in the order of the program.
    """

    address: int
    steps: tuple[Row, ...]


class DoneError(Exception):
    """The stretch ends behind this instruction."""


class Reader(Values):
    """Reads instructions in order, from one at which all registers are known.

    Parameters
    ----------
    address : int
        Of that one.
    trust : int
        As `find_stretches` takes it.
    """

    machine: ClassVar[str]

    def __init__(self, address: int, trust: int) -> None:
        super().__init__()
        self.start, self.trust, self.stored = address, trust, False
        self.accesses = 0
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

    def access(self, kind: int, base: Sum | None, index: Sum | None, shift: int,
                pieces: list[int], loaded: list[tuple[str, int, bool]],
                after: tuple[str, Sum | None] | None) -> None:
        """Write an access down, and what it leaves in registers."""
        if index is not None and index.constant and base is not None:
            base = self.add(base, Sum(0, index.constant << shift & MASK))
            index = Sum(index.value)
        if base is None or (shift >= 0 and index is None) or self.accesses > MOST_ACCESSES:
            raise LostError
        offset = 0
        for size in pieces:
            self.rows.append((kind, size, base.value, index.value if index else 0, max(shift, 0),
                              base.constant + offset & MASK))
            offset += size
        self.accesses += len(pieces)
        self.stored |= kind == WRITE
        found = [self.load(base, index, max(shift, 0), place, size, signed) for place, (
            _, size, signed) in enumerate(loaded)]
        for (register, _, _), value in zip(loaded, found, strict=True):
            self.state[register] = value
        if after is not None:
            self.state[after[0]] = after[1]

    def load(self, base: Sum, index: Sum | None, shift: int, place: int, size: int,
             signed: bool) -> Sum | None:
        """Return what an access loads, as far as memory is trusted to hold it."""
        at = self.add(base, index, shift) if index else base
        assert at is not None
        literal = not at.value and abs(at.constant - self.start) < LITERAL_BYTES
        if not literal and self.trust < (BEHIND_STORES if self.stored else FRESH):
            return None
        return self.make(LOAD, at.value, signed, size, at.constant + place * size & MASK)


def find_stretches(reader_type: type[Reader], address: int, code: bytes, trust: int
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
    trust : int
        What of memory the first stretch's addresses may rest on: LITERALS, which all others do,
        what it holds FRESH, before the block stores anything, or BEHIND_STORES too.
    """
    reader, odd = reader_type(address, trust), []
    found = [reader]
    waits = False
    listing = disassembler(reader_type.machine, detail=reader_type.machine == "arm")
    for one in listing.disasm(code, address):
        if waits:
            reader = reader_type(one.address, LITERALS)
        try:
            try:
                reader.read(one)
            except LostError:
                reader = reader_type(one.address, LITERALS)
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
    return tuple(Stretch(address=one.start, steps=_prune(one.rows)) for one in found), tuple(odd)


def _prune(rows: list[Row]) -> tuple[Row, ...]:
    """Return steps accesses need, registers first."""
    needed: set[int] = set()
    kept: list[Row] = []
    for row in reversed(rows):
        kind, made, first, second, _, _ = row
        if kind in (READ, WRITE) or made in needed:
            needed.update((first, second) if kind != LOAD else (first,))
            kept.append(row)
    kept.reverse()
    return (*(row for row in kept if row[0] == ENTRY), *(row for row in kept if row[0] != ENTRY))
