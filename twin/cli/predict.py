"""`twin predict`: cycles, time and energy per layer, and why."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from twin.cli.options import (
    ArenaRole,
    AsJson,
    AssumeUnsupported,
    BoardName,
    ClockText,
    Cold,
    Model,
    RuntimeName,
    WeightsRole,
    deploy,
)
from twin.cli.output import note_written, open_console, show, warn

CsvFolder = Annotated[str | None, typer.Option(
    "--csv", metavar="DIR", help="Write the tables as CSV files into a folder.")]
PlotTarget = Annotated[str | None, typer.Option(
    "--plot", metavar="FILE", help="Write layers and bill as one picture (.png, .svg, .pdf); "
                                   "into a folder (DIR/): every picture.")]


def predict(model: Model, board: BoardName, runtime: RuntimeName = None, clock: ClockText = None,
            weights: WeightsRole = None, arena: ArenaRole = None, cold: Cold = False,
            as_json: AsJson = False, csv_folder: CsvFolder = None, plot: PlotTarget = None,
            assume_unsupported: AssumeUnsupported = None) -> None:
    """Predict cycles, time and energy per layer, and say why."""
    if plot is not None:
        from twin.figures.sheet import check_target

        check_target(plot)
    from twin.prediction import predict as predict_deployment

    deployment = deploy(model, board, runtime=runtime, clock=clock, weights=weights, arena=arena,
                        assume_unsupported=assume_unsupported)
    prediction = predict_deployment(deployment, temperature="cold" if cold else "warm")
    if as_json:
        from twin.document import dump_document, to_document

        sys.stdout.write(dump_document(to_document(prediction)))
    else:
        from twin.tables.report import report

        console = open_console()
        show(console, report(prediction, console))
    warn(prediction.warnings)
    if csv_folder is not None:
        from twin.export import write_csv_files

        for path in write_csv_files(prediction, csv_folder):
            note_written(path)
    if plot is not None:
        from twin.figures.sheet import write_pictures

        for path in write_pictures(prediction, plot):
            note_written(path)
