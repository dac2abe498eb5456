"""`twin guidelines`: what results of studies say of choosing and changing, as a document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from os import fspath
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from hwmodels.board.file import load_board
from hwmodels.files import File
from hwmodels.quantities import sum_by_key
from twin.api.commands.report import check_report, write_page
from twin.deployment.deploy import deploy
from twin.pricing.calibrated import predict_calibrated
from twin.reports.guide import chart_decisions, describe_guide
from twin.reports.page.parts import Page
from twin.reports.page.written import render_markdown
from twin.studies.decisions import Decision
from twin.studies.guidelines import Guidelines, core_class, learn
from twin.studies.results import Table
from twin.studies.study.definition import Study
from twin.studies.study.findings import tell_finding
from twin.studies.study.session import Session, open_session

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CAUSES = 3
"""Printed for a class of hardware."""

Causes = dict[str, list[tuple[str, float, str]]]


def guidelines(folders: Iterable[File]) -> str:
    """Return guidelines learnt from finished studies, as Markdown.

    Parameters
    ----------
    folders : iterable of str or path
        Of studies that were run; together of several models and boards.

    Raises
    ------
    StudyError
        For a folder that is none, or too few rows to learn from.
    ToolMissingError
        Without scikit-learn.
    """
    return render_markdown(_describe(folders)[1])


def _describe(folders: Iterable[File]) -> tuple[Guidelines, Page]:
    sessions = [open_session(fspath(folder)) for folder in folders]
    tables = [(one.study, _load(one)) for one in sessions]
    values: dict[str, list[str]] = defaultdict(list)
    for study, table in tables:
        for section in _list_sections(study):
            values[section] += [f"{study.name}: {line}" for line in tell_finding(study, table)]
    guide = learn(tables)
    return guide, describe_guide(guide, list_causes(sessions), values)


def _load(session: Session) -> Table:
    """Return the rows of libraries: programs a user brought are of no class."""
    table = session.load_results()
    return replace(table, rows=tuple(row for row in table.rows if not row.is_program))


_PATHS = {"placement": ("placement.", "caches."), "clocks": ("clock",),
          "precision": ("network.precision", "network.weights"),
          "fusion": ("network.fusion", "network.patches", "kernels.tile"),
          "libraries": ("runtime", "kernels.level", "kernels.extension"),
          "width": ("network.width", "network.channels", "network.prune", "network.resolution")}


def _list_sections(study: Study) -> list[str]:
    """Return the sections a study belongs to: by what its finding compares, if that is of a kind.

    A study of changes of many kinds is in none; its effects are in the checklist.
    """
    if study.finding is None:
        return []
    paths = ({path for case in study.cases.values() for path in case}
             if study.finding.vary == "case" else {study.finding.vary})
    found = [name for name, heads in _PATHS.items()
             if any(path.startswith(heads) for path in paths)]
    return found if len(found) <= 2 else []


def list_causes(sessions: Iterable[Session]) -> Causes:
    """Return the causes most time goes to, by class of hardware: cause, share, of what."""
    pairs: dict[tuple[str, str], str] = {}
    for one in sessions:
        for row in _load(one).predicted:
            case = row.asked("case")
            if case is None or (one.study.finding and case == one.study.finding.baseline):
                pairs.setdefault((row.model, row.board), row.runtime)
    shares: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (model, board), runtime in pairs.items():
        made = predict_calibrated(deploy(model, load_board(board), runtime=runtime))
        lines = [line for line in made.bill.lines if line.clock == "cpu"]
        total = sum(line.cycles for line in lines)
        if not total:
            continue
        for cause, share in sum_by_key((line.cause, line.cycles / total) for line in lines).items():
            shares[core_class(board)][cause].append(share)
    runs = {core: max(map(len, own.values())) for core, own in shares.items()}
    return {core: sorted(((cause, median([*found, *[0.0] * (runs[core] - len(found))]),
                           f"{runs[core]} predictions (share of core cycles)")
                          for cause, found in own.items()), key=lambda one: -one[1])[:MOST_CAUSES]
            for core, own in shares.items()}


def write_guidelines(folders: Iterable[File], path: File) -> Path:
    """Write guidelines to a file: .md, .pdf or .html; pages and PDF have the trees drawn."""
    check_report(path)
    guide, page = _describe(folders)
    return write_page(page, path, pictures=[partial(_draw_tree, network, leaves)
                                            for network, leaves in guide.decisions.items()
                                            if leaves])


def _draw_tree(network: str, leaves: Sequence[Decision]) -> Figure:
    from twin.reports.figures import canvas
    from twin.reports.figures.charts import draw_chart

    chart = chart_decisions(network, leaves)
    with canvas.new_figure(11.0, 1.2 + 0.45 * len(leaves), chart.title, chart.caption) as figure:
        axes = figure.subplots()
        draw_chart(chart, axes)
        axes.set_axis_off()
    return figure
