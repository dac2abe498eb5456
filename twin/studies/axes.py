"""What a study varies: axes and their values, and the points of the space they span.

An axis is a model, a board, a runtime, a clock, or any what-if path. Some
values depend on the others of a point (`each` clock of a board), so a space is walked axis by axis.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from hwmodels.board.facts import Board, Clock
from hwmodels.errors import need_extra
from hwmodels.frozen import frozen
from hwmodels.quantities import Settings, read_count, read_quantity
from twin.deployment.changes import check_unit, takes_whole
from twin.deployment.choice import BEST, DEFAULT, list_best, list_each_runtime, load_runtime
from twin.errors import UsageError
from twin.network.graph import Graph

if TYPE_CHECKING:
    import numpy as np

    from twin.deployment.deployment import Deployment

NAMED = ("model", "board", "runtime", "clock")
"""Axes that are no what-if path, in the order a point is made."""

MEASURED, EACH = "measured", "each"
"""Values that stand for others: runtimes measured on the board or on its core; every one that may
run, besides `DEFAULT` and `BEST`. Of a clock, `each`: those a board states, or the highest of
every voltage scale."""

OWN = "own"
"""Value of the clock axis: the board's own."""

METHODS = ("sobol", "lhs", "random")
"""Ways to sample: Sobol's sequence (scrambled), Latin hypercube, independent draws."""

MOST_POINTS = 1_000_000
"""Of a space, and values of an axis."""

MOST_AXES = 100

_BOUND = r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?:\s*([A-Za-z/]+))?\s*"
_SPAN = re.compile(rf"{_BOUND}\.\.{_BOUND}(?::(\d+))?")

_DOUBLES = re.compile(r"caches\.\w+\.(size_bytes|line_bytes|ways)")
"""Paths whose values are multiplied by two: sets of a cache are a power of two."""


@frozen
class Brought:
    """A program a user brings to be compared with libraries.

    Parameters
    ----------
    name
        Its value of the axis that is compared.
    model, board
        What it runs, and where.
    file, content
        Name of its file; hash of the file and of what is asked of it.
    deploy, prepare
        Board -> deployment of an inference, and of what precedes the first; None is not known.
    """

    name: str
    model: str
    board: str
    file: str
    content: str
    deploy: Callable[[Board], Deployment] = field(repr=False)
    prepare: Callable[[Board], Deployment] | None = field(default=None, repr=False)


Value = str | float | int | Graph | Board | Brought
Point = Mapping[str, Value]
"""A value by axis."""


@frozen
class Span:
    """A range of numbers, written LOW..HIGH or LOW..HIGH:COUNT.

    Parameters
    ----------
    low, high
        Its ends, in `unit`.
    unit
        As written; "" for none.
    count
        How many evenly spaced values a grid takes; None: it can only be sampled.
    steps
        All values of a range of whole numbers, ascending; () where any number will do.
    """

    low: float
    high: float
    unit: str = ""
    count: int | None = None
    steps: tuple[float, ...] = ()

    def at(self, share: float) -> str:
        """Return the value at a share of the way, 0 to 1, as text."""
        if self.steps:
            value = self.steps[min(int(share * len(self.steps)), len(self.steps) - 1)]
            return f"{value:.10g}{self.unit}"
        return f"{self.low + share * (self.high - self.low):.6g}{self.unit}"


@frozen
class Axis:
    """One thing that varies.

    Parameters
    ----------
    name
        "model", "board", "runtime", "clock" or a what-if path.
    values
        What it takes, in order; names and texts as options take them, graphs and boards as they
        are.
    span
        A range instead of values.
    """

    name: str
    values: tuple[Value, ...] = ()
    span: Span | None = None

    def __post_init__(self) -> None:
        """Refuse an axis of nothing, and a value twice."""
        if not self.values and self.span is None:
            raise UsageError(f"{self.name}: has no values")
        if len(self.values) > MOST_POINTS:
            raise UsageError(f"{self.name}: has {len(self.values):,} values; accepted: up to "
                             f"{MOST_POINTS:,}")
        for value in self.values if self.span is None else (self.span.at(0.0),):
            check_unit(self.name, value)
        twice = _find_twice(label(value) for value in self.values)
        if twice is not None:
            raise UsageError(f"{self.name} {twice!r}: is given twice")

    def list_values(self, point: Point) -> tuple[Value, ...]:
        """Return its values beside those a point already has."""
        if self.span is not None:
            if self.span.count is None:
                raise UsageError(f"{self.name}: a range has no end of values; accepted: "
                                 "LOW..HIGH:COUNT, a list, or a sample such as sobol:500")
            steps = max(self.span.count - 1, 1)
            return tuple(dict.fromkeys(
                self.span.at(step / steps) for step in range(self.span.count)))
        found: dict[str, Value] = {}
        for value in self.values:
            for one in _expand(self.name, value, point):
                found.setdefault(label(one), one)
        return tuple(found.values())

    def at(self, share: float, point: Point) -> Value:
        """Return the value at a share of the way, 0 up to 1."""
        if self.span is not None and self.span.count is None:
            return self.span.at(share)
        values = self.list_values(point)
        return values[min(int(share * len(values)), len(values) - 1)]


