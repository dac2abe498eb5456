"""Energy of layers shorter than a meter's sample: each repeated, and windows subtracted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from calibration.errors import MeasurementError
from calibration.measurement.sample import Sample
from calibration.power_trace.board_energy import estimate_samples
from calibration.power_trace.energy import EnergyEstimate, difference_repetitions, integrate
from calibration.power_trace.trace import PowerTrace

Window = Callable[[int, int], PowerTrace]
"""Place of a layer in the call list, and how often it runs within one inference; returns what the
meter recorded, its two marks bounding the window."""

SPAN_S = 1.0
"""Of the repetitions in a long window."""
WINDOWS = 3
"""Short ones, and as many long ones, taken in turns so that drift meets both alike."""
ATTEMPTS = 3
"""A busy host may read the meter too late and leave a gap: then the window is made again."""


def repeat_layers(window: Window, layers: Sequence[int], times_us: Sequence[float], *,
                  span_s: float = SPAN_S) -> list[Sample]:
    """Return the energy of every layer by repetition and differencing.

    Parameters
    ----------
    window
        Makes a silent run and records it.
    layers
        Indices in the model file, in the order of the calls.
    times_us
        How long each takes.
    span_s
        How long the repetitions of a layer shall last: many samples of the meter.

    Returns
    -------
    list of Sample
        Counters `energy` and `energy_sd` of each layer, in uj.

    Raises
    ------
    MeasurementError
        When the meter does not cover a window.

    Notes
    -----
    What a window holds besides - the other layers, waking up, a trip over the line - is the same
    with and without repetitions and cancels. A repeated layer finds its own data in the caches: its
    energy is that of a layer that has just run.
    """
    found: list[Sample] = []
    for place, (layer, time_us) in enumerate(zip(layers, times_us, strict=True)):
        repeat = 1 + math.ceil(span_s * 1e6 / max(time_us, 1e-3))
        counts = [1, repeat] * WINDOWS
        energies = [_measure(window, place, count) for count in counts]
        one = difference_repetitions([count - 1 for count in counts], energies)
        found += estimate_samples(0, layer, one)
    return found


def _measure(window: Window, place: int, count: int) -> EnergyEstimate:
    for left in reversed(range(ATTEMPTS)):
        trace = window(place, count)
        begin, end = trace.marks_us
        try:
            return integrate(trace, begin, end, edge_sd_us=trace.mark_sd_us)
        except MeasurementError:
            if not left:
                raise
    raise AssertionError("unreachable")
