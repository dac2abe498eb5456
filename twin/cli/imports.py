"""`twin import`: a log of a public tool becomes a measurement folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twin.cli.options import parse_quantity
from twin.cli.output import note_written, open_console, show

Form = Annotated[str, typer.Argument(
    metavar="FORMAT", help="What wrote the log: itm, mlperf-tiny, neuralspot, npu-profiler, "
                           "perf-stat, st-edge-ai, tflm, vela, x-cube-ai.")]
LogFile = Annotated[str, typer.Argument(metavar="FILE", help="The log.")]
Folder = Annotated[str | None, typer.Option(
    "--output", "-o", metavar="DIR", help="Measurement folder to write; by default beside the "
                                          "log, under its name.")]
OnBoard = Annotated[str | None, typer.Option(
    "--board", "-b", metavar="BOARD", help="Board the log is of, where it does not say.")]
OfModel = Annotated[str | None, typer.Option(
    "--model", metavar="MODEL", help="Network the log is of, where it does not say.")]
AtClock = Annotated[str | None, typer.Option(
    "--clock", metavar="FREQUENCY", help="Clock of its cycles or ticks, such as 80MHz.")]


def import_log(form: Form, file: LogFile, output: Folder = None, board: OnBoard = None,
               model: OfModel = None, clock: AtClock = None) -> None:
    """Read a log of a public tool into a measurement folder."""
    from calibration.importers import import_measurement
    from calibration.measurement import write_measurement

    clock_hz = None if clock is None else parse_quantity(clock, "hz", "--clock")
    measurement = import_measurement(form, file, board=board, model=model, clock_hz=clock_hz)
    folder = write_measurement(output or Path(file).with_suffix(""), measurement)
    show(open_console(), f"{len(measurement.layers)} layers, {len(measurement.counters)} counters, "
                         f"{len(measurement.samples)} values")
    note_written(folder)
