"""Tables of an attribution, of a diagnosis and of an idealised split."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hwmodels.quantities import format_frequency, format_number
from twin.attribution.attribution import Account, Attribution, Gap, Row
from twin.attribution.diagnosis import Diagnosis, explain_rows
from twin.attribution.error_model import STAND_IN
from twin.attribution.faults import DECLARED
from twin.attribution.idealisation import Split
from twin.reports.tables.layout import add_row, new_pairs, new_table, spaced

MOST_FAULTS = 6
NOT_COUNTED = "not counted"


def attribution_report(attribution: Attribution, diagnosis: Diagnosis | None = None,
                       splits: Mapping[str, Split] | None = None) -> RenderableType:
    """Return both sides, the main account per layer, its causes, totals, and the verdict."""
    main = attribution.main
    parts: list[RenderableType] = [
        _sides(attribution), _rows(main, attribution, diagnosis), _causes(main),
        _totals(attribution)]
    if diagnosis is not None:
        parts.append(diagnosis_report(diagnosis))
    if splits:
        parts.append(split_table(splits, attribution))
    return spaced(parts)


def _sides(attribution: Attribution) -> RenderableType:
    def describe(side_name: str) -> str:
        side = getattr(attribution, side_name)
        clocks = ", ".join(f"{name} {format_frequency(hertz)}"
                           for name, hertz in side.clocks_hz.items() if name != "timer")
        runs = f", {side.runs} runs" if side.runs else ""
        learnt = f", {side.calibration}" if side.calibration else ""
        return (f"{side.kind}: {side.model} on {side.board}, {side.runtime}, {clocks}, "
                f"{side.temperature or 'temperature not stated'}{runs}{learnt}")

    return new_pairs((("predicted", describe("predicted")), ("measured", describe("measured"))))


def _rows(account: Account, attribution: Attribution,
          diagnosis: Diagnosis | None) -> RenderableType:
    verdicts = {} if diagnosis is None else _row_verdicts(account, diagnosis)
    numbers = ("predicted", "measured", "gap", "ratio", "counted", "unexplained")
    headers = (attribution.predicted.part, "op", *numbers, *(("verdict",) if verdicts else ()))
    table = new_table(headers, numbers, title=f"{account.quantity} in {account.unit}: "
                                              "measured - predicted = gap = counted causes + "
                                              "unexplained")
    for row in (*account.rows, account.total):
        label = row.name if row.index is None else f"{row.index} {row.name}"
        cells = [label, row.op, *(format_number(value) for value in (row.predicted, row.measured)),
                 f"{row.gap:+,}", "" if row.ratio is None else f"{row.ratio:.2f}",
                 f"{row.explained:+,}", f"{row.unexplained:+,}"]
        if verdicts:
            cells.append(verdicts.get(row.index, "") if row.name != "total" else "")
        add_row(table, cells, style="bold" if row.name == "total" else "")
    return table


def _row_verdicts(account: Account, diagnosis: Diagnosis) -> dict[int | None, str]:
    """Say per layer which share of its gap the verdict accounts for."""
    verdict = diagnosis.verdict
    if verdict.fault.kind == DECLARED:
        return {}
    changes = explain_rows(diagnosis, verdict)
    found: dict[int | None, str] = {}
    for row in account.rows:
        change = changes.get(row.index)
        if change is not None and row.gap and row.index is not None:
            found[row.index] = (f"{verdict.fault.name}: {100 * change:+.0f} % of "
                                f"{100 * row.gap / max(row.predicted, 1):+.0f} %")
    return found


def _causes(account: Account) -> Table:
    numbers = ("predicted", "measured", "gap", "of the gap")
    table = new_table(("cause", *numbers, "counted by"), numbers,
                      title=f"causes, {account.unit} of one inference")
    total = account.total
    for gap in total.gaps:
        if gap.predicted or gap.measured:
            add_row(table, (gap.label, *_gap_cells(gap, total), gap.counter))
    add_row(table, ("unexplained", "", "", f"{total.unexplained:+,}", _share(total.unexplained,
                                                                            total), ""))
    add_row(table, ("total", format_number(total.predicted), format_number(total.measured),
                    f"{total.gap:+,}", _share(total.gap, total), ""), style="bold")
    return table


def _gap_cells(gap: Gap, total: Row) -> tuple[str, str, str, str]:
    if gap.measured is None or gap.gap is None:
        return format_number(gap.predicted), NOT_COUNTED, "", ""
    return (format_number(gap.predicted), format_number(gap.measured), f"{gap.gap:+,}",
            _share(gap.gap, total))


def _share(part: int, total: Row) -> str:
    return f"{100 * part / total.gap:+.0f} %" if total.gap else ""


def _totals(attribution: Attribution) -> Table:
    numbers = ("predicted", "measured", "gap", "ratio", "unexplained")
    table = new_table(("one inference", "unit", *numbers), numbers)
    for account in attribution.accounts:
        total = account.total
        ratio = "" if total.ratio is None else f"{total.ratio:.3f}"
        add_row(table, (account.quantity, account.unit, format_number(total.predicted),
                        format_number(total.measured), f"{total.gap:+,}", ratio,
                        f"{total.unexplained:+,}"))
    return table


def diagnosis_report(diagnosis: Diagnosis) -> RenderableType:
    """Return the faults by probability with their evidence, and what was observed besides."""
    verdict = diagnosis.verdict
    table = new_table(("probability", "fault", "kind", "evidence"), ("probability",),
                      title="what explains the pattern")
    for finding in diagnosis.findings[:MOST_FAULTS]:
        add_row(table, (f"{100 * finding.probability:.1f} %", finding.fault.name,
                        finding.fault.kind, "; ".join(finding.evidence)),
                style="bold" if finding is verdict else "")
    lines = [("verdict", f"{verdict.fault.name}, {100 * diagnosis.kinds[verdict.fault.kind]:.1f} % "
                         "by kind"),
             ("remedy", verdict.fault.remedy or "none needed"),
             ("pattern", f"{diagnosis.quantity} of {len(diagnosis.layers)} layers; errors: "
                         f"{diagnosis.errors.source}"),
             *(("observed", text) for text in diagnosis.observations)]
    if diagnosis.errors == STAND_IN:
        lines.append(("caution", "other kernels stand in for those that ran: faults of kernels and "
                                 "small faults may be accused or missed; give --healthy DIR"))
    if diagnosis.indistinct:
        lines.append(("not told apart", f"{', '.join(diagnosis.indistinct)}: would change less "
                                        "than 1 % of any layer here"))
    return spaced([table, new_pairs(lines)])


def split_table(splits: Mapping[str, Split], attribution: Attribution) -> RenderableType:
    """Return the idealised split, for what was predicted and for what was diagnosed."""
    names = tuple(splits)
    table = new_table(("resource made ideal", *names), names)
    for resource in splits[names[0]].shares:
        add_row(table, (resource, *(f"{splits[name].shares[resource]:+,}" for name in names)))
    add_row(table, ("work that remains", *(f"{splits[name].work:,}" for name in names)))
    time = attribution.account("time")
    if time is not None:
        measured = time.total.measured
        add_row(table, ("unexplained", *(f"{measured - splits[name].total:+,}" for name in names)))
        add_row(table, ("measured", *(f"{measured:,}" for _ in names)), style="bold")
    else:
        add_row(table, ("total", *(f"{splits[name].total:,}" for name in names)), style="bold")
    title = Text("a view, not the bill: predicted ns shared by Shapley value (what a resource "
                 "saves depends on which others are ideal; a share is the mean over all orders)",
                 style="bold")
    return Group(title, table)
