"""Requests to measure, and to make a measurement of what other tools and meters wrote."""

from dataclasses import KW_ONLY

from hwmodels.files import File
from twin.api.requests import BoardName, Clock, Model, Request, option, required
from twin.api.requests.values import parse_clock, parse_plain, split_words
from twin.errors import UsageError


class Energy(Request):
    """A recording of a power meter, and the measurement whose marks are in it."""

    folder: File = required("", "FOLDER", "A measurement of the same image: its times.")
    trace: File = required("", "TRACE", "The meter's recording.")
    meter: str = required(
        "--meter", "NAME", "ppk2, joulescope, lpm01a, stlink_v3pwr, otii, ina226, ina228 or "
        "scope.")
    _: KW_ONLY
    supply_v: float | None = option(
        None, "--supply", "VOLT", "Supply voltage, where the recording has none: 3.3, 3300mV.",
        parse=lambda text: parse_plain(text, "v", "--supply"))
    shunt_ohm: float | None = option(None, "--shunt", "OHM", "Resistance the scope is across.")
    mark_bit: int | None = option(
        None, "--mark-bit", "N", "Digital input of the mark; by default the one that moves.")
    runs: int | None = option(
        None, "--runs", "N", "Inferences between the two edges of a window; a recording may hold "
        "several.")
    by_shape: bool = option(
        False, "--by-shape", None, "No mark: find one inference by the shape of its power.")
    sample_hz: float | None = option(
        None, "--rate", "FREQUENCY", "Sampling frequency of a stream without time stamps.",
        parse=lambda text: parse_plain(text, "hz", "--rate"))
    column: str | None = option(
        None, "--column", "NAME", "Channel of a scope across the shunt, or of a current probe; by "
        "default the first with a unit.")
    mark_column: str | None = option(
        None, "--mark-column", "NAME", "The column of the mark, where it is not found by its "
        "name.")
    output: File | None = option(
        None, "--output -o", "DIR", "Folder to write; by default energy-TRACE beside the "
        "measurement.")


class Import(Request):
    """A log of another tool, and what it does not say of itself."""

    form: str = required(
        "", "FORMAT", "What wrote the log: etdump, ethos-u, itm, mlperf-tiny, mltk, neuralspot, "
        "npu-profiler, perf-stat, probe, st-edge-ai, tflm, vela, x-cube-ai, zephyr.")
    file: File = required("", "FILE", "The log.")
    _: KW_ONLY
    output: File | None = option(
        None, "--output -o", "DIR", "Measurement folder to write; by default beside the log, under "
        "its name.")
    board: str | None = option(
        None, "--board -b", "BOARD", "Board the log is of, where it does not say.")
    model: str | None = option(
        None, "--model", "MODEL", "Network the log is of: a model file or a network of `twin "
        "models` is noted with its hash, anything else as a name.")
    runtime: str | None = option(
        None, "--runtime", "NAME", "Kernel library it is of, of `twin runtimes`, where the log "
        "does not say; by default inferred from its times.")
    clock_hz: float | None = option(
        None, "--clock", "FREQUENCY", "Clock of its cycles or ticks, such as 80MHz.",
        parse=parse_clock)
    cpu_hz: float | None = option(
        None, "--cpu-clock", "FREQUENCY", "Clock the core ran at, where the log counts ticks of "
        "another; by default the board's own.", parse=lambda text: parse_clock(text, "--cpu-clock"))
    port: str | None = None
    partial: bool = option(
        False, "--partial", None, "Take an incomplete log for what it has; the folder says so.")
    anyway: bool = option(
        False, "--anyway", None, "Take -b, --clock and --cpu-clock where the log says others.")


class PowerRuns(Request, kw_only=True):
    """Silent runs for a power meter, marked by the pin."""

    runs: int = required(
        "--power", "RUNS", "Then make silent runs for a power meter, marked by the pin.", least=1)
    layers: bool = option(
        False, "--power-layers", None, "Toggle the pin at every layer of the silent runs.")
    repeat: bool = option(
        False, "--power-repeat", None, "Then each layer by itself, repeated for a second: for "
        "layers shorter than a sample of the INA226.")
    bus: str | None = option(
        None, "--ina226", "BUS", "Read an INA226 meanwhile, such as /dev/i2c-1.")
    shunt_ohm: float | None = option(None, "--shunt", "OHM", "Shunt of the INA226.")

    def __post_init__(self) -> None:
        """Refuse meters that exclude each other."""
        self.read_texts()
        check_power(self.runs, self.bus, self.shunt_ohm, repeat=self.repeat)


