"""The report of a prediction: header, layers, set-up, bill, and the sentence that sums it up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from hwmodels.counts import CAUSE_GROUPS
from hwmodels.quantities import (
    format_count,
    format_number,
    significant,
)
from twin.network.operators import OPERATORS
from twin.prediction.ledger import (
    Ledger,
    cycles_by_clock,
    explain_time,
    line_energy_uj,
    line_time_us,
    make_ledger,
    percentages,
    share_out,
)
from twin.prediction.prediction import LayerPrediction, Prediction
from twin.reports.tables.header import clock_label, header_pairs, setup_line
from twin.reports.tables.layout import (
    BAR_CELLS,
    add_row,
    draw_bar,
    natural_width,
    new_pairs,
    new_table,
    spaced,
)
from twin.reports.tables.parts import Console, Content, Group, Table, Text

LONGEST = 20
"""Characters of a function's name there."""

_DROP_ORDER = ("cum %", "MAC/B", "output", "bytes", "bound", "epoch")
"""Columns given up, in this order, when even the narrow table does not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A layer with its numbers as shown."""

    layer: LayerPrediction
    cycles: Mapping[str, int]
    time_ms: float
    energy: str
    percent: float
    cumulative: float


def report(prediction: Prediction, console: Console) -> Content:
    """Return everything `twin predict` prints.

    Parameters
    ----------
    prediction : Prediction
        What to report.
    console : Console
        Its width decides how many columns a layer gets.
    """
    ledger = make_ledger(prediction)
    return spaced([
        new_pairs(header_pairs(prediction)),
        layers_part(prediction, ledger, console),
        bill_table(prediction, ledger, console),
        Text(setup_line(prediction, ledger)),
        Text(explain_time(prediction), style="bold"),
    ])


def layers_part(prediction: Prediction, ledger: Ledger, console: Console) -> Content:
    """Return one row per layer, as wide as the console allows, with notes on what is marked."""
    rows = _make_rows(prediction, ledger)
    dropped: list[str] = []
    table = _layer_table(rows, prediction, _with_epochs(_WIDE, prediction))
    if natural_width(table) > console.width:
        columns = _with_epochs(_NARROW, prediction)
        table = _layer_table(rows, prediction, columns)
        for header in _DROP_ORDER:
            if natural_width(table) <= console.width:
                break
            dropped.append(header)
            columns = [column for column in columns if column[0] != header]
            table = _layer_table(rows, prediction, columns)
    notes = []
    if any(layer.assumed for layer in prediction.layers):
        notes.append("* assumed: no data stands behind the cost of this layer")
    if dropped:
        notes.append(f"not shown at {console.width} columns: {', '.join(dropped)}")
    return Group(table, *(Text(note, style="dim") for note in notes))


def bill_table(prediction: Prediction, ledger: Ledger, console: Console) -> Table:
    """Return the bill: one row per cause and clock, with its share of the time.

    Its bars are as long as the console leaves room for.
    """
    table = _bill_table(prediction, ledger, console, BAR_CELLS)
    over = natural_width(table) - console.width
    return table if over <= 0 else _bill_table(prediction, ledger, console,
                                               max(1, BAR_CELLS - over))


def _bill_table(prediction: Prediction, ledger: Ledger, console: Console, cells: int) -> Table:
    lines = ledger.total
    clocks = list(cycles_by_clock(lines))
    times = [line_time_us(prediction, clock, prediction.bill.cycles(clock, cause))
             for clock, cause in lines]
    shares = percentages(times, decimals=1)
    shown_ms = share_out([time / 1e3 for time in times], 3)
    energies = _shown_energies([line_energy_uj(prediction.bill, clock, cause)
                                for clock, cause in lines], prediction.energy_uj)
    table = new_table(("bill", "cause", "cycles", *(["clock"] if len(clocks) > 1 else []), "ms",
                       "%", "uJ", ""), ("cycles", "ms", "%", "uJ"))
    groups = {cause: group for group, causes in CAUSE_GROUPS.items() for cause in causes}
    last, largest = "", max(shares, default=0.0) or 1.0
    for (clock, cause), ms, share, energy in zip(lines, shown_ms, shares, energies, strict=True):
        group = groups[cause]
        add_row(table, (group if group != last else "", cause, f"{lines[clock, cause]:,}",
                        *([clock] if len(clocks) > 1 else []), f"{ms:,.3f}", f"{share:.1f}",
                        energy, draw_bar(share / largest, console, cells)))
        last = group
    total = " + ".join(f"{count:,}" for count in cycles_by_clock(lines).values())
    add_row(table, ("total", "", total, *(["all"] if len(clocks) > 1 else []),
                    f"{math.fsum(shown_ms):,.3f}", f"{math.fsum(shares):.1f}",
                    format_number(prediction.energy_uj, _energy_decimals(prediction.energy_uj)),
                    ""), style="bold")
    return table


def _make_rows(prediction: Prediction, ledger: Ledger) -> list[_Row]:
    times = [layer.time_us for layer in prediction.layers]
    shown_ms = share_out([time / 1e3 for time in times], 3)
    shares = percentages(times, decimals=1)
    energies = _shown_energies([layer.energy_uj for layer in prediction.layers],
                               prediction.energy_uj)
    rows = []
    for position, layer in enumerate(prediction.layers):
        counted = cycles_by_clock(ledger.layers[position])
        rows.append(_Row(
            layer=layer, cycles=counted, time_ms=shown_ms[position],
            energy=energies[position], percent=shares[position],
            cumulative=math.fsum(shares[:position + 1])))
    return rows


_Column = tuple[str, bool, Callable[[_Row], str]]

