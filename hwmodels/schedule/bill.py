"""What tasks waited for, in whole cycles, and the events a board prices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from hwmodels.columns import CountColumns
from hwmodels.counts import EVENTS
from hwmodels.frozen import entity
from hwmodels.schedule.machine import Flags, Ints, Machine
from hwmodels.schedule.table import TransferColumns, UnitColumns, count_first
from hwmodels.schedule.task import Exposed
from hwmodels.schedule.timing import TICKS, PlanColumns
from hwmodels.schedule.traffic import TrafficColumns
from hwmodels.schedule.units import name_bits

EVENT_OF_CAUSE = {
    "mac": "npu_mac_cycle", "mac_waste": "npu_mac_waste_cycle", "alu": "npu_alu_cycle",
    "sram_wait": "npu_ram_wait", "flash_wait": "npu_flash_wait",
    "external_memory": "npu_external_wait",
    "bus_contention": "npu_bus_wait", "dma_wait": "npu_stream_wait",
    "weight_decode": "npu_decode_cycle", "launch": "npu_start",
}
"""Event that carries the exposed cycles of each cause."""

START = "start"
"""Resource of the cycles before the first request and after the last beat."""

_LAST = 1 << 40
"""Place among the lines of a task that nothing stands at."""

_COLUMNS = 5
"""Of blame."""


@entity
class Asked:
    """Tasks as columns: what was asked, and how it is run.

    Parameters
    ----------
    start : ndarray of int, (tasks,)
        NPU cycles before the first request and after the last beat.
    core : ndarray of int, (tasks,) or (machines, tasks)
        NPU cycles in all.
    host : ndarray of int, (2, tasks)
        Host cycles before and after.
    """

    transfers: TransferColumns
    units: UnitColumns
    traffic: TrafficColumns
    plan: PlanColumns
    start: Ints
    core: Ints
    host: Ints


@entity
class EventColumns:
    """Events of tasks on one machine, or on many that differ in clocks, task by task.

    Parameters
    ----------
    task, key : ndarray of int, (lines,)
        Whose, and which of the machine's keys.
    amounts : ndarray of int, (lines,) or (machines, lines)
        How often; may be nought.
    places : ndarray of int, as `amounts`
        Where among the lines of its task each is first met.
    """

    task: Ints
    key: Ints
    amounts: Ints
    places: Ints


_Parts = tuple[Ints, Ints, Ints, Ints]
"""Task, key, place and amounts of what is to be added up."""


def _gather(parts: Sequence[_Parts], many: tuple[int, ...]) -> EventColumns:
    """Add amounts of one task and key; noughts are met nowhere."""
    columns: list[list[Ints]] = [[], [], [], []]
    for part in parts:
        shape = np.broadcast_shapes(*(one.shape for one in part[:3]))
        for column, one in zip(columns, part[:3], strict=False):
            column.append(np.broadcast_to(one, shape).ravel())
        columns[3].append(np.broadcast_to(part[3], (*many, *shape)).reshape(*many, -1))
    task, key, place = (np.concatenate(column) for column in columns[:3])
    order = np.lexsort((key, task))
    task, key = task[order], key[order]
    first = np.flatnonzero(np.append(True, (np.diff(task) != 0) | (np.diff(key) != 0)))
    amounts = np.take(np.concatenate(columns[3], axis=-1), order, axis=-1)
    return EventColumns(
        task=task[first], key=key[first], amounts=np.add.reduceat(amounts, first, axis=-1),
        places=np.minimum.reduceat(np.where(amounts != 0, place[order], _LAST), first, axis=-1))


def list_events(asked: Asked, blame: Ints, machine: Machine) -> tuple[EventColumns, EventColumns]:
    """Return the events of tasks, on one machine or on many; `count_tasks` says which.

    Parameters
    ----------
    asked
        What ran, and for how long.
    blame : ndarray of int64, (..., nodes, 5)
        Ticks by node.

    Returns
    -------
    tuple of EventColumns
        Cycles waited, and work; of that only host cycles stretch the run.
    """
    transfers, units = asked.transfers, asked.units
    transfer_keys, unit_keys = _key_transfers(machine), _key_units(machine)
    macs, ops, moved = _key_work(asked, machine)
    tasks, number = np.arange(asked.core.shape[-1]), machine.keys.number
    launch, *others = (np.array(number(event, place)) for event, place in (
        (EVENT_OF_CAUSE["launch"], START), ("npu_active", ""), ("epoch_host_cycle", "pre"),
        ("epoch_host_cycle", "post")))
    many, nought = blame.shape[:-2], np.zeros(1, np.int64)
    waited = _gather([(tasks, launch, nought, asked.start * TICKS),
                      *map(_drop_noughts, _blame_nodes(asked, blame, transfer_keys, unit_keys))],
                     many)
    # Places among the lines of a task: waits, then units, transfers, and what is of the whole.
    last = _COLUMNS * (len(transfers.task) + len(units.task)) + 1
    unit_place = last + 2 * units.place
    worked = _gather([
        (units.task, macs, unit_place, units.macs), (units.task, ops, unit_place + 1, units.ops),
        (transfers.task, moved, 2 * last + transfers.place, asked.traffic.pool_bytes),
        *((tasks, key, np.array([4 * last + later]), amount) for later, (key, amount) in enumerate(
            zip(others, (asked.core if not many else nought, *asked.host), strict=True)))], ())
    if many:
        worked = _spread_active(worked, asked.core, worked.key == others[0])
    return replace(waited, amounts=_round_cycles(waited, asked.core)), worked


def _drop_noughts(part: _Parts) -> _Parts:
    """Return a part without what is nought on all of many machines, in one dimension."""
    *where, amounts = part
    if amounts.ndim == where[2].ndim:
        return part
    flat = amounts.reshape(len(amounts), -1)
    some = np.flatnonzero(np.bitwise_or.reduce(flat, axis=0))
    task, key, place = (np.broadcast_to(one, amounts.shape[1:]).ravel()[some] for one in where)
    return task, key, place, np.take(flat, some, axis=1)


def _spread_active(worked: EventColumns, core: Ints, active: Flags) -> EventColumns:
    """Return work on many machines, of which only a task's cycles in all are of each its own."""
    amounts = np.repeat(worked.amounts[None], len(core), axis=0)
    amounts[:, active] = core
    return replace(worked, amounts=amounts)


