"""`twin energy`: a recording of a power meter becomes energy per layer and inference."""

from __future__ import annotations

from typing import Annotated

import typer

import twin
from twin.cli.options import AsJson, parse_supply
from twin.cli.output import note_written, open_console, show, show_json, warn

Folder = Annotated[str, typer.Argument(
    metavar="FOLDER", help="A measurement of the same image: its times.")]
TraceFile = Annotated[str, typer.Argument(metavar="TRACE", help="The meter's recording.")]
MeterName = Annotated[str, typer.Option(
    "--meter", metavar="NAME", help="ppk2, joulescope, lpm01a, stlink_v3pwr, otii, ina226, "
                                   "ina228 or scope.")]
Supply = Annotated[str | None, typer.Option(
    "--supply", metavar="VOLT", help="Supply voltage, where the recording has none: 3.3, 3300mV.")]
Shunt = Annotated[float | None, typer.Option(
    "--shunt", metavar="OHM", help="Resistance the scope is across.")]
MarkBit = Annotated[int | None, typer.Option(
    "--mark-bit", metavar="N", help="Digital input of the mark; by default the one that moves.")]
WindowRuns = Annotated[int | None, typer.Option(
    "--runs", metavar="N", help="Inferences between the two edges of a window; a recording may "
                                "hold several.")]
ByShape = Annotated[bool, typer.Option(
    "--by-shape", help="No mark: find one inference by the shape of its power.")]
Rate = Annotated[float | None, typer.Option(
    "--rate", metavar="HERTZ", help="Sampling frequency of a stream without time stamps.")]
ChannelName = Annotated[str | None, typer.Option(
    "--column", metavar="NAME", help="Of a scope: the channel across the shunt, or of a current "
                                     "probe; by default the first with a unit.")]
MarkName = Annotated[str | None, typer.Option(
    "--mark-column", metavar="NAME", help="The column of the mark, where it is not found "
                                          "by its name.")]
Output = Annotated[str | None, typer.Option(
    "--output", "-o", metavar="DIR", help="By default energy-TRACE beside the measurement.")]


def energy(folder: Folder, trace: TraceFile, meter: MeterName, supply: Supply = None,
           shunt: Shunt = None, mark_bit: MarkBit = None, runs: WindowRuns = None,
           by_shape: ByShape = False, rate: Rate = None, column: ChannelName = None,
           mark_column: MarkName = None, output: Output = None,
           as_json: AsJson = False) -> None:
    """Integrate a recording over the marks of the board; intervals say what the meter can tell."""
    from twin.reports.tables.measured import energy_table

    found = twin.energy(folder, trace, meter, supply_v=parse_supply(supply), shunt_ohm=shunt,
                        mark_bit=mark_bit, runs=runs, by_shape=by_shape, sample_hz=rate,
                        column=column, mark_column=mark_column, output=output)
    console = open_console()
    if as_json:
        show_json(found)
    else:
        show(console, energy_table(found.measurement))
        accuracy = dict(found.measurement.header.environment)["accuracy"]
        show(console, f"intervals rest on the meter: {accuracy}")
    warn([*([found.doubt] if found.doubt else []), *found.remarks])
    if found.steps is not None and not as_json:
        from twin.reports.tables.microbench import power_table

        show(console, power_table(found.steps, found.idle_mw))
    note_written(found.folder)
