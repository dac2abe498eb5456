"""The bill as plots: from cause to cause, from operator to layer to cause, and along the layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from hwmodels.counts import Bill
from hwmodels.files import JsonObject
from hwmodels.quantities import format_energy, format_time, list_by_key, sum_by_key
from twin.pricing.ledger import cause_energies_uj, cause_times_us
from twin.pricing.prediction import Prediction
from twin.reports.bars import BarChart, Writer, chart_bill, stack_causes
from twin.reports.page.bars import HEAD_PX, ROW_PX, plot_bars
from twin.reports.page.page import plain
from twin.reports.page.parts import Plot
from twin.reports.page.styles import PAGE, hatch_each
from twin.reports.palette import CAUSE_STYLES, lightness

DARK = 0.4
"""Lightness below which a colour is written on in white."""

MOST_SECTORS = 12
"""Layers of one operator with a sector each; the rest share one."""

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


def draw_waterfall(what: str, amounts: Amounts, write: Writer) -> Plot:
    """Draw the causes, largest first, each from where the last ended, then the total."""
    chart = chart_bill(what, amounts, write)
    axis = {"range": [0, 1.02 * chart.longest], "title": {"text": chart.axis},
            **_ticks(chart.longest, chart.scale)}
    return plot_bars(replace(chart, scale=1.0), layout={"xaxis": axis}, half=True,
                     height_px=max(400, HEAD_PX + ROW_PX * len(chart.rows)))


def draw_sunburst(what: str, prediction: Prediction, read: Reader, write: Writer) -> Plot:
    """Draw operators, their layers and the causes of those as rings around the total."""
    sectors = _Sectors(write)
    by_op = list_by_key((layer.op, (layer, amounts)) for layer in prediction.layers
                        if math.fsum((amounts := read(layer.bill)).values()) > 0)
    whole = math.fsum(math.fsum(amounts.values()) for layers in by_op.values()
                      for _, amounts in layers)
    sectors.add("all", "", f"{prediction.graph.name}", whole, "#8a929b", "")
    for op, layers in by_op.items():
        layers.sort(key=lambda one: -math.fsum(one[1].values()))
        parts = [(f"layer {layer.index}", amounts) for layer, amounts in layers[:MOST_SECTORS]]
        if len(layers) > MOST_SECTORS:
            parts.append((f"{len(layers) - MOST_SECTORS} more", sum_by_key(
                pair for _, amounts in layers[MOST_SECTORS:] for pair in amounts.items())))
        sectors.add(op, "all", op, math.fsum(math.fsum(part.values()) for _, part in parts),
                    "#aab2bb", "")
        for place, (label, amounts) in enumerate(parts):
            name = f"{op}/{place}"
            sectors.add(name, op, label, math.fsum(amounts.values()), "#ccd2d8", "")
            for cause, amount in amounts.items():
                if amount > 0.002 * whole:
                    sectors.add(f"{name}/{cause}", name, cause, amount, *CAUSE_STYLES[cause])
    largest = max(by_op, key=lambda op: math.fsum(math.fsum(part.values())
                                                  for _, part in by_op[op]), default="nothing")
    return Plot(
        name=f"sunburst-{what}", title=f"Bill for {what}, by operator, layer and cause",
        caption=f"Rings from the middle: operators, their layers, the causes of each; {largest} "
             "takes most. A click goes in, the middle goes back.", traces=(sectors.trace(),),
        half=True, height_px=400, layout={
                 "margin": {"l": 4, "r": 4, "t": 4, "b": 4},
                 "uniformtext": {"minsize": 9, "mode": "hide"}})


class _Sectors:
    """Sectors of a sunburst as they come."""

    def __init__(self, write: Writer) -> None:
        self._write = write
        self._rows: list[tuple[str, str, str, float, str, str]] = []

    def add(self, name: str, parent: str, label: str, amount: float, colour: str,
            hatch: str) -> None:
        """Add one below its parent."""
        self._rows.append((name, parent, plain(label), amount, colour, hatch[:1]))

    def trace(self) -> JsonObject:
        """Return all as plotly takes them."""
        names, parents, labels, amounts, colours, shapes = (
            list(column) for column in zip(*self._rows, strict=True))
        whole = self._rows[0][3] or 1.0
        return {"type": "sunburst", "ids": names, "parents": parents, "labels": labels,
                "values": amounts, "branchvalues": "total", "maxdepth": 4,
                "sort": False, "leaf": {"opacity": 1},
                "hoverinfo": "text", "insidetextorientation": "radial",
                # Where lines cross a sector no text is read: hovering shows its cause.
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
    largest = max(layers, key=lambda layer: layer.time_us, default=None)
    caption = "" if largest is None else (
        f"Layer {largest.index} ({largest.label}) takes most: {format_time(largest.time_us)}, "
        f"{100 * largest.time_us / prediction.time_us:.1f} % of the inference.")
    return plot_bars(BarChart(
        rows=tuple(str(layer.index) for layer in layers), upright=True, stacked=True, scale=1e3,
        axis="time, ms", name="layers-plot", title="Time of each layer, by cause", caption=caption,
        bars=stack_causes([read(layer.bill) for layer in layers], prediction.bill.causes(),
                          lambda row, cause, amount: (
            f"{layers[row].index} {layers[row].name or layers[row].op} ({layers[row].op})<br>"
            f"{cause} {format_time(amount)} of {format_time(layers[row].time_us)}"))),
        height_px=380, layout={
            "bargap": 0.15 if len(layers) < 80 else 0,
            "xaxis": {"title": {"text": "layer, in the order they run"}}})


def _ticks(whole: float, factor: float) -> JsonObject:
    """Return five round ticks, labelled in the axis' unit."""
    rough = whole / factor / 5 or 1.0
    power = 10.0**math.floor(math.log10(rough))
    step = next(nice * power for nice in (1, 2, 2.5, 5, 10) if nice * power >= rough)
    places = [step * place for place in range(int(whole / factor / step) + 1)]
    return {"tickvals": [place * factor for place in places],
            "ticktext": [f"{place:g}" for place in places]}
