"""`twin study`: studies kept in folders, shipped studies, what they found."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

from hwmodels.errors import TwinError
from hwmodels.files import File, write_whole
from twin.api.requests import studies as requests
from twin.api.requests import takes
from twin.api.requests.studies import RunStudy
from twin.errors import StudyError, UsageError
from twin.reports.export import to_csv, write_file
from twin.studies.axes import Brought
from twin.studies.functions import process_rows
from twin.studies.results import Table, read_objectives
from twin.studies.study import file, run, session
from twin.studies.study.comparison import RowPair, diff_tables
from twin.studies.study.definition import Study
from twin.studies.study.findings import list_precisions, tell

if TYPE_CHECKING:
    from twin.studies.study.sensitivity import Sensitivity
    from twin.studies.study.session import Session


@takes(RunStudy)
def run_study(asked: RunStudy) -> Session:
    """Run a study in a folder, or resume an interrupted one.

    The folder gets `results.parquet`, `finding.md` and pictures; results are the same at any number
    of processes.

    Raises
    ------
    StudyError
        For a file, a folder or workers that are refused.
    ToolMissingError
        Without the extra `study`.
    """
    done = run.run_study(asked.study, asked.folder, jobs=asked.jobs, cluster=asked.cluster,
                         command=asked.command, on_progress=asked.on_progress,
                         bring=partial(_bring, asked) if asked.elf else None)
    write_reports(done)
    return done


def _bring(asked: RunStudy, study: Study) -> tuple[Brought, ...]:
    from twin.api.commands.study_programs import bring_programs

    if asked.cluster is not None and not asked.cluster.startswith("local:"):
        raise UsageError("--elf: programs are run on this machine; accepted: -j N, or --cluster "
                         "local:N")
    return bring_programs(asked.elf, study)


def write_reports(done: Session) -> tuple[Path, ...]:
    """Write the finding of a finished study and its pictures; no pictures without matplotlib."""
    table, study = done.load_results(), done.study
    title = f"# {study.name}\n\n{study.question}\n\n"
    notes = "".join(f"\n{note}\n" for note in study.notes)
    path = done.folder / "finding.md"
    text = title + "".join(f"- {line}\n" for line in tell(study, table)) + notes
    write_whole(path, text.encode())
    written = [path]
    if precisions := list_precisions(study, table):
        written.append(write_file(done.folder / "precision_tradeoffs.csv",
                                  to_csv(precisions).encode()))
    if study.postprocess:
        rows = process_rows(study.postprocess, done.load_records())
        written.append(write_file(done.folder / "postprocessed.csv",
                                  to_csv([*map(dict, rows)]).encode()))
    with contextlib.suppress(TwinError):
        from twin.reports.figures.canvas import save_figure
        from twin.reports.figures.studies import draw_front_figure
        from twin.reports.figures.study import draw_effects, draw_levels

        for draw, name in ((draw_effects, "finding"), (draw_levels, "levels")):
            figure = None if study.finding is None else draw(study, study.finding, table)
            if figure is not None:
                written.append(save_figure(figure, done.folder / f"{name}.png"))
        if any(row.front for row in table.rows) and len(table.objectives) > 1:
            written.append(save_figure(draw_front_figure(table), done.folder / "front.png"))
    return tuple(written)


def list_studies() -> dict[str, Study]:
    """Return the shipped studies by name."""
    return {name: file.load_study(name) for name in file.list_studies()}


def open_study(folder: File) -> Session:
    """Return the session of a folder; raises `StudyError` for one that is none."""
    return session.open_session(fspath(folder))


@takes(requests.Front)
def study_front(asked: requests.Front) -> Table:
    """Return the rows of a finished study that are on its front, over these objectives."""
    import dataclasses

    done, objectives = open_study(asked.folder), asked.objectives
    table, study = done.load_results(), done.study
    if objectives:
        study = dataclasses.replace(study, objectives=read_objectives(objectives))
        table = run.make_study_table(study, table.rows)
    return dataclasses.replace(table, rows=tuple(row for row in table.rows if row.front))


@takes(requests.DiffStudies)
def diff_studies(asked: requests.DiffStudies) -> Sequence[RowPair]:
    """Return the rows of two runs of one study by what was asked; None where one has none.

    `on_remark` is called with models and boards that are other files in the two, under one name.

    Raises
    ------
    StudyError
        For folders of different studies: other names and other configurations, or none in common.
    """
    first, second = open_study(asked.before), open_study(asked.after)
    pairs = diff_tables(first.load_results(), second.load_results())
    both = sum(None not in pair for pair in pairs)
    names = first.study.name, second.study.name
    if not both or (names[0] != names[1] and both < len(pairs)):
        named = " and ".join(names) if names[0] != names[1] else f"{names[0]}, of other values"
        raise StudyError(f"{first.folder} and {second.folder}: are different studies ({named}), "
                         f"with {both} of {len(pairs)} configurations in both; accepted: two runs "
                         "of one study")
    theirs = second.head["inputs"]
    for name, digest in first.head["inputs"].items():
        if theirs.get(name, digest) != digest:
            asked.on_remark(f"{name}: is another file in {second.folder}")
    return pairs


@takes(requests.Sensitivity)
def study_sensitivity(asked: requests.Sensitivity) -> tuple[Sensitivity, ...]:
    """Return which axes of a study a figure depends on, for every model on every board."""
    from twin.studies.study.sensitivity import analyse

    return analyse(asked.study, quantity=read_objectives([asked.figure])[0], method=asked.method,
                   count=asked.count, jobs=asked.jobs, cluster=asked.cluster,
                   on_progress=asked.on_progress)