@frozen
class Sample:
    """Points drawn instead of all: a method of `METHODS`, how many, and a seed."""

    method: str
    count: int
    seed: int = 0


@frozen
class Space:
    """What a study covers: every combination of its axes, or a sample of them."""

    axes: tuple[Axis, ...]
    sample: Sample | None = None

    def __post_init__(self) -> None:
        """Refuse an axis twice; put the named ones first, as others depend on them."""
        twice = _find_twice(axis.name for axis in self.axes)
        if twice is not None:
            raise UsageError(f"{twice}: is an axis twice; accepted: one list of all its values")
        if len(self.axes) > MOST_AXES:
            raise UsageError(f"{len(self.axes):,} axes; accepted: up to {MOST_AXES}")
        order = {name: place for place, name in enumerate(NAMED)}
        object.__setattr__(self, "axes", tuple(sorted(
            self.axes, key=lambda axis: order.get(axis.name, len(order)))))

    def list_points(self) -> tuple[Point, ...]:
        """Return its points in order: the last axis moves fastest; a sample holds none twice."""
        if self.sample is None:
            named = [axis for axis in self.axes if axis.name in NAMED]
            times = math.prod(len(axis.list_values({})) for axis in self.axes[len(named):])
            if [*itertools.islice(self._walk({}, named), MOST_POINTS // times, None)]:
                raise UsageError(f"more than {MOST_POINTS:,} combinations of "
                                 + ", ".join(axis.name for axis in self.axes)
                                 + "; accepted: fewer values, or a sample such as sobol:500")
            return tuple(self._walk({}, self.axes))
        found: dict[tuple[str, ...], Point] = {}
        for shares in draw_shares(self.sample, len(self.axes)):
            point: dict[str, Value] = {}
            for axis, share in zip(self.axes, shares, strict=True):
                point[axis.name] = axis.at(float(share), point)
            found.setdefault(tuple(map(label, point.values())), point)
        return tuple(found.values())

    def _walk(self, point: Point, axes: Sequence[Axis]) -> Iterator[Point]:
        if not axes:
            yield dict(point)
            return
        for value in axes[0].list_values(point):
            yield from self._walk({**point, axes[0].name: value}, axes[1:])


def make_space(models: Iterable[Value], boards: Iterable[Value], *, runtimes: Iterable[str] = (),
               clocks: Iterable[str] = (), settings: Settings | None = None,
               sample: str | Sample | None = None) -> Space:
    """Return the space of models on boards, with what else varies.

    Parameters
    ----------
    models, boards
        Names, files, graphs or boards.
    runtimes, clocks
        Values of these axes; nothing: the default of each deployment.
    settings : mapping of str to list or text, optional
        What-if path to its values: a list, "a,b,c", "LOW..HIGH:COUNT" or, sampled, "LOW..HIGH".
    sample : str or Sample, optional
        "sobol:500", "lhs:100" or "random:50"; None: every combination.
    """
    named = {"model": tuple(models), "board": tuple(boards), "runtime": tuple(runtimes),
             "clock": tuple(clocks)}
    for needed in ("model", "board"):
        if not named[needed]:
            raise UsageError(f"no {needed}; accepted: one or more")
    axes = [Axis(name=name, values=values) for name, values in named.items() if values]
    axes += [read_axis(path, values) for path, values in (settings or {}).items()]
    return Space(axes=tuple(axes),
                 sample=read_sample(sample) if isinstance(sample, str) else sample)


def check_runtimes(space: Space) -> None:
    """Refuse a runtime that is not known, before anything is predicted."""
    for axis in space.axes:
        for name in axis.values if axis.name == "runtime" else ():
            if name not in (DEFAULT, BEST, MEASURED, EACH):
                load_runtime(str(name))


def read_axis(path: str, values: object) -> Axis:
    """Read the values of a path: a list, or text as `--set PATH=VALUES` has it.

    Parameters
    ----------
    path
        What-if path, or a name of `NAMED`.
    values
        A list or tuple; "a,b,c"; "a;b" where values have commas; "LOW..HIGH" or "LOW..HIGH:COUNT".
    """
    if isinstance(values, str) and ".." in values:
        return Axis(name=path, span=_read_span(path, values))
    if isinstance(values, str):
        parts = values.split(";") if ";" in values else values.split(",")
        if not all(part.strip() for part in parts):
            raise UsageError(f"{path}={values}: a value is empty")
        return Axis(name=path, values=tuple(part.strip() for part in parts))
    return Axis(name=path, values=tuple(values) if isinstance(values, Sequence)
                else (values,))  # type: ignore[arg-type]


def read_sample(text: str, seed: int = 0) -> Sample:
    """Read METHOD:COUNT, such as "sobol:500"."""
    method, _, digits = text.partition(":")
    count = read_count(digits, MOST_POINTS)
    if method not in METHODS or not count:
        raise UsageError(f"--sample {text!r}; accepted: {', '.join(METHODS)} with how many, up to "
                         f"{MOST_POINTS:,}, such as sobol:500")
    return Sample(method=method, count=count, seed=seed)


def draw_shares(sample: Sample, axes: int) -> np.ndarray:
    """Return points of the unit cube, shape (count, axes); the same seed draws the same points.

    Raises
    ------
    ToolMissingError
        Without SciPy, for any method but "random".
    """
    import numpy as np

    if sample.method == "random":
        return np.random.default_rng(sample.seed).random((sample.count, axes))
    with need_extra("samples", "SciPy", "study"):
        from scipy.stats import qmc
    if sample.method == "lhs":
        drawn: np.ndarray = qmc.LatinHypercube(d=axes, rng=sample.seed).random(sample.count)
        return drawn
    power = max(sample.count - 1, 0).bit_length()
    points: np.ndarray = qmc.Sobol(d=axes, rng=sample.seed).random_base2(power)
    return points[:sample.count]


def label(value: Any) -> str:
    """Return what a value is called in a table."""
    if isinstance(value, (Graph, Board, Brought)):
        return value.name
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _find_twice(names: Iterable[str]) -> str | None:
    """Return the first name that was there before; None where there is none."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _expand(name: str, value: Value, point: Point) -> Iterable[Value]:
    """Return what a value stands for on the board of a point."""
    if name not in ("runtime", "clock") or value not in (MEASURED, EACH):
        return (value,)
    board = point.get("board")
    if board is None:
        raise UsageError(f"{name} {value}: depends on the board, and there is none")
    if not isinstance(board, Board):
        from hwmodels.board.file import load_board

        board = load_board(str(board))
    if name == "clock":
        return list_clocks(board)
    return (list_best(board) or (DEFAULT,)) if value == MEASURED else list_each_runtime(board)


def list_clocks(board: Board) -> tuple[str, ...]:
    """Return clocks worth trying: the board's own, and those it states, or a scale's highest."""
    clock = board.core_clock
    highest = {hertz for _, hertz in list_scales(board, clock)}
    return tuple(f"{hertz / 1e6:.10g}MHz" for hertz in sorted(
        {clock.frequency_hz, *(clock.settings_hz or highest)}, reverse=True))


def list_scales(board: Board, clock: Clock) -> list[tuple[str, float]]:
    """Return the highest frequency of each voltage scale, lowest first."""
    table = f"clocks.{clock.name}.max_hz_by_scale."
    found = [(fact.path.removeprefix(table), float(fact.value)) for fact in board.facts
             if fact.path.startswith(table) and isinstance(fact.value, (int, float))]
    return sorted(found, key=lambda one: one[1])


def read_clock(text: str) -> float:
    """Return a frequency in hertz; raises `UsageError` for any other text."""
    hertz, unit = read_quantity(text, "hz") or (0.0, "")
    if not 0 < hertz < math.inf or not unit:
        near = get_close_matches(text, (OWN, EACH), n=1)
        hint = (f"did you mean {near[0]}?" if near
                else f"accepted: a frequency such as 80MHz, {OWN}, or {EACH}")
        if ".." in text:
            hint += "; a range is --set clocks.NAME.frequency_hz=LOW..HIGHMHz:COUNT"
        raise UsageError(f"clock {text!r}; {hint}")
    return hertz


def _read_span(path: str, text: str) -> Span:
    found = _SPAN.fullmatch(text)
    if found is None or (found[2] and found[2] != found[4]):
        raise UsageError(f"{path}={text}: is not a range; accepted: LOW..HIGH with one unit, such "
                         "as 80..280MHz, or LOW..HIGH:COUNT for a grid")
    low, high = float(found[1]), float(found[3])
    count = None if found[5] is None else read_count(found[5], MOST_POINTS) or 0
    if not low < high or not all(map(math.isfinite, (low, high))) or (count == 0):
        raise UsageError(f"{path}={text}: is not a range; accepted: LOW below HIGH, COUNT from 1 "
                         f"to {MOST_POINTS:,}")
    return Span(low=low, high=high, unit=found[4] or "", count=count,
                steps=_list_steps(path, low, high))


def _list_steps(path: str, low: float, high: float) -> tuple[float, ...]:
    """Return the values of a path of whole numbers within a range; () for any other path."""
    if not takes_whole(path) or high - low >= MOST_POINTS:
        return ()
    if _DOUBLES.fullmatch(path) and low > 0:
        return tuple(itertools.takewhile(high.__ge__, (low * 2.0**n for n in itertools.count())))
    steps = tuple(map(float, range(math.ceil(low), math.floor(high) + 1)))
    if not steps:
        raise UsageError(f"{path}={low:g}..{high:g}: holds no whole number")
    return steps
