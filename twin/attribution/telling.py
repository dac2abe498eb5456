"""Which further measurement would tell two explanations apart: another clock, or a healthy board.

    what a clock changes = log(cycles there / cycles here), under each explanation

Prices are off alike at both clocks, so most of their error cancels: what waits for a memory takes
fewer cycles where the core is slower, and what does not wait takes as many. A clock tells where
two explanations differ by several times what is left of that error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hwmodels.errors import TwinError
from twin.attribution.error_model import REPEATED
from twin.attribution.fault_effects import Effect, Forecasts
from twin.attribution.faults import DECLARED, JOINED, UNKNOWN, Fault
from twin.attribution.finding import Diagnosis
from twin.attribution.likelihood import price_errors
from twin.attribution.marks import clock_hz_of
from twin.attribution.pattern import Pattern
from twin.deployment.deployment import Deployment
from twin.learning.calibration import Calibration
from twin.prediction.prediction import Prediction

CLOCKS_HZ = (16e6, 48e6)
"""Other clocks that are tried: most parts reach them, with few wait states."""

TELLS = 2.0
"""A clock tells explanations that differ by so many standard deviations."""

LEAST = 0.03
"""Explanations less probable are not worth a measurement."""


def choose_rivals(found: Diagnosis) -> list[Fault]:
    """Return the two likeliest explanations that are predicted, each by its likeliest variant."""
    told = [kind for kind, chance in found.kinds.items()
            if chance >= LEAST and kind != UNKNOWN and JOINED not in kind]
    best = [next(one.fault for one in found.findings if one.fault.kind == kind) for kind in told]
    return [fault for fault in best if fault.kind == DECLARED or (
        fault.deployment is not None and not fault.shifts_clock
        and fault.name not in found.indistinct)][:2]


def tell_apart(rivals: Sequence[Fault], deployment: Deployment, forecasts: Forecasts,
               prices: Calibration | None, base: Prediction, pattern: Pattern) -> str:
    """Say which measurement tells the two likeliest explanations apart.

    Parameters
    ----------
    rivals : sequence of Fault
        From `choose_rivals`.
    deployment : Deployment
        As asked for.
    forecasts : Forecasts
        Keeps what is predicted.
    prices : Calibration or None
        Learnt ones.
    base : Prediction
        As declared.
    pattern : Pattern
        Whose layers are weighed.

    Returns
    -------
    str
        A sentence; "" where there are no two.
    """
    if len(rivals) < 2 or pattern.quantity != "cycles":
        return ""
    here = clock_hz_of(deployment)
    best: tuple[float, str] = (0.0, "")
    for hertz in CLOCKS_HZ:
        if hertz > 0.7 * here:
            continue
        found = [_change(fault, deployment, hertz, forecasts, prices, base, pattern)
                 for fault in rivals]
        if any(one is None for one in found):
            continue
        (first, moved), (second, other) = (one for one in found if one is not None)
        unsure = (moved - other)[None, :]
        sd = math.sqrt(float(price_errors(unsure, unsure)[0, 0]) + 2 * REPEATED**2)
        apart = abs(first - second) / sd
        if apart > max(best[0], TELLS):
            best = (apart, f"measure again at {hertz / 1e6:g} MHz: {math.exp(first):.3f} x the "
                           f"cycles if {rivals[0].name}, {math.exp(second):.3f} x if "
                           f"{rivals[1].name}")
    return best[1] or (f"no other clock tells {rivals[0].name} from {rivals[1].name}: measure the "
                       "same image where it is known to be right (--healthy), or count "
                       "instructions and cache misses where a core can")


def _change(fault: Fault, deployment: Deployment, hertz: float, forecasts: Forecasts,
            prices: Calibration | None, base: Prediction, pattern: Pattern,
            ) -> tuple[float, np.ndarray] | None:
    """Log of the whole's change by another clock, and by how much each cause's share changes."""
    clock = f"clocks.{deployment.board.core.clock}.frequency_hz"
    try:
        slower = (fault.deployment or deployment).replace({clock: hertz})
    except TwinError:
        return None
    here = forecasts.foresee(fault, base, prices, pattern)
    there = forecasts.foresee(
        Fault(kind=fault.kind, name=f"{fault.name} at {hertz:g} Hz", remedy="", deployment=slower),
        base, prices, pattern)
    return (float(np.log(np.exp(there.logs).sum() / np.exp(here.logs).sum())),
            _whole_shares(there) - _whole_shares(here))


def _whole_shares(effect: Effect) -> np.ndarray:
    amounts = np.exp(effect.logs)
    return np.asarray((amounts[:, None] * effect.shares).sum(axis=0) / amounts.sum())
