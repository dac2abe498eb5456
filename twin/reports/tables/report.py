"""The report of a prediction: header, layers, set-up, bill, and the sentence that sums it up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from hwmodels.counts import CAUSE_GROUPS
from hwmodels.quantities import format_count, format_number
from twin.pricing.document import TASK_WORDS
from twin.pricing.layer_columns import (
    LAYER_COLUMNS,
    LayerRow,
    count_cycles,
    energy_decimals,
    make_rows,
    show_energies,
)
from twin.pricing.ledger import (
    Ledger,
    cycles_by_clock,
    line_energy_uj,
    line_time_us,
    make_ledger,
    percentages,
    share_out,
)
from twin.pricing.prediction import Prediction
from twin.reports.columns import Column, number
from twin.reports.tables.header import (
    answer_pairs,
    clock_label,
    explain_side,
    header_pairs,
    list_bill_notes,
    name_tasks,
    place_warnings,
)
from twin.reports.tables.parts import (
    BAR_CELLS,
    Console,
    Content,
    Group,
    Table,
    Text,
    draw_bar,
    natural_width,
    new_pairs,
    new_table,
    spaced,
    tabulate,
)

_DROP_ORDER = ("cum %", "MAC/B", "output", "bytes", "bound", *TASK_WORDS)
"""Columns given up, in this order, when even the narrow table does not fit."""


def report(prediction: Prediction, console: Console, duty: str = "",
           better: str = "") -> Content:
    """Return everything `twin predict` prints.

    Parameters
    ----------
    console
        Its width decides how many columns a layer gets.
    duty
        What it draws on average, where that was asked.
    better
        The setting that saves most, where that is known.
    """
    ledger = make_ledger(prediction)
    return spaced([
        new_pairs(answer_pairs(prediction, duty, better)), new_pairs(header_pairs(prediction)),
        layers_part(prediction, ledger, console), bill_table(prediction, ledger, console),
        Text("\n".join(list_bill_notes(prediction, ledger))),
        Text(explain_side(prediction), "bold"),
        *(Text(f"warning: {text}") for text in place_warnings(prediction).rest),
    ])


def layers_part(prediction: Prediction, ledger: Ledger, console: Console) -> Content:
    """Return one row per layer, as wide as the console allows, with notes on what is marked."""
    rows = make_rows(prediction, ledger)
    dropped: list[str] = []
    table = _layer_table(rows, prediction, _with_tasks(_WIDE, prediction))
    if natural_width(table) > console.width:
        columns = _with_tasks(_NARROW, prediction)
        table = _layer_table(rows, prediction, columns, gap=1)
        for header in _DROP_ORDER:
            if natural_width(table) <= console.width:
                break
            dropped.append(header)
            columns = [column for column in columns if column.header != header]
            table = _layer_table(rows, prediction, columns, gap=1)
    notes = []
    if any(layer.assumed for layer in prediction.layers):
        notes.append("* assumed: no data stands behind the cost of this layer")
    if dropped:
        notes.append(f"not shown at {console.width} columns: {', '.join(dropped)}")
    return Group(table, *(Text(note, "dim") for note in notes))


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
    energies = show_energies([line_energy_uj(prediction.bill, clock, cause)
                                for clock, cause in lines], prediction.energy_uj)
    table = new_table(("bill", "cause", "cycles", *(["clock"] if len(clocks) > 1 else []), "ms",
                       "%", "uJ", ""), ("cycles", "ms", "%", "uJ"))
    groups = {cause: group for group, causes in CAUSE_GROUPS.items() for cause in causes}
    last, largest = "", max(shares, default=0.0) or 1.0
    for (clock, cause), ms, share, energy in zip(lines, shown_ms, shares, energies, strict=True):
        group = groups[cause]
        table.add_row((group if group != last else "", cause, f"{lines[clock, cause]:,}",
                       *([clock] if len(clocks) > 1 else []), f"{ms:,.3f}", f"{share:.1f}",
                       energy, draw_bar(share / largest, console, cells)))
        last = group
    total = " + ".join(f"{count:,}" for count in cycles_by_clock(lines).values())
    table.add_row(("total", "", total, *(["all"] if len(clocks) > 1 else []),
                   f"{math.fsum(shown_ms):,.3f}", f"{math.fsum(shares):.1f}",
                   format_number(prediction.energy_uj, energy_decimals(prediction.energy_uj)),
                   ""), style="bold")
    return table


_WIDE = [Column(one.header, one.text, number=one.number) for one in LAYER_COLUMNS if one.header]

_NARROW = [Column(one.narrow, one.short or one.text, number=one.number)
           for one in LAYER_COLUMNS if one.header]


def _with_tasks(columns: Sequence[Column], prediction: Prediction) -> list[Column]:
    """Give each clock a column of cycles and add the tasks, where there are tasks.

    Rows of a program are headed by what they are: functions.
    """
    if prediction.deployment.target.executes:
        return [replace(column, header="function") if column.header == "op" else column
                for column in columns]
    if not prediction.tasks:
        return list(columns)
    place = [column.header for column in columns].index("cycles")
    return [*columns[:place], Column(prediction.compiler.task_name,
                                       lambda row: name_tasks(row.layer)), *(
        number(f"{clock_label(prediction, clock)} cycles", partial(count_cycles, clock=clock), "{}")
        for clock in prediction.bill.clocks()), *columns[place + 1:]]


def _layer_table(rows: Sequence[LayerRow], prediction: Prediction, columns: Sequence[Column],
                 gap: int = 2) -> Table:
    table = tabulate(columns, rows, gap=gap)
    macs = sum(row.layer.macs for row in rows)
    total = {
        "op": "total", "function": "total", "ms": f"{math.fsum(row.time_ms for row in rows):,.3f}",
        "MACs": f"{macs:,}" if gap > 1 else format_count(macs),
        "%": f"{rows[-1].cumulative:.1f}" if rows else "0.0",
        "uJ": format_number(prediction.energy_uj, energy_decimals(prediction.energy_uj)),
    }
    for header in (one.header for one in columns if one.header.endswith("cycles")):
        clock = header.removesuffix("cycles").strip().removesuffix(" core") or prediction.clock
        if clock in prediction.bill.clocks():
            total[header] = f"{sum(row.cycles.get(clock, 0) for row in rows):,}"
    table.add_row([total.get(one.header, "") for one in columns], style="bold")
    return table


