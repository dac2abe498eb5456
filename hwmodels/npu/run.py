"""Running epochs: core cycles, engines, bursts, pools, and the resources the epoch waited for."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hwmodels.board.npu import HandOver, Npu
from hwmodels.npu.bill import count_epoch, round_exposed
from hwmodels.npu.compiler import estimate_compute_cycles, estimate_max_cycles
from hwmodels.npu.epoch import EngineRun, Epoch, EpochRun, InterfaceRun, PoolRun
from hwmodels.npu.streams import Bursts, Stream, count_cache, form_streams
from hwmodels.npu.timing import TICKS, plan_epoch

NO_BURSTS: Bursts = (0, 0, 0, 0)

KEPT_EPOCHS = 8192
"""Of one machine, in memory; all are dropped when there are more."""


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
    """
    epochs = tuple(epochs)
    alone = [epoch.kind in ("sw", "hybrid") for epoch in epochs]
    runs = []
    known = _kept_runs(npu)
    if len(known) > KEPT_EPOCHS:
        known.clear()
    for position, epoch in enumerate(epochs):
        follows = npu.epoch_controller and position > 0 and not (
            alone[position - 1] or alone[position])
        leads = npu.epoch_controller and position + 1 < len(epochs) and not (
            alone[position + 1] or alone[position])
        key = (epoch.kind, epoch.units, epoch.engines, epoch.links, follows, leads)
        run = known.get(key)
        if run is None:
            run = known[key] = run_epoch(epoch, npu, handed_over=not follows,
                                         handed_back=not leads)
        runs.append(run if run.epoch is epoch else replace(run, epoch=epoch))
    return tuple(runs)


def forget_epochs() -> None:
    """Drop what is kept of epochs that ran."""
    _kept_runs.cache_clear()


@functools.lru_cache(maxsize=4)
def _kept_runs(npu: Npu) -> dict[object, EpochRun]:
    """Return what ran on a machine, by all of an epoch that tells but its name."""
    del npu
    return {}


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
    from hwmodels.kernels.npu_streams import run_streams

    pre, post = hand_over_cycles(epoch, npu)
    if npu.epoch_controller and epoch.kind in ("hw", "copy"):
        pre, post = _controlled(npu.hand_over, pre, post)
    pre, post = pre if handed_over else 0, post if handed_back else 0
    if not epoch.engines and not epoch.units:
        return EpochRun(epoch=epoch, core_npu_cycles=0, compute_cycles=0, max_cycles=0,
                        pre_cpu_cycles=pre, post_cpu_cycles=post,
                        counts=count_epoch(epoch, (), (), 0, (pre, post), npu))
    streams = form_streams(epoch.engines, npu)
    plan = plan_epoch(epoch, streams, npu)
    _, ticks, blame = run_streams(plan.nodes, plan.links, len(plan.channels), len(plan.pools))
    start = (npu.start_cycles if handed_over
             else round(npu.controller_engine_cycles * len(epoch.engines)))
    core = start + -(-ticks // TICKS)
    exposed = round_exposed(blame, epoch, streams, npu, start, core)
    compute = estimate_compute_cycles(epoch, npu)
    engines = tuple(_run_engine(stream, core, compute, start) for stream in streams)
    return EpochRun(
        epoch=epoch, core_npu_cycles=core, compute_cycles=compute,
        max_cycles=estimate_max_cycles(epoch, npu), engines=engines,
        interfaces=tuple(_run_interface(part.name, engines) for part in npu.interfaces),
        pools=_run_pools(streams, npu, core), cache=count_cache(streams), exposed=exposed,
        pre_cpu_cycles=pre, post_cpu_cycles=post,
        counts=count_epoch(epoch, streams, exposed, core, (pre, post), npu),
    )


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
    plan = plan_epoch(epoch, streams, npu)
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


def _run_engine(stream: Stream, core: int, compute: int, start: int) -> EngineRun:
    """Return an engine's counters.

    Notes
    -----
    An engine in is active while it fetches and while the units take what it fetched, and stalled
    while its buffer is full; an engine out is active while it is open, as it waits for data:

        in   min(core, start + latency + fetch + max(compute, hand))        out   core
    """
    engine, width = stream.engine, stream.interface.width_bytes
    active = core
    if engine.direction == "in":
        own = stream.latency_cycles + stream.fetch_cycles + max(compute, stream.hand_cycles)
        active = min(core, start + math.ceil(own))
    return EngineRun(index=engine.index, direction=engine.direction, interface=engine.interface,
                     pool=engine.pool, buffer_bytes=engine.buffer_bytes, active_cycles=active,
                     bytes=stream.beats * width, bursts=stream.bursts)


def _run_interface(name: str, engines: Sequence[EngineRun]) -> InterfaceRun:
    bursts = {"in": NO_BURSTS, "out": NO_BURSTS}
    moved = {"in": 0, "out": 0}
    for engine in engines:
        if engine.interface == name:
            a, b, c, d = bursts[engine.direction]
            e, f, g, h = engine.bursts
            bursts[engine.direction] = (a + e, b + f, c + g, d + h)
            moved[engine.direction] += engine.bytes
    return InterfaceRun(name=name, read_bytes=moved["in"], write_bytes=moved["out"],
                        read_bursts=bursts["in"], write_bursts=bursts["out"])


def _run_pools(streams: Sequence[Stream], npu: Npu, core: int) -> tuple[PoolRun, ...]:
    moved: dict[str, list[int]] = {}
    for stream in streams:
        sums = moved.setdefault(stream.engine.pool, [0, 0])
        sums[stream.engine.direction == "out"] += stream.wanted_bytes
    seconds = core / npu.frequency_hz
    return tuple(PoolRun(name=name, read_bytes=reads, write_bytes=writes,
                         mb_per_s=(reads + writes) / seconds / 1e6 if core else 0.0)
                 for name, (reads, writes) in moved.items())
