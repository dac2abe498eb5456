"""Axes a reader can read: logarithmic ones with round ticks, and where points may not lie."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from hwmodels.files import JsonObject
from hwmodels.quantities import Ends
from twin.reports.charts import spread_log
from twin.reports.page.styles import INK


def log_axis(values: Iterable[float], title: str) -> JsonObject:
    """Return a logarithmic axis around values, ticks at 1, 2 and 5 or closer where it is short."""
    return lay_out_log(*spread_log(values), title)


def lay_out_log(ends: Ends, ticks: Iterable[tuple[float, str]], title: str) -> JsonObject:
    """Return a logarithmic axis between ends."""
    places, texts = zip(*ticks, strict=True)
    return {"type": "log", "range": list(map(math.log10, ends)), "title": {"text": title},
            "tickvals": list(places), "ticktext": list(texts)}


def error_bars(bounds: Iterable[tuple[float, float, float]], factor: float = 1.0,
               **look: Any) -> JsonObject:
    """Return the bars from each low to each high around its point, in the unit of the axis.

    Parameters
    ----------
    bounds : iterable of (low, point, high)
        In the order of the points of the trace.
    **look
        Colour, thickness and width as Plotly takes them.
    """
    found = list(bounds)
    return {"type": "data", "symmetric": False, **look,
            "array": [(high - point) * factor for _, point, high in found],
            "arrayminus": [(point - low) * factor for low, point, _ in found]}


def rule(limit: float, *, across: bool) -> JsonObject:
    """Return a dashed line at a limit of the horizontal axis, or of the upright one."""
    along, over = ("x", "y") if across else ("y", "x")
    return {"type": "line", f"{over}ref": "paper", f"{over}0": 0, f"{over}1": 1, f"{along}0": limit,
            f"{along}1": limit, "line": {"color": INK, "width": 1.3, "dash": "dash"}}
