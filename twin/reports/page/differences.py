"""Pages of what two sides say: a prediction beside a measurement, before and after, published."""

from __future__ import annotations

from statistics import median

from hwmodels.quantities import format_energy, format_frequency, format_time, significant
from twin.attribution.difference import Difference
from twin.attribution.epochs import EpochReport
from twin.attribution.side import Side
from twin.attribution.views import PublishedView, View, WhatIf
from twin.pricing.ledger import explain_time
from twin.reports.page.beside import (
    describe_comparison,
    describe_published,
    judge,
    list_kinds,
    tell_gap,
)
from twin.reports.page.parts import (
    Answer,
    Cell,
    Column,
    Notes,
    Page,
    Pairs,
    Row,
    Section,
    Table,
    describe_warnings,
)
from twin.reports.page.provenance import made_by
from twin.reports.page.styles import KIND_STYLES
from twin.reports.tables.limits import format_chance

WRITERS = {"time": format_time, "energy": format_energy}


def describe_view(view: View, command: str = "") -> Page:
    """Return the page of a prediction beside a measurement."""
    difference = view.difference
    first, second = difference.first, difference.second
    verdict, tone = judge(difference)
    sections = [
        describe_warnings(view.remarks), describe_comparison(view),
        None if view.epochs is None else list_epoch_pairs(view.epochs),
        list_splits(view) if view.splits else None, list_sides(difference), made_by(command)]
    sentence = tell_gap(difference.account("time") or difference.main, list_kinds(difference))
    advice = ""
    if view.diagnosis is not None:
        found = view.diagnosis.verdict
        sentence += (f" Likeliest explanation: {found.fault.name} "
                     f"({format_chance(found.probability)}).")
        advice = view.diagnosis.remedy if view.diagnosis.remedy != "none needed" else ""
    return Page(title=f"{first.model} on {first.board}, {first.kind} beside {second.kind}",
                subtitle=f"{first.runtime or 'runtime not stated'} · {second.label}",
                verdict=verdict, tone=tone, sentence=sentence, advice=advice,
                advises="What to do next",
                answers=list_answers(difference),
                sections=tuple(one for one in sections if one is not None))


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
            told = "" if ends is None else (f"{100 * (side.level or 0.9):.0f} % interval "
                                            f"{write(ends[0])} to {write(ends[1])}")
            found.append(Answer(
                name=f"{quantity} {name.partition(' ')[2]}".strip(), value=write(amount / 1e3),
                range=told or (f"median of {side.runs} runs" if side.runs > 1 else ""),
                kind=side.kind if side.kind in KIND_STYLES else ""))
    return tuple(found)


def describe_difference(difference: Difference, command: str = "") -> Page:
    """Return the page of two predictions, or two measurements: what changed, and why."""
    first, second = difference.first, difference.second
    account = difference.account("time") or difference.main
    main, change = account.total, account.total.increase
    word = "No change" if not main.gap or change is None else (
        f"{100 * change:+.1f} % {account.quantity}")
    sentence = tell_gap(account, list_kinds(difference)) if main.gap else \
        f"Both sides take the same {account.quantity}."
    sections = [describe_warnings(difference.warnings),
                describe_comparison(View(difference=difference)), list_sides(difference),
                made_by(command)]
    return Page(title=f"{second.model} on {second.board}, before and after",
                subtitle=f"{first.label} → {second.label}", verdict=word,
                tone="good" if main.gap < 0 else "bad" if main.gap > 0 else "",
                sentence=sentence, answers=list_answers(difference),
                sections=tuple(one for one in sections if one is not None))


def describe_what_if(changed: WhatIf, command: str = "") -> Page:
    """Return the page of a change: what it moves, and how surely it helps."""
    from dataclasses import replace

    page = describe_difference(changed.difference, command)
    told = ", ".join(f"{path}={value}" for path, value in changed.changes.items())
    deployment = changed.before.deployment
    odds = "" if changed.odds is None or changed.before.time_us == changed.after.time_us else (
        f" It is faster with a probability of {format_chance(changed.odds)}: what is not known of "
        "prices is shared by both.")
    sentences = Section(name="why", title="Why", items=(Pairs(pairs=(
        ("before", explain_time(changed.before)), ("after", explain_time(changed.after)))),))
    warnings = describe_warnings(changed.remarks)
    return replace(page, title=f"{deployment.graph.name} on {deployment.board.name}: {told}",
                   subtitle=f"{deployment.runtime.identity} · one change, predicted anew"
                            + ("" if deployment.board.power.idle_mw is None else
                               " · energy above idle"),
                   sentence=page.sentence + odds, sections=(
                       *([warnings] if warnings else []), sentences,
                       *(one for one in page.sections if one.name != "warnings")))


