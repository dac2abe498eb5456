"""A prediction: the bill of every layer, and of the whole inference."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodels.counts import (
    CAUSE_GROUPS,
    ISSUE_EVENTS,
    Bill,
    CountLine,
    Counts,
    Price,
    Prices,
    make_bill,
    merge_bills,
    merge_counts,
)
from hwmodels.kernel import Kernel
from hwmodels.prices import derive_prices
from hwmodels.simulator import KernelRun, add_background, simulate
from twin.deployment import Deployment
from twin.errors import UsageError
from twin.graph import Layer
from twin.operators import bytes_moved, is_alias, is_assumed, layer_macs
from twin.placement import Placement, requantisation_bytes
from twin.runtimes import Runtime
from twin.sites import code_address, lower_network

TEMPERATURES = ("warm", "cold")
"""Warm: caches as the previous inference left them. Cold: caches empty."""

CORE_EVENTS = (*ISSUE_EVENTS, "branch_refill", "pipeline_stall")
"""What an efficiency of a runtime scales."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPrediction:
    """What one layer is predicted to cost.

    Parameters
    ----------
    macs : int
        Nominal multiply-accumulates of the model file (padding and dead channels counted).
    bytes_moved : int
        Bytes of inputs, weights and outputs at stored width, each once.
    alias : bool
        No data moves: the output is the input under another shape.
    assumed : bool
        No source or data stands behind this layer's cost.
    kernels : tuple of str
        Library functions called.
    clock : str
        Clock the cycles are of.
    cycles, time_us : float
        Warm or cold, as the prediction says.
    energy_uj : float or None
        At the rail; None is not known.
    bill : Bill
        Lines that sum to the above.
    counts : Counts
        Events behind the bill.
    instructions : int
        Instructions executed.
    accesses, misses : int
        Data-cache lines looked up and filled; 0 and 0 without a data cache.
    live_bytes : int
        Bytes of arena alive while it runs.
    """

    index: int
    name: str
    op: str
    output_shape: tuple[int, ...]
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
        """The cause with most cycles, "" for an alias."""
        causes = self.bill.causes()
        return max(causes, key=lambda cause: self.bill.cycles(self.clock, cause), default="")

    @property
    def bound(self) -> str:
        """Bottleneck: "memory" when memory causes cost more cycles than compute ones."""
        cycles = {group: sum(self.bill.cycles(self.clock, cause) for cause in causes)
                  for group, causes in CAUSE_GROUPS.items()}
        if not any(cycles.values()):
            return ""
        return "memory" if cycles["memory"] > cycles["compute"] else "compute"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What an inference is predicted to cost; kind is always "predicted".

    Parameters
    ----------
    temperature : str
        "warm" or "cold".
    layers : tuple of LayerPrediction
        In execution order.
    setup : Bill
        Preparing the network once, before the first inference.
    bill : Bill
        Of one inference: the sum of the layers' bills.
    clock : str
        Clock the cycles are of.
    cycles, time_us, energy_uj : float
        Of one inference.
    warnings : tuple of str
        What a reader must know before using the figures.
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
    kind: str = "predicted"

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
        """Size of the memory that holds the arena."""
        return self.deployment.board.memory(self.deployment.arena).size_bytes

    @property
    def flash_bytes(self) -> int:
        """Weights and code."""
        return self.deployment.flash_bytes

    @property
    def flash_available_bytes(self) -> int:
        """Size of the memory that holds the weights."""
        return self.deployment.board.memory(self.deployment.weights).size_bytes

    @property
    def macs(self) -> int:
        """Nominal multiply-accumulates of the model."""
        return sum(layer.macs for layer in self.layers)


def predict(deployment: Deployment, *, temperature: str = "warm") -> Prediction:
    """Predict cycles, time and energy of one inference, and why.

    Parameters
    ----------
    deployment : Deployment
        From `twin.deploy`.
    temperature : str
        "warm" (after at least one inference) or "cold" (caches empty).

    Returns
    -------
    Prediction
        Pure: the same deployment gives the same prediction.

    Notes
    -----
    bill = counts x prices, per kernel; a layer's bill is the sum of its kernels' and of the call
    overhead of its runtime; the total is the sum of the layers'.
    """
    if temperature not in TEMPERATURES:
        raise UsageError(f"temperature {temperature!r}; accepted: {', '.join(TEMPERATURES)}")
    kernels = lower_network(deployment)
    flat = [kernel for group in kernels for kernel in group]
    runs = iter(simulate(flat, deployment.board, code_address=code_address(deployment),
                         code_memory=deployment.code, cold=temperature == "cold"))
    prices = _with_runtime(derive_prices(deployment.board), deployment.runtime)
    layers = tuple(
        _predict_layer(deployment, position, group, tuple(next(runs) for _ in group), prices)
        for position, group in enumerate(kernels)
    )
    bill = merge_bills(layer.bill for layer in layers)
    clock = deployment.board.core.clock
    cycles = bill.cycles(clock)
    energy_pj = bill.energy_pj()
    return Prediction(
        deployment=deployment, temperature=temperature, layers=layers,
        setup=_setup_bill(deployment, prices), bill=bill, clock=clock, cycles=cycles,
        time_us=_to_us(deployment, cycles), warnings=_warnings(deployment, layers),
        energy_uj=None if energy_pj is None else energy_pj * 1e-6,
    )


