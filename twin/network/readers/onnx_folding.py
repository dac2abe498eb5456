"""Nodes of an .onnx file whose inputs are all constants, evaluated within a budget.

Exporters write shapes as chains of small integer operators (Shape, Gather, Concat, Reshape);
these are evaluated here with numpy, each only after its result is known to be small enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from twin.network.readers.budget import Budget
from twin.network.readers.onnx_nodes import DTYPES, Node, OnnxModel, to_proto

SMALL_ELEMENTS = 2**12
"""Inputs and outputs up to which an operator without a formula here is evaluated by the standard's
own reference, in Python."""

MAX_PRODUCTS = 2**30
"""Multiply-accumulates of a matrix product that is evaluated."""

_NEVER = {"DequantizeLinear", "QuantizeLinear", "If", "Loop", "Scan", "Bernoulli", "Multinomial",
          "RandomNormalLike", "RandomUniformLike", "SequenceMap", "Optional"}
_COUNTED = {"NonZero"}
"""Operators whose number of results their values decide."""

_Values = Sequence[np.ndarray | None]


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
    if node.op == "Shape" and node.inputs[0] in model.shapes:
        shape = model.shapes[node.inputs[0]]
        chosen = shape[node.attributes.get("start", 0):node.attributes.get("end", len(shape))]
        model.add_constant(node.outputs[0], np.asarray(chosen, np.int64))
        return True
    if node.op == "Size" and node.inputs[0] in model.shapes:
        model.add_constant(node.outputs[0],
                           np.asarray(math.prod(model.shapes[node.inputs[0]]), np.int64))
        return True
    names = [name for name in node.inputs if name]
    if (not names or "." in node.op or node.op in _NEVER
            or any(name not in model.constants for name in names)):
        return False
    given = sum(model.constants[name].size for name in names)
    if not _may_be_made(model, node, given, budget):
        return False
    values = [model.constants[name] if name else None for name in node.inputs]
    evaluate = EVALUATORS.get(node.op)
    results = (evaluate(node, values) if evaluate is not None
               else _evaluate_by_reference(model, node))
    for name, result in zip(node.outputs, results, strict=False):
        if name:
            model.add_constant(name, np.asarray(result))
    return True


def _may_be_made(model: OnnxModel, node: Node, given: int, budget: Budget) -> bool:
    """Charge the budget for the results; False where evaluating is not worth or not safe."""
    made = [name for name in node.outputs if name]
    if any(name not in model.shapes for name in made):
        return node.op in _COUNTED and given <= SMALL_ELEMENTS
    elements = sum(math.prod(model.shapes[name]) for name in made)
    if node.op not in EVALUATORS and given + elements > SMALL_ELEMENTS:
        return False
    if node.op == "MatMul" and elements * model.shapes[node.inputs[0]][-1] > MAX_PRODUCTS:
        return False
    budget.take(8 * elements, f"{node.op} {node.outputs[0]!r}")
    return True


def _evaluate_by_reference(model: OnnxModel, node: Node) -> list[np.ndarray]:
    from onnx.reference import ReferenceEvaluator

    feeds = {name: model.constants[name] for name in node.inputs if name}
    return list(map(np.asarray, ReferenceEvaluator(
        to_proto(node), opsets={"": model.opset}).run(None, feeds)))


def _integers(node: Node, values: _Values, place: int, attribute: str) -> list[int] | None:
    """Integers of an input or, in older opsets, of an attribute."""
    given = values[place] if place < len(values) else None
    if given is not None:
        return [int(value) for value in given.reshape(-1)]
    attributes = node.attributes.get(attribute)
    return None if attributes is None else [int(value) for value in np.atleast_1d(attributes)]


def _one(compute: Callable[..., Any]) -> Callable[[Node, _Values], list[np.ndarray]]:
    return lambda node, values: [np.asarray(compute(*values))]


def _quotient(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    if left.dtype.kind == "f":
        return left / right
    return (np.sign(left) * np.sign(right) * (abs(left) // np.maximum(abs(right), 1))).astype(
        left.dtype)


def _cast(node: Node, values: _Values) -> list[np.ndarray]:
    assert values[0] is not None
    return [values[0].astype(DTYPES[node.attributes["to"]])]


def _reshape(node: Node, values: _Values) -> list[np.ndarray]:
    data = values[0]
    assert data is not None
    shape = _integers(node, values, 1, "shape") or []
    if not node.attributes.get("allowzero", 0):
        shape = [data.shape[axis] if size == 0 else size for axis, size in enumerate(shape)]
    return [data.reshape(shape)]


def _squeeze(node: Node, values: _Values) -> list[np.ndarray]:
    axes = _integers(node, values, 1, "axes")
    assert values[0] is not None
    return [np.squeeze(values[0], axis=None if axes is None else tuple(axes))]


def _unsqueeze(node: Node, values: _Values) -> list[np.ndarray]:
    assert values[0] is not None
    return [np.expand_dims(values[0], tuple(_integers(node, values, 1, "axes") or ()))]


def _slice(node: Node, values: _Values) -> list[np.ndarray]:
    data = values[0]
    assert data is not None
    starts = _integers(node, values, 1, "starts") or []
    ends = _integers(node, values, 2, "ends") or []
    axes = _integers(node, values, 3, "axes") or list(range(len(starts)))
    steps = _integers(node, values, 4, "steps") or [1] * len(starts)
    chosen = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = data.shape[axis]
        # An end before the first element counts from nowhere when stepping back.
        stop = None if step < 0 and end < -size else end
        chosen[axis] = slice(start, stop, step)
    return [data[tuple(chosen)]]


def _constant_of_shape(node: Node, values: _Values) -> list[np.ndarray]:
    import onnx

    given = node.attributes.get("value")
    value = np.zeros(1, np.float32) if given is None else onnx.numpy_helper.to_array(given)
    assert values[0] is not None
    return [np.full(tuple(map(int, values[0])), value.reshape(-1)[0], value.dtype)]


def _expand(node: Node, values: _Values) -> list[np.ndarray]:
    assert values[0] is not None and values[1] is not None
    shape = np.broadcast_shapes(values[0].shape, tuple(map(int, values[1])))
    return [np.array(np.broadcast_to(values[0], shape))]


def _split(node: Node, values: _Values) -> list[np.ndarray]:
    data, axis = values[0], node.attributes.get("axis", 0)
    assert data is not None
    sizes = _integers(node, values, 1, "split")
    if sizes is None:
        each = -(-data.shape[axis] // len(node.outputs))
        sizes = [each] * (len(node.outputs) - 1)
    return np.split(data, np.cumsum(sizes)[:len(node.outputs) - 1], axis=axis)


EVALUATORS: Mapping[str, Callable[[Node, _Values], Sequence[np.ndarray]]] = {
    "Identity": _one(lambda x: x), "Neg": _one(np.negative), "Abs": _one(np.abs),
    "Sqrt": _one(np.sqrt), "Exp": _one(np.exp), "Log": _one(np.log), "Floor": _one(np.floor),
    "Ceil": _one(np.ceil), "Sin": _one(np.sin), "Cos": _one(np.cos), "Not": _one(np.logical_not),
    "Reciprocal": _one(np.reciprocal),
    "Add": _one(np.add), "Sub": _one(np.subtract), "Mul": _one(np.multiply),
    "Div": _one(_quotient), "Pow": _one(lambda x, y: np.power(x, y).astype(x.dtype)),
    "And": _one(np.logical_and), "Or": _one(np.logical_or), "Equal": _one(np.equal),
    "Greater": _one(np.greater), "Less": _one(np.less), "GreaterOrEqual": _one(np.greater_equal),
    "LessOrEqual": _one(np.less_equal), "Where": _one(np.where), "MatMul": _one(np.matmul),
    "Range": _one(lambda start, limit, step: np.arange(
        start.item(), limit.item(), step.item(), dtype=start.dtype)),
    "Cast": _cast, "Reshape": _reshape, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze,
    "Slice": _slice, "ConstantOfShape": _constant_of_shape, "Expand": _expand, "Split": _split,
    "Gather": lambda node, values: [np.take(
        values[0], values[1], axis=node.attributes.get("axis", 0))],  # type: ignore[arg-type]
    "Concat": lambda node, values: [np.concatenate(
        values, axis=node.attributes["axis"])],  # type: ignore[arg-type]
    "Transpose": lambda node, values: [np.transpose(
        values[0], node.attributes.get("perm"))],  # type: ignore[arg-type]
    "Tile": _one(lambda data, repeats: np.tile(data, tuple(map(int, repeats)))),
}
"""Operators evaluated with numpy: (node, input values, None where absent) -> results."""
