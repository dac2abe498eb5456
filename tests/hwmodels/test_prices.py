"""Prices: unit algebra by hand, the two regulators, and what follows from geometry."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hwmodels.board.facts import EventPrice, Power
from hwmodels.board.file import change_board, list_boards, load_board
from hwmodels.core.file import load_core
from hwmodels.counts import EVENTS, ISSUE_EVENTS, Prices
from hwmodels.errors import BoardError
from hwmodels.prices import (
    clock_tree_pj,
    derive_prices,
    issue_pj,
    leakage_pj,
    line_wait_cycles,
    rail_mw_per_ma,
    refill_cycles,
    stall_pj,
)

UNIT = Power(voltage_v=1.0, reference_voltage_v=1.0, regulator="ldo", leakage_ma=1.0,
             clock_tree_ma_per_mhz=1.0, activity_ma_per_mhz=1.0, reference_ipc=1.0,
             stall_share=0.5)


def test_units_by_hand():
    """1 mA/MHz at 1 V is 1e-3 A / 1e6 Hz x 1 V = 1 nJ = 1000 pJ a cycle; 1 mA at 1 V, 1 pJ/ns."""
    assert clock_tree_pj(UNIT) == 1000
    assert issue_pj(UNIT) == 1000
    assert stall_pj(UNIT) == 500
    assert leakage_pj(UNIT) == 1


def test_slots_and_stalls_of_the_reference_code_add_up_to_its_current():
    """At 0.8 instructions a cycle: 0.8 slots and 0.2 stalled cycles cost the mean activity."""
    power = replace(UNIT, reference_ipc=0.8)
    assert 0.8 * issue_pj(power) + 0.2 * stall_pj(power) == pytest.approx(1000)
    dual = replace(UNIT, reference_ipc=1.25)  # more than one a cycle: no stall is implied
    assert 1.25 * issue_pj(dual) == pytest.approx(1000)


def test_energy_on_an_ldo_follows_the_supply():
    power = replace(UNIT, voltage_v=3.0)
    assert clock_tree_pj(power) == 3000
    assert clock_tree_pj(replace(power, voltage_v=1.8)) == pytest.approx(1800)


def test_energy_on_an_smps_does_not_follow_the_supply():
    """Power is conserved: the current falls as V_ref / V, so energy stays."""
    power = replace(UNIT, regulator="smps", reference_voltage_v=3.3)
    energies = [clock_tree_pj(replace(power, voltage_v=volts)) for volts in (1.8, 3.0, 3.3)]
    assert energies == [3300] * 3
    worse = replace(power, efficiency=0.8, reference_efficiency=0.9)
    assert clock_tree_pj(worse) == pytest.approx(3300 * 0.9 / 0.8)


def test_charge_passes_from_one_regulator_to_the_other():
    """E = Q V_core / eff on the SMPS, Q V on the LDO, with the same charge Q."""
    ldo = replace(UNIT, voltage_v=3.0, core_voltage_v=1.2, efficiency=0.8,
                  reference_regulator="ldo")
    smps = replace(ldo, regulator="smps")
    assert rail_mw_per_ma(ldo) == 3.0
    assert rail_mw_per_ma(smps) == pytest.approx(1.2 / 0.8)
    # back again: 1 mA at 3 V through an 80 % SMPS is 2.4 mW at 1.2 V, a charge of 2 mA
    back = replace(UNIT, voltage_v=3.0, reference_voltage_v=3.0, reference_regulator="smps",
                   reference_efficiency=0.8, core_voltage_v=1.2, regulator="ldo")
    assert rail_mw_per_ma(back) == pytest.approx(6.0)
    for missing in ("core_voltage_v", "efficiency"):
        assert rail_mw_per_ma(replace(smps, **{missing: None})) is None


@pytest.mark.parametrize(("overrides", "datasheet_mw"), [
    ({}, 10.5 * 1.8),                                                  # table 44, SMPS 1.8 V
    ({"supply.voltage_v": "3.0V"}, 7.15 * 3.0),                        # table 44, SMPS 3 V
    ({"supply.regulator": "ldo", "supply.voltage_v": 3.3}, 13.5 * 3.3),  # table 38, LDO
    ({"supply.voltage_scale": "range2", "clocks.cpu.frequency_hz": "110MHz",
      "supply.regulator": "ldo", "supply.voltage_v": 3.0}, 8.8 * 3.0),
])
def test_u575_draws_what_its_datasheet_says(overrides, datasheet_mw):
    """Static + clock tree + mean activity against STM32U585 run currents, peripherals off."""
    board = load_board("nucleo_u575zi_q", overrides=overrides)
    power, mhz = board.power, board.clock("cpu").frequency_hz / 1e6
    volts = rail_mw_per_ma(power)
    assert power.activity_ma_per_mhz is not None and volts is not None
    dynamic = power.clock_tree_ma_per_mhz + power.activity_ma_per_mhz
    assert volts * (power.leakage_ma + mhz * dynamic) == pytest.approx(datasheet_mw, rel=0.03)


def test_h7a3_draws_twice_as_much_through_its_ldo():
    """About 34 mA through the SMPS and 70 mA through the LDO at 280 MHz (DS13195 table 37)."""
    for overrides, ma, volts in (({"supply.voltage_v": "3.3V"}, 34, 3.3),
                                 ({"supply.regulator": "ldo"}, 70, 3.0)):
        power = load_board("nucleo_h7a3zi_q", overrides=overrides).power
        dynamic = power.clock_tree_ma_per_mhz + power.activity_ma_per_mhz
        assert rail_mw_per_ma(power) * (power.leakage_ma + 280 * dynamic) == pytest.approx(
            ma * volts, rel=0.05)


def test_h723_off_cache_charge_is_that_of_the_datasheet():
    """CoreMark from flash, caches off: 3.01 times slower at 99 mA instead of 145 (table 23)."""
    power = load_board("nucleo_h723zg").power
    tree, mean = 36 / 550, (145 - 36) / 550  # mA/MHz
    slowdown = 2778 / 923
    charge = mean * (1 + (slowdown - 1) * power.stall_share) + slowdown * tree
    assert charge * 550 / slowdown == pytest.approx(99, rel=0.03)


def test_refill_by_hand():
    """H7A3 flash: 8-cycle reads, 6 wait states, two 16-byte array reads, 8-byte beats.

    7 + (2 x 7 + 2 - 2) = 21, of which 10 = 7 + 3 remain without wait states; SRAM 7 + 3.
    """
    board = load_board("nucleo_h7a3zi_q")
    flash, sram = board.memory("flash"), board.memory("sram")
    assert refill_cycles(board, flash, 32) == 21
    assert line_wait_cycles(board, flash, 32) == 11
    assert refill_cycles(board, sram, 32) == 10
    prices = derive_prices(board)
    assert prices.price("icache_refill", "flash").cycles == 21
    assert prices.price("dcache_read_refill", "flash").cycles == 10
    assert prices.price("write_back", "sram").cycles == 7 + 4


def test_slow_memories_cost_more_core_cycles():
    """H723's AXI runs at half the core clock: 2 x (4 + 3 beats)."""
    assert refill_cycles(load_board("nucleo_h723zg"),
                         load_board("nucleo_h723zg").memory("sram"), 32) == 14
    # RP2040: an 8-byte line at 4 bits a cycle of half the clock, 12 cycles of address and dummies
    pico = load_board("rpi_pico")
    assert refill_cycles(pico, pico.memory("flash"), 8) == 2 * (12 + 16 - 1)