def describe_published_view(view: PublishedView, command: str = "") -> Page:
    """Return the page of a network beside its published rows."""
    shown = [one for one in view.comparisons if not one.sealed]
    ratios = sorted(one.latency_ratio for one in shown if one.latency_ratio)
    energies = sorted(one.energy_ratio for one in shown if one.energy_ratio)
    answers = tuple(Answer(
        name=f"{name}, predicted over published", value=f"{median(found):.2f}",
        range=f"middle of {len(found)}; {found[0]:.2f} to {found[-1]:.2f}")
        for name, found in (("time", ratios), ("energy", energies)) if found)
    sentence = (f"{len(shown)} open published results; predicted over published time lies from "
                f"{ratios[0]:.2f} to {ratios[-1]:.2f}." if ratios else
                "No open published result has a time that is predicted.")
    return Page(
        title=f"{view.model} on {view.board.name}, predicted beside published",
        subtitle="each row with its own library, clock and supply", verdict=(
            f"Median {median(ratios):.2f} of published" if ratios else "Nothing to compare"),
        sentence=sentence, answers=answers,
        sections=(describe_published(view), made_by(command)))


def list_sides(difference: Difference) -> Section:
    """Return what both sides are of, and what differs in how they were set up."""
    def pairs(side: Side) -> list[str]:
        return [side.kind, side.model, side.board, side.runtime, ", ".join(
            f"{name} {format_frequency(hertz)}" for name, hertz in side.clocks_hz.items()),
            side.temperature or "not stated", ", ".join(
                f"{what} in {where}" for what, where in side.placement.items()),
            str(side.runs) if side.runs else "", side.calibration, side.source]

    names = ("kind", "model", "board", "runtime", "clocks", "temperature", "placement", "runs",
             "calibration", "from")
    rows = [Row(cells=(Cell(text=name), Cell(text=one), Cell(text=other),
                       Cell(text="differs" if one != other and one and other else "", tone="dim")))
            for name, one, other in zip(names, pairs(difference.first), pairs(difference.second),
                                        strict=True) if one or other]
    notes = tuple(str(one) for one in difference.findings)
    return Section(name="sides", title="Set-up of both sides", folded=True, items=(
        Table(name="side-table", caption="As stated by each", rows=tuple(rows), columns=(
            Column(header="what"), Column(header="first"), Column(header="second"),
            Column(header=""))), *([Notes(notes=notes)] if notes else [])))


def list_epoch_pairs(report: EpochReport) -> Section:
    """Return an accelerator's totals and its epochs on both sides."""
    def figure(value: float | None) -> Cell:
        return Cell(text="" if value is None else f"{value:,.4g}", value=value)

    def ratio(value: float | None) -> Cell:
        return Cell(text="" if value is None else f"{value:.2f}", value=value)

    totals = [Row(cells=(Cell(text=name), figure(one.first), figure(one.second),
                         ratio(one.ratio)))
              for name, one in {**report.whole, **report.stated}.items()]
    rows = []
    for pair in report.pairs:
        part = pair.first or pair.second
        core = pair.lines.get("core_npu_cycles") or next(iter(pair.lines.values()), None)
        rows.append(Row(cells=(
            Cell(text="" if part is None else part.name or str(part.index)),
            *((figure(core.first), figure(core.second), ratio(core.ratio)) if core else
              (Cell(text=""),) * 3)), details=tuple(
                  (name, f"{_write(one.first)} and {_write(one.second)}")
                  for name, one in pair.lines.items())))
    heads = (Column(header="first", number=True), Column(header="second", number=True),
             Column(header="first / second", number=True))
    return Section(name="epochs", title="Epochs", lead=f"Paired by {report.paired_by}.", items=(
        Table(name="epoch-table", caption="NPU cycles; every line of the report folds out",
              rows=tuple(rows), columns=(Column(header="epoch"), *heads)),
        Table(name="epoch-totals", caption="The whole inference", rows=tuple(totals),
              columns=(Column(header="line"), *heads)),
        *([Notes(notes=report.gaps)] if report.gaps else [])))


def _write(value: float | None) -> str:
    return "not there" if value is None else significant(value, 6)


def list_splits(view: View) -> Section:
    """Return the predicted time shared over idealised resources."""
    names = tuple(view.splits)
    first = view.splits[names[0]]
    rows = [Row(cells=(Cell(text=resource), *(
        Cell(text=f"{view.splits[name].shares[resource]:+,}",
             value=view.splits[name].shares[resource]) for name in names)))
        for resource in first.shares]
    rows.append(Row(cells=(Cell(text="work that remains"), *(
        Cell(text=f"{view.splits[name].work:,}", value=view.splits[name].work)
        for name in names))))
    return Section(name="ideal", title="What each resource costs", lead="Predicted ns shared by "
                   "Shapley value: what a resource saves depends on which others are ideal, a "
                   "share is the mean over all orders. A view, not the bill.", items=(
                       Table(name="split-table", caption="Resource made ideal", rows=tuple(rows),
                             columns=(Column(header="resource"), *(
                                 Column(header=name, number=True) for name in names))),))
