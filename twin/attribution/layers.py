"""Layers of a prediction beside those of a measurement, counter by counter."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Sample
from twin.attribution.agreement import order_layers
from twin.prediction.prediction import LayerPrediction, Prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One counter of one layer, or of the whole inference.

    Parameters
    ----------
    predicted, measured : float or None
        Median where measured more than once; None is not known.
    """

    predicted: float | None
    measured: float | None

    @property
    def ratio(self) -> float | None:
        """Predicted over measured; None when either is not known or nothing was measured."""
        if self.predicted is None or not self.measured:
            return None
        return self.predicted / self.measured


def head_counter(name: str, unit: str) -> str:
    """Write a counter with its unit, once where they are one word."""
    return name if name == unit else f"{name}, {unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A layer, what lies between layers, or the whole inference; figures by counter."""

    label: str
    op: str
    figures: dict[str, Figure]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerComparison:
    """A prediction beside a measurement.

    Parameters
    ----------
    kind : str
        Of the measurement.
    counters : tuple of (str, str)
        Counter and unit, in the order shown.
    rows : tuple of Row
        Layers where they can be told apart, what lies between them, the whole inference.
    note : str
        Why layers are missing, "" when none are.
    """

    kind: str
    counters: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    note: str = ""

    @property
    def whole(self) -> Row:
        """The inference."""
        return self.rows[-1]


_Of = Callable[[Prediction, LayerPrediction], float | None]

_COUNTERS: dict[str, tuple[str, _Of]] = {
    "cpu_cycles": ("cycles", lambda whole, layer: layer.bill.cycles(
        whole.deployment.board.core.clock)),
    "latency": ("us", lambda whole, layer: layer.time_us),
    "instructions": ("instructions", lambda whole, layer: float(layer.instructions)),
    "energy": ("uJ", lambda whole, layer: layer.energy_uj),
}
"""Counters both sides can know: unit, and a predicted layer's value."""


def compare_layers(prediction: Prediction, measured: Measurement) -> LayerComparison:
    """Set a prediction beside a measurement.

    Parameters
    ----------
    prediction : Prediction
        Of the same network on the same board; see `twin.attribution.agreement`.
    measured : Measurement
        Of one temperature.

    Returns
    -------
    LayerComparison
        Rows of layers and "between layers" sum to the inference, where that was measured.
    """
    measured = _with_latency(measured)
    counters = tuple((name, unit) for name, (unit, _) in _COUNTERS.items()
                     if name in measured.counters)
    order = order_layers(prediction.deployment.graph, measured) if measured.layers else {}
    rows = []
    for place, layer in enumerate(prediction.layers):
        if order is None or place not in order:
            continue
        rows.append(Row(label=str(layer.index), op=layer.op, figures={
            name: Figure(predicted=_COUNTERS[name][1](prediction, layer),
                         measured=_median(measured, name, order[place])) for name, _ in counters}))
    whole = {name: Figure(predicted=_sum(prediction, name), measured=_whole(measured, name))
             for name, _ in counters}
    between = {name: _between(name, rows, whole[name]) for name, _ in counters}
    if any(figure.measured for figure in between.values()):
        rows.append(Row(label="", op="between layers", figures=between))
    rows.append(Row(label="total", op="", figures=whole))
    note = "" if order is not None else (
        f"its {len(measured.layers)} layers are not the {len(prediction.layers)} of the network: "
        "only the inference is compared")
    return LayerComparison(kind=name_side(measured), counters=counters, rows=tuple(rows),
                           note=note)


def name_side(measured: Measurement) -> str:
    """Head the column of a measurement: its kind, set apart from our own prediction."""
    kind = measured.header.kind
    return "other prediction" if kind == "predicted" else kind


def _with_latency(measured: Measurement) -> Measurement:
    """Add the time of a timer's ticks where a board counted nothing else of time."""
    hertz = dict(measured.header.clocks_hz).get("timer")
    known = {"cpu_cycles", "latency"} & set(measured.counters)
    if known or not hertz or measured.header.kind != "measured":
        return measured
    times = [Sample(run=one.run, layer=one.layer, counter="latency", unit="us",
                    value=one.value / hertz * 1e6)
             for one in measured.samples if one.counter == "timer_ticks"]
    return Measurement(header=measured.header, samples=(*measured.samples, *times))


def _median(measured: Measurement, name: str, layer: int | None) -> float | None:
    return measured.percentile(name, 50, layer) if measured.count(name, layer) else None


def _whole(measured: Measurement, name: str) -> float | None:
    """The inference as measured, else the sum of its layers."""
    found = _median(measured, name, None)
    if found is not None:
        return found
    parts = [_median(measured, name, layer) for layer in measured.layers]
    known = [part for part in parts if part is not None]
    return math.fsum(known) if known and len(known) == len(parts) else None


def _sum(prediction: Prediction, name: str) -> float | None:
    parts = [_COUNTERS[name][1](prediction, layer) for layer in prediction.layers]
    known = [part for part in parts if part is not None]
    return math.fsum(known) if len(known) == len(parts) else None


def _between(name: str, rows: list[Row], whole: Figure) -> Figure:
    """What is left of the whole beside the layers shown; none where no layer is."""
    parts = [row.figures[name].measured for row in rows]
    known = [part for part in parts if part is not None]
    left = whole.measured - math.fsum(known) if whole.measured is not None and known else None
    return Figure(predicted=None, measured=left)
