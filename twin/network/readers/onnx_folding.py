"""Nodes of an .onnx file whose inputs are all constants, evaluated within a budget.

Exporters write shapes as chains of small integer operators (Shape, Gather, Concat, Reshape);
the standard's own reference evaluates them, each only after its result is known to be small enough.
"""

from __future__ import annotations

import math

import numpy as np

from twin.network.readers.budget import Budget
from twin.network.readers.onnx_nodes import Node, OnnxModel, to_proto

SMALL_ELEMENTS = 2**12
"""Inputs and outputs up to which an operator that is not `CHEAP` is evaluated."""

MAX_PRODUCTS = 2**30
"""Multiply-accumulates of a matrix product that is evaluated."""

_NEVER = {"DequantizeLinear", "QuantizeLinear", "If", "Loop", "Scan", "Bernoulli", "Multinomial",
          "RandomNormalLike", "RandomUniformLike", "SequenceMap", "Optional"}
_COUNTED = {"NonZero"}
"""Operators whose number of results their values decide."""

CHEAP = {
    "Identity", "Neg", "Abs", "Sqrt", "Exp", "Log", "Floor", "Ceil", "Sin", "Cos", "Not",
    "Reciprocal", "Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Equal", "Greater", "Less",
    "GreaterOrEqual", "LessOrEqual", "Where", "MatMul", "Range", "Cast", "Reshape", "Squeeze",
    "Unsqueeze", "Slice", "ConstantOfShape", "Expand", "Split", "Gather", "Concat", "Transpose",
    "Tile"}
"""Operators the reference leaves to numpy: evaluated at any size the budget allows."""


def fold(model: OnnxModel, node: Node, budget: Budget) -> bool:
    """Evaluate a node whose inputs are all known; return whether it was.

    Parameters
    ----------
    model
        With shapes of the node's outputs; gets their values.
    budget
        Is charged for the results before they are made.

    Raises
    ------
    ModelError
        When the budget does not suffice.
    """
    if node.op == "Shape" and node.source in model.shapes:
        shape = model.shapes[node.source]
        chosen = shape[node.option("start", 0):node.option("end", len(shape))]
        model.add_constant(node.result, np.asarray(chosen, np.int64))
        return True
    if node.op == "Size" and node.source in model.shapes:
        model.add_constant(node.result, np.asarray(math.prod(model.shapes[node.source]), np.int64))
        return True
    names = [name for name in node.inputs if name]
    if (not names or "." in node.op or node.op in _NEVER
            or any(name not in model.constants for name in names)):
        return False
    given = sum(model.constants[name].size for name in names)
    if not _may_be_made(model, node, given, budget):
        return False
    for name, result in zip(node.outputs, _evaluate(model, node), strict=False):
        if name:
            model.add_constant(name, np.asarray(result))
    return True


def _may_be_made(model: OnnxModel, node: Node, given: int, budget: Budget) -> bool:
    """Charge the budget for the results; False where evaluating is not worth or not safe."""
    made = [name for name in node.outputs if name]
    if any(name not in model.shapes for name in made):
        return node.op in _COUNTED and given <= SMALL_ELEMENTS
    elements = sum(math.prod(model.shapes[name]) for name in made)
    if node.op not in CHEAP and given + elements > SMALL_ELEMENTS:
        return False
    if node.op == "MatMul" and elements * model.shapes[node.source][-1] > MAX_PRODUCTS:
        return False
    budget.take(8 * elements, f"{node.op} {node.result!r}")
    return True


def _evaluate(model: OnnxModel, node: Node) -> list[np.ndarray]:
    from onnx.reference import ReferenceEvaluator

    feeds = {name: model.constants[name] for name in node.inputs if name}
    return list(map(np.asarray, ReferenceEvaluator(
        to_proto(node), opsets={"": model.opset}).run(None, feeds)))
