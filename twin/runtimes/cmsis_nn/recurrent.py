"""Recurrent operators: products of rows as in a fully connected layer, then element-wise steps.

SVDF follows the library's source; of LSTM the products do and the element-wise steps are
estimates. No data stands behind either, so both are marked assumed.

References
----------
ARM-software/CMSIS-NN 6.0, Source/SVDFunctions/arm_svdf_s8.c,
Source/LSTMFunctions/arm_lstm_unidirectional_s8.c.
"""

from __future__ import annotations

from typing import Any

from hwmodels.kernel import Blocks, Lowered
from twin.runtimes.cmsis_nn.fully_connected import column_blocks
from twin.runtimes.cmsis_nn.sequences import bookkeeping, entry, requantise_tensor
from twin.runtimes.lowering import Codes, Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import BRANCH, block, draft_kernel, join
from twin.runtimes.lowering.libc import copy_blocks
from twin.runtimes.lowering.nests import closing, load, repeat, store


def _add(dialect: str) -> str:
    if dialect == "rv32":
        return "lw a3, 0(a0); addi a0, a0, 4; add a2, a2, a3; bne a0, a1, 0b"
    return "ldr r3, [r0]; adds r0, #4; adds r2, r2, r3; cmp r0, r1; bne 0b"


def _rows(dialect: str, rows: int, columns: int, calls: int) -> Blocks:
    """Blocks of `calls` products of a vector with a matrix, results requantised."""
    at_once = 2 if dialect == "dsp" else 3
    groups, last = divmod(rows, at_once)
    return (
        *column_blocks(dialect, columns, calls * groups, at_once),
        block("rows", join(bookkeeping(dialect, 20, 5, 18), requantise_tensor(dialect, at_once),
                           BRANCH[dialect]), calls * groups, calls),
        *column_blocks(dialect, columns, calls * last, 1),
        block("row", join(bookkeeping(dialect, 20, 5, 18), requantise_tensor(dialect, 1),
                          BRANCH[dialect]), calls * last, calls))


def _row_drafts(rows: int, columns: int, weights: str, vector: str, **outer: int) -> Any:
    """Word accesses of a product; a row's tail byte by byte."""
    words, rest = divmod(columns, 4)
    return repeat(
        "row", rows,
        repeat("word", words, load(vector, 4, word=4, **outer),
               load(weights, 4, word=4, row=columns)),
        repeat("rest", rest, load(vector, 1, 4 * words, rest=1, **outer),
               load(weights, 1, 4 * words, rest=1, row=columns)))


def _lower_svdf(site: Site) -> Lowered:
    """Lower a singular-value-decomposed filter.

    Inputs are data, feature weights (filters, features), time weights (filters, memory). The
    state moves by one byte, each filter takes a product over the features of this step and one
    over its memory, and ranks are summed.
    """
    dialect = site.dialect
    filters, features = site.weights.shape[:2]
    memory = site.input(2).elements // filters
    units = site.output.channels
    return (draft_kernel(
        "arm_svdf_s8", "recurrent", site,
        entry(dialect, 120, 1),
        *copy_blocks(dialect, filters * memory, 1),
        repeat("state", filters * memory // 4, load("scratch", 4, state=4),
               store("scratch", 4, state=4)),
        *_rows(dialect, filters, features, 1),
        _row_drafts(filters, features, "weights", "input"),
        *column_blocks(dialect, memory, filters, 1),
        block("filter", join(bookkeeping(dialect, 3, 2, 6), BRANCH[dialect]), filters, 1),
        _row_drafts(filters, memory, "weights2", "scratch"),
        block("sum ranks", _add(dialect), filters, units),
        repeat("unit", units,
               closing("output", join(bookkeeping(dialect, 2, 0, 4), requantise_tensor(dialect, 1),
                                      BRANCH[dialect])),
               store("output", 1, unit=1)),
        macs=filters * (features + memory), assumed=True),)


def _scratch_bytes_svdf(site: Site) -> int:
    """Return the state, a 32-bit sum per filter and one per unit."""
    filters = site.weights.shape[0]
    memory = site.input(2).elements // filters
    units = site.output.channels
    return (filters * memory + 3) // 4 * 4 + 4 * filters + 4 * units


def _lower_gates(site: Site) -> Lowered:
    """Lower an LSTM or a GRU: per step, gates from input and state, then the new state.

    Inputs are data, input weights (gates x units, features), recurrent weights.
    """
    dialect = site.dialect
    features = site.weights.channels
    rows = site.weights.elements // features
    units = site.input(2).elements // rows
    steps = site.source.elements // features
    gates = rows // units
    end, outputs = BRANCH[dialect], site.output.elements
    return (draft_kernel(
        "arm_lstm_unidirectional_s8", "recurrent", site,
        entry(dialect, 200, steps),
        repeat("step", steps,
               *_rows(dialect, rows, features, steps),
               _row_drafts(rows, features, "weights", "input", step=features),
               *_rows(dialect, rows, units, steps),
               _row_drafts(rows, units, "weights2", "scratch"),
               block("gate activation", join(bookkeeping(dialect, 4, 1, 15), end), steps * rows,
                     steps * gates),
               repeat("unit", units,
                      closing("new state", join(bookkeeping(dialect, 8, 3, 30),
                                                requantise_tensor(dialect, 2), end)),
                      load("scratch", 2, unit=2), store("scratch", 2, unit=2))),
        repeat("unit", outputs, store("output", 1, unit=1)),
        macs=steps * rows * (features + units), assumed=True),)


def _scratch_bytes_gates(site: Site) -> int:
    """Hidden state, cell state and gates as 16-bit values."""
    features = site.weights.channels
    rows = site.weights.elements // features
    units = site.input(2).elements // rows
    return 2 * rows + 4 * units


_GATED: Codes = {"c": Lowering(lower=_lower_gates, scratch_bytes=_scratch_bytes_gates)}

KERNELS: Kernels = {
    "gru": _GATED,
    "lstm": _GATED,
    "rnn": _GATED,
    "svdf": {"c": Lowering(lower=_lower_svdf, scratch_bytes=_scratch_bytes_svdf)},
}
