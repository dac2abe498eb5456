"""`twin compare`: predicted beside published results, or beside a measurement."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from twin.cli.options import (
    AUTO,
    BoardName,
    CalibrationChoice,
    ClockText,
    Model,
    PlotFile,
    RuntimeName,
    parse_quantity,
)
from twin.cli.output import note_written, open_console, show, warn
from twin.errors import UsageError

if TYPE_CHECKING:
    from calibration.measurement.measurement import Measurement
    from twin.attribution.epochs import EpochComparison
    from twin.attribution.layers import LayerComparison

    Beside = LayerComparison | EpochComparison

Published = Annotated[bool, typer.Option(
    "--published", help="Compare with published measurements of this model and board.")]
Measured = Annotated[str | None, typer.Option(
    "--measured", metavar="DIR", help="Compare with a measurement, layer by layer or epoch by "
                                      "epoch: a folder of `twin measure` or `twin import`.")]
Anyway = Annotated[bool, typer.Option(
    "--anyway", help="Compare a measurement even if it is of another network, board or clock.")]


STATED = "calibration: none: stated prices, which no published row was looked at for"
LEARNT = ("calibration: {}; rows of use fit were learnt from where the overlay is shipped: their "
          "ratios are in sample (--calibration none: stated prices)")


def compare(model: Model, board: BoardName, published: Published = False,
            measured: Measured = None, runtime: RuntimeName = None, clock: ClockText = None,
            plot: PlotFile = None, calibration: CalibrationChoice = AUTO,
            anyway: Anyway = False) -> None:
    """Set predictions beside published results, or beside a measurement."""
    if published == (measured is not None):
        raise UsageError("compare with what? accepted: --published, or --measured DIR"
                         if not published else "--published and --measured exclude each other")
    if plot is not None:
        from twin.reports.figures.canvas import check_suffix

        check_suffix(Path(plot))
    if measured is not None:
        compare_measured(model, board, measured, runtime=runtime, clock=clock, plot=plot,
                         calibration=calibration, anyway=anyway)
        return
    if runtime is not None or clock is not None:
        raise UsageError("--published predicts each row with its own runtime and clock; --runtime "
                         "and --clock go with --measured")
    compare_published(model, board, plot, calibration)


def compare_published(model: str, board: str, plot: str | None, calibration: str) -> None:
    """Set predictions beside every published row of a network on a board."""
    from hwmodels.board.file import load_board
    from twin.learning import published
    from twin.learning.calibrated import row_predictor
    from twin.network.readers import read_model
    from twin.reports.tables.comparison import published_report

    graph, machine = read_model(model), load_board(board)
    comparisons = published.compare_published(graph, machine.name,
                                              predictor=row_predictor(calibration))
    console = open_console()
    if comparisons:
        show(console, STATED if calibration == "none" else LEARNT.format(calibration))
    show(console, published_report(graph.name, machine.name, comparisons))
    predicted = [comparison for comparison in comparisons if comparison.predicted_ms is not None]
    if plot is not None and predicted:
        from twin.reports.figures.canvas import save_figure
        from twin.reports.figures.published import draw_published

        note_written(save_figure(draw_published(graph.name, machine, predicted,
                                               learnt=calibration != "none"), plot))
    elif plot is not None:
        warn([f"{plot}: not written, nothing to set side by side"])


def compare_measured(model: str, board: str, folder: str, *, runtime: str | None,
                     clock: str | None, plot: str | None, calibration: str,
                     anyway: bool) -> None:
    """Set a network, or a compiler's output, beside a measurement of it."""
    from calibration.measurement.measurement import read_measurement
    from twin.attribution.layers import LayerComparison
    from twin.learning.folders import step_into
    from twin.reports.tables.beside import epochs_beside, layers_beside
    from twin.runtimes.neural_art.compiler_output import is_compiled

    where = step_into(Path(folder))
    found = read_measurement(where)
    clock_hz = None if clock is None else parse_quantity(clock, "hz", "--clock")
    comparison: Beside
    if is_compiled(model):
        title, comparison = beside_compiled(model, board, found, where, clock_hz, anyway)
    else:
        title, comparison = beside_predicted(model, board, found, where, runtime, clock_hz,
                                             calibration, anyway)
    console = open_console()
    if calibration == "none" and isinstance(comparison, LayerComparison):
        show(console, STATED)
    show(console, layers_beside(comparison) if isinstance(comparison, LayerComparison)
         else epochs_beside(comparison))
    remarks = dict(found.header.environment).get("remarks")
    if remarks and isinstance(comparison, LayerComparison):
        warn([f"the measurement: {remarks}"])
    if plot is not None:
        from twin.reports.figures.beside import draw_beside
        from twin.reports.figures.canvas import save_figure

        note_written(save_figure(draw_beside(title, comparison), plot))


