"""How a layer's tensors become stream engines: pools and patterns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from hwmodels.errors import BoardError
from hwmodels.npu import Npu, Pool, StreamEngine
from twin.network.graph import Graph, Layer, Tensor
from twin.network.operators import Form, traits
from twin.runtimes.units import Work


def pool_of(npu: Npu, memory: str, *, beside: str = "") -> Pool:
    """Return the pool in a memory, another one than `beside` where the memory has several.

    Raises
    ------
    BoardError
        When the accelerator reaches no pool in that memory.
    """
    pools = [pool for pool in npu.pools if pool.memory == memory]
    if not pools:
        raise BoardError(f"{npu.name} reaches no pool in memory {memory!r}; it reaches: "
                         + ", ".join(dict.fromkeys(pool.memory for pool in npu.pools)))
    return next((pool for pool in pools if pool.name != beside), pools[0])


def read_activation(tensor: Tensor, pool: str, *, scattered: bool, rows: int = 1) -> StreamEngine:
    """Return an engine that reads a tensor; `scattered`: channel by channel, an element at a time.

    Outside the chip the compiler is taken to walk all channels of `rows` rows before the next, so
    that lines of the NPU cache are used up; on it the order is of no account.
    """
    return _activation(tensor, pool, "in", scattered, rows)


def write_activation(tensor: Tensor, pool: str, *, scattered: bool) -> StreamEngine:
    """Return an engine that writes a tensor."""
    return _activation(tensor, pool, "out", scattered, 1)


def read_weights(work: Work, pool: str, *, encoded: bool) -> list[StreamEngine]:
    """Engines that stream a layer's weights, one per convolution unit that needs its own."""
    share, rest = divmod(work.weight_bytes, max(1, work.weight_streams))
    sizes = [share + (position < rest) for position in range(work.weight_streams)]
    return [StreamEngine(index=0, direction="in", interface="", pool=pool, bytes=size,
                         buffer_bytes=work.weight_bytes, operand="weights", encoded=encoded)
            for size in sizes if size]


def stage_weights(work: Work, pool: str) -> list[StreamEngine]:
    """Return two engines that bring a layer's weights from a pool to where they are staged."""
    return [StreamEngine(index=0, direction=direction, interface="", pool=name,
                         bytes=work.weight_bytes, buffer_bytes=work.weight_bytes,
                         operand="weights")
            for direction, name in (("in", pool), ("out", work.staged_in))]


def move_tensors(graph: Graph, layer: Layer, pool: Callable[[int], str]) -> list[StreamEngine]:
    """Engines of an operator that only moves data: a pair for each piece it moves.

    Parameters
    ----------
    graph : Graph
        The network.
    layer : Layer
        Of a moved operator.
    pool : callable
        Tensor index -> name of its pool.

    Notes
    -----
    A piece is contiguous at its own tensor and walked in runs at the joined, split, padded or
    permuted one; a run is what stays together: the product of the axes from the operator's on.
    """
    inputs = [i for i in layer.inputs if i >= 0 and not graph.tensors[i].is_constant]
    split = len(layer.outputs) > len(inputs)
    engines = []
    for piece_id in layer.outputs if split else inputs:
        piece = graph.tensors[piece_id]
        resized = traits(layer).form is Form.RESIZE
        moved = graph.tensors[layer.outputs[0]] if resized else piece
        run = _run_bytes(layer, piece)
        whole = run >= moved.size_bytes
        plain = StreamEngine(index=0, direction="out" if split else "in", interface="",
                             pool=pool(piece_id), bytes=moved.size_bytes,
                             buffer_bytes=piece.size_bytes,
                             operand="output" if split else "input")
        other = replace(plain, direction="in" if split else "out",
                        pool=pool(inputs[0] if split else layer.outputs[0]),
                        operand="input" if split else "output",
                        pattern="contiguous" if whole else "strided",
                        run_bytes=0 if whole else run)
        engines += [plain, other]
    return engines


def transpose_layout(tensor: Tensor, pool: str) -> list[StreamEngine]:
    """Engines that turn a tensor from channel-first to channel-last, an element a beat."""
    return copy_image(tensor, pool, scattered=True)


def copy_image(tensor: Tensor, pool: str, *, scattered: bool) -> list[StreamEngine]:
    """Engines that copy an input within its pool; `scattered`: written an element a beat."""
    return [read_activation(tensor, pool, scattered=False),
            write_activation(tensor, pool, scattered=scattered)]


def _activation(tensor: Tensor, pool: str, direction: str, scattered: bool,
                rows: int) -> StreamEngine:
    element_bytes = max(1, tensor.size_bytes // max(1, tensor.elements))
    apart = scattered and tensor.shape[-1] > 1
    return StreamEngine(
        index=0, direction=direction, interface="", pool=pool, bytes=tensor.size_bytes,
        element_bytes=element_bytes, pattern="channel_interleaved" if apart else "contiguous",
        run_bytes=element_bytes if apart else 0,
        stride_bytes=tensor.shape[-1] * element_bytes if apart else 0,
        buffer_bytes=tensor.size_bytes,
        window_bytes=rows * math.prod(tensor.shape[-2:]) * element_bytes if apart else 0,
        operand="input" if direction == "in" else "output")


def _run_bytes(layer: Layer, piece: Tensor) -> int:
    """Bytes of a piece that stay side by side in the tensor it is part of."""
    element_bytes = max(1, piece.size_bytes // max(1, piece.elements))
    axis, perm = layer.option("axis", len(piece.shape) - 1), layer.option("perm", ())
    if perm:
        kept = 1
        for place in reversed(range(len(piece.shape))):
            if perm[place] != place:
                break
            kept *= piece.shape[place]
        return kept * element_bytes
    # What has no axis keeps a row of channels together: padding, slicing, upsampling.
    return math.prod(piece.shape[axis:]) * element_bytes
