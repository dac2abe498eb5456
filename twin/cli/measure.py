"""Commands that measure: a network on a board, a power meter's recording, another tool's log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import twin
from twin.api.requests import BoardName, Option
from twin.api.requests import measurement as requests
from twin.api.requests.measurement import MeasureOptions
from twin.cli.ending import note_ignored_interrupt
from twin.cli.options import AsJson, Kept, check_outputs, command
from twin.cli.output import note_written, open_console, show, show_json, show_view, warn
from twin.errors import UsageError

if TYPE_CHECKING:
    from twin.api.commands.measure import Measured

OptionalModel = Annotated[str | None, Option(
    "", "[MODEL]", "A .tflite or .onnx file, or a network of `twin models`.")]
Flame = Annotated[str | None, Option(
    "--flamegraph", "FILE", "Where the time goes: a picture (.svg), or folded stacks for any "
    "viewer. On the host py-spy samples functions.")]
PowerRuns = Annotated[int | None, requests.PowerRuns.option("runs")]
PowerLayers = Annotated[bool, requests.PowerRuns.option("layers")]
PowerRepeat = Annotated[bool, requests.PowerRuns.option("repeat")]
MonitorBus = Annotated[str | None, requests.PowerRuns.option("bus")]
Shunt = Annotated[float | None, requests.PowerRuns.option("shunt_ohm")]
PlanText = Annotated[str | None, Option(
    "--plan", "FILE|NAMES", "Run micro-benchmarks instead of a network: those of a file of `twin "
    "plan`, names by comma, or all.")]
Suggest = Annotated[bool | None, Option(
    "--advice/--no-advice", None, "Predict which setting or rebuild helps most against the "
    "bottleneck; by default on a terminal, as it takes seconds.")]


@command
def measure(board: BoardName, model: OptionalModel = None, *, asked: requests.Runs,
            flamegraph: Flame = None, power: PowerRuns = None, power_layers: PowerLayers = False,
            power_repeat: PowerRepeat = False, ina226: MonitorBus = None, shunt: Shunt = None,
            plan: PlanText = None, source: requests.Source, advice: Suggest = None,
            keep: Kept, as_json: AsJson = False) -> None:
    """Measure a network on a board or on this machine (-b host); raw samples and what they show."""
    note_ignored_interrupt()
    if source.probe and plan is not None:
        raise UsageError("--probe and --plan exclude each other")
    if as_json and advice:
        raise UsageError("--json and --advice exclude each other: `twin advise --json` writes it")
    if (model is None) == (plan is None):
        raise UsageError("either a MODEL or --plan is needed, to say what is measured")
    check_outputs(flamegraph, folder=asked.output)
    requests.check_power(power, ina226, shunt, repeat=power_repeat)
    options = MeasureOptions(
        **asked.arguments, **source.arguments,
        power=None if power is None else requests.PowerRuns(
            runs=power, layers=power_layers, repeat=power_repeat, bus=ina226, shunt_ohm=shunt))
    if keep.keep is not None and (plan is not None or power is not None or source.resume
                                  or source.probe):
        raise UsageError("--keep: of a network's whole measurement; accepted: no --plan, --power, "
                         "--resume, --probe")
    if plan is not None:
        show_machine(plan, board, options, as_json)
    elif model is not None:
        show_network(model, board, options, flamegraph, advice, as_json, keep)


def show_network(model: str, board: str, options: MeasureOptions, flamegraph: str | None,
                 advice: bool | None, as_json: bool, keep: Kept | None) -> None:
    """Measure a network and print what its samples say."""
    from twin.cli.progress import Terminal

    with Terminal() as watcher:
        if keep is not None and keep.keep is not None:
            measured = keep.run("measure", requests.MeasureNetwork(
                model=model, board=board, **options.arguments), watcher=watcher)
        else:
            measured = twin.measure(model, board, options, watcher=watcher)
    show_view(measured, "measured:measured_report", measured.networks, as_json=as_json)
    if not as_json and board != "host" and not options.probe and (
            advice or (advice is None and open_console().is_terminal)):
        show(open_console(), describe_suggestion(measured, board))
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


def show_machine(plan: str, board: str, options: MeasureOptions, as_json: bool) -> None:
    """Run micro-benchmarks and print what they found."""
    from twin.cli.progress import Terminal

    with Terminal() as watcher:
        found = twin.measure_plan(plan, board, options, watcher=watcher)
    show_view(found, "microbench:machine_report", found.machine, found.name, found.stated,
              as_json=as_json)
    note_written(found.folder)


def write_flames(measured: Measured, path: str) -> None:
    """Write where the time goes; on the host by functions, where py-spy is installed."""
    from twin.api.commands.measure import fold_stacks
    from twin.reports.flamegraph import write_flamegraph

    stacks, remark = fold_stacks(measured)
    warn([remark] if remark else [])
    note_written(write_flamegraph(stacks, path))


@command
def energy(asked: requests.Energy, as_json: AsJson = False) -> None:
    """Integrate a recording over the marks of the board; intervals say what the meter can tell."""
    found = twin.energy(**asked.arguments)
    show_view(found, "measured:energy_table", found.measurement, as_json=as_json)
    if not as_json:
        accuracy = found.measurement.header.facts["accuracy"]
        show(open_console(), f"intervals rest on the meter: {accuracy}")
    warn([*([found.doubt] if found.doubt else []), *found.remarks])
    if found.steps is not None and not as_json:
        show_view(found, "microbench:power_table", found.steps, found.idle_mw)
    note_written(found.folder)


@command
def import_log(asked: requests.Import, as_json: AsJson = False) -> None:
    """Read a log of a public tool into a measurement folder."""
    found = twin.import_log(**asked.arguments)
    measurement = found.measurement
    if as_json:
        show_json(found)
    else:
        counts = ((len(measurement.runs), "run"), (len(measurement.layers), "layer"),
                  (len(measurement.counters), "counter"), (len(measurement.samples), "value"))
        show(open_console(), f"{measurement.header.kind}: " + ", ".join(
            f"{number} {what}{'' if number == 1 else 's'}" for number, what in counts))
    warn(found.remarks, most=len(found.remarks))  # every line of a log is accounted for
    note_written(found.folder)
