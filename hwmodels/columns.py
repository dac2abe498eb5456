"""Lines of counts and bills as columns of arrays; nouns are made of those somebody looks at.

A network of two hundred tasks has thousands of lines, and most are never shown: sums of columns
are what a prediction needs at once. What is made of them equals lines made one by one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwmodels.counts import EXACT, Bill, BillLine, CountLine, Counts, order_of
from hwmodels.frozen import entity

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Key = tuple[str, str, str]
"""Event, place and operand of a line."""


class Keys:
    """Events by place and operand, numbered as they are first met; numbers stay."""

    def __init__(self) -> None:
        self.known: list[Key] = []
        self._numbers: dict[Key, int] = {}

    def number(self, event: str, place: str = "", operand: str = "") -> int:
        """Return the number of an event at a place for an operand."""
        key = event, place, operand
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.known)
            self.known.append(key)
        return found


@entity
class CountColumns:
    """Counts of several owners, the lines of each one behind the other.

    Parameters
    ----------
    keys
        What `key` numbers.
    first : ndarray of int, (owners + 1,)
        First line of each owner, and how many lines there are.
    key : ndarray of int, (lines,)
        Event, place and operand.
    occurred, exposed : ndarray of float, (lines,)
        As of a `CountLine`.
    """

    keys: Keys
    first: Ints
    key: Ints
    occurred: Floats
    exposed: Floats

    def owners(self) -> Ints:
        """Return the owner of each line."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    def make_lines(self, owner: int) -> tuple[CountLine, ...]:
        """Return the lines of an owner."""
        own = slice(self.first[owner], self.first[owner + 1])
        known = self.keys.known
        return tuple(
            CountLine(event=known[key][0], place=known[key][1], operand=known[key][2],
                      occurred=occurred, exposed=exposed)
            for key, occurred, exposed in zip(
                self.key[own].tolist(), self.occurred[own].tolist(), self.exposed[own].tolist(),
                strict=True))


