"""`twin energy`: a recording of a power meter becomes energy per layer and inference."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from os import fspath
from pathlib import Path

from calibration.errors import MeasurementError
from calibration.measurement.measurement import (
    HEADER_FILE,
    Measurement,
    read_measurement,
    write_measurement,
)
from calibration.measurement.sample import Header
from calibration.microbench.probes import PowerStep, is_microbench, read_power
from calibration.power_trace.board_energy import (
    describe_merged,
    energy_samples,
    find_windows,
    idle_power,
    judge_power,
    judge_windows,
)
from calibration.power_trace.excerpt import cut_excerpt, dump_excerpt
from calibration.power_trace.meter_files import GROUP, read_meter_file
from calibration.power_trace.trace import METERS, PowerTrace
from hwmodels.errors import TwinError, reworded
from hwmodels.extensions import take
from hwmodels.frozen import frozen
from hwmodels.quantities import format_energy
from twin.api.requests import measurement, takes
from twin.attribution.diagnosis.setup import deploy_measured
from twin.attribution.folders import find_folder
from twin.errors import UsageError
from twin.pricing.calibrated import predict_calibrated
from twin.reports.export import check_place

LEAST_HZ, LEAST_S = 1000.0, 10.0
"""Samples a second and seconds a recording should have, as the founding protocol asks."""

FAR = 10.0
"""Times outside of the predicted interval an energy is doubted (assumed): a unit is wrong by a
thousand."""


@frozen
class Energy:
    """Energy as a power meter saw it.

    Parameters
    ----------
    measurement : Measurement
        Energy per layer and inference, as written.
    doubt : str or None
        Why the power cannot be right.
    remarks : tuple of str
        Layers whose energy is in a neighbour's.
    steps : tuple of PowerStep or None
        Of micro-benchmarks: what the machine draws while it does one thing.
    idle_mw : float or None
        While it waits, where the marks tell.
    """

    measurement: Measurement
    folder: Path
    doubt: str | None
    steps: tuple[PowerStep, ...] | None = None
    idle_mw: float | None = None
    remarks: tuple[str, ...] = ()


@takes(measurement.Energy)
def energy(asked: measurement.Energy) -> Energy:
    """Integrate a recording over the marks of the board; intervals say what the meter can tell.

    Raises
    ------
    UsageError
        When runs are given without a window, the measurement has no times of layers, or the supply
        is none the board's part runs at.
    """
    if asked.by_shape and asked.runs is not None:
        raise UsageError("--by-shape finds one inference; --runs is for a window between two marks")
    source, trace = find_folder(Path(asked.folder)), fspath(asked.trace)
    target = Path(asked.output) if asked.output else source.parent / f"energy-{Path(trace).stem}"
    check_place(target, folder=True)
    measured = read_measurement(source)
    _check_supply(asked.supply_v, measured.header.board)
    if (target / HEADER_FILE).exists():
        raise UsageError(f"{target}: holds a measurement already; accepted: another folder (-o)")
    recording = read_meter_file(
        trace, asked.meter, supply_v=asked.supply_v, shunt_ohm=asked.shunt_ohm,
        mark_bit=asked.mark_bit, sample_hz=asked.sample_hz, column=asked.column,
        mark_column=asked.mark_column)
    header = _describe(measured.header, recording, asked)
    with reworded(MeasurementError, MeasurementError, f"{trace}: "):
        return _integrate(measured, recording, header, source, target, asked)


def _integrate(measured: Measurement, recording: PowerTrace, header: Header, source: Path,
               target: Path, asked: measurement.Energy) -> Energy:
    """Integrate a recording over a measurement's layers, and write what comes of it."""
    layers, times_us = _layer_times(measured)
    runs, by_shape = asked.runs, asked.by_shape
    samples = energy_samples(recording, layers, times_us, runs=runs, by_shape=by_shape)
    merged = () if runs is not None else describe_merged(layers, times_us, recording.period_us)
    late = None if by_shape else judge_windows(recording, find_windows(recording, layers, runs))
    if merged:
        header = replace(header, environment=tuple({**header.facts, "merged": merged[0]}.items()))
    found = Measurement(samples=tuple(samples), header=header)
    write_measurement(target, found, dump_excerpt(cut_excerpt(
        recording, layers, times_us, runs=runs, by_shape=by_shape)))
    made = Energy(measurement=found, folder=target, doubt=doubt_energy(found, source),
                  remarks=tuple(filter(None, (*merged, late, _judge_length(recording)))))
    if not is_microbench(measured):
        return made
    idle_mw = None if by_shape or not recording.marks_us else idle_power(recording)
    return replace(made, steps=tuple(read_power(measured, found, str(source))), idle_mw=idle_mw)


