"""Assembly text: what is read, written, moved and multiplied."""

from __future__ import annotations

import pytest

from hwmodels.errors import KernelError
from hwmodels.isa.instruction import Instruction, parse_code


def parse_one(text: str) -> Instruction:
    (instruction,) = parse_code(text)
    return instruction


@pytest.mark.parametrize(("text", "kind", "lanes"), [
    ("mla r0, r1, r2, r3", "mac", 1), ("smlabb r0, r1, r2, r3", "mac", 1),
    ("smlad r0, r1, r2, r3", "mac", 2), ("smlald r0, r1, r2, r3", "mac", 2),
    ("vmladava.s8 r0, q0, q1", "mac", 16), ("vmladava.s16 r0, q0, q1", "mac", 8),
    ("vmladavat.s8 r0, q0, q1", "mac", 16), ("vmlaldavax.s16 r0, r1, q0, q1", "mac", 8),
    ("vmla.s32 q0, q1, r0", "mac", 4), ("vmul.i32 q0, q1, q2", "mac", 4),
    ("vfma.f32 q0, q1, q2", "mac", 4), ("vfma.f32 s0, s1, s2", "mac", 1),
    ("vmla.f32 s0, s1, s2", "mac", 1), ("fmadd.s fa0, fa1, fa2, fa0", "mac", 1),
    ("mul a0, a1, a2", "mul", 0), ("smull r0, r1, r2, r3", "mul", 0),
    ("vqrdmulh.s32 q0, q1, q2", "mul", 0), ("smmul r0, r1, r2", "mul", 0),
    ("vrshl.s32 q0, q0, q1", "alu", 0), ("nop", "nop", 0), ("itt ne", "nop", 0),
    ("bl memcpy", "call", 0), ("bx lr", "branch", 0), ("le lr, loop", "branch", 0),
    ("ldrsb.w r0, [r1, r2]", "load", 0), ("sb a0, 3(a1)", "store", 0),
])
def test_kind_and_lanes(text: str, kind: str, lanes: int) -> None:
    """Lanes: 128 bits over the element for vectors, 2 for dual 16-bit, else 1 (Arm DDI 0553)."""
    instruction = parse_one(text)
    assert (instruction.kind, instruction.mac_lanes) == (kind, lanes)


@pytest.mark.parametrize(("text", "loaded", "stored", "transfers"), [
    ("ldr r0, [r1]", 4, 0, 1), ("ldrb r0, [r1]", 1, 0, 1), ("ldrsh r0, [r1, #2]", 2, 0, 1),
    ("ldrd r0, r1, [r2], #8", 8, 0, 2), ("ldm r0!, {r4-r7, r9}", 20, 0, 5),
    ("push {r4-r6, lr}", 0, 16, 4), ("pop {r4, pc}", 8, 0, 2), ("strh r0, [r1], #2", 0, 2, 1),
    ("vldrb.u8 q0, [r0], #16", 16, 0, 1), ("vldrb.s16 q0, [r0]", 8, 0, 1),
    ("vldrb.s32 q0, [r0, q1]", 4, 0, 1), ("vldrh.u16 q0, [r0]", 16, 0, 1),
    ("vldrh.s32 q0, [r0]", 8, 0, 1), ("vldrw.u32 q0, [r0, #16]", 16, 0, 1),
    ("vstrb.32 q0, [r0], #4", 0, 4, 1), ("vstrw.32 q0, [r0]", 0, 16, 1),
    ("vld40.8 {q0, q1, q2, q3}, [r0]", 16, 0, 4), ("vldr s0, [r0]", 4, 0, 1),
    ("vldr d0, [r0]", 8, 0, 2), ("vldmia r0!, {s0-s3}", 16, 0, 4), ("vpush {d8-d9}", 0, 16, 4),
    ("lw a0, 0(a1)", 4, 0, 1), ("lbu a0, 1(a1)", 1, 0, 1), ("flw fa0, 4(a0)", 4, 0, 1),
    ("ldr r0, =0x1234", 4, 0, 1), ("ldr r0, [pc, #20]", 4, 0, 1),
])
def test_bytes_moved(text: str, loaded: int, stored: int, transfers: int) -> None:
    instruction = parse_one(text)
    assert (instruction.loaded_bytes, instruction.stored_bytes) == (loaded, stored)
    assert instruction.transfers == transfers


