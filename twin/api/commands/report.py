"""`twin report`: all that is known of a deployment on one page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from calibration.measurement.measurement import read_measurement
from calibration.power_trace.excerpt import read_excerpt
from hwmodels.errors import check_extra, check_word
from hwmodels.files import File
from twin.api.commands.check import PERIOD, check
from twin.api.commands.check import Check as Checked
from twin.api.commands.study import open_study
from twin.api.commands.sweep import limits_of, make_deployer
from twin.api.commands.variants import predict_variants
from twin.api.requests import takes
from twin.api.requests.prediction import Check
from twin.api.requests.reporting import Report
from twin.api.requests.studies import ReportStudy
from twin.attribution import views
from twin.attribution.compatibility import NOTE, REFUSE, agree, require_same
from twin.attribution.diagnosis.setup import deploy_measured
from twin.attribution.folders import find_folder
from twin.attribution.measured import read_folder, side_of_measurement
from twin.attribution.predicted import side_of_prediction
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.prediction import Prediction
from twin.reports.export import check_place, write_file
from twin.reports.page.deployment import Report as Outline
from twin.reports.page.deployment import describe_report
from twin.reports.page.differences import say_remedy
from twin.reports.page.memory import find_locality
from twin.reports.page.page import render_page
from twin.reports.page.parts import Page
from twin.reports.page.power import Recording
from twin.reports.page.results import describe_result
from twin.reports.page.variants import describe_variants
from twin.reports.page.written import LENGTHS, render_markdown, render_pdf
from twin.reports.tables.advice import say_best
from twin.studies.advice import give_advice
from twin.studies.change import Change
from twin.studies.limits import Limits
from twin.studies.points import Deployer
from twin.studies.remedies import try_changes
from twin.studies.results import SUFFIXES, Table
from twin.studies.study.session import Session
from twin.studies.sweep import Progress
from twin.studies.table_files import read_frame, read_table

ENDINGS = (".html", ".htm", ".md", ".pdf")
"""Of the files a report can be."""


@takes(Report)
def report(asked: Report) -> str:
    """Write the page of a deployment, of several, or of what a command found; it opens offline.

    HTML; the same deployment gives the same text. Of a deployment from `twin.deploy` all options
    hold; `limits` are those of `check`. Several stand beside each other, by what they are called,
    with `chain` each a stage made of the one before. Else the folder of a study, a table of a sweep
    or its data frame, or what `sweep`, `select`, `port`, `compare`, `attribute`, `diagnose`,
    `diff`, `what_if` or `open_study` returned.

    Raises
    ------
    ToolMissingError
        When the extra "page" is not installed.
    """
    return render_page(describe(asked))


def write_report(subject: Any, file: File, *, length: str = "full", **options: Any) -> Path:
    """Write a report as a page that opens offline, as Markdown, or as PDF; returns the file.

    Parameters
    ----------
    subject : Deployment, mapping of str to Deployment, path, or what a verb returned
        As for `report`.
    file : str or path
        Where to: .html, .md or .pdf.
    length : str
        "full", or of Markdown and PDF "short": one page.
    options
        As for `report`.

    Raises
    ------
    UsageError
        For another ending or length.
    """
    drawn = check_report(file, length) == ".pdf" and length == "full"
    asked = Report(subject, **options)
    return write_page(describe(asked), file, length, _list_pictures(asked) if drawn else ())


def check_report(file: File, length: str = "full") -> str:
    """Return the ending of a report, before anything is computed.

    Raises
    ------
    UsageError
        For another ending or length, or a place that cannot be written.
    """
    ending = Path(file).suffix.lower()
    if ending not in ENDINGS:
        raise UsageError(f"{file}: a report ends in {', '.join(ENDINGS)}")
    check_word("length", length, LENGTHS, UsageError)
    if length == "short" and ending in (".html", ".htm"):
        raise UsageError(f"{file}: a page is whole; accepted with --length short: .md, .pdf")
    if ending == ".pdf":
        check_extra("pictures", "matplotlib", "plot")
    check_place(fspath(file))
    return ending


def write_page(page: Page, file: File, length: str = "full",
               pictures: Sequence[Callable[[], Any]] = ()) -> Path:
    """Write a page in the form its file's name ends with."""
    place, ending = Path(file), Path(file).suffix.lower()
    if ending == ".md":
        return write_file(place, render_markdown(page, length).encode())
    if ending == ".pdf":
        return write_file(place, render_pdf(page, length, pictures))
    return write_file(place, render_page(page).encode())


