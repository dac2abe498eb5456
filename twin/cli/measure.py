"""`twin measure`: run a network on a board, real or virtual, and keep every sample."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twin.cli.ending import note_ignored_interrupt
from twin.cli.options import BoardName, ClockText, parse_quantity
from twin.cli.output import note_written, open_console, show, warn
from twin.errors import UsageError

if TYPE_CHECKING:
    from calibration.collecting.collector import Campaign, Progress
    from calibration.collecting.plan import Plan
    from calibration.measurement.measurement import Measurement
    from calibration.power_trace import PowerTrace
    from calibration.virtual_board import Launched
    from hwmodels.board.facts import Board
    from twin.attribution.measured_layers import MeasuredNetwork
    from twin.network.graph import Graph
    from twin.prediction.prediction import Prediction

Port = Annotated[str | None, typer.Option(
    "--port", metavar="PORT", help="Serial device, pty, or socket://HOST:PORT; by default the "
                                   "only board that is plugged in.")]
Virtual = Annotated[str | None, typer.Option(
    "--virtual", metavar="NAME", help="A board of `twin boards --virtual`, or host.")]
Image = Annotated[str | None, typer.Option(
    "--image", metavar="ELF", help="Firmware for the virtual board; by default it is built.")]
Runs = Annotated[int | None, typer.Option(
    "--runs", min=1, help="Runs that are kept, warm, and cold where the port empties caches; by "
                          "default 100, of micro-benchmarks 5.")]
WarmUp = Annotated[int, typer.Option("--warmup", min=0, help="Runs before the warm ones.")]
Events = Annotated[str | None, typer.Option(
    "--counters", metavar="NAMES", help="Event counters, by comma; by default all, in passes.")]
InputFile = Annotated[str | None, typer.Option(
    "--input", metavar="FILE", help="Raw bytes of the network's input; by default seeded noise.")]
Mask = Annotated[bool, typer.Option("--mask", help="Mask interrupts instead of counting them.")]
Fixed = Annotated[bool, typer.Option(
    "--fixed", help="Exactly --runs runs, whatever their spread.")]
Baud = Annotated[int, typer.Option("--baud", help="Rate of a serial device.")]
Folder = Annotated[str | None, typer.Option(
    "--output", "-o", metavar="DIR", help="Folder for cold/ and warm/; by default under out/.")]
Resume = Annotated[bool, typer.Option(
    "--resume", help="Go on with a measurement in -o that was interrupted.")]
Supply = Annotated[float | None, typer.Option(
    "--supply", metavar="VOLT", help="Supply voltage, for the record.")]
Flame = Annotated[str | None, typer.Option(
    "--flamegraph", metavar="FILE", help="Where the time goes: a picture (.svg), or folded stacks "
                                         "for any viewer. On the host py-spy samples functions.")]
PlanText = Annotated[str | None, typer.Option(
    "--plan", metavar="FILE|NAMES", help="Run micro-benchmarks instead of a network: those of a "
                                         "file of `twin plan`, names by comma, or all.")]
OptionalModel = Annotated[str | None, typer.Argument(
    metavar="[MODEL]", help="A .tflite or .onnx file, or a network of `twin models`.")]
PowerRuns = Annotated[int | None, typer.Option(
    "--power", metavar="RUNS", min=1, help="Then make silent runs for a power meter, marked by "
                                           "the pin.")]
PowerLayers = Annotated[bool, typer.Option(
    "--power-layers", help="Toggle the pin at every layer of the silent runs.")]
PowerRepeat = Annotated[bool, typer.Option(
    "--power-repeat", help="Then each layer by itself, repeated for a second: for layers shorter "
                           "than a sample of the INA226.")]
MonitorBus = Annotated[str | None, typer.Option(
    "--ina226", metavar="BUS", help="Read an INA226 meanwhile, such as /dev/i2c-1.")]
Shunt = Annotated[float | None, typer.Option(
    "--shunt", metavar="OHM", help="Shunt of the INA226.")]


HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerWindow:
    """Silent runs for a power meter; `runs` None: none are made."""

    runs: int | None
    layers: bool
    repeat: bool
    bus: str | None
    shunt_ohm: float | None


def measure(board: BoardName, model: OptionalModel = None, port: Port = None,
            virtual: Virtual = None, image: Image = None, runs: Runs = None,
            warmup: WarmUp = 10, counters: Events = None,
            input_file: InputFile = None, mask: Mask = False, fixed: Fixed = False,
            baud: Baud = 115200, clock: ClockText = None, output: Folder = None,
            supply: Supply = None, flamegraph: Flame = None, power: PowerRuns = None,
            power_layers: PowerLayers = False, power_repeat: PowerRepeat = False,
            ina226: MonitorBus = None, shunt: Shunt = None, plan: PlanText = None,
            resume: Resume = False) -> None:
    """Measure a network on a board, or on this machine (-b host): raw samples and what they say."""
    note_ignored_interrupt()
    if board == HOST and port is None:
        virtual = HOST
    _check_target(model, plan, port, virtual, image, clock)
    if ina226 is not None and (shunt is None or power is None):
        raise UsageError("--ina226 needs --shunt OHM and --power RUNS")
    if resume and (output is None or plan is not None):
        raise UsageError("--resume needs the -o DIR of a network's measurement")
    if power_repeat and ina226 is None:
        raise UsageError("--power-repeat needs --ina226 BUS")
    deployed = None if virtual == HOST else _load_board(board, clock)
    if plan is not None:
        from twin.cli.microbench import measure_plan

        measure_plan(plan, deployed, port=port, virtual=virtual, image=image, runs=runs,
                     baud=baud, output=output, supply=supply, power=power)
        return
    from calibration.collecting.link import find_port
    from twin.network.readers import read_model

    assert model is not None
    graph = read_model(model)
    name = deployed.name if deployed is not None else HOST
    folder = Path(output) if output else _default_folder(graph.name, name)
    begun = any((folder / part / "header.json").exists() for part in ("cold", "warm"))
    if begun and not resume:
        raise UsageError(f"{folder} holds a measurement, and none is written over; give another "
                         "-o, or --resume to go on with it")
    if resume and not begun:
        raise UsageError(f"{folder}: holds no measurement to go on with")
    told: dict[str, Any] = {
        "folder": folder, "board": name, "model": graph.name,
        "model_sha256": graph.sha256, "architecture_id": graph.architecture_id,
        "supply_v": supply, "resume": resume,
        "placement": tuple(deployed.placement) if deployed is not None else ()}
    names = None if counters is None else [name.strip() for name in counters.split(",")]
    data = None if input_file is None else _read_input(Path(input_file), graph)
    asked = {"runs": 100 if runs is None else runs, "warmup": warmup, "events": names, "mask": mask,
             "adaptive": not fixed}
    window = PowerWindow(runs=power, layers=power_layers, repeat=power_repeat, bus=ina226,
                         shunt_ohm=shunt)
    fresh = not folder.exists()
    try:
        with _launch(graph, deployed, virtual, image, folder / "firmware") as made:
            line = made.port if made is not None else find_port(port)
            networks = _run_campaign(line, baud, told, made, graph, deployed, data, asked,
                                     window)
    except BaseException:
        if any(folder.glob("*/samples.jsonl")):
            note_written(f"{folder}, as far as it came; --resume goes on with it")
        elif fresh:  # an image and no sample: the same command is to work again
            shutil.rmtree(folder, ignore_errors=True)
        raise
    from twin.reports.tables.measured import measured_report

    show(open_console(), measured_report(networks))
    note_written(folder)
    if flamegraph is not None:
        _write_flamegraph(Path(flamegraph), graph, networks[-1], sampled=virtual == HOST)


def _check_target(model: str | None, plan: str | None, port: str | None, virtual: str | None,
                  image: str | None, clock: str | None) -> None:
    """Refuse what does not say, once, what is measured and on what."""
    if (model is None) == (plan is None):
        raise UsageError("either a MODEL or --plan is needed, to say what is measured")
    if port is not None and virtual is not None:
        raise UsageError("--port and --virtual exclude each other")
    if image is not None and virtual is None:
        raise UsageError("--image is for --virtual; a real board is flashed: twin firmware flash")
    if clock is not None and virtual is not None and not virtual.startswith("unicorn"):
        raise UsageError(f"--clock {clock}: {virtual} runs at a clock of its own; accepted: a "
                         "unicorn-* board, or no --clock")


def _read_input(path: Path, graph: Graph) -> bytes:
    """Read the network's input, and refuse another length before anything is built."""
    from twin.image.compile.verification import random_input

    data = path.read_bytes()
    wanted = random_input(graph).nbytes
    if len(data) != wanted:
        raise UsageError(f"{path}: has {len(data)} bytes; {graph.name} takes {wanted}")
    return data


