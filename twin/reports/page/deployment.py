"""The page of a deployment: what it costs, why, beside what was measured, and what would help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calibration.fitting.intervals import Interval
from hwmodels.frozen import NamedTexts, frozen
from hwmodels.quantities import (
    NOT_KNOWN,
    drop_none,
    format_energy,
    format_frequency,
    format_number,
    format_power,
    format_share,
    format_size,
    format_time,
)
from twin.attribution.views import PublishedView, View
from twin.pricing.grade import grade_energy, grade_prediction
from twin.pricing.layer_columns import LAYER_COLUMNS, make_rows
from twin.pricing.ledger import (
    explain_time,
    line_energy_uj,
    line_time_us,
    make_ledger,
    name_energies,
)
from twin.pricing.locality import Locality
from twin.pricing.prediction import LayerPrediction, Prediction
from twin.pricing.requirement import Requirement
from twin.reports.columns import Cell, Column, number
from twin.reports.page.beside import describe_comparison, describe_published
from twin.reports.page.beside import judge as judge_sides
from twin.reports.page.bill import list_bill_plots
from twin.reports.page.changes import describe_changes, list_places, tell_best
from twin.reports.page.charts import plot_chart
from twin.reports.page.differences import list_answers as list_both
from twin.reports.page.memory import draw_arena, list_cache_plots
from twin.reports.page.parts import (
    Answer,
    Notes,
    Page,
    Pairs,
    Plot,
    Section,
    Table,
    describe_warnings,
    make_section,
    make_table,
)
from twin.reports.page.power import Recording, describe_power
from twin.reports.page.provenance import describe_certainty, describe_provenance
from twin.reports.roofline import chart_roofline, list_sides
from twin.reports.tables.header import header_pairs, list_bill_notes
from twin.reports.tables.limits import format_chance
from twin.reports.tables.study_sentences import say_duty
from twin.studies.change import Change
from twin.studies.rows import Row


@frozen
class Report:
    """All that is known of a deployment.

    Parameters
    ----------
    command
        What made it, to be made again.
    requirements
        Limits it is held to.
    locality
        Of its accesses in the caches; None where nothing is cached, or an accelerator runs it.
    changes
        What was tried, best first; None: nothing was.
    measured
        Beside a measurement.
    published
        Beside published rows.
    power
        What a power meter saw of it.
    remarks
        Warnings besides the prediction's.
    row
        With what its duty draws, where one was asked.
    advice
        Where limits are missed, what would meet them; "" the change that saves most is named.
    """

    prediction: Prediction
    command: str = ""
    requirements: tuple[Requirement, ...] = ()
    locality: Locality | None = None
    changes: tuple[Change, ...] | None = None
    measured: View | None = None
    published: PublishedView | None = None
    power: Recording | None = None
    remarks: tuple[str, ...] = ()
    row: Row | None = None
    advice: str = ""


def describe_report(report: Report) -> Page:
    """Return the page of a deployment, the answer first."""
    prediction = report.prediction
    deployment = prediction.deployment
    board = deployment.board
    hertz = board.core_clock.frequency_hz
    verdict, tone = judge(report)
    return Page(
        title=f"{deployment.graph.name} on {board.name}",
        subtitle=f"{board.soc}, {board.core.model} at {format_frequency(hertz)} · "
                 f"{deployment.runtime.identity} · {prediction.temperature} caches",
        verdict=verdict, tone=tone, sentence=explain_time(prediction) + ".",
        answers=list_answers(report), advice=report.advice or tell_best(report.changes),
        sections=tuple(drop_none(_list_sections(report))))


def describe_refusal(title: str, reason: str, command: str) -> Page:
    """Return the page of what does not fit: why, and what would make it fit."""
    return Page(title=title, subtitle="nothing was predicted", verdict="Does not fit", tone="bad",
                sentence=reason, sections=(make_section(
                    "provenance", "Made by", Notes((command,), kind="code")),))


def _list_sections(report: Report) -> Sequence[Section | None]:
    prediction = report.prediction
    tasks = None
    if prediction.tasks:
        from twin.reports.page.accelerated import describe_tasks

        tasks = describe_tasks(prediction)
    return (
        make_section(
            "limits", "Limits", list_requirements(report), None if report.row is None else
            Notes((f"Duty: {say_duty(report.row)}",)))
        if report.requirements else None,
        describe_warnings((*prediction.warnings, *report.remarks)),
        None if report.measured is None else describe_comparison(report.measured),
        None if report.published is None else describe_published(report.published),
        make_section("bill", "Where it goes", *list_bill_plots(prediction), lead=(
            "One inference, itemised. Every event has one cause; lines sum to the total.")),
        make_section(
            "layers", "Layers", list_layers(prediction),
            Notes(list_bill_notes(prediction, make_ledger(prediction))),
            lead="A header sorts, the box filters, the triangle opens a layer's own bill."),
        tasks, make_section("memory", "Memory", *_memory_items(report)),
        make_section("roofline", "Roofline", *(
            plot_chart(chart_roofline(prediction, side, place), height_px=440)
            for place, side in enumerate(list_sides(prediction)) if side.points),
            lead="What each layer attains under what core and memories allow. Areas are "
                 "shares of the time."),
        None if report.power is None else describe_power(report.power, prediction),
        None if report.changes is None else describe_changes(report.changes, prediction),
        describe_certainty(prediction, report.measured, report.published),
        make_section("deployment", "Deployment", Pairs(
            tuple(_name_pairs(header_pairs(prediction)))), folded=True),
        describe_provenance(prediction, report.command, report.measured, report.published))


def _name_pairs(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Give a pair without a name that of the pair above."""
    found: list[tuple[str, str]] = []
    for name, value in pairs:
        if name or not found:
            found.append((name, value))
        else:
            found[-1] = (found[-1][0], f"{found[-1][1]}; {value}")
    return found


