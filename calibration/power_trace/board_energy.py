"""From a recording of a board at work to energy samples: per layer, or per inference.

What the edges of the mark pin mean follows from their number: two bound a window of many runs, and
each further two another one where the number of inferences is given; layers + 1 for each run are
the starts of its layers and its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibration.errors import MeasurementError
from calibration.measurement.sample import Sample
from calibration.power_trace.alignment import Alignment, align_by_marks
from calibration.power_trace.energy import (
    EnergyEstimate,
    integrate,
    layer_energies,
    summarise_power,
)
from calibration.power_trace.shape import place_by_shape
from calibration.power_trace.trace import PowerTrace
from hwmodels.quantities import Ends

WINDOW_SLACK = 0.03
"""How far a window may be from its inferences as measured, relative: copying the input and the
checksum of the output come between them, and the clock may be an RC oscillator."""
EDGE_PART, LEAST_SAMPLES = 1 / 20, 3
"""Which part of a window is looked at for a late mark, and the fewest samples there."""
IDLE_PERCENTILE, NEAR_IDLE, LEAST_STEP = 10, 0.1, 2.0
"""Assumed of a board that waits: of all samples outside of windows these are it, whatever else it
did; a piece is idle that is nearer to it than a tenth of the step to the power of work; a smaller
step than to twice of it shows nothing."""
MOST_NAMED = 8
"""Columns a refusal lists."""
PLAUSIBLE_PJ = (2.0, 50_000.0)
"""Energy of a core's cycle, assumed: current microcontrollers take 10 to 2,000 pJ with everything
on; a unit wrong by a thousand is outside."""


def energy_samples(trace: PowerTrace, layers: Sequence[int], times_us: Sequence[float], *,
                   runs: int | None = None, by_shape: bool = False) -> list[Sample]:
    """Return the energy of runs as samples, each with its standard deviation.

    Parameters
    ----------
    trace
        Of the board at work.
    layers
        Indices of the layers, in order.
    times_us
        How long each takes, as measured by the board; their sum is an inference, so that what
        passes between layers is theirs by share.
    runs
        Inferences between two marks; needed where two is all there are, or two a window.
    by_shape
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
    edges = edges_of(times_us)
    if by_shape:
        alignment = place_by_shape(trace, float(edges[-1]))
        return _run_samples(trace, layers, edges, alignment, 0)
    if len(marks) == 2 or (runs is not None and len(marks) and len(marks) % 2 == 0):
        return [sample for run, (begin, end) in enumerate(marks.reshape(-1, 2).tolist())
                for sample in _window_samples(trace, begin, end, float(edges[-1]), runs, run)]
    if runs is not None or len(marks) == 0 or len(marks) % (len(layers) + 1):
        raise MeasurementError(_describe_marks(trace, layers, times_us, runs))
    per_run = len(layers) + 1
    found = []
    for run, chosen in enumerate(marks.reshape(-1, per_run)):
        alignment = place_by_marks(trace, tuple(chosen), edges)
        found += _run_samples(trace, layers, edges, alignment, run)
    return found


def edges_of(times_us: Sequence[float]) -> np.ndarray:
    """Return when each layer of an inference begins, and the last ends, from 0 on."""
    return np.concatenate(([0.0], np.cumsum(np.asarray(times_us, dtype=np.float64))))