def _load_board(board: str, clock: str | None) -> Board:
    from hwmodels.board.file import load_board

    loaded = load_board(board)
    if clock is None:
        return loaded
    name = f"clocks.{loaded.core.clock}.frequency_hz"
    return load_board(board, overrides={name: parse_quantity(clock, "hz", "--clock")})


def _default_folder(model: str, board: str) -> Path:
    return Path("out") / "measurements" / f"{model}-{board}-{time.strftime('%Y%m%d-%H%M%S')}"


@contextlib.contextmanager
def _launch(graph: Graph, board: Board | None, virtual: str | None, image: str | None,
            folder: Path) -> Iterator[Launched | None]:
    """Build and start a virtual board; None for a real one."""
    if virtual is None:
        yield None
        return
    from calibration.virtual_board import check_virtual_board, launch
    from twin.image.compile.ports import check_core

    check_virtual_board(virtual)
    if board is not None:
        check_core(virtual, board)
    elf = Path(image) if image is not None else _build(graph, board, virtual, folder)
    with launch(virtual, elf, board=board) as made:
        yield made


def _build(graph: Graph, board: Board | None, name: str, folder: Path) -> Path:
    """Build the image; an emulated core gets the memories of the board it stands for."""
    from twin.deployment.deployment import deploy
    from twin.image.compile.build import build_firmware, choose_kernels
    from twin.image.compile.ports import load_port

    port = load_port(name)
    placed = None if port.fixed_map or board is None else deploy(graph, board)
    return build_firmware(graph, port, folder, deployment=placed,
                          kernels=choose_kernels()).image


