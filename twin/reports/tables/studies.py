"""Tables of studies: rows of many deployments, those that meet the limits first."""

from __future__ import annotations

import itertools
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from calibration.fitting.cell import list_measured
from hwmodels.quantities import format_size, significant
from twin.pricing.grade import GRADES, MEASURED_HERE
from twin.reports.columns import Column, number
from twin.reports.tables.limits import format_ends, say_meets
from twin.reports.tables.parts import Console, Content, Group, Text, natural_width, tabulate
from twin.reports.tables.parts import Table as TextTable
from twin.reports.tables.study_sentences import (
    describe_limits,
    describe_row,
    group_by,
    list_winners,
    rank_rows,
    say_idle,
    say_others,
    say_prices,
    say_rounding,
    say_unknown,
)
from twin.studies.limits import Limits
from twin.studies.results import Table
from twin.studies.rows import NAMED, SURE, WORDS, Row, mixes_boundaries
from twin.studies.sweep import list_asked, list_changed, list_idle, name_network, network_of

MARKS = {"certain": "**", "front": "*", "possible": "~"}
"""Of the front, as `twin.studies.sweep` names them."""

LEGEND = {
    "**": "** on the Pareto front for all values within the intervals",
    "*": "* by the predictions", "~": "~ for some values within the intervals, each row's by "
    "itself (what rows of one board share is not cancelled, as whatif does)"}
"""What the marks say, of `write_legend`."""

_Noun = TypeVar("_Noun")

SHOWN = 40
"""Rows shown unless another number is asked for."""


def sweep_report(table: Table, console: Console, shown: int = SHOWN) -> Content:
    """Return a table of rows, best first, what was asked above it and what failed below.

    Parameters
    ----------
    console
        Whose width decides which columns there is room for.
    shown
        Most rows; 0 is all.
    """
    ranked = rank_rows(table)
    parts: list[Content] = [Text(line) for line in summarise(table)]
    if ranked:
        cut = _cut(ranked, shown)
        drawn, left_out = fit_columns(cut, console, table)
        notes = write_legend(table, cut) + ["? not known"] * any(
            "?" in cells for cells, _ in drawn.rows)
        if len(cut) > 1:
            many = len({network_of(row) for row in cut}) > 1
            notes.append("best first" + " within each network" * many + ": "
                         + "rows that meet the limits, by whole % of probability, then "
                         * bool(table.limits) + f"by {WORDS[table.objectives[0]]}")
        if any(len(row.violations) > len(row.unknown) for row in cut):
            notes.append("! above its limit")
        if len(cut) < len(ranked):
            notes.append(f"{len(ranked) - len(cut)} more rows: --rows 0 shows all")
            notes += _list_hidden_boards(table, ranked, cut)
        notes += say_spread([str(one.header) for one in drawn.columns], cut)
        notes += (*say_idle(cut), *(say_prices(cut) if "USD" not in left_out else ()),
                  *say_rounding(cut))
        if left_out:
            notes.append(f"not shown at {console.width} columns: {', '.join(left_out)}; -o or "
                         "--json has them")
        parts += [Text(""), drawn, Text(""), *(Text(note, "dim") for note in notes)]
    parts += list_failures(table)
    return Group(*parts)


def first_boards(table: Table, chosen: str = (
        "five kinds of core; for each, the board with the most published measurements, or a common "
        "one where none was measured")) -> Content:
    """Return what a network takes on boards nobody asked for, and how to go on."""
    rows = [*rank_rows(table), *table.failed]
    model = shlex.quote(table.rows[0].model)
    columns = [
        Column("board"), number("ms", "time_us", _thousandth),
        number("90 %", "time", format_ends), number("mJ", "energy_uj", _thousandth),
        *([number(unit, name, _plain) for unit, name in (("mW", "mean_mw"), ("days", "life_days"))
           if any(getattr(row, name) is not None for row in rows)]
          or [number("90 %", "energy", format_ends)]),
        number("fits in", lambda row: format_size(row.ram_bytes) if row.ram_bytes else
               "no" * (row.failure not in ("runtime", "model")), "{}"),
        Column("library", lambda row: "" if row.failure else row.runtime)]
    notes = [f"{', '.join(row.board for row in same)}: {same[0].reason}"
             for same in group_alike(sorted(table.failed, key=lambda row: row.reason.partition(
                 ": ")[2]), lambda row: row.reason)]
    known = {(one.board, one.runtime) for one in list_measured()}
    if unseen := [row.board for row in rows
                  if not row.failure and (row.board, row.runtime) not in known]:
        notes.append(f"{', '.join(unseen)}: not measured with this library; intervals rest on "
                     "other boards")
    notes += say_idle(rows)
    return Group(
        Text(chosen), Text(""), tabulate(columns, rows, gap=1), Text(""),
        *(Text(note) for note in notes),
        Text(f"details of one board: twin predict {model} -b {rows[0].board}"),
        Text(f"all boards against limits: twin select {model} --max-ms 50"))


