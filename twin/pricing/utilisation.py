"""How well a layer uses an accelerator: its multipliers, lanes, channels and banks.

    MAC use        = MACs / (peak of the units that multiply x cycles of the layer's tasks)
    lane use       = the same over the cycles those units work
    DMA use        = cycles of transfers alone / cycles of the layer's tasks
    DMA hidden     = 1 - cycles waited for transfers / cycles of transfers alone

Cycles are of the accelerator's clock. Transfers of a task that move at once count once, the longest
way; waits of units among themselves, for banks and at a barrier, are those their compiler states.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hwmodels.frozen import frozen
from hwmodels.schedule import Npu, TaskRun, UnitWork
from hwmodels.schedule.units import estimate_unit_cycles, name_bits
from twin.deployment.costs import TaskPrediction

_MOVED = ("sram_wait", "dma_wait", "bus_contention", "flash_wait", "external_memory")
"""Causes that are waiting for transfers."""

USES = {
    "mac_use": ("MACs of a layer on an accelerator over what its units could do in all of its "
                "cycles.", "MAC use"),
    "lane_use": ("The same over the cycles the units work: 1 less idle lanes.", "lane use"),
    "dma_use": ("Share of a layer's cycles that its transfers would take alone.", "DMA use"),
    "dma_hidden": ("Share of transfers nobody waited for.", "DMA hidden"),
    "bank_wait": ("Share of a layer's cycles its cores wait for a bank another accesses.",),
    "loop_share": ("Share of a layer's cycles its cores spend around inner loops.",),
    "barrier_wait": ("Share of a layer's cycles its cores wait for each other.",)}
"""What each figure is, in order, and its header on a page."""


@frozen
class Utilisation:
    """Shares of 0 to 1; None: nothing of the kind in it.

    Parameters
    ----------
    mac_use, lane_use
        Of the peak of its units, over all of its cycles and over those they work.
    dma_use, dma_hidden
        Of its cycles that transfers take, and of transfers that nobody waited for.
    bank_wait, loop_share, barrier_wait
        Of its cycles that cores wait for a bank, spend around inner loops, wait for each other.
    """

    mac_use: float | None
    lane_use: float | None
    dma_use: float | None
    dma_hidden: float | None
    bank_wait: float | None
    loop_share: float | None
    barrier_wait: float | None


def find_utilisation(tasks: Sequence[TaskPrediction],
                     position: int | None = None) -> Utilisation | None:
    """Return how a layer, or the whole network, uses the accelerator; None where it ran nothing."""
    runs = [task.run for task in tasks if not task.run.task.on_host
            and (position is None or position in task.step.layers)]
    core = sum(run.core_npu_cycles for run in runs)
    if not core:
        return None
    useful, worked = _count_work(runs)
    alone, waited = _count_transfers(runs)
    waits = {what: sum(cycles for run in runs for work in run.task.units
                       for name, cycles in work.waits if name == what)
             for what in ("banks", "loops", "barrier")}
    stated = any(work.waits for run in runs for work in run.task.units)
    banks, loops, barrier = (waits[what] / core if stated else None for what in waits)
    return Utilisation(
        mac_use=useful / core if worked else None, lane_use=useful / worked if worked else None,
        dma_use=min(1.0, alone / core) if alone else None,
        dma_hidden=max(0.0, 1 - waited / alone) if alone else None,
        bank_wait=banks, loop_share=loops, barrier_wait=barrier)


def _count_work(runs: Sequence[TaskRun]) -> tuple[float, int]:
    """Return the cycles MACs need with all lanes at work, and those their units work."""
    works = [(estimate_unit_cycles(work, run.npu), work, run.npu) for run in runs
             for work in run.task.units if work.macs]
    return (math.fsum(_count_useful(cycles, work, npu) for cycles, work, npu in works),
            sum(cycles for cycles, _, _ in works))


def move_cycles(run: TaskRun) -> float:
    """Return the cycles a task's transfers take alone: the longer of in and out."""
    return max(math.fsum(one.channel_cycles for one in run.transfers
                         if one.transfer.direction == way) for way in ("in", "out"))


def describe_dma(tasks: Sequence[TaskPrediction]) -> str:
    """Say which share of an accelerator's cycles transfers take, and what is hidden; "" for none.

    Hidden transfers pass beside the units' work: nobody waits for them.
    """
    runs = [task.run for task in tasks if not task.run.task.on_host]
    core, (alone, waited) = sum(run.core_npu_cycles for run in runs), _count_transfers(runs)
    if not core or not alone:
        return ""
    return (f"DMA busy {100 * min(1.0, alone / core):.0f} % of the accelerator's cycles, "
            f"{100 * max(0.0, 1 - waited / alone):.0f} % of that hidden")


def _count_transfers(runs: Sequence[TaskRun]) -> tuple[float, float]:
    """Return the cycles transfers would take alone, and those waited for."""
    return math.fsum(map(move_cycles, runs)), sum(
        one.npu_cycles for run in runs for one in run.exposed if one.cause in _MOVED)


def _count_useful(cycles: int, work: UnitWork, npu: Npu) -> float:
    """Return the cycles in which all lanes of the units would do their work's MACs."""
    if work.useful is not None:
        return work.useful * cycles
    rate = dict(npu.unit(work.kind).macs_per_cycle)[name_bits(work.mac_bits)]
    return min(float(cycles), work.macs / (rate * work.count))
