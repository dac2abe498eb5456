"""Tables of a diagnosis and of an idealised split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twin.attribution.diagnosis.faults import DECLARED, JOINED, STAND_IN
from twin.attribution.diagnosis.finding import (
    ADDED,
    APART,
    GIVE,
    LEAST_OR,
    SURE,
    Diagnosis,
    list_likeliest,
    say_ratio,
)
from twin.attribution.diagnosis.why import Why
from twin.attribution.difference import Account, Difference
from twin.attribution.idealisation import Split
from twin.attribution.possible import KERNELS, Possible, list_open
from twin.reports.beside import name_unit, write_amount
from twin.reports.columns import Column, number
from twin.reports.tables.limits import format_chance
from twin.reports.tables.parts import (
    Content,
    Group,
    Pairs,
    Text,
    new_pairs,
    new_table,
    spaced,
    tabulate,
)
from twin.reports.tables.why import why_report

MOST_FAULTS = 6
MOST_ALIKE = 8
SPREAD = "layers\napart by"
SETTLED = 0.9
"""Below this probability other kinds are named beside the verdict's."""

OPEN = 0.1
"""Probability from which a cause is named beside the likeliest."""

LEAST_SHOWN = 0.01
"""Of a cause, the least probability that is worth a row."""


def diagnosis_report(diagnosis: Diagnosis | Why) -> Content:
    """Return what is wrong, how sure that is and what would tell; then the faults, then on what."""
    if isinstance(diagnosis, Why):
        return why_report(diagnosis)
    return spaced([new_pairs(_answer(diagnosis)), *_weigh_faults(diagnosis),
                   new_pairs(_say_basis(diagnosis))])


def _answer(diagnosis: Diagnosis) -> Pairs:
    """Return verdict, rivals, what would tell and what to do; nothing of it twice."""
    verdict, kinds = diagnosis.verdict.fault, list(diagnosis.kinds.items())
    both = "two at once: " if JOINED in verdict.kind else ""
    text = f"{both}{diagnosis.answer}, {100 * diagnosis.stated:.0f} %"
    if diagnosis.verdict.probability < 0.6 * diagnosis.stated:
        text += f"; likeliest {verdict.name} {100 * diagnosis.verdict.probability:.0f} %"
    if verdict.kind == DECLARED and diagnosis.is_far and diagnosis.stated < SETTLED:
        text = f"nothing listed surely explains it: {text}"
    if diagnosis.stated < SURE:
        text += ", only the likeliest of several"
    lines = [("verdict", f"{text}; {diagnosis.gap}{diagnosis.beside}")]
    alike = diagnosis.not_distinguishable
    if alike:
        more = f" and {len(alike) - MOST_ALIKE} more" if len(alike) > MOST_ALIKE else ""
        lines.append(("not distinguishable", ", ".join(alike[:MOST_ALIKE]) + more))
    if verdict.kind == DECLARED:
        lines.append(("cannot see", diagnosis.blind_to))
    others = [f"{kind}{' at once' if JOINED in kind else ''} {100 * chance:.0f} %"
              for kind, chance in kinds[1:4] if chance >= LEAST_OR]
    if others and kinds[0][1] < SETTLED:
        lines.append(("or", ", ".join(others)))
    if diagnosis.telling:
        prefix = " or ".join(kind for kind, _ in kinds[:2]) + ": "
        lines.append(("to tell", diagnosis.telling.removeprefix(prefix)))
    remedy = diagnosis.remedy.replace(f"{diagnosis.gap}, and ", "", 1)
    if "--healthy" in diagnosis.telling:
        remedy = remedy.replace(GIVE, "", 1)
    lines.append(("remedy", remedy))
    if diagnosis.errors == STAND_IN:
        lines.append(("caution", "other kernels stand in for those that ran: faults of kernels and "
                                 "small faults may be accused or missed"
                                 + ("" if "--healthy" in diagnosis.telling
                                    else "; give --healthy DIR")))
    return lines


def _weigh_faults(diagnosis: Diagnosis) -> list[Content | None]:
    """Return the likeliest faults; under them once the evidence of the verdict that rows repeat."""
    shown = list_likeliest(diagnosis.findings, MOST_FAULTS)
    common = [text for text in shown[0].evidence[1:]
              if text != ADDED and any(text in one.evidence for one in shown[1:])]
    own = {id(one): [text for text in one.evidence[1:] if text not in (*common, ADDED)]
           for one in shown}
    more = {}
    for kind, last in {one.kind: one for one in shown}.items():
        rest = [one.probability for one in diagnosis.findings
                if one.kind == kind and one not in shown]
        if sum(rest) >= LEAST_SHOWN:
            more[id(last)] = f" ({len(rest)} more of its kind: {_say_chance(sum(rest))})"
    columns = [
        number("of its\nkind", lambda one: diagnosis.kinds[one.kind], _say_chance),
        number("probability", "probability", _say_chance),
        Column("fault", lambda one: one.fault.name + more.get(id(one), "")), Column("kind"),
        number(f"{diagnosis.origin} /\npredicted",
               lambda one: diagnosis.measured / sum(one.predicted.values()), say_ratio),
        number(SPREAD, lambda one: "".join(one.evidence[:1]).rpartition(APART)[2], "{}"),
        Column("evidence", lambda one: "; ".join(own[id(one)])) if any(own.values()) else None]
    table = tabulate(columns, shown, "what explains the pattern", drops=(SPREAD,),
                     style=lambda one: "bold" if one is diagnosis.verdict else "")
    alike = "unless its row says otherwise" if any(own.values()) else "alike"
    return [table, f"of each {alike}: {'; '.join(common)}" if common else None,
            f"two at once: {ADDED}" if any(ADDED in one.evidence for one in shown) else None]


