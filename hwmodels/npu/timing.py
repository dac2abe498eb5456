"""The stream-engine model: an epoch as nodes that pass pieces of their work on to each other.

A node is a stream engine or the units of one piece of work. Nodes joined by the dataflow cut
their work into the same number of steps n; step k of a node takes its share of the node's time

    own        engines: max(channel, pool, bytes / engine rate, read bursts x latency / outstanding)
               units:   cycles of the unit with ideal memory
    channel    beats + write gap x bursts; reads and writes of an interface are two channels
    pool       max(beats, pool bytes / bytes per cycle) + latency x runs, the last outside the
               chip and for walks that are not contiguous only; reads and writes of a pool are two
               ports unless `shared`
    piece      own / bursts: what must have come before the next node can begin

and obeys

    start(k)  >= end(k - 1), and for every source: its start(k) + piece + latency
    start(k)  >= end(k - depth) of every sink: depth is two steps, what the engines' buffers hold
               and what the latency keeps on its way
    start(k)  >= when its channel and its pool are free; they are held for the step's share
    end(k)    =  max(start(k) + share, for every source: its end(k) + latency + piece)

The earliest start goes first; of several at once, the node served least recently, then the first.
Time is in ticks of 1 / 1024 NPU cycle, shares and products rounded once.

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

from hwmodels.errors import KernelError
from hwmodels.npu.compiler import estimate_unit_cycles
from hwmodels.npu.epoch import Epoch, Link
from hwmodels.npu.machine import Interface, Npu, Pool
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
    nodes, links : ndarray of int64, (nodes, 9) and (links, 3)
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
    rows = [_plan_engine(stream, npu, channels, pools) for stream in streams]
    pieces = [max(1, sum(stream.bursts)) for stream in streams]
    for work in epoch.units:
        cycles = estimate_unit_cycles(work, npu)
        fill = 0 if work.kind == "NULL" else npu.unit(work.kind).fill_cycles
        rows.append([0, -1, -1, 0, 0, cycles * TICKS, fill * TICKS])
        pieces.append(max(1, cycles))
    links = _index_links(epoch, names)
    steps = _cut(links, pieces)
    nodes = [_finish_row(row, n, piece)
             for row, n, piece in zip(rows, steps, pieces, strict=True)]
    table = [(a, b, _depth(a, b, streams, nodes, npu)) for a, b in links]
    return Plan(names=names, nodes=np.array(nodes, dtype=np.int64).reshape(-1, 9),
                links=np.array(table, dtype=np.int64).reshape(-1, 3),
                channels=tuple(channels), pools=tuple(pools))


def _plan_engine(stream: Stream, npu: Npu, channels: dict[str, int],
                 pools: dict[str, int]) -> list[int]:
    """Columns of an engine up to its latency."""
    engine, pool = stream.engine, npu.pool(stream.engine.pool)
    interface = npu.interface(engine.interface)
    lane = "read" if engine.direction == "in" else "write"
    port = pool.name if pool.shared else f"{pool.name} {lane}"
    port = port if pool.serialises else f"{port} {engine.index}"
    return [0, channels.setdefault(f"{interface.name} {lane}", len(channels)),
            pools.setdefault(port, len(pools)),
            round(_channel_cycles(stream, interface) * TICKS),
            round(_pool_cycles(stream, pool, interface) * TICKS),
            round(max(fetch_cycles(stream, npu), hand_cycles(stream, npu)) * TICKS),
            round(_latency_cycles(stream, pool) * TICKS)]


def fetch_cycles(stream: Stream, npu: Npu) -> float:
    """Return NPU cycles memory and bus take for a stream alone, without its first latency."""
    pool, interface = npu.pool(stream.engine.pool), npu.interface(stream.engine.interface)
    cycles = max(_channel_cycles(stream, interface), _pool_cycles(stream, pool, interface))
    if stream.engine.direction == "in":
        in_flight = max(0, sum(stream.bursts) - stream.hits)
        cycles = max(cycles, in_flight * latency_cycles(stream, npu) / npu.engine_outstanding)
    return cycles


def hand_cycles(stream: Stream, npu: Npu) -> float:
    """Return NPU cycles an engine takes to pass a stream to or from the units."""
    return stream.wanted_bytes / npu.engine_bytes_per_cycle


def latency_cycles(stream: Stream, npu: Npu) -> float:
    """Return NPU cycles of a stream's first access before its first beat."""
    return _latency_cycles(stream, npu.pool(stream.engine.pool))


def _channel_cycles(stream: Stream, interface: Interface) -> float:
    if stream.engine.direction == "in":
        return stream.beats
    return stream.beats + interface.write_gap_cycles * sum(stream.bursts)


def _latency_cycles(stream: Stream, pool: Pool) -> float:
    reads = stream.engine.direction == "in"
    return pool.clock_ratio * (pool.read_latency_cycles if reads else pool.write_latency_cycles)


def _pool_cycles(stream: Stream, pool: Pool, interface: Interface) -> float:
    """NPU cycles a stream keeps its pool busy."""
    cycles = pool.clock_ratio * max(stream.pool_bytes / interface.width_bytes,
                                    stream.pool_bytes / pool.bytes_per_cycle)
    if pool.external and stream.engine.pattern != "contiguous":
        accesses = stream.misses if stream.misses or stream.hits else stream.runs
        cycles += _latency_cycles(stream, pool) * accesses
    return cycles


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
    left = dict.fromkeys(range(len(names)))
    while left:
        free = [n for n in left if not any(b == n and a in left for a, b in pairs)]
        if not free:
            raise KernelError(f"epoch {epoch.name}: the dataflow runs in a circle")
        for n in free:
            del left[n]
    return pairs


def _cut(links: Sequence[tuple[int, int]], pieces: Sequence[int]) -> list[int]:
    """Steps of each node: the same for nodes that are joined."""
    group = list(range(len(pieces)))
    for a, b in links:
        old, new = group[a], group[b]
        group = [new if g == old else g for g in group]
    most = {g: max(p for p, other in zip(pieces, group, strict=True) if other == g)
            for g in set(group)}
    return [max(2, min(MAX_STEPS, most[g])) for g in group]


def _depth(source: int, sink: int, streams: Sequence[Stream], nodes: Sequence[Sequence[int]],
           npu: Npu) -> int:
    """Steps a source may be ahead: what buffers between hold, and what is on its way."""
    steps, own, latency = nodes[source][0], nodes[source][5], nodes[source][6]
    ahead = 2 + -(-latency * steps // max(own, steps))
    for node in (source, sink):
        if node < len(streams):
            total = max(1, streams[node].wanted_bytes)
            ahead += npu.engine_buffer_bytes * steps // total
    return min(ahead, steps)