def judge(report: Report) -> tuple[str, str]:
    """Return the answer in a few words, and its tone: does it fit, are limits met."""
    prediction = report.prediction
    if (prediction.ram_bytes > prediction.ram_available_bytes
            or prediction.flash_bytes > prediction.flash_available_bytes):
        return "Does not fit", "bad"
    if not report.requirements:
        if report.measured is None:
            return "Fits", "good"
        beside, tone = judge_sides(report.measured.difference)
        return "Fits; " + beside[0].lower() + beside[1:], tone
    unmet = [one for one in report.requirements if not one.met]
    texts = {one.name: one.name if one.measured is None else
            f"{one.name} ({one.counted} {format_number(one.measured, one.decimals)} {one.unit}, "
            f"predicted {format_number(one.predicted, one.decimals)} {one.unit})"
            for one in report.requirements}
    measured = [text for name, text in texts.items() if text != name]
    missed = [texts[one.name] for one in unmet if one.predicted is not None]
    if missed:
        return f"Fits, but {' and '.join(missed)} over the limit", "bad"
    if unmet:
        return f"Fits; may meet the limits: {unmet[0].name} not known", ""
    unsure = [one.name for one in report.requirements if not one.surely_met]
    return (f"Fits; limits met by prediction, {' and '.join(unsure)} may exceed" if unsure else
            f"Fits and meets every limit{''.join(f': {one}' for one in measured)}"
            ), "" if unsure else "good"


def list_answers(report: Report) -> tuple[Answer, ...]:
    """Return time, energy, RAM and flash, with their intervals or room."""
    prediction = report.prediction
    measured = [] if report.measured is None else [
        one for one in list_both(report.measured.difference) if one.kind != "predicted"]
    grade, drawn_grade = grade_prediction(prediction), grade_energy(prediction)
    drawn = [*(_answer(name, energy_uj, interval, format_energy, drawn_grade) for name, (
        energy_uj, interval) in name_energies(prediction).items()),
        *([] if report.row is None else [
            _answer("mean power", report.row.mean_mw, report.row.mean, format_power, drawn_grade)])]
    return (
        _answer("time", prediction.time_us, prediction.time_interval, format_time, grade),
        *measured,
        *(replace(one, range="; ".join(filter(None, (one.range, "of the predicted time"))))
          if measured else one for one in drawn),
        _room("RAM", prediction.ram_bytes, prediction.ram_available_bytes),
        _room(prediction.deployment.store_name, prediction.flash_bytes,
              prediction.flash_available_bytes))


def _answer(name: str, value: float | None, interval: Interval | None, write: object,
            grade: str) -> Answer:
    assert callable(write)
    if value is None or interval is None:
        reach = "" if value is None else f"no interval: stated prices; {grade}"
        return Answer(name, write(value), range=reach)
    scale = 1.15 * interval.high
    return Answer(
        name, write(value),
        range="; ".join(filter(None, (interval.describe(write), grade))),
        span=(interval.low / scale, interval.high / scale, value / scale))


def _room(name: str, used_bytes: int, room_bytes: int) -> Answer:
    return Answer(name, format_size(used_bytes),
                  range=f"{format_share(used_bytes, room_bytes)} of {format_size(room_bytes)}",
                  used=used_bytes / room_bytes if room_bytes else None)


