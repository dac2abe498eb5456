"""Limits a prediction is held to: whether its figure meets them, and whether its interval does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from calibration.fitting.intervals import Interval, probability_less


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A limit and what was predicted against it.

    Parameters
    ----------
    name : str
        "time", "energy", "RAM" ...
    unit : str
        Of all figures.
    predicted : float or None
        None is not known, and an unknown figure meets no limit.
    limit : float
        The largest value that is accepted.
    decimals : int
        Digits shown after the point.
    interval : Interval, optional
        Of what was predicted; None where there is none, or nothing is uncertain.
    """

    name: str
    unit: str
    predicted: float | None
    limit: float
    decimals: int = 0
    interval: Interval | None = None

    @property
    def met(self) -> bool:
        """Whether the prediction is known and within the limit."""
        return self.predicted is not None and self.predicted <= self.limit

    @property
    def surely_met(self) -> bool:
        """Whether the upper end of the interval is within the limit too."""
        return self.met and (self.interval is None or self.interval.high <= self.limit)

    @property
    def chance_above(self) -> float | None:
        """Probability that the limit is really exceeded; None without an interval."""
        if self.interval is None or self.predicted is None:
            return None
        return probability_above(self.limit, self.predicted, self.interval)

    @property
    def verdict(self) -> str:
        """What a reader is told: by the point, and where the limit lies inside the interval."""
        if self.predicted is None:
            return "not met: not known"
        inside = self.interval is not None and self.interval.holds(self.limit)
        if self.met:
            return "ok" if self.surely_met else "ok, may exceed"
        return "not met, may be within" if inside else "not met"


def probability_above(limit: float, point: float, interval: Interval) -> float:
    """Return the probability that a positive quantity exceeds a limit.

    Parameters
    ----------
    limit, point : float
        Of the quantity, above 0.
    interval : Interval
        Of the point.

    Returns
    -------
    float
        0 to 1.

    Notes
    -----
    The logarithm is taken as normal about the point, with the standard deviation of each side from
    that side's end of the interval: at the upper end of a 90 % interval it is 5 %.
    """
    end = interval.high if limit >= point else interval.low
    reach = NormalDist().inv_cdf(0.5 + interval.level / 2)
    return probability_less(math.log(limit / point), abs(math.log(end / point)) / reach)
