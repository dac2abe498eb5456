"""Prices: unit algebra by hand, the two regulators, and what follows from geometry."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_bills import LEDGER

from hwmodels.board.facts import EventPrice
from hwmodels.board.file import change_board, list_boards, load_board
from hwmodels.board.power import Power
from hwmodels.core.file import load_core
from hwmodels.counts import EVENTS, ISSUE_EVENTS, Price, Prices
from hwmodels.errors import BoardError
from hwmodels.paths.refill import uncached_cycles
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


def test_a_current_of_networks_is_drawn_in_every_cycle_where_it_is_known():
    board = load_board("nucleo_l4r5zi")
    for more, expected in (({}, 1000), ({"of_networks": True}, 2000),
                           ({"of_networks": True, "activity_ma_per_mhz": None}, 1000),
                           ({"of_networks": True, "clock_tree_ma_per_mhz": None}, None)):
        made = replace(board, power=replace(UNIT, **more))
        assert derive_prices(made).price("clock_tree", "").pj == expected


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

    Without a cache 7 + (2 x 7 + 2 - 2) = 21. A line filled shows 1 of the 7: 15, of which 4 = 1 + 3
    remain without wait states; SRAM 7 + 3.
    """
    board = load_board("nucleo_h7a3zi_q")
    flash, sram = board.memory("flash"), board.memory("sram")
    assert uncached_cycles(board, flash, 32) == 21
    assert refill_cycles(board, flash, 32) == 15
    assert line_wait_cycles(board, flash, 32) == 11
    assert refill_cycles(board, sram, 32) == uncached_cycles(board, sram, 32) == 10
    unblocked = change_board(board, {"memories.sram.latency.line_cycles": 3}).memory("sram")
    assert refill_cycles(board, unblocked, 32) == 2 + 3
    assert uncached_cycles(board, unblocked, 32) == 10
    prices = derive_prices(board)
    assert prices.price("icache_refill", "flash").cycles == 15
    assert prices.price("dcache_read_refill", "flash").cycles == 4
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


# What the ledger board's file says above its first key: cycles and pJ by event and place. A line
# of the flash is two array reads of 100 pJ, a waiting cycle 500 pJ, an issue slot 1000 pJ.
EVERYWHERE = {
    **dict.fromkeys(ISSUE_EVENTS, (1, 1000, "derived")),
    **dict.fromkeys(("branch_refill", "pipeline_stall", "fetch_wait", "sram_conflict",
                     "bus_contention", "dma_wait"), (1, 500, "derived")),
    **dict.fromkeys(("tcm_access", "sram_access", "dcache_access", "kernel_dispatch"),
                    (0, 0, "assumed")),
    "sleep": (1, 0, "derived"), "clock_tree": (0, 200, "derived"), "leakage": (0, 2, "derived"),
    "epoch_host_cycle": (1, 1000, "derived"), "cache_clean": (4, 4000, "assumed")}
SDRAM = 2 * ((18 + 2 / 32) / 0.99 - 1), 2 * (16 + 2 / 32) / 0.99  # read less its own cycle, written
AT_PLACES = {
    "flash_wait": dict.fromkeys(("tcm", "near", "ram", "flash", "psram", "sdram"), (1, 500)),
    "sram_wait": {"tcm": (0, 0), "near": (0, 0), "ram": (6, 3000), "flash": (4, 2000),
                  "psram": (18, 9000), "sdram": (4, 2000)},
    "write_through": {"tcm": (1, 500), "near": (1, 500), "ram": (8, 4000), "flash": (6, 3000),
                      "psram": (20, 10_000), "sdram": (6, 3000)},
    "external_wait": {"tcm": (0, 0), "near": (0, 0), "ram": (6, 3000), "flash": (14, 7000),
                      "psram": (24, 12_000), "sdram": (4, 2000)},
    "dma_byte": {"tcm": (0, 0), "near": (0, 0), "ram": (0, 0), "flash": (0, 6.25),
                 "psram": (0, 0), "sdram": (0, 0)},
    "icache_refill": {"ram": (12, 6000), "flash": (24, 12_200), "psram": (48, 24_000),
                      "sdram": (SDRAM[0], 500 * SDRAM[0]), "l2": (5, 2500)},
    "write_back": {"ram": (14, 7000), "flash": (12, 6000), "psram": (40, 20_000),
                   "sdram": (SDRAM[1], 500 * SDRAM[1]), "l2": (5, 2500)},
    "dcache_access": {"l2": (1, 2500)}}
AT_PLACES["dcache_read_refill"] = AT_PLACES["dcache_write_refill"] = {
    **AT_PLACES["icache_refill"], "flash": (10, 5200)}


