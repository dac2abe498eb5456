"""The transfer model: a task as nodes that pass pieces of their work on to each other.

A node is a transfer or the units of one piece of work. Nodes joined by the dataflow cut
their work into the same number of steps n; step k of a node takes its share of the node's time

    own        transfers: max(fetch, hand); units: cycles of the unit with ideal memory
    channel    of the port, reads and writes apart
    pool       reads and writes apart unless it is `shared`
    piece      own / bursts: what must have come before the next node can begin

and obeys

    start(k)  >= end(k - 1), and for every source: its start(k + ahead) + piece + latency
    start(k)  >= end(k - depth) of every sink: depth is two steps (one where a unit has a single
               buffer of results), what the transfers' buffers hold, what is inside a unit that
               fills, and the steps the source must be ahead
    start(k)  >= when its channel and its pool are free; they are held for the step's share
    end(k)    =  max(start(k) + share, for every source: its end(k + ahead) + latency + piece)

A stream of weights must be ahead of a convolution by the kernels it holds before its first
output, up to `weight_ahead_bytes`; all other sources by nothing.

The earliest start goes first; of several at once, the node served least recently, then the first.
Fetch, hand, channel and pool times are those of `hwmodels.schedule.traffic`. Time is in ticks of
1 / 1024 NPU cycle.

References
----------
.. [1] Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, chapter 13:
   cut-through flow control.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hwmodels.board.npu import Npu
from hwmodels.frozen import entity, frozen
from hwmodels.schedule.machine import Ints, Machine, read_machine
from hwmodels.schedule.table import (
    TransferColumns,
    UnitColumns,
    name_nodes,
    read_links,
    read_transfers,
    read_units,
)
from hwmodels.schedule.task import Task
from hwmodels.schedule.traffic import TrafficColumns, count_traffic

TICKS = 1024
"""Ticks of an NPU cycle."""

MAX_STEPS = 48
"""Steps work is cut into; fewer where there are fewer bursts."""


@frozen
class Plan:
    """A task as the event models read it.

    Parameters
    ----------
    names
        Of the nodes: "E4" the transfer of channel 4, "U0" the first unit work.
    nodes, links : ndarray of int64, (nodes, 9) and (links, 4)
        Columns as `hwmodels.kernels.npu_streams` names them; times in ticks.
    channels, pools
        What the indices in `nodes` stand for: "busif0 read", "npuRAM5 write".
    """

    names: tuple[str, ...]
    nodes: Ints
    links: Ints
    channels: tuple[str, ...]
    pools: tuple[str, ...]


@entity
class PlanColumns:
    """Tasks as the event models read them, one behind the other.

    Parameters
    ----------
    spans : ndarray of int64, (tasks + 1, 2)
        First node and link of each, and how many there are.
    nodes, links : ndarray of int64
        As of a `Plan`; of many machines nodes are of shape (n, nodes, 9).
    ports
        Channels or pools an index may stand for, whichever are more.
    transfers, units : ndarray of int, (transfers,) and (works,)
        Their rows in `nodes`.
    """

    spans: Ints
    nodes: Ints
    links: Ints
    ports: int
    transfers: Ints
    units: Ints


def plan_task(task: Task, npu: Npu) -> Plan:
    """Return a task as nodes and links.

    Parameters
    ----------
    task
        With at least one transfer or unit.

    Returns
    -------
    Plan
        Engines first, then units.

    Raises
    ------
    KernelError
        When the dataflow names a node that does not exist, or runs in a circle.
    """
    machine = read_machine(npu)
    transfers = read_transfers([task], machine)
    plan = plan_tasks([task], transfers, read_units([task], machine),
                       count_traffic(transfers, machine), machine)
    lanes = ("read", "write")
    return Plan(names=tuple(name_nodes(task)), nodes=plan.nodes, links=plan.links,
                channels=tuple(f"{port.name} {lane}" for port in npu.interfaces for lane in lanes),
                pools=(*(f"{pool.name} {lane}" for pool in npu.pools for lane in lanes),
                       *(f"{transfer.pool} {transfer.channel}" for transfer in task.transfers)))


def plan_tasks(tasks: Sequence[Task], transfers: TransferColumns, units: UnitColumns,
                traffic: TrafficColumns, machine: Machine) -> PlanColumns:
    """Return tasks as nodes and links; `plan_task` says what is refused.

    Parameters
    ----------
    transfers, units, traffic
        What they ask, and the traffic of that.
    """
    first_link, pairs = read_links(tasks)
    spans = np.stack([transfers.first + units.first, first_link], axis=1)
    transfer_rows = spans[transfers.task, 0] + transfers.place
    unit_rows = (spans[units.task, 0] + transfers.first[units.task + 1]
                 - transfers.first[units.task] + units.place)
    pieces = np.ones(spans[-1, 0], np.int64)
    pieces[transfer_rows] = np.maximum(1, traffic.total)
    pieces[unit_rows] = np.maximum(1, units.cycles)
    rows = np.repeat(spans[:-1, 0], np.diff(first_link))[:, None] + pairs
    stated = np.repeat([task.steps for task in tasks], np.diff(spans[:, 0]))
    steps = _cut(rows, np.where(stated != 0, stated, pieces), np.where(stated != 0, 1, 2))
    streamed = np.zeros(len(pieces), np.bool_)
    streamed[transfer_rows] = transfers.weights
    streamed[unit_rows] = machine.decodes[units.kind] | units.multiplies
    pieces = np.where((stated != 0) & ~streamed, steps, pieces)
    nodes = _lay_nodes(steps, np.maximum(pieces, steps), [
        (unit_rows, [-1, -1, 0, 0, units.cycles * TICKS, machine.fill[units.kind] * TICKS]),
        (transfer_rows, _plan_transfers(transfers, traffic, machine))])
    moved, ahead = np.zeros(len(pieces), np.int64), np.zeros((2, len(pieces)), np.bool_)
    moved[transfer_rows] = np.maximum(1, traffic.wanted_bytes)
    ahead[0, transfer_rows], ahead[1, unit_rows] = transfers.weights, units.multiplies
    inside = np.full(len(pieces), 2)
    inside[unit_rows] = [2 - work.single for task in tasks for work in task.units]
    inside[unit_rows] += -(-machine.fill[units.kind] * TICKS * steps[unit_rows]
                           // np.maximum(units.cycles * TICKS, steps[unit_rows]))
    links = np.concatenate([pairs, _finish_links(
        rows, steps, inside, moved, ahead, machine.npu)], axis=-1)
    return PlanColumns(spans=spans, nodes=nodes, links=links, transfers=transfer_rows,
                       units=unit_rows, ports=2 * max(len(machine.interfaces), len(
                           machine.pools)) + int(transfers.place.max(initial=0)) + 1)


def _lay_nodes(steps: Ints, pieces: Ints,
               parts: Sequence[tuple[Ints, Sequence[Ints | int]]]) -> Ints:
    """Return nodes; what is the same on many machines is copied, not worked out on each.

    Parameters
    ----------
    steps, pieces : ndarray of int64, (nodes,)
        Steps, and what own time is divided by.
    parts : sequence of (rows, columns)
        Rows of nodes, and their columns from the channel to the latency.
    """
    alike, apart = np.zeros((len(steps), 9), np.int64), []
    alike[:, 0] = steps
    for rows, columns in parts:
        trail = np.maximum(1, columns[4] // pieces[rows])
        for column, ticks in enumerate([*columns, trail + columns[5], trail], 1):
            if np.ndim(ticks) > 1:
                apart.append((rows, column, ticks))
            else:
                alike[rows, column] = ticks
    many = np.shape(apart[0][2])[:-1] if apart else ()
    nodes = np.empty((*many, *alike.shape), np.int64)
    nodes[...] = alike
    for rows, column, ticks in apart:
        nodes[:, rows, column] = ticks
    return nodes


def _plan_transfers(transfers: TransferColumns, traffic: TrafficColumns,
                  machine: Machine) -> list[Ints]:
    """Columns of transfers from the channel to the latency."""
    pool = transfers.pool
    port = np.where(machine.serialises[pool],
                    2 * pool + np.where(machine.shared[pool], 0, transfers.out),
                    2 * len(machine.pools) + transfers.place)
    ticks = [np.rint(cycles * TICKS).astype(np.int64) for cycles in (
        traffic.channel_cycles, traffic.pool_cycles,
        np.maximum(traffic.fetch_cycles, traffic.hand_cycles), traffic.latency_cycles)]
    return [2 * transfers.port + transfers.out, port, *ticks]


def _cut(rows: Ints, pieces: Ints, least: Ints) -> Ints:
    """Return the steps of each node: the same for nodes that are joined."""
    steps, before = pieces.copy(), np.zeros_like(pieces)
    while (steps != before).any():
        before = steps.copy()
        for node in rows.T:
            np.maximum.at(steps, node, before[rows].max(axis=1))
    return np.clip(steps, least, MAX_STEPS)


def _finish_links(rows: Ints, steps: Ints, inside: Ints, moved: Ints, ahead: np.ndarray,
                  npu: Npu) -> Ints:
    """Return the steps sources may be ahead, and must be.

    Parameters
    ----------
    rows : ndarray of int, (links, 2)
        Source and sink among the nodes.
    steps, inside, moved : ndarray of int64, (nodes,)
        Steps of nodes; those a node holds, with those of filling; bytes of transfers, 0 for units.
    ahead : ndarray of bool, (2, nodes)
        Streams of weights; units that multiply.
    """
    source, sink = rows[:, 0], rows[:, 1]
    taken, total = steps[source], np.maximum(1, moved)
    lead = np.where(ahead[0, source] & ahead[1, sink], np.minimum(
        taken - 1, npu.weight_ahead_bytes * taken // total[source]), 0)
    depth = lead + inside[source]
    for node in (source, sink):
        depth += np.where(moved[node] != 0, npu.engine_buffer_bytes * taken // total[node], 0)
    return np.stack([np.minimum(depth, taken + lead), lead], axis=-1)
