"""Quantiles of Student's t, so that intervals of a measurement need no statistics package."""

from __future__ import annotations

import math
from statistics import NormalDist

HALVINGS = 200
"""Of the interval the quantile lies in: more than a double has bits."""


def student_quantile(probability: float, freedom: float) -> float:
    """Return the value a Student's t variable stays below with a probability.

    Parameters
    ----------
    probability
        Between 0.5 and 1.
    freedom
        Degrees of freedom, a whole number from 1; `math.inf` is the normal distribution.

    Returns
    -------
    float
        Quantile, exact but for rounding.

    References
    ----------
    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    if math.isinf(freedom):
        return NormalDist().inv_cdf(probability)
    low, high = 0.0, 1.0
    while _within(high, int(freedom)) < 2 * probability - 1:
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _within(middle, int(freedom)) < 2 * probability - 1:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _within(value: float, freedom: int) -> float:
    """Probability of staying between -value and value."""
    angle = math.atan(value / math.sqrt(freedom))
    square = math.cos(angle)**2
    odd = freedom % 2
    term = total = math.cos(angle) if odd else 1.0
    for place in range(2 + odd, freedom - 1, 2):
        term *= (place - 1) / place * square
        total += term
    if odd:
        return 2 / math.pi * (angle + (math.sin(angle) * total if freedom > 1 else 0.0))
    return math.sin(angle) * total
