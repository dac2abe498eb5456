"""Figures of rows that findings compare: quantities, energy x time, variables and their sums."""

from __future__ import annotations

import math
from collections.abc import Collection

from hwmodels.counts import CAUSE_GROUPS
from hwmodels.quantities import format_energy, format_power, format_size, format_time, significant
from twin.pricing.variables import CAUSE, COLD_START, SETUP
from twin.studies.rows import WORDS, Row

EDP = "edp"
"""Energy-delay product of a row, time x energy."""

FIGURE_WORDS = {**WORDS, "overhead_us": "overhead of calls", EDP: "energy-delay product",
                SETUP: "set-up", COLD_START: "first answer after sleep",
                "misses": "data-cache misses", "miss_rate": "data-cache miss rate",
                "traffic": "memory traffic", "bandwidth": "bandwidth", "stalls": "memory stalls"}


def figure_of(row: Row, figure: str) -> float | None:
    """Return a figure of a row; None where it is not known."""
    if figure == EDP:
        known = row.time_us is not None and row.energy_uj is not None
        return row.time_us * row.energy_uj if known else None  # type: ignore[operator]
    if figure in WORDS or figure == "overhead_us":
        value: float | None = getattr(row, figure)
        return value
    return _sum_variables(row, figure)


def _sum_variables(row: Row, figure: str) -> float | None:
    """Return a variable of a row by its name, or one over all its caches, memories, causes."""
    known = dict(row.variables)
    if figure in known:
        return known[figure]

    def total(kind: str, places: Collection[str]) -> float | None:
        found = [value for name, value in known.items()
                 if name.partition(".")[0] == kind and name.partition(".")[2] in places]
        return math.fsum(found) if found else None

    looked_up = {name.partition(".")[2] for name in known if name.startswith("lookups.")}
    traffic = total("bytes", {name.partition(".")[2] for name in known})
    if figure == "bandwidth":
        return None if traffic is None or not row.time_us else traffic / row.time_us
    if figure == "miss_rate":
        lookups, misses = (total(kind, looked_up) for kind in ("lookups", "misses"))
        return misses / lookups if lookups and misses is not None else None
    if figure == "stalls":
        return (total(CAUSE, CAUSE_GROUPS["memory"]) or 0.0) if row.time_us else None
    return {"misses": total("misses", looked_up), "traffic": traffic}.get(figure)


def name_figure(figure: str) -> str:
    """Return what a figure is called: "time", or "misses of l1d" of one cache."""
    kind, _, place = figure.partition(".")
    return FIGURE_WORDS.get(figure) or f"{_HEADS.get(kind, kind)} of {place}"


_HEADS = {"bytes": "bytes moved", "miss_rate": "miss rate", "bandwidth_used": "share of bandwidth",
          CAUSE: "time", "lookups": "look-ups", "ram": "RAM", "flash": "flash"}


def write_level(figure: str, value: float) -> str:
    """Write the value of a figure with its unit."""
    kind = figure.partition(".")[0]
    if kind in ("miss_rate", "bandwidth_used", "error"):
        return f"{significant(100 * value)} %"
    if kind in ("bytes", "ram", "flash", "parameter_bytes", "traffic", "ram_bytes", "flash_bytes"):
        return format_size(value)
    if kind in (CAUSE, "stalls") or figure.endswith("_us"):
        return format_time(value)
    return (f"{value:.3g} MB/s" if kind == "bandwidth" else
            format_energy(value) if kind == "energy_uj" else
            format_power(value) if kind == "mean_mw" else f"{value:,.4g}")
