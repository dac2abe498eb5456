"""A measurement beside its network: figures per layer, where each comes from, what holds it up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from calibration.measurement.counters import (
    OVERHEAD_SHARE,
    Bottleneck,
    Figures,
    Limits,
    Metric,
    classify,
    derive_metrics,
)
from calibration.measurement.measurement import Measurement
from calibration.measurement.quality import (
    WAITED,
    Finding,
    find_checksum_errors,
    find_clock_error,
    find_preemption,
    find_wraps,
    judge_runs,
)
from hwmodels.board.facts import Board
from hwmodels.core.file import load_core
from hwmodels.counts import CAUSE_GROUPS
from hwmodels.frozen import frozen
from hwmodels.paths.refill import line_wait_cycles
from hwmodels.paths.ways import data_cache
from hwmodels.prices import derive_prices
from twin.network.graph import Graph
from twin.network.operators import bytes_moved, layer_macs
from twin.pricing.prediction import LayerPrediction, Prediction
from twin.pricing.roofs import memory_bytes_per_second, peak_macs_per_cycle

MAIN_COUNTERS = ("cpu_cycles", "instructions", "timer_ticks")
"""What a layer's cost is read from: the first there is."""


@frozen
class MeasuredLayer:
    """One layer as measured.

    Parameters
    ----------
    index
        In the model file; None is the whole network.
    name, op
        As the model file has them.
    p50, p95
        Of the main counter.
    time_us
        Median; None where the counter is of no real clock.
    share
        Of the layers' sum.
    metrics
        By name, each with its origin.
    """

    index: int | None
    name: str
    op: str
    p50: float
    p95: float
    time_us: float | None
    share: float
    metrics: dict[str, Metric]
    bottleneck: Bottleneck


@frozen
class MeasuredNetwork:
    """A network as measured.

    Parameters
    ----------
    counter
        Which of `MAIN_COUNTERS`.
    layers
        Those with samples, in order.
    overhead_share
        Share of the inference no layer accounts for.
    between
        The same in the main counter's unit.
    waited_share
        Of the time, in which other programs had the processor; None: nothing says.
    """

    measurement: Measurement
    counter: str
    layers: tuple[MeasuredLayer, ...]
    whole: MeasuredLayer
    overhead_share: float
    between: float = 0.0
    waited_share: float | None = None

    @property
    def scattered(self) -> float:
        """What the median inference takes over the medians of its parts."""
        return self.whole.p50 - sum(layer.p50 for layer in self.layers) - self.between


def find_limits(board: Board | None) -> Limits:
    """Return what a board's core and the memory of the weights can do; None, the host: unknown."""
    if board is None:
        return Limits()
    weights = dict(board.placement)["weights"]
    hertz = board.core_clock.frequency_hz
    memory = board.memory(weights)
    cache = data_cache(board, memory)
    refill = None
    if cache is not None:
        refill = (derive_prices(board).price("dcache_read_refill", weights).cycles
                  + line_wait_cycles(board, memory, cache.line_bytes))
    return Limits(max_ipc=load_core(board.core.model).max_ipc,
                  macs_per_cycle=peak_macs_per_cycle(board, "int8"), refill_cycles=refill,
                  bytes_per_cycle=memory_bytes_per_second(board, memory) / hertz)


def describe_network(measurement: Measurement, graph: Graph, limits: Limits,
                     prediction: Prediction | None = None) -> MeasuredNetwork:
    """Set a measurement beside its network.

    Parameters
    ----------
    measurement
        Of one temperature, with samples of layers.
    graph
        The network; gives MACs and bytes.
    prediction
        Of the same kernels; gives what the board cannot count, marked as modelled.

    Returns
    -------
    MeasuredNetwork
        Medians; nothing is omitted as an outlier.
    """
    counter = next(name for name in MAIN_COUNTERS if name in measurement.counters)
    layers = [index for index in measurement.layers if measurement.count(counter, index)]
    total = sum(measurement.percentile(counter, 50, index) for index in layers)
    modelled = {layer.index: _model(layer) for layer in prediction.layers} if prediction else {}
    described = tuple(_describe(measurement, graph, limits, counter, index, total,
                                modelled.get(index, {})) for index in layers)
    inference = measurement.percentile(counter, 50)
    between = _find_between(measurement, counter, layers)
    least = sum(measurement.percentile(counter, 0, index) for index in layers)
    overhead = between / (least + between) if between else 0.0
    whole = _describe(measurement, graph, limits, counter, None, inference,
                      _sum_figures(list(modelled.values())), overhead)
    waited = _find_waited(measurement, counter)
    if waited is not None and waited >= OVERHEAD_SHARE:
        whole = replace(whole, bottleneck=Bottleneck(
            kind="", severity=0.0, origin="measured",
            evidence=f"other programs had the processor for {waited:.0%} of the time"))
    return MeasuredNetwork(measurement=measurement, counter=counter, layers=described, whole=whole,
                           overhead_share=overhead, between=between, waited_share=waited)


