"""What moves beside the core: other masters on the bus, and weights brought by DMA.

    load.MASTER.memory=sram  load.MASTER.bytes_per_second=20e6     a master that is always busy
    placement.weights_via=MASTER  placement.tiles=dtcm             weights copied layer by layer

Weights are copied whole, a layer at a time, into one of two buffers: while a layer is computed from
the one, the next layer's weights come into the other. The first layer's are waited for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hwmodels.board.facts import Board, Memory
from hwmodels.bus.contention import Load, check_loads
from hwmodels.bus.transfer import copy_cycles
from hwmodels.counts import CountLine, Counts
from hwmodels.errors import did_you_mean
from hwmodels.paths.lookup import data_cache
from twin.deployment.buffer import align
from twin.errors import UsageError
from twin.network.graph import Graph

if TYPE_CHECKING:
    from twin.deployment.deployment import Deployment

VIA_KEYS = ("placement.weights_via", "placement.tiles")

LOAD_KEYS: Mapping[str, tuple[Callable[[str], object], str]] = {
    "memory": (str, "a memory of the board"),
    "bytes_per_second": (float, "a number of bytes a second, such as 20e6"),
    "write": ({"true": True, "false": False}.__getitem__, "true, false"),
    "burst_beats": (int, "a whole number from 1 on"), "bank": (int, "a whole number from 0 on")}
"""Keys of `load.MASTER`: how their text is read, and what is accepted."""

_BUFFER_LINE_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffers:
    """The two buffers weights are copied into.

    Parameters
    ----------
    layer_bytes : tuple of int
        To copy for each layer; 0 for layers without constants.
    offsets : mapping of (int, int) to int
        (layer position, tensor index) to offset from the first buffer.
    size_bytes : int
        Of both.
    """

    layer_bytes: tuple[int, ...]
    offsets: Mapping[tuple[int, int], int]
    size_bytes: int


def plan_buffers(graph: Graph) -> Buffers:
    """Lay the constants of layers out in two buffers that take turns.

    Parameters
    ----------
    graph : Graph
        As it runs.

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


def take_loads(board: Board, loads: tuple[Load, ...],
               overrides: dict[str, object]) -> tuple[Load, ...]:
    """Apply the paths `load.MASTER.KEY`, and take them out of the overrides.

    Raises
    ------
    UsageError
        For a path, a master or a value that cannot be.
    """
    known: dict[str, dict[str, object]] = {
        load.master: {key: getattr(load, key) for key in LOAD_KEYS} for load in loads}
    for path in [path for path in overrides if path.startswith("load.")]:
        parts, given = path.split("."), str(overrides.pop(path)).strip()
        masters = [dma.name for dma in board.dma]
        if not masters:
            raise UsageError(f"{path}: {board.name} has no DMA controller")
        if len(parts) != 3 or parts[1] not in masters or parts[2] not in LOAD_KEYS:
            raise UsageError(f"{path}: no such path; " + did_you_mean(path, [
                f"load.{master}.{key}" for master in masters for key in LOAD_KEYS]))
        read, accepted = LOAD_KEYS[parts[2]]
        try:
            known.setdefault(parts[1], {})[parts[2]] = read(given.lower())
        except (ValueError, KeyError) as error:
            raise UsageError(f"{path}: {given!r}; accepted: {accepted}") from error
    made = []
    for master, keys in known.items():
        missing = {"memory", "bytes_per_second"} - set(keys)
        if missing:
            raise UsageError(f"load.{master}.{sorted(missing)[0]}: is required beside the other "
                             f"paths of load.{master}")
        made.append(Load(master=master, **keys))  # type: ignore[arg-type]
    check_loads(board, made)
    return tuple(made)


