"""Fully connected and batched matrix products: one vector by rows of weights, several at a time.

Three rows at a time in C, two with DSP, four with Helium. There the sums over weight rows are made
once, when the network is prepared, and kept in scratch.

References
----------
ARM-software/CMSIS-NN 6.0 (6.2 for Helium), Source/FullyConnectedFunctions:
arm_fully_connected_s8.c, arm_fully_connected_per_channel_s8.c; Source/NNSupportFunctions:
arm_nn_vec_mat_mult_t_s8.c (whole file compiled with unrolled loops on cores with DSP),
arm_nn_vec_mat_mult_t_per_ch_s8.c.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hwmodels.kernel import Blocks, Kernel, Lowered
from twin.runtimes.cmsis_nn.sequences import (
    CODE,
    bias_load,
    bookkeeping,
    column_loops,
    entry,
    in_fours,
    requantise,
    requantise_tensor,
    row_load,
    row_moves,
    vectors,
)
from twin.runtimes.lowering import Kernels, Lowering, Site, has_extension
from twin.runtimes.lowering.blocks import BRANCH, draft_kernel, join
from twin.runtimes.lowering.geometry import has_bias, has_one_scale
from twin.runtimes.lowering.nests import closing, load, repeat, step, store

_CODE = CODE["fully_connected"]


_PAIR = {"dsp": (21, 5, 14, 5), "thumb2": (8, 3, 10, 4), "thumb1": (14, 6, 28, 6),
         "rv32": (8, 4, 12, 4)}
"""Stack loads, stack stores, arithmetic and jumps per group of rows."""


class _Rows(NamedTuple):
    """Extents of one product: rows of weights by columns, for some vectors, over batches."""

    vectors: int
    rows: int
    columns: int
    has_bias: bool
    per_channel: bool
    weights: str
    batches: int = 1


def _read_rows(site: Site) -> _Rows:
    weights = site.weights
    rows, columns = weights.shape[-2:]
    return _Rows(site.source.elements // columns, rows, columns,
                 has_bias(site.layer), not has_one_scale(site), "weights")


def _name(shape: _Rows) -> str:
    return "arm_fully_connected_per_channel_s8" if shape.per_channel else "arm_fully_connected_s8"


def _lower(site: Site) -> Lowered:
    """Weights are (rows, columns)."""
    shape = _read_rows(site)
    return (_lower_rows(_name(shape), shape, site),)


def _lower_batch_matmul(site: Site) -> Lowered:
    """Lower a product of two activations: the same inner function for each left row.

    Of (..., m, k) and (..., k, n); the right side as if already transposed, and on a core with
    MVE as if it ran the scalar loops (assumed).
    """
    left = site.source
    right = site.weights
    columns = left.shape[-2 if site.layer.option("adj_x", False) else -1]
    rows = site.output.channels
    batches = max(1, right.elements // (rows * columns))
    shape = _Rows(left.elements // columns // batches, rows, columns, False, False,
                  "input2", batches)
    return (_lower_rows("arm_batch_matmul_s8", shape, site,
                        assumed=has_extension(site.isa, "mve")),)


def _lower_rows(name: str, shape: _Rows, site: Site, assumed: bool = False) -> Kernel:
    dialect = site.dialect
    at_once = 2 if dialect == "dsp" else 3
    groups, last = divmod(shape.rows, at_once)
    calls = shape.batches * shape.vectors
    return draft_kernel(
        name, "fully_connected", site,
        entry(dialect, 100, calls),
        repeat("batch", shape.batches, repeat(
            "vector", shape.vectors,
            repeat("group", groups, *_group(dialect, shape, at_once, calls * groups, 0)),
            repeat("group", last, *_group(dialect, shape, 1, calls * last, groups * at_once)))),
        macs=calls * shape.rows * shape.columns, assumed=assumed)


def _group(dialect: str, shape: _Rows, count: int, trips: int, start: int) -> tuple[Any, ...]:
    """`count` rows of weights from `start` on, times one vector."""
    columns, rows = shape.columns, shape.rows
    quads, rest = in_fours(dialect, columns)
    outer = {"vector": columns, "batch": shape.vectors * columns}

    def part(width: int, done: int) -> tuple[Any, ...]:
        return (load("input", width, done, column=width, **outer),
                *[load(shape.weights, width, (start + k) * columns + done, column=width,
                       batch=rows * columns, group=count * columns) for k in range(count)])

    biases = count if shape.has_bias else 0
    results = (requantise if shape.per_channel else requantise_tensor)(dialect, count)
    return (
        *[load("bias", 4, 4 * (start + k), group=4 * count) for k in range(biases)],
        *column_blocks(dialect, columns, trips, count),
        repeat("column", quads, *part(4, 0)),
        repeat("column", rest, *part(1, 4 * quads)),
        closing(f"{count} rows", join(
            *[bias_load(dialect)] * biases, bookkeeping(dialect, *_PAIR[dialect]), results,
            BRANCH[dialect])),
        *[load("parameters", 4, 4 * (half * rows + start + k), group=4 * count)
          for k in range(count if shape.per_channel else 0) for half in (0, 1)],
        *[store("output", 1, start + k, vector=rows, batch=shape.vectors * rows, group=count)
          for k in range(count)])


def column_blocks(dialect: str, columns: int, entries: int, rows: int) -> Blocks:
    """Return the inner loops of dot products.

    Parameters
    ----------
    entries
        How many groups of products there are.
    rows
        Weight rows taken at once: 1, or the dialect's number (2 with DSP, 3 without).
    """
    several, single = _CODE.column[dialect]
    four = _CODE.step_1 if rows == 1 else _CODE.step_2
    return column_loops(dialect, f"of {rows} rows", columns, entries, (
        join(*[four] * 4, _CODE.unrolled_end), join(four, _CODE.peeled_end),
        single if rows == 1 else several), peeled=True)


def _lower_mve(site: Site) -> Lowered:
    """Scratch holds the sums over weight rows, bias included."""
    shape = _read_rows(site)
    rows, columns, per_channel = shape.rows, shape.columns, shape.per_channel
    fours, ones = divmod(rows, 4)
    first, shifts = 4 * fours, 4 * rows
    data, result = row_load("input", 0, vector_row=columns), {"vector_row": rows}
    wide = [load("parameters", 16, part, four=16) for part in (shifts, 0)]
    narrow = [load("parameters", 4, part + 4 * first, one=4) for part in (0, shifts)]
    finish = _CODE.finish_4_per_channel_mve if per_channel else _CODE.finish_4_mve
    return (draft_kernel(
        _name(shape), "fully_connected", site,
        step("call", _CODE.entry_mve, "kernel_call"),
        repeat("vector_row", shape.vectors,
               closing("input row", _CODE.vector_mve, "kernel_call"),
               repeat("four", fours,
                      step("four weight rows", _CODE.rows_4_mve),
                      load("scratch", 16, 0, four=16),
                      repeat("sixteen", vectors(columns),
                             closing("multiply 16 x 4", _CODE.inner_4_mve)),
                      *row_moves(columns, data, *[
                          row_load("weights", one * columns, four=4 * columns)
                          for one in range(4)]),
                      closing("requantise four", join(_CODE.gather_4_mve, finish)),
                      *(wide if per_channel else []),
                      *[store("output", 1, one, four=4, **result) for one in range(4)]),
               repeat("one", ones,
                      step("left-over weight row", _CODE.row_1_mve),
                      load("scratch", 4, 4 * first, one=4),
                      repeat("sixteen", vectors(columns),
                             closing("multiply 16", _CODE.inner_1_mve)),
                      *row_moves(columns, data, row_load("weights", first * columns, one=columns)),
                      closing("requantise one", _CODE.finish_1_mve),
                      *(narrow if per_channel else []),
                      store("output", 1, first, one=1, **result))),
        macs=shape.vectors * rows * columns),)


def _scratch_bytes_mve(site: Site) -> int:
    """One 32-bit sum per weight row."""
    return 4 * site.weights.shape[-2]


KERNELS: Kernels = {
    "batch_matmul": {"c": Lowering(lower=_lower_batch_matmul)},
    "fully_connected": {
        "c": Lowering(lower=_lower),
        "mve": Lowering(lower=_lower_mve, scratch_bytes=_scratch_bytes_mve),
    },
}
