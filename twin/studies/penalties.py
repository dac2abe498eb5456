"""What counts against a choice of board and library, and how much."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from calibration.fitting.bands import NORMAL_REACH
from hwmodels.frozen import record
from hwmodels.quantities import significant
from twin.studies.change import excess
from twin.studies.limits import Limits
from twin.studies.rows import WORDS, Row, judge, limit_known

LIMITS_POINTS, MEMORY_POINTS, WIDTH_POINTS = 70.0, 10.0, 10.0
"""Most points each penalty takes; of memories, each of RAM and flash."""

WIDEST = 4.0
"""Upper over lower end of an interval that takes all its points; figure over the least, too."""

BEST_MISS = 25.0
"""Most points of what misses a limit; what may meet them has up to twice as many."""

NEAR = 4.0
"""Times a limit from which no change is tried on a board."""

DRAWS = 4000
"""Draws from intervals that say how often each row is the least."""


@record
class Penalty:
    """Points a predicted quantity takes from a score, and why."""

    name: str
    points: float
    reason: str


def find_least(rows: Sequence[Row]) -> dict[tuple[str, str], float]:
    """Return the least price and mean power or energy of what meets the limits.

    By model and what a quantity compares as.
    """
    least: dict[tuple[str, str], float] = {}
    for row in rows:
        for name in _compared(row) if row.met else ():
            value = getattr(row, name)
            if value is not None:
                key = row.model, row.compared_as(name)
                least[key] = min(value, least.get(key, math.inf))
    return least


def _compared(row: Row) -> tuple[str, str]:
    return ("mean_mw" if row.sleep else "energy_uj"), "price_usd"


def is_far(row: Row, limits: Limits) -> bool:
    """Whether a row is `NEAR` times or more above a limit; memories can be chosen and do not count.

    A figure that is not known is above no limit.
    """
    return any(ratio >= NEAR for name, ratio in list_ratios(row, limits)
               if name not in ("ram_bytes", "flash_bytes"))


def list_ratios(row: Row, limits: Limits) -> list[tuple[str, float]]:
    """Return known figures of a row over their limits, the largest first."""
    known = ((name, limit, getattr(row, name)) for name, limit in (
        () if row.failure else limits.after(row.wake_up_us).list_limits()))
    return sorted(((name, value / limit) for name, limit, value in known if value is not None),
                  key=lambda one: -one[1])


def list_penalties(row: Row, limits: Limits, least: Mapping[tuple[str, str], float] = {},
                   ) -> tuple[Penalty, ...]:
    """Return what a row's score loses, largest first; each penalty is a predicted quantity.

    Parameters
    ----------
    least
        Of `find_least`.
    """
    if row.failure:
        return (Penalty("cannot run", 100.0, row.reason),)
    if row.violations:
        return (_miss(row, limits),)
    found = []
    if limits:
        chance = row.probability if row.probability is not None else float(row.met)
        found.append(Penalty("limits", LIMITS_POINTS * (1 - chance),
                             describe_miss(row, limits, chance)))
    for name, need, room in (("RAM", row.ram_bytes, row.ram_room_bytes),
                             ("flash", row.flash_bytes, row.flash_room_bytes)):
        if need is not None and room:
            share = need / room
            found.append(Penalty(name, MEMORY_POINTS * max(0.0, 2 * share - 1),
                                 f"{share:.0%} of {name} used"))
    factor = WIDEST if row.time is None else row.time.high / row.time.low
    found.append(Penalty(
        "interval", WIDTH_POINTS * min(1.0, math.log(factor) / math.log(WIDEST)),
        "time has no interval: nothing like it was measured" if row.time is None else
        f"time known within a factor of {factor:.2g}"))
    for name in _compared(row):
        value = getattr(row, name)
        best = least.get((row.model, row.compared_as(name)))
        if best:
            more = math.log(value / best) / math.log(WIDEST) if value else 1.0
            found.append(Penalty(
                WORDS[name], MEMORY_POINTS * (
                    more if name == "mean_mw" else min(1.0, more)),
                f"{value / best:.3g} times the least {WORDS[name]}" if value else
                f"{WORDS[name]} not known"))
    return tuple(sorted((one for one in found if one.points > 0), key=lambda one: -one.points))


def _miss(row: Row, limits: Limits) -> Penalty:
    """Return what a row loses that misses limits, or may, by how far or how sure it is."""
    known = limit_known(row, limits)
    if row.verdict == "may":
        chance = judge(row, known).probability if known else 1.0
        points = 100 - BEST_MISS * (1 + (1.0 if chance is None else chance))
    else:
        points = 100 - BEST_MISS * math.exp(-max(0.0, excess(row, limits)))
    return Penalty("limits", points, describe_miss(row, limits, 0.0))


def describe_miss(row: Row, limits: Limits, chance: float) -> str:
    """Say by how much a row exceeds each limit it misses."""
    def tell(name: str, limit: float) -> str:
        value = getattr(row, name)
        if name == "time_us" and value is not None:
            limit = limits.max_time_us or 0.0
            if limits.every_us is not None and (not limit or value <= limit):
                periods = (value + row.wake_up_us) / limits.every_us
                return "wake-up and " * bool(row.wake_up_us) + (
                    f"time {significant(periods, 4)} periods")
        return WORDS[name] + (" not known" if value is None else
                              f" {significant(value / limit, 4)} times its limit")

    broken = [tell(name, limit) for name, limit in limits.list_limits() if name in row.violations]
    return ", ".join(broken) or f"limits met with {chance:.1%}"


def draw_least(rows: Sequence[Row], quantity: str) -> np.ndarray | None:
    """Return how probable it is that each row has least of a quantity, shape (rows,).

    Notes
    -----
    Logarithms are drawn normal, each side with the deviation of its side of the interval; errors of
    different boards are taken as independent. None for what has no intervals (memories, prices,
    rows of stated prices) and for one row alone.
    """
    bounds = [row.bounds_of(quantity) for row in rows]
    if len(rows) < 2 or any(one is None or one[0] == one[2] for one in bounds):
        return None
    low, point, high = np.log(np.array(bounds, float)).T
    draws = np.random.default_rng(0).standard_normal((DRAWS, len(rows)))
    values = point + np.where(draws > 0, high - point, point - low) * draws / NORMAL_REACH
    least = values == values.min(axis=1, keepdims=True)
    chances: np.ndarray = (least / least.sum(axis=1, keepdims=True)).mean(axis=0)
    return chances
