"""The stream-engine model: an epoch as nodes that pass pieces of their work on to each other.

A node is a stream engine or the units of one piece of work. Nodes joined by the dataflow cut
their work into the same number of steps n; step k of a node takes its share of the node's time

    own        engines: max(fetch, hand); units: cycles of the unit with ideal memory
    channel    of the interface, reads and writes apart
    pool       reads and writes apart unless it is `shared`
    piece      own / bursts: what must have come before the next node can begin

and obeys

    start(k)  >= end(k - 1), and for every source: its start(k + ahead) + piece + latency
    start(k)  >= end(k - depth) of every sink: depth is two steps, what the engines' buffers hold,
               what is inside a unit that fills, and the steps the source must be ahead
    start(k)  >= when its channel and its pool are free; they are held for the step's share
    end(k)    =  max(start(k) + share, for every source: its end(k + ahead) + latency + piece)

A stream of weights must be ahead of a convolution by the kernels it holds before its first
output, up to `weight_ahead_bytes`; all other sources by nothing.

The earliest start goes first; of several at once, the node served least recently, then the first.
Fetch, hand, channel and pool times are those of `hwmodels.npu.streams`. Time is in ticks of
1 / 1024 NPU cycle.

References
----------
.. [1] Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, chapter 13:
   cut-through flow control.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hwmodels.board.npu import THROUGH, Npu
from hwmodels.errors import KernelError
from hwmodels.npu.compiler import estimate_unit_cycles, multiplies
from hwmodels.npu.epoch import Epoch, Link
from hwmodels.npu.streams import Stream

TICKS = 1024
"""Ticks of an NPU cycle."""

MAX_STEPS = 48
"""Steps work is cut into; fewer where there are fewer bursts."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An epoch as the event models read it.

    Parameters
    ----------
    names : tuple of str
        Of the nodes: "E4" stream engine 4, "U0" the first unit work.
    nodes, links : ndarray of int64, (nodes, 9) and (links, 4)
        Columns as `hwmodels.kernels.npu_streams` names them; times in ticks.
    channels, pools : tuple of str
        What the indices in `nodes` stand for: "busif0 read", "npuRAM5 write".
    """

    names: tuple[str, ...]
    nodes: Ints
    links: Ints
    channels: tuple[str, ...]
    pools: tuple[str, ...]


def plan_epoch(epoch: Epoch, streams: Sequence[Stream], npu: Npu) -> Plan:
    """Return an epoch as nodes and links.

    Parameters
    ----------
    epoch : Epoch
        With at least one engine or unit.
    streams : sequence of Stream
        Traffic of its engines, in the same order.
    npu : Npu
        The machine.

    Returns
    -------
    Plan
        Engines first, then units.

    Raises
    ------
    KernelError
        When the dataflow names a node that does not exist, or runs in a circle.
    """
    names = tuple([f"E{engine.index}" for engine in epoch.engines]
                  + [f"U{position}" for position in range(len(epoch.units))])
    channels: dict[str, int] = {}
    pools: dict[str, int] = {}
    rows = [_plan_engine(stream, channels, pools) for stream in streams]
    pieces = [max(1, sum(stream.bursts)) for stream in streams]
    for work in epoch.units:
        cycles = estimate_unit_cycles(work, npu)
        fill = 0 if work.kind == THROUGH else npu.unit(work.kind).fill_cycles
        rows.append([0, -1, -1, 0, 0, cycles * TICKS, fill * TICKS])
        pieces.append(max(1, cycles))
    links = _index_links(epoch, names)
    steps = _cut(links, pieces)
    nodes = [_finish_row(row, n, piece)
             for row, n, piece in zip(rows, steps, pieces, strict=True)]
    table = [_finish_link(a, b, epoch, streams, nodes, npu) for a, b in links]
    return Plan(names=names, nodes=np.array(nodes, dtype=np.int64).reshape(-1, 9),
                links=np.array(table, dtype=np.int64).reshape(-1, 4),
                channels=tuple(channels), pools=tuple(pools))


def _plan_engine(stream: Stream, channels: dict[str, int], pools: dict[str, int]) -> list[int]:
    """Columns of an engine up to its latency."""
    pool, lane = stream.pool, "read" if stream.engine.direction == "in" else "write"
    port = pool.name if pool.shared else f"{pool.name} {lane}"
    port = port if pool.serialises else f"{port} {stream.engine.index}"
    return [0, channels.setdefault(f"{stream.interface.name} {lane}", len(channels)),
            pools.setdefault(port, len(pools)), round(stream.channel_cycles * TICKS),
            round(stream.pool_cycles * TICKS),
            round(max(stream.fetch_cycles, stream.hand_cycles) * TICKS),
            round(stream.latency_cycles * TICKS)]


def _finish_row(row: list[int], steps: int, pieces: int) -> list[int]:
    """Columns with the number of steps, and the times of a piece."""
    piece = max(1, row[5] // max(pieces, steps))
    return [steps, *row[1:], piece + row[6], piece]


def list_links(epoch: Epoch) -> tuple[Link, ...]:
    """Return the dataflow of an epoch, the default one where it states none."""
    if epoch.links:
        return epoch.links
    ins = [f"E{engine.index}" for engine in epoch.engines if engine.direction == "in"]
    outs = [f"E{engine.index}" for engine in epoch.engines if engine.direction == "out"]
    if not epoch.units:
        return tuple(Link(a, b) for a, b in zip(ins, outs, strict=False))
    units = [f"U{position}" for position in range(len(epoch.units))]
    return (*(Link(name, units[0]) for name in ins),
            *(Link(a, b) for a, b in itertools.pairwise(units)),
            *(Link(units[-1], name) for name in outs))


def _index_links(epoch: Epoch, names: Sequence[str]) -> list[tuple[int, int]]:
    where = {name: position for position, name in enumerate(names)}
    pairs = []
    for link in list_links(epoch):
        if link.source not in where or link.sink not in where:
            raise KernelError(f"epoch {epoch.name}: link {link.source} to {link.sink} names a "
                              "node that is not there; accepted: " + ", ".join(names))
        pairs.append((where[link.source], where[link.sink]))
    if _runs_forward(epoch, pairs):
        return pairs
    left = pairs
    while left:
        fed = {b for _, b in left}
        kept = [pair for pair in left if pair[0] in fed]
        if len(kept) == len(left):
            raise KernelError(f"epoch {epoch.name}: the dataflow runs in a circle")
        left = kept
    return pairs


def _runs_forward(epoch: Epoch, pairs: Sequence[tuple[int, int]]) -> bool:
    """Whether every link goes from engines in to units, to later units, to engines out."""
    count = len(epoch.engines)
    order = [0 if engine.direction == "in" else count + len(epoch.units) + 1
             for engine in epoch.engines]
    order += range(1, len(epoch.units) + 1)
    return all(order[a] < order[b] for a, b in pairs)


def _cut(links: Sequence[tuple[int, int]], pieces: Sequence[int]) -> list[int]:
    """Return the steps of each node: the same for nodes that are joined."""
    group = list(range(len(pieces)))
    for a, b in links:
        old, new = group[a], group[b]
        if old != new:
            group = [new if g == old else g for g in group]
    most = {g: max(p for p, other in zip(pieces, group, strict=True) if other == g)
            for g in set(group)}
    return [max(2, min(MAX_STEPS, most[g])) for g in group]


def _finish_link(source: int, sink: int, epoch: Epoch, streams: Sequence[Stream],
                 nodes: Sequence[Sequence[int]], npu: Npu) -> tuple[int, int, int, int]:
    """Return a link with the steps its source may be ahead, and must be."""
    steps, own, latency = nodes[source][0], nodes[source][5], nodes[source][6]
    ahead, unit = 0, sink - len(streams)
    if (source < len(streams) and streams[source].engine.operand == "weights" and unit >= 0
            and multiplies(epoch.units[unit], npu)):
        total = max(1, streams[source].wanted_bytes)
        ahead = min(steps - 1, npu.weight_ahead_bytes * steps // total)
    depth = 2 + ahead
    if source >= len(streams):
        depth += -(-latency * steps // max(own, steps))
    for node in (source, sink):
        if node < len(streams):
            total = max(1, streams[node].wanted_bytes)
            depth += npu.engine_buffer_bytes * steps // total
    return source, sink, min(depth, steps + ahead), ahead
