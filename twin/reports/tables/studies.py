"""Tables of studies: rows of many deployments, those that meet the limits first."""

from __future__ import annotations

import itertools
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from calibration.fitting.intervals import Interval
from hwmodels.quantities import (
    NOT_KNOWN,
    format_energy,
    format_frequency,
    format_power,
    format_size,
    format_time,
    list_first,
    significant,
)
from twin.network.model_names import name_model
from twin.network.rewrites.rewrite import find_rewrites, load_rewrite, makes_another
from twin.pricing.calibrated import OWN_CURRENTS
from twin.reports.columns import Column, number
from twin.reports.tables.limits import format_chance, say_meets
from twin.reports.tables.parts import Console, Content, Group, Text, natural_width, tabulate
from twin.reports.tables.parts import Table as TextTable
from twin.studies.duty import IDLE, TYPED
from twin.studies.limits import Limits
from twin.studies.results import Table
from twin.studies.rows import SURE, VERDICTS, WORDS, Row
from twin.studies.selection import find_winners
from twin.studies.sweep import network_of

MARKS = {"certain": "**", "front": "*", "possible": "?"}
"""Of the front, as `twin.studies.sweep` names them."""

LEGEND = {
    "**": "** on the Pareto front for all values within the intervals",
    "*": "* by the predictions", "?": "? for some values within the intervals"}
"""What the marks say, of `write_legend`."""

_Noun = TypeVar("_Noun")

LISTED = 4
"""Most boards a note names."""

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
        notes = write_legend(table, cut)
        if len(cut) > 1:
            many = len({network_of(row) for row in cut}) > 1
            notes.append("best first" + " within each network" * many + ": "
                         + "rows that meet the limits, by probability, then "
                         * bool(table.limits) + f"by {WORDS[table.objectives[0]]}")
        if any(len(row.violations) > len(row.unknown) for row in cut):
            notes.append("! above its limit")
        if len(cut) < len(ranked):
            notes.append(f"{len(ranked) - len(cut)} more rows: --rows 0 shows all")
            notes += _list_hidden_boards(table, ranked, cut)
        if drawn.columns and not any("90 %" in str(one.header) for one in drawn.columns) and any(
                row.time is not None for row in cut):
            notes.append("± to the upper end of the 90 % interval")
        notes += (*say_idle(cut), *(say_prices(cut) if "USD" not in left_out else ()),
                  *say_rounding(cut))
        if left_out:
            notes.append(f"not shown at {console.width} columns: {', '.join(left_out)}; -o or "
                         "--json has them")
        parts += [Text(""), drawn, Text(""), *(Text(note, style="dim") for note in notes)]
    parts += list_failures(table)
    return Group(*parts)


def first_boards(table: Table, chosen: str = (
        "five kinds of core; for each, the board with the most published measurements")) -> Content:
    """Return what a network takes on boards nobody asked for, and how to go on."""
    rows = [*rank_rows(table), *table.failed]
    model = shlex.quote(table.rows[0].model)
    columns = [
        Column("board", "board"), number("ms", "time_us", _thousandth),
        number("90 %", "time", _ends), number("mJ", "energy_uj", _thousandth),
        *([number(unit, name, _plain) for unit, name in (("mW", "mean_mw"), ("days", "life_days"))
           if any(getattr(row, name) is not None for row in rows)]
          or [number("90 %", "energy", _ends)]),
        number("fits in", lambda row: format_size(row.ram_bytes) if row.ram_bytes else
               "no" * (row.failure not in ("runtime", "model")), "{}"),
        Column("library", lambda row: "" if row.failure else row.runtime)]
    notes = [f"{', '.join(row.board for row in same)}: {same[0].reason}"
             for same in group_alike(sorted(table.failed, key=lambda row: row.reason.partition(
                 ": ")[2]), lambda row: row.reason)]
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


def write_legend(table: Table, rows: Sequence[Row]) -> list[str]:
    """Say what the marks of rows mean; nothing where none has one."""
    shown = set(map(mark_row, rows))
    legend = "; ".join(text for mark, text in LEGEND.items() if mark in shown)
    if "front" not in legend:
        legend = legend.replace("on it", "on the Pareto front", 1)
    over = ", ".join(WORDS[name] for name in table.objectives)
    others = sorted({name for row in table.rows for name, _ in row.inputs if makes_another(name)})
    each = f" of a network ({', '.join(others)} makes another)" if others else " of a network"
    judged = all(row.accuracy is not None for row in rows)
    return [f"{legend}; among all rows{'' if judged else each}, over {over}"] if legend else []


