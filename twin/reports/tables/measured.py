"""What `twin measure` prints: layers with what holds them up, percentiles, metrics with origins."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from calibration.measurement.counters import ALIASES
from calibration.measurement.measurement import Measurement
from calibration.measurement.quality import GOAL_TAIL
from calibration.virtual_board import VirtualBoard
from hwmodels.quantities import NOT_KNOWN, list_by_key, significant
from twin.attribution.measured_layers import MeasuredLayer, MeasuredNetwork
from twin.attribution.platform import list_counters
from twin.pricing.prediction import Prediction
from twin.reports.columns import Column, number
from twin.reports.tables.parts import Content, Table, new_pairs, new_table, spaced, tabulate

_LABELS = {"cpu_cycles": "cycles", "instructions": "instructions", "timer_ticks": "ticks"}
_BOUNDS = {"cache": "memory-bound by cache", "bandwidth": "memory-bound by bandwidth",
           "stalled": "stalled", "compute": "compute-bound", "overhead": "overhead", "": NOT_KNOWN}
_HIDDEN = ("output_checksum", "timer_ticks")

_EIGHT_BIT = re.compile(r"dwt_\w+cnt")
"""Event counters of the DWT: 8 bits wide, so a longer span is known modulo 256 only."""


def measured_report(networks: Sequence[MeasuredNetwork]) -> Content:
    """Return the report of one board: a table of layers for the last, percentiles of all."""
    main = networks[-1]
    return spaced([_heading(main), layers_table(main), percentiles_table(networks),
                   metrics_table(main)])


def energy_table(measured: Measurement) -> Table:
    """Return energy per layer and inference with its 95 % interval, and power of the inference."""
    def energy_of(layer: int | None) -> float:
        return measured.percentile("energy", 50, layer)

    whole = energy_of(None)
    table = tabulate((
        Column("layer", lambda layer: "inference" if layer is None else layer),
        number("energy, uJ", energy_of, "{:,.2f}"),
        number("+- 95 %", lambda layer: 1.96 * measured.percentile("energy_sd", 50, layer),
               "{:,.2f}"),
        number("%", lambda layer: 100 * energy_of(layer) / whole if whole else None, "{:.1f}"),
        number("runs", lambda layer: measured.count("energy", layer), "{}")),
        (*measured.layers, None), style=lambda layer: "bold" if layer is None else "")
    for name in ("power_mean", "power_peak", "power_sd"):
        table.add_row((f"{name}, mW", f"{measured.percentile(name, 50):,.2f}"))
    return table


def virtual_boards_table(boards: Sequence[VirtualBoard]) -> Table:
    """Return one row per virtual board, with what it needs where it cannot run."""
    return tabulate((
        Column("virtual board", "name"), Column("core"), Column("emulator"), Column("counts"),
        Column("needs", lambda board: board.missing or "ready")), boards)


def platform_table(prediction: Prediction) -> Table:
    """Return a platform's counters: what the prediction models, and who else counts them."""
    return tabulate((
        Column("counter", "name", no_wrap=True),
        number("modelled", "value", lambda value: "" if value is None else significant(value)),
        Column("unit"), Column("measured by", lambda row: row.silicon or ""),
        Column("simulated by", lambda row: row.emulated or "")), list_counters(prediction))


def _heading(network: MeasuredNetwork) -> Content:
    header = network.measurement.header
    environment = header.facts
    clocks = ", ".join(f"{name} {hz / 1e6:g} MHz" for name, hz in header.clocks_hz)
    shown = [("model", header.model), ("board", f"{header.board}, port {environment['port']}"),
             ("kind", f"{header.kind}, {header.temperature or 'caches as the program left them'}"),
             ("clocks", clocks or NOT_KNOWN),
             ("firmware", f"{environment['firmware_sha256'][:12]}, {environment['compiler']}"
              if "compiler" in environment else f"its own, {header.runtime}; a mark takes "
                                                f"{environment['mark_cost']}")]
    if "clock_by_host" in environment:
        shown.append(("clock by the host's", environment["clock_by_host"]))
    shown += [("not counted", f"{', '.join(names)}: {why}")
              for why, names in _missing_counters(environment).items()]
    bottleneck = network.whole.bottleneck
    shown.append(("bottleneck", f"{_BOUNDS[bottleneck.kind]}: {bottleneck.evidence} "
                                f"[{bottleneck.origin}]"))
    return new_pairs(shown)


