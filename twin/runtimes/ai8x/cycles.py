"""Cycles of one layer of an ai8x accelerator, by the formula its maker publishes.

The accelerator reads an image pixel by pixel, row by row: all processors at once, one channel of 64
each, `passes` times where there are more channels. It gives one output channel a cycle. Reading and
computing take turns, so

    layer = rows before the first output + rows with outputs + rows of padding below them

References
----------
analogdevicesinc/ai8x-synthesis ab4f4c01f2, izer/latency.py (the formula; its code is not used here)
"""

from __future__ import annotations

from hwmodels.frozen import frozen
from twin.network.graph import RowsColumns


@frozen
class LayerShape:
    """A layer as the accelerator's registers state it; rows come first in every pair.

    Parameters
    ----------
    pooled : tuple of (int, int)
        The image behind the pooling unit; of a transposed convolution, twice its input.
    channels
        Outputs.
    kernel, padding, pool : tuple of (int, int)
        Of the convolution, on each of two sides, and of the pooling window.
    passes
        Over the input: 64 channels each.
    operands
        Images an element-wise operation takes.
    pool_first
        Whether the pooling unit stands before the element-wise one.
    convolves
        Whether there are weights; without them, outputs take `slots` cycles a pass and pixel.
    slots
        Writes of four channels a group of 16 processors makes of a pixel.
    flattens
        Whether 16 or more pixels are read as channels.
    read_first
        Cycles weights are read ahead where a layer with several passes or operands pools last.
    streams
        Whether rows come from a FIFO: half as much again, an estimate of the formula itself.
    """

    pooled: RowsColumns
    channels: int
    kernel: RowsColumns = (1, 1)
    padding: RowsColumns = (0, 0)
    pool: RowsColumns = (1, 1)
    passes: int = 1
    operands: int = 1
    pool_first: bool = True
    convolves: bool = True
    slots: int = 1
    flattens: bool = False
    read_first: int = 0
    streams: bool = False

    @property
    def output(self) -> RowsColumns:
        """Rows and columns of the output."""
        rows, columns = (size + 2 * pad - kernel + 1 for size, pad, kernel in zip(
            self.pooled, self.padding, self.kernel, strict=True))
        return rows, columns


def count_cycles(shape: LayerShape) -> int:
    """Return the accelerator's cycles for a layer; a network takes one more to start.

    Notes
    -----
    With p passes, n operands, window w: a pixel is read in d = p n (w + 1) cycles where pooling
    comes first, else d = p (n w + 1) in each of p turns; one of padding in 2 p n, else 2 p.
    A pixel that gives no output takes one cycle more to be kept.
    """
    window = shape.pool[0] * shape.pool[1]
    each = shape.passes * (shape.operands if shape.pool_first else 1)
    pad, read = 2 * each, (each * (window + 1) if shape.pool_first
                           else each * (shape.operands * window + 1))
    turns = 1 if shape.pool_first else shape.passes
    rows, columns = shape.pooled
    if not shape.convolves:
        total = rows * columns * (read + shape.passes * shape.slots)
        return _stream(shape, total)
    row_pad, column_pad = shape.padding
    ahead = shape.kernel[0] - 1 - row_pad
    outputs = shape.output[1] * shape.channels * shape.passes
    if shape.channels == shape.passes == 1:
        outputs += 1
    kept = [2 * column_pad * (pad + 1) + turns * columns * (pixel + 1) for pixel in (pad, read)]
    used = [_read_row(shape, turns, pad, pixel) + outputs for pixel in (pad, read)]
    total = (shape.flattens + shape.read_first + row_pad * (kept[0] + used[0])
             + ahead * kept[1] + (rows - ahead) * used[1])
    return _stream(shape, total)


def _read_row(shape: LayerShape, turns: int, pad: int, pixel: int) -> int:
    """Cycles to read a row that gives outputs: pixels before the first are kept, then used."""
    column_pad = shape.padding[1]
    kept = shape.kernel[1] - 1 - column_pad
    used = shape.output[1] - column_pad
    return column_pad * (2 * pad + 1) + turns * (kept * (pixel + 1) + used * pixel)


def _stream(shape: LayerShape, cycles: int) -> int:
    return (15 * cycles + 9) // 10 if shape.streams else cycles
