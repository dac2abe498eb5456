"""How far a coverage that was found may stray from a true one by chance."""

from __future__ import annotations

from scipy.stats import binom


def coverage_band(count: int, level: float = 0.9, confidence: float = 0.95,
                  ) -> tuple[float, float]:
    """Return between which shares of covered rows a true level would be seen by chance.

    Parameters
    ----------
    count : int
        Independent rows, or clusters of dependent ones.
    level : float
        True coverage.
    confidence : float
        Probability of the band.

    Notes
    -----
    Central interval of the binomial distribution.
    """
    low, high = binom.interval(confidence, count, level)
    return float(low) / count, float(high) / count
