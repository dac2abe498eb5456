"""Plots of variants: bills stacked by cause, stages of optimisation, what moved between two."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from hwmodels.quantities import format_energy, format_time
from twin.attribution.difference import Account
from twin.reports.bars import BarChart, stack_causes
from twin.reports.beside import chart_gap
from twin.reports.page.bars import plot_bars
from twin.reports.page.charts import plot_chart
from twin.reports.page.parts import Plot
from twin.reports.page.rival_plots import short_label
from twin.reports.page.styles import INK
from twin.reports.palette import CAUSE_STYLES
from twin.reports.rivals import FIGURES, Rival, chart_stages, write_figure
from twin.studies.rows import QUANTITIES

MOST_MOVES = 10


def draw_bills(what: str, bills: Sequence[tuple[str, Mapping[str, float]]]) -> Plot:
    """Draw a bar for each variant, stacked by cause.

    Parameters
    ----------
    what
        "time" or "energy".
    bills : sequence of (str, mapping)
        Label, and microseconds or microjoules by cause.
    """
    write = format_time if what == "time" else format_energy
    unit = "ms" if what == "time" else "mJ"
    causes = [cause for cause in CAUSE_STYLES if any(bill.get(cause) for _, bill in bills)]
    amounts = [bill for _, bill in bills]
    sums = [math.fsum(bill.values()) for _, bill in bills]
    longest = max(causes, key=lambda cause: math.fsum(bill.get(cause, 0.0) for _, bill in bills),
                  default="nothing")
    return plot_bars(BarChart(
        rows=tuple(label for label, _ in bills), axis=f"{what}, {unit}", scale=1e3, stacked=True,
        name=f"bills-{what}", title=f"Bill for {what}, cause by cause",
        caption=f"From {write(min(sums))} to {write(max(sums))}; {longest} is the largest cause "
             "over all.", bars=stack_causes(amounts, causes, lambda row, cause, amount: (
                 f"{bills[row][0]}<br>{cause} {write(amount)}"))), shorten=short_label,
        height_px=150 + 38 * len(bills))


def draw_timeline(rivals: Sequence[Rival]) -> Plot:
    """Draw what each stage leaves of each figure, in per cent of the first."""
    rows = [one.row for one in rivals]
    shares = {}
    for quantity in QUANTITIES[:4]:
        start = getattr(rows[0], quantity)
        if start and all(getattr(row, quantity) is not None for row in rows):
            shares[FIGURES[quantity][0]] = [
                (100 * low / start, 100 * point / start, 100 * high / start)
                if quantity == "time_us" else (100 * point / start,) * 3
                for low, point, high in (row.bounds_of(quantity) or (0.0, 0.0, 0.0)
                                         for row in rows)]
    quantities = {name: quantity for quantity, (name, *_) in FIGURES.items()}
    left = 100 * (rows[-1].time_us or 0.0) / (rows[0].time_us or 1.0)
    return plot_chart(chart_stages(
        [short_label(one.label) for one in rivals], shares,
        lambda name, place: write_figure(quantities[name], getattr(rows[place], quantities[name])),
        f"{left:.0f} % of the time is left at last. Each stage keeps the changes before it; "
        "bars are 90 % intervals of the time."), height_px=420)


def draw_moves(account: Account, before: str, after: str) -> Plot:
    """Draw the way from the time of one variant to that of another, cause by cause."""
    most = account.total.moved[0]
    chart = chart_gap(
        account, (before, after), most=MOST_MOVES, scale=1e6, unit="ms", name="moves",
        title=f"From {before} to {after}",
        caption=f"{most.label} moves most: {(most.gap or 0) / 1e6:+,.3f} ms. Orange with rising "
             "strokes costs more, blue with falling ones less.")
    return plot_bars(chart, short_label, height_px=90 + 30 * len(chart.rows), layout={
        "xaxis": {"title": {"text": "time, ms"}, "range": [0, 1.04 * chart.longest / 1e6],
                  "zerolinecolor": INK}})
