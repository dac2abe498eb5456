"""`twin study`: studies kept in folders, that go on where they were interrupted."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

import twin
from twin.api.requests import Option
from twin.api.requests.studies import RunStudy, Sensitivity
from twin.cli.options import AsJson, PlotFile, check_picture, command
from twin.cli.output import note_written, open_console, show, show_json, warn
from twin.cli.paging import PageFile, check_page, write_result
from twin.cli.progress import Rate
from twin.cli.studying import RowCount, show_table

if TYPE_CHECKING:
    from twin.studies.study.session import Session

app = typer.Typer(help="Run a file of many configurations in a folder: grids, samples, searches.",
                  rich_markup_mode=None, no_args_is_help=True)

Folder = Annotated[str, Option("", "FOLDER", "Of a study that was run.")]
Over = Annotated[str | None, Option(
    "--over", "NAMES", "What the front is over, in place of the file's: time, energy, ram, flash, "
    "price.")]


@app.command("list")
@command
def list_all(as_json: AsJson = False) -> None:
    """List the studies that are shipped."""
    if as_json:
        show_json(twin.list_studies())
        return
    from twin.reports.tables.study import studies_table

    show(open_console(), studies_table(twin.list_studies()))


@app.command("run")
@command
def run(asked: RunStudy, rows: RowCount = 10, as_json: AsJson = False) -> None:
    """Run a study, or go on with one that was interrupted; nothing is lost or done twice."""
    with Rate() as rate:
        done = twin.run_study(**asked.arguments, command=["twin", *sys.argv[1:]],
                              on_progress=rate.tell)
    if as_json:
        show_table(done.load_results(), as_json=True)
    else:
        _show(done, rows)
    for path in sorted(done.folder.iterdir()):
        if path.suffix in (".parquet", ".md", ".png"):
            note_written(path)


@app.command("show")
@command
def show_study(folder: Folder, rows: RowCount = 40, page: PageFile = None,
               as_json: AsJson = False) -> None:
    """Show what a study asked, what it found, and its rows."""
    check_page(page)
    session = twin.open_study(folder)
    write_result(session, page)
    if as_json:
        show_table(session.load_results(), as_json=True)
    else:
        _show(session, rows)


@app.command("pareto")
@command
def pareto(folder: Folder, over: Over = None, rows: RowCount = 40, plot: PlotFile = None,
           as_json: AsJson = False) -> None:
    """Show the rows of a study nothing else beats, over objectives of your choice."""
    check_picture(plot)
    names = [name for name in over.split(",") if name.strip()] if over else []
    show_table(twin.study_front(folder, names), plot=plot, as_json=as_json, rows=rows)


@app.command("diff")
@command
def diff(before: Annotated[str, Option("", "BEFORE", "Folder of a study.")],
         after: Annotated[str, Option(
             "", "AFTER", "Folder of the same study, such as of another version.")],
         as_json: AsJson = False) -> None:
    """Show which configurations moved between two runs of a study."""
    pairs = twin.diff_studies(before, after, on_remark=lambda remark: warn([remark]))
    if as_json:
        show_json(pairs)
        return
    from twin.reports.tables.study import study_diff_report

    show(open_console(), study_diff_report(pairs))


@app.command("sensitivity")
@command
def sensitivity(asked: Sensitivity, plot: PlotFile = None, as_json: AsJson = False) -> None:
    """Tell which axes of a study a figure depends on; --plot draws the tornado."""
    check_picture(plot)
    with Rate() as rate:
        found = twin.study_sensitivity(**asked.arguments, on_progress=rate.tell)
    if as_json:
        show_json(found)
    else:
        from twin.reports.tables.study import sensitivity_report

        show(open_console(), sensitivity_report(found))
    if plot is not None:
        from twin.reports.figures.canvas import save_figure
        from twin.reports.figures.study import draw_tornado

        note_written(save_figure(draw_tornado(found), plot))


def _show(session: Session, rows: int) -> None:
    from twin.reports.tables.study import study_report

    console = open_console()
    show(console, study_report(session, session.load_results(), console, rows))
