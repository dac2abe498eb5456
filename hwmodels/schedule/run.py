"""Running tasks: cycles, transfers, memories, and the resources a task waited for.

Tasks of a network are columns: each step of the model is worked out for all of them at once, and
what one of them did, part by part, is made when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from hwmodels.board.npu import Npu
from hwmodels.columns import Keys
from hwmodels.frozen import entity, frozen
from hwmodels.schedule.bill import Asked, EventColumns, count_tasks, list_events, stretches_run
from hwmodels.schedule.details import RunColumns, TaskRun
from hwmodels.schedule.machine import Flags, Floats, Ints, Machine, lay_out, read_machine
from hwmodels.schedule.table import read_transfers, read_units
from hwmodels.schedule.task import Task
from hwmodels.schedule.timing import TICKS, plan_task, plan_tasks
from hwmodels.schedule.traffic import count_traffic, run_transfers


@entity
class TaskCounts:
    """Events of tasks, on one machine or on many.

    Parameters
    ----------
    keys
        What `key` numbers.
    task, key : ndarray of int, (lines,)
        Whose, and which event at which place.
    shown : ndarray of bool, (lines,)
        Whether it stretches the run.
    occurred : ndarray of float, (paces, lines)
        How often, on machines as fast as each other in NPU cycles.
    machines : ndarray of int, (machines,)
        Row of `occurred` of each.
    """

    keys: Keys
    task: Ints
    key: Ints
    shown: Flags
    occurred: Floats
    machines: Ints


@frozen
class Span:
    """One step of one node, for a timeline; cycles from the start of the task.

    Parameters
    ----------
    node
        "E4" is the transfer of channel 4, "U0" the first unit work.
    bytes
        Moved in the step; 0 for a unit.
    """

    node: str
    start_npu_cycle: float
    end_npu_cycle: float
    bytes: float


def run_tasks(tasks: Iterable[Task], npu: Npu) -> tuple[TaskRun, ...]:
    """Run tasks one after another.

    Parameters
    ----------
    tasks
        In order.

    Returns
    -------
    tuple of TaskRun
        One per task, whose `exposed` cycles sum to `core_npu_cycles` exactly.

    Raises
    ------
    BoardError, KernelError
        When the machine lacks a unit, port or memory, or the dataflow is impossible.
    """
    tasks, machine = tuple(tasks), read_machine(npu)
    asked, blame = _ask(tasks, machine)
    table = RunColumns(asked=asked, npu=npu, counts=count_tasks(asked, blame, machine))
    return tuple(TaskRun(table, place, task) for place, task in enumerate(tasks))


def _describe(task: Task) -> tuple[object, ...]:
    """Return all of a task its run depends on."""
    return (task.units, task.transfers, task.links, task.steps, task.start_cycles,
            task.host_before_cycles, task.host_after_cycles)


def gather_counts(runs: Sequence[TaskRun]) -> TaskCounts:
    """Return the events of tasks that ran on one machine."""
    slices = [run.counts.slices() for run in runs]
    assert all(one[0] is slices[0][0] for one in slices), "one machine has one list of keys"
    key, occurred, exposed = (np.concatenate([one[column] for one in slices])
                              for column in (1, 2, 3))
    return TaskCounts(
        keys=slices[0][0], key=key, occurred=occurred[None], shown=exposed != 0,
        task=np.repeat(np.arange(len(slices)), [len(one[1]) for one in slices]),
        machines=np.zeros(1, np.int64))


def _ask(tasks: Sequence[Task], machine: Machine) -> tuple[Asked, Ints]:
    """Run tasks on a machine, or on many that differ in clocks; also return blame by node."""
    from hwmodels.kernels import npu_streams

    transfers, units = read_transfers(tasks, machine), read_units(tasks, machine)
    traffic = count_traffic(transfers, machine)
    plan = plan_tasks(tasks, transfers, units, traffic, machine)
    one = plan.nodes.ndim == 2
    ran = [npu_streams.run_tasks(plan.spans, nodes, plan.links, plan.ports)[1:]
           for nodes in (plan.nodes[None] if one else np.ascontiguousarray(plan.nodes))]
    ticks, blame = ran[0] if one else map(np.stack, zip(*ran, strict=True))
    start, *host = np.array([(task.start_cycles, task.host_before_cycles, task.host_after_cycles)
                             for task in tasks], np.int64).reshape(-1, 3).T
    return Asked(transfers=transfers, units=units, traffic=traffic, plan=plan, start=start,
                 host=np.stack(host), core=start - -ticks // TICKS), blame


def count_many(tasks: Iterable[Task], npu: Npu) -> TaskCounts:
    """Count the events of tasks on many machines that differ in clocks.

    Parameters
    ----------
    tasks
        In order, as for `run_tasks`.
    npu
        Of a board of `hwmodels.board.operating_points.spread_clocks`.

    Returns
    -------
    TaskCounts
        On each machine what `run_tasks` counts there. Machines whose memories are as fast in NPU
        cycles run once.
    """
    tasks = tuple(tasks)
    keys = [*map(_describe, tasks)]
    fresh = dict(zip(keys, tasks, strict=True))
    number = {key: place for place, key in enumerate(fresh)}
    machine = lay_out(npu)
    ratio, read, write = np.broadcast_arrays(*(np.atleast_2d(column) for column in (
        machine.ratio, machine.read_latency, machine.write_latency)))
    used = sorted({machine.pool(one.pool) for task in tasks for one in task.transfers})
    paces = np.concatenate([ratio[:, used], read[:, used], write[:, used]], axis=1)
    _, first, machines = np.unique(paces, axis=0, return_index=True, return_inverse=True)
    machine = replace(machine, ratio=ratio[first], read_latency=read[first],
                      write_latency=write[first])
    parts = list_events(*_ask([*fresh.values()], machine), machine)
    return _repeat(parts, [number[key] for key in keys], machine, machines.ravel())


def _repeat(parts: tuple[EventColumns, EventColumns], which: Sequence[int], machine: Machine,
            machines: Ints) -> TaskCounts:
    """Return the events of all tasks, from those that ran."""
    task, key, amounts = (np.concatenate([getattr(part, name) for part in parts], axis=-1)
                          for name in ("task", "key", "amounts"))
    shown = np.append(np.ones(len(parts[0].key), np.bool_), stretches_run(machine, parts[1].key))
    some = amounts.any(axis=0)
    lines = [np.flatnonzero(some & (task == one)) for one in which]
    line = np.concatenate(lines)
    return TaskCounts(
        keys=machine.keys, key=key[line], shown=shown[line], machines=machines,
        task=np.repeat(np.arange(len(lines)), [len(own) for own in lines]),
        occurred=np.take(amounts, line, axis=1).astype(np.float64))


def trace_task(task: Task, npu: Npu) -> tuple[Span, ...]:
    """Return when each step of each node ran, node by node, for timelines."""
    from hwmodels.kernels.npu_streams import run_streams

    if task.on_host:
        return ()
    traffic = run_transfers(task.transfers, npu)
    plan = plan_task(task, npu)
    log, _, _ = run_streams(plan.nodes, plan.links, len(plan.channels), len(plan.pools))
    spans = []
    for node, name in enumerate(plan.names):
        steps = int(plan.nodes[node, 0])
        moved = traffic[node].wanted_bytes / steps if node < len(traffic) else 0.0
        spans += [Span(node=name, bytes=moved,
                       start_npu_cycle=task.start_cycles + float(start) / TICKS,
                       end_npu_cycle=task.start_cycles + float(end) / TICKS)
                  for start, end in log[node, :steps, :2]]
    return tuple(spans)
