"""Chance bands of a coverage, rows that share an error."""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy.coverage import coverage_band
from calibration.fitting.validation import effective_count


def test_the_binomial_band_of_a_coverage() -> None:
    low, high = coverage_band(100, 0.9)
    assert (low, high) == (0.84, 0.95)  # binomial(100, 0.9): 2.5 % and 97.5 % points 84 and 95


def test_rows_that_share_an_error_count_less() -> None:
    clusters = [cluster for cluster in range(10) for _ in range(6)]
    alike = np.array([cluster % 2 for cluster in clusters], dtype=float)
    assert effective_count(clusters, alike) == 10
    rng = np.random.default_rng(0)
    free = rng.integers(0, 2, 60).astype(float)
    assert effective_count(clusters, free) > 30
    assert effective_count(range(60), free) == 60