def find_runtime(found: Measurement) -> str | None:
    """Return the runtime a measurement is of, or its library where that version is not known."""
    from twin.errors import RuntimeRefusedError
    from twin.runtimes import load_runtime

    told = found.header.runtime.partition(",")[0]
    for name in (told, told.partition("@")[0]):
        try:
            return load_runtime(name).identity
        except RuntimeRefusedError:
            continue
    return None


def beside_predicted(model: str, board: str, found: Measurement, where: Path,
                     runtime: str | None, clock_hz: float | None, calibration: str, anyway: bool
                     ) -> tuple[str, Beside]:
    """Predict what was measured, and pair the two."""
    from twin.attribution.agreement import Subject, has_epochs, require_agreement
    from twin.attribution.epochs import compare_epochs, find_gaps
    from twin.attribution.layers import compare_layers, name_side
    from twin.deployment.deployment import deploy
    from twin.learning.calibrated import predict_calibrated
    from twin.prediction.accelerator.report import make_sheet, read_sheet

    epochs = has_epochs(found)
    deployment = deploy(model, board, clock_hz=clock_hz,
                        runtime=runtime or find_runtime(found))
    temperature = found.header.temperature or "warm"
    prediction = predict_calibrated(deployment, temperature=temperature, calibration=calibration)
    sheet = make_sheet(prediction) if epochs and prediction.epochs else None
    warn(require_agreement(Subject(
        graph=deployment.graph, board=deployment.board, runtime=deployment.runtime.identity,
        temperature=temperature, operations=sheet.totals["ops"] if sheet else None), found,
        str(where), anyway=anyway))
    warn(prediction.warnings)
    title = f"{deployment.graph.name} on {deployment.board.name}"
    if sheet is not None:
        gaps = find_gaps(found)
        warn(f"{where}: {gap}" for gap in gaps)
        return title, compare_epochs(sheet, read_sheet(found), kind=name_side(found), gaps=gaps)
    comparison = compare_layers(prediction, found)
    if not comparison.counters:
        hint = "; ticks become times by `twin import --clock`" \
            if "timer_ticks" in found.counters else ""
        raise UsageError(f"{where}: counts nothing a prediction has; it has "
                         f"{', '.join(found.counters)}{hint}")
    return title, comparison


def beside_compiled(model: str, board: str, found: Measurement, where: Path,
                    clock_hz: float | None, anyway: bool) -> tuple[str, EpochComparison]:
    """Run a compiler's epochs, and pair them with those measured."""
    from hwmodels.board.file import change_board, load_board
    from twin.attribution.agreement import Subject, require_agreement
    from twin.attribution.epochs import compare_epochs, find_gaps
    from twin.attribution.layers import name_side
    from twin.prediction.accelerator.report import make_compiled_sheet, read_sheet
    from twin.runtimes.neural_art.compiler_output import read_compiled

    network, machine = read_compiled(model), load_board(board)
    if clock_hz is not None:
        machine = change_board(machine, {f"clocks.{machine.core.clock}.frequency_hz": clock_hz})
    ours, theirs = make_compiled_sheet(network, machine), read_sheet(found)
    warn(require_agreement(Subject(graph=None, board=machine, runtime="neural-art",
                                   temperature="warm", operations=ours.totals["ops"]), found,
                           str(where), anyway=anyway))
    gaps = find_gaps(found)
    warn(f"{where}: {gap}" for gap in gaps)
    return f"{network.name} on {machine.name}", compare_epochs(
        ours, theirs, kind=name_side(found), gaps=gaps)
