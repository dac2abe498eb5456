"""Configurations in spans: rows whose boards differ in clocks and supply voltage, and nothing else.

Values of several clocks are cut into boxes. Voltage scale, wait states and limits follow each
clock in one direction, so what is the same at both far corners of a box is the same inside. Where
it is not, the box is cut where one clock, the others at a corner, changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hwmodels.board.facts import Board
from hwmodels.board.file import spread_clocks
from hwmodels.errors import TwinError
from hwmodels.paths.timing import Floats
from twin.deployment.deployment import Deployment, boards_of
from twin.pricing.batch import Failure, Variation
from twin.pricing.configurations import (
    SUPPLY,
    cut_supplies,
    is_varied_clock,
    is_varied_supply,
    name_frequency,
    part_stated,
    split_alike,
    values_of,
    wordless,
)

Ints = np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Span:
    """Rows of one placement and voltage scale.

    Parameters
    ----------
    rows : ndarray of int, (n,)
        Of the batch.
    deployment : Deployment
        As all of them but for clocks and supply voltage.
    hertz : mapping of str to ndarray of float, (n,)
        Clocks that are varied.
    volts : ndarray of float, (n,), or None
        Supply voltage, where it is.
    """

    rows: Ints
    deployment: Deployment
    hertz: Mapping[str, Floats]
    volts: Floats | None = None


def list_spans(base: Deployment, variation: Variation, rows: Ints) -> Iterator[Span | Failure]:
    """Yield rows of a variation in spans, and those that cannot be.

    Parameters
    ----------
    base : Deployment
        What is varied; nothing lies elsewhere at another clock or supply voltage.
    variation : Variation
        Of `read_variation`.
    rows : ndarray of int, (n,)
        Which of its rows.
    """
    clocks = [name for name in variation.paths if is_varied_clock(name, variation)]
    supply = SUPPLY if is_varied_supply(variation) else None
    others = {name: values for name, values in variation.paths.items()
              if name not in (*clocks, supply)}
    for settings, alike in split_alike(others, rows):
        try:
            yield from _Spans(base, variation, settings, clocks).list(alike, supply)
        except TwinError as error:
            yield from (Failure(row=row, error=error) for row in alike.tolist())


class _Spans:
    """Spans of rows that set the same but for clocks and supply voltage."""

    def __init__(self, base: Deployment, variation: Variation, settings: dict[str, Any],
                 clocks: list[str]) -> None:
        self.base, self.variation, self.settings, self.clocks = base, variation, settings, clocks
        self.change = boards_of(base, settings)
        self.placed: Deployment | None = None

    def list(self, rows: Ints, supply: str | None) -> Iterator[Span | Failure]:
        """Yield spans of rows."""
        if supply is None:
            yield from self._cut(rows, {}, None)
            return
        volts = values_of(self.variation, supply, rows)
        able, spans = cut_supplies(self.base.board, volts)
        for place in np.flatnonzero(~able).tolist():
            yield from self._cut(rows[[place]], {supply: float(volts[place])}, None)
        for span in np.unique(spans[able]).tolist():
            inside = able & (spans == span)
            lowest = float(volts[inside].min())
            own = dict(zip(rows[inside].tolist(), volts[inside].tolist(), strict=True))
            for one in self._cut(rows[inside], {supply: lowest}, own):
                if isinstance(one, Failure):
                    said = str(one.error).replace(f"{lowest:g} V is", f"{own[one.row]:g} V is", 1)
                    yield Failure(row=one.row, error=type(one.error)(said))
                else:
                    yield one

    def _cut(self, rows: Ints, supply: Mapping[str, float],
             volts: Mapping[int, float] | None) -> Iterator[Span | Failure]:
        """Yield spans of rows at one supply voltage, or between two bounds of it."""
        values = np.stack([values_of(self.variation, name, rows) for name in self.clocks]
                          or [np.zeros(len(rows))], axis=1)
        for part in part_stated(self.base.board, self.clocks, values[:, :len(self.clocks)]):
            yield from self._list_boxes(rows[part], values[part], supply, volts)

    def _list_boxes(self, rows: Ints, values: Floats, supply: Mapping[str, float],
                    volts: Mapping[int, float] | None) -> Iterator[Span | Failure]:
        boxes = _Boxes(lambda at: self.change({
            **dict(zip(self.clocks, at, strict=False)), **supply}), values)
        for inside, made in boxes.list():
            if isinstance(made, TwinError):
                yield from (Failure(row=int(rows[place]), error=self._say(
                    boxes, inside, made, place)) for place in inside.tolist())
                continue
            own = rows[inside]
            yield Span(
                rows=own, deployment=self._place(int(own[0]), made),
                hertz={name.split(".")[1]: values[inside, place]
                       for place, name in enumerate(self.clocks)},
                volts=None if volts is None else np.array([volts[row] for row in own.tolist()]))

    def _place(self, row: int, board: Board) -> Deployment:
        """Return the deployment of a row on a board like its own; the first is placed anew."""
        paths = self.variation.paths
        if not paths:
            return self.base
        if self.placed is None:
            self.placed = replace(self.base.replace({name: values[row] for name, values
                                                     in paths.items()}), own_scale=None)
        return self.placed.repriced(board=board, runtime=self.placed.runtime)

    def _say(self, boxes: _Boxes, inside: Ints, error: TwinError, place: int) -> TwinError:
        """Return what forbids a row: what forbids the corner of its box, of its own clock."""
        corner, own = boxes.values[inside].min(axis=0), boxes.values[place]
        told = [number for number in range(len(self.clocks))
                if name_frequency(corner[number]) in str(error)]
        if len(told) == 1:
            return type(error)(str(error).replace(
                name_frequency(corner[told[0]]), name_frequency(own[told[0]]), 1))
        alone = boxes.make(tuple(own.tolist()))
        return alone if isinstance(alone, TwinError) else error


class _Boxes:
    """Values of clocks cut into boxes.

    Parameters
    ----------
    change : callable
        Returns the board at some values, or raises what forbids it.
    values : ndarray of float, (rows, clocks)
        Of each row.
    """

    def __init__(self, change: Callable[[tuple[float, ...]], Board], values: Floats) -> None:
        self.change, self.values = change, values
        self.known: dict[tuple[float, ...], Board | TwinError] = {}

    def make(self, at: tuple[float, ...]) -> Board | TwinError:
        """Return the board at some values, or what forbids it."""
        if at not in self.known:
            try:
                self.known[at] = self.change(at)
            except TwinError as error:
                self.known[at] = error
        return self.known[at]

    def list(self) -> Iterator[tuple[Ints, Board | TwinError]]:
        """Yield rows of each box, and the board or what forbids it at its lowest corner."""
        left = [np.arange(len(self.values))]
        while left:
            inside = left.pop()
            low, high = (tuple(ends(self.values[inside], axis=0).tolist())
                         for ends in (np.min, np.max))
            if self._alike(low, high):
                yield inside, self.make(low)
                continue
            clock, bound = self._find_cut(inside, low, high)
            below = self.values[inside, clock] < bound
            left += [inside[below], inside[~below]]

    def _find_cut(self, inside: Ints, low: tuple[float, ...],
                  high: tuple[float, ...]) -> tuple[int, float]:
        """Return a clock, and the least of its values on the other side of a cut."""
        for corner, other in ((low, high), (high, low)):
            for clock in range(len(low)):
                def at(value: float, clock: int = clock,
                       corner: tuple[float, ...] = corner) -> tuple[float, ...]:
                    return (*corner[:clock], value, *corner[clock + 1:])

                if self._alike(corner, at(other[clock])):
                    continue
                found = np.unique(self.values[inside, clock])
                first, last = 0, len(found) - 1
                while first + 1 < last:
                    middle = (first + last) // 2
                    if self._alike(at(float(found[first])), at(float(found[middle]))):
                        first = middle
                    else:
                        last = middle
                return clock, float(found[last])
        spread = [len(np.unique(self.values[inside, clock])) for clock in range(len(low))]
        widest = int(np.argmax(spread))
        return widest, float(np.unique(self.values[inside, widest])[spread[widest] // 2])

    def _alike(self, one: tuple[float, ...], other: tuple[float, ...]) -> bool:
        """Whether boards differ in frequencies only, or cannot be for the same reason."""
        if one == other:
            return True
        first, second = self.make(one), self.make(other)
        if isinstance(first, TwinError) or isinstance(second, TwinError):
            return type(first) is type(second) and wordless(first) == wordless(second)
        moved = spread_clocks(first, {clock.name: clock.frequency_hz  # type: ignore[misc]
                                      for clock in second.clocks})
        return (moved.power, moved.memories, moved.npu) == (
            second.power, second.memories, second.npu)