def _to_us(deployment: Deployment, cycles: float) -> float:
    return cycles / deployment.board.clock(deployment.board.core.clock).frequency_hz * 1e6


def _predict_layer(deployment: Deployment, position: int, kernels: tuple[Kernel, ...],
                   runs: tuple[KernelRun, ...], prices: Prices) -> LayerPrediction:
    graph = deployment.graph
    layer = graph.layers[position]
    board = deployment.board
    alias = is_alias(layer)
    bills = [make_bill(run.counts, prices.scaled(
        CORE_EVENTS, deployment.runtime.efficiency.get(kernel.family, 1.0)))
        for kernel, run in zip(kernels, runs, strict=True)]
    calls = _count_calls(max(len(kernels), int(deployment.runtime.dispatches_aliases)))
    bill = add_background(merge_bills([*bills, make_bill(calls, prices)]), board, prices)
    cycles = bill.cycles(board.core.clock)
    energy_pj = bill.energy_pj()
    return LayerPrediction(
        index=layer.index, name=layer.name, op=layer.op,
        output_shape=graph.tensors[layer.outputs[0]].shape, macs=layer_macs(graph, layer),
        bytes_moved=bytes_moved(graph, layer), alias=alias, assumed=_is_assumed(layer, kernels),
        kernels=tuple(kernel.name for kernel in kernels), clock=board.core.clock, cycles=cycles,
        time_us=_to_us(deployment, cycles),
        energy_uj=None if energy_pj is None else energy_pj * 1e-6,
        bill=bill, counts=merge_counts([*(run.counts for run in runs), calls]),
        instructions=sum(run.instructions for run in runs),
        accesses=sum(run.cache_accesses for run in runs),
        misses=sum(run.cache_misses for run in runs),
        live_bytes=deployment.placement.live_bytes[position],
    )


def _is_assumed(layer: Layer, kernels: tuple[Kernel, ...]) -> bool:
    return layer.assumed or is_assumed(layer) or any(kernel.assumed for kernel in kernels)


def _count_calls(calls: int) -> Counts:
    if not calls:
        return Counts()
    return Counts((CountLine(event="kernel_dispatch", occurred=calls, exposed=calls),))


def _with_runtime(prices: Prices, runtime: Runtime) -> Prices:
    """Add what the runtime charges: calling a kernel, and preparing one."""
    slot = prices.price("alu_issue", "")

    def price(place: str, cycles: float, what: str) -> Price:
        return Price(event="kernel_dispatch", place=place, cycles=cycles, clock=slot.clock,
                     pj=None if slot.pj is None else cycles * slot.pj, kind="assumed",
                     source=f"{what} of runtime {runtime.identity}")

    added = (price("", runtime.dispatch_cycles, "dispatch_cycles"),
             price("setup", runtime.setup_cycles_per_op, "setup_cycles_per_op"),
             price("setup channels", runtime.setup_cycles_per_channel,
                   "setup_cycles_per_channel"))
    return Prices({**prices.table, **{(p.event, p.place): p for p in added}})


def _setup_bill(deployment: Deployment, prices: Prices) -> Bill:
    """Price preparing the network once: every operator, and every requantised channel."""
    graph = deployment.executed
    channels = sum(requantisation_bytes(graph, layer) // 8 for layer in graph.layers)
    amounts = {"setup": len(graph.layers), "setup channels": channels}
    counts = Counts(tuple(
        CountLine(event="kernel_dispatch", place=place, occurred=amount, exposed=amount)
        for place, amount in amounts.items() if amount))
    return add_background(make_bill(counts, prices), deployment.board, prices)


def _warnings(deployment: Deployment, layers: tuple[LayerPrediction, ...]) -> tuple[str, ...]:
    runtime = deployment.runtime
    warnings = list(deployment.notes)
    if runtime.structure == "assumed":
        warnings.append(f"structural assumption: {runtime.identity} is closed; its loops are "
                        "taken to be those of CMSIS-NN")
    assumed = [str(layer.index) for layer in layers if layer.assumed]
    if assumed:
        warnings.append("assumed: no source or data stands behind the cost of layer"
                        f"{'s' if len(assumed) > 1 else ''} {', '.join(assumed)}")
    after = deployment.executed
    if after is not deployment.graph:
        live = sum(layer_macs(after, layer) for layer in after.layers)
        nominal = sum(layer.macs for layer in layers)
        if live < nominal:
            warnings.append(f"dead channels dropped by {runtime.identity}: {live:,} of "
                            f"{nominal:,} MACs are computed")
    if any(layer.energy_uj is None for layer in layers):
        warnings.append(f"energy is not known: {deployment.board.name} has no complete current "
                        "figures")
    return tuple(warnings)
