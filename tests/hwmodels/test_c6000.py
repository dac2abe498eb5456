"""Listings of C6000 code: blocks packed from operations, with delay slots and calls."""

import pytest

from hwmodels.errors import KernelError
from tests.oracles.c6000_listing import read_listing, schedule_listing


def cycles_of(text):
    return schedule_listing(list(read_listing(text)))


def block(*lines, cycles=0):
    return "\n".join([f";          EXCLUSIVE CPU CYCLES: {cycles}", *lines])


def test_operations_of_different_units_share_a_cycle():
    text = block("           ADD     .L1     A1,A2,A3", "||         MPY     .M2     B1,B2,B3",
                 "           SUB     .L1     A3,1,A4")
    assert cycles_of(text + "\n" + block("           MV      .D2     B9,B8")) == [2, 1]


def test_bars_and_idle_cycles_are_not_read():
    lines = ["           LDW     .D1T1   *A4,A5", "           NOP             4",
             "           ADD     .L1     A5,1,A6"]
    assert cycles_of(block(*lines)) == cycles_of(block(lines[0], f"||{lines[2]}")) == [6]


def test_a_branch_has_five_delay_slots_which_hold_what_fits():
    work = [f"           ADD     .L1     A{n},1,A{n}" for n in (1, 2, 3)]
    branch = "           B       .S1     $C$L9"
    assert cycles_of(block(*work, branch)) == [6]
    assert cycles_of(block(branch, *[f"           ADD     .L1     A{n},1,A{n}"
                                     for n in range(1, 9)])) == [8]


def test_what_lands_later_is_waited_for_where_it_is_read():
    text = "\n".join([
        block("           LDW     .D1T1   *A4,A5", "   [ A0]   B       .S1     $C$L1"),
        block("           NOP             4"), "$C$L1:", block("           ADD     .L1  A5,1,A6")])
    assert cycles_of(text)[0] == 6


def test_calls_that_idle_stand_alone_and_before_a_return_all_lands():
    call = "           CALLP   .S2     f,B3"
    assert cycles_of(block("           MVK     .S1     4,A4", call,
                           "$C$RL1:    ; CALL OCCURS {f} {0}", "           MV  .L1  A4,A8")) == [7]
    assert cycles_of(block("           RET     .S2     B3", "           LDW  .D2T1  *B4,A10",
                           "           LDW     .D2T1   *B5,A11")) == [6]


def test_arguments_loaded_in_the_delay_slots_of_a_call_land_before_it():
    text = "\n".join([
        block("           CALL    .S1     f", *[f"           ADD     .L1     A{n},1,A{n}"
                                                 for n in range(5, 13)]),
        block("           LDW     .D1T1   *A10,A4", "           ADDKPC  .S2     $C$RL1,B3,4")])
    assert cycles_of(text) == [8, 5]


def test_cross_paths_are_held_by_one_operation_a_cycle():
    assert cycles_of(block("           MV      .L1X    B1,A1", "           MV  .S1X  B2,A2")) == [2]
    assert cycles_of(block("           MV      .L1X    B1,A1", "           MV  .L2X  A2,B2")) == [1]


def test_a_line_that_is_no_operation_is_refused():
    with pytest.raises(KernelError, match="line 2: '42 apples' is no operation"):
        cycles_of(block("  42 apples"))
