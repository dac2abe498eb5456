"""ONNX patterns that are one operator in a graph: folded before conversion."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from twin.network.operators import ACTIVATION_BOUNDS
from twin.network.readers.onnx_composites import write_out
from twin.network.readers.onnx_gelu import fuse_gelu
from twin.network.readers.onnx_nodes import Node, OnnxModel, read_batch_norm
from twin.network.readers.refusal import UnsupportedError

ACTIVATED = {"Conv", "ConvTranspose", "Gemm", "MatMul", "Add", "Sub", "Mul", "AveragePool",
             "MaxPool"}
"""Operators an activation right behind is fused into."""


_ACTIVATIONS: dict[tuple[float | None, float | None], str] = {
    (low, None if math.isinf(high) else high): name
    for name, (low, high) in ACTIVATION_BOUNDS.items()}
"""By their bounds."""


@dataclass(slots=True, kw_only=True)
class Group:
    """A node with the bias and activation fused into it.

    Parameters
    ----------
    output
        Value the last fused node writes.
    bias
        Constant a fused Add brings, "" without.
    fused
        Nodes besides `node` this stands for.
    quantised
        Integers in and out.
    """

    node: Node
    output: str
    activation: str | None
    bias: str
    fused: list[Node]
    quantised: bool = False


def fuse_nodes(model: OnnxModel) -> None:
    """Fold batch normalisation, gates and division by a constant; write composites out."""
    _fold_batch_normalisation(model)
    _fuse_hard_swish(model)
    fuse_gelu(model)
    write_out(model)
    _invert_divisors(model)


def _fold_batch_normalisation(model: OnnxModel) -> None:
    """Multiply a BatchNormalization's scale into the weights of the convolution before it.

    Notes
    -----
    y = gamma (x - mean) / sqrt(variance + epsilon) + beta, per output channel.
    """
    consumers = model.consumers()
    makers = model.makers()
    kept = []
    for node in model.nodes:
        conv = makers.get(node.source) if node.op == "BatchNormalization" else None
        parts = read_batch_norm(model, node) if conv is not None else ()
        weights = None if conv is None else model.constants.get(conv.input(1))
        if (conv is None or conv.op != "Conv" or weights is None or not parts
                or len(consumers[node.source]) > 1 or node.source in model.outputs):
            kept.append(node)
            continue
        factor, beta, mean = parts
        bias = np.asarray(model.constants.get(conv.input(2), 0.0), np.float64)
        shape = (-1,) + (1,) * (weights.ndim - 1)
        # A new name: another convolution may share the old weights.
        names = [f"{node.result}/weights", f"{node.result}/bias"]
        values = [weights * factor.reshape(shape), beta + (bias - mean) * factor]
        for name, value in zip(names, values, strict=True):
            model.add_constant(name, value.astype(weights.dtype))
        conv.inputs, conv.outputs = [conv.source, *names], list(node.outputs[:1])
    model.nodes = kept


def _fuse_hard_swish(model: OnnxModel) -> None:
    """Replace x * HardSigmoid(x; 1/6, 1/2) by HardSwish(x)."""
    makers = model.makers()
    consumers = model.consumers()
    gone: set[int] = set()
    for node in model.nodes:
        if node.op != "Mul":
            continue
        for factor, gate in (node.inputs, node.inputs[::-1]):
            maker = makers.get(gate)
            if (maker is not None and maker.op == "HardSigmoid" and maker.source == factor
                    and len(consumers[gate]) == 1
                    and abs(maker.option("alpha", 0.2) - 1 / 6) < 1e-4
                    and maker.option("beta", 0.5) == 0.5):
                node.op, node.inputs, node.proto = "HardSwish", [factor], None
                gone.add(id(maker))
                break
    model.nodes = [node for node in model.nodes if id(node) not in gone]


def _invert_divisors(model: OnnxModel) -> None:
    for node in model.nodes:
        divisor = model.constants.get(node.input(1)) if node.op == "Div" else None
        if divisor is not None and divisor.dtype.kind == "f" and divisor.all():
            name = model.add_constant(f"{node.result}/reciprocal",
                                      (1 / divisor).astype(divisor.dtype))
            node.op, node.inputs, node.proto = "Mul", [node.source, name], None


def clip_bounds(model: OnnxModel, node: Node) -> tuple[float | None, float | None]:
    """Return the constant bounds of a Clip, None for one that is absent or without effect."""
    bounds = []
    for place, key in ((1, "min"), (2, "max")):
        given = node.option(key)
        if node.input(place):
            given = model.scalar(node.inputs[place])
            if given is None:
                raise UnsupportedError("bounds computed at run time")
        bounds.append(None if given is None or abs(given) > 1e30 else float(given))
    return bounds[0], bounds[1]


def clip_activation(model: OnnxModel, node: Node) -> str | None:
    """Return the activation a Relu or Clip is, None when it is another clip."""
    if node.op == "Relu":
        return "relu"
    if node.op != "Clip":
        return None
    try:
        bounds = clip_bounds(model, node)
    except UnsupportedError:
        return None
    return _ACTIVATIONS.get(bounds)


def group_nodes(model: OnnxModel) -> list[Group]:
    """Put each node together with the bias and activation fused into it."""
    consumers = model.consumers()
    taken: set[int] = set()
    groups = []

    def only_reader(name: str) -> Node | None:
        readers = consumers.get(name, [])
        return readers[0] if len(readers) == 1 and name not in model.outputs else None

    for node in model.nodes:
        if id(node) in taken:
            continue
        group = Group(node=node, output=node.result if node.outputs else "",
                      activation=None, bias="", fused=[])
        reader = only_reader(group.output)
        if node.op == "MatMul" and reader is not None and reader.op == "Add":
            other = [name for name in reader.inputs if name != group.output]
            width = model.shapes.get(group.output, (0,))[-1]
            if other and other[0] in model.constants and model.shapes[other[0]] == (width,):
                group.bias, group.output = other[0], reader.result
                group.fused.append(reader)
                reader = only_reader(group.output)
        if node.op in ACTIVATED and reader is not None:
            group.activation = clip_activation(model, reader)
            if group.activation is not None:
                group.output = reader.result
                group.fused.append(reader)
        taken.update(id(other) for other in group.fused)
        groups.append(group)
    return groups
