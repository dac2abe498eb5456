"""Configurations in spans: rows whose boards differ in clocks and supply voltage, and nothing else.

Values of several clocks are cut into boxes. Voltage scale, wait states and limits follow each
clock in one direction, so what is the same at both far corners of a box is the same inside. Where
it is not, the box is cut where one clock, the others at a corner, changes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hwmodels.board.declaration import VOLTAGE
from hwmodels.board.facts import Board
from hwmodels.board.operating_points import bounds_of_supply, spread_clocks
from hwmodels.errors import TwinError
from hwmodels.paths.timing import Floats
from hwmodels.quantities import list_by_key
from twin.deployment.changed_board import boards_of
from twin.deployment.deployment import Deployment
from twin.pricing.batch import Failure, Span
from twin.pricing.variation import Variation

Ints = np.ndarray

_CLOCK = re.compile(r"clocks\.(\w+)\.frequency_hz")
SUPPLY = "supply.voltage_v"
_BOUNDS = re.compile(r"supply\.voltage_range_v|memories\.\w+\.wait_states_min_supply_v")


def list_spans(base: Deployment, variation: Variation, rows: Ints) -> Iterator[Span | Failure]:
    """Yield rows of a variation in spans, and those that cannot be.

    Parameters
    ----------
    base
        What is varied; nothing lies elsewhere at another clock or supply voltage.
    variation
        Of `read_variation`.
    rows : ndarray of int, (n,)
        Which of its rows.
    """
    clocks = [name for name in variation.paths if is_varied_clock(name, variation)]
    supply = SUPPLY if is_varied_supply(variation) else None
    others = {name: values for name, values in variation.paths.items()
              if name not in (*clocks, supply)}
    for settings, alike in split_alike(others, rows):
        yield from Spans(base, variation, settings, clocks).list(alike, supply)


class Spans:
    """Rows that set the same but for clocks and supply voltage.

    Parameters
    ----------
    clocks
        Paths of clocks that are not.
    """

    def __init__(self, base: Deployment, variation: Variation, settings: dict[str, Any],
                 clocks: list[str]) -> None:
        self.base, self.variation, self.settings, self.clocks = base, variation, settings, clocks
        self.placed: Deployment | None = None

    def list(self, rows: Ints, supply: str | None) -> Iterator[Span | Failure]:
        """Yield spans of rows, their supply voltage varied where its path is given."""
        try:
            self.change = boards_of(self.base, self.settings)
        except TwinError as error:
            yield from (Failure(row=row, error=error) for row in rows.tolist())
            return
        if supply is None:
            yield from self._cut(rows, {}, None)
            return
        volts = values_of(self.variation, supply, rows)
        able, spans = cut_supplies(self.base.board, volts)
        for place in np.flatnonzero(~able).tolist():
            given = self.variation.paths[supply][int(rows[place])]
            yield from self._cut(rows[[place]], {supply: given}, None)
        for span in np.unique(spans[able]).tolist():
            inside = able & (spans == span)
            lowest = float(volts[inside].min())
            own = dict(zip(rows[inside].tolist(), volts[inside].tolist(), strict=True))
            for one in self._cut(rows[inside], {supply: lowest}, own):
                if isinstance(one, Failure):
                    text = str(one.error).replace(f"{lowest:g} V is", f"{own[one.row]:g} V is", 1)
                    yield Failure(row=one.row, error=type(one.error)(text))
                else:
                    yield one

    def _cut(self, rows: Ints, supply: Mapping[str, Any],
             volts: Mapping[int, float] | None) -> Iterator[Span | Failure]:
        """Yield spans of rows at one supply voltage, or between two bounds of it."""
        values = np.stack([values_of(self.variation, name, rows) for name in self.clocks]
                          or [np.zeros(len(rows))], axis=1)
        for part in part_stated(self.base.board, self.clocks, values[:, :len(self.clocks)]):
            yield from self._list_boxes(rows[part], values[part], supply, volts)

    def _list_boxes(self, rows: Ints, values: Floats, supply: Mapping[str, Any],
                    volts: Mapping[int, float] | None) -> Iterator[Span | Failure]:
        boxes = _Boxes(lambda at: self.change({
            **dict(zip(self.clocks, at, strict=False)), **supply}), values)
        for inside, made in boxes.list():
            if isinstance(made, TwinError):
                yield from (Failure(row=int(rows[place]), error=self._say(
                    boxes, inside, made, place)) for place in inside.tolist())
                continue
            own = rows[inside]
            try:
                deployment = self.place(int(own[0]), made)
            except TwinError as error:  # it does not fit, at whatever clock
                yield from (Failure(row=row, error=error) for row in own.tolist())
                continue
            yield Span(
                rows=own, deployment=deployment, hertz={name.split(".")[1]: values[inside, place]
                       for place, name in enumerate(self.clocks)},
                volts=None if volts is None else np.array([volts[row] for row in own.tolist()]))

    def place(self, row: int, board: Board) -> Deployment:
        """Return the deployment of a row on a board like its own; the first is placed again."""
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
        numbers = [number for number in range(len(self.clocks))
                if name_frequency(corner[number]) in str(error)]
        if len(numbers) == 1:
            return type(error)(str(error).replace(
                name_frequency(corner[numbers[0]]), name_frequency(own[numbers[0]]), 1))
        alone = boxes.make(tuple(own.tolist()))
        return alone if isinstance(alone, TwinError) else error


class _Boxes:
    """Values of clocks cut into boxes.

    Parameters
    ----------
    change
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