def check_power(runs: int | None, bus: str | None, shunt_ohm: float | None, *,
                repeat: bool) -> None:
    """Refuse a power meter that lacks what it needs; raises `UsageError`."""
    if bus is not None and (shunt_ohm is None or runs is None):
        raise UsageError("--ina226 needs --shunt OHM and --power RUNS")
    if repeat and bus is None:
        raise UsageError("--power-repeat needs --ina226 BUS")
    check_runs("--power", runs)


def check_runs(name: str, runs: int | None) -> None:
    """Refuse more runs than are made, before anything is built; raises `UsageError`."""
    from calibration.measurement.measurement import MOST_RUNS_ASKED

    if runs is not None and not 0 <= runs <= MOST_RUNS_ASKED:
        raise UsageError(f"{name} {runs}: accepted: up to {MOST_RUNS_ASKED:,}")


class Runs(Request, kw_only=True):
    """How a network is run, and on what."""

    port: str | None = option(
        None, "--port", "PORT", "Serial device, pty, or socket://HOST:PORT; by default the only "
        "board that is plugged in.")
    virtual: str | None = option(
        None, "--virtual", "NAME", "A board of `twin boards --virtual`, or host.")
    image: File | None = option(
        None, "--image", "ELF", "Firmware for the virtual board; by default it is built. Of a real "
        "board what was flashed, where it was built elsewhere than under build/firmware.")
    runs: int | None = option(
        None, "--runs", None, "Runs that are kept, warm, and cold where the port empties caches; "
        "by default 100, of micro-benchmarks 5.", least=1)
    warmup: int = option(10, "--warmup", None, "Runs before the warm ones.", least=0)
    counters: tuple[str, ...] | None = option(
        None, "--counters", "NAMES", "Event counters, by comma; by default all, in passes.",
        parse=split_words)
    input_file: File | None = option(
        None, "--input", "FILE", "Raw bytes of the network's input; by default seeded noise.")
    mask: bool = option(False, "--mask", None, "Mask interrupts instead of counting them.")
    backend: str | None = option(
        None, "--backend", "NAME", "On this machine (-b host): onnxruntime, litert or one of an "
        "installed package runs the network; by default our firmware's kernels.")
    cpu: int | None = option(
        None, "--cpu", "N", "On this machine: the processor it is bound to.", least=0)
    fixed: bool = option(False, "--fixed", None, "Exactly --runs runs, whatever their spread.")
    baud: int = option(115200, "--baud", None, "Rate of a serial device.")
    clock_hz: Clock = None
    output: File | None = option(
        None, "--output -o", "DIR", "Folder for cold/ and warm/; by default under out/.")
    supply_v: float | None = option(None, "--supply", "VOLT", "Supply voltage, for the record.")
    anyway: bool = option(
        False, "--anyway", None, "Measure even where the core on the line is not that of -b.")

    def __post_init__(self) -> None:
        """Refuse runs nobody waits for."""
        self.read_texts()
        check_runs("--runs", self.runs)
        check_runs("--warmup", self.warmup)


class Source(Request, kw_only=True):
    """Where runs come from besides: an earlier measurement, or a program of one's own."""

    resume: bool = option(
        False, "--resume", None, "Go on with a measurement in -o that was interrupted.")
    probe: bool = option(
        False, "--probe", None, "Listen to a program of your own that times itself with "
        "twin_probe.h (docs/probe.md); --runs inferences, by default 20.")


class MeasureNetwork(Runs, Source, kw_only=True):
    """A network that is measured, on what, and how: as a kept run has it."""

    model: Model
    board: BoardName


class MeasureOptions(Runs, Source, kw_only=True):
    """How a network is measured, and on what; `power`: then silent runs for a power meter."""

    power: PowerRuns | None = None
