"""Shapes and types of every value of an .onnx file, in one pass over its nodes.

Nodes of constants are evaluated on the way, so a shape that the file computes is known when the
node that needs it is reached; branches that constants choose are taken. Each node is looked at
once: the time is linear in their number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from twin.errors import ModelError
from twin.network.graph import Shape
from twin.network.readers.budget import Budget, check_operators
from twin.network.readers.onnx_folding import fold
from twin.network.readers.onnx_nodes import DTYPES, MICROSOFT, Node, OnnxModel, to_proto

_SEEN_ELEMENTS = 1024
"""Values of constants up to this size go into shape inference: shapes, axes, repeats."""

_LIKE_FIRST = {"Identity", "Dropout", "DequantizeLinear", "QuantizeLinear",
               *(f"{MICROSOFT}.{name}" for name in (
                   "Gelu", "FastGelu", "BiasGelu", "QuickGelu", "SkipLayerNormalization"))}
"""Operators whose result has the shape of their first input."""

_NUMBERS = {name: number for number, name in DTYPES.items()}


def settle_shapes(model: OnnxModel, proto: Any, make_nodes: Callable[[Any], list[Node]],
                  budget: Budget) -> None:
    """Work out every shape and type, and evaluate what is constant.

    Parameters
    ----------
    model
        Nodes in order; loses those that are evaluated.
    proto
        What it was made of: declared shapes stand in where none can be worked out.
    make_nodes
        (onnx.GraphProto) -> nodes, for a branch that is taken.

    Raises
    ------
    ModelError
        When the file asks for more than the budget.
    """
    declared = _declare(model, proto)
    opsets = {entry.domain: entry.version for entry in proto.opset_import}
    waiting, kept = deque(model.nodes), []
    renamed: dict[str, str] = {}
    seen = 0
    while waiting:
        node = waiting.popleft()
        seen += 1
        check_operators(model.path, seen)
        node.inputs = [renamed.get(name, name) for name in node.inputs]
        branch = _chosen_branch(model, node)
        if branch is not None:
            inside = make_nodes(branch)
            renamed |= {output: value.name for output, value in zip(
                node.outputs, branch.output, strict=True)}
            waiting.extendleft(reversed(inside))
            continue
        _describe(model, node, opsets, declared)
        if not fold(model, node, budget):
            kept.append(node)
    model.nodes = kept
    model.outputs = [renamed.get(name, name) for name in model.outputs]


def _declare(model: OnnxModel, proto: Any) -> dict[str, Shape]:
    """Take over the shapes the file states; those of inputs and constants hold."""
    stated: dict[str, Shape] = {}
    for name, constant in model.constants.items():
        model.shapes[name], model.dtypes[name] = constant.shape, str(constant.dtype)
    for value in (*proto.graph.input, *proto.graph.value_info, *proto.graph.output):
        kind = value.type.tensor_type
        shape = _fixed(kind)
        if shape is not None:
            stated[value.name] = shape
        if value.name in model.inputs and shape is not None:
            model.shapes[value.name] = shape
        if kind.elem_type and value.name not in model.constants:
            model.dtypes[value.name] = DTYPES.get(kind.elem_type, str(kind.elem_type))
    return stated


def _fixed(kind: Any) -> Shape | None:
    """Shape of a declared type, None unless every dimension is a number."""
    if not kind.HasField("shape") or not all(dim.HasField("dim_value") and dim.dim_value >= 0
                                             for dim in kind.shape.dim):
        return None
    return tuple(dim.dim_value for dim in kind.shape.dim)


def _chosen_branch(model: OnnxModel, node: Node) -> Any:
    """Graph of the branch a constant chooses, None where the node is no such choice."""
    condition = model.constants.get(node.input(0)) if node.op == "If" else None
    if condition is None or condition.size != 1:
        return None
    return node.attributes["then_branch" if condition.reshape(-1)[0] else "else_branch"]


def _describe(model: OnnxModel, node: Node, opsets: Mapping[str, int],
              declared: Mapping[str, Shape]) -> None:
    """Note shapes and types of a node's outputs."""
    first = node.input(0)
    if node.op in _LIKE_FIRST and first in model.shapes:
        model.shapes[node.result] = model.shapes[first]
        model.dtypes[node.result] = _type_like(model, node)
        return
    for name, (shape, dtype) in _infer(model, node, opsets).items():
        if dtype is not None:
            model.dtypes[name] = dtype
        if shape is not None:
            model.shapes[name] = shape
    for name in node.outputs:
        if name and name not in model.shapes and name in declared:
            model.shapes[name] = declared[name]
    bound = _BOUNDS.get(node.op)
    if bound is not None and node.result not in model.shapes:
        shape = bound(model, node)
        if shape is not None:
            model.shapes[node.result] = shape
            model.notes.append(f"{node.op} {node.result!r} is taken to find {shape}, the most "
                               "it can (assumed)")


