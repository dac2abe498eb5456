"""The whole model on an accelerator: its tasks, the host's operators, and all that lies between.

    total = tasks on the NPU + operators on the host + hand-over

The hand-over is what neither computes: setting tasks up and taking them down, dispatching software
tasks, stepping moved operators, cleaning and invalidating the host's cache. Host and NPU take
turns; tasks follow one another without the host only where the task controller is on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from hwmodels.counts import Bill, CountLine, Prices, merge_bills, merge_counts
from hwmodels.kernel import Lowered
from hwmodels.quantities import sum_by_key
from hwmodels.schedule import Task, TaskRun
from hwmodels.schedule.run import gather_counts, run_tasks
from twin.deployment.accelerator.plan import plan_of
from twin.deployment.core import lower_network
from twin.deployment.costs import Costs, LayerCost, TaskPrediction, convert_us
from twin.deployment.deployment import Deployment, PriceOnCore
from twin.network.operators import follow_aliases
from twin.pricing.accelerator.columns import (
    Hosted,
    Part,
    add_lines,
    bill_parts,
    divide,
    price_tasks,
)
from twin.runtimes.partition import Step


def price_schedule(deployment: Deployment, prices: Prices, price_on_core: PriceOnCore, ) -> Costs:
    """Price an inference on an accelerator and its host.

    Parameters
    ----------
    prices
        From `twin.pricing.lines.runtime_prices`.
    price_on_core
        Prices the host's kernels.

    Returns
    -------
    tuple of LayerCost
        One per layer of the executed graph; a task's cost is split among its layers.
    tuple of TaskPrediction
        In order.

    Notes
    -----
    The host's operators start with empty caches each time the accelerator ran before them: what
    it wrote must be fetched, and its driver has run meanwhile. A task's counts are split by the
    work of its layers, in 64ths, so that the parts sum exactly.
    """
    steps = [step for step in plan_of(deployment).steps if step.kind != "alias"]
    runs = run_tasks([task_of(step) for step in steps], deployment.board.accelerator)
    software = iter(_price_host(deployment, plan_of(deployment).steps, prices, price_on_core))
    hosted = [next(software) if step.kind == "host" else None for step in steps]
    priced = iter(_price_parts(deployment, steps, runs, hosted, prices) if steps else [])
    costs: dict[int, list[LayerCost]] = {}
    tasks: list[TaskPrediction] = []
    board, start_us = deployment.board, 0.0
    host, hertz = board.core.clock, board.hertz
    launch = prices.price("epoch_host_cycle", "").cycles
    for step, run, cost in zip(steps, runs, hosted, strict=True):
        task, parts = run.task, [next(priced) for _ in step.layers]
        kernels = tuple([f"{task.kind}.{name}" for name, _ in task.operations])
        for position, part in zip(step.layers, parts, strict=True):
            costs.setdefault(position, []).append(
                LayerCost(bill=part.bill, counts=part.counts, tasks=(task.name,),
                          kernels=kernels) if cost is None else
                replace(cost, bill=part.bill, tasks=(task.name,), kernels=cost.kernels or kernels,
                        counts=merge_counts([part.counts, cost.counts])))
        bill = parts[0].bill if len(parts) == 1 else merge_bills(part.bill for part in parts)
        tasks.append(_describe(len(tasks), step, run, bill, start_us, host, hertz, launch))
        start_us += tasks[-1].time_us
    return tuple(_merge(costs.get(position, []))
                 for position in range(len(deployment.executed.layers))), tuple(tasks)


def _price_parts(deployment: Deployment, steps: Sequence[Step], runs: Sequence[TaskRun],
                 hosted: Sequence[LayerCost | None], prices: Prices) -> list[Part]:
    """Return what each layer is charged of each task; counts are without those of kernels."""
    shares, counts = [step.shares for step in steps], gather_counts(runs)
    first = np.cumsum([0, *map(len, shares)])
    lines = [(part, line) for part, cost in zip(first.tolist(), hosted, strict=False)
             if cost is not None for line in cost.bill.lines]
    amounts = np.array([(line.occurred, line.exposed, line.cycles, np.nan if line.energy_pj is None
                         else line.energy_pj) for _, line in lines], np.float64).reshape(-1, 4).T
    occurred, exposed, cycles, energy_pj = amounts[:, None]
    kernels = Hosted(
        part=np.array([part for part, _ in lines], np.int64),
        key=np.array([counts.keys.number(line.event, line.place, line.operand)
                      for _, line in lines], np.int64),
        occurred=occurred, exposed=exposed, cycles=cycles, energy_pj=energy_pj)
    return bill_parts(price_tasks(
        divide(add_lines(counts, list_extra(deployment, steps)), shares), [kernels], prices,
        deployment.board), int(first[-1]), deployment.board)


def task_of(step: Step) -> Task:
    """Return the task of a step that is not an alias."""
    assert step.task is not None, "all steps but aliases have one"
    return step.task


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


def pick_layers(lower: Callable[[], Sequence[Lowered]], group: Sequence[int]) -> list[Lowered]:
    """Lower, and return the kernels of some layers."""
    kernels = lower()
    return [kernels[position] for position in group]


def list_extra(deployment: Deployment, steps: Sequence[Step]) -> list[tuple[CountLine, ...]]:
    """Return what the host does besides launching each task: stepping it, cleaning its cache."""
    cycles = deployment.runtime.mapping.move_cycles
    stepping = CountLine(event="epoch_host_cycle", place="stepping", occurred=cycles,
                         exposed=cycles)
    return [(*((stepping,) if step.stepped else ()), *cleaned) for step, cleaned in zip(
        steps, _list_cache_lines(deployment, steps), strict=True)]


def _list_cache_lines(deployment: Deployment, steps: Sequence[Step]) -> list[tuple[CountLine, ...]]:
    """Lines the host invalidates before it reads what the NPU wrote, and cleans for it to read.

    Of an operator it steps, whose data channels move, those of all it reads and writes.
    """
    graph, board, homes = deployment.executed, deployment.board, deployment.plan.homes
    cache = board.cache(board.core.dcache)
    held = {memory.name for memory in board.memories
            if cache is not None and cache.enabled and cache.may_hold(memory)}
    sources = follow_aliases(graph)
    on_npu = [graph.layers[i] for step in steps if step.kind == "task" for i in step.layers]
    written = {sources.get(i, i) for layer in on_npu for i in layer.outputs}
    read = {sources.get(i, i) for layer in on_npu for i in layer.inputs}
    lines: list[tuple[CountLine, ...]] = []
    for step in steps:
        layer = graph.layers[step.layers[0]]
        shared: list[int] = []
        if step.kind == "host":
            shared = [i for i in dict.fromkeys(layer.inputs) if sources.get(i, i) in written]
            shared += [i for i in layer.outputs if i in read]
        elif step.stepped:
            shared = [i for i in dict.fromkeys(layer.tensors)
                      if i >= 0 and not graph.tensors[i].is_constant]
        counts = {} if cache is None else sum_by_key(
            (homes[i].memory, math.ceil(graph.tensors[i].size_bytes / cache.line_bytes))
            for i in shared if homes[i].memory in held)
        lines.append(tuple(CountLine(event="cache_clean", place=memory, occurred=count,
                                     exposed=count) for memory, count in counts.items()))
    return lines


def _merge(costs: Sequence[LayerCost]) -> LayerCost:
    """Join what a layer costs in several tasks; an alias has none."""
    if len(costs) == 1:
        return costs[0]
    return LayerCost(
        bill=merge_bills(cost.bill for cost in costs),
        counts=merge_counts(cost.counts for cost in costs),
        kernels=tuple(name for cost in costs for name in cost.kernels),
        instructions=sum(cost.instructions for cost in costs),
        accesses=sum(cost.accesses for cost in costs), misses=sum(cost.misses for cost in costs),
        assumed=any(cost.assumed for cost in costs),
        tasks=tuple(name for cost in costs for name in cost.tasks))


def _describe(index: int, step: Step, run: TaskRun, bill: Bill, start_us: float,
              host: str, hertz: Mapping[str, float], launch: float) -> TaskPrediction:
    cycles, pre = bill.clock_cycles(), run.pre_cpu_cycles * launch
    passed_us, host_cycles = convert_us(cycles, hertz), cycles.get(host, 0.0)
    core_us = passed_us - host_cycles / hertz[host] * 1e6
    return TaskPrediction(
        index=index, step=step, run=run, bill=bill, start_us=start_us, time_us=passed_us,
        pre_cpu_cycles=pre, core_cpu_cycles=core_us * 1e-6 * hertz[host],
        post_cpu_cycles=host_cycles - pre)
