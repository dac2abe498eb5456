"""What no row tells of widens an interval: never narrower with more of it, never with more rows."""

import math
from dataclasses import replace

import numpy as np
import pytest

from calibration.fitting.cell import Cell
from calibration.fitting.intervals import BORROWED_SD, concentrate, remaining_sd
from calibration.fitting.prices import Evidence
from calibration.fitting.prior import Spread
from calibration.fitting.spread import fit_pooled
from twin.deployment.deploy import deploy
from twin.network.zoo.builder import Builder
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.calibration import choose_calibration
from twin.pricing.design import make_design
from twin.pricing.operator_evidence import EXTERNAL
from twin.pricing.price_names import TIME_PRICES

BOARD = "stm32h747i_disco"
RUNTIMES = ("x-cube-ai@10.0.0", "x-cube-ai@9.0.0")
"""Measured on the board, and not."""


def make_network(activations: int):
    """A few convolutions, and as many element-wise operators no published network has."""
    net = Builder("made", 0)
    x = net.conv(net.input((1, 32, 32, 8)), 16, 3)
    for _ in range(3):
        x = net.conv(x, 16, 3)
    for _ in range(activations):
        x = net.layer("tanh", (x,), net.shape(x))
    return net.finish(x)


@pytest.fixture(scope="module", params=RUNTIMES)
def predictions(request):
    return [predict_calibrated(deploy(make_network(many), BOARD, runtime=request.param))
            for many in (0, 2, 4, 8, 16)]


def width(interval) -> float:
    return math.log(interval.high / interval.low)


def test_an_interval_is_never_narrower_with_more_of_what_has_no_rows(predictions) -> None:
    widths = [width(one.certainty.time_us) for one in predictions]
    assert widths == sorted(widths) and widths[-1] > 1.5 * widths[0]
    assert all("tanh" in " ".join(one.certainty.extrapolating) for one in predictions[2:])


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_planted_error_of_structure_is_covered(predictions, factor: float) -> None:
    """An operator no row has really takes half, or twice, what its loops say."""
    for prediction in predictions:
        planted = [layer.time_us * (factor if layer.op == "tanh" else 1.0)
                   for layer in prediction.layers]
        assert prediction.certainty.time_us.holds(sum(planted))
        for layer, sure, time_us in zip(prediction.layers, prediction.certainty.layers, planted,
                                        strict=True):
            assert layer.alias or sure.time_us.holds(time_us)


def test_a_layer_is_less_sure_than_its_network(predictions) -> None:
    for one in predictions[:1]:
        assert min(width(layer.time_us) for layer in one.certainty.layers) > width(
            one.certainty.time_us)


def test_rows_of_an_operator_narrow_and_never_widen() -> None:
    left = [remaining_sd(information, BORROWED_SD) for information in (0, 1e-4, 1e-2, 0.1, 1, 10)]
    assert left[0] == BORROWED_SD and left == sorted(left, reverse=True) and left[-1] < 0.01
    prediction = deploy(make_network(4), BOARD, runtime=RUNTIMES[0])
    known = choose_calibration(prediction)
    name = next(one for one in make_design(prediction).operators if one.startswith("tanh"))
    told = replace(known, operators={**known.operators, name: 0.1})
    assert width(predict_calibrated(prediction, calibration=told).certainty.time_us) < width(
        predict_calibrated(prediction, calibration=known).certainty.time_us)


def test_waiting_outside_the_chip_is_told_of_like_an_operator() -> None:
    net = Builder("made", 0)
    wide = net.finish(net.fully_connected(net.input((1, 4096)), 64))  # beyond any cache of it
    deployment = deploy(wide, BOARD, runtime=RUNTIMES[0], weights="external_flash")
    design, log = make_design(deployment), np.zeros(len(TIME_PRICES))
    shares = design.share_work(log)
    assert shares[EXTERNAL] > 0 and sum(shares.values()) == pytest.approx(1.0)
    told = dict.fromkeys(design.operators, 1e3)
    assert design.unlearned_sd(log, told) == pytest.approx(
        shares[EXTERNAL] * BORROWED_SD, abs=1e-3)


def test_few_layers_are_told_less_of_than_many() -> None:
    assert concentrate(np.ones(10)) == pytest.approx(1.0)
    assert concentrate(np.ones(1)) == pytest.approx(math.sqrt(10.0))
    assert concentrate(np.ones(40)) < concentrate(np.array([*np.ones(39), 20.0]))


@pytest.mark.parametrize("seed", range(4))
def test_more_rows_never_widen_prices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    amounts = rng.dirichlet(np.ones(3), 12) * 1e6
    cells = tuple(Cell(board=f"b{row % 3}", core="c", library="l", release=float(row % 2))
                  for row in range(12))
    evidence = Evidence(names=("a", "b", "c"), amounts=amounts, cells=cells,
                        measured=amounts.sum(axis=1) * np.exp(rng.normal(0, 0.02, 12)),
                        networks=tuple(f"n{row}" for row in range(12)),
                        labels=tuple(map(str, range(12))))
    stated, spread, share = np.full(3, 0.3), Spread(), np.full(3, 1 / 3)
    before = math.inf
    for rows in (3, 6, 9, 12):
        fit = fit_pooled(evidence.select(range(rows)), stated, spread)
        after = float(share @ fit.estimate(replace(cells[0], board="")).covariance @ share)
        assert after <= before * 1.01
        before = after
