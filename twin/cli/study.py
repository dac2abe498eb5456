"""`twin study`: studies kept in folders, that go on where they were interrupted."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

import twin
from twin.api.requests.studies import DiffStudies, Front, ReportStudy, RunStudy, Sensitivity
from twin.cli.options import (
    AsJson,
    Json,
    Paged,
    Pictured,
    PlotFile,
    check_picture,
    command,
    present,
)
from twin.cli.output import note_files, show_view, warn
from twin.cli.progress import Rate
from twin.cli.studying import Pareto, RowCount, Rows, refuse_failed

app = typer.Typer(help="Run a file of many configurations: grids, samples, searches.",
                  rich_markup_mode=None, no_args_is_help=True)

Folder = Annotated[str, Front.option("folder")]


@app.command("list")
@command
def list_all(as_json: AsJson = False) -> None:
    """List the studies that are shipped."""
    show_view(twin.list_studies(), "study:studies_table", as_json=as_json)


@app.command("run")
@command
def run(asked: RunStudy, rows: RowCount = 10, as_json: AsJson = False) -> None:
    """Run a study, or resume an interrupted one; nothing is lost or done twice."""
    with Rate() as rate:
        done = twin.run_study(**asked.arguments, command=["twin", *sys.argv[1:]],
                              on_progress=rate.tell)
    show_session(done, rows, as_json)
    note_files(path for path in sorted(done.folder.iterdir())
               if path.suffix in (".parquet", ".md", ".csv", ".png"))
    refuse_failed(done.load_results())


@app.command("show")
@command
def show_study(folder: Folder, rows: RowCount = 40, *, page: Paged,
               as_json: AsJson = False) -> None:
    """Show what a study asked, what it found, and its rows."""
    session = twin.open_study(folder)
    note_files(page.write(session))
    show_session(session, rows, as_json)


def show_session(session: Any, rows: int, as_json: bool) -> None:
    """Print a study, or the document of its table."""
    table = session.load_results()
    if as_json:
        present(table, [Json(as_json=True)], view="", ends=refuse_failed)
    else:
        show_view(session, "study:study_report", session, table, rows=rows)


class FrontPicture(Pareto):
    """A front as a picture."""

    plot: PlotFile = None

    def check_target(self, target: str) -> None:
        """Refuse a picture that could not be written."""
        check_picture(target)


@app.command("pareto")
@command(view="studies:sweep_report", ends=refuse_failed)
def pareto(asked: Front, rows: Rows, plot: FrontPicture, json: Json) -> object:
    """Show the Pareto front of a study's rows, over objectives of your choice."""
    return twin.study_front(**asked.arguments)


@app.command("report")
@command
def report(asked: ReportStudy, as_json: AsJson = False) -> None:
    """Write a finished study as a report; methods, findings, limits, rows, checklist."""
    note_files([twin.report_study(**asked.arguments)], as_json)


@app.command("diff")
@command(view="study:study_diff_report")
def diff(asked: DiffStudies, json: Json) -> object:
    """Show which configurations moved between two runs of a study."""
    return twin.diff_studies(**asked.arguments, on_remark=lambda remark: warn([remark]))


class Tornado(Pictured):
    """What a figure depends on as a picture."""

    draw = "study:draw_tornado"


@app.command("sensitivity")
@command(view="study:sensitivity_report")
def sensitivity(asked: Sensitivity, plot: Tornado, json: Json) -> object:
    """Say which axes of a study a figure depends on; --plot draws the tornado."""
    with Rate() as rate:
        return twin.study_sensitivity(**asked.arguments, on_progress=rate.tell)
