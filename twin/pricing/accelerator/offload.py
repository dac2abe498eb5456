"""The whole model on an accelerator: its epochs, the host's operators, and all that lies between.

    total = epochs on the NPU + operators on the host + hand-over

The hand-over is what neither computes: setting epochs up and taking them down, dispatching software
epochs, stepping moved operators, cleaning and invalidating the host's cache. Host and NPU take
turns; epochs follow one another without the host only where the epoch controller is on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from hwmodels.board.facts import Board
from hwmodels.columns import merge_columns
from hwmodels.counts import (
    EXACT,
    Bill,
    BillLine,
    CountLine,
    Counts,
    Prices,
    make_bill,
    merge_bills,
    merge_counts,
)
from hwmodels.kernel import Kernel
from hwmodels.npu import Epoch, EpochRun, Npu
from hwmodels.npu.run import run_epochs
from twin.deployment.accelerator.plan import plan_of
from twin.deployment.core import lower_network
from twin.deployment.costs import (
    EpochPrediction,
    LayerCost,
    Step,
    convert_us,
)
from twin.deployment.deployment import Deployment, PriceOnCore
from twin.network.operators import is_alias
from twin.pricing.accelerator.columns import Part, price_parts


def price_offloaded(deployment: Deployment, prices: Prices, price_on_core: PriceOnCore,
                    ) -> tuple[tuple[LayerCost, ...], tuple[EpochPrediction, ...]]:
    """Price an inference on an accelerator and its host.

    Parameters
    ----------
    deployment : Deployment
        Whose runtime offloads.
    prices : Prices
        From `twin.pricing.host.runtime_prices`.
    price_on_core : callable
        Prices the host's kernels.

    Returns
    -------
    tuple of LayerCost
        One per layer of the executed graph; an epoch's cost is split among its layers.
    tuple of EpochPrediction
        In order.

    Notes
    -----
    The host's operators start with empty caches each time the accelerator ran before them: what
    it wrote must be fetched, and its driver has run meanwhile. An epoch's counts are split by the
    work of its layers, in 64ths, so that the parts sum exactly.
    """
    steps = [step for step in plan_of(deployment).steps if step.kind != "alias"]
    runs = run_epochs([_epoch_of(step) for step in steps], _npu(deployment))
    priced = _price_steps(deployment, steps, runs, prices, price_on_core)
    costs: dict[int, list[LayerCost]] = {}
    epochs: list[EpochPrediction] = []
    board, start_us = deployment.board, 0.0
    host, hertz = board.core.clock, board.hertz
    for step, run, parts in zip(steps, runs, priced, strict=True):
        epoch = run.epoch
        kernels = tuple([f"{epoch.kind}.{name}" for name, _ in epoch.operations])
        for position, part in zip(step.layers, parts, strict=True):
            costs.setdefault(position, []).append(LayerCost(
                bill=part.bill, counts=part.counts, epochs=(epoch.name,), kernels=kernels)
                if isinstance(part, Part) else
                replace(part, epochs=(epoch.name,), kernels=part.kernels or kernels))
        bill = parts[0].bill if len(parts) == 1 else merge_columns(part.bill for part in parts)
        epochs.append(_describe(len(epochs), step, run, bill, start_us, host, hertz))
        start_us += epochs[-1].time_us
    return tuple(_merge(costs.get(position, []))
                 for position in range(len(deployment.executed.layers))), tuple(epochs)


def _price_steps(deployment: Deployment, steps: Sequence[Step], runs: Sequence[EpochRun],
                 prices: Prices, price_on_core: PriceOnCore) -> list[Sequence[Part | LayerCost]]:
    """Price steps by layer: all of those the host only sets up at once, the others one by one."""
    npu, whole = _npu(deployment), plan_of(deployment).steps
    software = iter(_price_host(deployment, whole, prices, price_on_core))
    maintained = iter(list_cache_lines(deployment, steps))
    priced: list[Sequence[Part | LayerCost]] = []
    plain: list[int] = []
    for place, (step, run) in enumerate(zip(steps, runs, strict=True)):
        on_host = next(software) if step.kind == "host" else None
        extra = (*list_moved(deployment, step), *next(maintained))
        if not extra and on_host is None:
            plain.append(place)
            priced.append(())
            continue
        counts = merge_counts([run.counts, Counts(extra)]) if extra else run.counts
        priced.append([_layer_cost(part, on_host, prices, deployment.board, npu)
                       for part in _split(counts, step.shares)])
    if plain:
        for place, parts in zip(plain, price_parts(
                [runs[place] for place in plain], [steps[place].shares for place in plain],
                prices, deployment.board, npu), strict=True):
            priced[place] = parts
    return priced


def _epoch_of(step: Step) -> Epoch:
    assert step.epoch is not None, "all steps but aliases are epochs"
    return step.epoch


def _npu(deployment: Deployment) -> Npu:
    npu = deployment.board.npu
    assert npu is not None, "a deployment that offloads has an accelerator"
    return npu


def _price_host(deployment: Deployment, steps: Sequence[Step], prices: Prices,
                price_on_core: PriceOnCore) -> list[LayerCost]:
    """Price the host's operators, group by group of those that follow one another."""
    lower = cache(partial(lower_network, deployment))
    return [cost for group in list_host_groups(steps) for cost in price_on_core(
        deployment, partial(pick_layers, lower, group), prices, cold=True, part=tuple(group))]