def _run_campaign(line: str, baud: int, told: dict[str, Any], made: Launched | None, graph: Graph,
                  board: Board | None, data: bytes | None, asked: dict[str, Any],
                  window: PowerWindow) -> list[MeasuredNetwork]:
    """Open the line, make every plan the board allows, and describe what came."""
    from calibration.collecting.board_samples import counter_name
    from calibration.collecting.collector import Campaign
    from calibration.collecting.link import open_link
    from calibration.collecting.plan import make_plans
    from calibration.collecting.wire.session import RETURN_S, Session
    from twin.attribution.measured_layers import judge_network
    from twin.image.compile.build import runtime_of

    remarks: list[str] = []
    with open_link(line, baud=baud) as link:
        session = Session(link, on_event=remarks.append, return_s=RETURN_S if made is None else 0.0)
        try:
            session.open(timeout_s=10.0)
            identity = session.identify()
            runtime = runtime_of(identity.compiler)
            campaign = Campaign(
                session=session, runtime=runtime, **told,
                scales=made.scales(identity.timer_hz) if made and identity.timer_hz else {},
                gauges=made.gauges if made else None,
                environment=made.environment if made else {})
            campaign.prepare(data)
            plans = make_plans(campaign.identity, campaign.counters, **asked)
            networks = [_collect(campaign, plan, graph, board,
                                 _predict(graph, board, runtime, plan.temperature))
                        for plan in plans]
            if window.runs is not None:
                _make_power_window(campaign, window, networks[-1])
        finally:
            session.stop()
            warn(remarks)
    if made is not None and made.failure() is not None:
        warn([str(made.failure())])
    widths = {counter_name(one): one.bits for one in campaign.counters}
    check = campaign.clock if board is not None else None  # the host's clock is its own
    clock = (check.ratio, check.uncertainty) if check else None
    for network in networks:
        findings = judge_network(network, widths=widths, mismatches=campaign.mismatches,
                                 clock=clock)
        temperature = network.measurement.header.temperature
        warn(f"{temperature}: {finding}" for finding in findings)
    return networks


def _predict(graph: Graph, board: Board | None, runtime: str,
             temperature: str) -> Prediction | None:
    """Predict the image's kernels; None on the host and where they cannot be placed."""
    if board is None:
        return None
    from hwmodels.errors import TwinError
    from twin.deployment.deployment import deploy
    from twin.learning.calibrated import predict_calibrated

    try:
        return predict_calibrated(deploy(graph, board, runtime=runtime), temperature=temperature)
    except TwinError:
        return None


