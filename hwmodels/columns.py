"""Lines of counts and bills as columns of arrays; nouns are made of those somebody looks at.

A network of two hundred tasks has thousands of lines, and most are never shown: sums of columns
are what a prediction needs at once. What is made of them equals lines made one by one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hwmodels.counts import EXACT, Bill, BillLine, CountLine, Counts, Stacks
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


class _MadeLate:
    """A noun whose lines are made of columns when they are asked for, and kept."""

    __slots__ = ()
    noun: type[Counts | Bill]
    columns: Any
    owner: int
    _made: Any

    def __init__(self, columns: Any, owner: int) -> None:
        for name, value in (("columns", columns), ("owner", owner), ("_made", None)):
            object.__setattr__(self, name, value)

    @property
    def lines(self) -> tuple[Any, ...]:
        """The owner's lines."""
        if self._made is None:
            object.__setattr__(self, "_made", self.columns.make_lines(self.owner))
        return cast("tuple[Any, ...]", self._made)

    def __eq__(self, other: object) -> bool:
        """Whether the lines are equal, however they are kept."""
        return self.lines == other.lines if isinstance(other, self.noun) else NotImplemented

    def __hash__(self) -> int:
        """Return the hash of the same lines made at once."""
        return hash(self.noun(self.lines))

    def __repr__(self) -> str:
        """Return what the same lines made at once are shown as."""
        return repr(self.noun(self.lines))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what is kept of it: its lines."""
        return self.noun, (self.lines,)


class ColumnCounts(_MadeLate, Counts):
    """Counts whose lines are made when they are asked for."""

    __slots__ = ("_made", "columns", "owner")
    noun = Counts

    def slices(self) -> tuple[Keys, Ints, Floats, Floats]:
        """Return what keys number, and keys and amounts of the lines."""
        columns = self.columns
        own = slice(columns.first[self.owner], columns.first[self.owner + 1])
        return columns.keys, columns.key[own], columns.occurred[own], columns.exposed[own]


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
        known, clocks = self.keys.known, self.clocks
        return tuple(BillLine(event=known[key][0], place=known[key][1], operand=known[key][2],
                              clock=clocks[clock], occurred=occurred, exposed=exposed,
                              cycles=cycles, energy_pj=None if energy != energy else energy)
                     for key, clock, occurred, exposed, cycles, energy in zip(
                         *(column[own].tolist() for column in (
                             self.key, self.clock, self.occurred, self.exposed, self.cycles,
                             self.energy_pj)), strict=True))


class ColumnBill(_MadeLate, Bill):
    """A bill whose lines are made when they are asked for.

    Parameters
    ----------
    energy_pj
        Sum of the lines' energies; None where one is not known.
    """

    __slots__ = ("_made", "_total_pj", "columns", "owner")
    noun = Bill
    _total_pj: float | None

    def __init__(self, columns: BillColumns, owner: int, energy_pj: float | None) -> None:
        super().__init__(columns, owner)
        object.__setattr__(self, "_total_pj", energy_pj)

    @property
    def table(self) -> object:
        """What the lines are kept in."""
        return self.columns

    @staticmethod
    def stack(bills: Sequence[Bill], stacks: Stacks) -> None:
        """Add the lines of bills of the same columns to stacks, none of them made."""
        columns = cast("BillColumns", bills[0].table)
        first = columns.first
        own = np.concatenate([np.arange(first[bill.owner], first[bill.owner + 1])
                              for bill in bills if isinstance(bill, ColumnBill)])
        number = columns.key[own] * len(columns.clocks) + columns.clock[own]
        order = np.argsort(number, kind="stable")
        own, number = own[order], number[order]
        bounds = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(own)]
        amounts: list[list[Any]] = [column[own].tolist() for column in (
            columns.occurred, columns.exposed, columns.cycles, columns.energy_pj)]
        amounts[3] = [None if energy != energy else energy for energy in amounts[3]]
        for begin, end in itertools.pairwise(bounds):
            if begin < end:
                key, clock = divmod(int(number[begin]), len(columns.clocks))
                stack: tuple[list[Any], ...] = stacks.setdefault(
                    (*columns.keys.known[key], columns.clocks[clock]), ([], [], [], []))
                for values, column in zip(stack, amounts, strict=True):
                    values.extend(column[begin:end])

    def clock_cycles(self) -> dict[str, float]:
        """Return cycles of each clock that has any."""
        return dict(self.columns.passed[self.owner])

    def energy_pj(self, cause: str | None = None) -> float | None:
        """Energy at the rail; None when a line's price is not known."""
        return super().energy_pj(cause) if cause is not None else self._total_pj


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
