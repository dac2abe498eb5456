"""Fits: exact where data are, equal to an independent solver, honest where data are silent."""

import math

import numpy as np
import pytest

from calibration.errors import FitError
from calibration.fitting.cell import Cell
from calibration.fitting.identification import identify
from calibration.fitting.prices import BOUND, Evidence, Noise, fit_prices, log_total
from calibration.fitting.prior import Spread, known_prior, pool_prior, relate
from tests.oracles.fits import predict_totals

NAMES = ("conv", "depthwise", "memory")
HOME = Cell(board="one", core="cortex-m4", library="lib", release=0.0)
QUIET = Noise(network_sd=1e-4, row_sd=1e-4)


def make_evidence(amounts, factors, cells=None, noise=None, names=NAMES) -> Evidence:
    amounts = np.asarray(amounts, dtype=float)
    measured = (amounts * np.asarray(factors)).sum(axis=1)
    if noise is not None:
        measured = measured * np.exp(noise)
    rows = len(amounts)
    return Evidence(names=names, amounts=amounts, measured=measured,
                    cells=tuple(cells or [HOME] * rows),
                    networks=tuple(f"net{row}" for row in range(rows)),
                    labels=tuple(f"row{row}" for row in range(rows)))


AMOUNTS = [[5e6, 1e6, 2e5], [1e6, 4e6, 1e5], [2e6, 1e6, 3e6], [3e6, 3e6, 1e6]]


def test_exact_data_give_the_prices_they_were_made_with() -> None:
    truth = np.array([0.55, 1.3, 0.8])
    fit = fit_prices(make_evidence(AMOUNTS, truth), known_prior(NAMES, np.zeros(3), np.eye(3)),
                     QUIET)
    assert fit.estimate(HOME).factors == pytest.approx(truth, rel=1e-3)
    assert np.abs(fit.residuals).max() < 1e-4


def test_the_mode_is_the_one_an_independent_solver_finds() -> None:
    """Least squares of stacked residuals: (log y - log f(x)) / sd and x / prior sd."""
    from scipy.optimize import least_squares

    rng = np.random.default_rng(3)
    evidence = make_evidence(AMOUNTS, [0.7, 1.2, 1.5], noise=rng.normal(0, 0.03, 4))
    prior_sd, noise = np.array([0.3, 0.4, 0.2]), Noise(network_sd=0.04, row_sd=0.03)
    fit = fit_prices(evidence, known_prior(NAMES, np.zeros(3), np.diag(prior_sd**2)), noise)
    assert fit.row_weights == pytest.approx(np.ones(4))  # no row is doubted: the plain optimum
    sd = math.hypot(0.04, 0.03)  # every network has one row

    def residuals(log: np.ndarray) -> np.ndarray:
        totals, _ = log_total(evidence.amounts, log)
        return np.r_[(np.log(evidence.measured) - totals) / sd, log / prior_sd]

    found = least_squares(residuals, np.zeros(3), xtol=1e-12, ftol=1e-12)
    assert fit.estimate(HOME).log == pytest.approx(found.x, abs=2e-4)
    # Gauss-Newton covariance (J'J)^-1 of the same stacked problem
    assert fit.estimate(HOME).covariance == pytest.approx(np.linalg.inv(found.jac.T @ found.jac),
                                                          rel=2e-3, abs=1e-7)


def test_one_price_and_n_rows_have_the_textbook_variance() -> None:
    names, rows = ("all",), 5
    evidence = make_evidence(np.full((rows, 1), 1e6), [1.2], names=names)
    fit = fit_prices(evidence, known_prior(names, np.zeros(1), np.eye(1) * 0.3**2),
                     Noise(network_sd=0.03, row_sd=0.04))
    # normal mean with known variances: 1 / (1/prior + n / (network^2 + row^2))
    expected = 1 / (1 / 0.3**2 + rows / (0.03**2 + 0.04**2))
    assert fit.estimate(HOME).covariance[0, 0] == pytest.approx(expected, rel=1e-9)
    # leverage of each row is the share of that precision it brings
    assert fit.leverage.sum() == pytest.approx(rows / (0.05**2) * expected, rel=1e-9)