def count_tasks(asked: Asked, blame: Ints, machine: Machine) -> CountColumns:
    """Return the events of tasks.

    Parameters
    ----------
    asked
        What ran, and for how long.
    blame : ndarray of int64, (nodes, 5)
        Ticks by node; columns as `hwmodels.kernels.npu_streams` names them.

    Returns
    -------
    CountColumns
        Cycles by what was exposed, which sum to those in all; MACs, operations, bytes and active
        cycles for energy, which take no time of their own; host cycles.

    Notes
    -----
    RAM on the chip is `sram_wait`, flash there `flash_wait`, memory outside it `external_memory`;
    a port that is waited
    for while another stream holds it is `bus_contention`; its own pace and the latency of memory
    on the chip are `dma_wait`. A convolution's cycles are `mac` for the share of its lanes that
    compute and `mac_waste` for the rest and for filling. Ticks become cycles by largest remainder.
    """
    waited, worked = list_events(asked, blame, machine)
    shown = np.concatenate([np.ones(len(waited.key), np.bool_), stretches_run(machine, worked.key)])
    task, key, amounts, places = (np.concatenate(both) for both in (
        (waited.task, worked.task), (waited.key, worked.key),
        (waited.amounts, worked.amounts), (waited.places, worked.places)))
    some = np.flatnonzero(amounts)
    order = some[np.lexsort((places[some], task[some]))]
    occurred = amounts[order].astype(np.float64)
    return CountColumns(
        keys=machine.keys, key=key[order], occurred=occurred,
        first=np.searchsorted(task[order], np.arange(len(asked.core) + 1)),
        exposed=np.where(shown[order], occurred, 0.0))


def stretches_run(machine: Machine, key: Ints) -> Flags:
    """Return which keys of work are host cycles, which take time of their own."""
    own = [machine.keys.known[number][0] == "epoch_host_cycle" for number in key.tolist()]
    return np.array(own, np.bool_)


