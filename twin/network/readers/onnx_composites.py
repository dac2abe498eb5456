"""ONNX operators that are several simple ones, written out as exporters of old wrote them.

A layer normalisation that is one operator reads like one that a file spells out, and every
runtime prices what it would run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from twin.network.readers.onnx_einsum import write_einsum
from twin.network.readers.onnx_nodes import MICROSOFT, Node, OnnxModel, Rewriter, read_batch_norm


def write_out(model: OnnxModel) -> None:
    """Replace every operator of `COMPOSITES` whose parts are known by simple ones."""
    made: list[Node] = []
    for node in model.nodes:
        write = COMPOSITES.get(node.op)
        known = all(name in model.shapes for name in (*node.inputs, node.result) if name)
        parts = write(Rewriter(model, node)) if write is not None and known else None
        made += [node] if parts is None else parts
    model.nodes = made


def _normalise(rewriter: Rewriter, source: str, axes: list[int], epsilon: float) -> str:
    """(x - mean) / sqrt(variance + epsilon) along axes."""
    shape = rewriter.model.shapes[source]
    mean = rewriter.reduce("ReduceMean", source, axes)
    centred = rewriter.add("Sub", [source, mean], shape)
    squared = rewriter.add("Pow", [centred, rewriter.constant(2.0)], shape)
    variance = rewriter.reduce("ReduceMean", squared, axes)
    kept = rewriter.model.shapes[variance]
    safe = rewriter.add("Add", [variance, rewriter.constant(epsilon)], kept)
    return rewriter.add("Div", [centred, rewriter.add("Sqrt", [safe], kept)], shape)


def _scaled(rewriter: Rewriter, source: str, scale: str, bias: str) -> list[Node]:
    result = rewriter.add("Mul", [source, scale])
    if bias:
        rewriter.add("Add", [result, bias])
    return rewriter.finish()


def _layer_normalization(rewriter: Rewriter) -> list[Node] | None:
    node = rewriter.node
    if any(name and (name in rewriter.model.outputs) for name in node.outputs[1:]):
        return None
    rank = len(rewriter.shape)
    first = node.option("axis", -1) % rank
    whole = _normalise(rewriter, node.source, list(range(first, rank)),
                       node.option("epsilon", 1e-5))
    return _scaled(rewriter, whole, node.inputs[1], node.input(2))


def _rms_normalization(rewriter: Rewriter) -> list[Node]:
    node, shape = rewriter.node, rewriter.shape
    first = node.option("axis", -1) % len(shape)
    squared = rewriter.add("Pow", [node.source, rewriter.constant(2.0)], shape)
    mean = rewriter.reduce("ReduceMean", squared, list(range(first, len(shape))))
    kept = rewriter.model.shapes[mean]
    safe = rewriter.add("Add", [mean, rewriter.constant(node.option("epsilon", 1e-5))], kept)
    whole = rewriter.add("Div", [node.source, rewriter.add("Sqrt", [safe], kept)], shape)
    return _scaled(rewriter, whole, node.inputs[1], "")


def _skip_layer_normalization(rewriter: Rewriter) -> list[Node]:
    node = rewriter.node
    total = rewriter.add("Add", node.inputs[:2])
    rank = len(rewriter.model.shapes[total])
    whole = _normalise(rewriter, total, [rank - 1], node.option("epsilon", 1e-12))
    return _scaled(rewriter, whole, node.inputs[2], node.input(3))


def _channels(rewriter: Rewriter, place: int, rank: int) -> str:
    """Return a constant vector over channels, shaped to broadcast over an image."""
    name = rewriter.node.inputs[place]
    values = rewriter.model.constants.get(name)
    if values is None:
        size = rewriter.model.shapes[name]
        return rewriter.add("Reshape", [name], (*size, *(1,) * (rank - 2)))
    return rewriter.constant(values.reshape(-1, *(1,) * (rank - 2)))


def _instance_normalization(rewriter: Rewriter) -> list[Node]:
    node = rewriter.node
    rank = len(rewriter.shape)
    whole = _normalise(rewriter, node.source, list(range(2, rank)), node.option("epsilon", 1e-5))
    return _scaled(rewriter, whole, _channels(rewriter, 1, rank), _channels(rewriter, 2, rank))


def _group_normalization(rewriter: Rewriter) -> list[Node] | None:
    node, shape = rewriter.node, rewriter.shape
    groups = node.attributes["num_groups"]
    if rewriter.model.shapes[node.inputs[1]] != (shape[1],):
        return None
    apart = rewriter.add("Reshape", [node.source],
                         (shape[0], groups, math.prod(shape[1:]) // groups))
    whole = _normalise(rewriter, apart, [2], node.option("epsilon", 1e-5))
    together = rewriter.add("Reshape", [whole], shape)
    return _scaled(rewriter, together, _channels(rewriter, 1, len(shape)),
                   _channels(rewriter, 2, len(shape)))


def _batch_normalization(rewriter: Rewriter) -> list[Node] | None:
    """Scale and shift by constants, where no convolution took it up."""
    parts = read_batch_norm(rewriter.model, rewriter.node)
    if not parts:
        return None
    factor, beta, mean = parts
    behind = (-1, *(1,) * (len(rewriter.shape) - 2))
    return _scaled(rewriter, rewriter.node.source, rewriter.constant(factor.reshape(behind)),
                   rewriter.constant((beta - mean * factor).reshape(behind)))


def _norm(rewriter: Rewriter, op: str, root: bool) -> list[Node] | None:
    """Sum of squares or magnitudes along axes, with or without the root."""
    node, shape = rewriter.node, rewriter.shape
    axes = node.option("axes")
    if node.input(1):
        given = rewriter.model.constants.get(node.inputs[1])
        if given is None:
            return None
        axes = given.reshape(-1).tolist()
    axes = [axis % len(shape) for axis in axes or range(len(shape))]
    each = rewriter.add(op, [node.source] * (2 if op == "Mul" else 1), shape)
    keep = bool(node.option("keepdims", 1))
    total = rewriter.reduce("ReduceSum", each, axes, keep=keep)
    if root:
        rewriter.add("Sqrt" if op == "Mul" else "Log", [total])
    return rewriter.finish()


def _chain(rewriter: Rewriter, op: str) -> list[Node] | None:
    """One operator of many operands as many of two."""
    names = rewriter.node.inputs
    if rewriter.node.op == op and len(names) == 2:
        return None
    total = names[0]
    shapes = rewriter.model.shapes
    for name in names[1:]:
        total = rewriter.add(op, [total, name], np.broadcast_shapes(shapes[total], shapes[name]))
    if rewriter.node.op == "Mean":
        rewriter.add("Mul", [total, rewriter.constant(1 / len(names))])
    return rewriter.finish() if rewriter.made else None


def _gemm(rewriter: Rewriter) -> list[Node] | None:
    """Take the factors and the transposition of the left side out of a matrix product."""
    node, model = rewriter.node, rewriter.model
    alpha, beta = node.option("alpha", 1.0), node.option("beta", 1.0)
    bias = node.input(2)
    width = model.shapes[node.result][-1]
    plain = bias in model.constants and model.shapes[bias] == (width,)
    quantised = bias not in model.constants and not node.option("transA", 0)
    if alpha == beta == 1.0 and not node.option("transA", 0) and (
            not bias or plain or (quantised and model.shapes[bias] == (width,))):
        return None
    left = node.source
    if node.option("transA", 0):
        left = rewriter.add("Transpose", [left], model.shapes[left][::-1], perm=[1, 0])
    result = rewriter.add("Gemm", [left, node.inputs[1]], transB=node.option("transB", 0))
    if alpha != 1.0:
        result = rewriter.add("Mul", [result, rewriter.constant(alpha)])
    if bias and beta != 1.0:
        bias = rewriter.add("Mul", [bias, rewriter.constant(beta)], model.shapes[bias])
    if bias:
        rewriter.add("Add", [result, bias])
    return rewriter.finish()


def _biased_gelu(rewriter: Rewriter) -> list[Node]:
    node = rewriter.node
    source = node.source
    if node.input(1):
        source = rewriter.add("Add", node.inputs[:2])
    rewriter.add("Gelu", [source])
    return rewriter.finish()


def _fused_matmul(rewriter: Rewriter) -> list[Node]:
    node, shapes = rewriter.node, rewriter.model.shapes
    sides = []
    for name, key in zip(node.inputs[:2], ("transA", "transB"), strict=True):
        if node.option(key, 0):
            rank = len(shapes[name])
            perm = [*range(rank - 2), rank - 1, rank - 2]
            name = rewriter.add("Transpose", [name], [shapes[name][axis] for axis in perm],
                                perm=perm)
        sides.append(name)
    result = rewriter.add("MatMul", sides)
    if node.option("alpha", 1.0) != 1.0:
        rewriter.add("Mul", [result, rewriter.constant(node.attributes["alpha"])])
    return rewriter.finish()


COMPOSITES: Mapping[str, Callable[[Rewriter], list[Node] | None]] = {
    "LayerNormalization": _layer_normalization, "RMSNormalization": _rms_normalization,
    f"{MICROSOFT}.SkipLayerNormalization": _skip_layer_normalization,
    "InstanceNormalization": _instance_normalization, "GroupNormalization": _group_normalization,
    "BatchNormalization": _batch_normalization,
    **{f"Reduce{name}": partial(_norm, op=op, root=root) for name, op, root in (
        ("L2", "Mul", True), ("SumSquare", "Mul", False), ("L1", "Abs", False),
        ("LogSumExp", "Exp", True))},
    **{name: partial(_chain, op=op) for name, op in (
        ("Sum", "Add"), ("Mean", "Add"), ("Max", "Max"), ("Min", "Min"))},
    "Gemm": _gemm, "Einsum": write_einsum,
    **{f"{MICROSOFT}.{name}": _biased_gelu for name in (
        "Gelu", "FastGelu", "BiasGelu", "QuickGelu")},
    f"{MICROSOFT}.FusedMatMul": _fused_matmul,
}
"""Operators written out: rewriter -> nodes, None where the node is to stay."""