def _list_pictures(asked: Report) -> list[Callable[[], Any]]:
    """Return what draws each picture of a deployment; of anything else there is none."""
    if not isinstance(asked.subject, Deployment):
        return []
    from twin.reports.figures.overview import EPOCH_PICTURES, PICTURES

    made = predict_calibrated(asked.subject, temperature=asked.temperature,
                              calibration=fspath(asked.calibration))
    drawn = PICTURES | (EPOCH_PICTURES if made.tasks else {})
    return [partial(draw, made) for draw in drawn.values()]


def describe(asked: Report) -> Page:
    """Return what `report` says, whatever it is written as."""
    subject, calibration, command = asked.subject, fspath(asked.calibration), asked.command
    held: dict[str, Any] = {
        name.removesuffix("_bytes") if name.startswith("max_") else name: one
        for name, one in (asked.limits or {}).items() if one is not None}
    judged = Check(subject, temperature=asked.temperature, calibration=calibration, **held)
    deployer = make_deployer(judged, [one.board for one in (
        subject.values() if isinstance(subject, Mapping) else [subject])
        if isinstance(one, Deployment)])
    limits = limits_of(judged)
    if not isinstance(subject, Deployment):
        if asked.measured is not None or asked.published or asked.power is not None:
            raise UsageError("a measurement and published rows stand beside one deployment; "
                             "accepted: one board, one library, no stages")
        if isinstance(subject, Mapping):
            made = predict_variants(subject, deployer, limits, asked.on_progress)
            return describe_variants(made, chain=asked.chain, limits=limits, command=command)
        found = open_result(subject) if isinstance(subject, str | PathLike) \
            else read_frame(subject) if hasattr(subject, "iterrows") else subject
        return describe_result(found, command)
    changes = asked.changes and not subject.target.executes  # Of a program nothing is rebuilt.
    checked, own = judge_measured(check(**vars(judged)), asked.measured), deployer.state(subject)
    prediction = checked.prediction
    recording, doubts = (None, ()) if asked.power is None else _record_beside(
        prediction, asked.power, asked.anyway)
    beside = None if asked.measured is None else views.attribute_measured(
        prediction, fspath(asked.measured), options={}, calibration=calibration,
        anyway=asked.anyway)
    rows = views.compare_with_published(
        subject.graph, subject.board.name, calibration=calibration
    ) if asked.published else None
    fault = "" if beside is None else say_remedy(beside)
    advice = fault if fault or checked.met or not changes or not held else say_best(give_advice(
        own, _hold_as_measured(replace(limits, max_price_usd=None), checked), deployer))
    return describe_report(Outline(
        prediction=prediction, command=command, measured=beside, published=rows, power=recording,
        row=checked.row, requirements=checked.requirements if limits else (),
        locality=find_locality(prediction),
        remarks=(*checked.notes, *(() if beside is None else beside.remarks), *doubts),
        advice=advice, changes=rank_changes(own, deployer, asked.on_progress) if changes else None))


