"""`twin import`: a log of a public tool becomes a measurement folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from twin.cli.options import parse_quantity
from twin.cli.output import note_written, open_console, show, warn

if TYPE_CHECKING:
    from calibration.importers import Imported
    from calibration.measurement.measurement import Measurement

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
    "--model", metavar="MODEL", help="Network the log is of: a model file or a network of `twin "
                                     "models` is noted with its hash, anything else as a name.")]
AtClock = Annotated[str | None, typer.Option(
    "--clock", metavar="FREQUENCY", help="Clock of its cycles or ticks, such as 80MHz.")]
Partial = Annotated[bool, typer.Option(
    "--partial", help="Take an incomplete log for what it has; the folder says so.")]

EXAMPLES = 3
"""Lines that were not understood and are shown."""


def import_log(form: Form, file: LogFile, output: Folder = None, board: OnBoard = None,
               model: OfModel = None, clock: AtClock = None, partial: Partial = False) -> None:
    """Read a log of a public tool into a measurement folder."""
    from calibration import importers
    from calibration.measurement.measurement import write_measurement

    clock_hz = None if clock is None else parse_quantity(clock, "hz", "--clock")
    imported = importers.import_log(form, file, board=board, model=model, clock_hz=clock_hz,
                                    partial=partial)
    measurement = imported.measurement
    if model is not None:
        measurement = identify(measurement, model)
    folder = write_measurement(output or _default_folder(Path(file)), measurement)
    runs = len(measurement.runs)
    show(open_console(), f"{measurement.header.kind}: {runs} run{'' if runs == 1 else 's'}, "
                         f"{len(measurement.layers)} layers, {len(measurement.counters)} counters, "
                         f"{len(measurement.samples)} values")
    warn(list_findings(imported, board))
    note_written(folder)


def _default_folder(log: Path) -> Path:
    return log.with_suffix("") if log.suffix else log.with_name(f"{log.name}-measurement")


def identify(measurement: Measurement, model: str) -> Measurement:
    """Note hash and architecture where a name is that of a model file or of a zoo network."""
    from twin.network import zoo
    from twin.network.readers import SUFFIXES, read_model

    if Path(model).suffix.lower() not in SUFFIXES and not zoo.is_known(model.removeprefix("zoo:")):
        return measurement
    graph = read_model(model)
    header = replace(measurement.header, model=graph.name, model_sha256=graph.sha256,
                     architecture_id=graph.architecture_id)
    return replace(measurement, header=header)


def list_findings(imported: Imported, board: str | None) -> list[str]:
    """Return what a user must know: lines that were left, what is missing, unknown boards."""
    found = list(imported.remarks)
    if imported.unread:
        count = len(imported.unread)
        shown = "; ".join(f"{number}: {line.strip()[:60]!r}"
                          for number, line in imported.unread[:EXAMPLES])
        found.append(f"{count} of {imported.lines} lines {'was' if count == 1 else 'were'} not "
                     f"understood and {'is' if count == 1 else 'are'} left out: line {shown}"
                     + (" ..." if count > EXAMPLES else ""))
    if board is not None:
        from hwmodels.board.file import load_board
        from hwmodels.errors import BoardError

        try:
            load_board(board)
        except BoardError as error:
            found.append(f"no board file is known for {board!r}, it is noted as a name ({error})")
    return found
