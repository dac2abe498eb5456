"""How far a coverage that was found may stray from a true one by chance."""

from __future__ import annotations


def coverage_band(count: int, level: float = 0.9) -> tuple[float, float]:
    """Return between which shares of covered rows a true level would be seen by chance.

    Parameters
    ----------
    count : int
        Independent rows, or clusters of dependent ones.
    level : float
        True coverage.

    Notes
    -----
    Central interval of the binomial distribution, of probability 0.95.
    """
    from scipy.stats import binom

    low, high = binom.interval(0.95, count, level)
    return float(low) / count, float(high) / count
