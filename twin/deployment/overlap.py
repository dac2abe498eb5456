"""How far a layer's output may lie over the input it is made from.

A convolution writes its output front to back and reads its input front to back: what it has read
for the last time may be overwritten. So output and input share memory when the input starts far
enough behind the output. Tools that plan so report an arena barely larger than the network's
largest tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from twin.deployment.memories import Buffer, list_neighbours
from twin.network.graph import Graph, Layer
from twin.network.operators import Form, is_alias, traits

Distances = Mapping[tuple[int, int], int]
"""Bytes a buffer must start behind another, by their places."""


def overlap_distance_bytes(graph: Graph, layer: Layer, in_place: tuple[str, ...]) -> int | None:
    """Return how far behind its output a layer's first input must start to share its memory.

    Parameters
    ----------
    layer
        A layer of it; its first input must not be needed afterwards.
    in_place
        Operators that may write over what they read, element by element.

    Returns
    -------
    int or None
        Least offset of the input less offset of the output; None where they must lie apart.

    Notes
    -----
    For a window moving by rows: max over output rows y of (y + 1) x output row bytes - first input
    row still needed at y x input row bytes, where that row is y x stride - padding. For a window
    of one position, pixel by pixel: max(0, output bytes - input bytes). It is assumed that a row
    of output is complete in scratch before it is written.

    References
    ----------
    P. Blacker, C. P. Bridges, S. Hadfield, "Diagonal Memory Optimisation for Machine
    Learning on Micro-controllers", 2020, arXiv:2010.01668.
    """
    source, output = graph.ends(layer)
    if source.is_constant or is_alias(layer):
        return None
    if layer.op in in_place:
        return 0 if source.size_bytes >= output.size_bytes else None
    slides = traits(layer).form is Form.WINDOW
    if not slides or layer.window is None or source.shape[0] != 1:
        return None
    if layer.window.kernel == (1, 1) and layer.window.stride == (1, 1):
        return max(0, output.size_bytes - source.size_bytes)
    row_in, row_out = (tensor.size_bytes // tensor.shape[1] for tensor in (source, output))
    stride, top = layer.window.stride[0], layer.window.padding[0]
    return max((y + 1) * row_out - max(0, y * stride - top) * row_in
               for y in range(output.shape[1]))


def place_overlapping(buffers: Sequence[Buffer], sizes_bytes: Sequence[int],
                      distances: Distances) -> None:
    """Place buffers where the arena grows least, some of them over each other.

    Parameters
    ----------
    buffers
        Their `offset_bytes` is set; the lowest is 0.
    distances : mapping of (int, int) to int
        (behind, ahead): least offset of the first less offset of the second, aligned, for pairs
        that may share memory. All other pairs alive together lie apart.

    Notes
    -----
    Greedy: largest first, oldest first and youngest first are tried; the smallest arena is kept.
    """
    orders: tuple[Callable[[int], tuple[int, int]], ...] = (
        lambda i: (-sizes_bytes[i], buffers[i].first),
        lambda i: (buffers[i].first, -sizes_bytes[i]),
        lambda i: (-buffers[i].last, -sizes_bytes[i]))
    beside = list_neighbours(buffers)
    plans = [_place_in_order(sorted(range(len(buffers)), key=order), beside, sizes_bytes,
                             distances) for order in orders]
    best = min(plans, key=lambda offsets: _extent(offsets, sizes_bytes))
    lowest = min(best, default=0)
    for buffer, offset in zip(buffers, best, strict=True):
        buffer.offset_bytes = offset - lowest


def _extent(offsets: Sequence[int], sizes: Sequence[int]) -> int:
    ends = (offset + size for offset, size in zip(offsets, sizes, strict=True))
    return max(ends, default=0) - min(offsets, default=0)


def _place_in_order(order: Sequence[int], beside: Sequence[Sequence[int]], sizes: Sequence[int],
                    distances: Distances) -> list[int]:
    offsets = [0] * len(beside)
    low = high = 0
    placed: set[int] = set()
    for i in order:
        together = [j for j in beside[i] if j in placed]
        places = {low}
        for j in together:
            places |= {offsets[j] + sizes[j], offsets[j] - sizes[i]}
            if (i, j) in distances:
                places.add(offsets[j] + distances[i, j])
            if (j, i) in distances:
                places.add(offsets[j] - distances[j, i])
        # Above everything is among the places, so one always fits.
        offsets[i] = min(
            (offset for offset in places
             if all(_may_lie(i, offset, j, offsets[j], sizes, distances) for j in together)),
            key=lambda offset: (max(high, offset + sizes[i]) - min(low, offset), offset))
        low, high = min(low, offsets[i]), max(high, offsets[i] + sizes[i])
        placed.add(i)
    return offsets


def _may_lie(i: int, at: int, j: int, other: int, sizes: Sequence[int],
             distances: Distances) -> bool:
    if at + sizes[i] <= other or other + sizes[j] <= at:
        return True
    return (((i, j) in distances and at - other >= distances[i, j])
            or ((j, i) in distances and other - at >= distances[j, i]))
