"""Pages of what two sides say: a prediction beside a measurement, before and after, published."""

from __future__ import annotations

from collections.abc import Callable
from itertools import starmap
from operator import attrgetter, itemgetter
from statistics import median

from hwmodels.quantities import (
    format_energy,
    format_frequency,
    format_size,
    format_time,
    significant,
    write_setting,
)
from twin.attribution.diagnosis.faults import DECLARED
from twin.attribution.diagnosis.finding import Diagnosis
from twin.attribution.difference import SIZES, Difference, Row
from twin.attribution.side import Side
from twin.attribution.tasks import Figure, TaskReport
from twin.attribution.views import PublishedView, View, WhatIf
from twin.pricing.ledger import explain_time
from twin.reports.beside import KIND_LOOKS
from twin.reports.columns import Cell, Column, number
from twin.reports.page.beside import (
    describe_comparison,
    describe_published,
    judge,
    list_kinds,
    tell_gap,
)
from twin.reports.page.changes import write_change
from twin.reports.page.parts import (
    Answer,
    Page,
    Pairs,
    Section,
    describe_warnings,
    make_section,
    make_table,
    notes,
    present,
)
from twin.reports.page.provenance import made_by
from twin.reports.tables.difference import say_odds
from twin.reports.tables.limits import format_chance
from twin.studies.remedies import NOTABLE
from twin.studies.rows import WORDS

WRITERS = {"time": format_time, "energy": format_energy}


def describe_view(view: View, command: str = "") -> Page:
    """Return the page of a prediction beside a measurement."""
    difference = view.difference
    first, second = difference.first, difference.second
    verdict, tone = judge(difference)
    sections = [
        describe_warnings(view.remarks), describe_comparison(view),
        None if view.tasks is None else list_task_pairs(view.tasks),
        list_splits(view) if view.splits else None, list_sides(difference), made_by(command)]
    sentence = tell_gap(difference, difference.account("time") or difference.main)
    advice = ""
    if view.diagnosis is not None:
        sentence += f" Likeliest explanation: {_say_verdict(view.diagnosis)}."
        advice = view.diagnosis.remedy if view.diagnosis.remedy != "none needed" else ""
    return Page(title=f"{first.model} on {first.board}, {first.kind} beside {second.kind}",
                subtitle=f"{first.runtime or 'runtime not stated'} · {second.label}",
                verdict=verdict, tone=tone, sentence=sentence, advice=advice,
                advises="What to do next", answers=list_answers(difference),
                sections=present(sections))


def _say_verdict(diagnosis: Diagnosis) -> str:
    found = diagnosis.verdict
    return f"{found.fault.name} ({format_chance(found.probability)})"


def say_remedy(view: View) -> str:
    """Say what to do about a fault a measurement shows; "" where none is likeliest."""
    diagnosis = view.diagnosis
    if diagnosis is None or diagnosis.verdict.fault.kind == DECLARED:
        return ""
    return f"what runs is not what is predicted: {_say_verdict(diagnosis)}; {diagnosis.remedy}"


def list_answers(difference: Difference) -> tuple[Answer, ...]:
    """Return time and energy of both sides."""
    found = []
    for quantity, write in WRITERS.items():
        account = difference.account(quantity)
        if account is None:
            continue
        kinds = list_kinds(difference)
        for name, side, amount in ((kinds[0], difference.first, account.total.first),
                                   (kinds[1], difference.second, account.total.second)):
            ends = side.interval_us if quantity == "time" else side.energy_interval_uj
            interval = "" if ends is None else (f"{100 * (side.level or 0.9):.0f} % interval "
                                            f"{write(ends[0])} to {write(ends[1])}")
            found.append(Answer(
                f"{quantity} {name.partition(' ')[2]}".strip(), write(amount / 1e3),
                range=interval or (f"median of {side.runs} runs" if side.runs > 1 else ""),
                kind=side.kind if side.kind in KIND_LOOKS else ""))
    return (*found, *(
        Answer(f"{WORDS[row.name]} {name.rpartition(' ')[2]}", format_size(amount))
        for row in difference.totals if row.name in SIZES and row.gap
        for name, amount in zip(list_kinds(difference), (row.first, row.second), strict=True)))


def describe_difference(difference: Difference, command: str = "") -> Page:
    """Return the page of two predictions, or two measurements: what changed, and why."""
    first, second = difference.first, difference.second
    account = difference.account("time") or difference.main
    main, change = account.total, account.total.increase
    besides = difference.besides(account.quantity, 1 / NOTABLE - 1)
    word = "No change" + f" in {account.quantity}" * bool(besides) if (
        not main.gap or change is None) else f"{100 * change:+.1f} % {account.quantity}"
    grown = [row for row in besides if row.gap > 0]
    tone = "bad" if main.gap > 0 or (grown and not main.gap) else "good" * (
        main.gap < 0 and not grown)
    sentence = tell_gap(difference, account) if main.gap else \
        f"Both sides take the same {account.quantity}."
    sections = [describe_warnings(difference.warnings),
                describe_comparison(View(difference=difference)), list_sides(difference),
                made_by(command)]
    return Page(title=f"{second.model} on {second.board}, before and after",
                subtitle=f"{first.label} → {second.label}",
                verdict=", ".join((word, *(_write_growth(row) for row in besides))), tone=tone,
                sentence=sentence, answers=list_answers(difference), sections=present(sections))


def _write_growth(row: Row) -> str:
    change = "new" if not row.first else write_change(row.second / row.first)
    return f"{change} {WORDS.get(row.name, row.name)}"