class ColumnCounts(Counts):
    """Counts whose lines are made when they are asked for."""

    __slots__ = ("_columns", "_made", "_owner")
    _columns: CountColumns
    _owner: int
    _made: tuple[CountLine, ...] | None

    def __init__(self, columns: CountColumns, owner: int) -> None:
        for name, value in (("_columns", columns), ("_owner", owner), ("_made", None)):
            object.__setattr__(self, name, value)

    @property
    def lines(self) -> tuple[CountLine, ...]:
        """Events of a kernel, layer or network."""
        made = self._made
        if made is None:
            made = self._columns.make_lines(self._owner)
            object.__setattr__(self, "_made", made)
        return made

    def slices(self) -> tuple[Keys, Ints, Floats, Floats]:
        """Return what keys number, and keys and amounts of the lines."""
        columns = self._columns
        own = slice(columns.first[self._owner], columns.first[self._owner + 1])
        return columns.keys, columns.key[own], columns.occurred[own], columns.exposed[own]

    def __eq__(self, other: object) -> bool:
        """Whether the lines are equal, however they are kept."""
        return self.lines == other.lines if isinstance(other, Counts) else NotImplemented

    def __hash__(self) -> int:
        """Return the hash of the same lines made at once."""
        return hash(Counts(self.lines))

    def __repr__(self) -> str:
        """Return what the same lines made at once are shown as."""
        return repr(Counts(self.lines))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what is kept of them: their lines."""
        return Counts, (self.lines,)


@entity
class BillColumns:
    """Bills of several owners, lines of one behind those of the other.

    Parameters
    ----------
    keys
        What `key` numbers.
    clocks
        What `clock` numbers.
    first, key, occurred, exposed
        As of `CountColumns`.
    clock : ndarray of int, (lines,)
        Clock the cycles of a line are of.
    cycles, energy_pj : ndarray of float, (lines,)
        As of a `BillLine`; an energy that is not known is NaN.
    passed
        Cycles by clock, of those that pass, by owner.
    """

    keys: Keys
    clocks: tuple[str, ...]
    first: Ints
    key: Ints
    clock: Ints
    occurred: Floats
    exposed: Floats
    cycles: Floats
    energy_pj: Floats
    passed: tuple[dict[str, float], ...]

    def make_lines(self, owner: int) -> tuple[BillLine, ...]:
        """Return the lines of an owner."""
        own = slice(self.first[owner], self.first[owner + 1])
        return tuple(BillLine(event=event, place=place, operand=operand, clock=clock,
                              occurred=occurred, exposed=exposed, cycles=cycles, energy_pj=energy)
                     for (event, place, operand, clock), occurred, exposed, cycles, energy
                     in self._list(own))

    def _list(self, own: slice | Ints) -> Iterator[tuple[Any, ...]]:
        known, clocks = self.keys.known, self.clocks
        for key, clock, occurred, exposed, cycles, energy in zip(
                self.key[own].tolist(), self.clock[own].tolist(), self.occurred[own].tolist(),
                self.exposed[own].tolist(), self.cycles[own].tolist(),
                self.energy_pj[own].tolist(), strict=True):
            yield ((*known[key], clocks[clock]), occurred, exposed, cycles,
                   None if energy != energy else energy)


class ColumnBill(Bill):
    """A bill whose lines are made when they are asked for.

    Parameters
    ----------
    energy_pj
        Sum of the lines' energies; None where one is not known.
    """

    __slots__ = ("_made", "_total_pj", "columns", "owner")
    columns: BillColumns
    owner: int
    _made: tuple[BillLine, ...] | None
    _total_pj: float | None

    def __init__(self, columns: BillColumns, owner: int, energy_pj: float | None) -> None:
        for name, value in (("columns", columns), ("owner", owner), ("_made", None),
                            ("_total_pj", energy_pj)):
            object.__setattr__(self, name, value)

    @property
    def lines(self) -> tuple[BillLine, ...]:
        """Lines of cost."""
        made = self._made
        if made is None:
            made = self.columns.make_lines(self.owner)
            object.__setattr__(self, "_made", made)
        return made

    def clock_cycles(self) -> dict[str, float]:
        """Return cycles of each clock that has any."""
        return dict(self.columns.passed[self.owner])

    def energy_pj(self, cause: str | None = None) -> float | None:
        """Energy at the rail; None when a line's price is not known."""
        return super().energy_pj(cause) if cause is not None else self._total_pj

    def __eq__(self, other: object) -> bool:
        """Whether the lines are equal, however they are kept."""
        return self.lines == other.lines if isinstance(other, Bill) else NotImplemented

    def __hash__(self) -> int:
        """Return the hash of the same lines made at once."""
        return hash(Bill(self.lines))

    def __repr__(self) -> str:
        """Return what the same lines made at once are shown as."""
        return repr(Bill(self.lines))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what is kept of it: its lines."""
        return Bill, (self.lines,)


def sum_exactly(values: Floats, first: Ints) -> list[float]:
    """Return the correctly rounded sum of each run of values, the last up to their end.

    Parameters
    ----------
    values : ndarray of float, (n,)
        Of which whole 64ths below 2^47 are added in any order.
    first : ndarray of int, (runs + 1,)
        Where runs begin, and where the last ends.
    """
    if not len(values):
        return [0.0] * (len(first) - 1)
    parts = values * EXACT
    if (parts == np.floor(parts)).all() and np.abs(parts).sum() < 2.0**53:
        sums = np.add.reduceat(np.append(values, 0.0), first[:-1])
        sums[np.diff(first) == 0] = 0.0
        return list(sums.tolist())
    listed, bounds = values.tolist(), first.tolist()
    return [math.fsum(listed[begin:end]) for begin, end in itertools.pairwise(bounds)]


_Stack = tuple[list[float], list[float], list[float], list[float | None]]
_Place = tuple[str, str, str, str]


def merge_columns(parts: Iterable[Bill]) -> Bill:
    """Add bills as `merge_bills` does, without making lines of those that are columns."""
    stacks: dict[_Place, _Stack] = {}
    tables: dict[int, tuple[BillColumns, list[int]]] = {}
    for part in parts:
        if isinstance(part, ColumnBill):
            tables.setdefault(id(part.columns), (part.columns, []))[1].append(part.owner)
            continue
        for line in part.lines:
            _stack(stacks, (line.event, line.place, line.operand, line.clock), (
                [line.occurred], [line.exposed], [line.cycles], [line.energy_pj]))
    for columns, owners in tables.values():
        _stack_columns(stacks, columns, owners)
    ordered = sorted(stacks, key=lambda key: (*order_of(*key[:3]), key[3]))
    return Bill(tuple(_add(key, *stacks[key]) for key in ordered))


def _stack(stacks: dict[_Place, _Stack], key: _Place,
           values: _Stack) -> None:
    """Put values of lines of one key with others of it."""
    occurred, exposed, cycles, energies = stacks.setdefault(key, ([], [], [], []))
    occurred += values[0]
    exposed += values[1]
    cycles += values[2]
    energies += values[3]


def _stack_columns(stacks: dict[_Place, _Stack], columns: BillColumns,
                   owners: Sequence[int]) -> None:
    """Put the lines of owners by their keys."""
    first = columns.first
    own = np.concatenate([np.arange(first[owner], first[owner + 1]) for owner in owners])
    number = columns.key[own] * len(columns.clocks) + columns.clock[own]
    order = np.argsort(number, kind="stable")
    own, number = own[order], number[order]
    bounds = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(own)]
    occurred, exposed, cycles = (column[own].tolist() for column in (
        columns.occurred, columns.exposed, columns.cycles))
    energy: list[float | None] = columns.energy_pj[own].tolist()
    if np.isnan(columns.energy_pj).any():
        energy = [None if one != one else one for one in energy]
    for begin, end in itertools.pairwise(bounds):
        if begin < end:
            key, clock = divmod(int(number[begin]), len(columns.clocks))
            piece = slice(begin, end)
            _stack(stacks, (*columns.keys.known[key], columns.clocks[clock]), (
                occurred[piece], exposed[piece], cycles[piece], energy[piece]))


def _add(key: _Place, occurred: list[float], exposed: list[float],
         cycles: list[float], energies: list[float | None]) -> BillLine:
    event, place, operand, clock = key
    if len(occurred) == 1:
        return BillLine(event=event, place=place, operand=operand, clock=clock,
                        occurred=occurred[0], exposed=exposed[0], cycles=cycles[0],
                        energy_pj=energies[0])
    known = [energy for energy in energies if energy is not None]
    return BillLine(event=event, place=place, operand=operand, clock=clock,
                    occurred=math.fsum(occurred), exposed=math.fsum(exposed),
                    cycles=math.fsum(cycles),
                    energy_pj=math.fsum(known) if len(known) == len(energies) else None)
