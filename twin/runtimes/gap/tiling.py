"""How a layer is cut into tiles that fit the local memory, and what each moves.

Of the tiles that fit those win that take the fewest cycles (assumed: what tools of vendors minimise
is not published). Weights of a group of channels stay while rows pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from hwmodels.frozen import frozen
from hwmodels.schedule import Transfer
from hwmodels.schedule.tiles import count_tiles, cut_rows
from twin.network.graph import GraphLayer
from twin.network.operators import traits
from twin.runtimes.gap.cluster import Part
from twin.runtimes.units import count_elements

PARAMETER_BYTES = 8
"""Bias and factor of an output channel."""


@frozen
class Piece:
    """One tile of a layer: its part of the output, and bytes by operand.

    Parameters
    ----------
    reads : tuple of (str, int, int)
        Operand, bytes, and bytes side by side where they are fewer; weights only with the first
        rows of their channels.
    """

    part: Part
    input_rows: int
    reads: tuple[tuple[str, int, int], ...]
    written_bytes: int
    run_bytes: int

    @property
    def held_bytes(self) -> int:
        """Bytes of all operands."""
        return sum(size for _, size, _ in self.reads) + self.written_bytes


@frozen
class Shape:
    """What of a layer is cut: rows and channels, and bytes of each."""

    rows: int
    columns: int
    channels: int
    input_rows: int
    row_bytes: int
    operands: int
    by_channel: bool
    channel_bytes: int
    kernel: int
    stride: int
    before: int

    @property
    def input_channels(self) -> int:
        """Channels of the output a byte of input serves: its own where it goes by channel."""
        return self.channels if self.by_channel else 1


def read_shape(site: GraphLayer, source: int) -> Shape:
    """Return a layer as rows and channels; `source` is the tensor it reads."""
    read, written = site.graph.tensors[source], site.output
    image = len(written.shape) == 4 and len(read.shape) == 4
    weighted = traits(site.layer).filters is not None
    channels = written.channels if written.shape else 1
    window = site.layer.window
    second = not weighted and len(site.layer.inputs) > 1 and site.layer.inputs[1] >= 0 and (
        not site.weights.is_constant)
    rows = written.shape[1] if image else max(1, written.elements // channels)
    input_rows = read.shape[1] if image else 1
    by_channel = image and not (weighted and not traits(site.layer).is_depthwise)
    weights = site.weights.size_bytes if weighted else 0
    if not image and not weighted:
        rows, channels = 1, count_elements(site)
        by_channel = True
    return Shape(
        rows=rows, columns=written.shape[2] if image else 1, channels=channels,
        input_rows=input_rows, row_bytes=read.size_bytes // max(1, input_rows),
        operands=2 if second else 1, by_channel=by_channel,
        channel_bytes=math.ceil(weights / channels) + PARAMETER_BYTES if weighted else 0,
        kernel=window.kernel[0] if window is not None and image else
        (input_rows if image and rows == 1 else 1),
        stride=window.stride[0] if window is not None and image else 1,
        before=window.padding[0] if window is not None and image else 0)


def list_sizes(shape: Shape, room_bytes: int, tile_rows: int | None, buffers: int, step: int,
               extra: Callable[[Part], int]) -> Iterator[tuple[int, int]]:
    """Yield rows and channels of tiles that fit.

    Parameters
    ----------
    room_bytes
        Of the local memory.
    tile_rows
        Rows of a tile; None: any.
    step
        Channels a unit computes side by side: groups are multiples of it.
    extra
        Part -> bytes of scratch beside its operands.
    """
    for channels in _list_extents(shape.channels, step):
        for rows in ([tile_rows] if tile_rows else _list_extents(shape.rows, 1)):
            rows = min(rows, shape.rows)
            whole = rows == shape.rows and channels == shape.channels
            largest = _make_piece(shape, rows, channels, min(
                shape.input_rows, (rows - 1) * shape.stride + shape.kernel), first=True)
            held = largest.held_bytes * (1 if whole else buffers) + extra(largest.part)
            if held <= room_bytes:
                yield rows, channels


_TILES = (2, 3, 4, 5, 6, 7, 8, *(1 << power for power in range(4, 20)))
"""Numbers of tiles tried of each axis, besides one and as many as it has steps."""


def _list_extents(extent: int, step: int) -> list[int]:
    """Return sizes of a tile along an axis, the largest first."""
    sizes = {step * count for count in (*range(1, 9), *(
        math.ceil(extent / step / count) for count in _TILES))}
    return [extent, *sorted((size for size in sizes if size < extent), reverse=True)]


def cut_layer(shape: Shape, rows: int, channels: int) -> Iterator[Piece]:
    """Yield tiles of at most so many rows and channels, in order."""
    for group in count_tiles(shape.channels, channels):
        spans = cut_rows(shape.rows, rows, shape.kernel, shape.stride, shape.before,
                         shape.input_rows)
        for number, (made, read) in enumerate(spans):
            yield _make_piece(shape, made, group, read, first=not number)


def _make_piece(shape: Shape, rows: int, channels: int, input_rows: int, *, first: bool) -> Piece:
    own = channels / shape.channels if shape.by_channel else 1.0
    size = math.ceil(shape.row_bytes * input_rows * own)
    line = shape.row_bytes // max(1, shape.columns)
    reads = [("input", size, math.ceil(line * own) if own < 1 else 0)] * shape.operands
    if shape.channel_bytes and first:
        reads.append(("weights", shape.channel_bytes * channels, 0))
    return Piece(
        part=Part(rows=rows, columns=shape.columns, channels=channels), input_rows=input_rows,
        reads=tuple(reads), written_bytes=rows * shape.columns * channels,
        run_bytes=channels if channels < shape.channels else 0)


def move(size: int, run: int, direction: str, operand: str, pool: str, port: str) -> Transfer:
    """Return a transfer, in runs where its bytes do not lie side by side."""
    plain = Transfer(channel=0, direction=direction, port=port, pool=pool, bytes=size,
                     buffer_bytes=size, operand=operand)
    return plain if not run or run >= size else replace(plain, pattern="strided", run_bytes=run)
