"""Softmax in fixed point: maximum, sum of exponentials, scaled exponentials.

References
----------
ARM-software/CMSIS-NN 6.0, Source/SoftmaxFunctions/arm_softmax_s8.c, arm_nn_softmax_common_s8.c.
gcc 12.2 cannot compile the MVE path (there the library falls back to scalar code). The exponential
is the polynomial and the seven conditional multiplications of gemmlowp's fixed-point arithmetic.
"""

from __future__ import annotations

from hwmodels.kernel import Lowered
from twin.runtimes.cmsis_nn.sequences import (
    CODE,
    bookkeeping,
    entry,
    lane_moves,
    row_load,
    row_moves,
    vectors,
)
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import BRANCH, draft_kernel, join, plain
from twin.runtimes.lowering.nests import closing, load, repeat, step, store

_CODE = CODE["softmax"]

_MULTIPLIES_C = 12
"""Long multiplies of one exponential, seven of them behind a mask."""

_REST_C = {"thumb2": (5, 13, 103, 6), "thumb1": (16, 27, 125, 18), "rv32": (12, 10, 114, 12)}
"""Stack loads, stack stores, arithmetic and jumps of the rest of one exponential."""


def _extents(site: Site) -> tuple[int, int]:
    """Rows, and their length: softmax runs over the last axis."""
    tensor = site.source
    return tensor.rows, tensor.channels


def lower_scalar(site: Site) -> Lowered:
    """Lower a softmax one element at a time: what reference kernels run, too.

    Parameters
    ----------
    layer
        A `softmax`.
    site
        Operands: input, output.

    Notes
    -----
    Every element is taken to be close enough to the maximum for its exponential to be computed
    (twice); elements far below cost less in reality.
    """
    dialect = site.dialect
    text = plain(dialect)
    rows, width = _extents(site)
    multiply = _CODE.multiply_c[text]
    exponential = join(*[multiply] * _MULTIPLIES_C, bookkeeping(dialect, *_REST_C[text]))
    read, write = {"rv32": ("lb a0, 0(a1)", "sb a0, 0(a2)"),
                   "thumb1": ("ldrsb r0, [r1, r6]", "strb r0, [r2]")}.get(
        text, ("ldrsb r0, [r1], #1", "strb r0, [r2], #1"))
    first = "lb a2, 0(a1)" if text == "rv32" else "ldrb r2, [r1]"
    read_one = load("input", 1, row=width, column=1)
    return (draft_kernel(
        "arm_softmax_s8", "softmax", site,
        entry(dialect, 50, 1),
        repeat("row", rows,
               closing("row", join(first, bookkeeping(dialect, 12, 6, 30), *[multiply] * 7,
                                   BRANCH[dialect])),
               load("input", 1, row=width),
               repeat("column", width - 1,
                      closing("maximum", _CODE.maximum_c[text]),
                      load("input", 1, 1, row=width, column=1)),
               repeat("column", width,
                      closing("exponential, summed", join(read, exponential, BRANCH[dialect])),
                      read_one),
               repeat("column", width,
                      closing("exponential, scaled", join(read, exponential, write,
                                                          BRANCH[dialect])),
                      read_one, store("output", 1, row=width, column=1)))),)


def _lower_mve(site: Site) -> Lowered:
    """Four exponentials at a time, twice.

    Every group of four is taken to hold an element close enough to the maximum for its
    exponential to be computed. The vectors gcc keeps on the stack around the seven conditional
    multiplications are taken as one pair of store and load each.
    """
    rows, width = _extents(site)
    fours, ones = divmod(width, 4)
    read_4 = lane_moves(load("input", 4, 0, row=width, four=4), 4)
    read_1 = load("input", 1, 4 * fours, row=width, one=1)
    return (draft_kernel(
        "arm_softmax_s8", "softmax", site,
        step("call", _CODE.entry, "kernel_call"),
        repeat("row", rows,
               closing("row", _CODE.row),
               repeat("maximum", vectors(width), closing("maximum of 16", _CODE.maximum)),
               *row_moves(width, row_load("input", 0, row=width)),
               repeat("four", fours, closing("four exponentials, summed", _CODE.summed), *read_4),
               repeat("one", ones, closing("one exponential, summed", _CODE.scalar), read_1),
               step("reciprocal", _CODE.reciprocal),
               repeat("newton", 3, closing("reciprocal step", _CODE.newton)),
               repeat("four", fours,
                      closing("four exponentials, scaled", _CODE.scaled), *read_4,
                      *lane_moves(store("output", 4, 0, row=width, four=4), 4)),
               repeat("one", ones,
                      closing("one exponential, scaled", _CODE.scalar), read_1,
                      store("output", 1, 4 * fours, row=width, one=1)))),)


KERNELS: Kernels = {
    "softmax": {"c": Lowering(lower=lower_scalar), "mve": Lowering(lower=_lower_mve)},
}
