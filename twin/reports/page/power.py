"""Power over time: what a meter saw of one inference, where its layers lie, what was predicted."""

from __future__ import annotations

import numpy as np

from calibration.measurement.measurement import Measurement
from calibration.power_trace.excerpt import EDGES, Excerpt
from hwmodels.files import JsonObject
from hwmodels.frozen import frozen
from hwmodels.quantities import format_energy, format_time, significant
from twin.pricing.ledger import whole_energy
from twin.pricing.prediction import LayerPrediction, Prediction
from twin.reports.columns import Column, number
from twin.reports.page.page import plain
from twin.reports.page.parts import Plot, Section, Table, make_section, make_table
from twin.reports.page.styles import INK
from twin.reports.palette import BLUE, VERMILION

MOST_LABELS = 40
"""Layers whose numbers stand above the trace: those that take most time."""


@frozen
class Recording:
    """What a meter saw: one inference over time, and the energies of all that were recorded."""

    excerpt: Excerpt
    energies: Measurement


def describe_power(recording: Recording, prediction: Prediction) -> Section:
    """Return the trace with the layers' marks, and the energy of each beside the prediction."""
    return make_section(
        "power", "Power over time", draw_power(recording.excerpt, prediction),
        list_energies(recording.energies, prediction))


def draw_power(excerpt: Excerpt, prediction: Prediction) -> Plot:
    """Draw the power of an inference, a line where each layer begins, and the predicted steps."""
    layers = {layer.index: layer for layer in prediction.layers}
    edges_ms = [edge / 1e3 for edge in excerpt.edges_us]
    spans = list(zip(excerpt.layers, edges_ms, edges_ms[1:], strict=False))
    named = {index for index, _, _ in sorted(
        spans, key=lambda span: span[1] - span[2])[:MOST_LABELS]}
    times = np.array(excerpt.time_us)
    inside = (times >= 0) & (times <= excerpt.edges_us[-1])
    power = np.array(excerpt.power_mw)
    mean, peak = float(power[inside].mean()), float(power[inside].max())
    at = int(np.argmax(np.where(inside, power, -np.inf)))
    place = min(int(np.searchsorted(excerpt.edges_us, times[at], side="right")) - 1,
                len(excerpt.layers) - 1)
    traces: list[JsonObject] = [{
        "type": "scatter", "mode": "lines", "name": f"measured, {excerpt.meter}",
        "x": [one / 1e3 for one in excerpt.time_us], "y": list(excerpt.power_mw),
        "line": {"color": VERMILION, "width": 1}, "hoverinfo": "x+y"}]
    steps = [(begin, end, _mean_power_mw(prediction, layers.get(index)))
             for index, begin, end in spans]
    if any(level is not None for _, _, level in steps):
        traces.append({
            "type": "scatter", "mode": "lines", "name": "predicted, mean of each layer",
            "x": [one for begin, end, _ in steps for one in (begin, end)],
            "y": [level for _, _, level in steps for _ in range(2)],
            "line": {"color": BLUE, "width": 2, "dash": "dash"}, "hoverinfo": "skip"})
    traces.append({  # Names of layers, where a pointer finds them.
        "type": "scatter", "mode": "markers", "showlegend": False,
        "marker": {"size": 12, "opacity": 0.01, "color": INK},
        "x": [(begin + end) / 2 for _, begin, end in spans], "y": [mean] * len(spans),
        "hoverinfo": "text", "hovertext": [_describe(index, layers.get(index), end - begin)
                                           for index, begin, end in spans]})
    return Plot(
        name="power-trace", title="Power of one inference, layer by layer", traces=tuple(traces),
        caption=f"Mean {significant(mean)} mW, peak {significant(peak)} mW in layer "
             f"{excerpt.layers[max(place, 0)]}. Lines are where layers begin, by "
             f"{EDGES[excerpt.edges_from]}; dashes are predicted.", height_px=420, layout={
                 "xaxis": {"title": {"text": "time, ms"}, "showgrid": False},
                 "yaxis": {"title": {"text": "power, mW"}, "rangemode": "tozero"},
                 "legend": {"y": 1.08}, "shapes": [
                     {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": edge, "x1": edge,
                      "line": {"color": INK, "width": 0.6, "dash": "dot"}} for edge in edges_ms],
                 "annotations": [
                     {"x": (begin + end) / 2, "yref": "paper", "y": 1, "yanchor": "bottom",
                      "text": str(index), "showarrow": False, "font": {"size": 9}}
                     for index, begin, end in spans
                     if index in named and end - begin > 0.012 * edges_ms[-1]]})


def _mean_power_mw(prediction: Prediction, layer: LayerPrediction | None) -> float | None:
    """Return what a layer is predicted to draw, with the idle board where that counts apart."""
    if layer is None or not layer.time_us:
        return None
    energy_uj = with_idle(prediction, layer.energy_uj, layer.time_us)
    return None if energy_uj is None else energy_uj / layer.time_us * 1e3


def with_idle(prediction: Prediction, energy_uj: float | None, time_us: float) -> float | None:
    """Return an energy with what the idle board draws meanwhile, as a meter sees it."""
    idle = prediction.board.idle()
    return energy_uj if energy_uj is None or idle is None else whole_energy(
        idle, energy_uj, time_us)[0]


def _describe(index: int, layer: LayerPrediction | None, measured_ms: float) -> str:
    name = "" if layer is None else f" {plain(layer.name or layer.op)} ({layer.op})"
    caption = f"layer {index}{name}<br>measured {format_time(1e3 * measured_ms)}"
    return caption if layer is None else f"{caption}, predicted {format_time(layer.time_us)}"


def list_energies(energies: Measurement, prediction: Prediction) -> Table:
    """Return the measured energy of each layer with its interval, beside the predicted."""
    layers = {layer.index: layer for layer in prediction.layers}

    def predict(index: int) -> float | None:
        layer = layers.get(index)
        return None if layer is None else with_idle(prediction, layer.energy_uj, layer.time_us)

    def measure(index: int) -> float:
        return energies.percentile("energy", 50, index)

    with_sleep = with_idle(prediction, prediction.energy_uj, prediction.time_us)
    whole = energies.percentile("energy", 50) if energies.count("energy") else None
    return make_table(
        "power-table", "Energy of each layer, uJ" + (
            "" if whole is None else f"; one inference took {format_energy(whole)}"), (
            number("layer", int, "{}"),
            Column("operator", lambda index: layers[index].op if index in layers else ""),
            number("uJ", predict, "{:,.2f}", kind="predicted"),
            number("uJ", measure, "{:,.2f}", kind="measured"),
            number("± 95 %", lambda index: 1.96 * energies.percentile("energy_sd", 50, index),
                   "{:,.2f}"),
            number("predicted / measured", lambda index: _divide(predict(index), measure(index)),
                   "{:.2f}")),
        [index for index in energies.layers if energies.count("energy", index)],
        total=() if whole is None else (
            "", "inference", "" if with_sleep is None else f"{with_sleep:,.2f}", f"{whole:,.2f}",
            "", "" if (ratio := _divide(with_sleep, whole)) is None else f"{ratio:.2f}"))


def _divide(value: float | None, by: float) -> float | None:
    return None if value is None or not by else value / by
