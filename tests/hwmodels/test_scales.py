"""Voltage scales: a changed clock takes the lowest that allows it, unless told another."""

from __future__ import annotations

import pytest

from hwmodels.board.file import change_board, list_boards, load_board
from hwmodels.errors import BoardError


def at(board, megahertz, **settings):
    clock = f"clocks.{board.core.clock}.frequency_hz"
    return change_board(board, {clock: f"{megahertz}MHz", **settings}, follow_clock=True)


@pytest.mark.parametrize(("name", "megahertz", "scale", "wait_states"), [
    ("nucleo_l4r5zi", 120, "range1_boost", 5),  # 20 MHz a wait state
    ("nucleo_l4r5zi", 80, "range1", 3),
    ("nucleo_l4r5zi", 26, "range2", 2),  # 8, 16, 26 MHz
    ("nucleo_h7a3zi_q", 226, "vos0", 5),
    ("nucleo_h7a3zi_q", 225, "vos1", 5),
    ("nucleo_h7a3zi_q", 88, "vos3", 3),  # 22 MHz a wait state
    ("nucleo_u575zi_q", 25, "range4", 3),  # 8, 16, 24, 25 MHz
    ("apollo510_evb", 96, "lp", 0),  # no currents at either scale
])
def test_the_lowest_scale_that_allows_a_clock(name, megahertz, scale, wait_states):
    board = load_board(name)
    changed = at(board, megahertz)
    assert changed.power.voltage_scale == scale
    if "flash" in {memory.name for memory in changed.memories}:
        assert changed.memory("flash").wait_states == wait_states
    again = change_board(board, {f"clocks.{board.core.clock}.frequency_hz": f"{megahertz}MHz",
                                 "supply.voltage_scale": scale})
    assert changed.power == again.power and changed.memories == again.memories


def test_nothing_is_taken_that_was_told_or_not_changed():
    board = load_board("nucleo_l4r5zi")
    told = at(board, 24, **{"supply.voltage_scale": "range1"})
    assert told.power.voltage_scale == "range1"
    assert change_board(board, {"clocks.cpu.frequency_hz": "24MHz"}).power == board.power
    slow = change_board(board, {"clocks.cpu.frequency_hz": "24MHz"})
    same = change_board(slow, {"memories.flash.prefetch": True}, follow_clock=True)
    assert same.power.voltage_scale == "range1_boost"
    assert at(slow, 24).power.voltage_scale == "range1_boost"  # it is 24 MHz already


def test_a_scale_whose_currents_nobody_states_is_left_out():
    """STM32F401: scale 3 reaches 60 MHz, the file has currents of scale 2 only."""
    assert at(load_board("nucleo_f401re"), 48).power.voltage_scale == "scale2"


def test_a_regulator_that_does_not_reach_a_scale_refuses_it():
    """STM32H747: 480 MHz need scale 0, which is the LDO's; the board runs on the SMPS."""
    board = load_board("stm32h747i_disco")
    with pytest.raises(BoardError, match="above what voltage scale vos1 allows"):
        at(board, 480)
    with pytest.raises(BoardError, match=r"240 MHz, or supply\.voltage_scale=high up to 370"):
        change_board(load_board("gap9evk"), {"clocks.fc.frequency_hz": "371MHz"})  # no scale does
    fast = at(board, 480, **{"supply.regulator": "ldo"})
    assert fast.power.voltage_scale == "vos0" and fast.memory("flash").wait_states == 2


@pytest.mark.parametrize("name", list_boards())
def test_a_board_without_scales_is_as_it_would_be(name):
    board = load_board(name)
    clock = board.clock(board.core.clock)
    half = {f"clocks.{clock.name}.frequency_hz": clock.frequency_hz / 2}
    kept, followed = change_board(board, half), change_board(board, half, follow_clock=True)
    if board.power.voltage_scale == "default":
        assert kept == followed
    assert followed.clocks[0].frequency_hz == clock.frequency_hz / 2


@pytest.mark.parametrize("known", [0, 1, 2])
def test_one_stated_efficiency_of_an_smps_gives_the_others(known):
    # STM32U585 datasheet, 160 MHz: SMPS currents at 1.8, 3.0 and 3.3 V beside the LDO's.
    stated = [[1.8, 0.857], [3.0, 0.755], [3.3, 0.733]]
    board = load_board("nucleo_u575zi_q")
    one = change_board(board, {"supply.efficiency_by_v": [stated[known]]})
    for volts, efficiency in stated:
        there = change_board(one, {"supply.voltage_v": volts}).power.efficiency
        assert there == pytest.approx(efficiency, abs=0.003)