def _missing_counters(environment: Mapping[str, str]) -> dict[str, list[str]]:
    """Counters the host's kernel does not give, by why not."""
    return list_by_key((why, name.removeprefix("no_")) for name, why in environment.items()
                       if name.startswith("no_"))


def layers_table(network: MeasuredNetwork) -> Table:
    """Return one row per layer: the operator table of a board."""
    label = _LABELS[network.counter]
    timed = network.whole.time_us is not None
    headers = ("layer", "op", label, "p95", *(("us",) if timed else ()), "%", "MACs",
               f"{label}/MAC", "bytes", "MAC/byte", "bound by", "severity", "evidence")
    numbers = (label, "p95", "us", "%", "MACs", f"{label}/MAC", "bytes", "MAC/byte", "severity")
    table = new_table(headers, numbers, drops=(
        "evidence", "severity", "p95", "bytes", "MAC/byte", f"{label}/MAC", "us", "MACs"))
    for layer in network.layers:
        table.add_row(_layer_cells(layer, timed))
    whole = network.whole
    for name, amount, shown in (
            ("between layers", network.between, bool(network.between)),
            ("in other layers each run", network.scattered,
             abs(network.scattered) > GOAL_TAIL * whole.p50)):
        if network.layers and shown:
            share = amount / whole.p50
            time_us = (f"{share * whole.time_us:,.1f}",) if whole.time_us is not None else ()
            table.add_row(("", name, f"{amount:,.0f}", "", *time_us, f"{100 * share:.1f}"))
    table.add_row(_layer_cells(network.whole, timed), "bold")
    return table


def _layer_cells(layer: MeasuredLayer, timed: bool) -> tuple[str, ...]:
    macs = layer.metrics["macs"].value
    size = layer.metrics["bytes"].value
    bottleneck = layer.bottleneck
    time_us = (f"{layer.time_us:,.1f}",) if timed and layer.time_us is not None else ()
    return ("total" if layer.index is None else str(layer.index), layer.op,
            f"{layer.p50:,.0f}", f"{layer.p95:,.0f}", *time_us, f"{100 * layer.share:.1f}",
            f"{macs:,.0f}", f"{layer.p50 / macs:.2f}" if macs else "", f"{size:,.0f}",
            f"{macs / size:.2f}" if size else "", _BOUNDS[bottleneck.kind],
            f"{100 * bottleneck.severity:.0f} %" if bottleneck.kind else "",
            f"{bottleneck.evidence} [{bottleneck.origin}]" if bottleneck.kind else "")


def percentiles_table(networks: Sequence[MeasuredNetwork]) -> Table:
    """Return runs, minimum and percentiles of the inference, cold apart from warm."""
    headers = ("inference", "runs", "first", "least", "p5", "p50", "p90", "p95", "p99", "most",
               "p95/p50-1")
    table = new_table(headers, headers[1:], drops=("p5", "p90", "first", "p99", "runs", "most"))
    for network in networks:
        measured, counter = network.measurement, network.counter
        summary = measured.summarise(counter)
        first = f"first_{counter}"
        cells = (measured.percentile(first, 50) if measured.count(first) else None,
                 summary.minimum, measured.percentile(counter, 5), summary.p50, summary.p90,
                 summary.p95, summary.p99, summary.maximum)
        table.add_row((f"{measured.header.temperature}, {_LABELS[counter]}", str(summary.count),
                       *(NOT_KNOWN if value is None else f"{value:,.0f}" for value in cells),
                       f"{100 * summary.tail_spread:.2f} %"))
    return table


def metrics_table(network: MeasuredNetwork) -> Table:
    """Return every metric and counter of the inference with its origin."""
    measured = network.measurement
    table = tabulate((
        Column("metric", "name"), number("value", "value", _format), Column("unit"),
        Column("origin"), Column("from", "formula")), network.whole.metrics.values(),
        drops=("from",))
    shown = {*_HIDDEN, *(alias for aliases in ALIASES.values() for alias in aliases)}
    origin = "measured" if measured.header.kind == "measured" else "simulated"
    for name in measured.counters:
        if name not in shown and not name.startswith("first_") and measured.count(name):
            summary = measured.summarise(name)
            wraps = _EIGHT_BIT.fullmatch(name) is not None
            table.add_row((name, _format(summary.p50), summary.unit + ", modulo 256" * wraps,
                           origin, "counter"))
    return table


def _format(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else significant(value, 4)
