"""Prices of one's own board: freed where rows ask for it, believable where nothing was changed."""

import math

import numpy as np
import pytest

from calibration.errors import FitError
from calibration.fitting.cell import Cell
from calibration.fitting.overlay import BandModel, Learnt
from calibration.fitting.prices import Evidence, Noise, fit_prices
from calibration.fitting.prior import known_prior
from calibration.fitting.spread import learn_noise
from calibration.fitting.ties import tie_prices

NAMES = ("work", "wait", "call")
CELL = Cell(board="b", core="c", library="l", release=0.0)
STATED = np.array([0.3, 0.5, 0.7])
PRIOR = known_prior(NAMES, np.zeros(3), np.diag(STATED**2) + 0.3**2)
BELIEVED = Noise(network_sd=0.05, row_sd=0.02, edge=100.0)

rng = np.random.default_rng(4)
WORK = np.geomspace(300, 1e6, 16)
AMOUNTS = np.stack([WORK, WORK * rng.uniform(0.05, 0.4, 16), np.full(16, 15.0)], axis=1)


def evidence(log=(0.0, 0.0, 0.0), uncounted: np.ndarray | float = 0.0,
             cells=(CELL,) * 16) -> Evidence:
    errors = np.random.default_rng(5).normal(0, 0.01, 16)
    names = tuple(f"layer {row}" for row in range(16))
    return Evidence(names=NAMES, amounts=AMOUNTS, cells=cells, networks=names, labels=names,
                    measured=(AMOUNTS * np.exp(log)).sum(axis=1) * np.exp(errors) + uncounted)


def test_unchanged_prices_stay_as_stated_together() -> None:
    rows = evidence()
    tied = tie_prices(rows, PRIOR, learn_noise(rows, PRIOR, BELIEVED))
    assert tied.names == NAMES
    log = tied.estimate(CELL).log
    assert np.ptp(log) < 1e-6 and abs(log[0]) < 0.02


def test_a_changed_price_is_freed_alone() -> None:
    rows = evidence((0.0, math.log(1.8), 0.0))
    tied = tie_prices(rows, PRIOR, learn_noise(rows, PRIOR, BELIEVED))
    assert tied.names == ("work", "call")
    found = tied.estimate(CELL)
    sds = np.sqrt(np.diag(found.covariance))
    assert abs(found.log[1] - math.log(1.8)) < 2 * sds[1] < 0.4
    assert abs(found.log[0]) < 0.03


def test_what_no_count_holds_of_small_layers_is_no_call() -> None:
    """The smallest layer takes 150 cycles more, nothing like it elsewhere: no price of calls."""
    rows = evidence(uncounted=np.where(np.arange(16) < 1, 150.0, 0.0))
    before = fit_prices(rows, PRIOR, learn_noise(rows, PRIOR)).estimate(CELL)
    assert before.factors[2] > 2
    found = tie_prices(rows, PRIOR, learn_noise(rows, PRIOR, BELIEVED)).estimate(CELL)
    assert found.factors[2] < 2 and math.sqrt(found.covariance[2, 2]) > 0.4


def test_tying_widens_prices_and_hardly_totals() -> None:
    rows = evidence((0.0, 0.1, 0.0))
    tied = tie_prices(rows, PRIOR, learn_noise(rows, PRIOR, BELIEVED))
    free, found = tied.free.estimate(CELL), tied.estimate(CELL)
    assert (np.diag(found.covariance) >= np.diag(free.covariance)).all()
    shares = AMOUNTS.sum(axis=0) / AMOUNTS.sum()
    wider = math.sqrt(shares @ found.covariance @ shares)
    assert wider < math.sqrt(shares @ free.covariance @ shares) + 0.01


def test_tying_keeps_the_total_of_all_rows() -> None:
    """Tied prices share a sum out in another way: the sum is what the rows tell."""
    rows = evidence((1.0, 0.3, -1.0))
    tied = tie_prices(rows, PRIOR, Noise(network_sd=0.4, row_sd=0.2, edge=100.0))
    assert len(tied.names) > 1 and tied.level != 0
    totals = [AMOUNTS @ np.exp(one) for one in (tied.fit.estimate(CELL).log,
                                                tied.free.estimate(CELL).log,
                                                tied.estimate(CELL).log)]
    off, free, found = (total.sum() for total in totals)
    assert found == pytest.approx(free, rel=1e-4) and abs(off / free - 1) > 1e-3
    assert tied.residuals == pytest.approx(np.log(rows.measured / totals[2]), abs=1e-3)


def test_a_fit_without_doubt_of_edges_keeps_none() -> None:
    assert learn_noise(evidence(), PRIOR).edge == 0.0


def test_rows_of_two_boards_are_refused() -> None:
    other = Cell(board="other", core="c", library="l", release=0.0)
    with pytest.raises(FitError, match="several"):
        tie_prices(evidence(cells=(CELL,) * 8 + (other,) * 8), PRIOR, BELIEVED)


def test_prices_that_are_no_findings_say_why() -> None:
    learnt = Learnt(
        log=(0.0, 0.0, 3.0, 0.1), covariance=tuple(np.eye(4)[np.tril_indices(4)].tolist()),
        prior_sd=(0.3, 1.0, 0.7, 0.5), network_sd=0.0, row_sd=0.01, tied=("a", "b"),
        unidentified=("b", "d"),
        band=BandModel(down=1.6, up=1.6, level=0.9, basis="model-based", count=0))
    said = learnt.doubtful(("a", "b", "c", "d"))
    assert sorted(said) == ["a", "b", "c", "d"]
    assert "as one" in said["a"] and "hardly identified" in said["d"]
    assert "not identifiable" in said["b"] and "no price counts" in said["c"]
