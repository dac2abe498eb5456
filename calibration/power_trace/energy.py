"""Energy of layers from a power trace, each with an interval that says what the meter can tell."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from calibration.errors import MeasurementError
from calibration.fitting.student import student_quantile
from calibration.power_trace.alignment import Alignment
from calibration.power_trace.trace import PowerTrace
from hwmodels.frozen import frozen
from hwmodels.quantities import Ends

NORMAL_95 = 1.959963984540054
"""Two-sided 95 % point of the normal distribution."""


@frozen
class EnergyEstimate:
    """An energy with what is not known of it.

    Parameters
    ----------
    sd_uj
        Standard deviation of everything below together.
    noise_uj, scale_uj, edges_uj
        Parts of it: samples (noise, resolution); gain and zero of the meter; where the window
        begins and ends.
    low_uj, high_uj
        95 % interval.
    """

    energy_uj: float
    sd_uj: float
    noise_uj: float = 0.0
    scale_uj: float = 0.0
    edges_uj: float = 0.0
    low_uj: float
    high_uj: float


@frozen
class PowerSummary:
    """Power within a window, in mW."""

    mean_mw: float
    peak_mw: float
    sd_mw: float
    samples: int


def integrate(trace: PowerTrace, begin_us: float, end_us: float, *, edge_sd_us: float = 0.0,
              shift_sd_us: float = 0.0) -> EnergyEstimate:
    """Integrate power over a window of the meter's clock.

    Parameters
    ----------
    edge_sd_us
        Independent error of each edge.
    shift_sd_us
        Error both edges share.

    Returns
    -------
    EnergyEstimate
        At the metered rail.

    Raises
    ------
    MeasurementError
        When the window is empty, not covered, or has a gap in it.

    Notes
    -----
    E = integral of P dt; samples that are means are constant over their span, instants are joined
    by straight lines. var(E) = (s dt)^2 n for n samples of error s, plus (r T)^2 for the rounding
    they share; (gain x E)^2 + (zero x T)^2; and for an edge at which power goes from P1 to P2:
    P^2 edge_sd^2 with P^2 the mean of both squares, plus what one sample cannot resolve,
    (f (1 - f) (P2 - P1) dt)^2 at fraction f of it.
    A shared shift moves both edges: it trades power at one for power at the other.
    """
    _check_window(trace, begin_us, end_us)
    first, last = (_energy_until(trace, edge) for edge in (begin_us, end_us))
    energy = (last - first) * 1e-3  # mW us = nJ
    period = trace.period_us
    samples = max((end_us - begin_us) / period, 1.0)
    noise = math.hypot(trace.meter.sample_sd_mw * period * math.sqrt(samples),
                       trace.meter.rounding_sd_mw * (end_us - begin_us)) * 1e-3
    scale = math.hypot(trace.meter.gain_rel_sd * energy,
                       trace.meter.offset_mw * (end_us - begin_us) * 1e-3)
    edges = _edges_sd(trace, begin_us, end_us, edge_sd_us, shift_sd_us) * 1e-3
    sd = math.hypot(noise, scale, edges)
    return EnergyEstimate(energy_uj=energy, sd_uj=sd, noise_uj=noise, scale_uj=scale,
                          edges_uj=edges, low_uj=energy - NORMAL_95 * sd,
                          high_uj=energy + NORMAL_95 * sd)


def _check_window(trace: PowerTrace, begin_us: float, end_us: float) -> None:
    start, stop = trace.span_us
    where = f"window {begin_us:g} to {end_us:g} us"
    if not begin_us < end_us:
        raise MeasurementError(f"{where} is empty")
    if begin_us < start or end_us > stop:
        raise MeasurementError(f"{where} is not covered: the trace has {start:g} to {stop:g} us")
    for gap_begin, gap_end in trace.gaps():
        if gap_begin < end_us and gap_end > begin_us:
            raise MeasurementError(f"{where}: no samples from {gap_begin:g} to {gap_end:g} us")


def _energy_until(trace: PowerTrace, time_us: float) -> float:
    """Energy in mW us from the first sample to a time."""
    time, power = trace.time_us, trace.power_mw
    if trace.meter.kind == "average":
        edges = np.concatenate(([trace.span_us[0]], time))
        done = np.concatenate(([0.0], np.cumsum(power * np.diff(edges))))
        return float(np.interp(time_us, edges, done))
    done = np.concatenate(([0.0], np.cumsum((power[1:] + power[:-1]) / 2 * np.diff(time))))
    place = int(np.clip(np.searchsorted(time, time_us) - 1, 0, len(time) - 2))
    step = time_us - time[place]
    slope = (power[place + 1] - power[place]) / (time[place + 1] - time[place])
    return float(done[place] + power[place] * step + slope * step * step / 2)


def _edges_sd(trace: PowerTrace, begin_us: float, end_us: float, edge_sd_us: float,
              shift_sd_us: float) -> float:
    period = trace.period_us
    sides = [_around(trace, edge) for edge in (begin_us, end_us)]
    variance = 0.0
    for edge, (before, after) in zip((begin_us, end_us), sides, strict=True):
        variance += (before**2 + after**2) / 2 * edge_sd_us**2
        fraction = (edge - trace.span_us[0]) / period % 1.0
        if trace.meter.kind == "instant":
            fraction = 0.5  # a step anywhere between two samples is joined by a slope
        variance += (fraction * (1 - fraction) * (after - before) * period)**2
    moved = [(sides[1][side] - sides[0][side])**2 for side in (0, 1)]  # to the left, to the right
    return math.sqrt(variance + sum(moved) / 2 * shift_sd_us**2)


def _around(trace: PowerTrace, edge_us: float) -> Ends:
    """Power on both sides of an edge: the samples that do not contain it."""
    place = int(np.searchsorted(trace.time_us, edge_us))
    last = len(trace.time_us) - 1
    return (float(trace.power_mw[max(place - 1, 0)]), float(trace.power_mw[min(place + 1, last)]))


def layer_energies(trace: PowerTrace, edges_us: Sequence[float],
                   alignment: Alignment) -> tuple[EnergyEstimate, ...]:
    """Return the energy between each two neighbouring edges of the board's clock.

    Parameters
    ----------
    edges_us
        Begin of each layer and the end of the last, by the board's clock.
    alignment
        From the board's clock to the meter's.

    Returns
    -------
    tuple of EnergyEstimate
        One per layer. A layer shorter than a sample has an interval that says so; use
        `difference_repetitions` for it.
    """
    if len(edges_us) < 2:
        raise MeasurementError(f"{len(edges_us)} edges; two or more are needed")
    return tuple(
        integrate(trace, alignment.to_meter(begin), alignment.to_meter(end),
                  edge_sd_us=alignment.edge_sd_us(begin, end), shift_sd_us=alignment.shift_sd_us)
        for begin, end in itertools.pairwise(edges_us))


def difference_repetitions(repetitions: Sequence[float],
                           energies: Sequence[EnergyEstimate]) -> EnergyEstimate:
    """Return the energy of one layer from runs that repeat it a different number of times.

    Parameters
    ----------
    repetitions
        How often the layer was run in each window; two different values or more, zero included.
    energies
        Of the windows, all by the same meter.

    Returns
    -------
    EnergyEstimate
        Of one repetition.

    Notes
    -----
    E = a + b n by least squares; b is the layer. Its error is the larger of what the scatter
    about the line shows (Student's t with windows - 2 degrees of freedom) and what the meter
    states of each window; the gain of the meter is common to all and scales b.
    """
    counts = np.array(repetitions, dtype=np.float64)
    values = np.array([one.energy_uj for one in energies])
    if len(counts) != len(values) or len(set(counts.tolist())) < 2 or len(counts) < 3:
        raise MeasurementError(f"{len(values)} windows of {sorted(set(counts.tolist()))} "
                               "repetitions; three windows of two different numbers are needed")
    spread = counts - counts.mean()
    norm = float(spread @ spread)
    slope = float(spread @ values) / norm
    residual = values - values.mean() - slope * spread
    freedom = len(values) - 2
    scatter = math.sqrt(float(residual @ residual) / freedom / norm)
    stated = math.sqrt(sum((spread[i] / norm)**2 * (one.noise_uj**2 + one.edges_uj**2)
                           for i, one in enumerate(energies)))
    gains = [one.scale_uj / one.energy_uj for one in energies if one.energy_uj > 0]
    scale = abs(slope) * (max(gains) if gains else 0.0)
    half = student_quantile(0.975, freedom) * scatter
    normal = student_quantile(0.975, math.inf)
    half = math.hypot(max(half, normal * stated), normal * scale)
    return EnergyEstimate(energy_uj=slope, sd_uj=math.hypot(max(scatter, stated), scale),
                          noise_uj=max(scatter, stated), scale_uj=scale,
                          low_uj=slope - half, high_uj=slope + half)


def summarise_power(trace: PowerTrace, begin_us: float, end_us: float) -> PowerSummary:
    """Return mean, peak and standard deviation of the samples of a window.

    Notes
    -----
    The peak of samples that are means is the highest mean, not the highest instant.
    """
    _check_window(trace, begin_us, end_us)
    chosen = trace.power_mw[(trace.time_us > begin_us) & (trace.time_us <= end_us)]
    if not len(chosen):
        raise MeasurementError(f"window {begin_us:g} to {end_us:g} us holds no sample")
    return PowerSummary(mean_mw=float(chosen.mean()), peak_mw=float(chosen.max()),
                        sd_mw=float(chosen.std()), samples=len(chosen))
