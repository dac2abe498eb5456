"""Intervals: counts behind quantiles, coverage by simulation, agreement with MAPIE."""

import math

import numpy as np
import pytest

from calibration.errors import FitError
from calibration.fitting.intervals import (
    CONFORMAL_ROWS,
    Band,
    Interval,
    bound,
    conformal_quantile,
    coverage_band,
    effective_count,
    jackknife_plus,
    make_band,
    probability_less,
    student_band,
)


def test_the_quantile_is_the_ceiling_of_n_plus_one_times_the_level() -> None:
    scores = np.arange(1.0, 20.0)  # 19 scores: rank ceil(20 x 0.9) = 18
    assert conformal_quantile(scores, 0.9) == 18.0
    assert conformal_quantile(scores, 0.95) == 19.0
    assert math.isinf(conformal_quantile(scores[:8], 0.9))  # ceil(9 x 0.9) = 9 > 8
    assert conformal_quantile(scores[:CONFORMAL_ROWS], 0.9) == 9.0


def test_conformal_intervals_cover_whatever_the_distribution() -> None:
    """Exact expected coverage is ceil((n + 1) level) / (n + 1): 18 / 20 at n = 19."""
    rng = np.random.default_rng(0)
    hits = [rng.standard_cauchy() <= conformal_quantile(rng.standard_cauchy(19), 0.9)
            for _ in range(4000)]
    assert np.mean(hits) == pytest.approx(0.9, abs=3 * math.sqrt(0.09 / 4000))


def test_bands_take_each_side_by_itself_when_there_is_enough() -> None:
    rng = np.random.default_rng(1)
    skewed = np.r_[rng.uniform(0, 1, 60), rng.uniform(0, 4, 40)] - 0.2
    band = make_band(skewed)
    assert band is not None and band.up > 2 * band.down
    few = make_band(skewed[:12])  # a tail of 5 % needs 19
    assert few is not None and few.down == few.up and few.count == 12
    assert make_band(skewed[:CONFORMAL_ROWS - 1]) is None


def test_a_new_board_is_bounded_by_student_t() -> None:
    # two-sided 90 % points of Student t, any table: 4 degrees 2.132, 1 degree 6.314
    assert student_band(5).up == pytest.approx(2.132, abs=1e-3)
    assert student_band(2).down == pytest.approx(6.314, abs=1e-3)
    assert student_band(5).basis == "model-based"


def test_bounds_are_factors_and_so_asymmetric() -> None:
    interval = bound(100.0, 0.1, Band(down=1.0, up=2.0, level=0.9, basis="conformal", count=30))
    assert interval.low == pytest.approx(100 * math.exp(-0.1))
    assert interval.high == pytest.approx(100 * math.exp(0.2))
    assert interval.holds(100.0) and not interval.holds(125.0)
    with pytest.raises(FitError):
        Interval(low=2.0, high=1.0, level=0.9)


def test_jackknife_plus_against_its_definition() -> None:
    left_out, residuals = np.array([10.0, 11.0, 9.0] * 4), np.arange(12.0)
    interval = jackknife_plus(left_out, residuals, 0.8)
    rank = math.ceil(13 * 0.8)  # Barber et al. 2021, equation 1.3
    assert interval.high == np.sort(left_out + residuals)[rank - 1]
    assert interval.low == -np.sort(-(left_out - residuals))[rank - 1]


def test_jackknife_plus_equals_mapie() -> None:
    regression = pytest.importorskip("mapie.regression", reason="MAPIE is not installed")
    from sklearn.linear_model import LinearRegression

    rng = np.random.default_rng(2)
    x = rng.uniform(0, 5, (30, 2))
    y = x @ [1.5, -0.7] + rng.normal(0, 0.3, 30)
    new = np.array([[2.0, 3.0]])
    theirs = regression.CrossConformalRegressor(
        LinearRegression(), confidence_level=0.9, method="plus", cv=-1)
    _, bounds = theirs.fit_conformalize(x, y).predict_interval(new)
    left_out, residuals = [], []
    for row in range(30):
        rest = np.arange(30) != row
        model = LinearRegression().fit(x[rest], y[rest])
        left_out.append(model.predict(new)[0])
        residuals.append(abs(y[row] - model.predict(x[row:row + 1])[0]))
    ours = jackknife_plus(np.array(left_out), np.array(residuals), 0.9)
    assert [ours.low, ours.high] == pytest.approx(bounds.ravel(), rel=1e-9)


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


def test_probability_of_being_less() -> None:
    assert probability_less(0.0, 0.1) == 0.5
    assert probability_less(-0.1, 0.1) == pytest.approx(0.8413, abs=1e-4)  # normal, one sd
    assert probability_less(-0.1, 0.0) == 1.0
