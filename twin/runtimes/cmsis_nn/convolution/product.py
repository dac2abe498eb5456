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

from twin.runtimes.cmsis_nn.sequences import CODE, bookkeeping, column_loops, in_fours, requantise
from twin.runtimes.lowering.blocks import join
from twin.runtimes.lowering.nests import closing, load, repeat, step, store

_CODE = CODE["convolution.product"]


class Product(NamedTuple):
    """Extents of one product: pixels x columns by rows x columns, per call.

    `widened`: with DSP, by two rows of weights that are widened once, ten bytes a channel beside.
    """

    pixels: int
    rows: int
    columns: int
    has_bias: bool
    widened: bool = False


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
    return join(*[four] * 4, _CODE.wide_end), join(four, _CODE.narrow_end), one


def product_drafts(dialect: str, shape: Product, pixel_bytes: int, calls: int,
                   move_in: dict[str, int], move_out: dict[str, int]) -> tuple[Any, ...]:
    """Return the loops of one product.

    Parameters
    ----------
    pixel_bytes
        Distance of two pixels in the input.
    calls
        How often it is called in all.
    move_in, move_out
        By outer loop name: bytes the input and the output move per iteration.
    """
    width, rows, codes = shape.columns, shape.rows, _CODE.codes[dialect]
    bias = "lw a2, 0(a4); lw a3, 4(a4)" if dialect == "rv32" else "ldr r4, [r2]; ldr r5, [r2, #4]"
    pairs, odd, quads = calls * (rows // 2), shape.pixels % 2, 0
    loops = _columns(_CODE.step_2x2, codes["column_2x2"])
    finish = join(_set_up(dialect, width), requantise(dialect, 2, 2))
    if shape.widened and dialect == "dsp":
        quads, finish, four = width // 4, _CODE.widened_finish, _CODE.widened_2x2
        loops = join(*[four] * 4), four, loops[2]

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
               *[repeat("sum", count, closing(name, code),
                        *[load("weights", size, row + start, rows=2 * width, sum=size)
                          for row in (0, width)])
                 for name, code, count, size, start in (
                     ("widen two weight rows", _CODE.widened_rows, quads, 4, 0),
                     ("sum of two weight rows", codes["row_sum"], width - 4 * quads, 1,
                      4 * quads))],
               closing("two rows", join(bias if shape.has_bias else "",
                                        bookkeeping(dialect, 24, 12, 24))),
               *[load("bias", 4, 4 * k, rows=8) for k in range(2 if shape.has_bias else 0)],
               repeat("pixels", shape.pixels // 2,
                      *column_loops(dialect, "2x2", width, pairs * (shape.pixels // 2), loops),
                      *pixels(2, 0, pixels=2 * pixel_bytes),
                      closing("finish 2x2", join(finish, _closing(dialect))),
                      *results(2, 0, pixels=2 * rows)),
               repeat("odd", odd,
                      *column_loops(dialect, "2x1", width, pairs * odd,
                                    _columns(_CODE.step_2x1, codes["column_2x1"])),
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
        repeat("narrow", width, closing("last row column", _CODE.codes[dialect]["column_1x1"]),
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
