"""`twin attribute`: a prediction beside a measurement: per layer, by cause, and why."""

from __future__ import annotations

from typing import Annotated

from twin.api.requests import Option
from twin.api.requests.attribution import Attribute
from twin.cli.options import AsJson, Keep, PlotFile, check_outputs, check_picture, command
from twin.cli.output import note_written, open_console, show, show_json, warn
from twin.cli.paging import PageFile, check_page, write_result
from twin.cli.sessions import run_kept

CsvFile = Annotated[str | None, Option("--csv", "FILE", "Write every row and cause as CSV.")]


@command
def attribute(asked: Attribute, as_json: AsJson = False, csv_file: CsvFile = None,
              plot: PlotFile = None, page: PageFile = None, keep: Keep = None) -> None:
    """Set a prediction beside a measurement: gaps per layer, by cause, and what explains them."""
    check_picture(plot)
    check_outputs(csv_file)
    check_page(page)
    from twin.cli.progress import Steps

    with Steps("faults predicted") as steps:
        view = run_kept("attribute", asked.arguments, keep, on_progress=steps.tell)
    if as_json:
        show_json(view)
    else:
        from twin.reports.tables.difference import attribute_report

        show(open_console(), attribute_report(view))
    warn(view.remarks)
    write_result(view, page)
    if csv_file is not None:
        from twin.reports.export import write_comparison

        note_written(write_comparison(view.difference, csv_file))
    if plot is not None:
        from twin.reports.figures.beside import draw_attribution
        from twin.reports.figures.canvas import save_figure

        note_written(save_figure(draw_attribution(view.difference), plot))
