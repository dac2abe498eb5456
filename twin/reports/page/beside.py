"""Predicted beside measured or published: totals, layers, and the causes of the gap."""

from __future__ import annotations

from itertools import accumulate
from operator import attrgetter

from hwmodels.frozen import NamedTexts
from hwmodels.quantities import format_time, significant
from twin.attribution.diagnosis.finding import Diagnosis, list_likeliest
from twin.attribution.difference import Account, Difference
from twin.attribution.difference import Row as Beside
from twin.attribution.published import Comparison, describe_sealed
from twin.attribution.views import PublishedView, View
from twin.reports.beside import (
    KIND_LOOKS,
    WORDS,
    chart_gap,
    chart_pairs,
    name_account,
    name_unit,
    pair_latencies,
    pair_rows,
    say_parts,
    say_reason,
    write_amount,
)
from twin.reports.columns import Cell, Column, number, write_cells
from twin.reports.page.bars import plot_bars
from twin.reports.page.page import plain
from twin.reports.page.parts import Plot, Section, Table, make_section, make_table, notes
from twin.reports.tables.limits import format_chance
from twin.reports.tables.published import OF_ROW, SET_UP, note_row

MOST_FAULTS, MOST_LIKELY = 10, 0.99
"""Faults that are listed: the likeliest, until they make up so much or are so many."""
LIKELY = 0.001
"""Probability from which a kind of fault is drawn."""


def describe_comparison(view: View) -> Section:
    """Return a prediction beside a measurement: sums, each layer, and why they differ."""
    difference = view.difference
    kinds = list_kinds(difference)
    main = difference.main
    title = "Before and after" if kinds[0].endswith("before") else \
        f"{kinds[0].capitalize()} beside {kinds[1]}"
    return make_section(
        "beside", title, list_totals(difference),
        *((draw_beside(main, kinds), list_parts(main, kinds)) if main.parts else ()),
        draw_gap(main, kinds) if main.total.moved else None,
        None if view.diagnosis is None else list_faults(view.diagnosis),
        *notes(*dict.fromkeys((*difference.warnings, *filter(None, [difference.pairing.note])))),
        lead=f"{tell_gap(difference, main)} From {difference.second.label}.")


def tell_gap(difference: Difference, account: Account) -> str:
    """Say how far apart the totals are, which term makes most of it, and in which parts."""
    total, kinds = account.total, list_kinds(difference)
    if total.ratio is None:
        return f"{kinds[1]} {account.quantity} is nothing."
    first, second = (_write(side, account.unit) for side in (total.first, total.second))
    if kinds[0].endswith("before"):
        sentence = f"{first} before, {second} after"
        sentence += "" if total.increase is None else f", {100 * total.increase:+.1f} %"
    else:
        sentence = (f"{kinds[0].capitalize()} is {total.ratio:.2f} of {kinds[1]} "
                    f"{account.quantity}: {first} and {second}")
    if total.moved and total.terms:
        label, gap = total.terms[0]
        most = "most" if 2 * abs(gap) > abs(total.gap) else "the largest part"
        sentence += f"; {most} of the gap is {label} ({_gap(gap, account.unit)})"
    return "; ".join(filter(None, (sentence, say_parts(account, difference.second.part)))) + "."


def judge(difference: Difference) -> tuple[str, str]:
    """Say whether what was measured lies inside what was predicted, or how far it is off."""
    interval, time = difference.first.interval_us, difference.account("time")
    ratio = difference.main.total.ratio
    off = "" if ratio is None else f"{ratio:.2f} of what was {difference.second.kind}"
    if interval is None or time is None or not difference.second.counted:
        return f"Predicted is {off}" if off else "Nothing to compare", ""
    inside = interval[0] <= time.total.second / 1e3 <= interval[1]
    level = f"{100 * (difference.first.level or 0.9):.0f} % interval"
    measured = f"{difference.second.kind.capitalize()} {format_time(time.total.second / 1e3)}"
    return (f"{measured} lies {'inside' if inside else 'outside'} the {level}",
            "good" if inside else "bad")