def list_host_groups(steps: Sequence[Step]) -> list[list[int]]:
    """Return the layers on the host, those in one group that follow one another."""
    groups: list[list[int]] = []
    follows = False
    for step in steps:
        if step.kind == "host":
            if not follows:
                groups.append([])
            groups[-1] += step.layers
        follows = step.kind == "host" or (follows and step.kind == "alias")
    return groups


def pick_layers(lower: Callable[[], Sequence[tuple[Kernel, ...]]],
                group: Sequence[int]) -> list[tuple[Kernel, ...]]:
    """Lower, and return the kernels of some layers."""
    kernels = lower()
    return [kernels[position] for position in group]


def list_moved(deployment: Deployment, step: Step) -> tuple[CountLine, ...]:
    """Host cycles of stepping an operator whose data engines move."""
    offload = deployment.runtime.offload
    assert offload is not None and step.epoch is not None
    if step.epoch.kind != "hybrid":
        return ()
    return (CountLine(event="epoch_host_cycle", place="stepping", occurred=offload.move_cycles,
                      exposed=offload.move_cycles),)


def list_cache_lines(deployment: Deployment, steps: Sequence[Step]) -> list[tuple[CountLine, ...]]:
    """Lines the host invalidates before it reads what the NPU wrote, and cleans for it to read.

    Of an operator it steps, whose data engines move, those of all it reads and writes.
    """
    graph, board, homes = deployment.executed, deployment.board, deployment.plan.homes
    cache = board.cache(board.core.dcache)
    held = {memory.name for memory in board.memories
            if cache is not None and cache.enabled and cache.may_hold(memory)}
    renamed = {layer.outputs[0]: layer.inputs[0] for layer in graph.layers if is_alias(layer)}

    def source(tensor: int) -> int:
        while tensor in renamed:
            tensor = renamed[tensor]
        return tensor

    on_npu = [graph.layers[i] for step in steps if step.kind == "epoch" for i in step.layers]
    written = {source(i) for layer in on_npu for i in layer.outputs}
    read = {source(i) for layer in on_npu for i in layer.inputs}
    lines: list[tuple[CountLine, ...]] = []
    for step in steps:
        counts: dict[str, int] = {}
        layer = graph.layers[step.layers[0]]
        shared: list[int] = []
        if step.kind == "host":
            shared = [i for i in dict.fromkeys(layer.inputs) if source(i) in written]
            shared += [i for i in layer.outputs if i in read]
        elif step.epoch is not None and step.epoch.kind == "hybrid":
            shared = [i for i in dict.fromkeys((*layer.inputs, *layer.outputs))
                      if i >= 0 and not graph.tensors[i].is_constant]
        for i in shared:
            memory = homes[i].memory
            if memory in held and cache is not None:
                counts[memory] = counts.get(memory, 0) + math.ceil(
                    graph.tensors[i].size_bytes / cache.line_bytes)
        lines.append(tuple(CountLine(event="cache_clean", place=memory, occurred=count,
                                     exposed=count) for memory, count in counts.items()))
    return lines


