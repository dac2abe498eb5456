"""`twin attribute`: a prediction beside a measurement: per layer, by cause, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from twin.cli.options import (
    AUTO,
    Anyway,
    ArenaRole,
    AsJson,
    CalibrationChoice,
    ClockText,
    Keep,
    PlotFile,
    RuntimeName,
    WeightsRole,
    check_outputs,
    check_picture,
    parse_clock,
)
from twin.cli.output import note_written, open_console, show, show_json, warn
from twin.cli.paging import PageFile, check_page, write_result
from twin.cli.sessions import run_kept

Predicted = Annotated[str, typer.Argument(
    metavar="PRED", help="A prediction as `twin predict --json` wrote it, or a model: then it is "
                         "predicted as the measurement's header says, and as the options change.")]
Measured = Annotated[str, typer.Argument(
    metavar="MEAS", help="A folder `twin measure` or `twin import` wrote.")]
MeasuredBoard = Annotated[str | None, typer.Option(
    "--board", "-b", metavar="BOARD", help="With a model: by default the measurement's board.")]
CsvFile = Annotated[str | None, typer.Option(
    "--csv", metavar="FILE", help="Write every row and cause as CSV.")]
Healthy = Annotated[str | None, typer.Option(
    "--healthy", metavar="DIR", help="A measurement of the same kernels known to be right: faults "
                                     "are told far better against it.")]
Shapley = Annotated[bool, typer.Option(
    "--shapley", help="Also share the time over six idealised resources (a view, not the bill).")]
Verdicts = Annotated[bool, typer.Option(
    "--diagnose/--no-diagnose", help="Weigh the faults of a set-up that would explain the gap.")]


def attribute(predicted: Predicted, measured: Measured, board: MeasuredBoard = None,
              runtime: RuntimeName = None, clock: ClockText = None, weights: WeightsRole = None,
              arena: ArenaRole = None, as_json: AsJson = False, csv_file: CsvFile = None,
              plot: PlotFile = None, page: PageFile = None, healthy: Healthy = None,
              shapley: Shapley = False, verdicts: Verdicts = True,
              calibration: CalibrationChoice = AUTO, anyway: Anyway = False,
              keep: Keep = None) -> None:
    """Set a prediction beside a measurement: gaps per layer, by cause, and what explains them."""
    check_picture(plot)
    check_outputs(csv_file)
    check_page(page)
    asked = {"predicted": predicted, "measured": measured, "board": board, "runtime": runtime,
             "clock_hz": parse_clock(clock), "weights": weights, "arena": arena,
             "calibration": calibration, "healthy": healthy, "verdicts": verdicts,
             "shapley": shapley, "anyway": anyway}
    from twin.cli.progress import Steps

    with Steps("faults predicted") as steps:
        view = run_kept("attribute", asked, keep, on_progress=steps.tell)
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
