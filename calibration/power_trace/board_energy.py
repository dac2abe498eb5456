"""From a recording of a board at work to energy samples: per layer, or per inference.

What the edges of the mark pin mean follows from their number: two bound a window of many runs;
layers + 1 for each run are the starts of its layers and its end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibration.errors import MeasurementError
from calibration.power_trace.alignment import (
    Alignment,
    align_by_correlation,
    align_by_marks,
    step_profile,
)
from calibration.power_trace.energy import (
    EnergyEstimate,
    integrate,
    layer_energies,
    summarise_power,
)
from calibration.power_trace.trace import PowerTrace
from calibration.sample import Sample


def energy_samples(trace: PowerTrace, layers: Sequence[int], times_us: Sequence[float], *,
                   runs: int | None = None, by_shape: bool = False) -> list[Sample]:
    """Return the energy of runs as samples, each with its standard deviation.

    Parameters
    ----------
    trace : PowerTrace
        Of the board at work.
    layers : sequence of int
        Indices of the layers, in order.
    times_us : sequence of float
        How long each takes, as measured by the board.
    runs : int, optional
        Inferences between two marks; needed where two is all there are.
    by_shape : bool
        Without marks: find one inference by the shape of its power.

    Returns
    -------
    list of Sample
        Counters `energy` and `energy_sd`, in uj; `power_mean`, `power_peak` and `power_sd` in mW.

    Raises
    ------
    MeasurementError
        When the marks are of no use.
    """
    marks = np.array(trace.marks_us)
    edges = np.concatenate(([0.0], np.cumsum(np.asarray(times_us, dtype=np.float64))))
    if by_shape:
        length = edges[-1]
        profile = step_profile((-0.1 * length, 0.0, length, 1.1 * length), (0.0, 1.0, 0.0))
        return _run_samples(trace, layers, edges, align_by_correlation(trace, profile), 0)
    if len(marks) == 2:
        return _window_samples(trace, float(marks[0]), float(marks[1]), runs)
    per_run = len(layers) + 1
    if len(marks) == 0 or len(marks) % per_run:
        raise MeasurementError(
            f"trace of {trace.meter.name}: {len(marks)} edges of the mark; accepted: 2 (a window), "
            f"or a multiple of {per_run} (the starts of {len(layers)} layers and the end)")
    found = []
    for run, chosen in enumerate(marks.reshape(-1, per_run)):
        # Each layer as the mark shows it; the board's times only steady what sampling blurs.
        one = PowerTrace(time_us=trace.time_us, power_mw=trace.power_mw, meter=trace.meter,
                         marks_us=tuple(chosen), mark_sd_us=trace.mark_sd_us)
        found += _run_samples(trace, layers, edges, align_by_marks(one, edges.tolist()), run)
    return found


def idle_power(trace: PowerTrace) -> float | None:
    """Return the mean power outside the marks, in mW: a board that waits; None without samples.

    Samples right beside a mark may hold a part of the work and are left out.
    """
    time_us = np.asarray(trace.time_us)
    period_us = float(np.median(np.diff(time_us)))
    outside = ((time_us < trace.marks_us[0] - period_us)
               | (time_us > trace.marks_us[-1] + 2 * period_us))
    return float(np.mean(np.asarray(trace.power_mw)[outside])) if outside.any() else None


def _run_samples(trace: PowerTrace, layers: Sequence[int], edges: np.ndarray,
                 alignment: Alignment, run: int) -> list[Sample]:
    estimates = layer_energies(trace, edges.tolist(), alignment)
    begin, end = alignment.to_meter(float(edges[0])), alignment.to_meter(float(edges[-1]))
    whole = integrate(trace, begin, end, shift_sd_us=alignment.shift_sd_us)
    pairs = [*zip(layers, estimates, strict=True), (None, whole)]
    found = [sample for layer, one in pairs for sample in estimate_samples(run, layer, one)]
    return found + _power_samples(trace, begin, end, run)


def _window_samples(trace: PowerTrace, begin: float, end: float,
                    runs: int | None) -> list[Sample]:
    if runs is None or runs < 1:
        raise MeasurementError(f"trace of {trace.meter.name}: two edges bound a window; say how "
                               "many inferences were made in it")
    whole = integrate(trace, begin, end, edge_sd_us=trace.mark_sd_us)
    one = EnergyEstimate(energy_uj=whole.energy_uj / runs, sd_uj=whole.sd_uj / runs,
                         low_uj=whole.low_uj / runs, high_uj=whole.high_uj / runs)
    return [*estimate_samples(0, None, one), *_power_samples(trace, begin, end, 0)]


def estimate_samples(run: int, layer: int | None, one: EnergyEstimate) -> list[Sample]:
    """Return an energy and its standard deviation as samples."""
    return [Sample(run=run, layer=layer, counter=name, unit="uj", value=value)
            for name, value in (("energy", one.energy_uj), ("energy_sd", one.sd_uj))]


def _power_samples(trace: PowerTrace, begin: float, end: float, run: int) -> list[Sample]:
    power = summarise_power(trace, begin, end)
    return [Sample(run=run, counter=name, unit="mw", value=value)
            for name, value in (("power_mean", power.mean_mw), ("power_peak", power.peak_mw),
                                ("power_sd", power.sd_mw))]
