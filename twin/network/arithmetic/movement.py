"""Operators that move or choose values without computing: the same for integers and floats.

The firmware has no kernels for these; they are here so that networks with them can be computed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from twin.network.arithmetic.integer import Operation
from twin.network.graph import GraphLayer


def cut(step: GraphLayer) -> np.ndarray:
    """Take a box, stepping along each axis, backwards where the step is negative."""
    made = step.data
    parts = zip(step.option("begin"), step.option("strides"), step.shape, strict=True)
    for axis, (first, stride, count) in enumerate(parts):
        made = np.take(made, first + stride * np.arange(count), axis=axis)
    return made


def permute(step: GraphLayer) -> np.ndarray:
    """Put axes into another order."""
    return np.ascontiguousarray(step.data.transpose(step.option("perm")))


def repeat(step: GraphLayer) -> np.ndarray:
    """Repeat a tensor along each axis as often as the result is longer."""
    source, made = step.data.shape, step.shape
    lifted = step.data.reshape((1,) * (len(made) - len(source)) + source)
    return np.tile(lifted, [size // before for size, before in zip(
        made, lifted.shape, strict=True)])


def deepen(step: GraphLayer) -> np.ndarray:
    """Move blocks of pixels into channels."""
    block = step.option("block")
    batch, rows, columns, depth = step.data.shape
    apart = step.data.reshape(batch, rows // block, block, columns // block, block, depth)
    return apart.transpose(0, 1, 3, 2, 4, 5).reshape(step.shape)


def flatten(step: GraphLayer) -> np.ndarray:
    """Move channels into blocks of pixels."""
    block = step.option("block")
    batch, rows, columns, depth = step.data.shape
    inner = depth // (block * block)
    if step.option("order", "dcr") == "crd":
        apart = step.data.reshape(batch, rows, columns, inner, block, block)
        apart = apart.transpose(0, 1, 2, 4, 5, 3)
    else:
        apart = step.data.reshape(batch, rows, columns, block, block, inner)
    return apart.transpose(0, 1, 3, 2, 4, 5).reshape(step.shape)


def choose_less(step: GraphLayer) -> np.ndarray:
    """Return the smaller of two values of one scale."""
    _check_scales(step)
    return np.minimum(*step.inputs)


def choose_more(step: GraphLayer) -> np.ndarray:
    """Return the greater of two values of one scale."""
    _check_scales(step)
    return np.maximum(*step.inputs)


def _check_scales(step: GraphLayer) -> None:
    tensors = [step.graph.tensors[i] for i in step.layer.tensors]
    if len({str(tensor.quantization) for tensor in tensors}) > 1 or any(
            tensor.is_constant for tensor in tensors):
        raise step.refuse("two computed operands of one " "scale are expected")


OPERATIONS: Mapping[str, Operation] = {
    "slice": cut, "transpose": permute, "tile": repeat, "broadcast_to": repeat,
    "space_to_depth": deepen, "depth_to_space": flatten, "minimum": choose_less,
    "maximum": choose_more,
}
"""Operators on values of any type."""
