"""Operators that move or choose values without computing: the same for integers and floats.

The firmware has no kernels for these; they are here so that networks with them can be computed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from twin.errors import RuntimeRefusedError
from twin.network.arithmetic.integer import Operands, Operation
from twin.network.graph import Graph, Layer


def cut(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Take a box, stepping along each axis, backwards where the step is negative."""
    made = inputs[0]
    parts = zip(layer.option("begin"), layer.option("strides"), graph.output(layer).shape,
                strict=True)
    for axis, (first, step, count) in enumerate(parts):
        made = np.take(made, first + step * np.arange(count), axis=axis)
    return made


def permute(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Put axes into another order."""
    return np.ascontiguousarray(inputs[0].transpose(layer.option("perm")))


def repeat(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Repeat a tensor along each axis as often as the result is longer."""
    source, made = inputs[0].shape, graph.output(layer).shape
    lifted = inputs[0].reshape((1,) * (len(made) - len(source)) + source)
    return np.tile(lifted, [size // before for size, before in zip(
        made, lifted.shape, strict=True)])


def deepen(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Move blocks of pixels into channels."""
    block = layer.option("block")
    batch, rows, columns, depth = inputs[0].shape
    apart = inputs[0].reshape(batch, rows // block, block, columns // block, block, depth)
    return apart.transpose(0, 1, 3, 2, 4, 5).reshape(graph.output(layer).shape)


def flatten(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Move channels into blocks of pixels."""
    block = layer.option("block")
    batch, rows, columns, depth = inputs[0].shape
    inner = depth // (block * block)
    if layer.option("order", "dcr") == "crd":
        apart = inputs[0].reshape(batch, rows, columns, inner, block, block)
        apart = apart.transpose(0, 1, 2, 4, 5, 3)
    else:
        apart = inputs[0].reshape(batch, rows, columns, block, block, inner)
    return apart.transpose(0, 1, 3, 2, 4, 5).reshape(graph.output(layer).shape)


def choose_less(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Return the smaller of two values of one scale."""
    _check_scales(graph, layer)
    return np.minimum(*inputs)


def choose_more(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Return the greater of two values of one scale."""
    _check_scales(graph, layer)
    return np.maximum(*inputs)


def _check_scales(graph: Graph, layer: Layer) -> None:
    tensors = [graph.tensors[i] for i in layer.tensors]
    if len({str(tensor.quantization) for tensor in tensors}) > 1 or any(
            tensor.is_constant for tensor in tensors):
        raise RuntimeRefusedError(f"layer {layer.index} {layer.op}: two computed operands of one "
                                  "scale are expected")


OPERATIONS: Mapping[str, Operation] = {
    "slice": cut, "transpose": permute, "tile": repeat, "broadcast_to": repeat,
    "space_to_depth": deepen, "depth_to_space": flatten, "minimum": choose_less,
    "maximum": choose_more,
}
"""Operators on values of any type."""
