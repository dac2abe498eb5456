"""Products of pixels with weight rows: `arm_nn_mat_mult_nt_t_s8`.

C and DSP: two weight rows by two pixels at a time; input offsets are folded into a sum over each
pair of weight rows, taken once per pair. Helium: per four pixels and one channel, a
tail-predicated loop over sixteen weights that multiplies them with each pixel and sums them (the
input offset is applied to the sum); pixels left over one by one, four channels requantised
together.

References
----------
ARM-software/CMSIS-NN 6.0, Source/NNSupportFunctions/arm_nn_mat_mult_nt_t_s8.c.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from hwmodels.kernel import Block
from twin.runtimes.cmsis_nn.sequences import (
    CLAMP_VECTOR,
    SCALE_ONE,
    SCALE_SCALAR,
    SCALE_VECTOR,
    VECTOR_BYTES,
    bookkeeping,
    column_loops,
    floor_width,
    in_fours,
    lane_moves,
    requantise,
    row_load,
    vectors,
)
from twin.runtimes.lowering.blocks import block, join, straight
from twin.runtimes.lowering.nests import (
    Repeat,
    bound,
    closing,
    guarded,
    load,
    repeat,
    step,
    store,
)

_STEP_2X2 = (  # 16 MAC: four columns of two weight rows and two pixels
    "ldr r8, [r1, #4]; ldr r9, [r2, #4]; ldr r5, [r10, #4]; sxtb16 r4, r9; sxtb16 r0, r8;"
    "sxtb16 r9, r9, ror #8; sxtb16 r8, r8, ror #8; smlad r3, r4, r0, r3; sxtb16 r10, r5;"
    "smlad r3, r9, r8, r3; sxtb16 r5, r5, ror #8; smlad r6, r4, r10, r6; smlad r6, r9, r5, r6;"
    "ldr r4, [r2, #-4]; sxtb16 r9, r4; sxtb16 r4, r4, ror #8; smlad r7, r9, r0, r7;"
    "smlad r11, r9, r10, r11; smlad r7, r4, r8, r7; smlad r11, r4, r5, r11")
_STEP_2X1 = (  # 8 MAC: four columns of two weight rows and one pixel
    "ldr r12, [r6, r3]; ldr r4, [r3, #-4]; ldr r0, [r11]; sxtb16 r9, r12; sxtb16 r7, r0;"
    "sxtb16 lr, r4; sxtb16 r12, r12, ror #8; sxtb16 r0, r0, ror #8; sxtb16 r4, r4, ror #8;"
    "smlad r1, r7, r9, r1; smlad r1, r0, r12, r1; smlad r2, r7, lr, r2; smlad r2, r0, r4, r2")
_WIDE_END = ("ldr r0, [sp, #8]; ldr r4, [sp, #12]; add r12, r4, r2; add lr, r0, r1;"
             "ldr r0, [sp, #4]; adds r2, #16; cmp r0, r2; add r1, r1, #16; bne 0b")
_NARROW_END = "ldr r0, [sp, #4]; add r1, r1, #4; cmp r0, r2; bne 0b"


class _Codes(NamedTuple):
    """Inner loops of one dialect: sum of two weight rows, 2x2 and 2x1 column, last row."""

    row_sum: str
    column_2x2: str
    column_2x1: str
    column_1x1: str


_THUMB2 = _Codes(
    "ldrsb r4, [r3, #1]!; add r1, r4; ldrsb r4, [r0, #1]!; cmp r5, r3; add r2, r4; bne 0b",
    "ldrsb r0, [lr, #1]!; ldrsb r4, [r2, #1]!; ldrsb r1, [r8, #1]!; mla r5, r4, r0, r5;"
    "mla r6, r1, r0, r6; ldrsb r0, [r12, #1]!; cmp r10, r2; mla r7, r0, r4, r7;"
    "mla r3, r0, r1, r3; bne 0b",
    "ldrsb r3, [r11], #1; ldrsb r7, [r2, #1]!; cmp r11, r4; mla r0, r3, r7, r0;"
    "ldrsb r7, [r1, #1]!; mla r5, r3, r7, r5; bne 0b",
    "ldrsb r3, [r2], #1; ldrsb r7, [r1, #1]!; add r3, r6; cmp r2, r4; mla r0, r7, r3, r0; bne 0b")

_CODES = {
    "dsp": _THUMB2,
    "thumb2": _THUMB2,
    "thumb1": _Codes(
        "movs r4, #0; ldrsb r4, [r3, r4]; adds r1, r1, r4; ldrsb r4, [r3, r6]; adds r3, #1;"
        "adds r2, r2, r4; cmp r3, r5; bne 0b",
        "movs r1, #0; movs r2, #0; ldrsb r1, [r3, r1]; ldrsb r2, [r7, r2]; movs r0, r1;"
        "muls r0, r2, r0; mov r12, r0; mov r0, r9; ldrsb r0, [r3, r0]; adds r3, #1;"
        "muls r2, r0, r2; adds r4, r4, r2; mov r2, r8; ldrsb r2, [r7, r2]; add r10, r12;"
        "muls r1, r2, r1; muls r2, r0, r2; adds r5, r5, r1; adds r6, r6, r2; adds r7, #1;"
        "cmp r3, r11; bne 0b",
        "movs r2, #0; ldrsb r2, [r3, r2]; movs r1, #0; ldrsb r1, [r7, r1]; movs r0, r1;"
        "muls r0, r2, r0; adds r4, r4, r0; mov r0, r9; ldrsb r0, [r7, r0]; muls r0, r2, r0;"
        "adds r5, r5, r0; adds r3, #1; adds r7, #1; cmp r3, r6; bne 0b",
        "movs r2, #0; ldrsb r2, [r3, r2]; movs r1, #0; ldrsb r1, [r7, r1]; add r2, r8;"
        "muls r1, r2, r1; adds r4, r4, r1; adds r3, #1; adds r7, #1; cmp r3, r6; bne 0b"),
    "rv32": _Codes(
        "add a6, a2, a7; lb a4, 0(a2); lb a6, 0(a6); addi a2, a2, 1; add s0, s0, a4;"
        "add s1, s1, a6; bne a2, a3, 0b",
        "add a1, a2, a7; add s1, t0, t1; lb t5, 0(t0); lb t4, 0(a2); lb a1, 0(a1); lb s1, 0(s1);"
        "mul s2, t5, t4; addi a2, a2, 1; addi t0, t0, 1; mul t5, t5, a1; add a0, a0, s2;"
        "mul t4, t4, s1; add a4, a4, t5; mul a1, a1, s1; add a3, a3, t4; add a5, a5, a1;"
        "bne a2, a6, 0b",
        "add a3, a2, a7; lb a4, 0(t0); lb a1, 0(a2); lb a3, 0(a3); addi a2, a2, 1;"
        "addi t0, t0, 1; mul a1, a1, a4; mul a3, a3, a4; add a0, a0, a1; add a5, a5, a3;"
        "bne a2, a6, 0b",
        "lb a4, 0(t0); lb a1, 0(a2); addi a2, a2, 1; addi t0, t0, 1; add a4, a4, t1;"
        "mul a1, a1, a4; add a0, a0, a1; bne a2, a6, 0b"),
}


class Product(NamedTuple):
    """Extents of one product: pixels x columns by rows x columns, per call."""

    pixels: int
    rows: int
    columns: int
    has_bias: bool


_SET_UP = {"thumb2": (1, 2, 0, 5), "thumb1": (13, 10, 4, 4), "rv32": (3, 0, 3, 2)}
"""Stack loads, stack stores, arithmetic and jumps per two rows by two pixels, plain C."""


def _set_up(dialect: str, width: int) -> str:
    """Pointers and counters of the column loops: those of 16 and of 4 columns each cost extra."""
    if dialect != "dsp":
        return bookkeeping(dialect, *_SET_UP[dialect])
    return join(bookkeeping(dialect, 0, 3, 0),
                bookkeeping(dialect, 9, 2, 1, 7) if width >= 16
                else bookkeeping(dialect, 3, 0, 0, 4),
                bookkeeping(dialect, 5, 3, 6, 3) if width % 16 >= 4 else "")


def _closing(dialect: str) -> str:
    return "bne a2, a6, 0b" if dialect == "rv32" else "subs r3, #1; bne 0b"


def _columns(four: str, one: str) -> tuple[str, str, str]:
    return join(*[four] * 4, _WIDE_END), join(four, _NARROW_END), one


def product_drafts(dialect: str, shape: Product, pixel_bytes: int, calls: int,
                   **outer: tuple[int, int]) -> tuple[Any, ...]:
    """Return the loops of one product.

    Parameters
    ----------
    dialect : str
        Of the core.
    shape : Product
        Extents.
    pixel_bytes : int
        Distance of two pixels in the input.
    calls : int
        How often it is called in all.
    outer : tuple of (int, int)
        By outer loop name: bytes the input and the output move per iteration.
    """
    width, rows, codes = shape.columns, shape.rows, _CODES[dialect]
    move_in = {name: steps[0] for name, steps in outer.items()}
    move_out = {name: steps[1] for name, steps in outer.items()}
    bias = "lw a2, 0(a4); lw a3, 4(a4)" if dialect == "rv32" else "ldr r4, [r2]; ldr r5, [r2, #4]"
    pairs, odd = calls * (rows // 2), shape.pixels % 2

    def pixels(count: int, first: int, **steps: int) -> tuple[Any, ...]:
        return _two_rows(dialect, shape, pixel_bytes, count, first, steps, move_in)

    def results(count: int, first: int, **steps: int) -> tuple[Any, ...]:
        return (
            *[load("parameters", 4, 4 * rows * part + 4 * k, rows=8)
              for k in range(2) for part in range(2)],
            *[store("output", 1, (first + p) * rows + k, rows=2, **steps, **move_out)
              for p in range(count) for k in range(2)])

    return (
        repeat("rows", rows // 2,
               repeat("sum", width, closing("sum of two weight rows", codes.row_sum),
                      load("weights", 1, rows=2 * width, sum=1),
                      load("weights", 1, width, rows=2 * width, sum=1)),
               closing("two rows", join(bias if shape.has_bias else "",
                                        bookkeeping(dialect, 24, 12, 24))),
               *[load("bias", 4, 4 * k, rows=8) for k in range(2 if shape.has_bias else 0)],
               repeat("pixels", shape.pixels // 2,
                      *column_loops(dialect, "2x2", width, pairs * (shape.pixels // 2),
                                    _columns(_STEP_2X2, codes.column_2x2)),
                      *pixels(2, 0, pixels=2 * pixel_bytes),
                      closing("finish 2x2", join(_set_up(dialect, width),
                                                 requantise(dialect, 2, 2), _closing(dialect))),
                      *results(2, 0, pixels=2 * rows)),
               repeat("odd", odd,
                      *column_loops(dialect, "2x1", width, pairs * odd,
                                    _columns(_STEP_2X1, codes.column_2x1)),
                      *pixels(1, shape.pixels - 1),
                      step("finish 2x1", join(bookkeeping(dialect, 12, 5, 13),
                                              requantise(dialect, 2, 1))),
                      *results(1, shape.pixels - 1))),
        repeat("last", rows % 2, repeat(
            "pixels", shape.pixels,
            *_last_row(dialect, shape, pixel_bytes, move_in, move_out))))


def _last_row(dialect: str, shape: Product, pixel_bytes: int, move_in: dict[str, int],
              move_out: dict[str, int]) -> tuple[Any, ...]:
    """Return the odd weight row left over, times one pixel."""
    width, last = shape.columns, shape.rows - 1
    bias = "lw a2, 0(a4)" if dialect == "rv32" else "ldr r4, [r2]"
    return (
        *([load("bias", 4, 4 * last)] if shape.has_bias else []),
        repeat("narrow", width, closing("last row column", _CODES[dialect].column_1x1),
               load("input", 1, pixels=pixel_bytes, narrow=1, **move_in),
               load("weights", 1, last * width, narrow=1)),
        closing("last row", join(bias if shape.has_bias else "", bookkeeping(dialect, 5, 1, 8),
                                 requantise(dialect, 1, 1), _closing(dialect))),
        load("parameters", 4, 4 * last), load("parameters", 4, 4 * (shape.rows + last)),
        store("output", 1, last, pixels=shape.rows, **move_out))


def _two_rows(dialect: str, shape: Product, pixel_bytes: int, count: int, first: int,
              steps: dict[str, int], move_in: dict[str, int]) -> tuple[Any, ...]:
    """Return accesses of two weight rows times `count` pixels: words with DSP, the rest bytes."""
    width = shape.columns
    quads, rest = in_fours(dialect, width)
    lines = []
    for name, size, extent, start in (("wide", 4, quads, 0), ("narrow", 1, rest, 4 * quads)):
        loads = []
        for k in range(2):
            loads.append(load("weights", size, k * width + start, rows=2 * width, **{name: size}))
            if k < count:
                loads.append(load("input", size, (first + k) * pixel_bytes + start,
                                  **{name: size}, **steps, **move_in))
        lines.append(repeat(name, extent, *loads))
    return tuple(lines)


_ENTRY_MVE = ("stmdb sp!, {r4, r5, r6, r7, r8, r9, r10, r11, lr}; vpush {d8-d15}; sub sp, #124;"
              "mov r10, r3; ldr r3, [sp, #232]; mov lr, r0; cmp r3, #3; mov r9, r1;"
              "str r2, [sp, #68]; ldr r2, [sp, #232]; cmp r2, r3; movs r0, #0; add sp, #124;"
              "vpop {d8-d15}; ldmia sp!, {r4, r5, r6, r7, r8, r9, r10, r11, pc}")
_QUADS_MVE = ("mov r5, r2; subs r4, r3, #3; ldr r3, [sp, #236]; mov r11, r10; str r3, [sp, #92];"
              "ldr r3, [sp, #252]; mov r10, r5; vdup.32 q7, r3; ldr r3, [sp, #256];"
              "ldr r1, [sp, #236]; vdup.32 q6, r3; movs r3, #0; lsls r2, r1, #1;"
              "add r0, r1, r1, lsl #1; ldr r1, [sp, #264]; str r2, [sp, #96]; mov r12, r1, lsl #1;"
              "add r8, r1, r1, lsl #1; str r0, [sp, #100]; add r2, sp, #88; lsls r1, r1, #2;"
              "str r3, [sp, #88]; vldrw.u32 q5, [r2]; strd r1, r0, [sp, #40];"
              "strd r8, r12, [sp, #56]; ldr r12, [sp, #240]; str r4, [sp, #48]; str lr, [sp, #64];"
              "str r9, [sp, #52]; ldr r3, [sp, #232]; ldr r1, [sp, #40]; subs r3, #4;"
              "lsrs r3, r3, #2; mla r1, r3, r1, r1; ldr lr, [sp, #64]; adds r3, #1;"
              "ldr r9, [sp, #52]; add lr, r1; lsls r3, r3, #2")
_QUAD_MVE = ("ldr r2, [sp, #236]; cmp r2, #0; it le; movs r7, #0; ldr r2, [sp, #60]; "
             "str r7, [sp, #4];"
             "add r2, lr; str r2, [sp, #24]; ldr r2, [sp, #56]; mov r7, r12; add r2, lr;"
             "str r2, [sp, #28]; ldr r2, [sp, #264]; ldr r6, [sp, #52]; add r2, lr;"
             "str r2, [sp, #32]; ldr r2, [sp, #224]; str r3, [sp, #36]; sub r9, r2, #4;"
             "ldr r2, [sp, #228]; str r9, [sp, #8]; sub r8, r2, #4; mov r9, r8;"
             "ldr r2, [sp, #236]; str r6, [sp]; add r2, r11; strd r2, lr, [sp, #12];"
             "str r10, [sp, #20]; str r12, [sp, #240]; mov r12, r7; ldr lr, [sp, #16];"
             "ldr r3, [sp, #36]; ldr r10, [sp, #20]; ldr r2, [sp, #40]; ldr r1, [sp, #44];"
             "add lr, r2; ldr r2, [sp, #12]; adds r3, #4; add r2, r1; mov r11, r2;"
             "ldr r2, [sp, #48]; cmp r3, r2; blt 0b")
_CHANNEL_4_MVE = ("movs r2, #0; ldrd r4, r5, [sp, #24]; mov r8, r2; mov r12, r2; mov r10, r2;"
                  "mov r6, r2; ldr r3, [sp]; ldr r1, [sp, #16]; ldr r0, [sp, #32];"
                  "vldrb.u8 q0, [r3], #16; wlstp.8 lr, r7, 1f")
_INNER_4_MVE = ("vaddva.s8 r2, q0; vldrb.u8 q1, [r1], #16; vmladava.s8 r8, q0, q1;"
                "vldrb.u8 q2, [r0], #16; vmladava.s8 r12, q0, q2; vldrb.u8 q3, [r4], #16;"
                "vmladava.s8 r10, q0, q3; vldrb.u8 q4, [r5], #16; vmladava.s8 r6, q0, q4;"
                "vldrb.u8 q0, [r3], #16; letp lr, 0b")
_FINISH_4_MVE = ("ldr r3, [sp]; strd r8, r12, [sp, #72]; strd r10, r6, [sp, #80]; add r3, r7;"
                 "str r3, [sp]; add r3, sp, #72; vldrw.u32 q3, [r3]; ldr r3, [sp, #244];"
                 "mul r2, r3, r2; ldr r3, [sp, #20]; cbz r3, 1f")
_BIAS_4_MVE = "ldr r1, [sp, #4]; ldr r3, [r3, r1]; add r2, r3"
_SCALE_4_MVE = join(
    "ldr r3, [sp, #4]; ldr r1, [sp, #8]; adds r3, #4; vadd.i32 q3, q3, r2; str r3, [sp, #4];"
    "ldr r2, [r1, #4]!; ldr r3, [r9, #4]!; str r1, [sp, #8]", SCALE_SCALAR, CLAMP_VECTOR,
    "vstrb.32 q3, [r11, q5]; ldr r3, [sp, #12]; add r11, r11, #1; cmp r3, r11; bne 0b")
_SINGLE_MVE = ("mov r11, #0; ldr r2, [sp, #252]; str r3, [sp, #4]; vdup.32 q6, r2;"
               "ldr r2, [sp, #256]; ldr r7, [sp, #68]; vdup.32 q5, r2; ldr r2, [sp, #236];"
               "ldr r3, [sp, #240]; and r12, r2, #3; str r12, [sp, #12]; ldr r5, [sp];"
               "ldrd r6, r9, [sp, #224]; ldr r8, [sp, #16]; ldr r2, [sp, #264]; add r4, r2;"
               "ldr r2, [sp, #12]; cmp r2, #0; ldr r2, [sp, #4]; ldr r1, [sp, #232]; adds r2, #1;"
               "cmp r1, r2; str r2, [sp, #4]; bne 0b")
_CHANNEL_1_MVE = ("mov r1, r8; mov r2, r11; mov r0, r4; mov r10, r11; vldrb.u8 q0, [r1], #16;"
                  "wlstp.8 lr, r3, 1f")
_INNER_1_MVE = ("vaddva.s8 r2, q0; vldrb.u8 q1, [r0], #16; vmladava.s8 r10, q0, q1;"
                "vldrb.u8 q0, [r1], #16; letp lr, 0b")
_FINISH_1_MVE = "ldr r0, [sp, #244]; and r1, r12, #3; mla r0, r0, r2, r10; add r8, r3; cbz r7, 1f"
_BIAS_1_MVE = "ldr r2, [r7, r12, lsl #2]; add r0, r2"
_KEEP_1_MVE = ("add r2, sp, #120; add r2, r2, r1, lsl #2; cmp r1, #3; add r12, r12, #1;"
               "str r0, [r2, #-16]; bne 2f")
_NEXT_1_MVE = "ldr r2, [sp, #236]; cmp r2, r12; bne 0b"
_SCALE_1_MVE = join("vldrw.u32 q1, [r9], #16; vcmp.s32 gt, q1, r11; add r2, sp, #104;"
                "vldrw.u32 q3, [r2]; vldrw.u32 q0, [r6], #16", SCALE_VECTOR, CLAMP_VECTOR,
                "vstrb.32 q3, [r5], #4")
_TAIL_1_MVE = join("ldr r4, [r1], #4; ldr r3, [r6], #4; ldr r6, [r9], #4", SCALE_ONE,
               "strb r1, [r5], #1; subs r7, #1; bne 0b")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductMve:
    """Rows times transposed weights.

    Parameters
    ----------
    depth : int
        Multiply-accumulates of one result; bytes of a row.
    channels : int
        Weight rows.
    calls, quads, singles : int
        Calls of the function, groups of four rows and left-over rows over all of them.
    has_bias : bool
        Whether a bias is read per channel.
    """

    depth: int
    channels: int
    calls: int
    quads: int
    singles: int
    has_bias: bool


def product_blocks_mve(shape: ProductMve) -> tuple[Block, ...]:
    """Return the blocks of `arm_nn_mat_mult_nt_t_s8`."""
    fours, ones = shape.quads * shape.channels, shape.singles * shape.channels
    per_row = vectors(shape.depth)
    bias_4, bias_1 = (_BIAS_4_MVE, _BIAS_1_MVE) if shape.has_bias else ("", "")
    with_quads = min(shape.calls, shape.quads)
    tail = shape.channels % 4
    return (
        block("call", _ENTRY_MVE, shape.calls, cause="kernel_call"),
        block("set up rows of four", _QUADS_MVE, with_quads, cause="kernel_call"),
        block("four rows", _QUAD_MVE, shape.quads, with_quads),
        block("channel of four rows", _CHANNEL_4_MVE, fours),
        block("multiply 4 x 16", _INNER_4_MVE, fours * per_row, fours),
        block("requantise four rows", join(_FINISH_4_MVE, bias_4, _SCALE_4_MVE), fours,
              shape.quads),
        straight("left-over row", _SINGLE_MVE, shape.singles),
        block("channel of one row", _CHANNEL_1_MVE, ones),
        block("multiply 16", _INNER_1_MVE, ones * per_row, ones),
        straight("finish one row", join(_FINISH_1_MVE, bias_1, _KEEP_1_MVE), ones,
                 ones - shape.singles * (shape.channels // 4)),
        block("requantise four channels", _SCALE_1_MVE, shape.singles * (shape.channels // 4)),
        straight("next channel", _NEXT_1_MVE, ones, ones - shape.singles),
        block("requantise one channel", _TAIL_1_MVE, shape.singles * tail,
              shape.singles if tail else 0),
    )


def quad_drafts(shape: ProductMve, source: str, row_step_bytes: int, rows_offset_bytes: int,
                output_offset_bytes: int, output_row_bytes: int, *, source_steps: dict[str, int],
                output_steps: dict[str, int]) -> Repeat:
    """Return the accesses of four rows times all channels.

    Parameters
    ----------
    shape : ProductMve
        Depth and channels.
    source : str
        Operand the rows are in.
    row_step_bytes, rows_offset_bytes : int
        Between rows, and of the first row.
    output_offset_bytes, output_row_bytes : int
        Of the first result, and between rows of results.
    source_steps, output_steps : dict
        Steps of the rows and of the results in enclosing loops, in bytes by loop name.
    """
    return repeat(
        "channel", shape.channels,
        *_weights_and_rows(shape, [
            row_load(source, rows_offset_bytes + one * row_step_bytes, **source_steps)
            for one in range(4)]),
        *_channel_parameters(shape, 4, shape.has_bias),
        *[store("output", 1, output_offset_bytes + one * output_row_bytes, channel=1,
                **output_steps) for one in range(4)])


def single_drafts(shape: ProductMve, source: str, rows_offset_bytes: int,
                  output_offset_bytes: int, *, source_steps: dict[str, int],
                  output_steps: dict[str, int]) -> list[Any]:
    """Return the accesses of one row times all channels: bias by channel, the rest by four."""
    fours, tail = divmod(shape.channels, 4)

    def channel(first: int, **outer: int) -> list[Any]:
        return _weights_and_rows(
            shape, [row_load(source, rows_offset_bytes, **source_steps)], first, outer
        ) + ([load("bias", 4, 4 * first, channel=4, **{name: 4 * step
                                                       for name, step in outer.items()})]
             if shape.has_bias else [])

    shifts = 4 * shape.channels
    by_four = repeat(
        "four", fours, repeat("channel", 4, *channel(0, four=4)),
        load("parameters", 16, shifts, four=16), load("parameters", 16, 0, four=16),
        *lane_moves(store("output", 4, output_offset_bytes, four=4, **output_steps), 4))
    last = [repeat("channel", tail, *channel(4 * fours)),
            repeat("channel", tail, load("parameters", 4, 16 * fours, channel=4),
                   load("parameters", 4, shifts + 16 * fours, channel=4),
                   store("output", 1, output_offset_bytes + 4 * fours, channel=1,
                         **output_steps))]
    return [by_four, *last]


def _channel_parameters(shape: ProductMve, width_bytes: int, has_bias: bool) -> list[Any]:
    bias = [load("bias", width_bytes, 0, channel=4)] if has_bias else []
    return [*bias, load("parameters", width_bytes, 0, channel=4),
            load("parameters", width_bytes, 4 * shape.channels, channel=4)]


def _weights_and_rows(shape: ProductMve, rows: list[Any], first: int = 0,
                      outer: dict[str, int] | None = None) -> list[Any]:
    """One channel: weights with each row, then the weights fetched ahead of the next channel.

    Weights are loaded one vector ahead: the last full load of a row, and the one after it, reach
    into the next rows; where that would leave the tensor the access is narrowed or left out.
    """
    depth, channels = shape.depth, shape.channels
    full, tail = divmod(depth, VECTOR_BYTES)
    weight_steps = {"channel": depth, **{name: step * depth
                                         for name, step in (outer or {}).items()}}
    index_steps = {"channel": 1, **(outer or {})}
    weights = row_load("weights", first * depth, **weight_steps)
    moves: list[Any] = [repeat("vector", full, *[
        row._replace(steps_bytes={**row.steps_bytes, "vector": VECTOR_BYTES})
        for row in (weights, *rows)])]
    lanes = tail or VECTOR_BYTES
    if tail:
        moves += _overreaching(weights, full * VECTOR_BYTES, VECTOR_BYTES, tail, depth, channels,
                               first, index_steps)
        moves += [row._replace(width_bytes=floor_width(tail),
                               offset_bytes=row.offset_bytes + full * VECTOR_BYTES)
                  for row in rows]
    ahead = vectors(depth) * VECTOR_BYTES
    return moves + _overreaching(weights, ahead, floor_width(lanes), 0, depth, channels, first,
                                 index_steps)


def _overreaching(weights: Any, offset_bytes: int, width_bytes: int, inside_bytes: int,
                  depth: int, channels: int, first: int, steps: dict[str, int]) -> list[Any]:
    """Return an access that may leave its row; near the tensor's end `inside_bytes` wide."""
    rows_needed = -(-(offset_bytes + width_bytes) // depth)
    limit = channels - rows_needed + 1  # channels below it have enough rows behind them
    move = weights._replace(offset_bytes=weights.offset_bytes + offset_bytes)
    wide = guarded(move._replace(width_bytes=width_bytes), bound(first, limit, **steps))
    if not inside_bytes:
        return [wide]
    narrow = guarded(move._replace(width_bytes=floor_width(inside_bytes)),
                     bound(first - limit, channels - limit, **steps))
    return [wide, narrow]
