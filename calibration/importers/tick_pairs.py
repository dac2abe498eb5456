"""Ticks beside whole milliseconds: what they tell of a tick's length, and which line disagrees."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from calibration.importers.log import Log
from hwmodels.frozen import frozen
from hwmodels.quantities import Ends

_ROUNDING = 1e-6
"""Relative: profilers divide in single precision."""


@frozen
class TickPair:
    """A time as a line says it twice.

    Parameters
    ----------
    line
        Of the log; the first is 1.
    ticks, ms
        The same time, in ticks and in whole milliseconds, rounded or cut.
    """

    line: int
    ticks: int
    ms: int

    @property
    def least_hz(self) -> float:
        """Lowest frequency the ticks may be of."""
        return self.ticks / (self.ms + 1) * 1e3 * (1 - _ROUNDING)

    @property
    def most_hz(self) -> float:
        """Highest frequency the ticks may be of."""
        return self.ticks / (self.ms - 1) * 1e3 * (1 + _ROUNDING) if self.ms > 1 else math.inf


def bound_ticks(pairs: Sequence[TickPair]) -> Ends:
    """Return between which frequencies ticks are; a line of 0 ms bounds them from below only."""
    least = max((pair.ticks / (pair.ms + 1) for pair in pairs), default=0.0) * 1e3
    most = min((pair.ticks / (pair.ms - 0.5) for pair in pairs if pair.ms > 0),
               default=math.inf) * 1e3
    if most < least:  # milliseconds rounded up
        most = min(pair.most_hz for pair in pairs)
    return (least, most) if least <= most else (0.0, math.inf)


def check_pairs(log: Log, pairs: Sequence[TickPair]) -> None:
    """Refuse a line whose ticks are not of the length most others have.

    Parameters
    ----------
    pairs
        In the order of their lines.

    Raises
    ------
    MeasurementError
        Naming the first line that disagrees.
    """
    if not pairs:
        return
    lows = sorted(pair.least_hz for pair in pairs)
    highs = sorted(pair.most_hz for pair in pairs)
    agreed = max(lows, key=lambda hertz: bisect_right(lows, hertz) - bisect_left(highs, hertz))
    kept = [pair for pair in pairs if pair.least_hz <= agreed <= pair.most_hz]
    if len(kept) == len(pairs):
        return
    wrong = next(pair for pair in pairs if not pair.least_hz <= agreed <= pair.most_hz)
    least, most = agreed, min(pair.most_hz for pair in kept)
    text = (f"{least / 1e6:.4g} MHz or more" if math.isinf(most)
            else f"{least / 1e6:.4g} to {most / 1e6:.4g} MHz")
    raise log.refuse(wrong.line, (
        f"{wrong.ticks:,} ticks in {wrong.ms:,} ms do not agree with {len(kept)} of "
        f"{len(pairs)} lines, whose ticks are of {text}; accepted: ticks of one length "
        "throughout, milliseconds rounded by 1 either way"))
