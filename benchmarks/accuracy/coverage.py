"""How far a coverage that was found may stray from a true one by chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
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


def effective_count(clusters: Sequence[object], inside: np.ndarray) -> float:
    """Return how many independent rows a clustered coverage is worth.

    Parameters
    ----------
    clusters : sequence of object
        Cluster of each row.
    inside : numpy.ndarray
        Shape (rows,): whether each row was covered.

    Returns
    -------
    float
        n / (1 + (m - 1) rho) with m the mean cluster size and rho the intracluster correlation of
        being covered (analysis of variance estimator), at least the number of clusters and at
        most n.
    """
    groups: dict[object, list[float]] = {}
    for cluster, covered in zip(clusters, inside, strict=True):
        groups.setdefault(cluster, []).append(float(covered))
    rows, count = len(inside), len(groups)
    if count < 2 or rows == count:
        return float(max(count, 1) if count < 2 else rows)
    mean = sum(sum(group) for group in groups.values()) / rows
    between = sum(len(g) * (sum(g) / len(g) - mean) ** 2 for g in groups.values()) / (count - 1)
    within = sum((x - sum(g) / len(g)) ** 2 for g in groups.values() for x in g) / (rows - count)
    size = (rows - sum(len(g) ** 2 for g in groups.values()) / rows) / (count - 1)
    spread = between + (size - 1) * within
    rho = max(0.0, (between - within) / spread) if spread > 0 else 1.0
    return float(min(rows, max(count, rows / (1 + (size - 1) * rho))))
