"""`twin import`: a log of a public tool becomes a measurement folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twin.cli.output import note_written, open_console, show

Form = Annotated[str, typer.Argument(metavar="FORMAT", help="What wrote the log: npu-profiler.")]
LogFile = Annotated[str, typer.Argument(metavar="FILE", help="The log.")]
Folder = Annotated[str | None, typer.Option(
    "--output", "-o", metavar="DIR", help="Measurement folder to write; by default beside the "
                                          "log, under its name.")]


def import_log(form: Form, file: LogFile, output: Folder = None) -> None:
    """Read a log of a public tool into a measurement folder."""
    from calibration.importers import import_measurement
    from calibration.measurement import write_measurement

    measurement = import_measurement(form, file)
    folder = write_measurement(output or Path(file).with_suffix(""), measurement)
    show(open_console(), f"{len(measurement.layers)} epochs, {len(measurement.counters)} counters, "
                         f"{len(measurement.samples)} values")
    note_written(folder)