def place_by_marks(trace: PowerTrace, marks_us: tuple[float, ...], edges: np.ndarray) -> Alignment:
    """Return where one inference lies in a recording, by its edges of the mark.

    Each layer is as the mark shows it; the board's times only steady what sampling blurs.
    """
    return align_by_marks(replace(trace, marks_us=marks_us), edges.tolist())


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

    Samples right beside a mark may hold a part of the work and are omitted.
    """
    time_us = np.asarray(trace.time_us)
    period_us = float(np.median(np.diff(time_us)))
    outside = ((time_us < trace.marks_us[0] - period_us)
               | (time_us > trace.marks_us[-1] + 2 * period_us))
    return float(np.mean(np.asarray(trace.power_mw)[outside])) if outside.any() else None


def find_windows(trace: PowerTrace, layers: Sequence[int], runs: int | None,
                 ) -> tuple[Ends, ...]:
    """Return beginning and end of all the marks say was done, in us: windows, or inferences."""
    marks = trace.marks_us
    step = 2 if runs is not None or len(marks) == 2 else len(layers) + 1
    return tuple((marks[place], marks[place + step - 1])
                 for place in range(0, len(marks) - step + 1, step))


def judge_windows(trace: PowerTrace, windows: Sequence[Ends]) -> str | None:
    """Return at which end of windows a board waits, by its power; None: at neither of any.

    Parameters
    ----------
    windows : sequence of (float, float)
        As `find_windows` returns them, in us.

    Notes
    -----
    What waiting takes is read outside of all windows. A window of too few samples, or in which a
    board takes little more than it does waiting, is not judged.
    """
    time_us, power = np.asarray(trace.time_us), np.asarray(trace.power_mw)
    bounds = np.asarray(windows, dtype=np.float64).reshape(-1, 2)
    # Windows are in order: how many started and not ended says whether a sample is within one.
    started = np.searchsorted(bounds[:, 0], time_us, side="left")
    outside = power[started == np.searchsorted(bounds[:, 1], time_us, side="left")]
    if len(outside) < LEAST_SAMPLES:
        return None
    idle_mw = float(np.percentile(outside, IDLE_PERCENTILE))
    late: list[str] = []
    for place, (begin, end) in enumerate(windows, 1):
        inside = power[slice(*np.searchsorted(time_us, (begin, end), side="right"))]
        part = int(len(inside) * EDGE_PART)
        if part < LEAST_SAMPLES:
            continue
        work_mw = float(np.median(inside))
        limit_mw = idle_mw + NEAR_IDLE * (work_mw - idle_mw)
        for name, piece in (("first", inside[:part]), ("last", inside[-part:])):
            if work_mw > LEAST_STEP * idle_mw and np.median(piece) < limit_mw:
                late.append(f"window {place}'s {name} twentieth is at idle power "
                            f"({np.median(piece):.3g} mW, {work_mw:.3g} within)")
    if not late:
        return None
    more = f", and {len(late) - 1} ends more" if len(late) > 1 else ""
    return f"{late[0]}{more}: do its marks bound the work, or are they late?"


def _describe_marks(trace: PowerTrace, layers: Sequence[int], times_us: Sequence[float],
                    runs: int | None) -> str:
    """Return why edges of the mark are indistinguishable, and what is accepted."""
    short = [layer for layer, time_us in zip(layers, times_us, strict=True)
             if time_us < trace.period_us]
    lost = "" if runs is not None or not short else (
        f". Layer {short[0]} is shorter than a sample of {trace.period_us:.4g} us, its edges may "
        "be lost: record windows of whole inferences, or measure --power-repeat")
    count = len(trace.marks_us)
    edges = f"trace of {trace.meter.name}: {count} edges of the synchronisation signal (the mark)"
    columns = "" if count or not trace.columns else (
        f"; --mark-column NAME, where one of {', '.join(trace.columns[:MOST_NAMED])} is the mark")
    without = "" if count else (
        f"{columns}; --by-shape finds one inference in a recording without a mark")
    if runs is not None:
        return (f"{edges}; accepted with --runs: 2 for each window"
                + (without or ". Was the recording started or ended within one?"))
    return (f"{edges}; accepted: 2 (a window; several with --runs), or a multiple of "
            f"{len(layers) + 1} (the starts of {len(layers)} layers and the end){lost or without}")


def _check_length(trace: PowerTrace, span_us: float, inference_us: float, runs: int) -> None:
    """Refuse a window that does not hold so many inferences; without times nothing is known."""
    if inference_us <= 0:
        return
    expected_us = runs * inference_us
    if abs(span_us - expected_us) <= WINDOW_SLACK * expected_us + 2 * trace.mark_sd_us:
        return
    near = round(span_us / inference_us)
    fits = near not in (0, runs) and abs(span_us / (near * inference_us) - 1) <= WINDOW_SLACK
    raise MeasurementError(
        f"trace of {trace.meter.name}: the window lasts {span_us * 1e-3:.5g} ms; {runs} "
        f"inferences of {inference_us * 1e-3:.5g} ms as measured take {expected_us * 1e-3:.5g} ms "
        f"({span_us / expected_us - 1:+.1%}, accepted: {WINDOW_SLACK:.0%} either way). "
        + (f"It would hold {near}, or {runs} at {runs / near:.3g} x the clock. " if fits else "")
        + "Is the number of runs right, and the unit of the time column?")


def group_short(times_us: Sequence[float], period_us: float) -> list[tuple[int, ...]]:
    """Return places of layers, those shorter than a sample of the meter together with neighbours.

    Parameters
    ----------
    times_us
        How long each layer takes.

    Returns
    -------
    list of tuple of int
        In order, each place once; a group lasts a sample at least where all layers together do.
    """
    groups: list[list[int]] = []
    for place, time_us in enumerate(times_us):
        if groups and (time_us < period_us or sum(times_us[one] for one in groups[-1]) < period_us):
            groups[-1].append(place)
        else:
            groups.append([place])
    return [tuple(group) for group in groups]


def describe_merged(layers: Sequence[int], times_us: Sequence[float],
                    period_us: float) -> tuple[str, ...]:
    """Say which layers have their energy in a neighbour's, and what would tell them apart."""
    found = []
    for group in group_short(times_us, period_us):
        if len(group) > 1:
            longest = max(group, key=lambda place: times_us[place])
            others = [str(layers[place]) for place in group if place != longest]
            found.append(f"layer {layers[longest]} holds the energy of {', '.join(others)} too")
    return () if not found else (
        f"shorter than a sample of the meter ({period_us:.4g} us): {'; '.join(found)}; `twin "
        "measure --power-repeat` measures each by itself",)