def _layer_cost(counts: Counts, on_host: LayerCost | None, prices: Prices, board: Board,
                npu: Npu) -> LayerCost:
    """Price a layer's part of an epoch, with the host's kernels where it is on the host."""
    bill = make_bill(counts, prices)
    if on_host is None:
        return LayerCost(bill=_add_time(bill, board, prices, npu), counts=counts)
    return replace(on_host, counts=merge_counts([counts, on_host.counts]), bill=_add_time(
        merge_bills([bill, on_host.bill]), board, prices, npu))


def _merge(costs: Sequence[LayerCost]) -> LayerCost:
    """Join what a layer costs in several epochs; an alias has none."""
    if len(costs) == 1:
        return costs[0]
    return LayerCost(
        bill=merge_bills(cost.bill for cost in costs),
        counts=merge_counts(cost.counts for cost in costs),
        kernels=tuple(name for cost in costs for name in cost.kernels),
        instructions=sum(cost.instructions for cost in costs),
        accesses=sum(cost.accesses for cost in costs),
        misses=sum(cost.misses for cost in costs),
        assumed=any(cost.assumed for cost in costs),
        epochs=tuple(name for cost in costs for name in cost.epochs))


def _split(counts: Counts, shares: Sequence[float]) -> list[Counts]:
    """Part counts by shares, in 64ths; the largest share takes what rounding leaves."""
    if len(shares) == 1:
        return [counts]
    heir = max(range(len(shares)), key=lambda i: (shares[i], -i))
    parts: list[list[CountLine]] = [[] for _ in shares]
    for line in counts.lines:
        occurred = _part(line.occurred, shares, heir)
        exposed = _part(line.exposed, shares, heir)
        for part, all_of, shown in zip(parts, occurred, exposed, strict=True):
            if all_of or shown:
                part.append(CountLine(event=line.event, place=line.place, operand=line.operand,
                                      occurred=all_of, exposed=shown))
    return [Counts(tuple(part)) for part in parts]


def _part(amount: float, shares: Sequence[float], heir: int) -> list[float]:
    if not amount:
        return [0.0] * len(shares)
    parts = [math.floor(amount * share * EXACT) / EXACT for share in shares]
    parts[heir] = amount - math.fsum(parts[:heir] + parts[heir + 1:])
    return parts


def _add_time(bill: Bill, board: Board, prices: Prices, npu: Npu) -> Bill:
    """Add what being powered costs while a bill's time passes: host, its waiting, the idle NPU."""
    cycles, hertz, host = bill.clock_cycles(), board.hertz, board.core.clock
    passed_us, host_hz = convert_us(cycles, hertz), hertz[host]
    if not passed_us:
        return bill
    npu_us = cycles.get(npu.clock, 0.0) / npu.frequency_hz * 1e6
    quantities = (("sleep", host, npu_us * 1e-6 * host_hz),
                  ("clock_tree", host, passed_us * 1e-6 * host_hz),
                  ("leakage", host, passed_us * 1e3),
                  ("npu_idle", npu.clock, (passed_us - npu_us) * 1e-6 * npu.frequency_hz))
    return Bill((*bill.lines, *_unhurried(prices, quantities)))


def _unhurried(prices: Prices, quantities: Iterable[tuple[str, str, float]]) -> list[BillLine]:
    """Lines that cost energy and no time."""
    lines = []
    for event, clock, quantity in quantities:
        if quantity:
            pj = prices.price(event, "").pj
            lines.append(BillLine(
                event=event, place="", operand="", clock=clock, occurred=quantity, exposed=0.0,
                cycles=0.0, energy_pj=None if pj is None else quantity * pj))
    return lines


def _describe(index: int, step: Step, run: EpochRun, bill: Bill, start_us: float,
              host: str, hertz: Mapping[str, float]) -> EpochPrediction:
    cycles = bill.clock_cycles()
    passed_us, host_cycles = convert_us(cycles, hertz), cycles.get(host, 0.0)
    core_us = passed_us - host_cycles / hertz[host] * 1e6
    return EpochPrediction(
        index=index, step=step, run=run, bill=bill, start_us=start_us,
        time_us=passed_us, pre_cpu_cycles=run.pre_cpu_cycles,
        core_cpu_cycles=core_us * 1e-6 * hertz[host],
        post_cpu_cycles=host_cycles - run.pre_cpu_cycles)