def test_a_wild_row_pulls_no_more_than_a_bounded_one() -> None:
    amounts = np.array(AMOUNTS * 3)
    wild = np.zeros(12)
    wild[5] = math.log(4)
    noise = Noise(network_sd=0.01, row_sd=0.02)
    prior = known_prior(NAMES, np.zeros(3), np.eye(3))
    fit = fit_prices(make_evidence(amounts, [0.6, 1.1, 0.9], noise=wild), prior, noise)
    assert fit.estimate(HOME).factors == pytest.approx([0.6, 1.1, 0.9], rel=0.03)
    assert fit.residuals[5] == pytest.approx(math.log(4), abs=0.1)


def test_prices_stay_within_their_bound() -> None:
    evidence = make_evidence([[1e6]], [1e6], names=("all",))
    for sd, farthest in ((0.5, BOUND), (2.0, 8.0)):  # four deviations of a very wide prior
        prior = known_prior(("all",), np.zeros(1), np.eye(1) * sd**2)
        assert fit_prices(evidence, prior, QUIET).estimate(HOME).log[0] == farthest


def test_cousins_learn_from_each_other_and_strangers_keep_their_spread() -> None:
    spread = Spread(library=0.3, core=0.05, release=0.2, board=0.05, cell=0.03)
    prior = pool_prior(NAMES, np.full(3, 0.3), spread)
    fit = fit_prices(make_evidence(AMOUNTS * 3, [0.5, 0.5, 0.5]), prior,
                     Noise(network_sd=0.03, row_sd=0.03))
    places = {
        "itself": HOME,
        "same core": Cell(board="two", core="cortex-m4", library="lib", release=0.0),
        "other core": Cell(board="three", core="cortex-m7", library="lib", release=0.0),
        "other library": Cell(board="three", core="cortex-m7", library="else", release=0.0),
    }
    sds = [math.sqrt(fit.estimate(cell).covariance[0, 0]) for cell in places.values()]
    assert sds == sorted(sds)
    assert fit.estimate(places["same core"]).factors == pytest.approx(0.5, rel=0.1)
    unseen_entry = fit.estimate(places["other library"])
    assert unseen_entry.log == pytest.approx(np.zeros(3))
    assert unseen_entry.covariance == pytest.approx(prior.covariance)


def test_a_release_between_two_measured_ones_is_interpolated() -> None:
    old, new = (Cell(board="one", core="cortex-m4", library="lib", release=release)
                for release in (0.0, 4.0))
    amounts = AMOUNTS * 2
    measured = [np.sum(row) * (1.4 if place < 4 else 0.6) for place, row in enumerate(amounts)]
    evidence = Evidence(names=NAMES, amounts=np.array(amounts), measured=np.array(measured),
                        cells=(old,) * 4 + (new,) * 4, labels=("row",) * 8,
                        networks=tuple("abcd" * 2))
    fit = fit_prices(evidence, pool_prior(NAMES, np.full(3, 0.3), Spread()),
                     Noise(network_sd=0.02, row_sd=0.02))
    means = [fit.estimate(Cell(board="one", core="cortex-m4", library="lib",
                               release=release)).log.mean() for release in (0.0, 2.0, 4.0)]
    assert means[0] > means[1] > means[2]
    # what two releases share falls by e over four of them (fit_prior.RELEASES)
    assert relate("release", [old], [new])[0, 0] == pytest.approx(math.exp(-4 / 4))


def test_what_the_data_cannot_tell_is_named_and_keeps_its_prior() -> None:
    amounts = [[4e6, 1e6, 0], [1e6, 3e6, 0], [2e6, 2e6, 0], [5e6, 1e6, 0]]
    fit = fit_prices(make_evidence(amounts, [0.6, 1.4, 1.0]),
                     known_prior(NAMES, np.zeros(3), np.eye(3) * 0.09),
                     Noise(network_sd=0.02, row_sd=0.02))
    told = identify(fit, HOME)
    estimate = fit.estimate(HOME)
    assert told.unidentified == ("memory",)
    assert estimate.log[2] == pytest.approx(0.0, abs=1e-12)
    assert estimate.covariance[2, 2] == pytest.approx(0.09)
    assert told.rank == 2 and told.rows == 4
    assert 1.5 < told.effective_parameters <= 2.0  # two directions, both nearly told


