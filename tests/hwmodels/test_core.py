"""Schedules worked out by hand, core by core, from the published timings the tables cite."""

from __future__ import annotations

import pytest

from hwmodels.core.file import load_core
from hwmodels.core.schedule import ISSUE_KINDS, BlockTiming, count_block, schedule
from hwmodels.errors import KernelError
from hwmodels.kernel import Block

# (core, code, cycles of a steady trip without refill, its stalls); reasons beside each
STEADY = [
    # M4: a load is 2 cycles, a neighbouring access overlaps one (DDI 0439 3.3.2): ldr 1, ldr 2,
    # smlad 1, smlad 1, subs 1, bne 1
    ("cortex-m4", "ldr r4, [r0], #4; ldr r5, [r1], #4; smlad r8, r4, r5, r8; smlad r9, r4, r5, r9;"
                  "subs r6, #1; bne 1b", 7, 1),
    # M4: unpaired loads cost both cycles: 2 + 1 + 2 + 1 + 1 + 1
    ("cortex-m4", "ldr r4, [r0], #4; smlad r8, r4, r5, r8; ldr r5, [r1], #4; smlad r9, r4, r5, r9;"
                  "subs r6, #1; bne 1b", 8, 2),
    # M4: an address from the ALU comes one cycle late: add 1, wait 1, ldr 2, add 1, bne 1
    ("cortex-m4", "add r0, r0, r2; ldr r1, [r0]; add r3, r3, r1; bne 1b", 6, 2),
    # M4: chained loads through one stepped base do not overlap (measured): 2 + 2 + 1
    ("cortex-m4", "ldr r4, [r0], #4; ldr r5, [r0], #4; bne 1b", 5, 2),
    # M4: the same from an unstepped base do: 1 + 2 + 1
    ("cortex-m4", "ldr r4, [r0]; ldr r5, [r0, #4]; bne 1b", 4, 1),
    # M4: LDM 1 + N; the N transfers are load work, the one is a stall; bne 1
    ("cortex-m4", "ldm r0!, {r4-r7}; bne 1b", 6, 1),
    # M4: store straight after a load takes the load's second cycle: 1 + 1 + 1
    ("cortex-m4", "ldr r4, [r0]; str r4, [r1]; bne 1b", 3, 0),
    # M3: MLA 2: 1 + 2 + 2 + 1 + 1
    ("cortex-m3", "ldr r4, [r0], #4; ldr r5, [r1], #4; mla r8, r4, r5, r8; subs r6, #1; bne 1b",
     7, 2),
    # M0+: every access 2, product 1 (DDI 0484): 2 + 2 + 1 + 1 + 1 + 1
    ("cortex-m0plus", "ldrb r4, [r0, r6]; ldrb r5, [r1, r6]; muls r4, r5; adds r2, r4; adds r6, #1;"
                      "bne 1b", 8, 2),
    # M33: loads 1 each, the second's result a cycle late for smlad, accumulation chains at 1
    ("cortex-m33", "ldr r4, [r0], #4; ldr r5, [r1], #4; smlad r8, r4, r5, r8; smlad r9, r4, r5, r9;"
                   "subs r6, #1; bne 1b", 7, 1),
    # M33: subs, add, bne: a taken branch pairs behind a 16-bit add without flags (measured): 2
    ("cortex-m33", "subs r7, #1; add r0, r1; bne 1b", 2, 0),
    # M33: behind the subs itself it does not (measured): 2, and the refill is apart
    ("cortex-m33", "subs r7, #1; bne 1b", 2, 0),
    # M33: cbnz reads no flags, so the rule alone keeps it from joining the adds; the add it joins
    ("cortex-m33", "adds r0, r1; cbnz r7, 1b", 2, 0),
    ("cortex-m33", "add r0, r1; cbnz r7, 1b", 1, 0),
    # M33: a nop joins an adds: the rule is of taken branches
    ("cortex-m33", "adds r0, r1; nop; adds r2, r3; nop", 2, 0),
    # M7: independent pairs: two adds a cycle; bne shares the last
    ("cortex-m7", "and r0, r1, r2; and r3, r4, r5; and r6, r8, r9; bne 1b", 2, 0),
    # M7: one MAC unit, accumulation chains each cycle (measured); subs and bne ride along
    ("cortex-m7", "smlad r0, r4, r5, r0; smlad r1, r4, r5, r1; subs r6, #1;"
                  "smlad r2, r4, r5, r2; bne 1b", 3, 0),
    # M7: even and odd words from one base load together; the product waits one cycle more
    ("cortex-m7", "ldr r4, [r0]; ldr r5, [r0, #4]; smlad r1, r4, r5, r1; bne 1b", 3, 1),
    # M7: two even words conflict: ldr, ldr, wait, smlad with bne
    ("cortex-m7", "ldr r4, [r0]; ldr r5, [r0, #8]; smlad r1, r4, r5, r1; bne 1b", 4, 1),
    # M7: no multiple load for three cycles after a product (measured): vldmia, vldmia, cmp, vfma,
    # bne, and 2 of waiting
    ("cortex-m7", "vldmia r3!, {s14}; vldmia r0!, {s10}; cmp r3, r7; vfma.f32 s15, s10, s14;bne 1b",
     6, 2),
    # M7: LDM moves two registers a cycle and pairs with nothing: 2 + 1
    ("cortex-m7", "ldm r0, {r4-r7}; bne 1b", 3, 0),
    # M7: extends cannot pair with each other: 2 cycles, branch rides in the second
    ("cortex-m7", "sxtb r0, r1; sxtb r2, r3; bne 1b", 2, 0),
    # M55: alternating load and multiply units starts one vector instruction a cycle
    ("cortex-m55", "vldrb.s8 q0, [r0], #16; vmladava.s8 r4, q1, q2; vldrb.s8 q1, [r1], #16;"
                   "vmladava.s8 r6, q0, q2; le lr, 1b", 4, 0),
    # M55: two loads in a row hold the same unit two cycles each: 2 + 1 + 1, and the load of the
    # next trip follows the last product at once
    ("cortex-m55", "vldrb.s8 q0, [r0], #16; vldrb.s8 q1, [r1], #16; vmladava.s8 r4, q0, q1;"
                   "le lr, 1b", 4, 1),
    # M55: a product is two cycles from its use: vmul, wait, vadd; the unit of vmul is free by then
    ("cortex-m55", "vmul.i32 q0, q1, q2; vadd.i32 q3, q3, q0; le lr, 1b", 3, 1),
    # M55: scalar work issues beside a vector's second pair of beats: vldrb, lsls, vldrb, lsls
    ("cortex-m55", "vldrb.s8 q0, [r0]; lsls r4, r5; vldrb.s8 q1, [r1]; lsls r6, r7; le lr, 1b",
     4, 0),
]