@pytest.mark.parametrize(("text", "reads", "writes"), [
    ("add r0, r1, r2", {("r1", "value"), ("r2", "value")}, {"r0"}),
    ("adds r0, #1", {("r0", "value")}, {"r0", "nzcv"}),
    ("add r0, r1, r2, asr #3", {("r1", "value"), ("r2", "shift")}, {"r0"}),
    ("cmp r0, #3", {("r0", "value")}, {"nzcv"}),
    ("addne r0, r0, r1", {("r0", "value"), ("r1", "value"), ("nzcv", "value")}, {"r0"}),
    ("bne loop", {("nzcv", "flags")}, set()),
    ("bne a0, a1, loop", {("a0", "value"), ("a1", "value")}, set()),
    ("cbz r3, out", {("r3", "value")}, set()),
    ("mla r0, r1, r2, r0", {("r1", "value"), ("r2", "value"), ("r0", "accumulate")}, {"r0"}),
    ("smlal r0, r1, r2, r3", {("r0", "accumulate"), ("r1", "accumulate"), ("r2", "value"),
                              ("r3", "value")}, {"r0", "r1"}),
    ("sxtab16 r0, r1, r2, ror #8", {("r1", "accumulate"), ("r2", "shift")}, {"r0"}),
    ("pkhbt r0, r1, r2, lsl #16", {("r1", "value"), ("r2", "shift")}, {"r0"}),
    ("bfi r0, r1, #8, #8", {("r0", "value"), ("r1", "value")}, {"r0"}),
    ("str r0, [r1, r2, lsl #2]", {("r0", "data"), ("r1", "address"), ("r2", "address")}, set()),
    ("vmrs APSR_nzcv, fpscr", {("fpscr", "value")}, {"nzcv"}),
    ("vmov r0, s3", {("s3", "value")}, {"r0"}),
    ("vmov q0[2], q0[0], r1, r2", {("r1", "value"), ("r2", "value"), ("s0", "value"),
                                   ("s1", "value"), ("s2", "value"), ("s3", "value")},
     {"s0", "s1", "s2", "s3"}),
    ("vctp.8 r4", {("r4", "value")}, {"vpr"}),
    ("le lr, loop", {("lr", "value")}, {"lr"}),
    ("bl f", set(), {"lr"}),
    ("mv a0, zero", set(), {"a0"}),
])
def test_registers(text: str, reads: set[tuple[str, str]], writes: set[str]) -> None:
    """Operands as the architecture manuals define them (DDI 0403, DDI 0553, RISC-V Volume I)."""
    instruction = parse_one(text)
    assert set(instruction.reads) == reads
    assert set(instruction.writes) == writes


def test_post_increment_steps_its_base() -> None:
    instruction = parse_one("ldr r4, [r0], #4")
    assert instruction.base_writes == ("r0",)
    assert instruction.writes == ("r4",)
    assert parse_one("ldr r4, [r0, #4]!").base_writes == ("r0",)
    assert parse_one("ldr r4, [r0, #4]").base_writes == ()


def test_predicated_vector_keeps_old_lanes() -> None:
    """Lanes masked off by the predicate keep the old value, so it is read."""
    reads = dict(parse_one("vaddt.i32 q0, q1, q2").reads)
    assert reads["vpr"] == "value"
    assert "s0" in reads


def test_listing_of_a_disassembler() -> None:
    """Addresses, encodings, labels, comments and width suffixes of objdump, llvm-objdump
    and capstone."""
    listing = """
08000100 <kernel>:
 8000100:\t6823      \tldr\tr3, [r4, #0]
 8000102:\tf8d4 3004 \tldr.w\tr3, [r4, #4]\t@ first word
 8000106:\tfb23 8804 \tsmlad\tr8, r3, r4, r8
.L2:
 800010a:\td1f9      \tbne.n\t8000100 <kernel>
0x800010c: bx lr
1000010e: f1 ee 20 2f  \tvaddva.s8\tr2, q0
"""
    instructions = parse_code(listing)
    assert [one.mnemonic for one in instructions] == ["ldr", "ldr", "smlad", "bne", "bx",
                                                        "vaddva"]
    assert [one.narrow for one in instructions] == [True, False, False, True, True, False]


def test_narrow_encodings() -> None:
    """Arm DDI 0403 A5.2: low registers, small immediates, no shifted operand."""
    narrow = "adds r0, #1; adds r0, r1, r2; movs r0, #255; ldr r0, [r1, #124]; lsls r0, r1, #3"
    wide = "add r0, r8, #1; adds r0, r1, #8; movs r0, #256; ldr r0, [r1], #4; smlad r0, r1, r2, r0"
    assert all(one.narrow for one in parse_code(narrow))
    assert not any(one.narrow for one in parse_code(wide))


@pytest.mark.parametrize(("text", "hint"), [
    ("smalad r0, r1, r2, r3", "smlad"), ("vmladva.s8 r0, q0, q1", "vmladav"), ("fooz r1", "accept"),
])
def test_unknown_mnemonic_is_named(text: str, hint: str) -> None:
    with pytest.raises(KernelError, match=text.split()[0]) as caught:
        parse_code(text)
    assert hint in str(caught.value)


@pytest.mark.parametrize("text", ["mla r0, r1", "ldr r0, [r1", "vmladava.s8 r0"])
def test_malformed_operands_are_refused(text: str) -> None:
    with pytest.raises(KernelError, match=text.split()[0]):
        parse_code(text)
