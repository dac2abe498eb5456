"""What is copied once before the first inference: weights that are not kept in the flash."""

from __future__ import annotations

import math

from hwmodels.counts import CountLine, Counts
from hwmodels.schedule import Pool
from twin.deployment.accelerator.plan import plan_of
from twin.deployment.deployment import Deployment


def count_copies(deployment: Deployment) -> Counts:
    """Count copying the weights from the flash to the pools they are in.

    Parameters
    ----------
    deployment
        On an accelerator.

    Returns
    -------
    Counts
        NPU cycles of waiting for the slower of flash and pool, and the bytes of both; empty where
        the weights stay in the flash.

    Notes
    -----
    cycles = max over flash and pool: bytes / (bytes per cycle of its clock) x NPU cycles in one

    Assumed: a DMA controller copies at the sustained rate; its set-up and the latency of a first
    access are omitted.
    """
    npu, plan = deployment.board.accelerator, plan_of(deployment)
    pools, resident = plan.pools, npu.resident
    size = pools.weight_bytes if resident is None else sum(
        work.weight_bytes for work in plan.grouping.works.values())
    if not size:
        return Counts()
    flash = next((pool for pool in npu.pools if pool.memory == deployment.constants), None)
    if flash is None:
        return Counts()
    constants = {index for index, tensor in enumerate(deployment.executed.tensors)
                 if tensor.is_constant}
    names = {home.pool for tensor, home in pools.homes.items() if tensor in constants}
    first = resident or next(pool for pool in npu.pools if pool.name in names)
    slower = max((flash, first), key=lambda pool: _cycles(size, pool))
    cycles = math.ceil(_cycles(size, slower))
    lines = [CountLine(event=slower.wait_event, place=slower.name, operand="weights",
                       occurred=cycles, exposed=cycles)]
    lines += [CountLine(event=pool.byte_event, place=pool.name, operand="weights", occurred=size,
                        exposed=0.0) for pool in (flash, first)]
    return Counts(tuple(lines))


def _cycles(size_bytes: int, pool: Pool) -> float:
    return size_bytes / pool.bytes_per_cycle * pool.clock_ratio