def _type_like(model: OnnxModel, node: Node) -> str:
    """Type of a result that has the shape of the first input."""
    if node.op == "QuantizeLinear":
        zero = node.input(2)
        stated = node.option("output_dtype", 0) or _NUMBERS["uint8"]
        return model.dtypes[zero] if zero else DTYPES[stated]
    source = node.inputs[1] if node.op == "DequantizeLinear" else node.source
    return model.dtypes.get(source, "float32")


def _infer(model: OnnxModel, node: Node, opsets: Mapping[str, int],
           ) -> dict[str, tuple[Shape | None, str | None]]:
    """Ask the onnx package what it knows of a node's outputs."""
    import onnx

    domain, _, op = node.op.rpartition(".")
    schema = _find_schema(op, opsets.get(domain, model.opset), domain)
    if schema is None or any(name and name not in model.dtypes for name in node.inputs):
        return {}
    types = {name: _type(model, name) for name in node.inputs if name}
    data = {name: onnx.numpy_helper.from_array(model.constants[name], name)
            for name in types if name in model.constants
            and model.constants[name].size <= _SEEN_ELEMENTS}
    imports = [onnx.helper.make_opsetid(name, version) for name, version in opsets.items()]
    try:
        made = onnx.shape_inference.infer_node_outputs(
            schema, to_proto(node), types, data, opset_imports=imports)
    except onnx.shape_inference.InferenceError as error:
        raise ModelError(f"{model.path}: {node.op} {node.result!r}: inputs do not fit: "
                         f"{str(error).strip().splitlines()[0]}") from None
    return {name: (_fixed(value.tensor_type), DTYPES.get(value.tensor_type.elem_type))
            for name, value in made.items()}


@lru_cache(maxsize=256)
def _find_schema(op: str, version: int, domain: str) -> Any:
    import onnx

    try:
        return onnx.defs.get_schema(op, version, domain)
    except onnx.defs.SchemaError:
        return None


def _type(model: OnnxModel, name: str) -> Any:
    import onnx

    return onnx.helper.make_tensor_type_proto(
        _NUMBERS.get(model.dtypes[name], 1), model.shapes.get(name))


def _bound_suppression(model: OnnxModel, node: Node) -> Shape | None:
    """As many boxes as a detector may keep: per batch and class."""
    scores = model.shapes.get(node.input(1))
    most = model.constants.get(node.input(2)) if node.input(2) else np.zeros(1)
    if scores is None or most is None:
        return None
    batch, classes, boxes = scores
    return (max(1, batch * classes * min(boxes, int(most.reshape(-1)[0]))), 3)


def _bound_found(model: OnnxModel, node: Node) -> Shape | None:
    """Every element, by one index a dimension."""
    shape = model.shapes.get(node.input(0))
    return None if shape is None else (len(shape), int(np.prod(shape, dtype=object)))


_BOUNDS: Mapping[str, Callable[[OnnxModel, Node], Shape | None]] = {
    "NonMaxSuppression": _bound_suppression, "NonZero": _bound_found,
}
"""Operators whose number of results the data decide: the most there can be."""


def list_unknown(model: OnnxModel) -> Sequence[str]:
    """Return the values that are read, or leave the network, without a static shape."""
    read = {name for node in model.nodes for name in node.inputs} | set(model.outputs)
    return [f"{node.op} {name!r}" for node in model.nodes for name in node.outputs
            if name in read and name not in model.shapes]
