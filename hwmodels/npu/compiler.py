"""The compiler's own estimate of an epoch: compute cycles and max cycles.

    max_cycles = max(compute_cycles, over pools: beats x frequency ratio)

A beat moves up to `byte_width_bytes`; every run of a walk that is not contiguous takes beats of
its own. Some compiler versions add the reads and writes of a pool, others take the longer
(`Npu.sums_directions`). Cycles are of the NPU's clock.
"""

from __future__ import annotations

import math

from hwmodels.board.npu import MULTIPLYING, THROUGH, Npu, Pool
from hwmodels.errors import KernelError
from hwmodels.npu.epoch import Epoch, StreamEngine, UnitWork


def estimate_unit_cycles(work: UnitWork, npu: Npu) -> int:
    """Return the cycles units take for their work with ideal memory.

    Parameters
    ----------
    work : UnitWork
        Its `compute_cycles` where stated.
    npu : Npu
        For the units' rates.

    Returns
    -------
    int
        NPU cycles.

    Raises
    ------
    KernelError
        When the units have no rate for the operand widths.

    Notes
    -----
    cycles = ceil(macs / (rate x count)), or ceil(ops / (rate x count)) without MACs.
    """
    if work.compute_cycles is not None:
        return work.compute_cycles
    if work.kind == THROUGH:
        return 0
    unit = npu.unit(work.kind)
    if not work.macs:
        return math.ceil(work.ops / (unit.ops_per_cycle * work.count))
    width = name_width(work)
    rate = dict(unit.macs_per_cycle).get(width)
    if rate is None:
        raise KernelError(f"unit {work.kind} has no rate for {width} bits; accepted: "
                          + ", ".join(name for name, _ in unit.macs_per_cycle))
    return math.ceil(work.macs / (rate * work.count))


def multiplies(work: UnitWork, npu: Npu) -> bool:
    """Whether work is multiply-accumulates: its units can, and no other operations are stated."""
    return bool(work.macs or not work.ops) and any(
        role in MULTIPLYING for role in npu.roles(work.kind))


def name_width(work: UnitWork) -> str:
    """Return the operand widths as rates and energies name them: "8x8"."""
    return f"{work.mac_bits[0]}x{work.mac_bits[1]}"


def estimate_compute_cycles(epoch: Epoch, npu: Npu) -> int:
    """Return the cycles of an epoch with ideal memory: its slowest unit, the others in step."""
    return max((estimate_unit_cycles(work, npu) for work in epoch.units), default=0)


def estimate_max_cycles(epoch: Epoch, npu: Npu) -> int:
    """Return the compiler's estimate of an epoch.

    Parameters
    ----------
    epoch : Epoch
        With its engines.
    npu : Npu
        For the pools.

    Returns
    -------
    int
        NPU cycles, by the equation of the module.
    """
    beats: dict[tuple[str, str], int] = {}
    for engine in epoch.engines:
        pool = npu.pool(engine.pool)
        lane = "" if npu.sums_directions else engine.direction
        key = (pool.name, lane if pool.serialises else f"{lane}{engine.index}")
        beats[key] = beats.get(key, 0) + count_pool_beats(engine, pool)
    waits = [int(n * npu.pool(name).frequency_ratio) for (name, _), n in beats.items()]
    return max([estimate_compute_cycles(epoch, npu), *waits])


def count_pool_beats(engine: StreamEngine, pool: Pool) -> int:
    """Return the beats of an engine in the compiler's width of a pool, a last part dropped."""
    width = pool.byte_width_bytes
    if engine.pattern == "contiguous" or engine.run_bytes >= engine.bytes:
        return engine.repeats * engine.bytes // width
    runs = engine.bytes // engine.run_bytes
    return engine.repeats * runs * -(-engine.run_bytes // width)