def list_totals(difference: Difference) -> Table:
    """Return each quantity of one inference on both sides."""
    return make_table("totals", "One inference", (
        Column("quantity", lambda row: row.name.replace("_bytes", "")),
        Column("unit", lambda row: name_unit(row.unit)),
        *head_sides(list_kinds(difference))), difference.totals)


def head_sides(kinds: tuple[str, str]) -> tuple[Column, Column, Column]:
    """Return columns of both sides and their ratio."""
    first, second = (number(
        kind, lambda row, side=side: _cell(row, getattr(row, side)),  # type: ignore[misc]
        kind=kind if kind in KIND_LOOKS else "") for kind, side in zip(
            kinds, ("first", "second"), strict=True))
    return first, second, number(" / ".join(kinds), "ratio", "{:.2f}")


def list_parts(account: Account, kinds: tuple[str, str]) -> Table:
    """Return each layer or task on both sides, with the causes of its gap folded below it."""
    known = any(map(say_reason, account.rows))
    columns = (number("#", "index", "{}"), *head_sides(kinds),
               number("gap", lambda row: _cell(row, row.gap, "+")),
               number("unexplained", lambda row: _cell(row, row.unexplained, "+"))
               if any(row.unexplained for row in account.rows) else None,
               Column("operator", "op"),
               Column("largest cause of the gap", say_reason) if known else None,
               Column("name", lambda row: row.name or row.op))
    return make_table(
        "beside-table",
        f"{account.quantity if account.unit in WORDS else name_account(account)}; "
        + ("gap = causes + unexplained, in every row" 
           if known or not account.total.unexplained else
           "no cause of the gap was counted: all of it is unexplained"),
        columns, account.rows, details=lambda row: _causes(row, account.unit),
        total=("total", *write_cells(filter(None, columns[1:-1]), account.total), ""))


def _causes(row: Beside, unit: str) -> NamedTexts:
    found = [(line.label, _gap(line.gap or 0, unit)) for line in row.moved]
    return (*found, ("unexplained", _gap(row.unexplained, unit))) if found else ()


def _cell(row: Beside, amount: int, sign: str = "") -> Cell:
    return Cell(write_amount(amount, row.unit, sign), amount)


def draw_beside(account: Account, kinds: tuple[str, str]) -> Plot:
    """Draw two bars for each part."""
    divide, unit = {"ns": (1e6, "ms"), "nJ": (1e3, "uJ")}.get(account.unit, (1.0, account.unit))
    ratios = sorted(row.ratio for row in account.parts if row.ratio)
    caption = "" if not ratios else (
        f"Ratios of single parts lie from {ratios[0]:.2f} to {ratios[-1]:.2f}, the middle one "
        f"is {ratios[len(ratios) // 2]:.2f}.")
    return plot_bars(chart_pairs(
        pair_rows(account.parts, lambda row: f"{row.index} {row.name or row.op}", divide), kinds,
        name_account(account, unit), upright=True, across="part, in order", name="beside-plot",
        title=f"{account.quantity.capitalize()} of each part, on both sides", caption=caption),
        lambda label: plain(label.partition(" ")[0]), texts=False, height_px=360)


def draw_gap(account: Account, kinds: tuple[str, str]) -> Plot:
    """Draw the way from one total to the other, cause by cause."""
    chart = chart_gap(
        account, kinds, name="gap", title=f"From {kinds[0]} to {kinds[1]}, cause by cause",
        caption="Bars to the right cost more afterwards, bars to the left less."
        if kinds[0].endswith(
            "before") else "Bars to the right are time the prediction lacks, bars to the left what "
            "it has too much of; what no counter covers is unexplained.")
    return plot_bars(chart, texts=False, height_px=80 + 28 * len(chart.rows),
                     layout={"xaxis": {"title": {"text": account.unit}, "tickformat": "~s"}})


