"""Running epochs: core cycles, engines, bursts, pools, and the resources the epoch waited for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hwmodels.counts import CountLine, Counts
from hwmodels.npu.compiler import (
    estimate_max_cycles,
    estimate_unit_cycles,
    name_width,
)
from hwmodels.npu.epoch import (
    EngineRun,
    Epoch,
    EpochRun,
    Exposed,
    InterfaceRun,
    PoolRun,
    UnitWork,
)
from hwmodels.npu.machine import Npu
from hwmodels.npu.streams import Bursts, Stream, count_cache, form_streams
from hwmodels.npu.timing import TICKS, Ints, Plan, plan_epoch

EVENT_OF_CAUSE = {
    "mac": "npu_mac_cycle", "mac_waste": "npu_mac_waste_cycle", "alu": "npu_alu_cycle",
    "sram_wait": "npu_ram_wait", "external_memory": "npu_external_wait",
    "bus_contention": "npu_bus_wait", "dma_wait": "npu_stream_wait",
    "weight_decode": "npu_decode_cycle", "launch": "npu_start",
}
"""Event that carries the exposed cycles of each cause."""

START = "start"
"""Resource of the cycles before the first request and after the last beat."""

NO_BURSTS: Bursts = (0, 0, 0, 0)


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
        and after the last of consecutive hardware epochs; between them the controller sets up
        the engines, which is part of the start.
    """
    epochs = tuple(epochs)
    alone = [epoch.kind in ("sw", "hybrid") for epoch in epochs]
    runs = []
    for position, epoch in enumerate(epochs):
        follows = npu.epoch_controller and position > 0 and not (
            alone[position - 1] or alone[position])
        leads = npu.epoch_controller and position + 1 < len(epochs) and not (
            alone[position + 1] or alone[position])
        runs.append(run_epoch(epoch, npu, handed_over=not follows, handed_back=not leads))
    return tuple(runs)


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
    pre, post = pre if handed_over else 0, post if handed_back else 0
    if not epoch.engines and not epoch.units:
        return EpochRun(epoch=epoch, core_npu_cycles=0, compute_cycles=0, max_cycles=0,
                        pre_cpu_cycles=pre, post_cpu_cycles=post,
                        counts=Counts(_host_lines(pre, post)))
    streams = form_streams(epoch.engines, npu)
    plan = plan_epoch(epoch, streams, npu)
    log, ticks, blame, stalled = run_streams(plan.nodes, plan.links, len(plan.channels),
                                             len(plan.pools))
    start = npu.start_cycles
    if not handed_over:
        start += round(npu.controller_engine_cycles * len(epoch.engines))
    core = start + -(-ticks // TICKS)
    exposed = _round_exposed(blame, epoch, streams, npu, start, core)
    ends = log[range(len(plan.names)), plan.nodes[:, 0] - 1, 1]
    engines = tuple(_run_engine(stream, int(ends[n]), int(stalled[n]), epoch, npu)
                    for n, stream in enumerate(streams))
    return EpochRun(
        epoch=epoch, core_npu_cycles=core,
        compute_cycles=max((estimate_unit_cycles(work, npu) for work in epoch.units), default=0),
        max_cycles=estimate_max_cycles(epoch, npu), engines=engines,
        interfaces=tuple(_run_interface(part.name, engines) for part in npu.interfaces),
        pools=_run_pools(streams, npu, core), cache=count_cache(streams, npu), exposed=exposed,
        pre_cpu_cycles=pre, post_cpu_cycles=post,
        counts=_count(epoch, streams, exposed, core, pre, post, npu),
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
    pre = a + b engines + sum over unit kinds of c(kind) units, post likewise; an epoch on the
    host costs its dispatch, all of it before.
    """
    prices = npu.hand_over
    if epoch.kind == "sw" or not epoch.engines:
        return round(prices.software_cycles), 0
    engines = len(epoch.engines)
    pre = prices.pre_cycles + prices.pre_engine_cycles * engines
    post = prices.post_cycles + prices.post_engine_cycles * engines
    pre_unit, post_unit = dict(prices.pre_unit_cycles), dict(prices.post_unit_cycles)
    for work in epoch.units:
        pre += pre_unit.get(work.kind, 0.0) * work.count
        post += post_unit.get(work.kind, 0.0) * work.count
    return round(pre), round(post)


def trace_epoch(epoch: Epoch, npu: Npu) -> tuple[Span, ...]:
    """Return when each step of each node ran, for timelines and bandwidth over time.

    Parameters
    ----------
    epoch : Epoch
        What to do.
    npu : Npu
        The machine.

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
    log = run_streams(plan.nodes, plan.links, len(plan.channels), len(plan.pools))[0]
    spans = []
    for node, name in enumerate(plan.names):
        steps = int(plan.nodes[node, 0])
        moved = streams[node].wanted_bytes / steps if node < len(streams) else 0.0
        spans += [Span(node=name, bytes=moved,
                       start_npu_cycle=npu.start_cycles + float(start) / TICKS,
                       end_npu_cycle=npu.start_cycles + float(end) / TICKS)
                  for start, end in log[node, :steps, :2]]
    return tuple(spans)


def _round_exposed(blame: Ints, epoch: Epoch, streams: Sequence[Stream], npu: Npu, start: int,
                   core: int) -> tuple[Exposed, ...]:
    """Ticks by resource as whole cycles, by largest remainder."""
    ticks: dict[tuple[str, str], int] = {(START, "launch"): start * TICKS}
    for row, stream in zip(blame[:len(streams)].tolist(), streams, strict=True):
        pool = npu.pool(stream.engine.pool)
        memory = "external_memory" if pool.external else "sram_wait"
        lag = "external_memory" if pool.external else "dma_wait"
        for amount, key in zip(row, (
                (f"latency:{pool.name}", "dma_wait"), (pool.name, memory),
                (stream.engine.interface, "dma_wait"),
                (stream.engine.interface, "bus_contention"),
                (f"latency:{pool.name}", lag)), strict=True):
            if amount:
                ticks[key] = ticks.get(key, 0) + amount
    for row, work in zip(blame[len(streams):].tolist(), epoch.units, strict=True):
        useful, cause = _useful_share(work, npu), _cause_of(work)
        used = int(row[0] * useful)
        for amount, why in ((used, cause), (row[0] - used + row[4], _idle_cause_of(work))):
            if amount:
                ticks[work.kind, why] = ticks.get((work.kind, why), 0) + amount
    whole = {key: amount // TICKS for key, amount in ticks.items()}
    short = core - sum(whole.values())
    largest = sorted(ticks, key=lambda key: -(ticks[key] % TICKS))
    for turn in range(short):
        whole[largest[turn % len(largest)]] += 1
    return tuple(Exposed(resource=resource, cause=cause, npu_cycles=cycles)
                 for (resource, cause), cycles in whole.items() if cycles)


def _cause_of(work: UnitWork) -> str:
    return {"CONV_ACC": "mac", "DECUN_ACC": "weight_decode"}.get(work.kind, "alu")


def _idle_cause_of(work: UnitWork) -> str:
    """Cause of cycles in which the unit's lanes compute nothing useful, or fill."""
    return "mac_waste" if work.kind == "CONV_ACC" else _cause_of(work)


def _useful_share(work: UnitWork, npu: Npu) -> float:
    """Share of a convolution's lanes that compute; 1 where it is not known."""
    cycles = estimate_unit_cycles(work, npu)
    if work.kind != "CONV_ACC" or not work.macs or not cycles:
        return 1.0
    rate = dict(npu.unit(work.kind).macs_per_cycle).get(name_width(work), 0.0)
    return min(1.0, work.macs / (rate * work.count * cycles)) if rate else 1.0


def _run_engine(stream: Stream, end: int, stalled: int, epoch: Epoch, npu: Npu) -> EngineRun:
    """An engine's counters.

    An engine is active while it waits for memory, moves data or hands it to a unit that takes
    it; it is stalled while its buffer is full and the units do not compute.
    """
    engine = stream.engine
    active = npu.start_cycles + -(-end // TICKS)
    if engine.direction == "in":
        compute = max((estimate_unit_cycles(work, npu) for work in epoch.units), default=0)
        active -= max(0, stalled // TICKS - compute)
    width = npu.interface(engine.interface).width_bytes
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


def _count(epoch: Epoch, streams: Sequence[Stream], exposed: Sequence[Exposed], core: int,
           pre: int, post: int, npu: Npu) -> Counts:
    """Events of an epoch: cycles by what was exposed, and what moves and computes for energy."""
    sums: dict[tuple[str, str, str], tuple[float, float]] = {}

    def add(event: str, place: str, operand: str, occurred: float, shown: float) -> None:
        old = sums.get((event, place, operand), (0.0, 0.0))
        sums[event, place, operand] = (old[0] + occurred, old[1] + shown)

    for item in exposed:
        add(EVENT_OF_CAUSE[item.cause], item.resource, "", item.npu_cycles, item.npu_cycles)
    for work in epoch.units:
        if work.macs:
            add("npu_mac", name_width(work), "", work.macs, 0.0)
        if work.ops:
            add("npu_op", "", "", work.ops, 0.0)
    for stream in streams:
        outside = npu.pool(stream.engine.pool).external
        add("npu_external_byte" if outside else "npu_ram_byte", stream.engine.pool,
            stream.engine.operand, stream.pool_bytes, 0.0)
    add("npu_active", "", "", core, 0.0)
    return Counts(tuple(
        CountLine(event=event, place=place, operand=operand, occurred=occurred, exposed=shown)
        for (event, place, operand), (occurred, shown) in sums.items()) + _host_lines(pre, post))


def _host_lines(pre: int, post: int) -> tuple[CountLine, ...]:
    return tuple(CountLine(event="epoch_host_cycle", place=place, occurred=cycles, exposed=cycles)
                 for place, cycles in (("pre", pre), ("post", post)) if cycles)


__all__ = ["Plan", "Span", "hand_over_cycles", "run_epoch", "run_epochs", "trace_epoch"]
