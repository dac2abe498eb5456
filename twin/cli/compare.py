"""`twin compare`: predicted beside published results, or beside a measurement epoch by epoch."""

from __future__ import annotations

from typing import Annotated

import typer

from twin.cli.options import BoardName, CalibrationChoice, Model, PlotFile, RuntimeName
from twin.cli.output import note_written, open_console, show, warn
from twin.errors import UsageError

Published = Annotated[bool, typer.Option(
    "--published", help="Compare with published measurements of this model and board.")]
Measured = Annotated[str | None, typer.Option(
    "--measured", metavar="DIR", help="Compare with a measurement of epochs: a folder written by "
                                      "`twin import`.")]


def compare(model: Model, board: BoardName, published: Published = False,
            measured: Measured = None, runtime: RuntimeName = None,
            plot: PlotFile = None, calibration: CalibrationChoice = "none") -> None:
    """Set predictions beside published results, or beside a measurement epoch by epoch."""
    if measured is not None:
        compare_measured(model, board, measured, runtime)
        return
    if not published:
        raise UsageError("compare with what? accepted: --published, --measured DIR")
    if plot is not None:
        from pathlib import Path

        from twin.figures.canvas import check_suffix

        check_suffix(Path(plot))
    from hwmodels.board.file import load_board
    from twin.learning.calibrated import row_predictor
    from twin.published import compare_published
    from twin.readers import read_model
    from twin.tables.comparison import published_report

    graph, machine = read_model(model), load_board(board)
    comparisons = compare_published(graph, machine.name, predictor=row_predictor(calibration))
    show(open_console(), published_report(graph.name, machine.name, comparisons))
    predicted = [comparison for comparison in comparisons if comparison.predicted_ms is not None]
    if plot is not None and predicted:
        from twin.figures.canvas import save_figure
        from twin.figures.published import draw_published

        note_written(save_figure(draw_published(graph.name, machine, predicted,
                                               learnt=calibration != "none"), plot))
    elif plot is not None:
        warn([f"{plot}: not written, nothing to set side by side"])


def compare_measured(model: str, board: str, folder: str, runtime: str | None) -> None:
    """Set the epochs of a model, or of a compiler's output, beside measured ones."""
    from calibration.measurement import read_measurement
    from hwmodels.board.file import load_board
    from twin.accelerator.report import make_compiled_sheet, make_sheet, read_sheet
    from twin.deployment import deploy
    from twin.prediction import predict
    from twin.readers.neural_art import is_compiled, read_compiled
    from twin.tables.epochs import side_by_side

    theirs = read_sheet(read_measurement(folder))
    if is_compiled(model):
        ours = make_compiled_sheet(read_compiled(model), load_board(board))
    else:
        prediction = predict(deploy(model, board, runtime=runtime or "neural-art"))
        warn(prediction.warnings)
        ours = make_sheet(prediction)
    show(open_console(), side_by_side(ours, theirs))
