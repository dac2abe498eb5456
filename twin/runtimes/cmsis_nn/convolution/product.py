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

from typing import Any, NamedTuple

from twin.runtimes.cmsis_nn.sequences import (
    bookkeeping,
    column_loops,
    in_fours,
    requantise,
)
from twin.runtimes.lowering.blocks import join
from twin.runtimes.lowering.nests import (
    closing,
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