def is_varied_clock(name: str, variation: Variation) -> bool:
    """Whether a path is a clock's frequency and is set to numbers."""
    return bool(_CLOCK.fullmatch(name)) and _are_numbers(variation.paths[name])


def is_varied_supply(variation: Variation) -> bool:
    """Whether the supply voltage is set to numbers, and none of its bounds is."""
    return not any(map(_BOUNDS.fullmatch, variation.paths)) and _are_numbers(
        variation.paths.get(SUPPLY, ("",)))


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(issubclass(kind, (int, float)) and kind is not bool
               for kind in set(map(type, values)))


def are_own(board: Board, clocks: Sequence[str], values: Floats) -> np.ndarray:
    """Return which values leave all clocks of a board as they are, shape (n,).

    It keeps its voltage scale then, also where a lower one would do.

    Parameters
    ----------
    clocks
        Paths of its clocks.
    values : ndarray of float, (n, clocks)
        What they are set to.
    """
    own = {f"clocks.{clock.name}.frequency_hz": clock.frequency_hz for clock in board.clocks}
    return (values == [own.get(name, np.nan) for name in clocks]).all(axis=1)


def part_stated(board: Board, clocks: Sequence[str], values: Floats) -> list[np.ndarray]:
    """Return places of values that are a board's own (`are_own`), and of all others, if any."""
    stated = are_own(board, clocks, values)
    return [part for part in (np.flatnonzero(stated), np.flatnonzero(~stated)) if len(part)]


def values_of(variation: Variation, name: str, rows: np.ndarray) -> Floats:
    """Return the numbers a path is set to in some rows."""
    return np.array([variation.paths[name][row] for row in rows.tolist()], np.float64)


def cut_supplies(board: Board, volts: Floats) -> tuple[np.ndarray, np.ndarray]:
    """Return whether supply voltages can be, and the numbers of spans that keep the same rules.

    Parameters
    ----------
    volts : ndarray of float, (n,)
        Of its supply.
    """
    bounds = np.array(sorted(set(bounds_of_supply(board))))
    spans = np.searchsorted(bounds, volts) + np.searchsorted(bounds, volts, side="right")
    return (volts > (VOLTAGE.above or 0.0)) & (volts <= (VOLTAGE.high or np.inf)), spans


def split_alike(columns: Mapping[str, Sequence[Any]], rows: np.ndarray,
                ) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    """Yield rows that set the same values, and those values.

    Parameters
    ----------
    columns
        Values of all rows by path.
    rows : ndarray of int, (n,)
        Which of them.
    """
    if not columns:
        yield {}, rows
        return
    found = list_by_key((tuple([repr(values[row]) for values in columns.values()]), row)
                        for row in rows.tolist())
    for own in found.values():
        yield {name: values[own[0]] for name, values in columns.items()}, np.array(own)


def name_frequency(hertz: float) -> str:
    """Return how a board's rule begins to say that a clock is too fast."""
    return f"{hertz / 1e6:g} MHz is"


def wordless(error: object) -> str:
    """Return what an error says, its first frequency apart."""
    return re.sub(r"(?<![\d.,])\d[\d.,]*(e[+-]?\d+)? \w?Hz", "", str(error), count=1)
