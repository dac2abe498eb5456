"""Scales and zero points of an .onnx file's integers, as its quantisers state them."""

from __future__ import annotations

import numpy as np

from twin.errors import ModelError
from twin.network.graph import Quantization
from twin.network.readers.onnx_nodes import Node, OnnxModel

QUANTISING = {"QuantizeLinear", "DequantizeLinear"}
_MOVING = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "MaxPool"}


def find_quantization(model: OnnxModel) -> dict[str, Quantization]:
    """Return the quantisation of every integer value a quantiser makes or reads.

    Raises
    ------
    ModelError
        When a scale is computed at run time.
    """
    found: dict[str, Quantization] = {}
    for node in model.nodes:
        if node.op in QUANTISING:
            name = node.result if node.op == "QuantizeLinear" else node.source
            found.setdefault(name, read_quantization(model, node))
    for node in reversed(model.nodes):
        # What moves integers without looking at them has one scale on both sides.
        if node.op in _MOVING and node.result in found:
            found.setdefault(node.source, found[node.result])
    return found


def read_quantization(model: OnnxModel, node: Node) -> Quantization:
    """Return what a quantiser states.

    Raises
    ------
    ModelError
        When it is computed at run time, or stated for blocks of a channel.
    """
    scales = model.constants.get(node.inputs[1])
    zeros = model.constants.get(node.input(2)) if node.input(2) else None
    if scales is None or (node.input(2) and zeros is None):
        raise ModelError(f"{model.path}: {node.op} of {node.source!r}: scale and zero point "
                         "must be constants")
    if zeros is None:
        zeros = np.zeros(scales.shape, np.int64)
    rank = len(model.shapes[node.source])
    if scales.size > 1 and (node.option("block_size", 0) or not rank):
        raise ModelError(f"{model.path}: {node.op} of {node.source!r}: scales for blocks; "
                         "accepted: one scale for all, or one a channel")
    axis = node.option("axis", 1) % rank if scales.size > 1 else None
    return Quantization(scales=tuple(map(float, scales.reshape(-1))),
                        zero_points=tuple(map(int, zeros.reshape(-1))), axis=axis)
