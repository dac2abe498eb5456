"""`twin import`: a log of a public tool becomes a measurement folder."""

from __future__ import annotations

from typing import Annotated

import typer

import twin
from twin.cli.options import AsJson, parse_clock
from twin.cli.output import note_written, open_console, show, show_json, warn

Form = Annotated[str, typer.Argument(
    metavar="FORMAT", help="What wrote the log: itm, mlperf-tiny, neuralspot, npu-profiler, "
                           "perf-stat, probe, st-edge-ai, tflm, vela, x-cube-ai.")]
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
OfRuntime = Annotated[str | None, typer.Option(
    "--runtime", metavar="NAME", help="Kernel library it is of, of `twin runtimes`, where the log "
                                      "does not say; by default the one its times tell.")]
CoreClock = Annotated[str | None, typer.Option(
    "--cpu-clock", metavar="FREQUENCY", help="Clock the core ran at, where the log counts ticks "
                                             "of another; by default the board's own.")]
Partial = Annotated[bool, typer.Option(
    "--partial", help="Take an incomplete log for what it has; the folder says so.")]

Anyway = Annotated[bool, typer.Option(
    "--anyway", help="Take -b, --clock and --cpu-clock where the log says others.")]


def import_log(form: Form, file: LogFile, output: Folder = None, board: OnBoard = None,
               model: OfModel = None, runtime: OfRuntime = None, clock: AtClock = None,
               cpu_clock: CoreClock = None, partial: Partial = False,
               anyway: Anyway = False, as_json: AsJson = False) -> None:
    """Read a log of a public tool into a measurement folder."""
    found = twin.import_log(form, file, output=output, board=board, model=model,
                            runtime=runtime, clock_hz=parse_clock(clock),
                            cpu_hz=parse_clock(cpu_clock, "--cpu-clock"), partial=partial,
                            anyway=anyway)
    measurement = found.measurement
    if as_json:
        show_json(found)
    else:
        show(open_console(), f"{measurement.header.kind}: {count(len(measurement.runs), 'run')}, "
                             f"{count(len(measurement.layers), 'layer')}, "
                             f"{count(len(measurement.counters), 'counter')}, "
                             f"{count(len(measurement.samples), 'value')}")
    warn(found.remarks)
    note_written(found.folder)


def count(number: int, what: str) -> str:
    """Return "1 run", "2 runs"."""
    return f"{number} {what}{'' if number == 1 else 's'}"
