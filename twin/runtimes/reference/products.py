"""Fully connected layers and matrix products, plain C: one output at a time.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference: fully_connected.h,
batch_matmul.h; integer_ops/fully_connected.h.
"""

from __future__ import annotations

from typing import Any

from hwmodels.kernel import Blocks, Lowered
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import block
from twin.runtimes.lowering.geometry import has_bias, has_one_scale
from twin.runtimes.lowering.nests import load, repeat
from twin.runtimes.reference.sequences import CODE, COUNTS, Counts, Machine, choose_machine
from twin.runtimes.reference.windows import finish_output, multiply_loop, output_moves

_COUNTS = COUNTS["products"]

_CALL: Counts = (15, 10, 22)


def _lower_fully_connected(site: Site) -> Lowered:
    """Lower a fully connected layer."""
    machine = choose_machine(site)
    vectors, rows, columns = site.weight_rows
    biased = has_bias(site.layer)
    size, wide = machine.element_bytes, machine.weight_bytes
    return machine.kernel(
        f"{machine.namespace}::FullyConnected", "fully_connected", _CALL,
        repeat("vector", vectors, repeat(
            "out", rows,
            *product_blocks(machine, vectors, rows, columns, biased),
            repeat("depth", columns, load("input", size, 0, vector=columns * size, depth=size),
                   load("weights", wide, 0, out=columns * wide, depth=wide)),
            *_finish(machine, rows, biased))),
        macs=vectors * rows * columns)


def _lower_batch_matmul(site: Site) -> Lowered:
    """Lower a product of two activations, the right side transposed first where it is not yet."""
    machine = choose_machine(site)
    left, output = site.ends
    columns = left.shape[-2 if site.layer.option("adj_x", False) else -1]
    rows = output.channels
    vectors = output.elements // rows
    right = site.input(1).elements
    matrices = max(1, right // (rows * columns))
    size = machine.element_bytes
    operand = "input2" if any(one.name == "input2" for one in site.operands) else "weights"
    nest = repeat("matrix", matrices, repeat("vector", vectors // matrices, repeat(
        "out", rows,
        *product_blocks(machine, vectors, rows, columns, False),
        repeat("depth", columns,
               load("input", size, 0, matrix=vectors // matrices * columns * size,
                    vector=columns * size, depth=size),
               load(operand, size, 0, matrix=rows * columns * size, out=columns * size,
                    depth=size)),
        *[move._replace(steps_bytes={**move.steps_bytes,
                                     "matrix": vectors // matrices * rows * size})
          for move in output_moves(machine, False, rows, {"vector": rows, "out": 1})
          if move.operand == "output"])))
    return machine.kernel(
        "reference_ops::BatchMatMul", "fully_connected", _CALL, nest, macs=vectors * rows * columns)


def product_blocks(machine: Machine, vectors: int, rows: int, columns: int, biased: bool
                   ) -> Blocks:
    """Return the blocks of `vectors` x `rows` dot products of length `columns`.

    Parameters
    ----------
    machine
        What the C is compiled to.
    biased
        Whether a bias is added to each.
    """
    outputs = vectors * rows
    code = CODE["offsets"][machine.dialect] if machine.number == "int8" else multiply_loop(machine)
    return (
        block("multiply-accumulate", code, outputs * columns, outputs),
        block("output", finish_output(machine, _COUNTS["output"], biased), outputs, vectors),
    )


def _finish(machine: Machine, rows: int, biased: bool) -> list[Any]:
    """Bias and store of one output; multiplier and shift per channel, else once per tensor."""
    moves = output_moves(machine, biased, rows, {"vector": rows, "out": 1}, out=1)
    return [move for move in moves if move.operand != "parameters" or not has_one_scale(machine.at)]


KERNELS: Kernels = {
    "batch_matmul": {"c": Lowering(lower=_lower_batch_matmul)},
    "fully_connected": {"c": Lowering(lower=_lower_fully_connected)},
}