def _say_chance(chance: float) -> str:
    return format_chance(chance).replace("%", " %")


def _say_basis(diagnosis: Diagnosis) -> Pairs:
    """Return what the verdict rests on, and what it cannot see."""
    left_out = diagnosis.left_out and f" {diagnosis.left_out}"
    return [
        ("pattern", f"{diagnosis.quantity} of {diagnosis.over}{left_out}; errors: "
                    f"{diagnosis.errors.source}"),
        ("rests on", "; ".join(filter(None, (", ".join(diagnosis.rests_on),
                                             _describe_counters(diagnosis))))),
        *(("observed", text) for text in diagnosis.observations),
        *([("no visible effect", diagnosis.unseen)] if diagnosis.unseen else [])]


def possible_table(possible: Sequence[Possible], account: Account) -> Content:
    """Return which prices could explain what no counter covers, and what would show which."""
    rows = list_open(account)
    inside = sum(row.unexplained for row in rows)
    outside = account.total.unexplained - inside
    unit = name_unit(account.unit)
    ratios = [1 + row.unexplained / row.first for row in rows]
    alike = max(ratios) < 2 * min(ratios)  # assumed

    def write(amount: int) -> str:
        return write_amount(amount, account.unit, "+")

    of_all = f"{write(inside)} {unit}".rstrip() + f" of {len(rows)} layers" * bool(outside)
    table = tabulate((
        Column("cause", lambda one: _name(one, alike)),
        number("largest", lambda one: 100 * one.probability, "{:.0f} %"),
        number("would explain", lambda one: write(one.expected), "{}"),
        number("5 to 95 %", lambda one: f"{write(one.low)} to {write(one.high)}", "{}"),
        number("price uncertain by", lambda one: None if one.unsure is None else 100 * one.unsure,
               "{:.0f} %")), [one for one in possible if one.probability >= LEAST_SHOWN], title=(
        f"prices that could explain the {of_all} no counter covers"
        + f" ({write(outside)} are outside them)" * bool(outside)
        + "; largest: probability that this price's error is the largest part"), drops=(
            "price uncertain by",))
    open_ones = [one for one in possible if one.probability >= OPEN] or possible[:1]
    text = " or ".join(f"{_name(one, alike)}, {100 * one.probability:.0f} %" for one in open_ones)
    if open_ones[0].cause == KERNELS:
        text += ": other kernels or tasks, or a fault of the set-up, which `twin diagnose` weighs"
    elif len(open_ones) > 1:
        text += (": cycles alone do not decide; micro-benchmarks measure prices (twin plan, then "
                 "twin calibrate, then --calibration FILE)")
    return spaced([table, new_pairs([("likeliest", text)])])


def _name(possible: Possible, alike: bool) -> str:
    """Return a cause, and the operator whose kernels no price explains, or that all are alike."""
    return possible.cause + (f" (kernels of {possible.mostly})" if possible.mostly else
                             ", all layers alike" * (alike and possible.cause == KERNELS))


def _describe_counters(diagnosis: Diagnosis) -> str:
    """Return whether a core has the counts it rests on."""
    if not diagnosis.counters:
        return f"{diagnosis.quantity} alone, as any core with a cycle counter sends"
    return (f"a Cortex-M without a PMU (M4, M7, M33) cannot count "
            f"{' and '.join(diagnosis.counters)}")


def split_table(splits: Mapping[str, Split], difference: Difference) -> Content:
    """Return the idealised split, for what was predicted and for what was diagnosed."""
    names = tuple(splits)
    table = new_table(("resource made ideal", *names), names)
    for resource in splits[names[0]].shares:
        table.add_row((resource, *(f"{splits[name].shares[resource]:+,}" for name in names)))
    table.add_row(("work that remains", *(f"{splits[name].work:,}" for name in names)))
    time = difference.account("time")
    if time is not None:
        measured = time.total.second
        table.add_row(("unexplained", *(f"{measured - splits[name].total:+,}" for name in names)))
        table.add_row(("measured", *(f"{measured:,}" for _ in names)), style="bold")
    else:
        table.add_row(("total", *(f"{splits[name].total:,}" for name in names)), style="bold")
    title = Text("a view, not the bill: predicted ns shared by Shapley value (what a resource "
                 "saves depends on which others are ideal; a share is the mean over all orders)",
                 "bold")
    return Group(title, table)
