"""The table of limits: what was asked, what is predicted, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hwmodels.quantities import format_number, significant
from twin.pricing.certainty import Requirement
from twin.reports.tables.parts import Table, add_row, new_table

if TYPE_CHECKING:
    from calibration.fitting.intervals import Interval


def requirement_table(requirements: Sequence[Requirement]) -> Table:
    """Return what was asked, what is predicted, and the verdict, one row per requirement."""
    level = next((item.interval.level for item in requirements if item.interval is not None), None)
    doubt = () if level is None else (f"{100 * level:.0f} % interval", "exceeds")
    table = new_table(("check", "predicted", *doubt[:1], "limit", "used", *doubt[1:], "verdict"),
                      ("predicted", *doubt, "limit", "used"), drops=("used", "exceeds"))
    for column in table.columns:
        if str(column.header) in ("predicted", "limit"):  # Words are broken before figures are.
            column.no_wrap, column.overflow = True, "ellipsis"
    for item in requirements:
        used = "" if item.predicted is None or item.limit <= 0 else \
            f"{significant(100 * item.predicted / item.limit)} %"
        chance = format_chance(item.chance_above)
        style = "bold red" if not item.met else "green" if item.surely_met else "yellow"
        add_row(table, (item.name, format_number(item.predicted, item.decimals),
                        *(format_interval(item.interval) for _ in doubt[:1]),
                        f"{format_number(item.limit, item.decimals)} {item.unit}", used,
                        *(chance for _ in doubt[1:]), item.verdict), style=style)
    return table


def format_interval(interval: Interval | None) -> str:
    """Return the ends of an interval to four digits; "" for none."""
    return "" if interval is None else " to ".join(
        significant(end, 4) for end in (interval.low, interval.high))


def format_chance(chance: float | None) -> str:
    """Return a probability; "" for none. None is ever certain."""
    return "" if chance is None else f"{min(max(chance, 0.001), 0.999):.1%}"
