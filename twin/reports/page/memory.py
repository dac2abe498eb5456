"""Memory as plots: the arena over time, working sets against the cache, miss rates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hwmodels.files import JsonObject
from hwmodels.quantities import format_size
from twin.errors import NotApplicableError, UsageError
from twin.pricing.locality import Locality, measure_locality
from twin.pricing.prediction import Prediction
from twin.reports.bars import BarChart, chart_miss_rates, chart_working_sets
from twin.reports.page.axes import log_axis
from twin.reports.page.bars import plot_bars
from twin.reports.page.page import plain
from twin.reports.page.parts import Plot
from twin.reports.page.styles import INK, PAGE, hatch_each
from twin.reports.palette import BLUE, ORANGE, SKY


def draw_arena(prediction: Prediction) -> Plot:
    """Draw each buffer as a rectangle over the layers it lives in, and the bytes alive."""
    placement = prediction.placement
    graph = prediction.deployment.executed
    seen: dict[tuple[int, int, int, int], Any] = {}
    for slot in placement.arena:  # An alias shares its source's buffer.
        seen.setdefault((slot.first_layer, slot.last_layer, slot.offset_bytes, slot.size_bytes),
                        slot)
    slots = list(seen.values())
    names = ["scratch" if slot.tensor < 0 or slot.tensor >= len(graph.tensors)
             else graph.tensors[slot.tensor].name or f"tensor {slot.tensor}" for slot in slots]
    colours = [ORANGE if slot.tensor < 0 else (BLUE, SKY)[slot.first_layer % 2] for slot in slots]
    live = [size / 1024 for size in placement.live_bytes]
    peak = placement.peak_layer
    traces: list[JsonObject] = [{
        "type": "bar", "name": "buffer (hatched: scratch of a kernel)", "hoverinfo": "text",
        "x": [slot.first_layer - 0.5 for slot in slots], "offset": 0,
        "width": [slot.last_layer - slot.first_layer + 1 for slot in slots],
        "base": [slot.offset_bytes / 1024 for slot in slots],
        "y": [slot.size_bytes / 1024 for slot in slots],
        "hovertext": [f"{plain(name)}<br>{slot.size_bytes:,} bytes at {slot.offset_bytes:,}<br>"
                      f"layers {slot.first_layer} to {slot.last_layer}"
                      for name, slot in zip(names, slots, strict=True)],
        "marker": {"color": colours, "opacity": 0.8, "line": {"width": 1, "color": PAGE},
                   "pattern": hatch_each(["/" if slot.tensor < 0 else "" for slot in slots],
                                         colours)},
    }, {
        "type": "scatter", "mode": "lines", "name": "bytes alive", "x": list(range(len(live))),
        "y": live, "line": {"color": INK, "width": 1.6, "shape": "hvh"}, "hoverinfo": "text",
        "hovertext": [f"layer {place}: {size:,} bytes alive"
                      for place, size in enumerate(placement.live_bytes)]}]
    caption = f"The arena takes {format_size(placement.arena_bytes)}"
    if live:
        caption += (f"; most is alive in layer {peak}: {format_size(placement.live_bytes[peak])}. "
                 "Space between buffers and the line is what laying them out costs.")
    return Plot(name="arena", title="The arena, layer by layer", caption=caption,
                traces=tuple(traces), height_px=380, layout={
                    "barmode": "overlay",
                    "xaxis": {"title": {"text": "layer, in the order they run"}, "showgrid": False},
                    "yaxis": {"title": {"text": "address in the arena, KiB"},
                              "rangemode": "tozero"}})


def find_locality(prediction: Prediction) -> Locality | None:
    """Return how accesses fare in the caches; None where there are none to look up."""
    deployment = prediction.deployment
    # A program's accesses are of no loops.
    if deployment.accelerated or deployment.target.executes:
        return None
    try:
        return measure_locality(deployment, cold=prediction.temperature == "cold")
    except (UsageError, NotApplicableError):
        return None


def list_cache_plots(locality: Locality) -> tuple[Plot, ...]:
    """Return working sets and miss rates, where accesses are cached."""
    if not locality.caches or not locality.accesses:
        return ()
    sets, rates = (_stand_up(chart) for chart in (
        chart_working_sets(locality), chart_miss_rates(locality)))
    across = {"title": {"text": "layer, in the order they run"}}
    sizes = [bar.end / sets.scale for bar in sets.bars]
    assert sets.limit is not None
    return (plot_bars(sets, texts=False, height_px=340, layout={
        "showlegend": False, "xaxis": across,
        "yaxis": log_axis((sets.limit / sets.scale, *sizes), sets.axis)}),
        plot_bars(rates, texts=False, height_px=300, layout={
            "showlegend": False, "xaxis": across}))


def _stand_up(chart: BarChart) -> BarChart:
    """Return a chart with upright bars, without what is not cached, by the layers' numbers."""
    return replace(chart, upright=True, rows=tuple(row.split()[-1] for row in chart.rows),
                   bars=tuple(bar for bar in chart.bars if bar.length))


