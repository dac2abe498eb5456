"""`twin predict`: cycles, time and energy per layer, and why."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from twin.cli.options import (
    AUTO,
    SETTINGS_HELP,
    ArenaRole,
    AsJson,
    AssumeUnsupported,
    BoardName,
    CalibrationChoice,
    ClockText,
    Cold,
    Model,
    RuntimeName,
    WeightsRole,
    deploy,
    parse_settings,
)
from twin.cli.output import note_written, open_console, show, warn

if TYPE_CHECKING:
    from calibration.microbench.machine import Machine
    from twin.deployment.deployment import Deployment
    from twin.prediction.prediction import Prediction

CsvFolder = Annotated[str | None, typer.Option(
    "--csv", metavar="DIR", help="Write the tables as CSV files into a folder.")]
PlotTarget = Annotated[str | None, typer.Option(
    "--plot", metavar="FILE", help="Write layers and bill as one picture (.png, .svg, .pdf); "
                                   "into a folder (DIR/): every picture.")]
Roofs = Annotated[str | None, typer.Option(
    "--roofs", metavar="DIR", help="With --plot DIR/: micro-benchmarks of the board (`twin measure "
                                   "--plan all`), whose rates are the roofline's roofs.")]
Epochs = Annotated[bool, typer.Option(
    "--epochs/--no-epochs", help="With an accelerator: report every epoch as its profiler does.")]
PerOperand = Annotated[bool, typer.Option(
    "--per-operand", help="Split the bill by operand: weights, input, output, scratch.")]
TraceFile = Annotated[str | None, typer.Option(
    "--trace", metavar="FILE", help="With an accelerator: write a timeline for chrome://tracing "
                                    "or Perfetto (.json).")]


Settings = Annotated[list[str] | None, typer.Option(
    "--set", metavar="PATH=VALUE", help=SETTINGS_HELP)]


def predict(model: Model, board: BoardName, runtime: RuntimeName = None, clock: ClockText = None,
            weights: WeightsRole = None, arena: ArenaRole = None, cold: Cold = False,
            as_json: AsJson = False, csv_folder: CsvFolder = None, plot: PlotTarget = None,
            assume_unsupported: AssumeUnsupported = None, epochs: Epochs = True,
            trace: TraceFile = None, calibration: CalibrationChoice = AUTO,
            per_operand: PerOperand = False, settings: Settings = None,
            roofs: Roofs = None) -> None:
    """Predict cycles, time and energy per layer, and say why."""
    if model.endswith((".json", ".csv")) and is_compiled(model):
        refuse_beside(model, {"--json": as_json, "--csv": csv_folder, "--plot": plot,
                              "--trace": trace, "--set": settings})
        predict_compiled(model, board)
        return
    check_targets(csv_folder, plot)
    measured = None if roofs is None else read_roofs(roofs, board, plot)
    from twin.learning.calibrated import predict_calibrated

    deployment = deploy(model, board, runtime=runtime, clock=clock, weights=weights, arena=arena,
                        assume_unsupported=assume_unsupported)
    changes = parse_settings(settings) if settings else {}
    plain, deployment = deployment, deployment.replace(changes) if changes else deployment
    if trace is not None:
        from twin.reports.trace import check_trace

        check_trace(deployment, trace)
    prediction = predict_calibrated(deployment, temperature="cold" if cold else "warm",
                                    calibration=calibration)
    if as_json:
        write_document(prediction, per_operand)
    else:
        show_report(prediction, per_operand, epochs)
    if trace is not None:
        from twin.reports.trace import write_trace

        note_written(write_trace(prediction, trace))
    warn(dict.fromkeys((*prediction.warnings, *explain_effects(
        plain, prediction, changes, cold, calibration))))
    if csv_folder is not None:
        from twin.reports.export import write_csv_files

        for path in write_csv_files(prediction, csv_folder):
            note_written(path)
    if plot is not None:
        from twin.reports.figures.sheet import write_pictures

        for path in write_pictures(prediction, plot, measured):
            note_written(path)


def is_compiled(path: str) -> bool:
    """Whether a file is what an accelerator's compiler wrote, not a model."""
    from twin.runtimes.neural_art import compiler_output

    return compiler_output.is_compiled(path)