@pytest.mark.parametrize(("core", "code", "cycles", "stalls"), STEADY)
def test_steady_trip(core: str, code: str, cycles: int, stalls: int) -> None:
    steady = schedule(code, load_core(core)).steady
    assert (steady.cycles, steady.stall_cycles) == (cycles, stalls)


def test_vector_stalls_as_counters_of_a_real_core_show() -> None:
    """Requantisation of four lanes and a depthwise product on a Cortex-M55, in tightly coupled RAM.

    Published counters of an Apollo510 running MLPerf Tiny kws with CMSIS-NN (neuralSPOT,
    docs/From TF to EVB, full PMU table): the 1x1 layers requantise 31 x 64 + 16 = 2000 times and
    stall 13,988 times in MVE, 11,985 on the integer unit and 2,000 on a dependency: 6 + 1 each.
    The depthwise layers stall 13,410 times on dependencies: 3 in each of about 9 x 496 products of
    four columns, whose sum follows its product at once in three of four columns.
    """
    requantise = """bic r1, r3, r3, asr #31; vdup.32 q1, r1; vshl.s32 q3, q3, q1;
        and r3, r3, r3, asr #31; vdup.32 q2, r3; vqrdmulh.s32 q3, q3, r2; vand q1, q3, q2;
        vshr.s32 q1, q1, #31; vqadd.s32 q3, q3, q1; vrshl.s32 q3, q3, q2; ldr r3, [sp, #248];
        add r4, r4, r5; vadd.i32 q3, q3, r6; vmax.s32 q3, q3, q7; vmin.s32 q3, q3, q6"""
    core = load_core("cortex-m55")
    shifted_masks = 2  # each vdup waits for its scalar: not an MVE stall
    integer_unit, dependency = 6, 1
    assert schedule(requantise, core).single.stall_cycles == (
        shifted_masks + integer_unit + dependency)
    depthwise = """vldrb.s32 q3, [r1]; vldrb.s32 q0, [r0], #16; vmul.i32 q0, q0, q3;
        vadd.i32 q2, q2, q0; vldrb.s32 q0, [r6], #16; vmul.i32 q0, q0, q3; vadd.i32 q1, q1, q0;
        vldrb.s32 q0, [r7], #16; vmul.i32 q0, q0, q3; vadd.i32 q5, q5, q0;
        vldrb.s32 q0, [r3], #16; vadd.i32 q4, q4, q3; vmul.i32 q3, q0, q3; add r1, r4;
        vadd.i32 q6, q6, q3; le lr, 1b"""
    two_loads = 1
    assert schedule(depthwise, core).steady.stall_cycles == 3 + two_loads


