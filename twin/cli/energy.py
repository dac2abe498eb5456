"""`twin energy`: a recording of a power meter becomes energy per layer and inference."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from twin.cli.output import note_written, open_console, show, warn
from twin.errors import UsageError

if TYPE_CHECKING:
    from calibration.measurement.measurement import Measurement

Folder = Annotated[str, typer.Argument(
    metavar="FOLDER", help="A measurement of the same image: its times.")]
TraceFile = Annotated[str, typer.Argument(metavar="TRACE", help="The meter's recording.")]
MeterName = Annotated[str, typer.Option(
    "--meter", metavar="NAME", help="ppk2, joulescope, lpm01a, stlink_v3pwr or scope.")]
Supply = Annotated[float | None, typer.Option(
    "--supply", metavar="VOLT", help="Supply voltage, where the recording has none.")]
Shunt = Annotated[float | None, typer.Option(
    "--shunt", metavar="OHM", help="Resistance the scope is across.")]
MarkBit = Annotated[int | None, typer.Option(
    "--mark-bit", metavar="N", help="Digital input of the mark; by default the one that moves.")]
WindowRuns = Annotated[int | None, typer.Option(
    "--runs", metavar="N", help="Inferences between the two edges of a window.")]
ByShape = Annotated[bool, typer.Option(
    "--by-shape", help="No mark: find one inference by the shape of its power.")]
Rate = Annotated[float | None, typer.Option(
    "--rate", metavar="HERTZ", help="Sampling frequency of a stream without time stamps.")]
Output = Annotated[str | None, typer.Option(
    "--output", "-o", metavar="DIR", help="By default energy-TRACE beside the measurement.")]


def energy(folder: Folder, trace: TraceFile, meter: MeterName, supply: Supply = None,
           shunt: Shunt = None, mark_bit: MarkBit = None, runs: WindowRuns = None,
           by_shape: ByShape = False, rate: Rate = None, output: Output = None) -> None:
    """Integrate a recording over the marks of the board; intervals say what the meter can tell."""
    from calibration.measurement.measurement import Measurement, read_measurement, write_measurement
    from calibration.microbench.probes import is_microbench, read_power
    from calibration.power_trace import energy_samples, read_meter_file
    from calibration.power_trace.board_energy import idle_power, judge_power
    from twin.learning.folders import find_folder
    from twin.reports.tables.measured import energy_table

    if by_shape and runs is not None:
        raise UsageError("--by-shape finds one inference; --runs is for a window between two marks")
    source = find_folder(Path(folder))
    measured = read_measurement(source)
    recording = read_meter_file(trace, meter, supply_v=supply, shunt_ohm=shunt, mark_bit=mark_bit,
                                sample_hz=rate)
    layers, times_us = _layer_times(measured)
    samples = energy_samples(recording, layers, times_us, runs=runs, by_shape=by_shape)
    environment = {**dict(measured.header.environment), "meter": meter, "trace": str(trace),
                   "alignment": "shape" if by_shape else f"{len(recording.marks_us)} marks"}
    header = dataclasses.replace(
        measured.header, environment=tuple(environment.items()),
        supply_v=supply or measured.header.supply_v, source=f"twin energy of {trace}")
    found = Measurement(header=header, samples=tuple(samples))
    target = Path(output) if output else source.parent / f"energy-{Path(trace).stem}"
    write_measurement(target, found)
    show(open_console(), energy_table(found))
    cpu_hz = dict(measured.header.clocks_hz).get("cpu")
    doubt = judge_power(found.percentile("power_mean", 50), cpu_hz) if cpu_hz else None
    warn([doubt] if doubt else [])
    if is_microbench(measured):
        from twin.reports.tables.microbench import power_table

        idle = None if by_shape or not recording.marks_us else idle_power(recording)
        show(open_console(), power_table(read_power(measured, found, str(source)), idle))
    note_written(target)


def _layer_times(measured: Measurement) -> tuple[list[int], list[float]]:
    """Return layers and how long each takes, in us, from cycles or ticks."""
    clocks = dict(measured.header.clocks_hz)
    for counter, clock in (("cpu_cycles", "cpu"), ("timer_ticks", "timer")):
        layers = [index for index in measured.layers if measured.count(counter, index)]
        if layers and clock in clocks:
            return layers, [measured.percentile(counter, 50, index) / clocks[clock] * 1e6
                            for index in layers]
    raise UsageError("the measurement has no times of layers; measure with a real clock first")