def explain_effects(plain: Deployment, prediction: Prediction, changes: Mapping[str, object],
                    cold: bool, calibration: str) -> list[str]:
    """Return what to know of paths that were set: which change nothing, which do the contrary."""
    if not changes:
        return []
    from twin.attribution.effects import list_effects
    from twin.learning.calibrated import predict_calibrated

    def predict_with(others: Mapping[str, object]) -> Prediction:
        return predict_calibrated(plain.replace(others), calibration=calibration,
                                  temperature="cold" if cold else "warm")

    return list(list_effects(predict_with({}), prediction, changes, predict_with))


def refuse_beside(model: str, options: Mapping[str, object]) -> None:
    """Refuse options that mean nothing beside a compiler's output."""
    from twin.errors import UsageError

    given = [name for name, value in options.items() if value]
    if given:
        raise UsageError(f"{given[0]}: not with a compiler's output such as {model}; accepted: "
                         "a network")


def read_roofs(folder: str, board: str, plot: str | None) -> Machine:
    """Read micro-benchmarks for the roofline; refuse those of another board or without cycles."""
    from calibration.measurement.measurement import read_measurement
    from calibration.microbench.machine import describe_machine
    from hwmodels.board.file import load_board
    from twin.errors import UsageError
    from twin.reports.figures.sheet import is_folder

    if plot is None or not is_folder(plot):
        raise UsageError("--roofs needs --plot DIR/: the roofline is one of its pictures")
    measurement = read_measurement(folder)
    machine, name = describe_machine(measurement, folder), load_board(board).name
    if measurement.header.board != name or machine.counter != "cpu_cycles":
        raise UsageError(f"--roofs {folder}: {machine.counter} of {measurement.header.board}; "
                         f"accepted: cpu_cycles of {name}")
    return machine


def check_targets(csv_folder: str | None, plot: str | None) -> None:
    """Refuse what could not be written, before anything is computed."""
    if plot is not None:
        from twin.reports.figures.sheet import check_target

        check_target(plot)
    if csv_folder is not None:
        from twin.reports.export import check_place

        check_place(csv_folder, folder=True)


def write_document(prediction: Prediction, per_operand: bool) -> None:
    """Write the JSON document to stdout."""
    from twin.prediction.document import dump_document, to_document

    document = to_document(prediction)
    if per_operand:
        from twin.prediction.operands import split_document

        document = split_document(document, prediction)
    sys.stdout.write(dump_document(document))


def show_report(prediction: Prediction, per_operand: bool, epochs: bool) -> None:
    """Print the report, and the bill by operand and the epochs where they are asked for."""
    from twin.reports.tables.report import report

    console = open_console()
    show(console, report(prediction, console))
    if per_operand:
        from twin.reports.tables.operands import operand_table

        show(console, "")
        show(console, operand_table(prediction))
    if epochs and prediction.epochs:
        from twin.attribution.predicted import side_of_prediction
        from twin.reports.tables.epochs import epochs_part

        show(console, "")
        show(console, epochs_part(side_of_prediction(prediction)))


def predict_compiled(path: str, board: str) -> None:
    """Report the epochs of a network as its compiler laid it out."""
    from hwmodels.board.file import load_board
    from twin.attribution.predicted import side_of_compiled
    from twin.reports.tables.epochs import epochs_part
    from twin.runtimes.neural_art.compiler_output import read_compiled

    network, machine = read_compiled(path), load_board(board)
    show(open_console(), epochs_part(side_of_compiled(network, machine)))
    if any(epoch.kind != "hw" for epoch in network.epochs):
        warn(["what software and hybrid epochs compute is not in the compiler's output: only "
              "their dispatch is counted"])
