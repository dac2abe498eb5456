"""Reads and writes of the shared memory by a job of NE16, beside the RTL's; nothing prices them."""

from __future__ import annotations

import math

from twin.runtimes.gap.ne16 import DEEP, SIDE, WIDE, Job, list_channels

_PATCH = {"conv1x1": 9, "conv3x3": 25, "depthwise3x3": 25}
_WORD_BYTES = 32


def count_accesses(job: Job) -> tuple[int, int]:
    """Return reads and writes of the shared memory, of up to 36 bytes each."""
    deep = job.kind == "depthwise3x3"
    passes = 1 if deep else math.ceil(job.inputs / DEEP)
    bits = 1 if job.kind == "conv1x1" else job.weight_bits
    tiles = math.ceil(job.rows / SIDE) * math.ceil(job.columns / SIDE)
    groups = list_channels(job.outputs, DEEP if deep else WIDE)
    reads = sum(passes * (_PATCH[job.kind] + bits * channels)
                + (0 if job.output_bits == 32 else math.ceil(
                    channels * job.scale_bytes / _WORD_BYTES)
                   + (math.ceil(4 * channels / _WORD_BYTES) if job.biased else 0))
                for channels in groups)
    writes = len(groups) * SIDE * SIDE * job.output_bits // 8
    return tiles * reads, tiles * writes