# (core, code, cycles of one pass)
SINGLE = [
    ("cortex-m4", "ldr r0, [r1]", 2),                      # DDI 0439: LDR 2
    ("cortex-m4", "push {r4-r7, lr}", 6),                  # 1 + N
    ("cortex-m4", "smull r0, r1, r2, r3", 1),              # DDI 0439: 1
    ("cortex-m4", "vmla.f32 s0, s1, s2", 3),               # DDI 0439: 3
    ("cortex-m4", "vadd.f32 s0, s1, s2; vadd.f32 s3, s0, s2", 3),  # used at once: one longer
    ("cortex-m4", "vldr d0, [r1]", 3),                     # DDI 0439: VLDR.64 3
    ("cortex-m4", "vpush {d8-d9}", 5),                     # VSTM.64 1 + 2N
    ("cortex-m3", "mla r0, r1, r2, r3", 2),                # DDI 0337: 2
    ("cortex-m0plus", "ldr r0, [r1]; adds r0, #1", 3),     # 2 + 1
    ("cortex-m33", "ldm r0, {r4-r7}", 4),                  # N
    ("cortex-m33", "lsrs r0, r1; eor r2, r3, r0, ror #4; add r4, r2", 4),  # shifted operand: 2
    ("cortex-m33", "muls r0, r1", 2),                      # flags of a product: 2
    ("cortex-m7", "add r0, r1; eor r2, r0", 1),            # early ALU into late ALU
    ("cortex-m7", "eor r0, r1; eor r2, r0", 2),            # late ALU to itself: next cycle
    ("cortex-m7", "add r0, r1; ldr r2, [r0]", 2),          # addresses are read a stage early
    ("cortex-m7", "ldr r0, [r1]; str r0, [r2]", 1),        # stores take any result
    ("cortex-m7", "ldrb r0, [r1]; eor r2, r0", 3),         # bytes come one cycle later than words
    ("cortex-m55", "ldr r0, [r1]; adds r0, #1", 3),        # load to use 2
    ("cortex-m55", "lsls r0, r1; adds r2, #1", 1),         # 16-bit pair with an ADDri
    ("cortex-m55", "lsls r0, r1; lsls r2, r3", 2),         # neither is of the pairing set
]


@pytest.mark.parametrize(("core", "code", "cycles"), SINGLE)
def test_single_pass(core: str, code: str, cycles: int) -> None:
    assert schedule(code, load_core(core)).single.cycles == cycles


def test_issue_cycle_is_shared_equally() -> None:
    """Two instructions in one cycle take half each: smlad with subs, then bne alone."""
    timed = schedule("smlad r0, r4, r5, r0; subs r6, #1; bne 1b", load_core("cortex-m7"))
    assert dict(zip(ISSUE_KINDS, timed.steady.issue_cycles, strict=True)) == {
        "mac": 0.5, "alu": 0.5, "load": 0, "store": 0, "branch": 1}


def test_totals_of_a_block() -> None:
    code = ("vldrb.s16 q0, [r0], #8; ldrd r2, r3, [r1]; vmladava.s16 r4, q0, q1; str r4, [r5];"
            "le lr, 1b")
    timed: BlockTiming = schedule(code, load_core("cortex-m55"))
    assert (timed.instructions, timed.vector_instructions) == (5, 2)
    assert (timed.loads, timed.stores) == (2, 1)
    assert (timed.loaded_bytes, timed.stored_bytes, timed.mac_lanes) == (8 + 8, 4, 8)
    assert dict(zip(ISSUE_KINDS, timed.kinds, strict=True)) == {
        "mac": 1, "alu": 0, "load": 2, "store": 1, "branch": 1}


def test_loop_counts_on_m4() -> None:
    """10 entries of 8 trips: 80 trips of 3 cycles, 70 taken branches of 2 refill cycles."""
    block = Block(name="b", code="smlad r0, r1, r2, r0; subs r3, #1; bne 1b", trips=80, entries=10)
    counts = count_block(block, load_core("cortex-m4"))
    assert dict(counts.events) == {"mac_issue": 80, "alu_issue": 80, "branch_issue": 80,
                                   "branch_refill": 140}
    assert counts.cpu_cycles == 380
    assert (counts.instructions, counts.mac_lanes) == (240, 160)


