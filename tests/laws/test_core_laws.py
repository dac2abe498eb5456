"""Laws every core model keeps, whatever the block."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodels.core.file import load_core
from hwmodels.core.schedule import BlockTiming, PassTiming, count_block, schedule
from hwmodels.kernel import Block

THUMB = ("adds r0, r1", "subs r2, #1", "ands r3, r4", "lsrs r5, r6, #3", "ldr r0, [r1]",
         "ldrb r2, [r3, #1]", "str r4, [r5, #4]", "muls r6, r7", "movs r1, #7", "sxtb r2, r6")
DSP = (*THUMB, "smlad r8, r4, r5, r8", "mla r9, r0, r1, r9", "ldr r4, [r0], #4",
       "sxtb16 r5, r4, ror #8", "pkhbt r6, r5, r4, lsl #16", "eor r7, r6, r5, asr #2",
       "smull r0, r1, r2, r3", "ldm r10, {r0-r3}", "strd r4, r5, [r9, #8]", "ldr r7, [r6]")
MVE = (*DSP, "vldrb.s8 q0, [r0], #16", "vmladava.s8 r4, q0, q1", "vadd.i32 q2, q2, q0",
       "vqrdmulh.s32 q2, q2, q3", "vstrb.8 q2, [r1], #16", "vrshl.s32 q3, q2, q1")
RISCV = ("addi a0, a0, 1", "add a1, a0, a2", "lb a3, 0(a0)", "sb a3, 1(a1)", "mul a4, a3, a2",
         "srai a5, a4, 3", "mulh a6, a4, a5", "lw a7, 4(a0)")
PIE = (*RISCV, "ee.vld.128 q0, 0(a1)", "ee.vmulas.s8.accx q0, q1", "ee.vadds.s32 q2, q0, q1",
       "ee.vst.128 q2, 0(a2)", "ee.movi.32.a q2, a4")
POOLS = {"cortex-m0plus": THUMB, "cortex-m3": THUMB, "cortex-m4": DSP, "cortex-m33": DSP,
         "cortex-m7": DSP, "cortex-m55": MVE, "rv32imc": RISCV, "xtensa-lx7": PIE,
         "x86-64-generic": RISCV}
SINGLE_ISSUE = ("cortex-m0plus", "cortex-m3", "cortex-m4", "rv32imc", "xtensa-lx7")

blocks = st.sampled_from(sorted(POOLS)).flatmap(lambda core: st.tuples(
    st.just(core), st.lists(st.sampled_from(POOLS[core]), min_size=1, max_size=12)))


def passes(timed: BlockTiming) -> tuple[PassTiming, PassTiming]:
    return timed.steady, timed.single


@settings(max_examples=150)
@given(blocks)
def test_shares_and_stalls_sum_exactly(drawn: tuple[str, list[str]]) -> None:
    core, lines = drawn
    for one in passes(schedule("; ".join(lines), load_core(core))):
        assert sum(one.issue_cycles) + one.stall_cycles == one.cycles
        assert one.stall_cycles >= 0
        for share in one.issue_cycles:
            assert (share * 1024).is_integer()


@settings(max_examples=150)
@given(blocks)
def test_no_faster_than_issue_width(drawn: tuple[str, list[str]]) -> None:
    core, lines = drawn
    timing = load_core(core)
    for one in passes(schedule("; ".join(lines), timing)):
        assert one.cycles >= len(lines) / timing.issue_width


@settings(max_examples=150)
@given(blocks)
def test_loops_keep_the_cores_ipc_limit(drawn: tuple[str, list[str]]) -> None:
    """A loop closed by a branch: instructions over cycles and refill, at most `max_ipc`."""
    core, lines = drawn
    closing = "bnez a7, 1b" if "a0" in lines[0] or "a1" in lines[0] else "bne 1b"
    timing = load_core(core)
    steady = schedule("; ".join([*lines, closing]), timing).steady
    assert len(lines) + 1 <= timing.max_ipc * (steady.cycles + steady.refill_cycles)


@settings(max_examples=150)
@given(blocks, st.data())
def test_another_instruction_never_saves_cycles(drawn: tuple[str, list[str]],
                                                data: st.DataObject) -> None:
    """Anywhere on a single-issue core; at the end of a pass on one that pairs."""
    core, lines = drawn
    timing = load_core(core)
    place = data.draw(st.integers(0, len(lines))) if core in SINGLE_ISSUE else len(lines)
    more = [*lines[:place], "nop", *lines[place:]]
    before = schedule("; ".join(lines), timing).single
    after = schedule("; ".join(more), timing).single
    assert after.cycles >= before.cycles


@settings(max_examples=60)
@given(st.permutations(["add r0, r0, #1", "orr r1, r1, #2", "lsl r2, r2, #1", "sxtb r3, r3",
                        "smlad r4, r5, r6, r4"]))
def test_order_of_independent_work_is_free_on_m4(lines: list[str]) -> None:
    """Single issue, single-cycle, no dependencies: as many cycles as instructions."""
    timed = schedule("; ".join(lines), load_core("cortex-m4"))
    assert timed.steady.cycles == timed.single.cycles == len(lines)


@settings(max_examples=100)
@given(blocks, st.integers(0, 10**6), st.integers(0, 10**6))
def test_events_of_a_block_sum_to_its_cycles(drawn: tuple[str, list[str]], entries: int,
                                             more: int) -> None:
    core, lines = drawn
    timing = load_core(core)
    block = Block(name="b", code="; ".join(lines), trips=entries + more, entries=entries)
    counts = count_block(block, timing)
    assert math.fsum(count for _, count in counts.events) == counts.cpu_cycles
    assert counts.instructions == len(lines) * block.trips
    timed = schedule(block.code, timing)
    one = timed.steady if more else timed.single
    assert counts.cpu_cycles == (one.cycles + one.refill_cycles) * block.trips


@settings(max_examples=60)
@given(blocks)
def test_a_steady_trip_is_no_slower_than_a_single_pass(drawn: tuple[str, list[str]]) -> None:
    """Trips overlap: the next starts no later than the last one's end, waits for operands apart.

    A trip also waits for values the trip before it made, at most the longest latency of the table.
    """
    core, lines = drawn
    timing = load_core(core)
    timed = schedule("; ".join(lines), timing)
    longest = max(shape.latency_cycles + shape.cycles for shape in timing.classes.values()) + 4
    assert timed.steady.cycles <= timed.single.cycles + longest