def rank_rows(table: Table) -> list[Row]:
    """Return predicted rows, best first within each network, networks in the order asked.

    Those that meet the limits, those that may, then by how sure that is in steps of a per cent,
    then by the first objective; what is not known last.
    """
    order = {network: place for place, network in enumerate(dict.fromkeys(
        map(network_of, table.rows)))}

    def key(row: Row) -> tuple[int, int, float, float, float]:
        first, second = (value if (value := getattr(row, name)) is not None else float("inf")
                         for name in (*table.objectives, "time_us")[:2])
        return (order[network_of(row)], VERDICTS.index(row.verdict),
                -round(row.probability or 0.0, 2), first, second)

    return sorted(table.predicted, key=key)


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
    shared = {name: value for name, value in rows[0].inputs if len(
        {dict(row.inputs).get(name) for row in table.rows}) == 1}
    if shared and len(shared) < len(rows[0].inputs):
        lines.append("in all rows: " + ", ".join(
            f"{name} {name_model(value)}" for name, value in shared.items()))
    many = len(set(map(network_of, rows))) > 1
    won = group_by((describe_row(row, changes=not many), what) for what, row in list_winners(table))
    return [*lines, *(f"{', '.join(words)}: {text}" for text, words in won.items())]


def list_winners(table: Table) -> list[tuple[str, Row]]:
    """Return the best rows: of each of several networks, else by each figure."""
    ranked, networks = rank_rows(table), dict.fromkeys(map(network_of, table.predicted))
    if len(ranked) < 2:
        return []
    if len(networks) > 1:
        best = [next(row for row in ranked if network_of(row) == one) for one in networks]
        return [(f"{name_network(row)}, " + ("best" if row.met else "none meets; nearest"), row)
                for row in best] if table.limits else []
    winners = [("most probable", ranked[0])] if ranked[0].met and ranked[0].probability else []
    return winners + [(won.words, won.row) for won in find_winners(table.predicted)
                      if won.quantity != "ram_bytes"]


def say_others(rows: Sequence[Row]) -> str:
    """Say how many predicted rows may meet the limits, what would decide that, how many do not."""
    may = [row for row in rows if row.verdict == "may"]
    no = sum(row.verdict == "no" for row in rows)
    return (f"; {len(may)} may ({say_unknown(may)})" * bool(may)
            + f"; {no} do{'es' * (no == 1)} not" * bool(no))


def say_unknown(rows: Sequence[Row]) -> str:
    """Say which limited figures of rows are not known: what would decide whether they meet."""
    names = {name for row in rows for name in row.unknown}
    return " and ".join(text for name, text in WORDS.items() if name in names) + " not known"


def describe_row(row: Row, *, changes: bool = True) -> str:
    """Say what a row is and what it costs, on one line; with or without changes of its network."""
    clock = f", {format_frequency(row.clock_hz)} {row.voltage_scale}".rstrip()
    figures = [f"{format_time(row.time_us)}"]
    if row.energy_uj is not None:
        figures.append(format_energy(row.energy_uj))
    if row.mean_mw is not None:
        figures.append(say_life(row))
    if row.probability is not None:
        figures.append(f"meets with {format_chance(row.probability)}")
    more = "".join(f", {name} {value}" for name, value in row.inputs
                   if name not in ("model", "board", "runtime", "clock")
                   and (changes or not name.startswith("network."))
                   and not name.endswith(".frequency_hz"))
    return f"{row.board}, {row.runtime}{clock}{more}: {', '.join(figures)}"


def describe_limits(limits: Limits) -> str:
    """List limits as people write them: "100 ms, 5 mJ, 256 KiB of RAM"."""
    texts = {"time_us": format_time(limits.max_time_us), "energy_uj": format_energy(
        limits.max_energy_uj), "ram_bytes": f"{format_size(limits.max_ram_bytes)} of RAM",
        "flash_bytes": f"{format_size(limits.max_flash_bytes)} of flash",
        "price_usd": f"{limits.max_price_usd or 0:g} USD", "mean_mw": "mean power of "
        + format_power(limits.max_mean_mw) + ("" if limits.min_life_days is None else
                                              f" ({limits.min_life_days:g} days)")}
    texts["parameter_bytes"] = f"{format_size(limits.max_parameter_bytes)} of parameters"
    texts["error"] = f"accuracy of {1 - (limits.max_error or 0):.4g}"
    if limits.every_us is not None:
        period = format_time(limits.every_us)
        texts["time_us"] = (f"a period of {period}" if limits.max_time_us is None else
                           f"{texts['time_us']} every {period}")
    return ", ".join(texts[name] for name, _ in limits.list_limits())


