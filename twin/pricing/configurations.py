"""Configurations of a variation in groups of one timing: few boards are made for many clocks.

A board is validated and placed a few times only: values of one clock are cut where voltage scale,
wait states or a limit change. Both follow the clock in one direction, the scale up, the wait states
up within a scale, so what is the same at both ends of a span is the same inside. A supply voltage
breaks rules of the board or keeps them; else it changes nothing but what energies are in
proportion to.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hwmodels.board.declaration import VOLTAGE
from hwmodels.board.facts import Board
from hwmodels.board.file import bounds_of_supply, change_board, spread_clock, spread_supply
from hwmodels.errors import TwinError
from hwmodels.paths.timing import Floats
from hwmodels.prices import rail_mw_per_ma
from twin.deployment.deployment import Deployment, boards_of
from twin.pricing.batch import Failure, Variation

_CLOCK = re.compile(r"clocks\.(\w+)\.frequency_hz")
SUPPLY = "supply.voltage_v"
_BOUNDS = re.compile(r"supply\.voltage_range_v|memories\.\w+\.wait_states_min_supply_v")

Made = Deployment | TwinError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """Rows of one structure and timing.

    Parameters
    ----------
    rows : ndarray of int, (n,)
        Of the batch.
    deployment : Deployment
        One of them.
    hertz : ndarray of float, (n,)
        Clock of the core.
    top : Deployment or None
        Another of them, where energies differ by supply voltage.
    toward : ndarray of float, (n,)
        How far energies of each row are from those of the first to those of `top`, 0 to 1.
    """

    rows: np.ndarray
    deployment: Deployment
    hertz: Floats
    top: Deployment | None = None
    toward: Floats | None = None


def list_groups(base: Deployment, variation: Variation) -> Iterator[Group | Failure]:
    """Yield configurations in groups, and those that cannot be.

    Parameters
    ----------
    base : Deployment
        What is varied.
    variation : Variation
        Of `read_variation`.

    Notes
    -----
    On an accelerator all are one group: `twin.pricing.spans` cuts them.
    """
    if base.target.offloads and "runtime" not in variation.paths:
        yield from _whole(base, np.arange(variation.rows))
        return
    clocks = [name for name in variation.paths if is_varied_clock(name, variation)]
    shared = base.loads or any(name.startswith("load.") for name in variation.paths)
    clock = clocks[0] if clocks and not shared else None  # others ask by time, not by cycle
    supply = SUPPLY if is_varied_supply(variation) else None

    def list_timings(settings: dict[str, Any], rows: np.ndarray) -> Iterator[Group | Failure]:
        if clock is None:
            return _whole(_make(base, settings), rows)
        values = values_of(variation, clock, rows)
        return itertools.chain.from_iterable(
            _cut(base, settings, clock, values[part], rows[part])
            for part in part_stated(base.board, [clock], values[:, None]))

    others = {name: values for name, values in variation.paths.items()
              if name not in (clock, supply)}
    for settings, rows in split_alike(others, np.arange(variation.rows)):
        yield from (list_timings(settings, rows) if supply is None else _list_supplies(
            base, settings, variation.paths[supply], rows, list_timings))


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
    board : Board
        That is changed.
    clocks : sequence of str
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


def _list_supplies(base: Deployment, settings: dict[str, Any], given: Sequence[Any],
                   rows: np.ndarray,
                   list_timings: Callable[[dict[str, Any], np.ndarray],
                                          Iterator[Group | Failure]],
                   ) -> Iterator[Group | Failure]:
    """Yield groups of rows whose supply voltages keep or break the same rules."""
    volts = np.array([given[row] for row in rows.tolist()], np.float64)
    able, spans = cut_supplies(base.board, volts)
    for row in rows[~able].tolist():
        yield from _whole(_make(base, {**settings, SUPPLY: given[row]}), np.array([row]))
    for span in np.unique(spans[able]).tolist():
        inside = np.flatnonzero(able & (spans == span))
        lowest = float(volts[inside].min())
        of_row = dict(zip(rows[inside].tolist(), volts[inside].tolist(), strict=True))
        for one in list_timings({**settings, SUPPLY: lowest}, rows[inside]):
            if isinstance(one, Failure):
                said = str(one.error).replace(f"{lowest:g} V is", f"{of_row[one.row]:g} V is", 1)
                yield Failure(row=one.row, error=type(one.error)(said))
            else:
                yield _supply(one, np.array([of_row[row] for row in one.rows.tolist()]))


def cut_supplies(board: Board, volts: Floats) -> tuple[np.ndarray, np.ndarray]:
    """Return whether supply voltages can be, and the numbers of spans that keep the same rules.

    Parameters
    ----------
    board : Board
        Whose rules they are.
    volts : ndarray of float, (n,)
        Of its supply.
    """
    bounds = np.array(sorted(set(bounds_of_supply(board))))
    spans = np.searchsorted(bounds, volts) + np.searchsorted(bounds, volts, side="right")
    return (volts > (VOLTAGE.above or 0.0)) & (volts <= (VOLTAGE.high or np.inf)), spans


def _supply(group: Group, volts: Floats) -> Group:
    """Return a group at one of its supply voltages with each row at its own."""
    board = group.deployment.board
    rails: Any = rail_mw_per_ma(spread_supply(board, np.array([board.power.voltage_v, *volts])))
    away = rails[1:] - rails[0] if np.ndim(rails) else np.zeros_like(volts)
    farthest = int(np.argmax(np.abs(away)))
    if not away[farthest]:  # not known, or the same at each
        return group
    top = change_board(board, {SUPPLY: float(volts[farthest])})
    return replace(group, toward=away / away[farthest], top=group.deployment.repriced(
        runtime=group.deployment.runtime, board=top))


def split_alike(columns: Mapping[str, Sequence[Any]], rows: np.ndarray,
                ) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    """Yield rows that set the same values, and those values.

    Parameters
    ----------
    columns : mapping of str to sequence
        Values of all rows by path.
    rows : ndarray of int, (n,)
        Which of them.
    """
    if not columns:
        yield {}, rows
        return
    found: dict[tuple[str, ...], list[int]] = {}
    for row in rows.tolist():
        found.setdefault(tuple([repr(values[row]) for values in columns.values()]),
                         []).append(row)
    for own in found.values():
        yield {name: values[own[0]] for name, values in columns.items()}, np.array(own)


def _make(base: Deployment, settings: dict[str, Any]) -> Made:
    try:
        return base.replace(settings) if settings else base
    except TwinError as error:
        return error


def _whole(made: Made, rows: np.ndarray) -> Iterator[Group | Failure]:
    if isinstance(made, TwinError):
        yield from (Failure(row=row, error=made) for row in rows.tolist())
        return
    yield gather_rows(made, rows)


def gather_rows(deployment: Deployment, rows: np.ndarray) -> Group:
    """Return rows that are all one deployment."""
    board = deployment.board
    return Group(rows=rows, deployment=deployment,
                 hertz=np.full(len(rows), board.clock(board.core.clock).frequency_hz))


def _cut(base: Deployment, settings: dict[str, Any], clock: str, values: Floats,
         rows: np.ndarray) -> Iterator[Group | Failure]:
    """Yield groups of a clock's values, each of one scale and one set of wait states."""
    hertz, where = np.unique(values, return_inverse=True)
    try:
        change = boards_of(base, settings)
    except TwinError as error:
        yield from _whole(error, rows)
        return
    known: dict[int, Board | TwinError] = {}

    def make(place: int) -> Board | TwinError:
        if place not in known:
            try:
                known[place] = change({clock: float(hertz[place])})
            except TwinError as error:
                known[place] = error
        return known[place]

    match = _CLOCK.fullmatch(clock)
    assert match is not None
    for first, last in _join(make, _list_spans(make, 0, len(hertz) - 1)):
        inside = np.flatnonzero((where >= first) & (where <= last))
        one = make(first)
        if isinstance(one, TwinError):
            said = name_frequency(hertz[first])
            for place in inside.tolist():
                own = type(one)(str(one).replace(
                    said, name_frequency(values[place]), 1)) if said in str(one) \
                    else make(int(where[place]))
                assert isinstance(own, TwinError)
                yield Failure(row=int(rows[place]), error=own)
            continue
        spread = spread_clock(one, match[1], values[inside])
        core = spread[one.core.clock]
        for piece in _list_ratios(list(spread.values())):
            exact = _make(base, {**settings, clock: float(values[inside[piece[0]]])})
            own = rows[inside[piece]]
            if isinstance(exact, TwinError):  # it does not fit, at whatever clock
                yield from _whole(exact, own)
            else:
                yield Group(rows=own, deployment=exact, hertz=core[piece])


