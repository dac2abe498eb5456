"""Which library a measurement is of, told by how long it took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from calibration.measurement.measurement import Measurement
from hwmodels.errors import TwinError
from twin.deployment.deployment import deploy
from twin.network.graph import Graph
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.prediction import Prediction

NEAR = 2.0
"""A library explains a time this close, as a ratio either way (assumed); one that tells libraries
apart is off by as much again with all others."""

APART = 1.1
"""Releases of one library are told apart where the others are twice as far off, as logarithms, and
at least this ratio farther (assumed)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryTold:
    """What a measured time tells of its library.

    Parameters
    ----------
    runtime : str or None
        The only one that explains it; None where none does, or several libraries or releases do.
    ratios : tuple of (str, float)
        Measured over predicted time, by runtime.
    """

    runtime: str | None
    ratios: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        """Say how far each is."""
        return ", ".join(f"{ratio:.3g} times {name}" for name, ratio in self.ratios)


def tell_library(measurement: Measurement, graph: Graph, board: str,
                 candidates: Sequence[str]) -> LibraryTold | None:
    """Compare a measured inference with what libraries would take.

    Parameters
    ----------
    measurement : Measurement
        Of a whole inference, or of layers: compared with the same layers' time.
    graph : Graph
        The network.
    board : str
        Name or file.
    candidates : sequence of str
        Runtimes it may be of.

    Returns
    -------
    LibraryTold or None
        None where it has no times, or no candidate runs there.
    """
    measured_us = total_us(measurement)
    if measured_us is None:
        return None
    ratios = {}
    for name in candidates:
        try:
            deployment = deploy(graph, board, runtime=name,
                                clock_hz=dict(measurement.header.clocks_hz).get("cpu"))
            predicted = predict_calibrated(deployment,
                                           temperature=measurement.header.temperature or "warm")
        except TwinError:
            continue
        ratios[name] = measured_us / _time_us(predicted, measurement)
    if not ratios:
        return None
    ranked = sorted(ratios, key=lambda name: abs(math.log(ratios[name])))
    away = [abs(math.log(ratios[name])) for name in ranked]
    clear = away[0] <= math.log(NEAR) and all(
        _is_clear(away[0], one, name.partition("@")[0] == ranked[0].partition("@")[0])
        for name, one in zip(ranked[1:], away[1:], strict=True))
    return LibraryTold(runtime=ranked[0] if clear else None, ratios=tuple(
        (name, ratios[name]) for name in ranked))


def _is_clear(least: float, other: float, related: bool) -> bool:
    """Whether a rival is far enough off, as logarithms; releases of one library may be nearer."""
    return other >= (max(2 * least, least + math.log(APART)) if related
                     else least + math.log(NEAR))


def _time_us(predicted: Prediction, measurement: Measurement) -> float:
    """Return what the whole inference takes, or the layers where only these were measured."""
    measured = set(measurement.layers)
    if _median_us(measurement, None) is not None or len(measured) >= len(predicted.layers):
        return predicted.time_us
    return math.fsum(layer.time_us for layer in predicted.layers if layer.index in measured)


def total_us(measurement: Measurement) -> float | None:
    """Return the median time of an inference, or the sum of its layers' medians."""
    found: list[float | None] = [_median_us(measurement, None)]
    if found == [None]:
        found = [_median_us(measurement, layer) for layer in measurement.layers]
    known = [value for value in found if value is not None]
    return math.fsum(known) if known and len(known) == len(found) else None


def _median_us(measurement: Measurement, layer: int | None) -> float | None:
    clocks = dict(measurement.header.clocks_hz)
    if measurement.count("latency", layer):
        return measurement.percentile("latency", 50, layer)
    for counter, clock in (("cpu_cycles", "cpu"), ("timer_ticks", "timer")):
        if measurement.count(counter, layer) and clock in clocks:
            return measurement.percentile(counter, 50, layer) / clocks[clock] * 1e6
    return None
