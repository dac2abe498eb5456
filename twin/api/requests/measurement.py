"""Requests to measure, and to make a measurement of what other tools and meters wrote."""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from hwmodels.files import File
from twin.api.requests import BoardName, Clock, Model, Option, Request
from twin.api.requests.values import parse_clock, parse_supply, split_words
from twin.errors import UsageError


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
        "--column", "NAME", "Channel of a scope across the shunt, or of a current probe; by "
        "default the first with a unit.")] = None
    mark_column: Annotated[str | None, Option(
        "--mark-column", "NAME", "The column of the mark, where it is not found by its "
        "name.")] = None
    output: Annotated[File | None, Option(
        "--output -o", "DIR", "Folder to write; by default energy-TRACE beside the "
        "measurement.", text=str)] = None


@dataclass(frozen=True)
class Import(Request):
    """A log of another tool, and what it does not say of itself."""

    form: Annotated[str, Option(
        "", "FORMAT", "What wrote the log: etdump, ethos-u, itm, mlperf-tiny, mltk, neuralspot, "
        "npu-profiler, perf-stat, probe, st-edge-ai, tflm, vela, x-cube-ai, zephyr.")]
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
        "say; by default inferred from its times.")] = None
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


@dataclass(frozen=True, kw_only=True)
class PowerRuns(Request):
    """Silent runs for a power meter, marked by the pin."""

    runs: Annotated[int, Option(
        "--power", "RUNS", "Then make silent runs for a power meter, marked by the pin.", least=1)]
    layers: Annotated[bool, Option(
        "--power-layers", None, "Toggle the pin at every layer of the silent runs.")] = False
    repeat: Annotated[bool, Option(
        "--power-repeat", None, "Then each layer by itself, repeated for a second: for layers "
        "shorter than a sample of the INA226.")] = False
    bus: Annotated[str | None, Option(
        "--ina226", "BUS", "Read an INA226 meanwhile, such as /dev/i2c-1.")] = None
    shunt_ohm: Annotated[float | None, Option("--shunt", "OHM", "Shunt of the INA226.")] = None

    def __post_init__(self) -> None:
        """Refuse meters that exclude each other."""
        check_power(self.runs, self.bus, self.shunt_ohm, repeat=self.repeat)


def check_power(runs: int | None, bus: str | None, shunt_ohm: float | None, *,
                repeat: bool) -> None:
    """Refuse a power meter that lacks what it needs; raises `UsageError`."""
    from calibration.measurement.measurement import MOST_RUNS_ASKED

    if bus is not None and (shunt_ohm is None or runs is None):
        raise UsageError("--ina226 needs --shunt OHM and --power RUNS")
    if repeat and bus is None:
        raise UsageError("--power-repeat needs --ina226 BUS")
    if runs is not None and not 1 <= runs <= MOST_RUNS_ASKED:
        raise UsageError(f"--power {runs}: accepted: from 1 to {MOST_RUNS_ASKED:,}")


@dataclass(frozen=True, kw_only=True)
class Runs(Request):
    """How a network is run, and on what."""

    port: Annotated[str | None, Option(
        "--port", "PORT", "Serial device, pty, or socket://HOST:PORT; by default the only board "
        "that is plugged in.")] = None
    virtual: Annotated[str | None, Option(
        "--virtual", "NAME", "A board of `twin boards --virtual`, or host.")] = None
    image: Annotated[File | None, Option(
        "--image", "ELF", "Firmware for the virtual board; by default it is built. Of a real board "
        "what was flashed, where it was built elsewhere than under build/firmware.",
        text=str)] = None
    runs: Annotated[int | None, Option(
        "--runs", None, "Runs that are kept, warm, and cold where the port empties caches; by "
        "default 100, of micro-benchmarks 5.", least=1)] = None
    warmup: Annotated[int, Option(
        "--warmup", None, "Runs before the warm ones.", least=0)] = 10
    counters: Annotated[tuple[str, ...] | None, Option(
        "--counters", "NAMES", "Event counters, by comma; by default all, in passes.", text=str,
        parse=split_words)] = None
    input_file: Annotated[File | None, Option(
        "--input", "FILE", "Raw bytes of the network's input; by default seeded noise.",
        text=str)] = None
    mask: Annotated[bool, Option(
        "--mask", None, "Mask interrupts instead of counting them.")] = False
    backend: Annotated[str | None, Option(
        "--backend", "NAME", "On this machine (-b host): onnxruntime, litert or one of an "
        "installed package runs the network; by default our firmware's kernels.")] = None
    cpu: Annotated[int | None, Option(
        "--cpu", "N", "On this machine: the processor it is bound to.", least=0)] = None
    fixed: Annotated[bool, Option(
        "--fixed", None, "Exactly --runs runs, whatever their spread.")] = False
    baud: Annotated[int, Option("--baud", None, "Rate of a serial device.")] = 115200
    clock_hz: Clock = None
    output: Annotated[File | None, Option(
        "--output -o", "DIR", "Folder for cold/ and warm/; by default under out/.",
        text=str)] = None
    supply_v: Annotated[float | None, Option(
        "--supply", "VOLT", "Supply voltage, for the record.")] = None
    anyway: Annotated[bool, Option(
        "--anyway", None, "Measure even where the core on the line is not that of -b.")] = False


@dataclass(frozen=True, kw_only=True)
class Source(Request):
    """Where runs come from besides: an earlier measurement, or a program of one's own."""

    resume: Annotated[bool, Option(
        "--resume", None, "Go on with a measurement in -o that was interrupted.")] = False
    probe: Annotated[bool, Option(
        "--probe", None, "Listen to a program of your own that times itself with twin_probe.h "
        "(docs/probe.md); --runs inferences, by default 20.")] = False


@dataclass(frozen=True, kw_only=True)
class MeasureNetwork(Runs, Source):
    """A network that is measured, on what, and how: as a kept run has it."""

    model: Model
    board: BoardName


@dataclass(frozen=True, kw_only=True)
class MeasureOptions(Runs, Source):
    """How a network is measured, and on what; `power`: then silent runs for a power meter."""

    power: PowerRuns | None = None
