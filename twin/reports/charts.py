"""Pictures made of points and lines, and of cells, each described once.

`figures/charts.py` draws them for files, `page/charts.py` for pages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from hwmodels.frozen import NamedNumbers, frozen
from hwmodels.quantities import Ends, significant
from twin.reports.palette import INK, SERIES

MISSED = "✗"
"""In a cell whose every point misses a limit."""

Ticks = tuple[tuple[float, str], ...]
"""Where which text stands."""


@frozen
class Axis:
    """An axis: what it says, and how it is laid out.

    Parameters
    ----------
    log
        Whether it is logarithmic.
    ends
        First and last value; None: around what is drawn.
    ticks
        Empty: at round values.
    """

    label: str = ""
    log: bool = False
    ends: Ends | None = None
    ticks: Ticks = ()


@frozen
class Curve:
    """Points that look alike, and the line through them.

    Parameters
    ----------
    x, y
        In units of the axes; None breaks the line. On a polar chart x is the place of a tick.
    name
        Its entry in the legend; "" for none.
    colour, mark, hatch
        As matplotlib names them; no mark: a line only.
    dashes : str or tuple
        The same; "": no line.
    sizes
        Of marks, in points: one for all, or one each.
    hollow
        Which marks are; empty for none.
    hover
        What a pointer shows on a page.
    x_ends, y_ends
        Intervals around the points; empty for none.
    steps
        Whether the line goes in steps, across and then up.
    """

    x: Sequence[float | None]
    y: Sequence[float | None]
    name: str = ""
    colour: str = INK
    mark: str = ""
    hatch: str = ""
    dashes: Any = ""
    width: float = 1.4
    sizes: Sequence[float] = (7.0,)
    hollow: Sequence[bool] = ()
    hover: Sequence[str] = ()
    x_ends: Sequence[Ends | None] = ()
    y_ends: Sequence[Ends | None] = ()
    steps: bool = False


@frozen
class Chart:
    """Curves over two axes.

    Parameters
    ----------
    curves
        Those in front last.
    x, y
        Along and up; of a polar chart around and outwards.
    rules : tuple of (str, float)
        Dashed lines: the axis, "x" or "y", and where it is crossed.
    notes : tuple of (float, float, str)
        Small texts, each right of its place.
    polar
        Whether the first axis goes around.
    name, title, caption
        Of the page: its own name, what it shows, the same in a sentence.
    """

    curves: tuple[Curve, ...]
    x: Axis
    y: Axis
    rules: NamedNumbers = ()
    notes: tuple[tuple[float, float, str], ...] = ()
    polar: bool = False
    name: str = ""
    title: str = ""
    caption: str = ""

    def values(self, axis: str) -> list[float]:
        """Return all that is drawn along an axis, intervals and rules with it."""
        return [value for values in (
            *(getattr(curve, axis) for curve in self.curves),
            *(ends or () for curve in self.curves for ends in getattr(curve, f"{axis}_ends")),
            [value for crossed, value in self.rules if crossed == axis])
            for value in values if value is not None]

    def spread(self, axis: Axis, name: str) -> tuple[Ends, Ticks]:
        """Return ends and ticks of a logarithmic axis, stated or around what is drawn."""
        return spread_log(self.values(name)) if axis.ends is None else spread_log(axis.ends, 0.0)


@frozen
class Grid:
    """A value for each column of each row; None where there is none.

    Parameters
    ----------
    columns, rows
        Values of both axes.
    values
        By row, in `unit`.
    missed
        Cells whose every point misses a limit.
    unknown
        Cells with points whose value is not known.
    unit, name, title, caption
        Of the values; of the page, as of a `Chart`.
    """

    columns: tuple[str, ...]
    rows: tuple[str, ...]
    across: str
    up: str
    values: tuple[tuple[float | None, ...], ...]
    missed: tuple[tuple[bool, ...], ...]
    unknown: tuple[tuple[bool, ...], ...]
    unit: str
    name: str = ""
    title: str = ""
    caption: str = ""

    @property
    def texts(self) -> list[list[str]]:
        """What cells say: the value, and a cross where every point misses a limit."""
        return [["?" * unknown if value is None else significant(value) + f" {MISSED}" * missed
                 for value, missed, unknown in zip(*line, strict=True)]
                for line in zip(self.values, self.missed, self.unknown, strict=True)]


def look_of(number: int) -> dict[str, Any]:
    """Return colour, mark and dashes of a curve by its number, from the start after the last."""
    colour, mark, dashes, _ = SERIES[number % len(SERIES)]
    return {"colour": colour, "mark": mark, "dashes": dashes}


def label_rows(labels: Sequence[str]) -> Axis:
    """Return an upright axis with a label at each whole number, the first on top."""
    return Axis(ends=(len(labels) - 0.5, -0.5), ticks=tuple(enumerate(labels)))


def share_of_log(value: float, known: Sequence[float]) -> float:
    """Return where a positive value lies between the least and the largest, 0 to 1."""
    low, high = min(known), max(known)
    return math.log(value / low) / math.log(high / low) if high > low > 0 else 0.0


MOST_TICKS = 9


def spread_log(values: Iterable[float], room: float = 0.06, ) -> tuple[Ends, Ticks]:
    """Return ends of a logarithmic axis around values, and ticks at 1, 2 and 5 or closer."""
    known = [value for value in values if value > 0] or [1.0]
    low, high = math.log10(min(known)), math.log10(max(known))
    pad = max((high - low) * room, 0.5 * room)
    low, high = low - pad, high + pad
    ticks: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), tuple(
            1 + place / 10 for place in range(90))):
        found = [step * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1)
                 for step in steps if low <= math.log10(step * 10.0**power) <= high]
        if len(found) > MOST_TICKS:
            ticks = ticks if len(ticks) >= 2 else found[::math.ceil(len(found) / MOST_TICKS)]
            break
        ticks = found
    return (10.0**low, 10.0**high), tuple(
        (value, f"{value:.3g}" if value < 1e3 else f"{value:,.0f}") for value in ticks)