REQUIREMENTS = (
    Column("limit on", lambda one: f"{one.name}, {one.unit}"),
    number("predicted", lambda one: _write_figure(one, one.predicted), kind="predicted"),
    number("measured", lambda one: _write_figure(one, one.measured)),
    number("limit", lambda one: _write_figure(one, one.limit)),
    Column("interval", lambda one: "" if one.interval is None else " to ".join(
        _write_figure(one, end).text for end in (one.interval.low, one.interval.high))),
    number("chance above", "chance_above", format_chance),
    Column("verdict", "verdict", tone=lambda one: "good" if one.surely_met else
           "" if one.met or one.predicted is None else "bad"))


def list_requirements(report: Report) -> Table:
    """Return the limits, what is predicted and measured, and how sure it is."""
    counted = next((one.counted for one in report.requirements if one.measured is not None), "")
    return make_table("limit-table", "Limits and predictions", [
        replace(one, header=counted, kind=counted) if one.header == "measured" else one
        for one in REQUIREMENTS if counted or one.header != "measured"], report.requirements)


def _write_figure(one: Requirement, value: float | None) -> Cell:
    return Cell(format_number(value, one.decimals), value)


_IN_SIGHT = ("layer", "operator", "ms", "share", "uJ")
"""Columns of layers that come first: a narrow screen shows no more without scrolling."""

_LAYER_COLUMNS = tuple((Column(
    one.page, lambda row, one=one: Cell(  # type: ignore[misc]
        (one.full or one.text)(row), one.take(row) if one.number else None,
        tone=one.tone), number=one.number, kind=one.kind), one) for one in sorted(
            (one for one in LAYER_COLUMNS if one.page), key=lambda one:
            _IN_SIGHT.index(one.page) if one.page in _IN_SIGHT else len(_IN_SIGHT)))


def list_layers(prediction: Prediction) -> Table:
    """Return a row for each layer, with its own bill folded below it."""
    shown = make_rows(prediction, make_ledger(prediction))
    columns = [column for column, one in _LAYER_COLUMNS if prediction.tasks or not one.accelerated]
    total = {"operator": "total", "MACs": f"{prediction.macs:,}",
             "ms": f"{sum(row.time_ms for row in shown):,.3f}",
             "uJ": NOT_KNOWN if prediction.energy_uj is None else f"{prediction.energy_uj:,.1f}"}
    return make_table("layer-table", "Layers in the order they run", columns, shown,
                      details=lambda row: _layer_bill(prediction, row.layer),
                      total=[total.get(column.header, "") for column in columns])


def _layer_bill(prediction: Prediction, layer: LayerPrediction) -> NamedTexts:
    """Return a layer's causes with time and energy, then what it called."""
    found = []
    for clock in layer.bill.clocks():
        for cause in layer.bill.causes():
            cycles = layer.bill.cycles(clock, cause)
            energy = line_energy_uj(layer.bill, clock, cause)
            if cycles or energy:
                found.append((cause if len(layer.bill.clocks()) == 1 else f"{cause} ({clock})",
                              f"{format_time(line_time_us(prediction, clock, cycles))}"
                              + ("" if energy is None else f", {format_energy(energy)}")))
    sure = prediction.certainty
    if sure is not None and (interval := sure.layers[
            prediction.layers.index(layer)].time_us) is not None:
        found.append((f"{100 * interval.level:.0f} % interval", interval.write(format_time)))
    if layer.kernels:
        found.append(("kernels", ", ".join(dict.fromkeys(layer.kernels))))
    if layer.tasks:
        found.append((f"{prediction.compiler.task_name}s", ", ".join(layer.tasks)))
    return tuple(found)


def _memory_items(report: Report) -> tuple[Plot | Pairs | Notes, ...]:
    prediction = report.prediction
    deployment = prediction.deployment
    parts = tuple((f"RAM: {name}", f"{size:,} bytes")
                  for name, size in deployment.ram_parts.items() if size)
    places = list_places(report.changes or (), prediction)
    cached = () if report.locality is None else list_cache_plots(report.locality)
    return (Pairs((
        *parts, *((("arena", deployment.buffer.description),) if deployment.buffer else ()),
        (deployment.store_name, f"{prediction.flash_bytes:,} of "
                                f"{prediction.flash_available_bytes:,} bytes"),
        ("placement", f"weights in {deployment.weights_named}, arena in {deployment.arena_named}, "
                      f"code in {deployment.code}"))),
        *([Notes(("What to put where, each move alone: " + "; ".join(places),))]
          if places else []),
        draw_arena(prediction) if not prediction.placement.hides_lives else Notes((
            f"The arena takes {format_size(prediction.placement.arena_bytes)}; its compiler states "
            "no more, so there is no picture of its buffers",)), *cached,
        *([] if cached else [Notes((
            "no plot of working sets and miss rates: no access of the core looks up a data cache"
            if not prediction.tasks else
            "no plot of working sets and miss rates: the host starts with empty caches in each "
            f"{prediction.compiler.host_task}",))]))
