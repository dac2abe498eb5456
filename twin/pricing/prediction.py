"""A prediction: the bill of every layer, and of the whole inference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from warnings import warn

from calibration.fitting.intervals import Interval
from hwmodels.board.facts import Board
from hwmodels.board.file import WHAT_IF_SOURCE
from hwmodels.board.power import Idle
from hwmodels.counts import (
    CAUSE_GROUPS,
    Bill,
    CountLine,
    Counts,
    Prices,
    make_bill,
    merge_bills,
    merge_counts,
)
from hwmodels.errors import check_word
from hwmodels.frozen import NamedNumbers, frozen
from hwmodels.prices import add_background
from hwmodels.quantities import format_frequency, format_size, list_first, sum_by_key
from twin.deployment.costs import (
    Coverage,
    LayerCost,
    TaskPrediction,
    bill_us,
    convert_us,
    measure_coverage,
)
from twin.deployment.deployment import Deployment
from twin.deployment.placement import Placement, requantisation_bytes
from twin.errors import UsageError
from twin.network.graph import Graph, Shape
from twin.network.operators import (
    FUNCTION,
    graph_macs,
    graph_parameters,
    is_alias,
    layer_macs,
    list_work,
    name_precision,
    parameter_bytes,
)
from twin.pricing.counted_prices import list_input_assumptions
from twin.pricing.extrapolation import say_assumed_currents
from twin.pricing.lines import list_doubtful, list_guessed_reads, price_on_core, runtime_prices
from twin.pricing.structure import is_layer_assumed

if TYPE_CHECKING:
    from twin.pricing.certainty import Certainty
    from twin.runtimes.compiler import Compiler
    from twin.runtimes.runtime import Runtime

TEMPERATURES = ("warm", "cold")
"""Warm: caches as the previous inference left them. Cold: caches empty."""

SLOWEST_HZ = 1e6
"""Below it a file's clock is doubted: kilohertz in place of megahertz."""

_SHOWN = 12
"""Layers a warning names one by one."""

MOST_ON_HOST = 0.5
"""Share of the time on an accelerator's host above which a warning says why (assumed)."""


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
        Bytes of arena alive while it runs.
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
    live_bytes: int
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
    def precision(self) -> str:
        """Type of the weights, by `name_precision`."""
        return name_precision(self.graph)

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


def predict(deployment: Deployment, *, temperature: str = "warm") -> Prediction:
    """Predict cycles, time and energy of one inference, and why.

    Parameters
    ----------
    deployment
        From `twin.deploy`.
    temperature
        "warm" (after at least one inference) or "cold" (caches empty).

    Returns
    -------
    Prediction
        Pure: the same deployment gives the same prediction.

    Notes
    -----
    bill = counts x prices, per kernel; a layer's bill is the sum of its kernels' and of the call
    overhead of its runtime; the total is the sum of the layers'. Who prices them is the runtime's
    target: on an accelerator, layers are what their tasks cost, and the host's caches start
    empty in either temperature.
    """
    check_word("temperature", temperature, TEMPERATURES, UsageError)
    prices = runtime_prices(deployment)
    costs, tasks = deployment.target.price(deployment, prices, price_on_core,
                                            cold=temperature == "cold")
    layers = tuple(_predict_layers(deployment, costs))
    bill = merge_bills(layer.bill for layer in layers)
    cycles, hertz = bill.clock_cycles(), deployment.board.hertz
    clock = _main_clock(deployment.board.core.clock, cycles, hertz)
    return Prediction(
        deployment=deployment, temperature=temperature, layers=layers,
        setup=setup_bill(deployment, prices), bill=bill, clock=clock,
        cycles=cycles.get(clock, 0.0), time_us=convert_us(cycles, hertz), tasks=tasks,
        warnings=_warnings(deployment, layers, temperature), energy_uj=bill.energy_uj())


def _main_clock(core: str, cycles: Mapping[str, float], hertz: Mapping[str, float]) -> str:
    """Return the clock most time passes in; the core's where none passes."""
    return max((core, *cycles), key=lambda clock: cycles.get(clock, 0.0) / hertz[clock])


def _predict_layers(deployment: Deployment,
                    costs: Sequence[LayerCost]) -> Iterator[LayerPrediction]:
    graph, hertz, core = (deployment.graph, deployment.board.hertz, deployment.board.core.clock)
    clocks_hz, live_bytes = tuple(hertz.items()), deployment.placement.live_bytes
    for cost, layer, (macs, moved), live in zip(costs, graph.layers, list_work(graph), live_bytes,
                                                strict=True):
        cycles = cost.bill.clock_cycles()
        clock = _main_clock(core, cycles, hertz)
        yield LayerPrediction(
            index=layer.index, name=layer.name, op=str(layer.option("called", layer.op)),
            output_shape=graph.output(layer).shape, macs=macs, bytes_moved=moved,
            alias=is_alias(layer), kernels=cost.kernels, clock=clock,
            assumed=cost.assumed or is_layer_assumed(deployment, layer, cost.kernels),
            cycles=cycles.get(clock, 0.0), time_us=convert_us(cycles, hertz),
            energy_uj=cost.bill.energy_uj(), bill=cost.bill,
            counts=cost.counts, instructions=cost.instructions, accesses=cost.accesses,
            misses=cost.misses, live_bytes=live, tasks=cost.tasks, clocks_hz=clocks_hz,
            repeats=layer.repeats, families=cost.families, called=layer.op == FUNCTION)


