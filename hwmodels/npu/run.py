"""Running epochs: core cycles, engines, bursts, pools, and the resources the epoch waited for.

Epochs of a network are columns: each step of the model is worked out for all of them at once, and
what one of them did, part by part, is made when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hwmodels.board.npu import HandOver, Npu
from hwmodels.columns import Keys
from hwmodels.npu.bill import Asked, EventColumns, count_epochs, list_events, stretches_run
from hwmodels.npu.compiler import estimate_compute, estimate_max
from hwmodels.npu.details import Ran, RunColumns
from hwmodels.npu.epoch import Epoch, EpochRun
from hwmodels.npu.machine import Flags, Floats, Ints, Machine, lay_out, read_machine
from hwmodels.npu.streams import form_streams, stream_engines
from hwmodels.npu.table import read_engines, read_units
from hwmodels.npu.timing import TICKS, plan_epoch, plan_epochs

KEPT_EPOCHS = 8192
"""Of one machine, in memory; all are dropped when there are more."""


_Handed = tuple[Epoch, bool, bool]
"""An epoch, and whether the host sets it up and takes it down."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ManyColumns:
    """Events of epochs on many machines.

    Parameters
    ----------
    keys : Keys
        What `key` numbers.
    epoch, key : ndarray of int, (lines,)
        Whose, and which event at which place.
    shown : ndarray of bool, (lines,)
        Whether it stretches the run.
    occurred : ndarray of float, (paces, lines)
        How often, on machines as fast as each other in NPU cycles.
    machines : ndarray of int, (machines,)
        Row of `occurred` of each.
    """

    keys: Keys
    epoch: Ints
    key: Ints
    shown: Flags
    occurred: Floats
    machines: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One step of one node, for a timeline; cycles from the start of the epoch.

    Parameters
    ----------
    node : str
        "E4" is stream engine 4, "U0" the first unit work.
    bytes : float
        Moved in the step; 0 for a unit.
    """

    node: str
    start_npu_cycle: float
    end_npu_cycle: float
    bytes: float


def run_epochs(epochs: Iterable[Epoch], npu: Npu) -> tuple[EpochRun, ...]:
    """Run epochs one after another.

    Parameters
    ----------
    epochs : iterable of Epoch
        In order.
    npu : Npu
        The machine.

    Returns
    -------
    tuple of EpochRun
        One per epoch. With the epoch controller on, the host hands over only before the first
        and after the last of consecutive hardware epochs: it starts the controller, which sets up
        the engines, and takes its interrupt. Epochs equal but for their names run once, and again
        only after `forget_epochs`.

    Raises
    ------
    BoardError, KernelError
        When the machine lacks a unit, interface or pool, or the dataflow is impossible.
    """
    epochs = tuple(epochs)
    known = read_machine(npu).kept
    if len(known) > KEPT_EPOCHS:
        known.clear()
    slots: list[list[EpochRun]] = []
    fresh: dict[int, _Handed] = {}
    for key, one in _tell_apart(epochs, npu):
        slot = known.setdefault(key, [])
        if not slot and id(slot) not in fresh:
            fresh[id(slot)] = one
        slots.append(slot)
    if fresh:
        made = dict(zip(fresh, _run_fresh([*fresh.values()], npu), strict=True))
        for slot in slots:
            if not slot:
                slot.append(made[id(slot)])
    return tuple(_rename(slot[0], epoch) for slot, epoch in zip(slots, epochs, strict=True))


def _tell_apart(epochs: Sequence[Epoch], npu: Npu) -> Iterator[tuple[object, _Handed]]:
    """Yield all of each epoch that tells but its name, and whether the host begins and ends it."""
    alone = [epoch.kind in ("sw", "hybrid") for epoch in epochs]
    for position, epoch in enumerate(epochs):
        follows = npu.epoch_controller and position > 0 and not (
            alone[position - 1] or alone[position])
        leads = npu.epoch_controller and position + 1 < len(epochs) and not (
            alone[position + 1] or alone[position])
        yield ((epoch.kind, epoch.units, epoch.engines, epoch.links, follows, leads),
               (epoch, not follows, not leads))


def _rename(run: EpochRun, epoch: Epoch) -> EpochRun:
    """Return what an epoch did as of another equal but for its name."""
    if run.epoch is epoch:
        return run
    return EpochRun(
        epoch=epoch, core_npu_cycles=run.core_npu_cycles, compute_cycles=run.compute_cycles,
        max_cycles=run.max_cycles, pre_cpu_cycles=run.pre_cpu_cycles,
        post_cpu_cycles=run.post_cpu_cycles, details=run.details)


def forget_epochs() -> None:
    """Drop what is kept of epochs that ran."""
    read_machine.cache_clear()


def run_epoch(epoch: Epoch, npu: Npu, *, handed_over: bool = True,
              handed_back: bool = True) -> EpochRun:
    """Run one epoch.

    Parameters
    ----------
    epoch : Epoch
        What to do.
    npu : Npu
        The machine.
    handed_over, handed_back : bool
        Whether the host sets it up and takes it down; otherwise the epoch controller does.

    Returns
    -------
    EpochRun
        Whose `exposed` cycles sum to `core_npu_cycles` exactly.

    Raises
    ------
    BoardError, KernelError
        When the machine lacks a unit, interface or pool, or the dataflow is impossible.
    """
    run, = _run_fresh([(epoch, handed_over, handed_back)], npu)
    return run


def _run_fresh(asked: Sequence[_Handed], npu: Npu) -> list[EpochRun]:
    """Run epochs, each with whether the host sets it up and takes it down."""
    machine = read_machine(npu)
    whole, blame = _ask(asked, machine)
    epochs, compute, engines = tuple(one[0] for one in asked), estimate_compute(
        whole.units), whole.engines
    table = RunColumns(epochs=epochs, asked=whole, compute=compute, npu=npu,
                       counts=count_epochs(whole, blame, machine))
    return [EpochRun(epoch=epoch, core_npu_cycles=core, compute_cycles=ideal, max_cycles=longest,
                     pre_cpu_cycles=pre, post_cpu_cycles=post, details=Ran(table, place))
            for place, (epoch, core, ideal, longest, pre, post) in enumerate(zip(
                epochs, whole.core.tolist(), compute.tolist(),
                estimate_max(engines, compute, machine).tolist(), *whole.host.tolist(),
                strict=True))]


def _ask(asked: Sequence[_Handed], machine: Machine) -> tuple[Asked, Ints]:
    """Run epochs on a machine, or on many that differ in clocks; also return blame by node."""
    from hwmodels.kernels import npu_lanes, npu_streams

    epochs, npu = [epoch for epoch, _, _ in asked], machine.npu
    engines = read_engines([epoch.engines for epoch in epochs], machine)
    units = read_units(epochs, machine)
    streams = stream_engines(engines, machine)
    plan = plan_epochs(epochs, engines, units, streams, machine)
    if plan.nodes.ndim == 2:
        _, ticks, blame = npu_streams.run_epochs(plan.spans, plan.nodes, plan.links, plan.ports)
    else:
        ticks, blame = npu_lanes.run_machines(plan.spans, plan.nodes, plan.links, plan.ports)
    start = _start_cycles([over for _, over, _ in asked], np.diff(engines.first), machine)
    start = np.where(np.diff(plan.spans[:, 0]) > 0, start, 0)
    host = np.array([_hand_over(*one, npu) for one in asked], np.int64).reshape(-1, 2).T
    return Asked(
        engines=engines, units=units, streams=streams, plan=plan, start=start, host=host,
        core=start - -ticks // TICKS), blame


def count_many(epochs: Iterable[Epoch], npu: Npu) -> ManyColumns:
    """Count the events of epochs on many machines that differ in clocks.

    Parameters
    ----------
    epochs : iterable of Epoch
        In order, as for `run_epochs`.
    npu : Npu
        Of a board of `hwmodels.board.file.spread_clocks`.

    Returns
    -------
    ManyColumns
        On each machine what `run_epochs` counts there. Machines whose pools are as fast in NPU
        cycles run once.
    """
    epochs = tuple(epochs)
    numbers: dict[object, int] = {}
    fresh: list[_Handed] = []
    which = []
    for key, one in _tell_apart(epochs, npu):
        if key not in numbers:
            numbers[key] = len(fresh)
            fresh.append(one)
        which.append(numbers[key])
    machine = lay_out(npu)
    ratio, read, write = np.broadcast_arrays(*(np.atleast_2d(column) for column in (
        machine.ratio, machine.read_latency, machine.write_latency)))
    used = sorted({machine.pool(engine.pool) for epoch in epochs for engine in epoch.engines})
    paces = np.concatenate([ratio[:, used], read[:, used], write[:, used]], axis=1)
    _, first, machines = np.unique(paces, axis=0, return_index=True, return_inverse=True)
    machine = replace(machine, ratio=ratio[first], read_latency=read[first],
                      write_latency=write[first])
    parts = list_events(*_ask(fresh, machine), machine)
    return _repeat(parts, np.array(which), machine, machines.ravel())


def _repeat(parts: tuple[EventColumns, EventColumns], which: Ints, machine: Machine,
            machines: Ints) -> ManyColumns:
    """Return the events of all epochs, from those that ran."""
    epoch, key, amounts = (np.concatenate([getattr(part, name) for part in parts], axis=-1)
                           for name in ("epoch", "key", "amounts"))
    shown = np.append(np.ones(len(parts[0].key), np.bool_),
                      stretches_run(machine, parts[1].key))
    some = amounts.any(axis=0)
    lines = [np.flatnonzero(some & (epoch == one)) for one in which.tolist()]
    line = np.concatenate(lines)
    return ManyColumns(
        keys=machine.keys, key=key[line], shown=shown[line], machines=machines,
        epoch=np.repeat(np.arange(len(lines)), [len(own) for own in lines]),
        occurred=np.take(amounts, line, axis=1).astype(np.float64))


def _start_cycles(handed_over: Sequence[bool], engines: Ints, machine: Machine) -> Ints:
    """NPU cycles before the first request, of epochs the host or the controller sets up."""
    npu = machine.npu
    controlled = np.rint(npu.controller_engine_cycles * engines).astype(np.int64)
    return np.where(np.array(handed_over, np.bool_), npu.start_cycles, controlled)


def _hand_over(epoch: Epoch, handed_over: bool, handed_back: bool, npu: Npu) -> tuple[int, int]:
    """Host cycles before and after an epoch."""
    pre, post = hand_over_cycles(epoch, npu)
    if npu.epoch_controller and epoch.kind in ("hw", "copy"):
        pre, post = _controlled(npu.hand_over, pre, post)
    return pre if handed_over else 0, post if handed_back else 0


def hand_over_cycles(epoch: Epoch, npu: Npu) -> tuple[int, int]:
    """Return what the host does before and after an epoch.

    Parameters
    ----------
    epoch : Epoch
        Its engines and units are what is set up.
    npu : Npu
        For `hand_over`.

    Returns
    -------
    tuple of int
        Cycles of the host's clock before and after.

    Notes
    -----
    pre = a + b engines + e coefficients + sum over unit kinds of c(kind) + d(kind) (units - 1),
    post likewise with d = c and e = 0; an epoch on the host costs its dispatch, all of it before.
    """
    prices = npu.hand_over
    if epoch.kind == "sw" or not epoch.engines:
        return round(prices.software_cycles), 0
    engines = len(epoch.engines)
    pre = prices.pre_cycles + prices.pre_engine_cycles * engines
    pre += prices.pre_coefficient_cycles * sum(work.coefficients for work in epoch.units)
    post = prices.post_cycles + prices.post_engine_cycles * engines
    counts: dict[str, int] = {}
    for work in epoch.units:
        counts[work.kind] = counts.get(work.kind, 0) + work.count
    pre_unit, post_unit = dict(prices.pre_unit_cycles), dict(prices.post_unit_cycles)
    further = pre_unit | dict(prices.pre_further_unit_cycles)
    for kind, count in counts.items():
        pre += pre_unit.get(kind, 0.0) + further.get(kind, 0.0) * (count - 1)
        post += post_unit.get(kind, 0.0) * count
    return round(pre), round(post)


def _controlled(prices: HandOver, pre: int, post: int) -> tuple[int, int]:
    """Return what the host does around epochs the controller runs, where that is stated."""
    started, ended = prices.controller_pre_cycles, prices.controller_post_cycles
    return pre if started is None else round(started), post if ended is None else round(ended)


def trace_epoch(epoch: Epoch, npu: Npu, start_cycles: int | None = None) -> tuple[Span, ...]:
    """Return when each step of each node ran, for timelines and bandwidth over time.

    Parameters
    ----------
    epoch : Epoch
        What to do.
    npu : Npu
        The machine.
    start_cycles : int, optional
        NPU cycles before the first request; the host's start unless given.

    Returns
    -------
    tuple of Span
        Node by node, in order of time.
    """
    from hwmodels.kernels.npu_streams import run_streams

    if not epoch.engines and not epoch.units:
        return ()
    streams = form_streams(epoch.engines, npu)
    plan = plan_epoch(epoch, npu)
    log, _, _ = run_streams(plan.nodes, plan.links, len(plan.channels), len(plan.pools))
    begin = npu.start_cycles if start_cycles is None else start_cycles
    spans = []
    for node, name in enumerate(plan.names):
        steps = int(plan.nodes[node, 0])
        moved = streams[node].wanted_bytes / steps if node < len(streams) else 0.0
        spans += [Span(node=name, bytes=moved,
                       start_npu_cycle=begin + float(start) / TICKS,
                       end_npu_cycle=begin + float(end) / TICKS)
                  for start, end in log[node, :steps, :2]]
    return tuple(spans)