def take_via(deployment: Deployment, overrides: dict[str, object]) -> Deployment:
    """Apply `placement.weights_via` and `placement.tiles`, and take them out of the overrides.

    Raises
    ------
    UsageError
        For a controller or a memory that cannot be.
    """
    settings = {key: str(overrides.pop(key)) for key in VIA_KEYS if key in overrides}
    if "placement.weights_via" in settings:
        via = settings["placement.weights_via"]
        known = [dma.name for dma in deployment.board.dma]
        if via not in (*known, "none"):
            raise UsageError(f"placement.weights_via: {deployment.board.name} has no DMA "
                             f"controller {via!r}; " + did_you_mean(via, (*known, "none")))
        deployment = dataclasses.replace(deployment, weights_via=None if via == "none" else via)
    if "placement.tiles" in settings:
        deployment = dataclasses.replace(deployment, tiles=settings["placement.tiles"])
    return deployment


def tile_memory(deployment: Deployment) -> Memory:
    """Return the memory of the buffers: as asked, else the arena's.

    Raises
    ------
    UsageError
        When the runtime offloads, or a data cache holds the memory's lines, which DMA goes past.
    """
    board = deployment.board
    memory = board.memory(deployment.tiles or deployment.arena)
    if deployment.runtime.offload is not None:
        raise UsageError(f"placement.weights_via: {deployment.runtime.identity} brings weights by "
                         "itself; accepted with a runtime of the core")
    if data_cache(board, memory) is not None or memory.role not in ("tcm", "sram"):
        fit = [one.name for one in board.memories
               if one.role in ("tcm", "sram") and data_cache(board, one) is None]
        raise UsageError(
            f"placement.tiles: the buffers of placement.weights_via would lie in {memory.name}, "
            f"{'the arena,' if deployment.tiles is None else 'which is'} cached or no RAM of the "
            f"chip; accepted: {', '.join(fit) or 'none on this board'}")
    return memory


def count_transfers(deployment: Deployment, layer_cycles: list[float]) -> list[Counts]:
    """Return what bringing weights adds to each layer.

    Parameters
    ----------
    deployment : Deployment
        With `weights_via`.
    layer_cycles : list of float
        Core cycles of each layer without it.

    Returns
    -------
    list of Counts
        `dma_wait`: programming the controller, and what of a copy the layers since the one
        before did not hide; `dma_byte`.

    Notes
    -----
    A layer's copy starts with the layer that uses the other buffer, so all layers from there to
    the one before it hide it: wait = max(0, copy - their cycles).
    """
    board, buffers = deployment.board, deployment.buffers
    assert deployment.weights_via is not None and buffers is not None
    dma = board.dma_controller(deployment.weights_via)
    source, target = board.memory(deployment.weights), tile_memory(deployment)
    setup = dma.setup_cycles * _ratio(board, dma.clock)
    added, hiding = [], 0.0
    for size, cycles in zip(buffers.layer_bytes, layer_cycles, strict=True):
        if not size:
            added.append(Counts())
            hiding += cycles
            continue
        copy = copy_cycles(board, dma, source, target, size)
        wait = round(64 * (setup + max(0.0, copy - hiding))) / 64
        added.append(Counts((
            CountLine(event="dma_wait", place=source.name, operand="weights", occurred=wait,
                      exposed=wait),
            CountLine(event="dma_byte", place=source.name, operand="weights", occurred=size,
                      exposed=0))))
        hiding = cycles
    return added


def describe_transfers(deployment: Deployment, waited_cycles: float, total_cycles: float) -> str:
    """Say how busy the controller is and what of its work shows."""
    board, buffers = deployment.board, deployment.buffers
    assert deployment.weights_via is not None and buffers is not None
    dma, source = board.dma_controller(deployment.weights_via), board.memory(deployment.weights)
    target = tile_memory(deployment)
    busy = sum(copy_cycles(board, dma, source, target, size) for size in buffers.layer_bytes)
    share = busy / total_cycles if total_cycles else 0.0
    return (f"weights come by {dma.name} into {target.name}: {sum(buffers.layer_bytes):,} bytes "
            f"through two buffers, {buffers.size_bytes:,} bytes together, busy "
            f"{100 * share:.1f} % of the time, {waited_cycles:,.0f} cycles not hidden")


def _ratio(board: Board, clock: str) -> float:
    return (board.clock(board.core.clock).frequency_hz / board.clock(clock).frequency_hz)