compiled_boards = partial(
    first_boards, chosen="the boards with an accelerator of the family the file is compiled for")


def _thousandth(value: float | None, factor: float = 1e-3) -> str:
    return "?" if value is None else significant(value * factor)


_plain = partial(_thousandth, factor=1.0)


def say_spread(headers: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """Say what + means, where intervals have no column of their own."""
    shown = headers and not any("90 %" in header for header in headers) and any(
        row.time is not None for row in rows)
    return ["+ to the upper end of the 90 % interval"] if shown else []


def write_legend(table: Table, rows: Sequence[Row]) -> list[str]:
    """Say what the marks of rows mean; nothing where none has one."""
    shown = set(map(mark_row, rows))
    legend = "; ".join(text for mark, text in LEGEND.items() if mark in shown)
    if "front" not in legend:
        legend = legend.replace(" ", " on the Pareto front ", 1)
    over = ", ".join(WORDS[name] for name in table.objectives)
    others = list_changed(table.rows)
    each = f" of a network ({', '.join(others)} makes another)" if others else " of a network"
    judged = all(row.accuracy is not None for row in rows)
    apart = ", energies of boards and of chips apart" * (
        mixes_boundaries(rows) and "energy" in over)
    return [f"{legend}; among all rows{'' if judged else each}, over {over}{apart}"] if legend \
        else []


def _cut(rows: Sequence[Row], shown: int) -> list[Row]:
    """Return the first rows of every network, so many in all; 0 is all."""
    networks = dict.fromkeys(map(network_of, rows))
    if not shown or len(rows) <= shown:
        return list(rows)
    share = max(shown // len(networks), 1)
    return [row for network in networks for row in [
        one for one in rows if network_of(one) == network][:share]]


def _list_hidden_boards(table: Table, ranked: Sequence[Row], cut: Sequence[Row]) -> list[str]:
    """Say of each board without a row what is best there, or why nothing can be."""
    lines, many = [], len(set(map(network_of, ranked))) > 1
    shown = {row.board for row in cut}
    for board, count in Counter(row.board for row in table.rows if row.board not in shown).items():
        best = next((row for row in ranked if row.board == board), None)
        if best is None:
            reason = next(row.reason for row in table.failed if row.board == board)
            lines.append(f"not shown: {board}, all {count} infeasible: {reason}")
            continue
        lines.append("not shown: " + (f"{name_network(best)} on " if many else "")
                     + describe_row(best, changes=not many)
                     + {"yes": "", "may": f", may meet the limits ({say_unknown([best])})",
                        "no": ", misses a limit"}[best.verdict]
                     + (f"; best of {count} on this board" if count > 1 else ""))
    return lines


def summarise(table: Table) -> list[str]:
    """Say how many rows meet what, and which are best: of one network by each figure."""
    rows, limits = table.predicted, table.limits
    lines = [f"{len(table.rows)} configuration{'s' if len(table.rows) != 1 else ''}"
             + f", {len(table.failed)} infeasible" * bool(table.failed)]
    if not rows:
        return lines
    if limits:
        met, sure = len(table.met), sum(row.sure for row in rows)
        lines[0] += (f"; {met} meet{'s' if met == 1 else ''} {describe_limits(limits)}"
                     + f" ({sure} with {SURE:.0%} or more)" * (sure < met) + say_others(rows))
    shared = {name: value for name, value in rows[0].named_inputs.items() if len(
        {row.asked(name) for row in table.rows}) == 1}
    if shared and len(shared) < len(rows[0].inputs):
        lines.append("in all rows: " + ", ".join(
            f"{name} {value}" for name, value in shared.items()))
    many = len(set(map(network_of, rows))) > 1
    idle = list_idle(rows)
    won = group_by((describe_row(replace(row, inputs=tuple(
        one for one in row.inputs if one[0] not in idle)), changes=not many), what)
        for what, row in list_winners(table))
    return [*lines, *(f"{', '.join(words)}: {text}" for text, words in won.items())]


def fit_columns(rows: Sequence[Row], console: Console, table: Table) -> tuple[TextTable, list[str]]:
    """Return the widest table there is room for, and the headers it had to leave out."""
    columns, left_out = fit_widths(lambda wide: list_columns(rows, table, wide=wide), rows, console,
                                   table.limits)
    return draw_columns(columns, rows), left_out


LIMITED = {"ram_bytes": "KiB", "flash_bytes": "flash", "price_usd": "USD", "energy_uj": "mJ"}
"""Headers of what may be limited and may be dropped, by quantity."""


def fit_widths(list_them: Callable[[bool], list[Column]], rows: Sequence[Row], console: Console,
               limits: Limits) -> tuple[list[Column], list[str]]:
    """Return the columns there is room for, and the headers of those there is none for.

    Parameters
    ----------
    list_them
        Returns columns, wide (both ends of intervals) or not.
    limits
        Figures that are limited stay.
    """
    limited = {LIMITED.get(name) for name, _ in limits.list_limits()}

    def fits(columns: Sequence[Column]) -> bool:
        return natural_width(draw_columns(columns, rows)) <= console.width

    columns = list_them(True)
    if fits(columns):
        return columns, []
    columns, left_out = list_them(False), list[str]()
    for name in ("placement", "J/day", "flash", "scale", "KiB", "mostly", "USD", "MHz",
                 *["mJ"] * any(row.sleep for row in rows)):
        if name not in limited and not fits(columns) and any(
                column.header == name for column in columns):
            left_out.append(name)
            columns = [column for column in columns if column.header != name]
    return columns, left_out


def list_columns(rows: Sequence[Row], table: Table, *, wide: bool) -> list[Column]:
    """Return the columns in which rows differ, and their figures."""
    def differs(column: Column, among: Sequence[Row]) -> bool:
        return len({column.cell(row) for row in among}) > 1 or len(table.predicted) == 1

    model = Column("model", "network")
    columns = [Column("", mark_row), *[model] * differs(model, table.rows)]  # of all asked about
    columns += [column for column in (
        Column("board"), Column("runtime"),
        number("MHz", "clock_hz", lambda hertz: f"{(hertz or 0) / 1e6:.4g}"),
        Column("scale", "voltage_scale")) if differs(column, table.predicted)]
    columns += head_grade(table.predicted)
    columns += head_placement(table.predicted)
    axes = [axis for axis in list_asked(rows) if axis not in NAMED]
    for axis in axes:
        column = Column(axis.split(".", 1)[-1],
                        lambda row, axis=axis: row.asked(axis))  # type: ignore[misc]
        columns += [column] if differs(column, table.rows) else []
    return [*columns, *list_figures(rows, table, wide=wide)]


def head_grade(rows: Sequence[Row]) -> tuple[Column, ...]:
    """Return the column of how far to trust figures, if not all of them were measured."""
    short = dict(zip(GRADES, ("measured", "not", "guess"), strict=True))
    return (Column("prices", lambda row: short.get(row.grade, "")),) * (
        {row.grade for row in rows} - {MEASURED_HERE, ""} != set())


def head_placement(rows: Sequence[Row], take: str = "placement") -> tuple[Column, ...]:
    """Return the column of where weights and arena are, if rows differ there."""
    return (Column("placement", take),) * (len({row.placement for row in rows}) > 1)


def list_figures(rows: Sequence[Row], table: Table, *, wide: bool) -> list[Column]:
    """Return columns of time, energy, memories, price and the limits."""
    def figure(header: str, name: str, factor: float) -> Column:
        def cell(row: Row) -> str:
            value, interval = getattr(row, name), row.interval_of(name)
            text = "?" if value is None else ">" * (name == "mean_mw" and row.is_bound) + (
                significant(value * factor))
            about = "" if wide or interval is None or not value else \
                f" +{100 * (interval.high / value - 1):.0f}%"
            return text + about + "!" * (name in row.violations and value is not None)

        return number(header, cell, "{}")

    columns: list[Column] = []
    for unit, name, interval in (("ms", "time_us", "time"), ("mJ", "energy_uj", "energy")):
        columns.append(figure(unit, name, 1e-3))
        columns += [number(f"90 % {unit}", interval, format_ends)] if wide else []
    columns += [figure("KiB", "ram_bytes", 1 / 1024), figure("flash", "flash_bytes", 1 / 1024)]
    if any(row.sleep for row in rows):
        columns += [figure("mW", "mean_mw", 1), number("J/day", "energy_day_j", _plain)]
    if any(row.life_days is not None for row in rows):
        columns.append(figure("days", "life_days", 1))
        columns += [number("90 % days", "life", lambda life: format_ends(life, 1))] if wide else []
    if any(row.price_usd is not None for row in rows):
        columns.append(figure("USD", "price_usd", 1))
    if any(row.accuracy_by for row in rows):
        columns.append(number("right", "accuracy", "{:.1%}"))
    if table.limits:
        columns.append(number("meets", say_meets, "{}"))
    return columns


def mark_row(row: Row) -> str:
    """Return the mark of a row on the front; "" off it."""
    return MARKS.get(row.front, "")


def draw_columns(columns: Sequence[Column], rows: Sequence[Row]) -> TextTable:
    """Return rows as a table without a frame; those that violate a limit are dim."""
    return tabulate(columns, rows, gap=1, style=lambda row: "dim" * (row.verdict == "no"))


def group_alike(nouns: Iterable[_Noun], key: Callable[[_Noun], object]) -> list[list[_Noun]]:
    """Return neighbours that share a key together."""
    return [[*same] for _, same in itertools.groupby(nouns, key)]


def list_failures(table: Table) -> Sequence[Content]:
    """Return infeasible rows, equal reasons together."""
    reasons = Counter((row.failure, row.reason) for row in table.failed)
    return [Text("")] * bool(reasons) + [
        Text(f"{count} infeasible ({kind}): {reason}", "red")
        for (kind, reason), count in reasons.most_common()]
