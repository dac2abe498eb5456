"""The roofline as a plot, for each machine layers ran on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hwmodels.quantities import format_time, significant
from twin.pricing.prediction import Prediction
from twin.reports.figures.roofline import Side, list_sides
from twin.reports.page.page import plain
from twin.reports.page.parts import Plot
from twin.reports.page.styles import INK
from twin.reports.palette import BLUE, ORANGE

_BOUNDS = {"compute": (BLUE, "circle"), "memory": (ORANGE, "square")}


def list_roof_plots(prediction: Prediction) -> tuple[Plot, ...]:
    """Return a roofline for each machine that ran layers with MACs."""
    return tuple(draw_roofline(side, place) for place, side in enumerate(list_sides(prediction))
                 if side.points)


def draw_roofline(side: Side, place: int = 0) -> Plot:
    """Draw attained MAC per cycle against MAC per byte, under compute and memory roofs."""
    points = side.points
    intensities = [layer.arithmetic_intensity for layer, _ in points]
    attained = [layer.macs / cycles for layer, cycles in points]
    peak = side.peak or max(attained)
    ridges = [peak / rate for _, rate in side.roofs]
    low, high = 0.4 * min(*intensities, *ridges), 3 * max(*intensities, *ridges)
    traces = [*_draw_roofs(side, peak, low, high), *_draw_points(side)]
    # Left of its ridge a memory is the limit; above it a layer must have found data nearer.
    slowest = min((rate for _, rate in side.roofs), default=None)
    above = 0 if slowest is None else sum(
        rate > min(peak, slowest * intensity) * 1.001
        for intensity, rate in zip(intensities, attained, strict=True))
    told = (f"{len(points)} layers with MACs on the {side.machine}, at most "
            f"{significant(max(attained))} of {significant(peak)} MAC per {side.clock.upper()} "
            "cycle. ")
    told += (f"{above} lie above the lowest roof: a cache or a nearer memory feeds them."
             if above else "All lie below the lowest roof.")
    return Plot(
        name=f"roofline-{place}", title=f"Roofline of the {side.machine}", told=told, height_px=440,
        traces=tuple(traces), layout={
            "xaxis": {"type": "log", "range": _logs(low, high), "dtick": 1,
                      "title": {"text": "MAC per byte moved"}},
            "yaxis": {"type": "log", "range": _logs(0.4 * min(attained), 2.2 * max(
                *attained, peak)), "dtick": 1,
                "title": {"text": f"MAC per {side.clock.upper()} cycle"}}})


def _draw_roofs(side: Side, peak: float, low: float, high: float) -> list[Mapping[str, Any]]:
    dashes = ("solid", "dash", "dot", "dashdot")
    found: list[Mapping[str, Any]] = []
    for place, (name, rate) in enumerate(side.roofs):
        found.append({"type": "scatter", "mode": "lines", "name": plain(
            f"{name}: {significant(rate)} B/cycle"), "x": [low, peak / rate],
            "y": [low * rate, peak], "hoverinfo": "name",
            "line": {"color": INK, "width": 1.3, "dash": dashes[place % len(dashes)]}})
    if side.peak:
        start = min((peak / rate for _, rate in side.roofs), default=low)
        found.append({"type": "scatter", "mode": "lines", "hoverinfo": "name",
                      "name": f"peak: {significant(peak)} MAC/cycle", "x": [start, high],
                      "y": [peak, peak], "line": {"color": INK, "width": 2.2}})
    return found


def _draw_points(side: Side) -> list[Mapping[str, Any]]:
    longest = max(layer.time_us for layer, _ in side.points) or 1.0
    found: list[Mapping[str, Any]] = []
    for bound, (colour, symbol) in _BOUNDS.items():
        mine = [(layer, cycles) for layer, cycles in side.points
                if (layer.bound or "compute") == bound]
        if mine:
            found.append({
                "type": "scatter", "mode": "markers", "name": f"{bound} bound",
                "x": [layer.arithmetic_intensity for layer, _ in mine],
                "y": [layer.macs / cycles for layer, cycles in mine],
                "marker": {"color": colour, "symbol": symbol, "opacity": 0.85, "size": [
                    7 + 21 * (layer.time_us / longest)**0.5 for layer, _ in mine],
                    "line": {"width": 1, "color": INK}},
                "hoverinfo": "text", "hovertext": [
                    f"{layer.index} {plain(layer.name or layer.op)} ({layer.op})<br>"
                    f"{significant(layer.macs / cycles)} MAC/cycle, "
                    f"{significant(layer.arithmetic_intensity)} MAC/B<br>"
                    f"{format_time(layer.time_us)}, most of it {layer.largest_cause}"
                    for layer, cycles in mine]})
    return found


def _logs(low: float, high: float) -> list[float]:
    from math import log10

    return [log10(low), log10(high)]