def describe_what_if(changed: WhatIf, command: str = "") -> Page:
    """Return the page of a change: what it moves, and how surely it helps."""
    from dataclasses import replace

    page = describe_difference(changed.difference, command)
    settings = ", ".join(starmap(write_setting, changed.changes.items()))
    deployment = changed.before.deployment
    odds = f" It is {odds}." if (odds := say_odds(changed)) else ""
    sentences = make_section("why", "Why", Pairs((
        ("before", explain_time(changed.before)), ("after", explain_time(changed.after)))))
    warnings = describe_warnings(changed.remarks)
    return replace(page, title=f"{deployment.graph.name} on {deployment.board.name}: {settings}",
                   subtitle=f"{deployment.runtime.identity} · one change, predicted again"
                            + ("" if deployment.board.idle() is None else
                               " · energy above idle"),
                   sentence=page.sentence + odds, sections=(
                       *([warnings] if warnings else []), sentences,
                       *(one for one in page.sections if one.name != "warnings")))


def describe_published_view(view: PublishedView, command: str = "") -> Page:
    """Return the page of a network beside its published rows."""
    shown = view.opened
    ratios = sorted(one.latency_ratio for one in shown if one.latency_ratio)
    energies = sorted(one.energy_ratio for one in shown if one.energy_ratio)
    answers = tuple(Answer(
        f"{name}, predicted over published", f"{median(found):.2f}",
        range=f"middle of {len(found)}; {found[0]:.2f} to {found[-1]:.2f}")
        for name, found in (("time", ratios), ("energy", energies)) if found)
    sentence = (f"{len(shown)} open published results; predicted over published time lies from "
                f"{ratios[0]:.2f} to {ratios[-1]:.2f}." if ratios else
                "No open published result has a time that is predicted." if shown else "")
    return Page(
        title=f"{view.model} on {view.board.name}, predicted beside published",
        subtitle="each row with its own library, clock and supply", verdict=(
            f"Median {median(ratios):.2f} of published" if ratios else "Nothing to compare"),
        sentence=sentence, answers=answers, sections=(describe_published(view), made_by(command)))


SIDES: dict[str, Callable[[Side], str]] = {
    "kind": attrgetter("kind"), "model": attrgetter("model"), "board": attrgetter("board"),
    "runtime": attrgetter("runtime"), "clocks": lambda side: ", ".join(
        f"{name} {format_frequency(hertz)}" for name, hertz in side.clocks_hz.items()),
    "temperature": lambda side: side.temperature or "not stated",
    "placement": lambda side: ", ".join(
        f"{what} in {where}" for what, where in side.placement.items()),
    "runs": lambda side: str(side.runs or ""), "calibration": attrgetter("calibration"),
    "from": attrgetter("source")}
"""How a side was set up."""


def list_sides(difference: Difference) -> Section:
    """Return what both sides are of, and what differs in how they were set up."""
    rows = [(name, tell(difference.first), tell(difference.second)) for name, tell in SIDES.items()]
    return make_section(
        "sides", "Set-up of both sides", make_table("side-table", "As stated by each", (
            Column("what", itemgetter(0)), Column("first", itemgetter(1)),
            Column("second", itemgetter(2)),
            Column("", lambda row: "differs" if row[1] != row[2] and row[1] and row[2] else "",
                   tone="dim")), [row for row in rows if row[1] or row[2]]),
        *notes(*map(str, difference.findings)), folded=True)


def list_task_pairs(report: TaskReport) -> Section:
    """Return an accelerator's totals and its tasks on both sides."""
    nothing, word = Figure(first=None, second=None), report.word
    heads = (number("first", lambda row: row[1].first, "{:,.4g}"),
             number("second", lambda row: row[1].second, "{:,.4g}"),
             number("first / second", lambda row: row[1].ratio, "{:.2f}"))
    pairs = []
    for pair in report.pairs:
        part = pair.first or pair.second
        core = pair.lines.get("core, NPU cycles") or next(iter(pair.lines.values()), nothing)
        pairs.append(("" if part is None else part.name or str(part.index), core, pair.lines))
    return make_section(
        f"{word}s", f"{word.capitalize()}s", make_table(
            f"{word}-table", "NPU cycles; every line of the report folds out",
            (Column(word, itemgetter(0)), *heads), pairs, details=lambda row: (
                (name, f"{_write(one.first)} and {_write(one.second)}")
                for name, one in row[2].items())),
        make_table(f"{word}-totals", "The whole inference", (Column("line", itemgetter(0)), *heads),
                   {**report.whole, **report.stated}.items()),
        *notes(*report.gaps), lead=f"Paired by {report.paired_by}.")


def _write(value: float | None) -> str:
    return "not there" if value is None else significant(value, 6)


def list_splits(view: View) -> Section:
    """Return the predicted time shared over idealised resources."""
    first = next(iter(view.splits.values()))
    columns = [number(name, lambda resource, split=split: Cell(  # type: ignore[misc]
        f"{split.shares[resource]:+,}", split.shares[resource])
        if resource in split.shares else Cell(f"{split.work:,}", split.work))
        for name, split in view.splits.items()]
    return make_section(
        "ideal", "What each resource costs", make_table(
            "split-table", "Resource made ideal", (Column("resource", str), *columns),
            (*first.shares, "work that remains")),
        lead="Predicted ns shared by Shapley value: what a resource saves depends on which others "
             "are ideal, a share is the mean over all orders. A view, not the bill.")