def test_every_price_of_the_ledger_board_by_hand():
    table = derive_prices(change_board(LEDGER, {"caches.l2.enabled": True})).table
    expected = {(event, ""): price for event, price in EVERYWHERE.items()} | {
        (event, place): (*price, "derived") for event, places in AT_PLACES.items()
        for place, price in places.items()}
    assert set(table) == set(expected)
    for (event, place), (cycles, pj, kind) in expected.items():
        price = table[event, place]
        assert (price.event, price.place, price.clock, price.kind) == (event, place, "cpu", kind)
        assert (price.cycles, price.pj) == pytest.approx((cycles, pj)), (event, place)
        assert price.source and price.rel_sd is None


def test_a_second_level_that_is_off_has_no_price():
    assert not any(place == "l2" for _, place in derive_prices(LEDGER).table
                   if _ != "dcache_access")


def test_without_currents_there_are_cycles_and_no_joules():
    unknown = derive_prices(change_board(LEDGER, {
        "power.activity_ma_per_mhz.default": None, "power.clock_tree_ma_per_mhz.default": None,
        "power.leakage_ma.default": None}))
    known = derive_prices(LEDGER)
    assert set(unknown.table) == set(known.table)
    for key, price in unknown.table.items():
        assert price == replace(known.table[key], pj=None)


@pytest.mark.parametrize("place", ["ram", "flash"])
def test_a_stated_price_is_told_whole(place):
    stated = EventPrice(event="write_back", place=place, cycles=5, clock="axi", pj=7.0)
    table = derive_prices(replace(LEDGER, prices=(stated,))).table
    assert table["write_back", place] == Price(
        event="write_back", place=place, cycles=10.0, clock="cpu", pj=7.0, kind="assumed",
        source=f"prices.write_back@{place} of the board file")
    untouched = {key: price for key, price in derive_prices(LEDGER).table.items()
                 if key != ("write_back", place)}
    assert {key: table[key] for key in untouched} == untouched
    everywhere = EventPrice(event="branch_refill", place="", cycles=None, clock="cpu", pj=3.0)
    assert derive_prices(replace(LEDGER, prices=(everywhere,))).table["branch_refill", ""] == Price(
        event="branch_refill", place="", cycles=1.0, clock="cpu", pj=3.0, kind="assumed",
        source="prices.branch_refill of the board file")


def test_a_stated_place_takes_from_everywhere_what_it_leaves_open():
    stated = EventPrice(event="pipeline_stall", place="copying", cycles=None, clock="cpu", pj=None)
    assert derive_prices(replace(LEDGER, prices=(stated,))).price(
        "pipeline_stall", "copying") == Price(
            event="pipeline_stall", place="copying", cycles=1.0, clock="cpu", pj=500.0,
            kind="assumed", source="prices.pipeline_stall@copying of the board file")
    new = EventPrice(event="write_back", place="tcm", cycles=3, clock="cpu", pj=None)
    assert derive_prices(replace(LEDGER, prices=(new,))).price("write_back", "tcm").pj is None
    nothing = replace(new, cycles=None)
    with pytest.raises(BoardError, match=r"ledger:prices\.write_back@tcm\.cycles: nothing"):
        derive_prices(replace(LEDGER, prices=(nothing,)))


@pytest.mark.parametrize("missing", ["core_voltage_v", "reference_efficiency"])
def test_a_charge_that_came_through_an_smps_needs_what_it_went_through(missing):
    back = replace(UNIT, voltage_v=3.0, reference_regulator="smps", reference_efficiency=0.8,
                   core_voltage_v=1.2)
    assert rail_mw_per_ma(back) == pytest.approx(1.0 * 0.8 / 1.2 * 3.0)
    assert rail_mw_per_ma(replace(back, **{missing: None})) is None


@pytest.mark.parametrize("missing", ["efficiency", "reference_efficiency"])
def test_an_smps_of_unknown_efficiency_is_taken_as_at_the_reference(missing):
    power = replace(UNIT, regulator="smps", reference_voltage_v=3.3, efficiency=0.8,
                    reference_efficiency=0.9)
    assert rail_mw_per_ma(power) == pytest.approx(3.3 * 0.9 / 0.8)
    assert rail_mw_per_ma(replace(power, **{missing: None})) == 3.3


def test_what_is_not_known_leaves_its_price_unknown():
    assert stall_pj(replace(UNIT, stall_share=None)) is None
    assert stall_pj(replace(UNIT, activity_ma_per_mhz=None)) is None
    assert issue_pj(replace(UNIT, stall_share=None, reference_ipc=0.5)) == 2000
    assert issue_pj(replace(UNIT, reference_ipc=None)) is None
    assert issue_pj(replace(UNIT, activity_ma_per_mhz=None)) is None
    assert leakage_pj(replace(UNIT, leakage_ma=None)) is None
    assert clock_tree_pj(replace(UNIT, clock_tree_ma_per_mhz=None)) is None
    lost = replace(UNIT, regulator="smps", reference_regulator="ldo", efficiency=None)
    assert {leakage_pj(lost), clock_tree_pj(lost), stall_pj(lost), issue_pj(lost)} == {None}
