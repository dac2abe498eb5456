"""The table of limits: what was asked, what is predicted, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hwmodels.quantities import format_number, significant
from twin.pricing.requirement import Requirement
from twin.reports.columns import Column, number
from twin.reports.tables.parts import Table, tabulate

if TYPE_CHECKING:
    from calibration.fitting.intervals import Interval
    from twin.studies.rows import Row


def requirement_table(requirements: Sequence[Requirement]) -> Table:
    """Return what was asked, what is predicted, and the verdict, one row per requirement."""
    level = next((item.interval.level for item in requirements if item.interval is not None), None)
    columns = [Column("check", "name"),
               _figure("predicted", lambda item: format_number(item.predicted, item.decimals)),
               _figure("limit", lambda item: f"{format_number(item.limit, item.decimals)} "
                                             f"{item.unit}"),
               number("used", lambda item: None if item.predicted is None or item.limit <= 0 else
                      f"{significant(100 * item.predicted / item.limit)} %"
                      if item.predicted < 1e3 * item.limit else
                      f"{item.predicted / item.limit:.2g} x", "{}"),
               Column("verdict")]
    if level is not None:
        columns.insert(2, number(f"{100 * level:.0f} % interval", "interval", format_interval))
        columns.insert(-1, number("P(exceeds)", "chance_above", format_chance))
    return tabulate(columns, requirements, drops=("used", "P(exceeds)"), style=lambda item:
                    "green" if item.surely_met else "yellow" if item.met
                    or item.verdict.startswith("may") else "bold red")


def _figure(header: str, take: Callable[[Requirement], str]) -> Column:
    """Return a column whose figures are not broken: words of others are before."""
    return Column(header, take, number=True, no_wrap=True, overflow="ellipsis")


def format_interval(interval: Interval | None) -> str:
    """Return the ends of an interval to four digits; "" for none."""
    return "" if interval is None else " to ".join(
        significant(end, 4) for end in (interval.low, interval.high))


def format_ends(interval: Interval | None, factor: float = 1e-3) -> str:
    """Return the ends of an interval, by default in thousands of its unit; "" for none."""
    return "" if interval is None else "-".join(
        significant(end * factor) for end in (interval.low, interval.high))


def format_chance(chance: float | None) -> str:
    """Return a probability; "" for none. None is ever certain."""
    return "" if chance is None else "<0.1%" if chance < 0.001 else (
        ">99.9%" if chance > 0.999 else f"{chance:.1%}")


def say_meets(row: Row) -> str:
    """Say how probable it is that a row meets its limits; a `VERDICTS` word where that is exact."""
    return format_chance(row.probability or None) or row.verdict
