"""Two clocks become one: the board's layer times on the meter's time axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from calibration.errors import MeasurementError
from calibration.power_trace.trace import PowerTrace
from hwmodels.frozen import frozen

CLOCK_SD = 2e-3
"""How far the rate of two clocks is from 1 before any is measured: crystals 0.01 %, RC 1 %."""
CLOCK_LIMIT = 2e-2
"""Further apart, something is wrong with the marks."""
MOST_GAPS = 4
"""Times its samples a trace may last to be filled in: where more is missing, its shape is."""


@frozen
class Alignment:
    """meter time = offset + rate x board time.

    Parameters
    ----------
    shift_sd_us
        Error all placed edges share.
    method
        "marks" or "correlation".
    quality
        For marks, largest residual in us; for correlation, the correlation at the best place.
    """

    offset_us: float
    rate: float
    shift_sd_us: float
    rate_sd: float
    method: str
    quality: float

    def to_meter(self, board_us: float) -> float:
        """Place a time of the board's clock on the meter's axis."""
        return self.offset_us + self.rate * board_us

    def edge_sd_us(self, begin_us: float, end_us: float) -> float:
        """Error of the length of a span, as that of each of its two edges."""
        return self.rate_sd * abs(end_us - begin_us) / math.sqrt(2)


def align_by_marks(trace: PowerTrace, board_us: Sequence[float]) -> Alignment:
    """Fit the line through the edges of the mark pin.

    Parameters
    ----------
    trace
        With as many marks as times.
    board_us
        When the board moved the pin, by its own clock; ascending.

    Returns
    -------
    Alignment
        With errors from the residuals' spread, at least that of the marks.

    Raises
    ------
    MeasurementError
        When the numbers differ or the clocks disagree by more than `CLOCK_LIMIT`.

    Notes
    -----
    Least squares with the rate drawn to 1 by what clocks are known to do: few marks close together
    say little about it. What the residuals lack of the marks' own error is shared by all marks
    (edges a whole number of samples apart are rounded alike), so it does not average out.
    """
    marks = np.array(trace.marks_us)
    board = np.array(board_us, dtype=np.float64)
    if len(marks) != len(board) or len(marks) < 2:
        raise MeasurementError(f"trace of {trace.meter.name}: {len(marks)} marks for {len(board)} "
                               "edges of the board; two or more of each, equally many, are needed")
    centre, middle = board.mean(), marks.mean()
    spread = board - centre
    moment = float(spread @ spread)
    fitted = float(spread @ (marks - middle)) / moment
    residual = marks - middle - fitted * spread
    scatter = math.sqrt(float(residual @ residual) / max(len(marks) - 2, 1))
    edge = max(scatter, trace.mark_sd_us)
    fitted_sd = edge / math.sqrt(moment)
    if abs(fitted - 1) > CLOCK_LIMIT + 3 * fitted_sd:
        raise MeasurementError(f"trace of {trace.meter.name}: its clock runs {fitted:.4f} times as "
                               f"fast as the board's; accepted: within {CLOCK_LIMIT:g} of 1. "
                               "Is a mark missing?")
    shared = max(trace.mark_sd_us**2 - scatter**2, 0.0)
    weight = CLOCK_SD**2 / (CLOCK_SD**2 + fitted_sd**2)
    rate = 1 + weight * (fitted - 1)
    return Alignment(offset_us=float(middle - rate * centre), rate=rate, method="marks",
                     shift_sd_us=math.sqrt(edge**2 / len(marks) + shared),
                     rate_sd=math.sqrt(weight) * fitted_sd,
                     quality=float(np.abs(residual).max()))


def step_profile(edges_us: Sequence[float], levels: Sequence[float]) -> np.ndarray:
    """Return a reference for `align_by_correlation`: rows of (begin, end, level).

    Parameters
    ----------
    edges_us
        Begin of each step and the end of the last, by the board's clock.
    levels
        Expected power of each step, in any unit; one fewer than edges.
    """
    if len(edges_us) != len(levels) + 1 or not levels:
        raise MeasurementError(f"{len(edges_us)} edges for {len(levels)} levels; one more edge "
                               "than levels is needed")
    return np.column_stack((edges_us[:-1], edges_us[1:], levels)).astype(np.float64)


def align_by_correlation(trace: PowerTrace, profile: np.ndarray) -> Alignment:
    """Place a profile of expected power where it correlates best with the trace.

    Parameters
    ----------
    trace
        Longer than the profile.
    profile : ndarray, shape (steps, 3)
        From `step_profile`; only its shape matters, not its scale.

    Returns
    -------
    Alignment
        The clocks' rate is taken to be 1.

    Raises
    ------
    MeasurementError
        When the trace is shorter than the profile, or either is flat.

    Notes
    -----
    The best lag of the correlation, refined by a parabola through three points. Its variance is
    at least s^2 / sum (dP/dt)^2 (the bound for a delay in white noise of variance s^2 left after
    the fit), and at least that of a step inside one sample, dt^2 / 12 over the number of steps.
    """
    period = trace.period_us
    power = _resample(trace, period)
    needed = (float(profile[-1, 1]) - float(profile[0, 0])) / period
    if not needed < len(power) + 0.5:  # before so many are made
        raise MeasurementError(f"trace of {trace.meter.name} is shorter than the profile: "
                               f"{len(power)} samples for {needed:.0f}")
    reference = _sample_profile(profile, period)[:len(power)]  # one more by rounding
    shape = reference - reference.mean()
    if not shape.any() or np.ptp(power) == 0:
        raise MeasurementError("nothing to align by: the trace or the profile is flat")
    score = _correlation(power, shape)
    best = int(np.argmax(score))
    lag = best + _vertex(score, best)
    piece = power[best:best + len(shape)]
    gain = float(shape @ (piece - piece.mean())) / float(shape @ shape)
    left = piece - piece.mean() - gain * shape
    slopes = np.diff(gain * reference)
    steps = max(int(np.count_nonzero(slopes)), 1)
    bound = math.sqrt(float(left @ left) / len(left) / max(float(slopes @ slopes), 1e-300))
    shift = period * math.hypot(bound, 1 / math.sqrt(12 * steps))
    return Alignment(offset_us=trace.span_us[0] + lag * period - float(profile[0, 0]), rate=1.0,
                     shift_sd_us=shift, rate_sd=0.0, method="correlation",
                     quality=float(score[best]))


def _sample_profile(profile: np.ndarray, period_us: float) -> np.ndarray:
    """Mean of the profile over each sample of the meter."""
    begin, end, level = profile.T
    edges = np.concatenate((begin[:1], end))
    done = np.concatenate(([0.0], np.cumsum(level * (end - begin))))
    grid = np.arange(edges[0], edges[-1] + period_us * 0.5, period_us)
    if len(grid) < 3:
        raise MeasurementError(f"the profile lasts {edges[-1] - edges[0]:g} us, less than two "
                               f"samples of {period_us:g} us")
    return np.diff(np.interp(grid, edges, done)) / period_us


def _resample(trace: PowerTrace, period_us: float) -> np.ndarray:
    begin_us, end_us = trace.span_us
    if end_us - begin_us > MOST_GAPS * period_us * len(trace.time_us):
        raise MeasurementError(f"trace of {trace.meter.name}: {len(trace.time_us):,} samples, most "
                               f"{period_us:.4g} us apart, in {(end_us - begin_us) * 1e-3:.4g} ms: "
                               "an inference is found by its shape without gaps only")
    grid = np.arange(trace.time_us[0], trace.time_us[-1] + period_us * 0.5, period_us)
    power: np.ndarray = np.interp(grid, trace.time_us, trace.power_mw)
    return power


def _correlation(power: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """Pearson's correlation of the shape with every stretch of the trace."""
    length = len(shape)
    centred = power - power.mean()
    places = len(power) - length + 1
    room = 1 << (len(power) - 1).bit_length()  # products that wrap fall on places past the last
    dot = np.fft.irfft(np.fft.rfft(centred, room) * np.fft.rfft(shape, room).conj(), room)[:places]
    ones = np.concatenate(([0.0], np.cumsum(centred)))
    squares = np.concatenate(([0.0], np.cumsum(centred**2)))
    total = ones[length:] - ones[:-length]
    energy = squares[length:] - squares[:-length] - total**2 / length
    floor = 1e-12 * max(float(squares[-1]), 1e-300)
    return dot / np.sqrt(np.maximum(energy, floor) * float(shape @ shape))


def _vertex(score: np.ndarray, best: int) -> float:
    """Offset of the peak of the parabola through the best score and its neighbours."""
    if not 0 < best < len(score) - 1:
        return 0.0
    left, middle, right = score[best - 1:best + 2]
    bend = left - 2 * middle + right
    return float(0.5 * (left - right) / bend) if bend < 0 else 0.0
