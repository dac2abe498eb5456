"""Memory as plots: the arena over time, working sets against the cache, miss rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hwmodels.quantities import format_share, format_size
from twin.errors import NotApplicableError, UsageError
from twin.prediction.locality import Locality, measure_locality
from twin.prediction.prediction import Prediction
from twin.reports.figures.palette import BLUE, GREEN, ORANGE, SKY
from twin.reports.page.axes import log_axis
from twin.reports.page.page import plain
from twin.reports.page.parts import Plot
from twin.reports.page.styles import INK, PAGE, hatch_each

WORRYING = 0.10
"""Miss rate from which a layer is called bound by its cache."""


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
    traces: list[Mapping[str, Any]] = [{
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
    told = f"The arena takes {format_size(placement.arena_bytes)}"
    if live:
        told += (f"; most is alive in layer {peak}: {format_size(placement.live_bytes[peak])}. "
                 "Space between buffers and the line is what laying them out costs.")
    return Plot(name="arena", title="The arena, layer by layer", told=told, traces=tuple(traces),
                height_px=380, layout={
                    "barmode": "overlay",
                    "xaxis": {"title": {"text": "layer, in the order they run"}, "showgrid": False},
                    "yaxis": {"title": {"text": "address in the arena, KiB"},
                              "rangemode": "tozero"}})


def find_locality(prediction: Prediction) -> Locality | None:
    """Return how accesses fare in the caches; None where there are none to look up."""
    target = prediction.deployment.target
    if target.offloads or target.executes:  # A program's accesses are of no loops.
        return None
    try:
        return measure_locality(prediction.deployment, cold=prediction.temperature == "cold")
    except (UsageError, NotApplicableError):
        return None


def list_cache_plots(locality: Locality) -> tuple[Plot, ...]:
    """Return working sets and miss rates, where accesses are cached."""
    if not locality.caches or not locality.accesses:
        return ()
    return draw_working_sets(locality), draw_miss_rates(locality)


def draw_working_sets(locality: Locality) -> Plot:
    """Draw the bytes of the lines each layer touches beside what the caches hold."""
    capacity = locality.capacity_bytes
    layers = [layer for layer in locality.layers if layer.working_set_bytes]
    beyond = sum(layer.working_set_bytes > capacity for layer in layers)
    caches = ", ".join(f"{cache.name} {format_size(cache.size_bytes)}" for cache in locality.caches)
    over = [layer.working_set_bytes > capacity for layer in layers]
    return Plot(
        name="working-set", title="Working set of each layer against the cache",
        told=f"{beyond} of {len(layers)} layers touch more than the {format_size(capacity)} "
             f"cached ({caches}); those are hatched.",
        height_px=340, traces=({
            "type": "bar", "x": [layer.index for layer in layers],
            "y": [layer.working_set_bytes / 1024 for layer in layers], "name": "working set",
            "marker": _mark(over, BLUE),
            "hoverinfo": "text", "hovertext": [
                f"{layer.index} {plain(layer.name or layer.op)} ({layer.op})<br>"
                f"{format_size(layer.working_set_bytes)} touched" for layer in layers]},),
        layout={"showlegend": False, "xaxis": {"title": {"text": "layer, in the order they run"}},
                "yaxis": log_axis((capacity / 1024, *(layer.working_set_bytes / 1024
                                                          for layer in layers)),
                                  "lines touched, KiB"),
                "shapes": [_rule(capacity / 1024)]})


def draw_miss_rates(locality: Locality) -> Plot:
    """Draw misses per line looked up, layer by layer."""
    layers = [(layer, layer.miss_rate) for layer in locality.layers if layer.miss_rate is not None]
    above = [rate > WORRYING for _, rate in layers]
    return Plot(
        name="miss-rates", title="Miss rate of each layer",
        told=f"{format_share(locality.misses, locality.accesses)} of lines looked up are missed; "
             f"{sum(above)} of {len(layers)} layers miss more than 10 % and are hatched.",
        height_px=300, traces=({
            "type": "bar", "x": [layer.index for layer, _ in layers],
            "y": [100 * rate for _, rate in layers],
            "marker": _mark(above, GREEN),
            "hoverinfo": "text", "hovertext": [
                f"{layer.index} {plain(layer.name or layer.op)} ({layer.op})<br>"
                f"{layer.misses:,} of {layer.accesses:,}: "
                f"{format_share(layer.misses, layer.accesses)}" for layer, _ in layers]},),
        layout={"showlegend": False, "xaxis": {"title": {"text": "layer, in the order they run"}},
                "yaxis": {"title": {"text": "misses per line looked up, %"},
                          "rangemode": "tozero"}, "shapes": [_rule(100 * WORRYING)]})


def _mark(beyond: Sequence[bool], colour: str) -> Mapping[str, Any]:
    """Set those that are beyond a limit apart, by colour and hatch."""
    colours = [ORANGE if one else colour for one in beyond]
    return {"color": colours, "pattern": hatch_each(["/" if one else "" for one in beyond],
                                                    colours)}


def _rule(height: float) -> Mapping[str, Any]:
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": height, "y1": height,
            "line": {"color": INK, "width": 1.5, "dash": "dash"}}
