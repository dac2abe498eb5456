"""A prediction: the bill of every layer, and of the whole inference."""

from __future__ import annotations

from typing import TYPE_CHECKING
from warnings import warn

from calibration.fitting.intervals import Interval
from hwmodels.board.facts import Board
from hwmodels.counts import CAUSE_GROUPS, Bill, Counts
from hwmodels.frozen import NamedNumbers, frozen
from hwmodels.quantities import sum_by_key
from twin.deployment.costs import Coverage, TaskPrediction, measure_coverage
from twin.deployment.deployment import Deployment
from twin.deployment.placement import Placement
from twin.network.graph import Graph, Shape
from twin.network.operators import graph_macs, graph_parameters, name_precision, parameter_bytes

if TYPE_CHECKING:
    from twin.pricing.certainty import Certainty
    from twin.runtimes.compiler import Compiler
    from twin.runtimes.runtime import Runtime


@frozen
class LayerPrediction:
    """What one layer is predicted to cost.

    Parameters
    ----------
    macs
        Nominal multiply-accumulates of the model file (padding and dead channels counted).
    bytes_moved
        Bytes of inputs, weights and outputs at stored width, each once.
    alias
        No data moves: the output is the input under another shape.
    assumed
        No source or data stands behind this layer's cost.
    kernels
        Library functions called.
    clock
        Clock most of its time passes in.
    time_us
        Across its clocks; warm or cold, as the prediction says.
    energy_uj
        At the rail; None is not known.
    bill
        Lines that sum to the above.
    counts
        Events behind the bill.
    accesses, misses
        Data-cache lines looked up and filled; 0 and 0 without a data cache.
    live_bytes
        Bytes of arena alive while it runs; None of a program, which plans none.
    tasks
        Names of the accelerator's tasks, and of the host's, it ran in.
    clocks_hz : tuple of (str, float)
        Frequencies of the clocks its bill counts; may be omitted where it is one.
    repeats
        How often it runs in one inference, all of which is counted above.
    families
        Of the library functions, the key of a runtime's efficiencies.
    called
        Whether it is a call of a program's function, not a layer of a network.
    """

    index: int
    name: str
    op: str
    output_shape: Shape
    macs: int
    bytes_moved: int
    alias: bool
    assumed: bool
    kernels: tuple[str, ...]
    clock: str
    cycles: float
    time_us: float
    energy_uj: float | None
    bill: Bill
    counts: Counts
    instructions: int
    accesses: int
    misses: int
    live_bytes: int | None
    tasks: tuple[str, ...] = ()
    clocks_hz: NamedNumbers = ()
    repeats: int = 1
    families: tuple[str, ...] = ()
    called: bool = False

    @property
    def label(self) -> str:
        """What a row of it is called: its operator, or the function that was called."""
        return self.name if self.called else self.op

    @property
    def tick(self) -> str:
        """Its label with its place, as axes bear it: "conv_2d  3", or as tables do "3 run_3"."""
        return f"{self.index} {self.name}" if self.called else f"{self.op}  {self.index}"

    @property
    def arithmetic_intensity(self) -> float:
        """MACs per byte moved."""
        return self.macs / self.bytes_moved if self.bytes_moved else 0.0

    @property
    def miss_rate(self) -> float | None:
        """Data-cache misses per line looked up; None where no cache was looked up."""
        return self.misses / self.accesses if self.accesses else None

    @property
    def largest_cause(self) -> str:
        """The cause with most time across its clocks, "" for an alias."""
        times = self._times()
        return max(self.bill.causes(), key=times.__getitem__, default="")

    @property
    def bound(self) -> str:
        """Bottleneck: "memory" when memory causes cost more time than compute ones."""
        own = self._times()
        times = {group: sum(own.get(cause, 0.0) for cause in causes)
                 for group, causes in CAUSE_GROUPS.items()}
        if not any(times.values()):
            return ""
        return "memory" if times["memory"] > times["compute"] else "compute"

    def _times(self) -> dict[str, float]:
        """Return times of causes: in seconds, or in cycles of the one clock there is."""
        hz = dict(self.clocks_hz)
        return sum_by_key((cause, cycles / hz.get(clock, 1.0))
                          for (clock, cause), cycles in self.bill.by_cause().items())


