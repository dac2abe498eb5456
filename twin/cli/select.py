"""`twin select`: boards and libraries ranked for networks under limits."""

from __future__ import annotations

from typing import Annotated

import typer

import twin
from twin.api.requests import Option
from twin.api.requests.studies import Select
from twin.cli.options import AsJson, command
from twin.cli.output import note_written, open_console, show, show_json
from twin.cli.paging import PageFile, check_page, write_result
from twin.cli.progress import Rate
from twin.cli.studying import TableFile, check_places, write_places

PlotTarget = Annotated[str | None, Option(
    "--plot", "FILE", "Write the Pareto picture; into a folder (DIR/): all of them.")]


@command
def select(asked: Select, output: TableFile = None, plot: PlotTarget = None,
           page: PageFile = None, as_json: AsJson = False) -> None:
    """Rank boards and libraries for networks; exit 1 where none meets the limits."""
    check_places(output, plot)
    check_page(page)
    with Rate() as rate:
        found = twin.select(**asked.arguments, on_progress=rate.tell)
    if as_json:
        show_json(found)
    else:
        from twin.reports.tables.selection import selection_report

        console = open_console()
        show(console, selection_report(found, console))
    for path in write_places(found.table, output, plot):
        note_written(path)
    write_result(found, page)
    if not found.feasible:
        raise typer.Exit(1)
