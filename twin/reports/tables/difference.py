"""Two sides beside each other as tables: set-up, totals, parts and causes, in the same columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from statistics import median

from hwmodels.quantities import (
    drop_none,
    format_energy,
    format_frequency,
    format_number,
    format_time,
    significant,
)
from twin.attribution.compatibility import NOTE
from twin.attribution.diagnosis.faults import DECLARED
from twin.attribution.diagnosis.finding import REPEATS_FLOOR, Diagnosis, explain_rows
from twin.attribution.difference import Account, Difference, Line, Row
from twin.attribution.possible import list_open
from twin.attribution.side import Side
from twin.attribution.tasks import Figure, TaskPair, TaskReport
from twin.attribution.views import View, WhatIf
from twin.pricing.draw import differ
from twin.pricing.ledger import name_energies
from twin.reports.beside import name_account, name_unit, say_reason, write_amount
from twin.reports.tables.diagnosis import diagnosis_report, possible_table, split_table
from twin.reports.tables.header import explain_side
from twin.reports.tables.limits import format_chance
from twin.reports.tables.parts import (
    Console,
    Content,
    Table,
    Text,
    natural_width,
    new_pairs,
    new_table,
    spaced,
)

LONGEST_NAME = 12
"""Characters of a layer's name where the terminal is narrow."""

ABSENT = "-"
"""Where one side has no such line; `not known` would claim that it exists."""

NOT_COUNTED = "not counted"

COLUMNS: Mapping[str, Callable[[Row], str]] = {
    "gap": lambda row: write_amount(row.gap, row.unit, "+"),
    "%": lambda row: "" if row.increase is None else f"{100 * row.increase:+.2f}",
    "ratio": lambda row: "" if row.ratio is None else significant(row.ratio, 3),
    "explained": lambda row: write_amount(row.explained, row.unit, "+"),
    "unexplained": lambda row: write_amount(row.unexplained, row.unit, "+"),
    "mostly": say_reason,
}
"""Columns after the two sides: gap = second - first = known causes + unexplained; ratio = first /
second, headed by what the sides are; % = gap of the first."""


def name_sides(difference: Difference) -> tuple[str, str]:
    """Head the columns of both sides: their kinds, else before and after."""
    first, second = difference.first, difference.second
    if first.counted == second.counted:
        return "before", "after"
    return first.kind, "other prediction" if second.predicted else second.kind


def head_ratio(names: tuple[str, str]) -> str:
    """Head a column of ratios with what is divided by what."""
    return " /\n".join(names)


def compare_report(view: View) -> Content:
    """Return layers, or an accelerator's report, with the ratio of every quantity."""
    if view.tasks is not None:
        return tasks_beside(view.tasks, name_sides(view.difference))
    return layers_beside(view.difference)


def attribute_report(view: View, console: Console | None = None) -> Content:
    """Return both sides, the main account per part, its causes, totals, and the verdict.

    Where the console is narrow, a layer is called by the last part of its name.
    """
    difference, main = view.difference, view.difference.main
    first, second = name_sides(difference)
    verdicts = {} if view.diagnosis is None else _row_verdicts(main, view.diagnosis)
    unit = name_unit(main.unit)
    quantity = f"{main.quantity} in {unit}" if unit not in ("", main.quantity) else main.quantity
    make_rows = partial(
        _rows, difference, difference.first.part, (*main.rows, main.total),
        ("gap", "ratio", "explained", "unexplained"), verdicts,
        title=f"{quantity}: gap = {second} - {first} = known causes + unexplained")
    table = make_rows()
    if console is not None and natural_width(table) > console.width:
        table = make_rows(narrow=True)
    unclear = abs(sum(row.unexplained for row in list_open(main))) > (
        REPEATS_FLOOR * main.total.first)
    return spaced([
        _sides(difference), table, _causes(difference), _totals(difference),
        possible_table(view.possible, main) if view.possible and unclear else None,
        None if view.diagnosis is None else diagnosis_report(view.diagnosis),
        split_table(view.splits, difference) if view.splits else None])


def difference_report(difference: Difference, limit: float | None = None) -> Content:
    """Return set-ups, totals, parts and causes; `limit` marks what exceeds it."""
    main, names = difference.main, (*name_sides(difference), "gap")
    return spaced([
        _sides(difference), _totals(difference, limit),
        _rows(difference, difference.second.part, main.parts, ("gap", "%", "mostly"))
        if main.parts else None,
        _causes(difference) if main.total.moved else None,
        new_table(("counted, in events", *names), names, rows=(
            (line.counter, *_line_cells(line, main.total)[:3]) for line in difference.counters))
        if difference.counters else None])


