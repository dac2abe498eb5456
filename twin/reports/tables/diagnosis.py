"""Tables of a diagnosis and of an idealised split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from twin.attribution.diagnosis.error_model import STAND_IN
from twin.attribution.diagnosis.faults import JOINED
from twin.attribution.diagnosis.finding import SURE, Diagnosis
from twin.attribution.difference import Account, Difference
from twin.attribution.idealisation import Split
from twin.attribution.possible import Possible
from twin.reports.tables.layout import add_row, new_pairs, new_table, spaced

MOST_FAULTS = 6
SETTLED = 0.9
"""Below this probability other kinds are named beside the verdict's."""

LEAST_OR = 0.02
"""Of another kind, the least probability that is worth a word."""

LEAST_SHOWN = 0.01
"""Of a cause, the least probability that is worth a row."""


def diagnosis_report(diagnosis: Diagnosis) -> RenderableType:
    """Return the faults by probability with their evidence, and what was observed besides."""
    verdict = diagnosis.verdict
    table = new_table(("probability", "fault", "kind", "evidence"), ("probability",),
                      title="what explains the pattern")
    for finding in diagnosis.findings[:MOST_FAULTS]:
        add_row(table, (f"{100 * finding.probability:.1f} %", finding.fault.name,
                        finding.fault.kind, "; ".join(finding.evidence)),
                style="bold" if finding is verdict else "")
    kinds = list(diagnosis.kinds.items())
    both = "two at once: " if JOINED in verdict.fault.kind else ""
    lines = [("verdict", f"{both}{verdict.fault.name}, {100 * diagnosis.stated:.1f} % by kind"),
             ("remedy", diagnosis.remedy),
             ("pattern", f"{diagnosis.quantity} of {len(diagnosis.layers)} layers"
                         f"{diagnosis.left_out and f' {diagnosis.left_out}'}; errors: "
                         f"{diagnosis.errors.source}"),
             *([("rests on", ", ".join(diagnosis.rests_on))] if diagnosis.rests_on else []),
             ("counters", _describe_counters(diagnosis)),
             *(("observed", text) for text in diagnosis.observations)]
    if diagnosis.errors == STAND_IN:
        lines.append(("caution", "other kernels stand in for those that ran: faults of kernels and "
                                 "small faults may be accused or missed; give --healthy DIR"))
    if diagnosis.telling:
        lines.insert(2, ("to tell", diagnosis.telling))
    others = [f"{kind}{' at once' if JOINED in kind else ''} {100 * chance:.0f} %"
              for kind, chance in kinds[1:4] if chance >= LEAST_OR]
    if others and kinds[0][1] < SETTLED:
        lines.insert(1, ("or", ", ".join(others)))
    if diagnosis.indistinct:
        lines.append(("not told apart", f"{', '.join(diagnosis.indistinct)}: would change less "
                                        "than 1 % of any layer here"))
    return spaced([table, new_pairs(lines)])


def possible_table(possible: Sequence[Possible], account: Account) -> RenderableType:
    """Return which prices could explain what no counter tells, and what would say which."""
    columns = ("largest", "would account for", "5 to 95 %", "unsure by")
    table = new_table(("cause", *columns), columns, drops=("unsure by",), title=(
        f"what could explain the {account.total.unexplained:+,} {account.unit} no counter tells: "
        "probability that a price's error is the largest part of them"))
    shown = [one for one in possible if one.probability >= LEAST_SHOWN]
    for one in shown:
        add_row(table, (one.cause, f"{100 * one.probability:.0f} %", f"{one.expected:+,}",
                        f"{one.low:+,} to {one.high:+,}",
                        "" if one.unsure is None else f"{100 * one.unsure:.0f} %"))
    first = possible[0]
    said = (f"{first.cause}, {100 * first.probability:.0f} %" if first.probability >= SURE else
            "cycles alone do not say which; micro-benchmarks settle prices (twin plan, then twin "
            "calibrate, then --calibration FILE)")
    return spaced([table, new_pairs([("likeliest", said)])])


def _describe_counters(diagnosis: Diagnosis) -> str:
    """Return which counts it rests on, and whether a core has them."""
    if not diagnosis.counters:
        return f"{diagnosis.quantity} alone, as any Cortex-M with a cycle counter sends"
    return (f"{' and '.join(diagnosis.counters)} besides {diagnosis.quantity}: a Cortex-M without "
            "a PMU (M4, M7, M33) cannot count them")


def split_table(splits: Mapping[str, Split], difference: Difference) -> RenderableType:
    """Return the idealised split, for what was predicted and for what was diagnosed."""
    names = tuple(splits)
    table = new_table(("resource made ideal", *names), names)
    for resource in splits[names[0]].shares:
        add_row(table, (resource, *(f"{splits[name].shares[resource]:+,}" for name in names)))
    add_row(table, ("work that remains", *(f"{splits[name].work:,}" for name in names)))
    time = difference.account("time")
    if time is not None:
        measured = time.total.second
        add_row(table, ("unexplained", *(f"{measured - splits[name].total:+,}" for name in names)))
        add_row(table, ("measured", *(f"{measured:,}" for _ in names)), style="bold")
    else:
        add_row(table, ("total", *(f"{splits[name].total:,}" for name in names)), style="bold")
    title = Text("a view, not the bill: predicted ns shared by Shapley value (what a resource "
                 "saves depends on which others are ideal; a share is the mean over all orders)",
                 style="bold")
    return Group(title, table)