def say_life(row: Row) -> str:
    """Say the battery life of a row's duty with its interval, or its mean power."""
    if row.life_days is None:
        return f"{format_power(row.mean_mw)} on average"
    ends = "" if row.life is None else (
        f" ({significant(row.life.low)}-{significant(row.life.high)})")
    days = significant(row.life_days)
    return f"{days} day{'s' * (days != '1')}{ends}"


def say_duty(row: Row) -> str:
    """Say what a duty takes, and in which state the board sleeps."""
    if row.mean_mw is None:
        return "mean power not known: " + (
            "its energy is not; --currents states a core's, a board file an accelerator's"
            if row.energy_uj is None else
            "its sleep current is not; --sleep BOARD=CURRENT states yours"
            if row.sleep == "not known" else "wake-up and inference outlast the period")
    life = "" if row.life_days is None else f", {say_life(row)}"
    a_day = format_energy((row.energy_day_j or 0.0) * 1e6)
    parts = "" if row.wake_mw is None or row.asleep_mw is None else (
        f" ({100 - 100 * (row.wake_mw + row.asleep_mw) / row.mean_mw:.0f} % inference, "
        f"{100 * row.wake_mw / row.mean_mw:.0f} % wake-up, "
        f"{100 * row.asleep_mw / row.mean_mw:.0f} % sleep)")
    return (f"{format_power(row.mean_mw)} on average{parts}, {a_day} a day{life}; asleep "
            f"{say_sleep(row)}; energy of the {row.boundary}")


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
    for name in ("cell", "placement", "J/day", "flash", "scale", "KiB", "mostly", "USD", "MHz",
                 "score", *["mJ"] * any(row.sleep for row in rows)):
        if name not in limited and not fits(columns) and any(
                column.header == name for column in columns):
            left_out.append(name)
            columns = [column for column in columns if column.header != name]
    return columns, left_out


def list_columns(rows: Sequence[Row], table: Table, *, wide: bool) -> list[Column]:
    """Return the columns in which rows differ, and their figures."""
    def differs(column: Column, among: Sequence[Row] = table.predicted) -> bool:
        return len({column.cell(row) for row in among}) > 1 or len(table.predicted) == 1

    columns = [Column("", mark_row)]
    named = [
        Column("model", "model", name_model), Column("board", "board"),
        Column("runtime", "runtime"),
        number("MHz", "clock_hz", lambda hertz: f"{(hertz or 0) / 1e6:.4g}"),
        Column("scale", "voltage_scale"), Column("cell", "cell")]
    columns += [column for column in named if differs(column)]
    columns += head_placement(table.predicted)
    axes = [axis for axis in dict.fromkeys(name for row in rows for name, _ in row.inputs)
            if axis not in ("model", "board", "runtime", "clock")
            and not axis.endswith(".frequency_hz")]
    for axis in axes:
        column = Column(axis.split(".", 1)[-1],
                        lambda row, axis=axis: dict(row.inputs).get(axis, ""))  # type: ignore[misc]
        columns += [column] if differs(column, table.rows) else []
    return [*columns, *list_figures(rows, table, wide=wide)]


def head_placement(rows: Sequence[Row], take: str = "placement") -> tuple[Column, ...]:
    """Return the column of where weights and arena are, if rows differ there."""
    return (Column("placement", take),) * (len({row.placement for row in rows}) > 1)


def list_figures(rows: Sequence[Row], table: Table, *, wide: bool) -> list[Column]:
    """Return columns of time, energy, memories, price and the limits."""
    def figure(header: str, name: str, factor: float) -> Column:
        def cell(row: Row) -> str:
            value, interval = getattr(row, name), row.interval_of(name)
            text = "?" if value is None else significant(value * factor)
            about = "" if wide or interval is None or not value else \
                f" ±{100 * (interval.high / value - 1):.0f}%"
            return text + about + "!" * (name in row.violations and value is not None)

        return number(header, cell, "{}")

    columns: list[Column] = []
    for unit, name, interval in (("ms", "time_us", "time"), ("mJ", "energy_uj", "energy")):
        columns.append(figure(unit, name, 1e-3))
        columns += [number(f"90 % {unit}", interval, _ends)] if wide else []
    columns += [figure("KiB", "ram_bytes", 1 / 1024), figure("flash", "flash_bytes", 1 / 1024)]
    if any(row.sleep for row in rows):
        columns += [figure("mW", "mean_mw", 1), number("J/day", "energy_day_j", _plain)]
    if any(row.life_days is not None for row in rows):
        columns.append(figure("days", "life_days", 1))
        columns += [number("90 % days", "life", lambda life: _ends(life, 1))] if wide else []
    if any(row.price_usd is not None for row in rows):
        columns.append(figure("USD", "price_usd", 1))
    if any(row.accuracy_by for row in rows):
        columns.append(number("right", "accuracy", "{:.1%}"))
    if table.limits:
        columns.append(number("meets", say_meets, "{}"))
    return columns