@pytest.mark.parametrize("name", ["nucleo_l4r5zi", "nucleo_h7a3zi_q", "nucleo_u575zi_q"])
def test_more_wait_states_never_cost_less(name):
    board = load_board(name)
    least = board.memory("flash").wait_states
    costs = []
    for extra in range(4):
        slower = change_board(board, {"memories.flash.wait_states": least + extra})
        costs.append(derive_prices(slower).price("icache_refill", "flash").cycles)
    assert costs == sorted(costs) and costs[0] < costs[-1]


def test_array_reads_are_paid_by_refills():
    """F401: one 128-bit read of 700 pC at 3.3 V, beside two waiting cycles."""
    board = load_board("nucleo_f401re")
    refill = derive_prices(board).price("icache_refill", "flash")
    assert refill.cycles == 2
    assert refill.pj == pytest.approx(2 * stall_pj(board.power) + 700 * 3.3)


@pytest.mark.parametrize("name", list_boards())
def test_every_event_has_a_price_in_core_cycles(name):
    board = load_board(name)
    assert load_core(board.core.model)
    prices = Prices({key: price for key, price in derive_prices(board).table.items()
                     if not key[0].startswith("npu_")})
    known = board.power.activity_ma_per_mhz is not None
    priced = {event for event, _ in prices.table}
    core_events = {event for event in EVENTS if not event.startswith("npu_")}
    assert core_events - priced <= {"icache_refill", "dcache_read_refill", "dcache_write_refill",
                                    "write_back"}
    for price in prices.table.values():
        assert price.clock == board.core.clock and price.cycles >= 0 and price.source
        assert (price.pj is not None) == known
    for event in ISSUE_EVENTS:
        assert prices.price(event, "").cycles == 1
    for event in ("clock_tree", "leakage"):
        assert prices.price(event, "").cycles == 0


def test_a_board_file_may_state_a_price():
    """5 cycles of a clock at half the core's are 10 of the core's."""
    board = load_board("nucleo_h723zg")
    stated = EventPrice(event="write_back", place="sram", cycles=5, clock="axi", pj=7.0)
    price = derive_prices(replace(board, prices=(stated,))).price("write_back", "sram")
    assert (price.cycles, price.pj, price.clock) == (10, 7.0, "cpu")
    kept = replace(stated, cycles=None)
    assert derive_prices(replace(board, prices=(kept,))).price("write_back", "sram").cycles == (
        derive_prices(board).price("write_back", "sram").cycles)


def test_a_stated_price_without_a_place_holds_everywhere():
    board = load_board("nucleo_h7a3zi_q")
    stated = EventPrice(event="write_back", place="", cycles=3, clock="cpu", pj=None)
    prices = derive_prices(replace(board, prices=(stated,)))
    assert {prices.price("write_back", place).cycles for place in ("sram", "flash")} == {3}
    assert prices.price("write_back", "sram").pj == derive_prices(board).price(
        "write_back", "sram").pj
    nothing = EventPrice(event="write_back", place="dtcm", cycles=None, clock="cpu", pj=None)
    with pytest.raises(BoardError, match="nothing to derive it from"):
        derive_prices(replace(board, prices=(nothing,)))
