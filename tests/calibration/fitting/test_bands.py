"""What was not measured is never surer than what it borrows its rows from."""

from dataclasses import replace

import numpy as np
import pytest

from calibration.fitting import bands
from calibration.fitting.bands import choose_band, choose_power_band
from calibration.fitting.cell import Cell
from calibration.fitting.intervals import Band
from calibration.fitting.overlay import UNMEASURED, list_shipped, read_overlay
from calibration.fitting.prices import Evidence, log_total
from calibration.fitting.prior import Spread
from calibration.fitting.spread import fit_pooled
from calibration.fitting.validation import leave_out_closely, total_error
from tests.oracles.fits import join_bands
from twin.deployment.deploy import deploy
from twin.pricing.calibrated import predict_calibrated

BOARDS, NETWORKS = 6, 12
WIDE = Spread(board=0.5, own_board=1.0, core=0.5)
"""Boards are stated to lie much further apart than they do: the scale of an unseen one would be
small."""


@pytest.fixture(scope="module", params=[3, 4])
def fit(request):
    """Boards of two cores, all alike, on which one network in six takes much longer."""
    rng = np.random.default_rng(request.param)
    cells = [Cell(board=f"b{board}", core=f"core{board % 2}", library="lib", release=0.0)
             for board in range(BOARDS) for _ in range(NETWORKS)]
    amounts = rng.dirichlet(np.ones(3), BOARDS * NETWORKS) * 1e6
    odd = np.where(np.arange(BOARDS * NETWORKS) % 6 == 0, 1.6, 1.0)
    return fit_pooled(Evidence(
        names=("conv", "depthwise", "memory"), amounts=amounts,
        measured=amounts.sum(axis=1) * odd * np.exp(rng.normal(0, 0.02, len(odd))),
        cells=tuple(cells), networks=tuple(f"net{n}" for n in range(len(cells))),
        labels=tuple(map(str, range(len(cells))))), np.full(3, 0.2), WIDE)


@pytest.mark.parametrize("change", [
    {"board": ""}, {"board": "", "core": ""}, {"release": 5.0}, {"board": "", "release": 5.0}])
def test_a_band_reaches_as_far_as_those_of_its_lenders(fit, change: dict[str, object]) -> None:
    left_out = leave_out_closely(fit, fit.evidence.networks)
    for cell in dict.fromkeys(fit.evidence.cells):
        measured = choose_band(fit, left_out, cell, BOARDS)
        other = choose_band(fit, left_out, replace(cell, **change), BOARDS)
        assert measured.basis == "conformal" and other.basis == "model-based"
        known, strange = (deviations(fit, one) for one in (cell, replace(cell, **change)))
        own = [row for row, one in enumerate(fit.evidence.cells) if one == cell]
        for side in ("down", "up"):  # an interval over the networks measured, not its multiple
            assert (getattr(other, side) * strange[own]
                    >= getattr(measured, side) * known[own] - 1e-12).all()


def deviations(fit, cell: Cell) -> np.ndarray:
    """Stated standard deviation of every row of a fit, were it of a cell."""
    estimate = fit.estimate(cell)
    _, shares = log_total(fit.evidence.amounts, estimate.log)
    priced = np.einsum("ij,jk,ik->i", shares, estimate.covariance, shares)
    return np.sqrt(priced + total_error(fit))


def test_a_stranger_reaches_as_far_as_an_unmeasured_release_of_a_known_board(fit) -> None:
    left_out = leave_out_closely(fit, fit.evidence.networks)
    known = replace(fit.evidence.cells[0], release=5.0)
    unseen_entry = Cell(board="", core="core0", library="lib", release=5.0)
    theirs, ours = (choose_band(fit, left_out, cell, BOARDS) for cell in (known, unseen_entry))
    wide, near = deviations(fit, unseen_entry), deviations(fit, known)
    assert (ours.down * wide >= theirs.down * near - 1e-12).all()
    assert (ours.up * wide >= theirs.up * near - 1e-12).all()


@pytest.mark.parametrize("path", [path for path in list_shipped() if path.stem != UNMEASURED],
                         ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_twin_of_a_shipped_board_is_no_surer(path) -> None:
    """The same machine under a name nobody measured: never a narrower interval, either side."""
    entries = read_overlay(path).entries
    chosen = {bool(entry.time.rows): entry for entry in entries}  # one measured, one that was not
    for entry in chosen.values():
        known = deploy("kws", entry.board, runtime=entry.runtime)
        twin_of_it = replace(known, board=replace(known.board, name="twin_of_it"))
        one, other = predict_calibrated(known), predict_calibrated(twin_of_it)
        assert other.certainty.basis == "model-based"
        for name in ("time_us", "energy_uj"):
            value, interval = getattr(one, name), getattr(one.certainty, name)
            far, wide = getattr(other, name), getattr(other.certainty, name)
            if interval is not None and wide is not None:
                assert far / wide.low >= value / interval.low
                assert wide.high / far >= interval.high / value


def test_prices_are_borrowed_from_releases_of_the_board_or_boards_of_the_core(fit) -> None:
    cells = tuple(dict.fromkeys(fit.evidence.cells))
    again = replace(cells[0], release=5.0)
    assert bands._source_cells(again, cells) == (cells[0],)
    assert bands._source_cells(replace(again, board="new"), cells) == tuple(
        replace(one, release=5.0) for one in cells if one.core == cells[0].core)
    assert bands._source_cells(replace(again, library="other"), cells) == cells
    built = replace(again, board="new", option="time")  # not the option of what is borrowed from
    assert {one.option for one in bands._source_cells(built, cells)} == {"time"}


def test_powers_of_a_known_board_are_held_to_firmwares_and_of_a_stranger_to_boards(
        fit, monkeypatch) -> None:
    left_out, cells = leave_out_closely(fit, fit.evidence.networks), fit.evidence.cells
    assert choose_power_band(fit, left_out, cells[0]) == choose_band(
        fit, left_out, cells[0], BOARDS)
    asked = []

    def leave_out(fit, keys):
        asked.append(tuple(keys))
        return leave_out_closely(fit, keys)

    monkeypatch.setattr(bands, "leave_out_closely", leave_out)
    bare = replace(cells[0], library="")
    choose_power_band(fit, left_out, bare)
    assert asked == [cells]
    choose_power_band(fit, left_out, replace(bare, board="new"))
    assert asked[1] == tuple(one.board for one in cells) and set(asked[2:]) == {cells}


def test_the_band_of_a_product_reaches_the_root_of_the_squares_of_its_factors() -> None:
    time = Band(down=1.0, up=3.0, level=0.9, basis="conformal", count=9)
    power = Band(down=2.0, up=1.0, level=0.9, basis="model-based", count=4)
    joined = join_bands(time, 0.3, power, 0.4)
    assert joined == Band(down=pytest.approx(np.hypot(0.3, 0.8) / 0.5),
                          up=pytest.approx(np.hypot(0.9, 0.4) / 0.5), level=0.9,
                          basis="model-based", count=4)
    assert join_bands(time, 0.0, power, 0.0).up == 3.0