def _collect(campaign: Campaign, plan: Plan, graph: Graph, board: Board | None,
             prediction: Prediction | None) -> MeasuredNetwork:
    """Make the runs of a plan with a progress bar that names the bottleneck so far."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    from calibration.measurement.measurement import read_measurement
    from twin.attribution.measured_layers import describe_network, find_limits

    limits = find_limits(board)
    bars = Bars(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                TimeRemainingColumn(), TextColumn("{task.fields[bound]}", markup=False),
                console=Console(file=sys.stderr), disable=not sys.stderr.isatty())

    def describe(measured: Measurement) -> MeasuredNetwork:
        return describe_network(measured, graph, limits, prediction)

    with bars:
        task = bars.add_task(plan.temperature, total=plan.runs, bound="")

        due_s = 0.0

        def update(progress: Progress) -> None:
            nonlocal due_s
            bars.update(task, completed=progress.done, total=progress.total)
            begin = time.monotonic()
            if not bars.disable and begin >= due_s:
                found = describe(read_measurement(campaign.folder_of(plan.temperature),
                                                  growing=True))
                worst = found.whole.bottleneck
                bars.update(task, bound=f"{worst.kind} {worst.severity:.0%}: {worst.evidence} "
                                        f"[{worst.origin}]" if worst.kind else worst.evidence)
                due_s = time.monotonic() + 10 * (time.monotonic() - begin)  # a tenth of the time

        campaign.on_progress = update
        return describe(campaign.collect(plan))


def _make_power_window(campaign: Campaign, window: PowerWindow, network: MeasuredNetwork) -> None:
    """Make the silent runs; with an INA226, integrate what it read."""
    assert window.runs is not None
    if window.bus is None:
        begin, end = campaign.power_window(window.runs, layers=window.layers)
        warn([f"power window: {window.runs} runs in {(end - begin) * 1e-6:.3f} s; give the meter's "
              "recording to `twin energy`"])
        return
    from calibration.collecting.wire.payloads import NO_LAYER
    from calibration.measurement.measurement import Measurement, write_measurement
    from calibration.power_trace import Ina226, LiveTrace, energy_samples, repeat_layers
    from twin.reports.tables.measured import energy_table

    meter = Ina226.open(window.bus, shunt_ohm=window.shunt_ohm)

    def record(runs: int, layers: bool, place: int = NO_LAYER, repeat: int = 1) -> PowerTrace:
        with LiveTrace(meter) as live:
            time.sleep(0.1)  # some idle before and after, so that the window is covered
            edges = campaign.power_window(runs, layers=layers, repeat_layer=place,
                                          repeat=repeat)
            time.sleep(0.1)
        return live.trace(edges)

    samples = energy_samples(record(window.runs, window.layers), (), (), runs=window.runs)
    times = {layer.index: layer.time_us for layer in network.layers
             if layer.index is not None and layer.time_us is not None}
    if window.repeat and len(times) == len(network.layers):
        samples += repeat_layers(lambda place, repeat: record(1, False, place, repeat),
                                 list(times), list(times.values()))
    found = Measurement(header=network.measurement.header, samples=tuple(samples))
    show(open_console(), energy_table(found))
    note_written(write_measurement(campaign.folder_of("energy"), found))


def _write_flamegraph(path: Path, graph: Graph, network: MeasuredNetwork, sampled: bool) -> None:
    """Write stacks of layers as measured; on the host of functions, where py-spy is installed."""
    from twin.image.compile.profile import find_profiler, sample_stacks
    from twin.reports.flamegraph import draw_flamegraph

    if sampled and find_profiler() is not None:
        stacks = sample_stacks(graph)
    else:
        stacks = list(_folded_stacks(network))
        if sampled:
            warn(["the flamegraph shows layers only; functions need py-spy: pip install py-spy"])
    text = draw_flamegraph(stacks) if path.suffix == ".svg" else "".join(stacks)
    path.write_text(text, encoding="utf-8")
    note_written(path)


def _folded_stacks(network: MeasuredNetwork) -> Iterator[str]:
    """One line per layer: frames by semicolon, then its weight."""
    model = network.measurement.header.model
    for layer in network.layers:
        yield f"{model};{layer.op};{layer.index} {layer.name.replace(';', ',')} {layer.p50:.0f}\n"