def _run_samples(trace: PowerTrace, layers: Sequence[int], edges: np.ndarray,
                 alignment: Alignment, run: int) -> list[Sample]:
    groups = group_short(np.diff(edges).tolist(), trace.period_us)
    corners = [float(edges[group[0]]) for group in groups] + [float(edges[-1])]
    estimates = layer_energies(trace, corners, alignment)
    longest = [layers[max(group, key=lambda place: edges[place + 1] - edges[place])]
               for group in groups]
    begin, end = alignment.to_meter(float(edges[0])), alignment.to_meter(float(edges[-1]))
    whole = integrate(trace, begin, end, shift_sd_us=alignment.shift_sd_us)
    pairs = [*zip(longest, estimates, strict=True), (None, whole)]
    found = [sample for layer, one in pairs for sample in estimate_samples(run, layer, one)]
    return found + _power_samples(trace, begin, end, run)


def _window_samples(trace: PowerTrace, begin: float, end: float, inference_us: float,
                    runs: int | None, run: int) -> list[Sample]:
    if runs is None or runs < 1:
        near = (end - begin) / inference_us if inference_us > 0 else 0.0
        raise MeasurementError(f"trace of {trace.meter.name}: two edges bound a window; say how "
                               "many inferences were made in it (--runs)"
                               + (f"; it is as long as {near:.2f}" if near else ""))
    _check_length(trace, end - begin, inference_us, runs)
    whole = integrate(trace, begin, end, edge_sd_us=trace.mark_sd_us)
    return [*estimate_samples(run, None, whole, runs), *_power_samples(trace, begin, end, run)]


def estimate_samples(run: int, layer: int | None, one: EnergyEstimate,
                     runs: int = 1) -> list[Sample]:
    """Return the energy of one of so many runs and its standard deviation as samples."""
    return [Sample(run=run, layer=layer, counter=name, unit="uj", value=value / runs)
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