def what_if_report(changed: WhatIf) -> Content:
    """Return a what-if: what was set, totals before and after, and the causes that moved."""
    before, after = changed.before, changed.after
    deployment, difference = before.deployment, changed.difference
    pairs = [("model", deployment.graph.name), ("board", deployment.board.name),
             ("runtime", deployment.runtime.identity)]
    pairs += [("set", f"{path} = {value}") for path, value in changed.changes.items()]
    pairs += [("voltage", side.voltage) for side in (after,) if side.voltage]
    idle = dict.fromkeys(str(side.deployment.board.idle()) for side in (before, after))
    if deployment.board.idle() is not None and before.energy_uj is not None:
        whole = [format_energy(uj) + ("" if interval is None else " ({} to {})".format(
            *map(format_energy, (interval.low, interval.high)))) for uj, interval in (
                name_energies(side)["energy with idle"] for side in (before, after))]
        pairs.append(("energy", f"above idle; with the board's {' -> '.join(idle)}, which limits, "
                                f"advise, sweep and select count: {' -> '.join(whole)}"))
    moved = any(account.total.moved for account in difference.accounts)
    return spaced([
        new_pairs(pairs), _totals(difference),
        _causes(difference) if moved else "no cause moved", say_odds(changed) or None,
        Text("before: " + explain_side(before)), Text("after:  " + explain_side(after), "bold")])


def say_odds(changed: WhatIf) -> str:
    """Return how surely a change helps, and what both sides share; "" where not known or alike."""
    before, after = changed.before, changed.after
    if changed.odds is None or before.time_us == after.time_us:
        return ""
    shared = "what is not known of prices is shared by both"
    if sd := differ(*(one.certainty.draw for one in (before, after) if one.certainty)):
        shared += f"; counts that differ are known to a factor of {math.exp(sd):.2g} (assumed)"
    return f"faster with a probability of {format_chance(changed.odds)}: {shared}"


# --- parts of every view -----------------------------------------------------------------------

def _sides(difference: Difference) -> Content:
    def describe(head: str, side: Side) -> tuple[str, str]:
        clocks = ", ".join(f"{name} {format_frequency(hertz)}"
                           for name, hertz in side.clocks_hz.items() if name != "timer")
        return head, ", ".join(filter(None, (
            f"{side.kind}: " * (head != side.kind) + side.label, side.model, side.board,
            side.runtime, clocks, side.temperature or "temperature not stated",
            f"{side.runs} run{'s' * (side.runs > 1)}" if side.runs else "", side.calibration)))

    return new_pairs((*map(describe, name_sides(difference), (difference.first, difference.second)),
                      *(("set up", str(one)) for one in difference.findings
                        if one.level == NOTE)))


def _rows(difference: Difference, title_of: str, rows: Iterable[Row], columns: Sequence[str],
          verdicts: Mapping[int | None, str] | None = None, *, title: str = "",
          limit: float | None = None, unit: bool = False, narrow: bool = False) -> Table:
    """Return rows in the columns of `COLUMNS`, with a verdict where there is one."""
    names = name_sides(difference)
    judged, ratio = bool(verdicts) or limit is not None, head_ratio(names)
    heads = [ratio if name == "ratio" else name for name in columns]
    headers = (title_of, "unit" if unit else "op", *names, *heads,
               *(("verdict",) if judged else ()))
    table = new_table(headers, (*names, *(name for name in heads if name != "mostly")),
                      title=title,
                      drops=("verdict", "explained", "unexplained") if narrow else (
                          "op", "%", "mostly", *(("verdict",) if limit is None else ()), ratio,
                          "unexplained", "explained"))
    for row in rows:
        exceeded = limit is not None and row.exceeds(limit)
        cells = [_shorten(row, narrow), name_unit(row.unit) if unit else row.op,
                 *(write_amount(side, row.unit) for side in (row.first, row.second)),
                 *(COLUMNS[name](row) for name in columns)]
        if limit is not None:
            cells.append("exceeds" if exceeded else "ok")
        elif verdicts:
            cells.append(verdicts.get(row.index, "") if row.index is not None else "")
        table.add_row(cells, "bold red" if exceeded else "bold" if row.name == "total" else "")
    return table


def _shorten(row: Row, narrow: bool = False) -> str:
    """Return a layer's number and name; of one made of several the scope of its first tensor."""
    if row.index is None or not (narrow or ";" in row.name):
        return row.label
    name = row.name.partition(";")[0].split("/")[-2:][0][:LONGEST_NAME] or row.op
    return f"{row.index} {name}"


