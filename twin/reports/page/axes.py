"""Axes a reader can read: logarithmic ones with round ticks, and where points may not lie."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from twin.reports.page.styles import INK

FIGURES = {"time_us": ("time", "ms", 1e-3), "energy_uj": ("energy", "mJ", 1e-3),
           "ram_bytes": ("RAM", "KiB", 1 / 1024), "flash_bytes": ("flash", "KiB", 1 / 1024),
           "price_usd": ("price", "USD", 1.0)}
"""Name, unit and factor of each quantity of a row."""

MOST_TICKS = 9


def log_axis(values: Iterable[float], title: str) -> dict[str, Any]:
    """Return a logarithmic axis around values, ticks at 1, 2 and 5 or closer where it is short."""
    known = [value for value in values if value > 0] or [1.0]
    low, high = min(known), max(known)
    pad = max((math.log10(high) - math.log10(low)) * 0.06, 0.03)
    ends = math.log10(low) - pad, math.log10(high) + pad
    ticks: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), tuple(
            1 + place / 10 for place in range(90))):
        found = [step * 10.0**power for power in range(math.floor(ends[0]), math.ceil(ends[1]) + 1)
                 for step in steps if ends[0] <= math.log10(step * 10.0**power) <= ends[1]]
        if len(found) > MOST_TICKS:
            ticks = ticks if len(ticks) >= 2 else found[::math.ceil(len(found) / MOST_TICKS)]
            break
        ticks = found
    return {"type": "log", "range": list(ends), "title": {"text": title}, "tickvals": ticks,
            "ticktext": [f"{value:.3g}" if value < 1e3 else f"{value:,.0f}" for value in ticks]}


def error_bars(bounds: Iterable[tuple[float, float, float]], factor: float = 1.0,
               **look: Any) -> dict[str, Any]:
    """Return the bars from each low to each high around its point, in the unit of the axis.

    Parameters
    ----------
    bounds : iterable of (low, point, high)
        In the order of the points of the trace.
    factor : float
        From their unit to that of the axis.
    **look
        Colour, thickness and width as Plotly takes them.
    """
    found = list(bounds)
    return {"type": "data", "symmetric": False, **look,
            "array": [(high - point) * factor for _, point, high in found],
            "arrayminus": [(point - low) * factor for low, point, _ in found]}


def rule(limit: float, *, across: bool) -> dict[str, Any]:
    """Return a dashed line at a limit of the horizontal axis, or of the upright one."""
    along, over = ("x", "y") if across else ("y", "x")
    return {"type": "line", f"{over}ref": "paper", f"{over}0": 0, f"{over}1": 1,
            f"{along}0": limit, f"{along}1": limit,
            "line": {"color": INK, "width": 1.3, "dash": "dash"}}
