"""What a reader of an accelerator's figures must know: what it leaves out, what is assumed."""

from __future__ import annotations

import math
from collections.abc import Iterator

from hwmodels.quantities import list_first
from twin.deployment.accelerator.plan import plan_of
from twin.deployment.deployment import Deployment
from twin.runtimes.partition import TOO_SMALL, Grouping, Why


def list_remarks(deployment: Deployment, temperature: str) -> Iterator[str]:
    """Yield warnings of a deployment that uses an accelerator.

    Parameters
    ----------
    deployment
        On an accelerator.
    temperature
        "warm" or "cold".

    Yields
    ------
    str
        A sentence each.
    """
    plan = plan_of(deployment)
    yield from _say_left_out(deployment, plan.grouping)
    yield from deployment.runtime.compiler.list_remarks(deployment.executed, plan.planner)
    if temperature == "cold":
        yield ("cold is as warm here: the host's caches hold nothing after a task, and the NPU "
               "cache is taken as empty before each")
    yield from _say_outside(deployment)


def _say_outside(deployment: Deployment) -> Iterator[str]:
    """Say what is assumed of memory off the chip: activations, weights read in turns, no cache."""
    board, npu, homes = deployment.board, deployment.board.accelerator, deployment.plan.homes
    outside = [tensor for tensor, home in homes.items()
               if board.memory(home.memory).role == "external_ram"]
    tensors = deployment.executed.tensors
    moving = [tensor for tensor in outside if tensor < 0 or not tensors[tensor].is_constant]
    if moving and "external_ram" not in deployment.runtime.mapping.spread.profiled:
        yield ("assumed: activations outside the chip; no profiled task has any, and published "
               "networks take 2.4 to 6 times as long with them")
    tasks = [step.task for step in plan_of(deployment).steps if step.task is not None]
    for pool in (pool for pool in npu.pools if pool.external and pool.shared):
        turns = [task for task in tasks if sum(
            one.pool == pool.name and one.operand == "weights"
            for one in task.transfers) > 1]
        if turns:
            yield (f"assumed: in {len(turns)} of {len(tasks)} tasks several engines read weights "
                   f"from {pool.name} in turns, and each access pays its latency again, which a "
                   "flash is not charged: it may come out slower than a flash of a lower rate")
    if npu.cache is None or npu.cache.enabled:
        return
    cached = {pool.name for pool in npu.pools if pool.cacheable}
    transfers = [one for task in tasks for one in task.transfers
                 if one.pool in cached and one.pattern != "contiguous"]
    if transfers:
        runs = sum(math.ceil(one.bytes / one.run_bytes) * one.repeats for one in transfers)
        moved = sum(one.bytes * one.repeats for one in transfers)
        yield (f"assumed: without the NPU cache {moved:,} bytes outside the chip are read and "
               f"written in {runs:,} accesses of {moved / runs:.1f} bytes on average, each with "
               "the memory's latency; no profiled task runs so")


def _say_left_out(deployment: Deployment, grouping: Grouping) -> Iterator[str]:
    """Layers on the host for their types, or because the machine was made too small for them."""
    reasons = {layer.index: reason for layer, reason in
               zip(deployment.executed.layers, grouping.reasons, strict=True) if reason}
    wide = [index for index, reason in reasons.items() if reason.why is Why.TYPE]
    if wide:
        runs = any(group.kind in ("task", "move") for group in grouping.groups)
        which = f"layers {list_first(wide, 8)}" if runs else "every layer"
        yield (f"on the host: {which}, as the NPU computes 8-bit integers only; quantise the "
               "model to use it")
    for why in TOO_SMALL:
        short = [index for index, reason in reasons.items() if reason.why is why]
        if short:
            yield (f"on the host: layers {list_first(short, 8)}, for which the NPU is too small: "
                   + reasons[short[0]])