def _list_spans(make: Callable[[int], Board | TwinError], first: int,
                last: int) -> Iterator[tuple[int, int]]:
    """Yield spans of places that make the same but for the clock."""
    if _alike(make(first), make(last)):
        yield first, last
        return
    middle = (first + last) // 2
    yield from _list_spans(make, first, middle)
    yield from _list_spans(make, middle + 1, last)


def _join(make: Callable[[int], Board | TwinError],
          spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Join spans that follow one another and make the same."""
    begun: tuple[int, int] | None = None
    for first, last in spans:
        if begun is not None and _alike(make(begun[0]), make(first)):
            begun = begun[0], last
            continue
        if begun is not None:
            yield begun
        begun = first, last
    if begun is not None:
        yield begun


def _alike(one: Board | TwinError, other: Board | TwinError) -> bool:
    """Whether two boards differ in frequencies only, or cannot be for the same reason."""
    if isinstance(one, TwinError) or isinstance(other, TwinError):
        return type(one) is type(other) and wordless(one) == wordless(other)
    return sign_board(one) == sign_board(other)


def name_frequency(hertz: float) -> str:
    """Return how a board's rule begins to say that a clock is too fast."""
    return f"{hertz / 1e6:g} MHz is"


def wordless(error: object) -> str:
    """Return what an error says, its first frequency apart."""
    return re.sub(r"(?<![\d.,])\d[\d.,]*(e[+-]?\d+)? \w?Hz", "", str(error), count=1)


def sign_board(board: Board) -> tuple[object, ...]:
    """Return all a clock may change of a board but frequencies; ratios to twelve digits."""
    core = board.clock(board.core.clock).frequency_hz
    return (board.power, tuple((memory.name, memory.wait_states, round(memory.latency_cycles, 9))
                               for memory in board.memories),
            tuple(float(f"{clock.frequency_hz / core:.12g}") for clock in board.clocks))


def _list_ratios(clocks: Sequence[Floats]) -> Iterator[np.ndarray]:
    """Yield places at which the ratios of all clocks are the same to the last bit."""
    ratios = [one / other for one in clocks for other in clocks if one is not other]
    moving = [ratio for ratio in ratios if np.ptp(ratio)]
    if not moving:
        yield np.arange(len(clocks[0]))
        return
    _, group = np.unique(np.stack(moving, axis=1), axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(group.ravel()[order])) + 1)
