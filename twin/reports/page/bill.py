"""The bill as plots: from cause to cause, from operator to layer to cause, and along the layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from hwmodels.counts import Bill
from hwmodels.quantities import format_energy, format_time
from twin.prediction.ledger import cause_energies_uj, cause_times_us, percentages
from twin.prediction.prediction import LayerPrediction, Prediction
from twin.reports.figures.palette import CAUSE_STYLES, lightness
from twin.reports.page.page import plain
from twin.reports.page.parts import Plot
from twin.reports.page.styles import INK, PAGE, cause_marker, hatch_each

DARK = 0.4
"""Lightness below which a colour is written on in white."""

MOST_SECTORS = 12
"""Layers of one operator with a sector each; the rest share one."""

ROW_PX, HEAD_PX = 27, 60

Amounts = Mapping[str, float]
Reader = Callable[[Bill], Amounts]
"""Amount by cause of a bill."""


def list_bill_plots(prediction: Prediction) -> tuple[Plot, ...]:
    """Return time and energy by cause and by place, then the layers; energy where it is known."""
    def times(bill: Bill) -> Amounts:
        return cause_times_us(prediction, bill)

    plots = [draw_waterfall("time", times(prediction.bill), format_time),
             draw_sunburst("time", prediction, times, format_time)]
    if prediction.energy_uj is not None:
        plots += [draw_waterfall("energy", cause_energies_uj(prediction.bill), format_energy),
                  draw_sunburst("energy", prediction, cause_energies_uj, format_energy)]
    return (*plots, draw_layers(prediction, times))


def draw_waterfall(what: str, amounts: Amounts, write: Callable[[float], str]) -> Plot:
    """Draw the causes, largest first, each from where the last ended, then the total."""
    causes = sorted((cause for cause in amounts if amounts[cause] > 0), key=lambda c: -amounts[c])
    whole = math.fsum(amounts[cause] for cause in causes)
    shares = percentages([amounts[cause] for cause in causes], decimals=1)
    starts = [math.fsum(amounts[one] for one in causes[:place]) for place in range(len(causes))]
    traces: list[Mapping[str, Any]] = []
    for cause, start, share in zip(causes, starts, shares, strict=True):
        traces.append({
            "type": "bar", "orientation": "h", "y": [cause], "x": [amounts[cause]],
            "base": [start], "marker": cause_marker(cause), "hoverinfo": "text",
            "hovertext": [f"{cause}<br>{write(amounts[cause])}, {share:.1f} %"]})
    ends = [start + amounts[cause] for cause, start in zip(causes, starts, strict=True)]
    inside = [end > 0.7 * whole for end in ends]
    traces.append({
        "type": "scatter", "mode": "text", "y": causes, "cliponaxis": False, "hoverinfo": "skip",
        "x": [start if one else end for one, start, end in zip(inside, starts, ends, strict=True)],
        "text": [f"{share:.1f} % " if one else f" {share:.1f} %"
                 for one, share in zip(inside, shares, strict=True)],
        "textposition": ["middle left" if one else "middle right" for one in inside]})
    traces.append({"type": "bar", "orientation": "h", "y": ["total"], "x": [whole],
                   "marker": {"color": INK}, "text": [write(whole)], "textposition": "inside",
                   "insidetextanchor": "middle", "textfont": {"color": PAGE},
                   "hoverinfo": "skip"})
    largest = f"{causes[0]} is {shares[0]:.1f} %" if causes else "nothing is on it"
    return Plot(
        name=f"waterfall-{what}", title=f"Bill for {what}, cause by cause",
        told=f"{write(whole)} in {len(causes)} causes; {largest}. Each bar begins where the last "
             "one ended.",
        traces=tuple(traces), half=True, height_px=max(400, HEAD_PX + ROW_PX * (len(causes) + 1)),
        layout={"barmode": "overlay", "showlegend": False, "xaxis": {
                    "range": [0, 1.02 * whole], "tickformat": "~s", "ticksuffix": "",
                    "title": {"text": f"{what}, {_unit(what, whole)}"},
                    **_ticks(what, whole)},
                "yaxis": {"autorange": "reversed", "categoryorder": "array",
                          "categoryarray": [*causes, "total"]}})


def draw_sunburst(what: str, prediction: Prediction, read: Reader,
                  write: Callable[[float], str]) -> Plot:
    """Draw operators, their layers and the causes of those as rings around the total."""
    sectors = _Sectors(write)
    by_op: dict[str, list[tuple[LayerPrediction, Amounts]]] = {}
    for layer in prediction.layers:
        amounts = read(layer.bill)
        if math.fsum(amounts.values()) > 0:
            by_op.setdefault(layer.op, []).append((layer, amounts))
    whole = math.fsum(math.fsum(amounts.values()) for layers in by_op.values()
                      for _, amounts in layers)
    sectors.add("all", "", f"{prediction.deployment.graph.name}", whole, "#8a929b", "")
    for op, layers in by_op.items():
        layers.sort(key=lambda one: -math.fsum(one[1].values()))
        parts = [(f"layer {layer.index}", amounts)
                 for layer, amounts in layers[:MOST_SECTORS]]
        if len(layers) > MOST_SECTORS:
            parts.append((f"{len(layers) - MOST_SECTORS} more", _add(
                [amounts for _, amounts in layers[MOST_SECTORS:]])))
        sectors.add(op, "all", op, math.fsum(math.fsum(part.values()) for _, part in parts),
                    "#aab2bb", "")
        for place, (label, amounts) in enumerate(parts):
            name = f"{op}/{place}"
            sectors.add(name, op, label, math.fsum(amounts.values()), "#ccd2d8", "")
            for cause, amount in amounts.items():
                if amount > 0.002 * whole:
                    sectors.add(f"{name}/{cause}", name, cause, amount, *CAUSE_STYLES[cause])
    dearest = max(by_op, key=lambda op: math.fsum(math.fsum(part.values())
                                                  for _, part in by_op[op]), default="nothing")
    return Plot(
        name=f"sunburst-{what}", title=f"Bill for {what}, by operator, layer and cause",
        told=f"Rings from the middle: operators, their layers, the causes of each; {dearest} takes "
             "most. A click goes in, the middle goes back.", traces=(sectors.trace(),),
        half=True, height_px=400, layout={
                 "margin": {"l": 4, "r": 4, "t": 4, "b": 4},
                 "uniformtext": {"minsize": 9, "mode": "hide"}})


class _Sectors:
    """Sectors of a sunburst as they come."""

    def __init__(self, write: Callable[[float], str]) -> None:
        self._write = write
        self._rows: list[tuple[str, str, str, float, str, str]] = []

    def add(self, name: str, parent: str, label: str, amount: float, colour: str,
            hatch: str) -> None:
        """Add one below its parent."""
        self._rows.append((name, parent, plain(label), amount, colour, hatch[:1]))

    def trace(self) -> Mapping[str, Any]:
        """Return all as plotly takes them."""
        names, parents, labels, amounts, colours, shapes = (
            list(column) for column in zip(*self._rows, strict=True))
        whole = self._rows[0][3] or 1.0
        return {"type": "sunburst", "ids": names, "parents": parents, "labels": labels,
                "values": amounts, "branchvalues": "total", "maxdepth": 4,
                "sort": False, "leaf": {"opacity": 1},
                "hoverinfo": "text", "insidetextorientation": "radial",
                # Where lines cross a sector no text is read: the pointer tells its cause.
                "insidetextfont": {"color": [
                    "rgba(0,0,0,0)" if shape else "#fff" if lightness(colour) < DARK else "#14171b"
                    for colour, shape in zip(colours, shapes, strict=True)]},
                "hovertext": [f"{label}<br>{self._write(amount)}, {100 * amount / whole:.1f} %"
                              for _, _, label, amount, _, _ in self._rows],
                "marker": {"colors": colours, "line": {"width": 0.7, "color": PAGE},
                           "pattern": hatch_each(shapes, colours)}}


def draw_layers(prediction: Prediction, read: Reader) -> Plot:
    """Draw a bar for each layer in the order they run, stacked by cause."""
    layers = [layer for layer in prediction.layers if layer.time_us]
    amounts = [read(layer.bill) for layer in layers]
    traces: list[Mapping[str, Any]] = []
    for cause in prediction.bill.causes():
        heights = [part.get(cause, 0.0) / 1e3 for part in amounts]
        if any(heights):
            traces.append({
                "type": "bar", "name": cause, "marker": cause_marker(cause) | {
                    "line": {"width": 0}}, "x": [layer.index for layer in layers], "y": heights,
                "hoverinfo": "text", "hovertext": [
                    f"{layer.index} {plain(layer.name or layer.op)} ({layer.op})<br>{cause} "
                    f"{format_time(1e3 * height)} of {format_time(layer.time_us)}"
                    for layer, height in zip(layers, heights, strict=True)]})
    dearest = max(layers, key=lambda layer: layer.time_us, default=None)
    told = "" if dearest is None else (
        f"Layer {dearest.index} ({dearest.label}) takes most: {format_time(dearest.time_us)}, "
        f"{100 * dearest.time_us / prediction.time_us:.1f} % of the inference.")
    return Plot(
        name="layers-plot", title="Time of each layer, by cause", told=told, traces=tuple(traces),
        height_px=380, layout={
            "barmode": "stack", "legend": {"traceorder": "normal"},
            "bargap": 0.15 if len(layers) < 80 else 0,
            "xaxis": {"title": {"text": "layer, in the order they run"}},
            "yaxis": {"title": {"text": "time, ms"}, "rangemode": "tozero"}})


def _add(parts: list[Amounts]) -> Amounts:
    sums: dict[str, float] = {}
    for part in parts:
        for cause, amount in part.items():
            sums[cause] = sums.get(cause, 0.0) + amount
    return sums


def _unit(what: str, whole: float) -> str:
    """Return the unit of an axis whose figures are in microseconds or microjoules."""
    return _scale(what, whole)[1]


def _scale(what: str, whole: float) -> tuple[float, str]:
    base = "s" if what == "time" else "J"
    return next(((factor, prefix + base) for factor, prefix in (
        (1e6, ""), (1e3, "m"), (1.0, "u")) if whole >= factor), (1e-3, "n" + base))


def _ticks(what: str, whole: float) -> dict[str, Any]:
    """Return five round ticks, labelled in the axis' unit."""
    factor = _scale(what, whole)[0]
    rough = whole / factor / 5 or 1.0
    power = 10.0**math.floor(math.log10(rough))
    step = next(nice * power for nice in (1, 2, 2.5, 5, 10) if nice * power >= rough)
    places = [step * place for place in range(int(whole / factor / step) + 1)]
    return {"tickvals": [place * factor for place in places],
            "ticktext": [f"{place:g}" for place in places]}
