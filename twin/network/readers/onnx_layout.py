"""Where the axes of an ONNX value end up when channels go last.

ONNX keeps images as (batch, channels, height, width) and signals as (batch, channels, length);
a graph stores them (batch, height, width, channels) and (batch, 1, length, channels). A value is
stored either PLAIN, axes as the file has them, or CHANNELS_LAST.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from twin.network.graph import Shape
from twin.network.readers.onnx_nodes import Node

PLAIN = "plain"
CHANNELS_LAST = "channels_last"

_IMAGE = (0, 2, 3, 1)
_SIGNAL = (0, -1, 2, 1)  # -1 is the height of one a signal gains


def stored_axes(rank: int, layout: str) -> tuple[int, ...]:
    """File axis behind each stored axis; -1 for an added axis of length one.

    Parameters
    ----------
    layout
        PLAIN or CHANNELS_LAST (ranks 3 and 4 only).
    """
    if layout == PLAIN:
        return tuple(range(rank))
    return _IMAGE if rank == 4 else _SIGNAL


def stored_shape(shape: Shape, layout: str) -> Shape:
    """Shape a value of that shape is stored with."""
    return tuple(1 if axis < 0 else shape[axis] for axis in stored_axes(len(shape), layout))


def stored_axis(axis: int, rank: int, layout: str) -> int:
    """Return stored axis of a file axis, which may be negative."""
    return stored_axes(rank, layout).index(axis % rank)


def permutation(shape: Shape, before: str, after: str) -> tuple[int, ...]:
    """File axes of the stored data `before`, in the order `after` wants them."""
    source = [axis for axis in stored_axes(len(shape), before) if axis >= 0]
    target = [axis for axis in stored_axes(len(shape), after) if axis >= 0]
    return tuple(source.index(axis) for axis in target)


def keeps_order(shape: Shape, perm: tuple[int, ...]) -> bool:
    """Whether permuting data of that shape leaves the order of its elements as it is."""
    long_axes = [axis for axis in perm if shape[axis] > 1]
    return long_axes == sorted(long_axes) or math.prod(shape) == 1


_SPATIAL = {"Conv", "ConvTranspose", "AveragePool", "MaxPool", "GlobalAveragePool",
            "GlobalMaxPool", "Resize", "Upsample", "DepthToSpace", "SpaceToDepth"}
_REORDERING = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "MatMul", "Gemm", "LSTM", "GRU", "RNN"}


def guess_layout(name: str, rank: int, consumers: Mapping[str, list[Node]]) -> str:
    """Layout an input of the network comes in, by the first operator that fixes it.

    Parameters
    ----------
    consumers
        Nodes that read each value.
    """
    if rank not in (3, 4):
        return PLAIN
    waiting, seen = [name], {name}
    while waiting:
        for node in consumers.get(waiting.pop(), []):
            perm = list(node.option("perm", ()))
            # A network exported channels last starts by putting channels first.
            if node.op in _REORDERING or perm in ([0, 3, 1, 2], [0, 2, 1]):
                return PLAIN
            if node.op in _SPATIAL or perm == [0, 2, 3, 1]:
                return CHANNELS_LAST
            fresh = [output for output in node.outputs if output not in seen]
            seen.update(fresh)
            waiting += fresh
    return CHANNELS_LAST if rank == 4 else PLAIN
