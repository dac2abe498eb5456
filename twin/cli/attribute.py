"""`twin attribute`: a prediction beside a measurement: per layer, by cause, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from twin.cli.options import (
    AUTO,
    ArenaRole,
    AsJson,
    CalibrationChoice,
    ClockText,
    PlotFile,
    RuntimeName,
    WeightsRole,
    parse_quantity,
)
from twin.cli.output import note_written, open_console, show, warn

if TYPE_CHECKING:
    from calibration.measurement.measurement import Measurement
    from twin.attribution.attribution import Attribution
    from twin.attribution.diagnosis import Diagnosis
    from twin.attribution.idealisation import Split
    from twin.attribution.sides import Side
    from twin.deployment.deployment import Deployment

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
              plot: PlotFile = None, healthy: Healthy = None, shapley: Shapley = False,
              verdicts: Verdicts = True, calibration: CalibrationChoice = AUTO) -> None:
    """Set a prediction beside a measurement: gaps per layer, by cause, and what explains them."""
    if plot is not None:
        from twin.reports.figures.canvas import check_suffix

        check_suffix(Path(plot))
    if csv_file is not None:
        from twin.reports.export import check_place

        check_place(csv_file)
    from twin.attribution.attribution import attribute as set_side_by_side
    from twin.attribution.diagnosis import diagnose
    from twin.attribution.sides import side_of_measurement

    options = {"board": board, "runtime": runtime, "clock": clock, "weights": weights,
               "arena": arena}
    measurement, folder = read_folder(measured, swapped=predicted)
    theirs = side_of_measurement(measurement, str(folder))
    ours, deployment, remarks = predict_beside(predicted, measurement, options, calibration)
    attribution = set_side_by_side(ours, theirs)
    diagnosis = None
    if deployment is not None and verdicts and deployment.runtime.offload is None:
        diagnosis = diagnose(deployment, measurement,
                             healthy=read_folder(healthy)[0] if healthy else None,
                             stands_in=is_stand_in(deployment, measurement),
                             calibration=calibration)
    splits = _split(deployment, diagnosis, ours, calibration) if shapley else {}
    _show(attribution, diagnosis, splits, as_json)
    warn([*attribution.notes, *remarks, *judge_overlay(ours, theirs)])
    _write(attribution, csv_file, plot)


def _show(attribution: Attribution, diagnosis: Diagnosis | None, splits: dict[str, Split],
          as_json: bool) -> None:
    if as_json:
        from twin.attribution.document import attribution_document
        from twin.prediction.document import dump_document

        sys.stdout.write(dump_document(attribution_document(
            attribution, diagnosis, splits.get("as predicted"))))
        return
    from twin.reports.tables.attribution import attribution_report

    show(open_console(), attribution_report(attribution, diagnosis, splits))


def _write(attribution: Attribution, csv_file: str | None, plot: str | None) -> None:
    if csv_file is not None:
        from twin.attribution.document import attribution_rows
        from twin.reports.export import to_csv, write_file

        note_written(write_file(csv_file, to_csv(attribution_rows(attribution)).encode()))
    if plot is not None:
        from twin.reports.figures.attribution import draw_attribution
        from twin.reports.figures.canvas import save_figure

        note_written(save_figure(draw_attribution(attribution), plot))


def _split(deployment: Deployment | None, diagnosis: Diagnosis | None,
           ours: Side, calibration: str) -> dict[str, Split]:
    from twin.attribution.idealisation import split_time
    from twin.errors import UsageError
    from twin.learning.calibrated import choose_calibration

    if deployment is None or deployment.runtime.offload is not None:
        raise UsageError("--shapley needs a model that can be predicted again, on a core: give the "
                         "model instead of its prediction")
    prices = choose_calibration(deployment, calibration)
    found = {"as predicted": split_time(deployment, ours.temperature or "warm", prices)}
    changed = diagnosis.verdict.fault.deployment if diagnosis is not None else None
    if changed is not None:
        found["as diagnosed"] = split_time(changed, ours.temperature or "warm", prices)
    return found


def read_folder(path: str, swapped: str = "") -> tuple[Measurement, Path]:
    """Read a measurement folder; `swapped` is the other argument, to notice a wrong order."""
    from calibration.measurement.measurement import read_measurement
    from twin.errors import UsageError
    from twin.learning.folders import find_folder

    where = Path(path)
    if not where.is_dir():
        if swapped and Path(swapped).is_dir():
            raise UsageError(f"the arguments are swapped: {swapped} is a measurement and comes "
                             f"second: twin attribute {path} {swapped}")
        if where.name in ("header.json", "samples.jsonl"):
            raise UsageError(f"{path}: is a part of a measurement; give its folder: {where.parent}")
        what = "is a file" if where.exists() else "does not exist"
        raise UsageError(f"{path}: {what}; accepted: a folder `twin measure` or `twin import` "
                         "wrote")
    if swapped and Path(swapped).is_dir():
        raise UsageError(f"{swapped} and {path} are both folders; the first argument is a "
                         "prediction or a model. Two measurements are compared by `twin diff`")
    folder = find_folder(where)
    return read_measurement(folder), folder


def is_stand_in(deployment: Deployment, measurement: Measurement) -> bool:
    """Whether other kernels are predicted than were measured."""
    return deployment.runtime.name != measurement.header.runtime.partition("@")[0]


def predict_beside(predicted: str, measurement: Measurement, options: dict[str, str | None],
                   calibration: str) -> tuple[Side, Deployment | None, list[str]]:
    """Return the prediction as a side, what it is of where that can be told, and remarks."""
    from hwmodels.errors import TwinError
    from twin.attribution.setup import deploy_measured, redeploy
    from twin.attribution.sides import read_document, side_of_document, side_of_prediction
    from twin.errors import UsageError
    from twin.learning.calibrated import predict_calibrated

    given = [name for name, value in options.items() if value is not None]
    if Path(predicted).suffix == ".json" and "epochs" not in Path(predicted).stem:
        if given:
            raise UsageError(f"--{given[0]} is for a model; {predicted} is a prediction already")
        document = read_document(Path(predicted))
        side = side_of_document(document, predicted)
        try:
            return side, redeploy(document), []
        except TwinError as error:
            return side, None, [f"no verdict: {error}"]
    clock = options["clock"]
    deployment, stand_in = deploy_measured(
        measurement, model=predicted, board=options["board"], runtime=options["runtime"],
        clock_hz=None if clock is None else parse_quantity(clock, "hz", "--clock"),
        weights=options["weights"], arena=options["arena"])
    prediction = predict_calibrated(
        deployment, temperature=measurement.header.temperature or "warm", calibration=calibration)
    remarks = [stand_in] if stand_in else []
    return side_of_prediction(prediction), deployment, [*remarks, *prediction.warnings]


def judge_overlay(ours: Side, theirs: Side) -> list[str]:
    """Say when the overlay behind a prediction no longer fits what was measured."""
    from calibration.fitting.staleness import judge_interval

    measured = theirs.whole.amounts.get("time")
    if ours.interval_us is None or measured is None:
        return []
    finding = judge_interval(ours.calibration, ours.interval_us, measured / 1e3)
    return [str(finding)] if finding is not None else []