def _totals(difference: Difference, limit: float | None = None) -> Table:
    """Return one inference by quantity and memory; its intervals where it has some."""
    open_causes = difference.second.counted and not difference.first.counted
    columns = ("gap", "%", "ratio", *(("unexplained",) if open_causes else ()))
    sides = (difference.first, difference.second)
    rows = [account.total for account in difference.accounts]
    named = [Row(name=account.quantity, unit=total.unit, first=total.first, second=total.second,
                 lines=total.lines)
             for account, total in zip(difference.accounts, rows, strict=True)]
    clocks = dict.fromkeys(name for side in sides for name in side.cycles)
    if len(clocks) > 1 and not difference.second.counted:
        named += [Row(name=f"{name} cycles", unit="cycles", first=sides[0].cycles.get(name, 0),
                      second=sides[1].cycles.get(name, 0)) for name in clocks]
    named += difference.totals[len(rows):]
    table = _rows(difference, "one inference", named, columns, limit=limit, unit=True)
    for name, write, bounds in (
            ("time", format_time, [side.interval_us for side in sides]),
            ("energy", format_energy, [side.energy_interval_uj for side in sides])):
        level = next((side.level for side in sides if side.level is not None), None)
        if level is not None and any(bounds) and difference.account(name):
            for end, what in enumerate(("from", "to")):
                table.add_row((f"{100 * level:.0f} % interval {what}", f"of {name}", *(
                    "" if one is None else write(one[end]) for one in bounds)))
    return table


def _causes(difference: Difference) -> Table:
    """Return the causes of the main account, largest gap first, then the unexplained ones."""
    account, names = difference.main, name_sides(difference)
    energy = difference.account("energy")
    billed = not difference.second.counted
    more = ("gap of energy, nJ",) if billed and energy is not None and account is not energy else ()
    numbers = (*names, "gap", "of the gap", *more)
    table = new_table((f"cause, {account.unit}", *numbers, "counted by"), numbers,
                      drops=("counted by", *more, "of the gap"))
    total = account.total
    energies = {} if energy is None else {one.causes: one.gap for one in energy.total.lines}
    lines = [*total.moved, *(line for line in total.lines
                             if not line.gap and (energies.get(line.causes) if billed
                                                  else line.first or line.second))]
    for line in lines:
        style = "" if not billed else "green" if (line.gap or 0) < 0 else "red"
        spent = [f"{energies.get(line.causes) or 0:+,}" for _ in more]
        table.add_row((line.label or "not itemised", *_line_cells(line, total), *spent,
                       line.counter), style)
    shown = {line.causes for line in lines}
    for line in energy.total.lines if more and energy is not None else ():
        if line.gap and line.causes not in shown:  # Costs energy and no time: the clock tree.
            table.add_row((line.label or "not itemised", "0", "0", "0", "", f"{line.gap:+,}", ""))
    if not billed or total.unexplained:
        table.add_row(("unexplained", "", "", f"{total.unexplained:+,}",
                       _share(total.unexplained, total)))
    table.add_row(("total", f"{total.first:,}", f"{total.second:,}", f"{total.gap:+,}",
                   _share(total.gap, total),
                   *(f"{energy.total.gap:+,}" for _ in more if energy is not None)), "bold")
    return table


def _line_cells(line: Line, total: Row) -> tuple[str, ...]:
    if line.second is None or line.gap is None:
        return format_number(line.first), NOT_COUNTED, "", ""
    return f"{line.first:,}", f"{line.second:,}", f"{line.gap:+,}", _share(line.gap, total)


def _share(part: int, total: Row) -> str:
    return f"{round(100 * part / total.gap) + 0:+d} %" if total.gap else ""


def _row_verdicts(account: Account, diagnosis: Diagnosis) -> dict[int | None, str]:
    """Say per layer which share of its gap the verdict accounts for."""
    verdict = diagnosis.verdict
    if verdict.fault.kind == DECLARED:
        return {}
    changes = explain_rows(diagnosis, verdict)
    return {row.index: f"{verdict.fault.name}: {100 * changes[row.index]:+.0f} % of "
                       f"{100 * row.gap / max(row.first, 1):+.0f} %"
            for row in account.parts if row.gap and changes.get(row.index) is not None}


# --- beside: every quantity with its ratio -----------------------------------------------------