def judge_measured(checked: Checked, folder: File | None) -> Checked:
    """Judge limits on time by a measurement, where it is of the same network and board."""
    if folder is None:
        return checked
    theirs = side_of_measurement(read_folder(fspath(folder))[0], fspath(folder))
    time_ns = theirs.whole.amounts.get("time")
    if time_ns is None or any(
            one.level == REFUSE for one in agree(side_of_prediction(checked.prediction), theirs)):
        return checked
    wake_up_us = 0.0 if checked.row is None else checked.row.wake_up_us
    times_ms = {"time": time_ns / 1e6, PERIOD: time_ns / 1e6 + wake_up_us / 1e3}
    return replace(checked, requirements=tuple(
        replace(one, measured=times_ms[one.name], counted=theirs.kind)
        if one.name in times_ms else one for one in checked.requirements))


def _hold_as_measured(limits: Limits, checked: Checked) -> Limits:
    """Hold predictions to a limit on time as far off as they are beside the measurement."""
    held = next((one for one in checked.requirements if one.name == "time" and one.measured), None)
    if held is None or held.predicted is None or held.measured is None:
        return limits
    return replace(limits, max_time_us=1e3 * held.limit * held.predicted / held.measured)


def read_recording(folder: File) -> Recording:
    """Return what a power meter saw, as `twin energy` kept it."""
    place = find_folder(Path(folder))
    return Recording(excerpt=read_excerpt(place), energies=read_measurement(place))


def _record_beside(prediction: Prediction, folder: File,
                   anyway: bool) -> tuple[Recording, tuple[str, ...]]:
    """Return a recording and what to warn of; refuse one of another network, board or clock."""
    recording = read_recording(folder)
    found = require_same(side_of_prediction(prediction),
                         side_of_measurement(recording.energies, fspath(folder)), anyway=anyway)
    return recording, tuple(f"--power: {one}" for one in found if one.level != NOTE)


def open_result(path: File) -> Session | Table:
    """Return the study of a folder, or the rows of a table a sweep wrote.

    Raises
    ------
    UsageError
        For what is neither.
    """
    place = Path(path)
    if place.suffix.lower() in SUFFIXES and place.is_file():
        return read_table(place)
    if (place / "session.json").is_file():
        return open_study(place)
    raise UsageError(f"{path}: is not a folder of a study and no table of a sweep; a model needs "
                     "its board: -b BOARD")


def deploy_beside(folder: str, model: str, board: str, **options: Any) -> Deployment:
    """Put a model on a board as a measurement of it was set up, where nothing else is stated.

    Parameters
    ----------
    model, board
        As for `deploy`.
    **options
        Runtime, clock, placement ... of `deploy_measured`, which `attribute` asks, too.
    """
    measurement, where = read_folder(folder)
    deployment, stand_in = deploy_measured(measurement, where, model=model, board=board, **options)
    return deployment.noted((stand_in,), first=True) if stand_in else deployment


def rank_changes(deployment: Deployment, deployer: Deployer,
                 on_progress: Progress | None = None) -> tuple[Change, ...]:
    """Return settings and rebuilds, each predicted, fastest first, those that cannot be last."""
    tried = try_changes(deployment, deployer, on_progress=on_progress)
    tried = [one for one in tried if one.time_ratio != 1 or one.energy_ratio != 1]
    tried.sort(key=lambda one: (one.row.failure != "", one.time_ratio or float("inf")))
    return tuple(tried)


@takes(ReportStudy)
def report_study(asked: ReportStudy) -> Path:
    """Write a finished study as a report; methods, findings, limits, rows, checklist.

    Raises
    ------
    UsageError
        For another ending or length.
    """
    from twin.reports.figures.studies import draw_front_figure
    from twin.reports.figures.study import draw_effects, draw_levels
    from twin.reports.page.studies import describe_study

    drawn = check_report(asked.file, asked.length) == ".pdf" and asked.length == "full"
    done = open_study(asked.folder)
    study, table = done.study, done.load_results()
    pictures: list[Callable[[], Any]] = []
    if drawn and study.finding is not None:
        pictures += [partial(draw, study, study.finding, table)
                     for draw in (draw_effects, draw_levels)]
    if drawn and any(row.front for row in table.rows):
        pictures.append(partial(draw_front_figure, table))
    return write_page(describe_study(done), asked.file, asked.length, pictures)
