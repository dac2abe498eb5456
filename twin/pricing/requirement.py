"""A limit a prediction is held to, and how probable it is that it is exceeded."""

from __future__ import annotations

import math
from statistics import NormalDist

from calibration.fitting.intervals import Interval, probability_less
from hwmodels.frozen import frozen


@frozen
class Requirement:
    """A limit and what was predicted against it.

    Parameters
    ----------
    name
        "time", "energy", "RAM" ...
    predicted
        None is not known, and an unknown figure meets no limit.
    limit
        The largest value that is accepted.
    decimals
        Digits shown after the point.
    interval
        Of what was predicted; None where there is none, or nothing is uncertain.
    measured
        Of the same network on the same board, which is judged first; None is not known.
    counted
        What that is: "measured" or "simulated".
    at_least
        Whether what was predicted is a lower bound, and so meets no limit.
    """

    name: str
    unit: str
    predicted: float | None
    limit: float
    decimals: int = 0
    interval: Interval | None = None
    measured: float | None = None
    counted: str = "measured"
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the figure measured, else predicted, is known and within the limit."""
        judged = self.predicted if self.measured is None else self.measured
        return judged is not None and judged <= self.limit and not self.at_least

    @property
    def surely_met(self) -> bool:
        """Whether it was measured so, or the upper end of the interval is within the limit too."""
        known = self.measured is not None and self.counted == "measured"
        return self.met and (known or self.interval is None or self.interval.high <= self.limit)

    @property
    def chance_above(self) -> float | None:
        """Probability that the limit is really exceeded; None without an interval, or measured."""
        if self.interval is None or self.predicted is None or self.measured is not None:
            return None
        return probability_above(self.limit, self.predicted, self.interval)

    @property
    def verdict(self) -> str:
        """The sentence shown: by the point, and where the limit lies inside the interval."""
        if self.measured is not None:
            return f"{'ok' if self.met else 'not met'}, {self.counted}"
        if self.predicted is None:
            return "may: not known"
        if self.at_least and self.predicted <= self.limit:
            return "may: at least"
        inside = self.interval is not None and self.interval.holds(self.limit)
        if self.met:
            return "ok" if self.surely_met else "ok, may exceed"
        return "not met, may be within" if inside else "not met"


def probability_above(limit: float, point: float, interval: Interval) -> float:
    """Return the probability that a positive quantity exceeds a limit.

    Parameters
    ----------
    limit, point
        Of the quantity, above 0.

    Returns
    -------
    float
        0 to 1.

    Notes
    -----
    The logarithm is taken as normal about the point, with the standard deviation of each side from
    that side's end of the interval: at the upper end of a 90 % interval it is 5 %.
    """
    return probability_less(math.log(limit / point), sd_towards(limit, point, interval))


def sd_towards(limit: float, point: float, interval: Interval) -> float:
    """Return the standard deviation of the logarithm on the side a limit lies on."""
    end = interval.high if limit >= point else interval.low
    reach = NormalDist().inv_cdf(0.5 + interval.level / 2)
    return max(abs(math.log(end / point)) / reach, 1e-9)