def test_prices_always_in_the_same_proportion_are_known_as_a_sum() -> None:
    rng = np.random.default_rng(0)
    amounts = np.outer(rng.uniform(1e6, 5e6, 8), [1.0, 1.0, 0.0])
    amounts[:, 2] = rng.uniform(1e6, 5e6, 8)
    fit = fit_prices(make_evidence(amounts, [0.6, 0.6, 1.2]),
                     known_prior(NAMES, np.zeros(3), np.eye(3) * 0.25),
                     Noise(network_sd=0.01, row_sd=0.01))
    told = identify(fit, HOME)
    assert told.rank == 2
    assert not {"conv", "depthwise"} & set(told.unidentified) or told.condition > 50


def test_two_prices_of_one_row_are_a_sum_and_traded_for_one_another() -> None:
    """By hand: equal shares of 1/2, both priors 0.09 and an error of 0.01 on the sum.

    Half the sum has variance 0.045; a row of error 0.01 leaves 1 / (1/0.045 + 1/0.0001) of it.
    Half the difference, which no row sees, keeps its own.
    """
    fit = fit_prices(make_evidence([[1e6, 1e6]], [1.0, 1.0], names=("a", "b")),
                     known_prior(("a", "b"), np.zeros(2), np.eye(2) * 0.09),
                     Noise(network_sd=0.006, row_sd=0.008))
    told = identify(fit, HOME)
    assert (told.rows, told.rank, told.unidentified) == (1, 1, ("a", "b"))
    assert told.effective_parameters == pytest.approx(0.045 / (0.045 + 1e-4), rel=1e-6)
    assert told.confused == ()  # neither is known beside the sum, so none is traded
    assert told.condition == pytest.approx(1.0)  # one row has one direction
    strange = identify(fit, Cell(board="two", core="cortex-m7", library="x", release=0.0))
    assert (strange.rows, strange.condition, strange.effective_parameters) == (0, 0.0, 0.0)


def test_prices_told_by_their_sum_mainly_are_named_as_a_pair() -> None:
    """Rows of a and b in nearly one proportion, and of c alone: c's contrast is known."""
    amounts = [[4e6, 4.2e6, 0], [4.2e6, 4e6, 0], [0, 0, 5e6], [1e6, 1e6, 4e6]] * 3
    fit = fit_prices(make_evidence(amounts, [0.7, 0.7, 1.4], names=("a", "b", "c")),
                     known_prior(("a", "b", "c"), np.zeros(3), np.eye(3) * 0.09),
                     Noise(network_sd=0.005, row_sd=0.005))
    told = identify(fit, HOME)
    assert told.rank == 3 and told.unidentified == () and told.rows == 12
    assert told.confused == (("b", "a"),)
    # shares of a and b differ by 0.4/8.2 of their sum, c's are its own: some forty to one
    assert 20 < told.condition < 80


def test_predicted_rows_carry_the_variance_of_their_prices() -> None:
    evidence = make_evidence(AMOUNTS, [0.7, 1.2, 1.0])
    fit = fit_prices(evidence, known_prior(NAMES, np.zeros(3), np.eye(3) * 0.09),
                     Noise(network_sd=0.03, row_sd=0.03))
    totals, variances = predict_totals(fit, evidence)
    _, shares = log_total(evidence.amounts, fit.estimate(HOME).log)
    covariance = fit.estimate(HOME).covariance
    assert variances == pytest.approx([s @ covariance @ s for s in shares])
    assert totals == pytest.approx(np.log(fit.fitted), abs=1e-3)


@pytest.mark.parametrize(("change", "words"), [
    ({"amounts": np.array([[1.0, -1.0, 0.0]] * 4)}, "row0: amounts"),
    ({"amounts": np.array([[1.0, 1.0, 1.0]] * 3 + [[0.0] * 3])}, "row3: amounts must be .* zero"),
    ({"measured": np.array([1.0, 2.0, 0.0, 1.0])}, "row2: measured is 0.0"),
    ({"amounts": np.ones((4, 2))}, "amounts of shape"),
])
def test_bad_data_are_refused_by_name(change, words) -> None:
    from dataclasses import replace

    with pytest.raises(FitError, match=words):
        replace(make_evidence(AMOUNTS, [1, 1, 1]), **change)


def test_a_prior_of_other_prices_is_refused() -> None:
    with pytest.raises(FitError, match="are not those of the prior"):
        fit_prices(make_evidence(AMOUNTS, [1, 1, 1]),
                   known_prior(("a", "b", "c"), np.zeros(3), np.eye(3)), QUIET)
    with pytest.raises(FitError, match="accepted: above 0"):
        Spread(row=0.0)
