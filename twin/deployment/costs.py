"""What an inference costs, as data: by layer, by task, and how much an accelerator covers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hwmodels.counts import Bill, Counts
from hwmodels.frozen import frozen

if TYPE_CHECKING:
    from hwmodels.board.facts import Board
    from hwmodels.schedule import TaskRun
    from twin.runtimes.partition import Step

HAND_OVER_EVENTS = ("epoch_host_cycle", "cache_clean")
"""Events of the host that neither compute nor move the network's data."""


@frozen
class LayerCost:
    """What one layer costs, wherever it runs.

    Parameters
    ----------
    bill, counts
        Without what being powered costs meanwhile.
    kernels
        Library functions called, or operations of the accelerator.
    families
        Of the library functions, the key of a runtime's efficiencies.
    instructions
        Executed by the core.
    accesses, misses
        Data-cache lines looked up and filled.
    assumed
        A kernel without source or data behind it was used.
    tasks
        Tasks it ran in, for a layer of an accelerator.
    """

    bill: Bill
    counts: Counts
    kernels: tuple[str, ...] = ()
    instructions: int = 0
    accesses: int = 0
    misses: int = 0
    assumed: bool = False
    tasks: tuple[str, ...] = ()
    families: tuple[str, ...] = ()


@frozen
class TaskPrediction:
    """One task of an inference, on the accelerator or in software.

    Parameters
    ----------
    index
        Place in the inference, from 0.
    run
        What the accelerator did; of one in software only its dispatch.
    bill
        All of it: hand-over, core, host kernels, cache maintenance, what being powered costs.
    start_us, time_us
        When it begins in the inference, and how long it takes.
    pre_cpu_cycles, core_cpu_cycles, post_cpu_cycles
        Host cycles before, while the accelerator runs (the host waits), and after; the kernels
        of one in software run after its dispatch, as the runtime's profiler counts them.
    """

    index: int
    step: Step
    run: TaskRun
    bill: Bill
    start_us: float
    time_us: float
    pre_cpu_cycles: float
    core_cpu_cycles: float
    post_cpu_cycles: float

    @property
    def name(self) -> str:
        """As the compiler numbers it."""
        return self.run.task.name

    @property
    def number(self) -> str:
        """Of its name, from 1: what tables and pictures call it."""
        return self.name.rpartition("_")[2]

    @property
    def kind(self) -> str:
        """What its compiler calls it."""
        return self.run.task.kind


@frozen
class Coverage:
    """How much of an inference the accelerator covers, by layers and by time.

    Parameters
    ----------
    npu_layers, host_layers
        Layers in tasks of the accelerator, whole or stepped by the host; layers in software.
    npu_us, host_us, hand_over_us
        Time of the accelerator's cores, of the host's kernels, and of what is neither.
    """

    npu_layers: int
    host_layers: int
    npu_us: float
    host_us: float
    hand_over_us: float

    @property
    def shares(self) -> tuple[float, float, float]:
        """Of accelerator, host and hand-over in the time, 0 to 1."""
        total_us = self.npu_us + self.host_us + self.hand_over_us
        return (self.npu_us / total_us, self.host_us / total_us, self.hand_over_us / total_us)


def measure_coverage(tasks: Sequence[TaskPrediction], bill: Bill, board: Board) -> Coverage:
    """Say what part of an inference ran where.

    Parameters
    ----------
    tasks
        Of it; at least one.
    board
        Whose clocks the bill counts.
    """
    software = {i for task in tasks if task.step.kind == "host" for i in task.step.layers}
    covered = {i for task in tasks if task.step.kind != "host" for i in task.step.layers}
    host = board.core.clock
    handed = Bill(tuple(line for line in bill.lines
                        if line.clock == host and line.event in HAND_OVER_EVENTS))
    kernels = Bill(tuple(line for line in bill.lines
                         if line.clock == host and line.event not in HAND_OVER_EVENTS))
    hand_over_us, host_us = bill_us(handed, board), bill_us(kernels, board)
    return Coverage(npu_layers=len(covered), host_layers=len(software - covered), host_us=host_us,
                    hand_over_us=hand_over_us, npu_us=bill_us(bill, board) - hand_over_us - host_us)


def bill_us(bill: Bill, board: Board) -> float:
    """Time of a bill across its clocks, in microseconds; cycles of two clocks are never added."""
    return convert_us(bill.clock_cycles(), board.hertz)


def convert_us(cycles: Mapping[str, float], hertz: Mapping[str, float]) -> float:
    """Time of cycles by clock, in microseconds."""
    return math.fsum([count / hertz[clock] * 1e6 for clock, count in cycles.items()])


Costs = tuple[tuple[LayerCost, ...], tuple[TaskPrediction, ...]]
"""Of an inference: by layer, and by task of an accelerator."""