def _ends(interval: Interval | None, factor: float = 1e-3) -> str:
    return "" if interval is None else "-".join(
        significant(end * factor) for end in (interval.low, interval.high))


def say_sleep(row: Row) -> str:
    """Say in which state a board sleeps, or that it only idles."""
    if row.sleep == IDLE:
        return "never, only the idle power of the whole board is known"
    return row.sleep if row.sleep in (TYPED, "not known") else f"in {row.sleep}"


def say_idle(rows: Sequence[Row]) -> list[str]:
    """Say in which state boards sleep, and which energies are of a whole board with its idle."""
    sleeps = group_by((row.sleep and say_sleep(row), row.board) for row in rows)
    boards = {row.board: row.idle_mw for row in rows if row.boundary == "board"}
    own = dict.fromkeys(row.board for row in rows if row.currents)
    cell_wh = next((row.life_days * 24 * row.mean_mw / 1e3 for row in rows
                    if row.life_days is not None and row.mean_mw is not None), None)
    return [*([] if cell_wh is None else [
        f"days: from {significant(cell_wh)} Wh, all usable, without regulator losses or "
        "self-discharge; a cell in mAh without @VOLTS has 3 V (assumed)"]),
        *([f"energy of {list_first(own, LISTED)}: {OWN_CURRENTS}"] if own else ()),
        *(["sleep: " + "; ".join(
            f"{state} ({list_first(at, LISTED)})" for state, at in sleeps.items())
           + "; --sleep BOARD=CURRENT states yours" * (NOT_KNOWN in sleeps)] if sleeps else ()), *(
        f"energy of {board} " + ("is taken" if idle_mw is None else
                                 f"includes {idle_mw:,.0f} mW of the idle board")
        + ", at the board's input; do not compare it with a chip's at its rail"
        for board, idle_mw in boards.items())]


def say_prices(rows: Sequence[Row]) -> list[str]:
    """Say what the prices of rows are of, and how well they are known."""
    kinds = group_by((row.price_of, row.board) for row in rows)
    reasons = "; ".join(kind + f" ({list_first(boards, LISTED)})" * (len(kinds) > 1)
                     for kind, boards in kinds.items())
    return [f"USD: {reasons}; kits are not compared (kit_usd of -o, --json); --price BOARD=USD "
            "states yours"] if reasons else []


def say_rounding(rows: Sequence[Row]) -> list[str]:
    """Say how values of axes are rounded, so that two of them may be one network."""
    asked = dict.fromkeys(name for row in rows for name, _ in row.inputs)
    found = {name: load_rewrite(name).rounds for name in asked if name in find_rewrites()}
    return [f"{name}: {rounds}; values that round alike are one network"
            for name, rounds in found.items() if rounds]


def mark_row(row: Row) -> str:
    """Return the mark of a row on the front; "" off it."""
    return MARKS.get(row.front, "")


def draw_columns(columns: Sequence[Column], rows: Sequence[Row]) -> TextTable:
    """Return rows as a table without a frame; those that violate a limit are dim."""
    return tabulate(columns, rows, gap=1, style=lambda row: "dim" * (row.verdict == "no"))


def group_alike(nouns: Iterable[_Noun], key: Callable[[_Noun], object]) -> list[list[_Noun]]:
    """Return neighbours that share a key together."""
    return [[*same] for _, same in itertools.groupby(nouns, key)]


def group_by(pairs: Iterable[tuple[str, str]]) -> dict[str, dict[str, None]]:
    """Return the second of pairs by the first, each once; pairs without a first are dropped."""
    groups: dict[str, dict[str, None]] = {}
    for head, member in pairs:
        if head:
            groups.setdefault(head, {})[member] = None
    return groups


def list_failures(table: Table) -> list[Content]:
    """Return infeasible rows, equal reasons together."""
    reasons = Counter((row.failure, row.reason) for row in table.failed)
    lines: list[Content] = []
    for (kind, reason), count in reasons.most_common():
        lines.append(Text(f"{count} infeasible ({kind}): {reason}", style="red"))
    return [Text(""), *lines] if lines else []


def name_network(row: Row) -> str:
    """Return a row's network: its model, and what was changed of it."""
    return " ".join((name_model(row.model), *(
        f"{name.removeprefix('network.')} {value}" for name, value in row.inputs
        if name.startswith("network."))))
