"""Cycles of the units of an Ethos-U for one operation, with ideal memory.

The MAC array takes a microblock of the output at a time, eight input channels of one kernel
element, or four to five kernel elements of eight channels where the kernel comes first, in a
cycle or four. Blocks at the edge of a feature map are as small as what is left of it.

References
----------
.. [1] Block traversal, microblocks, rates of the output unit and of the weight decoder as Vela's
   source states them of the hardware (Apache-2.0, ethosu/regor/architecture, release 5.2).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping

from hwmodels.board.npu import Npu
from hwmodels.frozen import frozen
from twin.runtimes.ethos_u.operations import BRICK, Operation, Shape

SUBKERNEL = 8
"""Rows and columns of a kernel taken at once."""

_DECODED_PER_CYCLE = 8
"""Weights a decoder gives in a cycle, least."""


@frozen
class Cycles:
    """NPU cycles of one operation: MAC array, output unit, weight decoders."""

    mac: int
    output: int
    decode: int


def count_blocks(operation: Operation) -> Shape:
    """Return how many blocks there are along height, width and depth."""
    height, width, depth = (-(-size // step) for size, step in zip(
        operation.output.shape, operation.block, strict=True))
    return height, width, depth


def split(size: int, step: int) -> Iterable[tuple[int, int]]:
    """Yield start and length of the parts of a size."""
    return ((start, min(step, size - start)) for start in range(0, size, step))


def count_cycles(operation: Operation, npu: Npu) -> Cycles:
    """Return the cycles of an operation.

    Parameters
    ----------
    npu
        For the rates of its configuration.
    """
    rates = dict(npu.rates)
    recent = npu.config.startswith("ethos-u85")
    mac = 0
    if operation.kind not in ("elementwise", "resize"):
        sizes = (Counter(length for _, length in split(size, step)).items()
                 for size, step in zip(operation.output.shape, operation.block, strict=True))
        for (high, rows), (wide, columns), (deep, layers) in itertools.product(*sizes):
            mac += rows * columns * layers * _count_block(
                operation, (high, wide, deep), rates, recent)
    cores = 1 if recent else int(rates["cores"])
    each = _output_rate(operation, rates, recent)
    height, width, depth = operation.output.shape
    deep = -(-depth // BRICK) * BRICK if operation.output.bricks else depth
    passes = count_blocks(operation)
    weights = operation.macs // max(1, height * width) * passes[0] * passes[1]
    return Cycles(mac=-(-mac // cores), output=int(each * height * width * deep),
                  decode=weights // int(_DECODED_PER_CYCLE * rates["decoders"]))


def _count_block(operation: Operation, block: Shape, rates: Mapping[str, float],
                 recent: bool) -> int:
    """MAC cycles of one block: over kernel parts, slices of the input's depth, microblocks."""
    micro = operation.microblock
    plane = -(-block[0] // micro[0]) * -(-block[1] // micro[1])
    deep = -(-block[2] // micro[2])
    decode = 32 * micro[2] // int(_DECODED_PER_CYCLE * (rates["decoders"] if recent else 1))
    slow = int(rates["turn_wide" if operation.wide else "turn"])
    total = 0
    for _, rows in split(operation.kernel[0], SUBKERNEL):
        for _, columns in split(operation.kernel[1], SUBKERNEL):
            taps = rows * columns
            steps, cycles, slices = _count_taps(operation, taps, plane, deep, decode, recent, rates)
            # One microblock waits for its own sum before the next kernel step adds to it.
            turns = 0 if plane > 1 else steps if deep == 1 else (steps - 1) * deep
            total += cycles + slow * turns * slices
    return total


def _count_taps(operation: Operation, taps: int, plane: int, deep: int, decode: int, recent: bool,
                rates: Mapping[str, float]) -> tuple[int, int, int]:
    """Kernel steps, cycles and slices of input depth for so many elements of a kernel."""
    bits, channels = operation.inputs[0].bits, operation.inputs[0].shape[2]
    if operation.kind == "pool" and not operation.over_depth:
        each = 1 if rates["macs"] == 32 else bits // 2
        return 1, max(1 if recent else 4, taps) * plane * deep * each, 1
    if operation.kind == "depthwise":
        steps, cycles = _kernel_steps(taps, 4, recent)
        return steps, max(decode * steps, cycles * plane * bits // 8) * deep, 1
    if operation.kernel_first and operation.kind == "conv":
        steps, cycles = _kernel_steps(taps, 2 if bits == 16 else 4, recent)
        slices = -(-channels // 8)
        if recent and taps == 1:
            decode //= 4
        return steps, max(decode * steps, cycles * plane) * deep * slices, slices
    if not recent:
        slices = -(-channels * bits // 8 // 32)
        return taps, max(decode, 4 * plane) * taps * deep * slices, slices
    granule = 32 if bits == 32 or (rates["macs"] <= 256 and operation.microblock[2] == 16) else 64
    cycles = sum(max(decode, -(-length // 8) * plane) for _, length in split(channels, granule))
    return taps, cycles * taps * deep * bits // 8, -(-channels // granule)


def _kernel_steps(taps: int, least: int, recent: bool) -> tuple[int, int]:
    """Return the steps through a kernel, and cycles of a microblock for eight channels of it.

    A U55 or U65 takes four elements in four cycles, filled up; a U85 as many cycles as elements,
    the rest of a group of five at least two, one alone in one.
    """
    if not recent:
        steps = -(-taps // least)
        return steps, 4 * steps
    rest = taps % 5 if taps > 1 else 0
    return -(-taps // least), taps - rest + (max(rest, 2) if rest else 0)


def _output_rate(operation: Operation, rates: Mapping[str, float], recent: bool) -> float:
    """Cycles of the output unit for one element."""
    bits_in, bits_out = operation.inputs[0].bits, operation.output.bits
    pair = len(operation.inputs) > 1
    if recent:
        own = (rates["out_32"] if bits_out == 32 else rates["out"])
        if operation.kind == "elementwise" and bits_in == 32:
            own = rates["out_pair_32"]
        return own
    table = rates["out_table"] if operation.table else 0.0
    if operation.kind == "elementwise" and bits_in == 32:
        own = rates["out_pair_32" if pair else "out_one_32"]
    elif operation.kind == "elementwise" and operation.mode == 0:
        own = rates["out_multiply"]
    elif operation.kind == "elementwise" and operation.mode in (1, 2):
        own = rates["out_add"]
    elif operation.wide and operation.kind != "elementwise":
        own = rates["out_multiply"]
    else:
        own = rates["out_max" if operation.kind == "pool" and operation.mode == 0 else "out"]
    return max(own, table)