def _judge_length(recording: PowerTrace) -> str:
    """Warn of a recording with fewer samples a second, or shorter, than is asked of one."""
    begin, end = recording.span_us
    rate_hz, length_s = 1e6 / recording.period_us, (end - begin) * 1e-6
    lacking = [advice for share, advice in (
        (rate_hz / LEAST_HZ, f"{LEAST_HZ:,.0f} samples a second (the meter's rate)"),
        (length_s / LEAST_S, f"{LEAST_S:g} s (--power RUNS of the measurement)"))
        if share < 1 - 1e-6]
    return (
        f"the recording has {rate_hz:,.0f} samples a second over {length_s:.3g} s; at least "
        f"{' and '.join(lacking)} are advised") if lacking else ""


def doubt_energy(found: Measurement, folder: Path) -> str | None:
    """Say why an energy cannot be right: far from the predicted one, or none of the core's clock.

    Of our firmware an image in the measurement's folder serves where none can be built.
    """
    cpu_hz, certainty = found.header.clocks.get("cpu"), None
    with suppress(TwinError):  # another board or model than ours
        certainty = predict_calibrated(deploy_measured(found, folder)[0]).certainty
    energy_uj = found.percentile("energy", 50)
    if (certainty is not None and (span := certainty.energy_uj) is not None
            and not span.low / FAR <= energy_uj <= span.high * FAR):
        return (f"{format_energy(energy_uj)} is more than {FAR:g} times outside of the predicted "
                f"{span.write(format_energy)}. Is the unit of the "
                "current right?")
    return (judge_power(found.percentile("power_mean", 50), cpu_hz)
            if cpu_hz and found.count("power_mean") else None)


def _describe(header: Header, recording: PowerTrace, asked: measurement.Energy) -> Header:
    """Return the header of a measurement with the meter's part of where it was made."""
    meter, trace = asked.meter, fspath(asked.trace)
    environment = {**header.facts, "meter": meter, "trace": trace,
                   "accuracy": METERS[meter].source if meter in METERS else str(
                       take(GROUP, meter, "ACCURACY")),
                   "alignment": "shape" if asked.by_shape else f"{len(recording.marks_us)} marks"}
    return replace(header, source=f"twin energy of {trace}", environment=tuple(environment.items()),
                   supply_v=asked.supply_v or header.supply_v)


def _check_supply(supply_v: float | None, board: str) -> None:
    """Refuse a supply outside of what the board's file states; an unknown board has no range."""
    from hwmodels.board.file import find_board
    from hwmodels.board.operating_points import range_of_supply

    if supply_v is None or (known := find_board(board)) is None:
        return
    span = range_of_supply(known)
    if span is not None and not span[0] <= supply_v <= span[1]:
        raise UsageError(f"--supply {supply_v:g} V: the part of {board} runs at {span[0]:g} to "
                         f"{span[1]:g} V ({span[2]}); accepted: volts at the metered rail, within")


def _layer_times(measured: Measurement) -> tuple[list[int], list[float]]:
    """Return layers and how long each takes, in us, from cycles or ticks.

    Together they take as long as the inference was measured to: what passes between layers is
    shared out by their time.
    """
    clocks = measured.header.clocks
    for counter, clock in (("cpu_cycles", "cpu"), ("timer_ticks", "timer")):
        layers = [index for index in measured.layers if measured.count(counter, index)]
        if layers and clock in clocks:
            spent = [measured.percentile(counter, 50, index) for index in layers]
            whole = sum(spent)
            if measured.count(counter) and not is_microbench(measured) and whole > 0:
                whole = measured.percentile(counter, 50)
            return layers, [one * whole / (sum(spent) or 1) / clocks[clock] * 1e6 for one in spent]
    raise UsageError("the measurement has no times of layers; measure with a real clock first")