_WIDE: tuple[_Column, ...] = (
    ("layer", True, lambda row: str(row.layer.index)),
    ("op", False, lambda row: row.layer.label + _marks(row.layer)),
    ("output", False, lambda row: _shape(row.layer.output_shape)),
    ("MACs", True, lambda row: f"{row.layer.macs:,}"),
    ("bytes moved", True, lambda row: f"{row.layer.bytes_moved:,}"),
    ("cycles", True, lambda row: _count_cycles(row, row.layer.clock)),
    ("ms", True, lambda row: f"{row.time_ms:,.3f}"),
    ("%", True, lambda row: f"{row.percent:.1f}"),
    ("cum %", True, lambda row: f"{row.cumulative:.1f}"),
    ("uJ", True, lambda row: row.energy),
    ("MAC/B", True, lambda row: significant(row.layer.arithmetic_intensity)),
    ("bound", False, lambda row: "alias" if row.layer.alias else row.layer.bound),
    ("largest cause", False, lambda row: str(row.layer.largest_cause)),
)

_NARROW: tuple[_Column, ...] = (
    ("", True, lambda row: str(row.layer.index)),
    ("op", False, lambda row: _shorten(row.layer) + _marks(row.layer)),
    ("output", False, lambda row: _shape(row.layer.output_shape)),
    ("MACs", True, lambda row: format_count(row.layer.macs)),
    ("bytes", True, lambda row: format_count(row.layer.bytes_moved)),
    ("cycles", True, lambda row: _count_cycles(row, row.layer.clock)),
    ("ms", True, lambda row: f"{row.time_ms:,.3f}"),
    ("%", True, lambda row: f"{row.percent:.1f}"),
    ("cum %", True, lambda row: f"{row.cumulative:.1f}"),
    ("uJ", True, lambda row: row.energy),
    ("MAC/B", True, lambda row: significant(row.layer.arithmetic_intensity, 2)),
    ("bound", False, lambda row: "alias" if row.layer.alias else row.layer.bound),
    ("largest", False, lambda row: str(row.layer.largest_cause)),
)


def _shorten(layer: LayerPrediction) -> str:
    """Return what a row is called where the terminal is narrow."""
    short = OPERATORS[layer.label].short if OPERATORS.is_ours(layer.label) else ""
    name = short or layer.label
    return name if len(name) <= LONGEST or not layer.called else f"{name[:LONGEST - 3]}..."


def _called(columns: Sequence[_Column], prediction: Prediction) -> list[_Column]:
    """Head the rows of a program by what they are: functions."""
    if not prediction.deployment.target.executes:
        return list(columns)
    return [("function" if header == "op" else header, right, write)
            for header, right, write in columns]


def _with_epochs(columns: Sequence[_Column], prediction: Prediction) -> list[_Column]:
    """Give each clock a column of cycles and add the epochs, where there are epochs."""
    columns = _called(columns, prediction)
    if not prediction.epochs:
        return columns
    place = [header for header, _, _ in columns].index("cycles")
    counted: list[_Column] = [
        (f"{clock_label(prediction, clock)} cycles", True, partial(_count_cycles, clock=clock))
        for clock in prediction.bill.clocks()]
    epochs: _Column = ("epoch", False, lambda row: " ".join(
        name.removeprefix("epoch_") for name in row.layer.epochs))
    return [*columns[:place], epochs, *counted, *columns[place + 1:]]


def _count_cycles(row: _Row, clock: str) -> str:
    return f"{row.cycles.get(clock, 0):,}"


def _layer_table(rows: Sequence[_Row], prediction: Prediction,
                 columns: Sequence[_Column]) -> Table:
    table = new_table([column[0] for column in columns],
                      [column[0] for column in columns if column[1]])
    if columns[0][0] == "":
        table.gap = 1
    for row in rows:
        add_row(table, [write(row) for _, _, write in columns])
    total = {
        "op": "total", "function": "total", "ms": f"{math.fsum(row.time_ms for row in rows):,.3f}",
        "MACs": _total_macs(rows, columns), "%": f"{rows[-1].cumulative:.1f}" if rows else "0.0",
        "uJ": format_number(prediction.energy_uj, _energy_decimals(prediction.energy_uj)),
    }
    for header in (header for header, _, _ in columns if header.endswith("cycles")):
        clock = header.removesuffix("cycles").strip().removesuffix(" core") or prediction.clock
        total[header] = f"{sum(row.cycles.get(clock, 0) for row in rows):,}"
    add_row(table, [total.get(header, "") for header, _, _ in columns], style="bold")
    return table


def _total_macs(rows: Sequence[_Row], columns: Sequence[_Column]) -> str:
    macs = sum(row.layer.macs for row in rows)
    return f"{macs:,}" if columns[0][0] else format_count(macs)


def _shape(shape: tuple[int, ...]) -> str:
    """Write a shape without its batch of one."""
    inner = shape[1:] if len(shape) > 1 and shape[0] == 1 else shape
    return "x".join(str(extent) for extent in inner)


def _marks(layer: LayerPrediction) -> str:
    """Say how often a layer of a loop runs, and whether its cost is assumed."""
    turns = f" x{layer.repeats}" if layer.repeats > 1 else ""
    return f"{turns} *" if layer.assumed else turns


def _shown_energies(energies_uj: Sequence[float | None], total_uj: float | None) -> list[str]:
    decimals = _energy_decimals(total_uj)
    known = [energy for energy in energies_uj if energy is not None]
    if len(known) < len(energies_uj):
        return [format_number(energy, decimals) for energy in energies_uj]
    return [format_number(energy, decimals) for energy in share_out(known, decimals)]


def _energy_decimals(total_uj: float | None) -> int:
    """Digits after the point so that the total has about four that count."""
    if not total_uj:
        return 3
    return min(6, max(1, 3 - math.floor(math.log10(total_uj))))
