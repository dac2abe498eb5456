"""The report of a prediction on one screen: the answer, where time goes, the costliest layers."""

from __future__ import annotations

import math

from hwmodels.quantities import format_number, sum_known
from twin.pricing.ledger import (
    bill_time_us,
    explain_time,
    line_energy_uj,
    make_ledger,
    percentages,
    share_out,
)
from twin.pricing.prediction import Prediction
from twin.reports.tables.header import answer_pairs, name_tasks, place_warnings, setup_line
from twin.reports.tables.parts import (
    BAR_CELLS,
    Console,
    Content,
    Table,
    Text,
    draw_bar,
    natural_width,
    new_pairs,
    new_table,
    spaced,
)

MOST_CAUSES, MOST_LAYERS = 5, 6
"""Rows of each table; the rest is summed in one."""

NAMED = 0.1
"""A cause with more than this share of the known energy has a row of its own, too."""


def brief_report(prediction: Prediction, console: Console, duty: str = "",
                 better: str = "") -> Content:
    """Return what fits a screen of 40 lines; sums of both tables are the whole inference.

    Parameters
    ----------
    console
        Its width decides how much of a table is shown.
    duty
        What it draws on average, where that was asked.
    better
        The setting that saves most, where that is known.
    """
    more = "--details: every layer and line of the bill"
    pairs = answer_pairs(prediction, duty, better)
    if prediction.tasks:
        from twin.reports.tables.coverage import coverage_pairs

        pairs += coverage_pairs(prediction)[:1]
        name = prediction.compiler.task_name
        more = (f"--details: every layer, {name} and line of the bill; --epochs: every {name} as "
                "its profiler reports it")
    if hidden := place_warnings(prediction).rest:
        more += f"; {len(hidden)} more warning{'s' if len(hidden) > 1 else ''}"
    return spaced([
        new_pairs(pairs), causes_table(prediction, console), layers_table(prediction, console),
        Text(setup_line(prediction, make_ledger(prediction))),
        Text(explain_time(prediction), "bold"), Text(more, "dim")])


def causes_table(prediction: Prediction, console: Console) -> Table:
    """Return the causes most time goes to, of all clocks together, and the rest in a row."""
    bill = prediction.bill
    times = {cause: bill_time_us(prediction, bill, cause) / 1e3 for cause in bill.causes()}
    energies = {cause: sum_known([line_energy_uj(bill, clock, cause) for clock in bill.clocks()])
                for cause in times}
    first = sorted(times, key=lambda cause: -times[cause])
    least_uj = NAMED * math.fsum(energy or 0.0 for energy in energies.values())
    named = {*first[:MOST_CAUSES], *(
        cause for cause in first if (energies[cause] or 0.0) > least_uj)}
    rows: list[tuple[tuple[str, ...], str]] = [((one,), one) for one in first if one in named]
    if rest := tuple([cause for cause in first if cause not in named]):
        rows.append((rest, f"{len(rest)} other cause{'s' * (len(rest) > 1)}"))
    sums = [math.fsum(times[one] for one in causes) for causes, _ in rows]
    shown, shares = share_out(sums, 3), percentages(sums, 1)
    table = new_table(("where time goes", "ms", "%", "uJ", ""), ("ms", "%", "uJ"))
    cells = min(BAR_CELLS, max(1, console.width - 48))
    for (causes, name), ms, share in zip(rows, shown, shares, strict=True):
        table.add_row((name, f"{ms:,.3f}", f"{share:.1f}",
                       format_number(sum_known([energies[one] for one in causes]), 1),
                       draw_bar(share / max(shares), console, cells)))
    table.add_row(("total", f"{math.fsum(shown):,.3f}", f"{math.fsum(shares):.1f}",
                   format_number(prediction.energy_uj, 1), ""), style="bold")
    return table


def layers_table(prediction: Prediction, console: Console) -> Table:
    """Return the costliest layers, and the rest in a row."""
    layers = sorted(prediction.layers, key=lambda layer: -layer.time_us)
    rows = [(layer,) for layer in layers[:MOST_LAYERS]]
    rest = tuple(layers[MOST_LAYERS:])
    groups = [*rows, rest] if rest else rows
    shown = share_out([math.fsum(one.time_us for one in group) / 1e3 for group in groups], 3)
    shares = percentages([math.fsum(one.time_us for one in group) for group in groups], 1)
    name = prediction.compiler.task_name if prediction.tasks else ""
    headers = ["layer", "op", *([name] if name else []), "MACs", "ms", "%", "uJ", "largest cause"]
    table = new_table(headers, ("layer", "MACs", "ms", "%", "uJ"), drops=(name, "uJ", "MACs"))
    for group, ms, share in zip(groups, shown, shares, strict=True):
        one = group[0]
        alone = group is not rest
        energy = sum_known([layer.energy_uj for layer in group])
        cells = {"layer": str(one.index) if alone else "",
                 "op": one.op if alone else f"{len(rest)} other layers",
                 name: name_tasks(one) if alone else "",
                 "MACs": f"{sum(layer.macs for layer in group):,}",
                 "ms": f"{ms:,.3f}", "%": f"{share:.1f}", "uJ": format_number(energy, 1),
                 "largest cause": str(one.largest_cause) if alone else ""}
        table.add_row([cells[header] for header in headers])
    if natural_width(table) > console.width:
        table.gap = 1
    return table
