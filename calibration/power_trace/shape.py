"""An inference found without marks: by the shape of its power, and whether that shape fits."""

from __future__ import annotations

import math

import numpy as np

from calibration.errors import MeasurementError
from calibration.power_trace.alignment import Alignment, align_by_correlation, step_profile
from calibration.power_trace.trace import PowerTrace

LEAST_CORRELATION = 0.5
"""Of an inference found by its shape: noise comes to sqrt(2 ln N / n) with a shape of n samples at
N places, 0.44 for 96 at 10,000."""
MARGIN = 0.1
"""Of the inference, before and after it: where the board is taken to wait."""
LENGTH_SLACK = 0.03
"""How far a burst may be from the inference as measured, relative: as a window between marks."""
AT_WORK, NOISE_PART = 0.1, 0.04
"""Assumed: a board works from a tenth of the step between waiting and its usual work on; samples
are taken together until their noise is below a twenty-fifth of that step."""
MOST_IDLE = 0.1
"""Of an inference may be spent below that, such as in waiting for a memory (assumed)."""
LEAST_SAMPLES = 3
"""In a margin, for it to be used."""


def place_by_shape(trace: PowerTrace, length_us: float) -> Alignment:
    """Return where one inference of a length lies in a recording, by the shape of its power.

    Raises
    ------
    MeasurementError
        Where none is seen, or what is seen is not a single burst of that length.
    """
    alignment = align_by_correlation(trace, step_profile(
        (-MARGIN * length_us, 0.0, length_us, (1 + MARGIN) * length_us), (0.0, 1.0, 0.0)))
    if alignment.quality < LEAST_CORRELATION:
        raise MeasurementError(f"trace of {trace.meter.name}: no inference of "
                               f"{length_us * 1e-3:.5g} ms is seen in it (correlation "
                               f"{alignment.quality:.2f}); is the time column in its unit?")
    _check_burst(trace, alignment.to_meter(0.0), length_us)
    return alignment


def _check_burst(trace: PowerTrace, begin_us: float, length_us: float) -> None:
    """Refuse a place that is not a burst as long as the inference, between two pauses.

    Notes
    -----
    Waiting is the quieter of both margins, work the median between them. Length is from the first
    to the last sample at work, margins included: a longer burst reaches into them. Too few samples
    in a margin tell nothing; noise widens what is accepted, by the samples taken together.
    """
    margin_us = MARGIN * length_us
    time_us, power = np.asarray(trace.time_us), np.asarray(trace.power_mw)
    within = (time_us > begin_us - margin_us) & (time_us <= begin_us + length_us + margin_us)
    time_us, power = time_us[within], power[within]
    place = time_us - begin_us
    before, after = power[place <= 0], power[place > length_us]
    inside = power[(place > 0) & (place <= length_us)]
    if min(len(before), len(after)) < LEAST_SAMPLES:
        return
    idle_mw, work_mw = min(np.median(before), np.median(after)), float(np.median(inside))
    step_mw = max(work_mw - idle_mw, 0.0)
    noise_mw = float(np.median(np.abs(np.diff(power)))) / 0.954  # of a difference of two normals
    together = 1 if not step_mw else math.ceil(
        min(max(noise_mw / (NOISE_PART * step_mw), 1.0) ** 2, len(before)))
    smooth = np.convolve(power, np.ones(together) / together, "same")
    working = np.flatnonzero(smooth > idle_mw + AT_WORK * step_mw)
    slack_us = LENGTH_SLACK * length_us + (together + 1) * trace.period_us
    first_us, last_us = (float(place[working[0]]), float(place[working[-1]])) \
        if step_mw and len(working) else (0.0, 0.0)
    burst_us = last_us - first_us
    pauses = 1 - len(working) * trace.period_us / burst_us if burst_us else 0.0
    if abs(burst_us - length_us) <= slack_us and pauses <= MOST_IDLE:
        return
    cut = max(-first_us, last_us - length_us) > slack_us
    raise MeasurementError(
        f"trace of {trace.meter.name}: no burst lasts the {length_us * 1e-3:.5g} ms of an "
        f"inference as measured: where it fits best the board works for "
        f"{'more than ' if cut else ''}{burst_us * 1e-3:.5g} ms"
        + (f" with pauses of {pauses:.0%}" if pauses > MOST_IDLE else "")
        + f" (accepted: {slack_us / length_us:.1%} either way). Is it a recording of this "
        "network at this clock, of single inferences?")