@frozen
class Prediction:
    """What an inference is predicted to cost; kind is always "predicted".

    Parameters
    ----------
    temperature
        "warm" or "cold".
    layers
        In execution order.
    setup
        Preparing the network once, before the first inference.
    bill
        Of one inference: the sum of the layers' bills.
    clock
        Clock most of the time passes in.
    cycles
        Of that clock; the bill has those of the others, which are never added to them.
    warnings
        What a reader must know before using the figures.
    tasks
        On an accelerator, in order.
    certainty
        Intervals and what stands behind them; None at stated prices.
    voltage
        Voltage scale a changed clock took, and what it saves; "" where it is the board's own.
    """

    deployment: Deployment
    temperature: str
    layers: tuple[LayerPrediction, ...]
    setup: Bill
    bill: Bill
    clock: str
    cycles: float
    time_us: float
    energy_uj: float | None
    warnings: tuple[str, ...]
    tasks: tuple[TaskPrediction, ...] = ()
    kind: str = "predicted"
    certainty: Certainty | None = None
    voltage: str = ""

    @property
    def board(self) -> Board:
        """What it runs on."""
        return self.deployment.board

    @property
    def graph(self) -> Graph:
        """The network."""
        return self.deployment.graph

    @property
    def runtime(self) -> Runtime:
        """The library, or the compiler of an accelerator."""
        return self.deployment.runtime

    @property
    def time_interval(self) -> Interval | None:
        """Of its time, in microseconds; None at stated prices."""
        return None if self.certainty is None else self.certainty.time_us

    @property
    def energy_interval(self) -> Interval | None:
        """Of its energy, in microjoules; None where there is none."""
        return None if self.certainty is None else self.certainty.energy_uj

    @property
    def placement(self) -> Placement:
        """The memory plan."""
        return self.deployment.placement

    @property
    def ram_bytes(self) -> int:
        """Peak RAM."""
        return self.deployment.ram_bytes

    @property
    def ram_available_bytes(self) -> int:
        """Size of the memories that hold the arena, and of the one of weights kept in RAM."""
        return self.deployment.ram_room_bytes

    @property
    def flash_bytes(self) -> int:
        """Weights and code."""
        return self.deployment.flash_bytes

    @property
    def flash_available_bytes(self) -> int:
        """Size of the flash the image is kept in, even where weights are copied to RAM."""
        return self.deployment.flash_room_bytes

    @property
    def macs(self) -> int:
        """Nominal multiply-accumulates of the model; of one compiled before, those of its tasks."""
        return sum(layer.macs for layer in self.layers) or sum(
            work.macs for task in self.tasks for work in task.run.task.units)

    @property
    def network_sizes(self) -> tuple[int, int, int]:
        """Multiply-accumulates of the network, those without dead channels, and its parameters."""
        return (graph_macs(self.graph), graph_macs(self.deployment.executed),
                graph_parameters(self.graph))

    @property
    def parameter_bytes(self) -> tuple[int, ...]:
        """Bytes of the constants each layer reads, as stored."""
        return tuple(parameter_bytes(self.graph, [layer]) for layer in self.graph.layers)

    @property
    def precision(self) -> str | None:
        """Type of the weights, by `name_precision`; None of a program, which names none."""
        return None if self.deployment.target.executes else name_precision(self.graph)

    @property
    def cycles_by_clock(self) -> dict[str, int]:
        """Whole cycles by clock, which are never added: the core's and an accelerator's."""
        return {clock: round(cycles) for clock, cycles in self.bill.clock_cycles().items()}

    @property
    def compiler(self) -> Compiler:
        """What planned the tasks of an accelerator, and what its maker calls them."""
        return self.runtime.compiler

    @property
    def epochs(self) -> tuple[TaskPrediction, ...]:
        """Former name of `tasks`."""
        warn("Prediction.epochs is Prediction.tasks", DeprecationWarning, stacklevel=2)
        return self.tasks

    @property
    def coverage(self) -> Coverage | None:
        """What part of it an accelerator covers; None without one."""
        return measure_coverage(self.tasks, self.bill, self.board) if self.tasks else None
