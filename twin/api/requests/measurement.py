"""Requests that make a measurement of what other tools and meters wrote."""

from dataclasses import KW_ONLY, dataclass
from os import PathLike
from typing import Annotated

from twin.api.requests import Option, Request, parse_clock, parse_supply

File = str | PathLike[str]


@dataclass(frozen=True)
class Energy(Request):
    """A recording of a power meter, and the measurement whose marks are in it."""

    folder: Annotated[File, Option(
        "", "FOLDER", "A measurement of the same image: its times.", text=str)]
    trace: Annotated[File, Option("", "TRACE", "The meter's recording.", text=str)]
    meter: Annotated[str, Option(
        "--meter", "NAME", "ppk2, joulescope, lpm01a, stlink_v3pwr, otii, ina226, ina228 or "
        "scope.")]
    _: KW_ONLY
    supply_v: Annotated[float | None, Option(
        "--supply", "VOLT", "Supply voltage, where the recording has none: 3.3, 3300mV.", text=str,
        parse=parse_supply)] = None
    shunt_ohm: Annotated[float | None, Option(
        "--shunt", "OHM", "Resistance the scope is across.")] = None
    mark_bit: Annotated[int | None, Option(
        "--mark-bit", "N", "Digital input of the mark; by default the one that moves.")] = None
    runs: Annotated[int | None, Option(
        "--runs", "N", "Inferences between the two edges of a window; a recording may hold "
        "several.")] = None
    by_shape: Annotated[bool, Option(
        "--by-shape", None, "No mark: find one inference by the shape of its power.")] = False
    sample_hz: Annotated[float | None, Option(
        "--rate", "HERTZ", "Sampling frequency of a stream without time stamps.")] = None
    column: Annotated[str | None, Option(
        "--column", "NAME", "Of a scope: the channel across the shunt, or of a current probe; by "
        "default the first with a unit.")] = None
    mark_column: Annotated[str | None, Option(
        "--mark-column", "NAME", "The column of the mark, where it is not found by its "
        "name.")] = None
    output: Annotated[File | None, Option(
        "--output -o", "DIR", "By default energy-TRACE beside the measurement.", text=str)] = None


@dataclass(frozen=True)
class Import(Request):
    """A log of another tool, and what it does not say of itself."""

    form: Annotated[str, Option(
        "", "FORMAT", "What wrote the log: itm, mlperf-tiny, neuralspot, npu-profiler, perf-stat, "
        "probe, st-edge-ai, tflm, vela, x-cube-ai.")]
    file: Annotated[File, Option("", "FILE", "The log.", text=str)]
    _: KW_ONLY
    output: Annotated[File | None, Option(
        "--output -o", "DIR", "Measurement folder to write; by default beside the log, under its "
        "name.", text=str)] = None
    board: Annotated[str | None, Option(
        "--board -b", "BOARD", "Board the log is of, where it does not say.")] = None
    model: Annotated[str | None, Option(
        "--model", "MODEL", "Network the log is of: a model file or a network of `twin models` is "
        "noted with its hash, anything else as a name.")] = None
    runtime: Annotated[str | None, Option(
        "--runtime", "NAME", "Kernel library it is of, of `twin runtimes`, where the log does not "
        "say; by default the one its times tell.")] = None
    clock_hz: Annotated[float | None, Option(
        "--clock", "FREQUENCY", "Clock of its cycles or ticks, such as 80MHz.", text=str,
        parse=parse_clock)] = None
    cpu_hz: Annotated[float | None, Option(
        "--cpu-clock", "FREQUENCY", "Clock the core ran at, where the log counts ticks of another; "
        "by default the board's own.", text=str,
        parse=lambda text: parse_clock(text, "--cpu-clock"))] = None
    port: str | None = None
    partial: Annotated[bool, Option(
        "--partial", None, "Take an incomplete log for what it has; the folder says so.")] = False
    anyway: Annotated[bool, Option(
        "--anyway", None, "Take -b, --clock and --cpu-clock where the log says others.")] = False
