"""From a recording of a board at work to energy samples: per layer, or per inference.

What the edges of the mark pin mean follows from their number: two bound a window of many runs;
layers + 1 for each run are the starts of its layers and its end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibration.errors import MeasurementError
from calibration.measurement.sample import Sample
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

WINDOW_LIMITS = (0.9, 1.15)
"""How long a window may be beside its inferences as measured: copying the input and the checksum of
the output come between them, and the clock may be an RC oscillator."""
LEAST_CORRELATION = 0.5
"""Of an inference found by its shape: noise comes to sqrt(2 ln N / n) with a shape of n samples at
N places, 0.44 for 96 at 10,000."""
PLAUSIBLE_PJ = (2.0, 50_000.0)
"""Energy of a core's cycle, assumed: current microcontrollers take 10 to 2,000 pJ with everything
on; a unit wrong by a thousand is outside."""


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
        When the marks are of no use, a window is not as long as its inferences take, or the mean
        power is not above 0.
    """
    marks = np.array(trace.marks_us)
    edges = np.concatenate(([0.0], np.cumsum(np.asarray(times_us, dtype=np.float64))))
    if by_shape:
        length = edges[-1]
        profile = step_profile((-0.1 * length, 0.0, length, 1.1 * length), (0.0, 1.0, 0.0))
        alignment = align_by_correlation(trace, profile)
        if alignment.quality < LEAST_CORRELATION:
            raise MeasurementError(f"trace of {trace.meter.name}: no inference of "
                                   f"{length * 1e-3:.5g} ms is seen in it (correlation "
                                   f"{alignment.quality:.2f}); is the time column in its unit?")
        return _run_samples(trace, layers, edges, alignment, 0)
    if len(marks) == 2:
        _check_length(trace, float(marks[1] - marks[0]), float(edges[-1]), runs)
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


def judge_power(mean_mw: float, cpu_hz: float) -> str | None:
    """Return what is implausible about a board's mean power at a clock; None: nothing."""
    energy_pj = mean_mw / cpu_hz * 1e9
    if PLAUSIBLE_PJ[0] <= energy_pj <= PLAUSIBLE_PJ[1]:
        return None
    least, most = (limit * cpu_hz * 1e-9 for limit in PLAUSIBLE_PJ)
    return (f"{mean_mw:.3g} mW at {cpu_hz / 1e6:g} MHz is {energy_pj:.3g} pJ per cycle of the core;"
            f" expected: {least:.3g} to {most:.3g} mW. Is the unit of the current right?")


def idle_power(trace: PowerTrace) -> float | None:
    """Return the mean power outside the marks, in mW: a board that waits; None without samples.

    Samples right beside a mark may hold a part of the work and are left out.
    """
    time_us = np.asarray(trace.time_us)
    period_us = float(np.median(np.diff(time_us)))
    outside = ((time_us < trace.marks_us[0] - period_us)
               | (time_us > trace.marks_us[-1] + 2 * period_us))
    return float(np.mean(np.asarray(trace.power_mw)[outside])) if outside.any() else None


def _check_length(trace: PowerTrace, span_us: float, inference_us: float,
                  runs: int | None) -> None:
    """Refuse a window that does not hold so many inferences; without times nothing is known."""
    if runs is None or inference_us <= 0:
        return
    low, high = (limit * runs * inference_us for limit in WINDOW_LIMITS)
    if not low - trace.period_us <= span_us <= high + trace.period_us:
        raise MeasurementError(
            f"trace of {trace.meter.name}: the window lasts {span_us * 1e-3:.5g} ms; {runs} "
            f"inferences of {inference_us * 1e-3:.5g} ms as measured take "
            f"{runs * inference_us * 1e-3:.5g} ms. Is the number of runs right, and the unit of "
            "the time column?")


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
    if power.mean_mw <= 0:
        raise MeasurementError(f"trace of {trace.meter.name}: mean power of the board at work is "
                               f"{power.mean_mw:.4g} mW; accepted: above 0. Are the probes "
                               "swapped?")
    return [Sample(run=run, counter=name, unit="mw", value=value)
            for name, value in (("power_mean", power.mean_mw), ("power_peak", power.peak_mw),
                                ("power_sd", power.sd_mw))]
