"""What moves beside the core: other masters on the bus, and weights brought by DMA.

    load.MASTER.memory=sram  load.MASTER.bytes_per_second=20e6     a master that is always busy
    placement.weights_via=MASTER  placement.tiles=dtcm             weights copied layer by layer

Weights are copied whole, a layer at a time, into one of two buffers: while a layer is computed from
the one, the next layer's weights come into the other. The first layer's are waited for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hwmodels.board.facts import Board, Dma, Memory
from hwmodels.bus.contention import Load, check_loads
from hwmodels.bus.transfer import copy_cycles
from hwmodels.counts import CountLine, Counts
from hwmodels.frozen import frozen
from hwmodels.paths.ways import data_cache
from twin.deployment.changes import LOAD_KEYS, ChangeLoad
from twin.deployment.memories import align
from twin.errors import UsageError
from twin.network.graph import Graph

_BUFFER_LINE_BYTES = 32


@frozen
class Buffers:
    """The two buffers weights are copied into.

    Parameters
    ----------
    layer_bytes
        To copy for each layer; 0 for layers without constants.
    offsets : mapping of (int, int) to int
        (layer position, tensor index) to offset from the first buffer.
    size_bytes
        Of both.
    """

    layer_bytes: tuple[int, ...]
    offsets: Mapping[tuple[int, int], int]
    size_bytes: int


def plan_buffers(graph: Graph) -> Buffers:
    """Lay the constants of layers out in two buffers that take turns.

    Returns
    -------
    Buffers
        Each buffer as large as the largest layer that uses it.
    """
    sizes, places = [], {}
    turn, largest = 0, [0, 0]
    for position, layer in enumerate(graph.layers):
        size = 0
        for tensor_id in dict.fromkeys(layer.inputs):
            if tensor_id >= 0 and graph.tensors[tensor_id].is_constant:
                places[position, tensor_id] = (turn, size)
                size += align(graph.tensors[tensor_id].size_bytes, 16)
        sizes.append(size)
        if size:
            largest[turn] = max(largest[turn], align(size, _BUFFER_LINE_BYTES))
            turn = 1 - turn
    return Buffers(layer_bytes=tuple(sizes), size_bytes=sum(largest), offsets={
        key: place * largest[0] + offset for key, (place, offset) in places.items()})


def merge_loads(board: Board, loads: tuple[Load, ...],
                changes: Sequence[ChangeLoad]) -> tuple[Load, ...]:
    """Return loads with some of their keys changed.

    Raises
    ------
    UsageError
        For a new load without its memory or rate, or one the board cannot have.
    """
    known: dict[str, dict[str, object]] = {
        load.master: {key: getattr(load, key) for key in LOAD_KEYS} for load in loads}
    for change in changes:
        known.setdefault(change.master, {})[change.key] = change.value
    made = []
    for master, keys in known.items():
        missing = {"memory", "bytes_per_second"} - set(keys)
        if missing:
            raise UsageError(f"load.{master}.{min(missing)}: is required beside the other "
                             f"paths of load.{master}")
        made.append(Load(master=master, **keys))  # type: ignore[arg-type]
    check_loads(board, made)
    return tuple(made)


def tile_memory(board: Board, arena: str, tiles: str | None) -> Memory:
    """Return the memory of the buffers: as asked, else the arena's.

    Raises
    ------
    UsageError
        When a data cache holds the memory's lines, which DMA goes past.
    """
    memory = board.memory(tiles or arena)
    if data_cache(board, memory) is not None or memory.role not in ("tcm", "sram"):
        fit = [one.name for one in board.memories
               if one.role in ("tcm", "sram") and data_cache(board, one) is None]
        raise UsageError(
            f"placement.tiles: the buffers of placement.weights_via would lie in {memory.name}, "
            f"{'the arena,' if tiles is None else 'which is'} cached or no RAM of the "
            f"chip; accepted: {', '.join(fit) or 'none on this board'}")
    return memory


@frozen
class Transfers:
    """Weights brought layer by layer: by whom, from where, into what.

    Parameters
    ----------
    source, target
        Of the weights, and of the buffers.
    buffers
        What is copied for each layer.
    """

    board: Board
    controller: Dma
    source: Memory
    target: Memory
    buffers: Buffers

    def copy_cycles(self, size_bytes: int) -> float:
        """Core cycles a copy takes."""
        return copy_cycles(self.board, self.controller, self.source, self.target, size_bytes)


def count_transfers(transfers: Transfers, layer_cycles: list[float]) -> list[Counts]:
    """Return what bringing weights adds to each layer.

    Parameters
    ----------
    layer_cycles
        Core cycles of each layer without it.

    Returns
    -------
    list of Counts
        `dma_wait`: programming the controller, and what of a copy the layers since the one
        before did not hide; `dma_byte`.

    Notes
    -----
    As `expect_waits`, of one network.
    """
    source = transfers.source.name
    waits = expect_waits(transfers, np.array([layer_cycles]))[0].tolist()
    return [Counts((
        CountLine(event="dma_wait", place=source, operand="weights", occurred=wait, exposed=wait),
        CountLine(event="dma_byte", place=source, operand="weights", occurred=size, exposed=0)))
        if size else Counts()
        for size, wait in zip(transfers.buffers.layer_bytes, waits, strict=True)]


def expect_waits(transfers: Transfers, layer_cycles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return cycles each layer waits for its weights, 64ths of a cycle.

    Parameters
    ----------
    layer_cycles : ndarray of float, (n, layers)
        Core cycles of each layer without waiting, of as many inferences.

    Returns
    -------
    ndarray of float, (n, layers)
        Programming the controller, and what of a copy the layers since the one before did not
        hide; 0 for layers without constants.

    Notes
    -----
    A layer's copy starts with the layer that uses the other buffer, so all layers from there to
    the one before it hide it: wait = max(0, copy - their cycles).
    """
    dma = transfers.controller
    setup = dma.setup_cycles * _ratio(transfers.board, dma.clock)
    waits, hiding = np.zeros_like(layer_cycles), np.zeros(len(layer_cycles))
    for layer, (size, cycles) in enumerate(zip(transfers.buffers.layer_bytes, layer_cycles.T,
                                               strict=True)):
        if not size:
            hiding = hiding + cycles
            continue
        shown = np.maximum(0.0, transfers.copy_cycles(size) - hiding)
        waits[:, layer] = np.round(64 * (setup + shown)) / 64
        hiding = cycles
    return waits


def busy_share(transfers: Transfers, total_cycles: float) -> float:
    """Return the share of an inference's cycles of the core in which the controller copies."""
    busy = sum(map(transfers.copy_cycles, transfers.buffers.layer_bytes))
    return busy / total_cycles if total_cycles else 0.0


def describe_transfers(transfers: Transfers, waited_cycles: float, total_cycles: float) -> str:
    """Say how busy the controller is and what of its work shows."""
    buffers, share = transfers.buffers, busy_share(transfers, total_cycles)
    return (f"weights come by {transfers.controller.name} into {transfers.target.name}: "
            f"{sum(buffers.layer_bytes):,} bytes "
            f"through two buffers, {buffers.size_bytes:,} bytes together, busy "
            f"{100 * share:.1f} % of the time, {waited_cycles:,.0f} cycles not hidden")


def _ratio(board: Board, clock: str) -> float:
    return (board.core_clock.frequency_hz / board.clock(clock).frequency_hz)