def list_faults(diagnosis: Diagnosis) -> Table:
    """Return which faults would explain the gap, the likeliest kind first."""
    shown = list_likeliest(diagnosis.findings, MOST_FAULTS)
    sums = accumulate(one.probability for one in shown)
    likely = shown[:1 + sum(one < MOST_LIKELY for one in sums)]
    left = len(diagnosis.findings) - len(likely)
    rest = 100 * (1 - sum(one.probability for one in likely))
    share = f"{rest:.1f} %" if rest >= 0.1 else "less than 0.1 %"
    return make_table(
        "faults", "What may explain the gap" + (
            f"; {left} more make up {share} together" if left else ""),
        (Column("fault", "fault.name"), Column("kind"),
         number("probability", "probability", format_chance),
         number("of its kind", lambda one: diagnosis.kinds[one.kind], format_chance),
         Column("what to do, if so", "fault.remedy")), likely, details=lambda one: (
            (f"evidence {place}", text) for place, text in enumerate(one.evidence, 1)))


def _figure(header: str, take: str, kind: str) -> Column:
    return number(header, take, lambda value: "" if value is None else significant(value, 4),
                  kind=kind)


PUBLISHED = (
    Column("published by", "published_by"), *OF_ROW,
    _figure("ms", "predicted_ms", "predicted"), _figure("ms", "row.latency_ms", "published"),
    number("predicted / published", "latency_ratio", "{:.2f}"),
    Column("in its interval", lambda one: is_covered(one), lambda covered: {
        True: "yes", False: "no"}.get(covered, ""),
        tone=lambda one: "bad" if is_covered(one) is False else ""),
    _figure("uJ", "predicted_uj", "predicted"), _figure("uJ", "row.energy_uj", "published"),
    number("predicted / published", "energy_ratio", "{:.2f}"),
    Column("use", lambda one: "not predicted" if one.reason else one.row.use, tone="dim"))


def describe_published(view: PublishedView) -> Section:
    """Return predictions beside every open published row; sealed ones appear as one median only."""
    rows = view.opened
    lead = ("Rows of use fit were learnt from where learnt prices are in force: their ratios are "
            f"in sample; {SET_UP}." if rows else f"No open published result of {view.model} on "
            f"{view.board.name} is known.")
    covered = tell_coverage(view)
    lead += f" {covered}." if covered else ""
    table = make_table("published-table", "One warm inference", PUBLISHED, rows,
                       details=lambda one: (("why not", one.reason),) if one.reason else (
                           ("set up", note_row(one)),) if note_row(one) else ())
    return make_section(
        "published", "Predicted beside published", table if rows else None,
        _draw_published(view) if any(one.latency_ratio for one in rows) else None,
        *notes(*describe_sealed(view.comparisons)), lead=lead)


def tell_coverage(view: PublishedView) -> str:
    """Say how many published times lie inside the intervals of their predictions; "" for none."""
    judged = [one for one in view.opened if is_covered(one) is not None]
    inside = sum(bool(is_covered(one)) for one in judged)
    return "" if not judged else (
        f"{inside} of {len(judged)} published times lie inside the 90 % intervals of their "
        "predictions, in sample")


def is_covered(one: Comparison) -> bool | None:
    """Return whether a published time lies inside the interval; None where there is none."""
    held = None if one.prediction is None else one.prediction.time_interval
    return None if held is None or one.row.latency_ms is None else held.holds(
        1e3 * one.row.latency_ms)


def _draw_published(view: PublishedView) -> Plot:
    """Draw predicted and published time of each open row."""
    drawn = [one for one in view.opened if one.latency_ratio]
    pairs = pair_latencies(drawn, attrgetter("published_by"))
    return plot_bars(chart_pairs(
        pairs, ("predicted", "published"), "ms", name="published-plot",
        title="Time, predicted and published",
        caption=f"{len(drawn)} open rows with a time; lines are 90 % intervals."), plain,
                     texts=False,
        height_px=90 + 44 * len(drawn))


def list_kinds(difference: Difference) -> tuple[str, str]:
    """Return what both sides are called: their kinds, else before and after."""
    first, second = difference.first.kind, difference.second.kind
    return (first, second) if first != second else (f"{first} before", f"{second} after")


def _write(amount: int, unit: str, sign: str = "") -> str:
    return f"{write_amount(amount, unit, sign)} {name_unit(unit)}".rstrip()


def _gap(amount: int, unit: str) -> str:
    return _write(amount, unit, "+")
