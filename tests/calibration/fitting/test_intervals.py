"""Intervals: counts behind quantiles, coverage by simulation."""

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
    describe_basis,
    even_sides,
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


def test_what_past_errors_had_none_of_may_go_either_way() -> None:
    band = Band(down=0.5, up=2.0, level=0.9, basis="conformal", count=30)
    assert even_sides(band, 0.0) == band
    wholly = even_sides(band, 1.0)
    assert (wholly.down, wholly.up) == (2.0, 2.0)
    many = even_sides(Band(down=2.0, up=0.5, level=0.9, basis="conformal", count=30),
                      np.array([0.0, 0.5, 1.0]))
    assert many.up.tolist() == [0.5, 1.25, 2.0] and many.down.tolist() == [2.0, 2.0, 2.0]


def test_probability_of_being_less() -> None:
    assert probability_less(0.0, 0.1) == 0.5
    assert probability_less(-0.1, 0.1) == pytest.approx(0.8413, abs=1e-4)  # normal, one sd
    assert probability_less(-0.1, 0.0) == 1.0


def test_what_an_interval_rests_on_is_told_of_one_and_of_many() -> None:
    assert describe_basis("model-based", 1).startswith("a spread worth one independent error ")
    assert "worth 12 independent errors" in describe_basis("model-based", 12)
    assert describe_basis("model-based", 4, boards=2) == (
        "a spread worth 4 errors on held-out boards, cores or libraries (their rows are of 2 "
        "boards, so not all are independent): no calibration data of this one")
    assert "of 1 error on held-out networks" in describe_basis("conformal", 1)
    assert "no calibration data" not in describe_basis("model-based", 4, measured=True)
    assert describe_basis("model-based", 0).startswith("an assumed spread")
