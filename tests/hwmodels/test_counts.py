"""Counts, prices and bills added, merged, scaled and rounded: by hand, on lines made up here."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodels.counts import (
    CAUSES,
    EVENTS,
    ISSUE_EVENTS,
    Bill,
    BillLine,
    CountLine,
    Counts,
    Price,
    Prices,
    make_bill,
    merge_bills,
    merge_counts,
)
from hwmodels.errors import KernelError
from hwmodels.quantities import apportion


def count(event: str, occurred: float, exposed: float, place: str = "",
          operand: str = "") -> CountLine:
    return CountLine(event=event, place=place, operand=operand, occurred=occurred,
                     exposed=exposed)


def price(event: str, cycles: float, pj: float | None, place: str = "",
          clock: str = "cpu") -> Price:
    return Price(event=event, place=place, cycles=cycles, clock=clock, pj=pj, kind="measured",
                 source="made", rel_sd=0.1)


def line(event: str, cycles: float, pj: float | None, place: str = "", operand: str = "",
         clock: str = "cpu") -> BillLine:
    return BillLine(event=event, place=place, operand=operand, clock=clock, occurred=2.0,
                    exposed=1.0, cycles=cycles, energy_pj=pj)


def prices(*entries: Price) -> Prices:
    return Prices({(one.event, one.place): one for one in entries})


def test_events_know_themselves():
    for name, event in EVENTS.items():
        assert event.name == name and event.cause in CAUSES
        assert event.unit and event.description
    assert ISSUE_EVENTS == ("mac_issue", "mac_waste_issue", "alu_issue", "load_issue",
                            "store_issue", "branch_issue", "copy_issue", "call_issue",
                            "decode_issue")


@pytest.mark.parametrize(("event", "occurred", "exposed", "message"), [
    ("no_such", 1, 1, "event 'no_such' is not known"),
    ("alu_issue", -1, 0, "event 'alu_issue': negative count"),
    ("alu_issue", 0, -1, "event 'alu_issue': negative count"),
    ("alu_issue", float("nan"), 0, "negative count")])
def test_a_count_is_of_an_event_and_not_negative(event, occurred, exposed, message):
    with pytest.raises(KernelError, match=message):
        count(event, occurred, exposed)
    count("alu_issue", 0, 0)


def test_counts_of_one_event_place_and_operand_are_one_line():
    first = Counts((count("flash_wait", 3, 1, "flash", "weights"), count("alu_issue", 5, 5)))
    second = Counts((count("flash_wait", 4, 2, "flash", "weights"),
                     count("flash_wait", 7, 7, "flash", "bias"),
                     count("flash_wait", 9, 9, "other", "bias"),
                     count("mac_issue", 1, 1)))
    merged = (
        count("mac_issue", 1, 1), count("alu_issue", 5, 5), count("flash_wait", 7, 7, "flash",
                                                                  "bias"),
        count("flash_wait", 7, 3, "flash", "weights"), count("flash_wait", 9, 9, "other", "bias"))
    whole = merge_counts([first, second])
    assert whole.lines == merged
    # In the order of EVENTS, then of place, then of operand, whatever came first.
    assert merge_counts([second, first]).lines == merged
    assert whole.occurred("flash_wait") == 23
    assert whole.occurred("load_issue") == 0
    lone = count("alu_issue", 5, 5)
    assert merge_counts([Counts((lone,))]).lines[0] is lone


def test_a_price_at_a_place_goes_before_the_one_of_everywhere():
    table = prices(price("flash_wait", 1, 10), price("flash_wait", 2, 20, "slow"))
    assert table.price("flash_wait", "slow").cycles == 2
    assert table.price("flash_wait", "fast").cycles == 1
    with pytest.raises(KernelError, match="no price for event 'alu_issue' at 'core'"):
        table.price("alu_issue", "core")


def test_scaled_prices_change_their_events_alone():
    table = prices(price("alu_issue", 1, 10), price("mac_issue", 1, None, "copying"),
                   price("flash_wait", 3, 30, "flash"))
    assert table.scaled(("alu_issue",), 1.0) is table
    half = table.scaled(iter(("alu_issue", "mac_issue")), 0.5)
    assert half.table == {
        ("alu_issue", ""): Price(event="alu_issue", place="", cycles=0.5, clock="cpu", pj=5.0,
                                 kind="assumed", source="made", rel_sd=0.1),
        ("mac_issue", "copying"): Price(event="mac_issue", place="copying", cycles=0.5,
                                        clock="cpu", pj=None, kind="assumed", source="made",
                                        rel_sd=0.1),
        ("flash_wait", "flash"): table.price("flash_wait", "flash")}


def test_a_bill_is_counts_times_prices_line_by_line():
    counts = Counts((count("flash_wait", 5, 3, "flash", "weights"), count("leakage", 7, 0)))
    bill = make_bill(counts, prices(price("flash_wait", 2, 10, clock="axi"),
                                    price("leakage", 0, None)))
    assert bill.lines == (
        BillLine(event="flash_wait", place="flash", operand="weights", clock="axi", occurred=5,
                 exposed=3, cycles=6, energy_pj=50),
        BillLine(event="leakage", place="", operand="", clock="cpu", occurred=7, exposed=0,
                 cycles=0, energy_pj=None))
    assert [one.cause for one in bill.lines] == ["flash_wait", "idle"]


def test_totals_are_of_a_clock_and_of_a_cause():
    bill = Bill((line("leakage", 0, 5), line("alu_issue", 2, 20), line("mac_issue", 3, 30),
                 line("npu_mac_cycle", 7, 0, clock="npu")))
    assert (bill.cycles("cpu"), bill.cycles("npu"), bill.cycles("axi")) == (5, 7, 0)
    assert (bill.cycles("cpu", "mac"), bill.cycles("npu", "mac")) == (3, 7)
    assert bill.energy_pj() == 55 and bill.energy_pj("alu") == 20
    assert bill.energy_pj("branch") == 0
    assert bill.clocks() == ("cpu", "npu")
    assert bill.causes() == ("mac", "alu", "idle")
    unknown = Bill((*bill.lines, line("flash_wait", 1, None)))
    assert unknown.energy_pj() is None and unknown.energy_pj("flash_wait") is None
    assert unknown.energy_pj("alu") == 20


def test_bills_add_line_by_line():
    first = Bill((line("flash_wait", 2, 20, "flash", "weights"), line("alu_issue", 1, 10)))
    second = Bill((line("flash_wait", 3, 30, "flash", "weights"),
                   line("flash_wait", 4, 40, "flash", "bias"),
                   line("flash_wait", 5, 50, "other", "weights"),
                   line("flash_wait", 6, 60, "flash", "weights", clock="axi"),
                   line("alu_issue", 1, None)))
    whole = merge_bills([first, second])
    assert whole == merge_bills([second, first])
    assert whole.lines == (
        BillLine(event="alu_issue", place="", operand="", clock="cpu", occurred=4, exposed=2,
                 cycles=2, energy_pj=None),
        line("flash_wait", 4, 40, "flash", "bias"),
        line("flash_wait", 6, 60, "flash", "weights", clock="axi"),
        BillLine(event="flash_wait", place="flash", operand="weights", clock="cpu", occurred=4,
                 exposed=2, cycles=5, energy_pj=50),
        line("flash_wait", 5, 50, "other", "weights"))
    alone = line("alu_issue", 1, 10)
    assert merge_bills([Bill((alone,))]).lines == (alone,)


@pytest.mark.parametrize(("values", "total", "parts"), [
    ([1.4, 1.4, 1.4], None, [2, 1, 1]),        # 4.2: the first of equals takes what is left
    ([0.2, 1.9, 1.9], None, [0, 2, 2]),        # largest remainders first
    ([1.9, 0.2, 0.9], None, [2, 0, 1]),
    ([2.0, 3.0], None, [2, 3]),
    ([0.5, 0.5], 5, [3, 2]),                   # more than a round: again from the first
    ([0.0, 1.0], 4, [2, 2]),
    ([3.0, 3.5], 5, [2, 3]),                   # less than the whole parts: the least loses most
    ([3.0, 3.0], 5, [2, 3]),
    ([5.0, 1.0], 1, [1, 0]), ([5.0, 1.0], 0, [0, 0]),    # nothing goes below zero
    ([1.5, 1.5], 2, [1, 1]), ([], None, []), ([], 3, []), ([2.5], None, [2])])
def test_values_are_rounded_so_that_they_sum(values, total, parts):
    assert apportion(values, total) == parts
    assert apportion(iter(values), total) == parts


def test_a_negative_total_is_refused():
    with pytest.raises(ValueError, match="sum to -1"):
        apportion([5.0, 1.0], -1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=8), st.integers(-9, 20))
def test_any_total_is_reached(values, more):
    total = max(0, int(sum(values)) + more)
    parts = apportion(values, total)
    assert sum(parts) == total and len(parts) == len(values) and min(parts) >= 0
    assert sum(apportion(values)) == pytest.approx(sum(values), abs=0.5 + 1e-6)


def test_scaled_prices_move_cycles_and_known_energy_only():
    table = {(event, ""): Price(event=event, cycles=cycles, clock="cpu", pj=pj, kind="assumed",
                                source="made")
             for event, cycles, pj in (("alu_issue", 2, 10), ("branch_issue", 3, None),
                                       ("mac_issue", 1, 4))}
    scaled = Prices(table).scaled(("alu_issue", "branch_issue"), 1.5)
    alu, branch, mac = (scaled.price(event, "") for event in
                        ("alu_issue", "branch_issue", "mac_issue"))
    assert (alu.cycles, alu.pj) == (3, 15) and (mac.cycles, mac.pj) == (1, 4)
    assert branch.cycles == 4.5 and branch.pj is None  # not known stays not known
