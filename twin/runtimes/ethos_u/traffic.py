"""Bytes an operation of an Ethos-U moves, and how it walks memory: transfers.

Blocks go over the output's plane first, then over its depth within a place. The input of a place
is read once for each block of depth; an Ethos-U85 keeps as many slices of input depth as its
input memory holds and turns round at the end of the depth, so that it reads only the rest again.
Weights and scales are read once for each place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hwmodels.board.npu import BURST_BEATS, Interface, Npu, Pool
from hwmodels.frozen import frozen
from hwmodels.schedule import Transfer
from twin.runtimes.ethos_u.cycles import count_blocks, split
from twin.runtimes.ethos_u.operations import BRICK, Copy, Operand, Operation

MODES: Mapping[str, tuple[int, int, int]] = {
    "Sram_Only": (0, 0, 0), "Shared_Sram": (1, 0, 0), "Dedicated_Sram": (1, 1, 0)}
"""Pool of constants, arena and fast scratch, the first three regions, by memory mode."""

_ARENA, _CACHE = 1, 2


@frozen
class Memories:
    """Where regions lie, and the ports that lead there.

    Parameters
    ----------
    npu
        With one or two pools in use.
    mode
        A key of `MODES`.
    """

    npu: Npu
    mode: str

    def pool(self, region: int) -> Pool:
        """Return the pool of a region; inputs and outputs of their own are in the arena."""
        places = MODES[self.mode]
        return self._pool(places[region if region <= _CACHE else _ARENA])

    @property
    def outer(self) -> Pool:
        """The pool commands are read from: that of the second port."""
        return self._pool(0 if self.mode == "Sram_Only" else 1)

    def _pool(self, place: int) -> Pool:
        return self.npu.pools[min(place, len(self.npu.pools) - 1)]

    def port(self, pool: Pool, number: int) -> str:
        """Return one of the ports to a pool, by turns."""
        own = self._ports(pool)
        return own[number % len(own)].name

    def _ports(self, pool: Pool) -> tuple[Interface, ...]:
        first = int(dict(self.npu.rates)["inner_ports"])
        ports = self.npu.interfaces
        return ports[:first] if pool is self.npu.pools[0] else ports[first:] or ports

    def transfer(self, channel: int, direction: str, pool: Pool, *, size: int, run: int,
                 limit: str, operand: str = "", repeats: int = 1, overlaps: str = "units",
                 ahead: bool = False) -> Transfer:
        """Return a transfer, contiguous where `run` is 0.

        Bursts in flight are those its buffer holds, and those the memory takes from each port.
        """
        port = self.port(pool, 0 if operand == "input" else 1)
        width = self.npu.interface(port).width_bytes
        longest = min(pool.burst_max_beats, BURST_BEATS[-1]) * width
        burst = min(run or longest, longest)
        rates = dict(self.npu.rates)
        most = len(self._ports(pool)) * (
            pool.writes_in_flight if direction == "out" else pool.reads_in_flight)
        flying = int(rates["writes"]) if direction == "out" else max(1, int(rates[limit]) // burst)
        return Transfer(
            channel=channel, direction=direction, port=port, pool=pool.name, bytes=size,
            ahead=ahead, pattern="strided" if run else "contiguous", run_bytes=run,
            buffer_bytes=size, repeats=repeats, operand=operand, overlaps=overlaps,
            outstanding=min(flying, most) if most else flying, port_outstanding=most)


def walk_input(operation: Operation, operand: Operand, npu: Npu) -> tuple[int, int]:
    """Return the bytes an operation reads of an operand, and those of a contiguous run."""
    if operation.kind in ("elementwise", "resize"):
        return operand.count_bytes(*operand.shape), _run_of(operand, operand.shape[1], 0)
    rows = _count_read(operation, 0)
    columns = _count_read(operation, 1)
    depth = operand.shape[2]
    once = operand.count_bytes(rows, columns, depth)
    blocks = count_blocks(operation)
    widest = _span(operation, 1)
    granule = 0
    if operation.over_depth and blocks[2] > 1:
        if npu.config.startswith("ethos-u85"):
            granule = 16 if operation.kernel_first else 64
            once += _count_again(operation, operand, npu, granule) * blocks[0] * blocks[1]
        else:
            once *= blocks[2]
    return once, _run_of(operand, widest, operation.block[2] if not operation.over_depth else
                         granule)


def _span(operation: Operation, axis: int) -> int:
    """Input rows or columns of a whole block, of the first part of a kernel."""
    own = min(operation.block[axis], operation.output.shape[axis])
    taps = min(operation.reach[axis], 8)
    return -(-((own - 1) * operation.stride[axis] + taps) // operation.upscale)


def _count_read(operation: Operation, axis: int) -> int:
    """Input rows or columns all blocks along an axis read; those of a kernel overlap."""
    step, pad = operation.stride[axis], operation.padding[axis]
    scale, size = operation.upscale, operation.inputs[0].shape[axis]
    total = 0
    for start, length in split(operation.output.shape[axis], operation.block[axis]):
        low = start * step - pad
        high = min(size * scale, low + (length - 1) * step + operation.reach[axis])
        total += max(0, -(-high // scale) - max(0, low) // scale)
    return total


def _count_again(operation: Operation, operand: Operand, npu: Npu, granule: int) -> int:
    """Bytes of one place read again by the blocks of depth after the first, on an Ethos-U85."""
    plane = _span(operation, 0) * _span(operation, 1)
    slices = [operand.count_bytes(1, plane, length)
              for _, length in split(operand.shape[2], granule)]
    held = max(1, int(dict(npu.rates)["input_bytes"]) // max(slices))
    left = slices[held:], slices[:max(0, len(slices) - held)]
    again = count_blocks(operation)[2] - 1
    return sum(left[1]) * (again - again // 2) + sum(left[0]) * (again // 2)


def _run_of(operand: Operand, columns: int, granule: int) -> int:
    """Contiguous bytes of a walk; 0: all of it."""
    height, width, depth = operand.shape
    own, each = min(columns, width), operand.bits // 8
    if operand.bricks:
        return 0 if own == width and height == 1 and depth <= BRICK else own * BRICK * each
    if granule and granule < depth:
        return granule * each
    if operand.apart:
        return depth * each
    return 0 if own == width else own * depth * each


def walk_output(operation: Operation) -> tuple[int, int]:
    """Return the bytes an operation writes, and those of a contiguous run."""
    operand = operation.output
    height, width, depth = operand.shape
    size, each = operand.count_bytes(*operand.shape), operand.bits // 8
    own = min(operation.block[1], width)
    if operand.bricks:
        return size, 0 if own == width and height == 1 and depth <= BRICK else own * BRICK * each
    if depth <= BRICK and operation.block[2] >= depth and own == width and not operand.apart:
        return size, 0
    return size, min(BRICK, depth) * each


def read_copy_transfers(copy: Copy, memories: Memories, channel: int,
                        overlaps: str) -> Iterator[Transfer]:
    """Yield what a copy reads and writes."""
    yield memories.transfer(channel, "in", memories.pool(copy.source), size=copy.size_bytes, run=0,
                            limit="copy_bytes", overlaps=overlaps)
    if copy.sink is not None:
        yield memories.transfer(channel + 1, "out", memories.pool(copy.sink), run=0,
                                size=copy.size_bytes, limit="copy_bytes", overlaps=overlaps)