def _find_between(measurement: Measurement, counter: str, layers: Sequence[int]) -> float:
    """Return what of an inference is in no layer: the least of the runs.

    Notes
    -----
    An inference and its layers are set against each other run by run: what other programs and
    interrupts take is in both, whichever layer they hit. Where no run has all, the least of each.
    """
    if not layers:
        return 0.0
    runs: dict[int, dict[int | None, float]] = {}
    for sample in measurement.samples:
        if sample.counter == counter:
            runs.setdefault(sample.run, {})[sample.layer] = sample.value
    left = [2 * run[None] - sum(run.values()) for run in runs.values()
            if None in run and len(run) > len(layers)]
    quickest, parts = measurement.percentile(counter, 0), sum(
        measurement.percentile(counter, 0, index) for index in layers)
    return max(min(left, default=quickest - parts), 0.0)


def _find_waited(measurement: Measurement, counter: str) -> float | None:
    """Return for which share of the time a host's program waited; None: nothing says."""
    name, clocks = f"block_{WAITED}", measurement.header.clocks
    if not measurement.count(name):
        return None
    spent_us = _time_us(counter, float(measurement.values(counter).mean()), clocks, "measured")
    return min(float(measurement.values(name).mean()) / spent_us, 1.0) if spent_us else None


def _describe(measurement: Measurement, graph: Graph, limits: Limits, counter: str,
              index: int | None, total: float, modelled: Mapping[str, float],
              overhead: float | None = None) -> MeasuredLayer:
    origin = "measured" if measurement.header.kind == "measured" else "simulated"
    counted = {name: measurement.percentile(name, 50, index) for name in measurement.counters
               if measurement.count(name, index)}
    clocks = measurement.header.clocks
    time_us = _time_us(counter, counted[counter], clocks, origin)
    figures = Figures().add(counted, origin)
    figures.add({} if time_us is None else {"time_us": time_us}, origin)
    figures.add(_nominal(graph, index), "modelled")
    figures.add(modelled, "modelled")
    metrics = {metric.name: metric for metric in derive_metrics(figures, limits)}
    p50 = counted[counter]
    layer = graph.layers[index] if index is not None else None
    return MeasuredLayer(
        index=index, name=layer.name if layer else graph.name, op=layer.op if layer else "",
        p50=p50, p95=measurement.percentile(counter, 95, index), metrics=metrics, time_us=time_us,
        share=p50 / total if total else 0.0, bottleneck=classify(metrics, overhead))


def _time_us(counter: str, value: float, clocks: dict[str, float], origin: str) -> float | None:
    if counter == "cpu_cycles" and "cpu" in clocks:
        return value / clocks["cpu"] * 1e6
    if counter == "timer_ticks" and "timer" in clocks and origin == "measured":
        return value / clocks["timer"] * 1e6
    return None


def _nominal(graph: Graph, index: int | None) -> dict[str, float]:
    layers = graph.layers if index is None else (graph.layers[index],)
    return {"macs": float(sum(layer_macs(graph, layer) for layer in layers)),
            "bytes_moved": float(sum(bytes_moved(graph, layer) for layer in layers))}


def _model(layer: LayerPrediction) -> dict[str, float]:
    memory = sum(layer.bill.cycles(layer.clock, cause) for cause in CAUSE_GROUPS["memory"])
    work = sum(layer.bill.cycles(layer.clock, cause) for cause in CAUSE_GROUPS["compute"])
    found = {"cpu_cycles": layer.cycles, "instructions": float(layer.instructions),
             "work_cycles": work, "memory_cycles": memory, "time_us": layer.time_us}
    if layer.accesses:
        found |= {"dcache_accesses": float(layer.accesses), "dcache_misses": float(layer.misses)}
    if layer.energy_uj is not None:
        found["energy"] = layer.energy_uj
    return found


def _sum_figures(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Add the figures every layer has."""
    return {name: sum(part[name] for part in parts) for name in set().union(*parts)
            if all(name in part for part in parts)}


def judge_network(network: MeasuredNetwork, *, widths: dict[str, int], mismatches: int = 0,
                  clock: tuple[float, float] | None = None) -> list[Finding]:
    """Return what a reader must know before using the figures.

    Parameters
    ----------
    widths
        Bits of each counter's register.
    mismatches
        Runs whose output was not the first one's.
    clock : tuple of (ratio, uncertainty), optional
        The board's clock by the host's.
    """
    measured, counter = network.measurement, network.counter
    values = measured.values(counter)
    first = f"first_{counter}"
    found = judge_runs(values, float(measured.values(first)[0]) if measured.count(first) else None,
                       cycles=counter == "cpu_cycles")
    cycles = max(float(values.max()), 1.0)
    narrow = {name: bits for name, bits in widths.items() if measured.count(name) and bits < 32}
    wrap = find_wraps(narrow, cycles)
    found += [wrap] if wrap else []
    preempted = find_preemption(network.waited_share, network.whole.p50,
                                network.whole.p50 - network.scattered) if network.layers else None
    found += [preempted] if preempted else []
    checks = find_checksum_errors(mismatches, len(values))
    found += [checks] if checks else []
    if clock is not None:
        wrong = find_clock_error(*clock)
        found += [wrong] if wrong else []
    return found