def test_loop_exit_on_m7_is_a_misprediction() -> None:
    """The predictor takes every loop branch; 8 cycles are lost per exit (measured), none taken."""
    block = Block(name="b", code="eor r0, r1; subs r3, #1; bne 1b", trips=80, entries=10)
    counts = count_block(block, load_core("cortex-m7"))
    assert counts.count("branch_refill") == 80


def test_low_overhead_loop_branches_once_per_entry() -> None:
    """LE issues on the first trip of an entry only: 10 issue slots, 10 refills of 2."""
    block = Block(name="b", code="vmladava.s8 r0, q0, q1; vldrb.s8 q0, [r1], #16; le lr, 1b",
                  trips=80, entries=10)
    counts = count_block(block, load_core("cortex-m55"))
    assert counts.count("branch_issue") == 10
    assert counts.count("branch_refill") == 20
    assert counts.instructions == 2 * 80 + 10
    assert counts.vector_instructions == 160


def test_straight_block_with_call_and_return() -> None:
    """M0+ (DDI 0484): PUSH 1 + N, BL 3, POP with pc 3 + N; refills are 2 of each of the latter."""
    block = Block(name="b", code="push {r4, lr}; bl f; pop {r4, pc}", trips=5, entries=5)
    counts = count_block(block, load_core("cortex-m0plus"))
    assert counts.cpu_cycles == 5 * (3 + 3 + (3 + 2))
    assert counts.count("branch_refill") == 5 * (2 + 2)


def test_own_cause_takes_the_issue_slots() -> None:
    block = Block(name="copy", code="ldr r0, [r1]; str r0, [r2]", trips=3, entries=3,
                  cause="data_copy")
    assert dict(count_block(block, load_core("cortex-m4")).events) == {"copy_issue": 6}
    with pytest.raises(KernelError, match="flash_wait"):
        count_block(Block(name="x", code="nop", trips=1, entries=1, cause="flash_wait"),
                    load_core("cortex-m4"))


@pytest.mark.parametrize(("core", "code", "lanes"), [
    # the product of a loaded byte, widened or offset, is the MAC of a core without another
    ("cortex-m0plus", "ldrb r0, [r4]; sxtb r0, r0; muls r0, r1; adds r2, r0", 1),
    ("rv32imc", "lb a0, 0(a1); add a0, a0, s1; mul a0, a0, a2; add a3, a3, a0", 1),
    # loaded in the trip before
    ("cortex-m0plus", "muls r0, r1; adds r2, r0; ldrh r1, [r4]; movs r0, r5", 1),
    # factors from elsewhere
    ("cortex-m0plus", "muls r0, r1; adds r2, r0", 1),
    # requantisation multiplies words, or halves of words, or takes the high half too
    ("cortex-m0plus", "ldr r0, [r4]; ldr r1, [r5]; muls r0, r1; adds r2, r0", 0),
    ("cortex-m0plus", "lsrs r0, r4, #16; lsrs r1, r5, #16; muls r0, r1; adds r2, r0", 0),
    ("rv32imc", "mul a1, a0, s2; mulh a0, a0, s2", 0),
    # where there is a multiply-accumulate, a plain product is not one
    ("cortex-m4", "ldrb r0, [r4]; mul r0, r0, r1; add r2, r0", 0),
])
def test_product_as_mac(core: str, code: str, lanes: int) -> None:
    assert schedule(code, load_core(core)).mac_lanes == lanes


def test_work_of_another_cause_is_no_mac() -> None:
    block = Block(name="rows", code="mla r0, r1, r2, r3", trips=4, entries=4, cause="kernel_call")
    assert count_block(block, load_core("cortex-m4")).mac_lanes == 0


@pytest.mark.parametrize(("core", "code"), [
    ("cortex-m4", "vmladava.s8 r0, q0, q1"), ("cortex-m3", "smlad r0, r1, r2, r3"),
    ("cortex-m0plus", "mla r0, r1, r2, r3"), ("cortex-m7", "le lr, 1b"),
])
def test_instruction_of_another_core_is_refused(core: str, code: str) -> None:
    with pytest.raises(KernelError, match=core):
        schedule(code, load_core(core))


def test_empty_block_is_refused() -> None:
    with pytest.raises(KernelError, match="no instruction"):
        schedule("loop:", load_core("cortex-m4"))
