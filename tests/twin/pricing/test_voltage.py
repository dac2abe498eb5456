"""What-ifs of the clock take the lowest voltage scale and say what it saves."""

from __future__ import annotations

from dataclasses import replace

import pytest

import twin
from calibration.datasets import published_rows
from hwmodels.quantities import format_energy
from twin.attribution.diagnosis.fault_list import list_faults
from twin.attribution.diagnosis.setup import redeploy
from twin.attribution.published import build_published, deploy_row
from twin.deployment.deploy import deploy
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.document import to_document
from twin.pricing.inference import predict
from twin.reports.documents import write_json

SLOW = {"clocks.cpu.frequency_hz": "24MHz"}


@pytest.fixture(scope="module")
def slow():
    return predict_calibrated(deploy("kws", "nucleo_l4r5zi", clock_hz=24e6))


def test_energy_falls_with_the_clock_and_its_scale(slow):
    """Without leakage to speak of, E ~ V^2: range 2 at 1.0 V beside boost at 1.28 V."""
    own = predict_calibrated(deploy("kws", "nucleo_l4r5zi"))
    assert slow.energy_uj < own.energy_uj
    kept = predict_calibrated(slow.deployment.replace({"supply.voltage_scale": "range1_boost"}))
    assert not kept.voltage and kept.energy_uj > own.energy_uj
    saved = 100 * (1 - slow.energy_uj / kept.energy_uj)
    assert slow.voltage.startswith("range2, the lowest scale that allows 24 MHz: saves "
                                   f"{saved:.0f} % of the {format_energy(kept.energy_uj)} ")
    assert "wait states of flash 2 instead of 1" in slow.voltage


def test_option_and_path_agree(slow):
    changed = twin.what_if(deploy("kws", "nucleo_l4r5zi"), SLOW).after
    assert changed.bill == slow.bill and changed.voltage == slow.voltage
    assert write_json(changed) == write_json(slow)
    assert to_document(slow)["supply"] == {
        "voltage_v": 1.8, "regulator": "ldo", "voltage_scale": "range2", "note": slow.voltage}


def test_a_scale_once_told_is_kept():
    deployment = deploy("kws", "nucleo_l4r5zi").replace({"supply.voltage_scale": "range1_boost"})
    changed = deployment.replace(SLOW)
    assert changed.board.power.voltage_scale == "range1_boost" and changed.own_scale is None


def test_back_at_its_own_clock_the_board_is_its_own():
    slow = deploy("kws", "nucleo_l4r5zi", clock_hz=24e6)
    assert slow.own_scale == "range1_boost"
    slower = slow.replace({"clocks.cpu.frequency_hz": "60MHz"})
    assert (slower.board.power.voltage_scale, slower.own_scale) == ("range1", "range1_boost")
    back = slower.replace({"clocks.cpu.frequency_hz": "120MHz"})
    assert (back.board.power.voltage_scale, back.own_scale) == ("range1_boost", None)


def test_a_board_without_a_table_says_nothing():
    deployment = deploy("kws", "rpi_pico", clock_hz=48e6)
    assert deployment.own_scale is None and not predict_calibrated(deployment).voltage


def test_what_was_published_or_measured_keeps_the_scale_of_the_board(slow):
    row = next(row for row in published_rows() if row.board == "nucleo_l4r5zi" and row.clock_hz
               and row.model == "kws")
    placed = deploy_row(replace(row, clock_hz=24e6), build_published("kws"))
    assert placed.board.power.voltage_scale == "range1_boost" and placed.own_scale is None
    faults = list_faults(deploy("kws", "nucleo_l4r5zi"), 24e6)
    clock = next(fault.deployment for fault in faults if fault.kind == "clock")
    assert clock.board.power.voltage_scale == "range1_boost"
    again = predict(redeploy(to_document(slow)))
    assert again.deployment.board.power == slow.deployment.board.power


def test_where_no_wait_state_moves_the_time_is_not_named():
    slowest = predict_calibrated(deploy("ad", "nucleo_l4r5zi", clock_hz=6e6))
    assert slowest.voltage.endswith(" of the board's own range1_boost")
