"""Cycles of one job of NE16, the convolution engine of GAP9.

A job is cut into tiles of 3 by 3 outputs of up to 32 channels. Each takes its input 16 channels at
a time: load a patch, pass all weights of those channels by it, bit by bit of the weights where the
kernel is 3 by 3; then scale, and write nine pixels.

References
----------
pulp-platform/ne16 6bd72720 (Solderpad 0.51), run under Verilator with an ideal memory: all 27 jobs
of `calibration/datasets/accelerators/ne16_jobs.csv` are equal in cycles; in reads and writes, too,
as `tests/oracles/ne16_accesses.py` counts them. Widths of outputs and spatial remainders beyond
them are not verified.
"""

from __future__ import annotations

import math

from hwmodels.frozen import frozen

DEEP, WIDE, SIDE = 16, 32, 3
"""Input channels of a pass, output channels and rows and columns of a tile."""

_LOAD = {"conv1x1": 33, "conv3x3": 45, "depthwise3x3": 45}
_LANES, _WRITE, _SETTLE, _DEPTHWISE = 4, 9, 4, 16
_WORD_BYTES = 32


@frozen
class Job:
    """A convolution, all of whose operands are in the shared memory.

    Parameters
    ----------
    kind
        "conv1x1", "conv3x3" or "depthwise3x3".
    rows, columns
        Of the output; where it takes every second pixel, of what is computed.
    weight_bits, output_bits
        2 to 8; 8 or 32 (sums as they are).
    scale_bytes, biased
        Of a channel's factor, 1 or 4, and whether it has a bias.
    """

    kind: str
    rows: int
    columns: int
    inputs: int
    outputs: int
    weight_bits: int = 8
    output_bits: int = 8
    scale_bytes: int = 1
    biased: bool = True


def list_channels(count: int, step: int) -> list[int]:
    """Return channels of each group."""
    return [min(step, count - first) for first in range(0, count, step)]


def _bits(job: Job) -> int:
    """Return passes of the weights: a bit each, but all at once through a kernel of one."""
    return 1 if job.kind == "conv1x1" else job.weight_bits


def _finish(job: Job, channels: int) -> int:
    """Cycles to scale and write the sums of a tile."""
    if job.output_bits == 32:
        return _SETTLE + 4 * _WRITE
    scale = math.ceil(channels * job.scale_bytes / _LANES) + 2 * _LANES
    bias = _WRITE + math.ceil(4 * channels / _WORD_BYTES) if job.biased else 0
    return scale + bias + _SETTLE + _WRITE


def count_cycles(job: Job) -> int:
    """Return the cycles a job is busy, with a memory that never waits."""
    if job.kind == "depthwise3x3":
        tile = sum(_LOAD[job.kind] + _bits(job) * channels + _finish(job, channels) + _DEPTHWISE
                   for channels in list_channels(job.outputs, DEEP))
    else:
        passes = math.ceil(job.inputs / DEEP)
        tile = sum(passes * (_LOAD[job.kind] + _bits(job) * channels) + _finish(job, channels)
                   for channels in list_channels(job.outputs, WIDE))
    return math.ceil(job.rows / SIDE) * math.ceil(job.columns / SIDE) * tile