def _blame_nodes(asked: Asked, blame: Ints, transfer_keys: Ints,
                 unit_keys: Ints) -> Iterator[_Parts]:
    """Yield the ticks of transfers by column, and of units by whether their lanes compute."""
    transfers, units = asked.transfers, asked.units
    place = 1 + _COLUMNS * transfers.place[:, None] + np.arange(_COLUMNS)
    yield (transfers.task[:, None], transfer_keys[transfers.pool, transfers.port], place,
           np.take(blame, asked.plan.transfers, axis=-2))
    own, _, _, _, filling = np.moveaxis(np.take(blame, asked.plan.units, axis=-2), -1, 0)
    useful = (own * units.useful).astype(np.int64)
    count = np.diff(transfers.first)[units.task]
    place = 1 + _COLUMNS * count[:, None] + 2 * units.place[:, None] + np.arange(2)
    yield (units.task[:, None], unit_keys[units.kind, np.where(units.multiplies, 1, 0)], place,
           np.stack([useful, own - useful + filling], axis=-1))


def _round_cycles(waited: EventColumns, core: Ints) -> Ints:
    """Return ticks as whole cycles that sum to those in all, by largest remainder."""
    whole, left = np.divmod(waited.amounts, TICKS)
    first, task, slot = count_first(np.bincount(waited.task).tolist())
    score = np.full((*core.shape, int(slot.max()) + 1), np.iinfo(np.int64).max)
    score[..., task, slot] = (TICKS - left) * (2 * _LAST) + waited.places
    short = core - np.add.reduceat(whole, first[:-1], axis=-1)
    last = np.take_along_axis(np.sort(score, axis=-1), np.maximum(short - 1, 0)[..., None], -1)
    bound = np.where(short > 0, last[..., 0], -1)
    cycles: Ints = whole + (score[..., task, slot] <= bound[..., task])
    return cycles


def _key_transfers(machine: Machine) -> Ints:
    """Keys of the columns of blame of a transfer, by pool and port."""
    number, dma = machine.keys.number, EVENT_OF_CAUSE["dma_wait"]
    rows = []
    for name, pool in machine.pools.items():
        outside = bool(machine.external[pool])
        wait = machine.npu.pool(name).wait_event
        latency = f"latency:{name}"
        rows.append((pool, [
            [number(dma, latency), number(wait, name), number(dma, port),
             number(EVENT_OF_CAUSE["bus_contention"], port),
             number(wait if outside else dma, latency)] for port in machine.interfaces]))
    keys = np.zeros((len(machine.npu.pools), len(machine.npu.interfaces), _COLUMNS), np.int64)
    ports = list(machine.interfaces.values())
    for pool, row in rows:
        keys[pool, ports] = row
    return keys


def _key_units(machine: Machine) -> Ints:
    """Keys of useful and other cycles of units, by kind and whether they multiply."""
    number = machine.keys.number
    keys = np.zeros((len(machine.fill), 2, 2), np.int64)
    for kind, unit in machine.units.items():
        decodes = "weight_decode" in machine.npu.roles(kind)
        own = number(EVENT_OF_CAUSE["weight_decode" if decodes else "alu"], kind)
        keys[unit] = [[own, own], [number(EVENT_OF_CAUSE["mac"], kind),
                                   number(EVENT_OF_CAUSE["mac_waste"], kind)]]
    return keys


def _key_work(asked: Asked, machine: Machine) -> tuple[Ints, Ints, Ints]:
    """Keys of what takes energy and no time of its own: MACs, operations, bytes."""
    number, names = machine.keys.number, {pool: name for name, pool in machine.pools.items()}
    macs = np.array([number("npu_mac", name_bits(width)) for width in asked.units.widths], int)
    moved = [number(machine.npu.pool(names[pool]).byte_event, names[pool], operand)
             for pool, operand in zip(asked.transfers.pool.tolist(), asked.transfers.operands,
                                      strict=True)]
    return macs, np.array(number("npu_op")), np.array(moved, int)


def show_exposed(counts: CountColumns, task: int) -> tuple[Exposed, ...]:
    """Return the resources a task waited for, by cycles.

    Parameters
    ----------
    counts
        Of `count_tasks`.
    """
    waits = set(EVENT_OF_CAUSE.values())
    return tuple(Exposed(resource=line.place, cause=EVENTS[line.event].cause,
                         npu_cycles=int(line.exposed))
                 for line in counts.make_lines(task) if line.event in waits)
