"""`twin measure`: run a network on a board, real or virtual, and keep every sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import twin
from twin.api.requests import BoardName, Clock, Option
from twin.cli.ending import note_ignored_interrupt
from twin.cli.options import AsJson, check_outputs, command
from twin.cli.output import note_written, open_console, show, show_json, warn
from twin.errors import UsageError

if TYPE_CHECKING:
    from twin import MeasureOptions
    from twin.api.commands.measure import Measured

Port = Annotated[str | None, Option(
    "--port", "PORT", "Serial device, pty, or socket://HOST:PORT; by default the only board that "
    "is plugged in.")]
Virtual = Annotated[str | None, Option(
    "--virtual", "NAME", "A board of `twin boards --virtual`, or host.")]
Image = Annotated[str | None, Option(
    "--image", "ELF", "Firmware for the virtual board; by default it is built. Of a real board "
    "what was flashed, where it was built elsewhere than under build/firmware.")]
Runs = Annotated[int | None, Option(
    "--runs", None, "Runs that are kept, warm, and cold where the port empties caches; by default "
    "100, of micro-benchmarks 5.", least=1)]
WarmUp = Annotated[int, Option("--warmup", None, "Runs before the warm ones.", least=0)]
Events = Annotated[str | None, Option(
    "--counters", "NAMES", "Event counters, by comma; by default all, in passes.")]
InputFile = Annotated[str | None, Option(
    "--input", "FILE", "Raw bytes of the network's input; by default seeded noise.")]
Mask = Annotated[bool, Option("--mask", None, "Mask interrupts instead of counting them.")]
Fixed = Annotated[bool, Option("--fixed", None, "Exactly --runs runs, whatever their spread.")]
Baud = Annotated[int, Option("--baud", None, "Rate of a serial device.")]
Folder = Annotated[str | None, Option(
    "--output -o", "DIR", "Folder for cold/ and warm/; by default under out/.")]
Resume = Annotated[bool, Option(
    "--resume", None, "Go on with a measurement in -o that was interrupted.")]
Supply = Annotated[float | None, Option("--supply", "VOLT", "Supply voltage, for the record.")]
Flame = Annotated[str | None, Option(
    "--flamegraph", "FILE", "Where the time goes: a picture (.svg), or folded stacks for any "
    "viewer. On the host py-spy samples functions.")]
PlanText = Annotated[str | None, Option(
    "--plan", "FILE|NAMES", "Run micro-benchmarks instead of a network: those of a file of `twin "
    "plan`, names by comma, or all.")]
OptionalModel = Annotated[str | None, Option(
    "", "[MODEL]", "A .tflite or .onnx file, or a network of `twin models`.")]
PowerRuns = Annotated[int | None, Option(
    "--power", "RUNS", "Then make silent runs for a power meter, marked by the pin.", least=1)]
PowerLayers = Annotated[bool, Option(
    "--power-layers", None, "Toggle the pin at every layer of the silent runs.")]
PowerRepeat = Annotated[bool, Option(
    "--power-repeat", None, "Then each layer by itself, repeated for a second: for layers shorter "
    "than a sample of the INA226.")]
MonitorBus = Annotated[str | None, Option(
    "--ina226", "BUS", "Read an INA226 meanwhile, such as /dev/i2c-1.")]
Probe = Annotated[bool, Option(
    "--probe", None, "Listen to a program of your own that times itself with twin_probe.h "
    "(docs/probe.md); --runs inferences, by default 20.")]
Suggest = Annotated[bool | None, Option(
    "--advice/--no-advice", None, "Predict which setting or rebuild helps most against the "
    "bottleneck; by default on a terminal, as it takes seconds.")]
Shunt = Annotated[float | None, Option("--shunt", "OHM", "Shunt of the INA226.")]


@command
def measure(board: BoardName, model: OptionalModel = None, port: Port = None,
            virtual: Virtual = None, image: Image = None, runs: Runs = None,
            warmup: WarmUp = 10, counters: Events = None,
            input_file: InputFile = None, mask: Mask = False, fixed: Fixed = False,
            baud: Baud = 115200, clock: Clock = None, output: Folder = None,
            supply: Supply = None, flamegraph: Flame = None, power: PowerRuns = None,
            power_layers: PowerLayers = False, power_repeat: PowerRepeat = False,
            ina226: MonitorBus = None, shunt: Shunt = None, plan: PlanText = None,
            resume: Resume = False, probe: Probe = False,
            advice: Suggest = None, as_json: AsJson = False) -> None:
    """Measure a network on a board, or on this machine (-b host): raw samples and what they say."""
    note_ignored_interrupt()
    if probe and plan is not None:
        raise UsageError("--probe and --plan exclude each other")
    if as_json and advice:
        raise UsageError("--json and --advice exclude each other: `twin advise --json` writes it")
    if (model is None) == (plan is None):
        raise UsageError("either a MODEL or --plan is needed, to say what is measured")
    from twin.api.commands.measuring import MeasureOptions, PowerRuns, check_power

    check_outputs(flamegraph, folder=output)
    check_power(power, ina226, shunt, repeat=power_repeat)
    options = MeasureOptions(
        port=port, virtual=virtual, image=image, runs=runs, warmup=warmup, mask=mask, fixed=fixed,
        counters=None if counters is None else tuple(map(str.strip, counters.split(","))),
        input_file=input_file, baud=baud, clock_hz=clock, supply_v=supply,
        output=output, resume=resume, probe=probe, power=None if power is None else PowerRuns(
            runs=power, layers=power_layers, repeat=power_repeat, bus=ina226, shunt_ohm=shunt))
    if plan is not None:
        show_machine(plan, board, options, as_json)
    elif model is not None:
        show_network(model, board, options, flamegraph, advice, as_json)


def show_network(model: str, board: str, options: MeasureOptions, flamegraph: str | None,
                 advice: bool | None = False, as_json: bool = False) -> None:
    """Measure a network and print what its samples say."""
    from twin.cli.progress import Terminal
    from twin.reports.tables.measured import measured_report

    with Terminal() as watcher:
        measured = twin.measure(model, board, options, watcher=watcher)
    console = open_console()
    if as_json:
        show_json(measured)
    else:
        show(console, measured_report(measured.networks))
    if not as_json and board != "host" and not options.probe and (
            advice or (advice is None and console.is_terminal)):
        show(console, describe_suggestion(measured, board))
    note_written(measured.folder)
    if flamegraph is not None:
        write_flames(measured, flamegraph)


def describe_suggestion(measured: Measured, board: str) -> str:
    """Say which change is predicted to help most against the bottleneck."""
    from twin.api.commands.suggesting import suggest
    from twin.reports.tables.advice import say_suggestion

    found = suggest(measured, board)
    return "suggestion  " + ("no setting or rebuild that was tried saves 2 %" if found is None
                             else say_suggestion(found))


def show_machine(plan: str, board: str, options: MeasureOptions, as_json: bool = False) -> None:
    """Run micro-benchmarks and print what they found."""
    from twin.cli.progress import Terminal
    from twin.reports.tables.microbench import machine_report

    with Terminal() as watcher:
        found = twin.measure_plan(plan, board, options, watcher=watcher)
    if as_json:
        show_json(found)
    else:
        show(open_console(), machine_report(found.machine, found.name, found.stated))
    note_written(found.folder)


def write_flames(measured: Measured, path: str) -> None:
    """Write where the time goes; on the host by functions, where py-spy is installed."""
    from twin.api.commands.measure import fold_stacks
    from twin.reports.flamegraph import write_flamegraph

    stacks, remark = fold_stacks(measured)
    warn([remark] if remark else [])
    note_written(write_flamegraph(stacks, path))
