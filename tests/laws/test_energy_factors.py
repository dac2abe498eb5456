"""What networks draw beside their board's file: a fact of the board, never of the library."""

import math

import numpy as np
import pytest

import twin
from calibration.datasets import published_rows
from calibration.fitting.bands import choose_power_band
from calibration.fitting.cell import Cell, known_power, locate_power
from calibration.fitting.overlay import read_shipped
from calibration.fitting.prices import Evidence
from calibration.fitting.spread import fit_pooled
from twin.learning.overlays import ENERGY_SPREAD, stated_sds
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.calibration import choose_calibration
from twin.pricing.price_names import ENERGY_PRICES
from twin.studies.duty import current_paths

UNMEASURED = ("tflm-cmsis-nn@2026", "cmsis-nn@6.0", "tflm-reference@2026", "unknown@any")
CLASS = Cell(board="", core="smps", library="", release=0.0)


def make_evidence(logs: dict[str, float], stated: dict[str, float], rows: int = 6) -> Evidence:
    """Rows of boards, all with one firmware and an SMPS, whose powers are a factor off."""
    rng = np.random.default_rng(7)
    boards = [board for board in logs for _ in range(rows)]
    amounts = rng.dirichlet((60, 3, 5, 25, 7), len(boards)) * 1e9
    measured = amounts.sum(axis=1) * np.exp([logs[board] for board in boards])
    return Evidence(
        names=ENERGY_PRICES, amounts=amounts,
        measured=measured * np.exp(rng.normal(0, 0.02, len(boards))),
        cells=tuple(locate_power(board, "smps", "x-cube-ai@9.0.0", stated[board])
                    for board in boards),
        networks=tuple(f"net{row % rows}" for row in range(len(boards))),
        labels=tuple(f"row{row}" for row in range(len(boards))))


def fit_powers(logs: dict[str, float], stated: dict[str, float]):
    return fit_pooled(make_evidence(logs, stated), stated_sds()[1], ENERGY_SPREAD)


@pytest.mark.parametrize("board", ["rpi_pico2", "nrf52840dk", "nucleo_l4r5zi", "stm32h747i_disco"])
def test_a_board_has_one_factor_whatever_library_runs(board: str) -> None:
    logs = {tuple(choose_calibration(twin.deploy("kws", board, runtime=name)).energy.log)
            for name in UNMEASURED}
    assert len(logs) == 1
    assert min(logs)[0] > 0


@pytest.mark.parametrize(("name", "board"), [
    ("x-cube-ai@7.1.0", "nucleo_h723zg"), ("tflm-cmsis-nn@2.3.1", "nrf52840dk"),
    ("microtvm@2022", "nrf52840dk")])
def test_a_firmware_measured_elsewhere_is_no_fact_of_another_board(name: str, board: str) -> None:
    """7.1.0's projects and Zephyr drew more on the boards they were measured on."""
    there, other = (choose_calibration(twin.deploy("kws", board, runtime=one))
                    for one in (name, UNMEASURED[0]))
    assert there.energy.log.tolist() == other.energy.log.tolist()


@pytest.mark.parametrize("board", ["nucleo_u575zi_q", "rpi_pico2", "nucleo_h7a3zi_q"])
def test_ones_own_current_is_used_as_typed(board: str) -> None:
    """Current per megahertz times clock, supply and time, as one works it out by hand."""
    for runtime in ("microtvm@2022", "tflm-cmsis-nn@2026", "firmware@O2"):
        deployment = twin.deploy("ad", board, runtime=runtime)
        own = deployment.replace(current_paths(deployment.board, 0.19))
        made = predict_calibrated(own)
        by_hand_uj = 0.19 * made.cycles * deployment.board.power.voltage_v * 1e-3
        assert made.energy_uj == pytest.approx(by_hand_uj, rel=1e-6)
        assert made.certainty.energy_uj.holds(made.energy_uj)
        assert any("no learnt factor" in warning for warning in made.warnings)
        stated = predict_calibrated(own, calibration="none")
        assert stated.energy_uj / stated.cycles == pytest.approx(made.energy_uj / made.cycles)


def test_planted_factors_of_boards_are_found() -> None:
    logs = dict(one=0.3, two=0.1, three=0.55)
    fit = fit_powers(logs, dict.fromkeys(logs, 0.2))
    for board, log in logs.items():
        power = known_power(locate_power(board, "smps", "another@1", 0.2), fit.evidence.cells)
        assert power.board == board and not power.library
        found = fit.estimate(power)
        assert found.log[0] == pytest.approx(log, abs=0.08)
    between = fit.estimate(CLASS).log[0]
    assert min(logs.values()) < between < max(logs.values())


def test_a_board_whose_file_is_a_headline_teaches_others_less() -> None:
    logs = dict(sure=0.2, headline=0.8)
    even = fit_powers(logs, dict(sure=0.2, headline=0.2)).estimate(CLASS).log[0]
    known = fit_powers(logs, dict(sure=0.02, headline=0.4)).estimate(CLASS).log[0]
    assert 0 < known < even - 0.05


def test_a_regulator_without_data_is_nearer_to_one_and_less_sure() -> None:
    fit = fit_powers(dict(one=0.5, two=0.5), dict(one=0.1, two=0.1))
    known, other = fit.estimate(CLASS), fit.estimate(Cell(
        board="", core="ldo", library="", release=0.0))
    assert 0 < other.log[0] < known.log[0] < 0.5
    assert other.covariance[0, 0] > known.covariance[0, 0]
    one = fit.estimate(fit.evidence.cells[0])
    assert one.covariance[0, 0] < known.covariance[0, 0]


def test_without_data_the_factor_is_one() -> None:
    """Data without a deviation from what is stated, and no data at all."""
    fit = fit_powers(dict(one=0.0, two=0.0), dict(one=0.1, two=0.1))
    assert fit.estimate(CLASS).log == pytest.approx(np.zeros(5), abs=0.06)
    assert fit.prior.mean.tolist() == [0.0] * 5
    assert math.sqrt(fit.prior.of(0.3)[0, 0]) > 0.4


def test_intervals_of_strangers_reach_as_far_as_those_of_what_they_borrow_from() -> None:
    fit = fit_powers(dict(one=0.3, two=0.1, three=0.5), dict(one=0.1, two=0.1, three=0.1))
    share = np.array([0.6, 0.03, 0.05, 0.25, 0.07])
    reach = []
    for cell in (Cell(board="one", core="smps", library="", release=0.0, stated_sd=0.1), CLASS):
        deviation = math.sqrt(share @ fit.estimate(cell).covariance @ share)
        reach.append(choose_power_band(fit, None, cell).up * deviation)
    assert reach[1] >= reach[0] > 0


def test_what_is_shipped_of_powers_is_by_board_and_regulator() -> None:
    powers = read_shipped("", "").powers
    assert {"smps", "ldo", ""} < set(powers)
    assert set(powers) - {"smps", "ldo", ""} == {
        row.board for row in published_rows(use="fit") if row.judges_energy and row.board}
