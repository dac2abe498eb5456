"""What a compiler for an accelerator is asked, and what it answers: layers, buffers and tasks.

The runtime's file names a compiler (`offload.rules`), a class beneath `Compiler` in a folder of its
own; `twin.runtimes.units.UnitRules` is one that goes by what the board says its units do. Facts of
a compiler and its driver, not of the machine: the machine is `hwmodels.board.npu.Npu`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from hwmodels.board.npu import Npu
from hwmodels.files import JsonObject
from hwmodels.frozen import frozen
from twin.errors import RuntimeRefusedError
from twin.network.graph import Graph
from twin.runtimes.partition import Group, Grouping, Reason, Step, Why, Work
from twin.runtimes.task_lines import Counters, describe_task, describe_totals

if TYPE_CHECKING:
    from hwmodels.schedule import Task, TaskRun

__all__ = ["Reason", "Why", "Work"]  # for compilers of users, who find them here, too

UNITS = {"duration": ", us", "share": ", %"}  # by the last word of a counter's name


@frozen
class Spread:
    """How far predictions of an accelerator are off, by where the time passes.

    Parameters
    ----------
    reach
        Standard deviations an interval of nine in ten reaches: Student t over the families.
    families
        Of networks behind it.
    network
        Deviation of the logarithm of a whole network's time.
    schedule
        Of one task's, as the compiler may cut a network otherwise.
    task
        Of the cycles of one task like the profiled ones.
    hand_over, moved, host, outside, unseen
        Of the host around tasks; of operators it steps; of its own kernels; of waiting for
        memory outside the chip; of units and widths that were not profiled.
    profiled
        Roles of the units in profiled tasks.
    boards, sizes
        Where they were profiled, and as which `Npu.config`; none stated: on all its family's.
    measured
        Boards of which published times stand behind it; a model's or a formula's are none.
    releases
        Of the logarithm of the time under another release of the library than the one described.
    """

    reach: float = 2.92
    families: int = 0
    network: float = 0.5
    schedule: float = 0.3
    task: float = 0.1
    hand_over: float = 0.5
    moved: float = 0.5
    host: float = 0.5
    strange: float = 1.3
    outside: float = 0.6
    unseen: float = 0.3
    releases: float = 0.5
    profiled: tuple[str, ...] = ()
    boards: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    host_known: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()

    def sd(self, part: str) -> float:
        """Return the deviation a part of the time has in common; of profiled hardware none."""
        return 0.0 if part == "hardware" else float(getattr(self, part))


@frozen
class Offload:
    """How a compiler maps a network onto an accelerator.

    Parameters
    ----------
    family
        Accelerators it compiles for: `Npu.family`.
    host_operators
        Operators that always run on the host core.
    moved_operators
        Operators that only move data: channels move it, the host steps them.
    move_cycles
        Host cycles to step one moved operator, its launch apart.
    rules
        Which layers run where and together, and as which tasks.
    spread
        How far predictions are off; wide and assumed where the file does not say.
    input_copy
        What is done with an input image first, of `twin.runtimes.offload.INPUT_COPIES`.
    """

    family: str
    host_operators: tuple[str, ...]
    moved_operators: tuple[str, ...]
    move_cycles: float
    rules: Compiler
    spread: Spread = Spread()
    input_copy: str = "none"


@frozen
class Planner:
    """What the plan of a network depends on besides the network.

    Parameters
    ----------
    offload
        The compiler's rules.
    weights, arena
        Memories of tensors that are not placed one by one.
    host
        Operators, or indices of layers, kept on the host core.
    channel_first
        Whether the network's inputs and outputs are channel first and are transposed.
    tile_rows, buffers
        Rows of outputs of a tile and buffers of each operand, for compilers that tile; None: as
        they choose.
    """

    npu: Npu
    offload: Offload
    weights: str
    arena: str
    host: Collection[str] = ()
    channel_first: bool = False
    tile_rows: int | None = None
    buffers: int | None = None


@frozen
class CompiledTasks:
    """A network as its compiler laid it out, read from what it wrote.

    Parameters
    ----------
    stated
        The compiler's own figures of each task, by the names of its profiler.
    notes
        What its output does not say.
    """

    name: str
    tasks: tuple[Task, ...]
    stated: tuple[Counters, ...]
    notes: tuple[str, ...] = ()


Clocks = Mapping[str, float]
"""Hertz of "cpu", the host's, and "npu", the accelerator's."""


@dataclass(frozen=True, kw_only=True)
class Compiler:
    """What every compiler answers; counters and figures of its own are those of its profiler."""

    task_name: ClassVar[str] = "task"
    """What its maker calls a task."""

    host_task: ClassVar[str] = "host task"
    """What its maker calls one the host runs alone."""

    channel_name: ClassVar[str] = "channel"
    """What its maker calls a DMA channel."""

    kinds: ClassVar[Mapping[str, str]] = {
        "task": "task", "move": "move", "host": "host", "copy": "copy"}
    """What its maker calls tasks of units, those the host steps, the host's own, and copies."""

    activation_bits: ClassVar[tuple[int, ...]] = (8,)
    """Widths of activations the accelerator computes."""

    summed: ClassVar[tuple[str, ...]] = ("pool_",)
    """How names of counters begin that are added up over tasks."""

    memory_modes: ClassVar[tuple[str, ...]] = ()
    """Ways it can lay a network out, where `npu.memory_mode` names one."""

    options: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Keys of section `npu` it has a choice of besides, and what each may be."""

    def wrote(self, path: str) -> bool:
        """Whether a file is output of this compiler that `read` takes, not a model."""
        return False

    def read(self, path: str, npu: Npu) -> CompiledTasks:
        """Return the tasks of a file it wrote, for a machine that has the memories they name."""
        raise NotImplementedError

    def place(self, npu: Npu) -> Mapping[str, str]:
        """Return the memory of the arena, and of the weights where it is not the board's own."""
        return {"arena": npu.pools[0].memory}

    def list_places(self, npu: Npu) -> dict[str, Mapping[str, str]]:
        """Return what `place` returns under each memory mode the accelerator can have."""
        found = {}
        for mode in self.memory_modes:
            with suppress(RuntimeRefusedError):
                found[mode] = self.place(replace(npu, memory_mode=mode))
        return found

    def config_of(self, graph: Graph) -> str:
        """Return the configuration a network is code for; "" where it is not compiled yet."""
        return ""

    def group(self, graph: Graph, planner: Planner) -> Grouping:
        """Return which layers run where, and which together; memory is planned after it."""
        raise NotImplementedError

    def schedule(self, graph: Graph, planner: Planner, pools: Mapping[int, str],
                 grouping: Grouping) -> tuple[Step, ...]:
        """Return what runs where, in execution order.

        Parameters
        ----------
        planner
            Accelerator, rules, memories and choices.
        pools
            Memory of each tensor that was placed; others are in the first of `planner`'s.
        grouping
            Of `group`.
        """
        raise NotImplementedError

    def leave_step(self, graph: Graph, group: Group, npu: Npu, name: str) -> Step:
        """Return the step of a group that is an alias, or that the host computes by itself."""
        from hwmodels.schedule import Task

        if group.kind == "alias":
            return Step(kind="alias", layers=group.layers)
        layers = [graph.layers[i] for i in group.layers]
        return Step(kind="host", layers=group.layers, shares=(1.0,), task=Task(
            name=name, kind=self.kinds["host"], layers=tuple(layer.index for layer in layers),
            operations=tuple((layer.op, 1) for layer in layers),
            host_before_cycles=round(npu.hand_over.software_cycles)))

    def list_remarks(self, graph: Graph, planner: Planner) -> Iterator[str]:
        """Yield what a reader of the figures must know of how the network was compiled."""
        yield from ()

    def describe_runs(self, runs: Sequence[TaskRun]) -> list[JsonObject]:
        """Return what a document says of each run besides its units, memories and waits."""
        return [{} for _ in runs]

    def count_runs(self, runs: Sequence[TaskRun]) -> list[dict[str, float]]:
        """Return the counters a profiler would print of each run, by its names."""
        return [{f"operation_{name}": float(count) for name, count in run.task.operations}
                | {f"unit_{unit.kind}": float(unit.count) for unit in run.task.units}
                | ({} if run.task.on_host else {
                    "core_npu_cycles": float(run.core_npu_cycles),
                    "compute_cycles": float(run.compute_cycles)})
                | {f"pool_{pool.name}_{way}_bytes": float(moved) for pool in run.pools
                   for way, moved in (("read", pool.read_bytes), ("write", pool.write_bytes))}
                for run in runs]

    def name_task(self, name: str) -> str:
        """Return a task's name as its profiler writes it."""
        return name

    def describe_counters(self, counters: Counters) -> dict[str, float]:
        """Return the lines of a report by what they are called, of a task or of several added.

        Sums of lines are lines of their own; what is not known is omitted.
        """
        return dict(describe_task(counters))

    def describe_totals(self, totals: Counters) -> dict[str, float]:
        """Return durations, cycles and shares of the whole inference by what they are called."""
        return dict(describe_totals(totals, self.host_task))

    def list_task(self, name: str, kind: str, index: int, counters: Counters, totals: Counters,
                  clocks_hz: Clocks) -> list[str]:
        """Return the lines of a task in the profiler's report.

        Parameters
        ----------
        name, kind, index
            As the report names it, what it is, and its place in the inference.
        counters, totals
            Of it, and of the whole inference.
        """
        return [f"{name}, {kind.lower()}", *_list_counters(counters)]

    def list_model(self, totals: Counters, clocks_hz: Clocks) -> list[str]:
        """Return the last lines of the profiler's report: of the whole inference."""
        return ["all", *_list_counters(totals)]


def _list_counters(counters: Counters) -> list[str]:
    return [f"  {name.replace('_', ' ') + UNITS.get(name.rpartition('_')[2], ''):32} : "
            f"{value:,.0f}" for name, value in counters.items()]