def setup_bill(deployment: Deployment, prices: Prices) -> Bill:
    """Price preparing the network once: operators, requantised channels, weights copied.

    While they are copied the core waits; all the while an accelerator idles. What a program does
    before its billed part is not known: nothing is priced.
    """
    if deployment.target.executes:
        return Bill(())
    graph = deployment.executed
    channels = sum(requantisation_bytes(graph, layer) // 8 for layer in graph.layers)
    amounts = {"setup": len(graph.layers), "setup channels": channels}
    counts = Counts(tuple(
        CountLine(event="kernel_dispatch", place=place, occurred=amount, exposed=amount)
        for place, amount in amounts.items() if amount))
    board, copied = deployment.board, deployment.target.count_setup(deployment)
    made = add_background(make_bill(merge_counts([counts, copied]), prices), board, prices)
    if not deployment.accelerated:
        return made
    waited = bill_us(make_bill(copied, prices), board) * 1e-6 * board.hertz[board.core.clock]
    idle = bill_us(made, board) * 1e-6 * board.hertz[board.accelerator.clock]
    return merge_bills([made, make_bill(Counts(tuple(
        CountLine(event=event, place="", occurred=amount, exposed=0)
        for event, amount in {"sleep": waited, "npu_idle": idle}.items()
        if amount and prices.price(event, "").pj != 0)), prices)])


def _warnings(deployment: Deployment, layers: tuple[LayerPrediction, ...],
              temperature: str) -> tuple[str, ...]:
    runtime = deployment.runtime
    warnings = [*deployment.notes, *deployment.target.remarks(deployment, temperature)]
    warnings += _describe_host(deployment.plan.reasons, layers)
    if runtime.structure == "assumed":
        taken = ("runs loops taken to be those of the reference kernels"
                 if runtime.library == "reference" else
                 f"{runtime.unread}; {deployment.target.borrowed}")
        warnings.append(f"structural assumption: {runtime.identity} {taken}")
    if runtime.learnt is not None:
        sources = runtime.learnt.sources
        own = any(f" running {deployment.graph.name}," in source for source in sources)
        warnings.append(f"structure read from {', '.join(sources)}: instructions and accesses "
                        "simulated, counted by running ELF" + (
                            "; this network is one of those learnt from" if own
                            else "; shapes other than those seen are fitted"))
    changed = {fact.path for fact in deployment.board.facts if fact.source == WHAT_IF_SOURCE}
    if f"clocks.{deployment.board.core.clock}.frequency_hz" in changed:
        warnings += [f"{fact.path} stays {fact.value} at this clock, too, as stated for another; "
                     f"--set {fact.path}=N states it" for fact in deployment.board.facts
                     if fact.path.endswith(".wait_states") and fact.path not in changed]
    if not changed and (hertz := deployment.board.core_clock.frequency_hz) < SLOWEST_HZ:
        warnings.append(f"clock: its file states {format_frequency(hertz)}; is {hertz / 1e3:g}MHz "
                        "meant?")
    warnings += [f"cache: {format_size(cache.size_bytes)} before the flash is a guess, and the "
                 f"interval of the time covers there being none; caches.{cache.name}.size_bytes "
                 "in the file, or --set, states it"
                 for cache in list_doubtful(deployment.board)[:1]]
    warnings += [f"{one.name}: {one.wait_states} wait states and {one.read_bytes} bytes a read are "
                 "guesses, and the interval of the time covers none and twice as many; wait_states "
                 f"and read_bytes of memories.{one.name} in the file state them"
                 for one in list_guessed_reads(deployment.board)]
    decided = list_input_assumptions(deployment)
    listed = {f"inputs decide the cost ({taken}) of layer": places
              for taken, places in decided.items()}
    listed["assumed: no source or data stands behind the cost of layer"] = [
        layer.index for layer in layers
        if layer.assumed and not any(layer.index in places for places in decided.values())]
    warnings += [f"{text}{'s' if len(places) > 1 else ''} "
                 f"{list_first([str(place) for place in places], _SHOWN)}"
                 for text, places in listed.items() if places]
    after = deployment.executed
    if after is not deployment.graph:
        live = sum(layer_macs(after, layer) for layer in after.layers)
        nominal = sum(layer.macs for layer in layers)
        if live < nominal:
            warnings.append(f"dead channels dropped by {runtime.identity}: {live:,} of "
                            f"{nominal:,} MACs are computed")
    if deployment.transfers is not None:
        from twin.deployment.transfers import describe_transfers

        clock = deployment.board.core.clock
        warnings.append(describe_transfers(
            deployment.transfers, sum(layer.bill.cycles(clock, "dma_wait") for layer in layers),
            sum(layer.bill.cycles(clock) for layer in layers)))
    if any(layer.energy_uj is None for layer in layers):
        warnings.append(f"energy is not known: {deployment.board.name} has no complete current "
                        "figures")
    elif (idle := deployment.board.idle()) is not None:
        warnings.append(say_above_idle(idle))
    elif deployment.board.assumed_current_sd:
        warnings.append(say_assumed_currents(deployment.board))
    return tuple(warnings)


def _describe_host(reasons: Sequence[str], layers: Sequence[LayerPrediction]) -> list[str]:
    """Say what keeps most of the time on an accelerator's host, where most is."""
    kept = [(layer, reason) for layer, reason in zip(layers, reasons, strict=False) if reason]
    host_us = sum(layer.time_us for layer, _ in kept)
    total_us = sum(layer.time_us for layer in layers)
    if host_us <= MOST_ON_HOST * total_us:
        return []
    longest, reason = max(kept, key=lambda pair: pair[0].time_us)
    return [f"{host_us / total_us:.0%} of the time passes on the host, most in layer "
            f"{longest.index} {longest.op}: {reason}"]


def say_above_idle(idle: Idle) -> str:
    """Say what a predicted energy leaves out; views that add it say so instead."""
    return (f"energy above idle lacks {idle} of idling"
            + " at its file's clocks" * (idle.low_mw == idle.high_mw) + "; limits count it")
