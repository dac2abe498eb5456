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
    concentrate,
    conformal_quantile,
    describe_basis,
    even_sides,
    find_ends,
    make_band,
    name_ends,
    probability_less,
    remaining_sd,
    scale_band,
    student_band,
    widest,
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


@pytest.mark.parametrize(("times", "factor"), [
    ([7.0] * 10, 1.0), ([3.0], math.sqrt(10)), ([1.0, 1.0], math.sqrt(5)),
    ([3.0, 1.0, 0.0], math.sqrt((9 + 1) / 16 * 10))])
def test_a_network_in_few_layers_is_less_sure_in_any_unit(times, factor) -> None:
    assert concentrate(np.array(times)) == pytest.approx(factor)
    assert concentrate(1e3 * np.array(times)) == pytest.approx(factor)


def test_rows_close_what_an_operator_leaves_open() -> None:
    """Without rows all of it; with information of (REST_SD / sd)^2, a sixteenth here, half."""
    assert remaining_sd(0.0, 0.4) == 0.4
    assert remaining_sd(1 / 16, 0.4) == pytest.approx(0.2)
    assert remaining_sd(1e6, 0.4) < 1e-7


def test_independent_causes_reach_as_their_squares_add() -> None:
    narrow = Band(down=1.0, up=3.0, level=0.9, basis="conformal", count=30)
    wide = Band(down=2.0, up=2.0, level=0.9, basis="borrowed", count=9)
    low, high = find_ends(50.0, (0.3, narrow), (0.2, wide))
    assert low == pytest.approx(50 * math.exp(-math.hypot(0.3, 0.4)))
    assert high == pytest.approx(50 * math.exp(math.hypot(0.9, 0.4)))
    both = widest(narrow, wide)
    assert (both.down, both.up, both.basis, both.count) == (2.0, 3.0, "conformal", 30)
    assert widest(narrow) == narrow
    twice = scale_band(narrow, 2.0)
    assert (twice.down, twice.up, twice.count) == (2.0, 6.0, 30)


@pytest.mark.parametrize(("errors", "down", "up"), [
    (np.arange(-9.0, 10), 9.0, 9.0), (np.arange(1.0, 20), 0.1, 19.0),
    (-np.arange(1.0, 20), 19.0, 0.1), (np.arange(-2.0, 7), 6.0, 6.0)])
def test_a_side_reaches_as_far_as_its_largest_error_and_at_least_a_rounding(errors, down, up):
    """Of 19 errors the largest bounds 95 %; of nine the largest size bounds 90 %."""
    band = make_band(errors, "borrowed")
    assert (band.down, band.up, band.basis, band.level) == (down, up, "borrowed", 0.9)


def test_sides_may_be_asked_to_be_alike() -> None:
    band = make_band(np.arange(1.0, 20), alike=True)
    assert (band.down, band.up) == (18.0, 18.0)  # the 18th of 19 sizes
    assert (band.basis, band.count) == ("conformal", 19)


@pytest.mark.parametrize(("low", "high", "level"), [(2.0, 1.0, 0.9), (1.0, 2.0, 0.0),
                                                    (1.0, 2.0, 1.0)])
def test_ends_in_the_wrong_order_and_levels_that_are_none_are_refused(low, high, level) -> None:
    with pytest.raises(FitError, match=f"interval {low} to {high} at level {level}"):
        Interval(low=low, high=high, level=level)


def test_an_interval_is_written_with_its_level_and_as_cells() -> None:
    interval = Interval(low=1.0, high=4.0, level=0.9)
    assert interval.holds(1.0) and interval.holds(4.0) and not interval.holds(0.99)
    assert interval.scale(0.5, 2.0) == Interval(low=0.5, high=8.0, level=0.9)
    assert interval.describe("{:g} ms".format) == "90 % interval 1 ms to 4 ms"
    assert name_ends("time", "us", interval) == {
        "time_low_us": 1.0, "time_high_us": 4.0, "time_level": 0.9}
    assert name_ends("time", "us", None) == {
        "time_low_us": None, "time_high_us": None, "time_level": None}
