"""`twin diagnose`: which fault of a set-up explains a measurement."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from twin.cli.attribute import Healthy, Measured, MeasuredBoard
from twin.cli.options import (
    AUTO,
    ArenaRole,
    AsJson,
    CalibrationChoice,
    ClockText,
    RuntimeName,
    WeightsRole,
    parse_clock,
)
from twin.cli.output import open_console, show, warn

ModelFile = Annotated[str | None, typer.Option(
    "--model", metavar="MODEL", help="By default the zoo's network of the measurement's name.")]


def diagnose(measured: Measured, model: ModelFile = None, board: MeasuredBoard = None,
             runtime: RuntimeName = None, clock: ClockText = None, weights: WeightsRole = None,
             arena: ArenaRole = None, healthy: Healthy = None, as_json: AsJson = False,
             calibration: CalibrationChoice = AUTO) -> None:
    """Rank misconfigurations by how well they explain the whole pattern over layers."""
    from twin.attribution.diagnosis import diagnose as weigh_faults
    from twin.attribution.marks import notes_of
    from twin.attribution.measured import read_folder, side_of_measurement
    from twin.attribution.predicted import side_of_prediction
    from twin.attribution.sameness import agree
    from twin.attribution.setup import deploy_measured, is_stand_in
    from twin.errors import UsageError
    from twin.learning.calibrated import choose_calibration
    from twin.prediction.prediction import predict

    measurement, folder = read_folder(measured)
    if measurement.header.kind == "predicted":
        raise UsageError(f"{folder} holds a prediction; a measurement is diagnosed")
    deployment, stand_in = deploy_measured(
        measurement, model=model, board=board, runtime=runtime, weights=weights, arena=arena,
        clock_hz=parse_clock(clock))
    if deployment.runtime.offload is not None:
        raise UsageError(f"{deployment.runtime.identity} runs on an accelerator: faults are told "
                         "of cores only; `twin attribute` sets its epochs side by side")
    stands_in = is_stand_in(deployment, measurement)
    chosen = choose_calibration(deployment, calibration,
                                runtime=measurement.header.runtime if stands_in else None)
    found = weigh_faults(deployment, measurement, stands_in=stands_in, calibration=chosen,
                         healthy=read_folder(healthy)[0] if healthy else None)
    if as_json:
        from twin.attribution.document import diagnosis_document
        from twin.prediction.document import dump_document

        sys.stdout.write(dump_document(diagnosis_document(found)))
    else:
        from twin.reports.tables.diagnosis import diagnosis_report

        show(open_console(), diagnosis_report(found))
    ours = side_of_prediction(predict(deployment))
    warn([*([stand_in] if stand_in else []),
          *([f"calibrated: {chosen.description}"] if chosen else []), *notes_of(measurement),
          *map(str, agree(ours, side_of_measurement(measurement, str(folder))))])
