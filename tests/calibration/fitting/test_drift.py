"""What lies beyond the measured is less sure, by as much as it is far."""

import math

import pytest

from calibration.fitting.intervals import DRIFT_SD, drift_sd

MEASURED = (1e6, 4e8, 2e7)


@pytest.mark.parametrize("value", [1e6, 3e7, 4e8])
def test_within_the_measured_nothing_is_added(value: float) -> None:
    assert drift_sd(value, MEASURED) == 0.0


@pytest.mark.parametrize("factor", [1.5, 10.0, 1000.0])
def test_beyond_it_the_distance_counts_in_factors_either_way(factor: float) -> None:
    expected = DRIFT_SD * math.log(factor)
    assert drift_sd(4e8 * factor, MEASURED) == pytest.approx(expected)
    assert drift_sd(1e6 / factor, MEASURED) == pytest.approx(expected)


def test_without_rows_nothing_is_near_or_far() -> None:
    assert drift_sd(1.0, ()) == 0.0
