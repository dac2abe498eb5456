"""The first answer of a sleeping device: wake-up, clocks, set-up, an inference from empty caches.

    t = t_wake + t_ramp + t_setup + t_cold

Parts are taken to err independently; each side of the interval is the root of the sum of squares
of theirs. Ignores what a program does besides, such as drivers and sensors.
"""

from __future__ import annotations

import math

from calibration.fitting.bands import NORMAL_REACH
from calibration.fitting.intervals import Interval
from hwmodels.frozen import NamedNumbers, frozen
from twin.pricing.ledger import bill_time_us
from twin.pricing.prediction import Prediction
from twin.studies.duty import IDLE, Rest, find_rest, rel_sd_of

RAMP_US, RAMP_SD = 100.0, 0.7
"""Until oscillator and PLL run (assumed, of the class: the STM32L4's PLL locks within 40 us, a
crystal takes a millisecond)."""

WAKE_SD, SETUP_SD = 0.7, 0.5
"""Relative standard deviations where a file states none (assumed)."""


@frozen
class ColdStart:
    """From the event to the first answer.

    Parameters
    ----------
    state
        The board wakes up from.
    parts : tuple of (str, float)
        Microseconds by what passes, in order.
    interval
        Of the sum; None where the inference has none.
    """

    state: str
    parts: NamedNumbers
    interval: Interval | None

    @property
    def total_us(self) -> float:
        """The sum."""
        return math.fsum(us for _, us in self.parts)


def start_cold(prediction: Prediction) -> ColdStart | None:
    """Return the first answer of a board that sleeps in its lowest state that keeps RAM.

    Parameters
    ----------
    prediction
        From empty caches.

    Returns
    -------
    ColdStart or None
        None where the set-up of the library or the wake-up of the board is not known.
    """
    board = prediction.board
    rest, setup_us = find_rest(board, {}), bill_time_us(prediction, prediction.setup)
    if rest is None or rest.state == IDLE or not setup_us:
        return None
    parts = list_parts(rest, setup_us, prediction.time_us)
    spread = (rel_sd_of(board, f"sleep.{rest.state}.wake_up_ns") or WAKE_SD, RAMP_SD, SETUP_SD)
    held = prediction.certainty
    if held is None or held.time_us is None:
        return ColdStart(state=rest.state, parts=parts, interval=None)
    total = math.fsum(us for _, us in parts)
    low, high = (math.hypot(end - prediction.time_us, *(
        us * math.expm1(side * NORMAL_REACH * sd)
        for (_, us), sd in zip(parts, spread, strict=False)))
        for side, end in ((-1, held.time_us.low), (1, held.time_us.high)))
    return ColdStart(state=rest.state, parts=parts, interval=Interval(
        low=max(total - low, 0.0), high=total + high, level=held.time_us.level))


def list_parts(rest: Rest, setup_us: float, time_us: float) -> NamedNumbers:
    """Return what passes before the first answer, in order."""
    return (("wake-up", rest.wake_up_us), ("clock ramp", RAMP_US), ("set-up", setup_us),
            ("first inference", time_us))