def layers_beside(difference: Difference) -> Content:
    """Return layers and the inference, with the ratio first/second of every quantity."""
    names, accounts = name_sides(difference), difference.accounts
    headers = ["layer", "op"]
    for account in accounts:
        quantity = name_account(account) if name_unit(account.unit) else account.quantity
        headers += [f"{quantity}:\n{name}" for name in (*names, head_ratio(names))]
    table = new_table(headers, headers[2:], drops=("op", *reversed(headers[5:])))
    by_name = [{(row.index, row.name): row for row in account.rows} for account in accounts]
    for key in dict.fromkeys(key for rows in by_name for key in rows):
        found = [rows.get(key) for rows in by_name]
        shown = drop_none(found)[0]
        if shown.index is not None or any(row is not None and row.gap for row in found):
            table.add_row([_shorten(shown), shown.op, *(
                cell for row in found for cell in _beside_cells(row))])
    table.add_row(["total", "", *(cell for account in accounts
                                   for cell in _beside_cells(account.total))], "bold")
    parts: list[Content] = [table]
    for account in accounts:
        ratios = sorted(row.ratio for row in account.parts if row.ratio is not None)
        if ratios:
            parts.append(Text(f"{account.quantity}: {names[0]}/{names[1]} of layers "
                              f"{ratios[0]:.2f} to {ratios[-1]:.2f}, median {median(ratios):.2f}, "
                              f"n = {len(ratios)}"))
    return spaced([*parts, *filter(None, [difference.pairing.note])])


def _beside_cells(row: Row | None) -> list[str]:
    if row is None:
        return [ABSENT, ABSENT, ""]
    return [write_amount(row.first, row.unit), write_amount(row.second, row.unit),
            COLUMNS["ratio"](row)]


def tasks_beside(report: TaskReport, names: tuple[str, str]) -> Content:
    """Return the whole model, a row per task, then every task line by line."""
    counts = [sum(one is not None for one in side) for side in (
        [pair.first for pair in report.pairs], [pair.second for pair in report.pairs])]
    count = str(counts[0]) if counts[0] == counts[1] else f"{counts[0]} and {counts[1]}"
    title = f"whole model: sums over {count} {report.word}s" if not report.gaps else \
        f"sums over the {report.word}s both have whole, of {count}"
    parts: list[Content] = []
    if report.whole:
        parts.append(_lines_table(title, report.whole, names))
    if report.gaps:
        parts.append(Text("the measurement is not whole, so nothing is said of the whole model: "
                          + "; ".join(report.gaps)))
    else:
        parts.append(_lines_table("as the report states it", report.stated, names))
    parts.append(_summary_table(report, names))
    if report.paired_by == "order":
        parts.append(Text(f"{report.word}s are paired in order: the schedules are not of one "
                          "compilation"))
    parts += [_lines_table(" / ".join(_titles(pair)), pair.lines, names)
              for pair in report.pairs if pair.first and pair.second]
    return spaced(parts)


def _titles(pair: TaskPair) -> list[str]:
    return list(dict.fromkeys(f"{part.name} {part.op}" for part in (pair.first, pair.second)
                              if part is not None))


def _lines_table(title: str, lines: Mapping[str, Figure], names: tuple[str, str]) -> Table:
    table = new_table((title, *names, head_ratio(names)), (*names, head_ratio(names)))
    for name, figure in lines.items():
        decimals = 3 if "ms" in name else 1 if "%" in name or name == "inf/s" else 0
        table.add_row((name, *_figure_cells(figure, decimals)))
    return table


def _summary_table(report: TaskReport, sides: tuple[str, str]) -> Table:
    """Return MCU cycles of the phases and NPU cycles of the core, a row per task."""
    names = {phase: f"{phase}, MCU cycles" for phase in ("pre", "core", "post")} | {
        "core NPU": "core, NPU cycles"}
    headers = [report.word]
    for label in names:
        headers += [f"{label}: {sides[0]}", sides[1], head_ratio(sides)]
    table = new_table(headers, headers[1:])
    rows = [(" / ".join(_titles(pair)), pair.lines, "" if pair.first and pair.second else "dim")
            for pair in report.pairs]
    for title, lines, style in (*rows, ("sum", report.whole, "bold")):
        table.add_row([title, *(cell for name in names.values() for cell in _figure_cells(
            lines.get(name, Figure(first=None, second=None)), 0))], style)
    return table


def _figure_cells(figure: Figure, decimals: int) -> list[str]:
    return [ABSENT if value is None else f"{value:,.{decimals}f}"
            for value in (figure.first, figure.second)] + [
        "" if figure.ratio is None else significant(figure.ratio, 3)]
