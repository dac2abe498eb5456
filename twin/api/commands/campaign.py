"""A network's measurement from the image to the quality of its samples."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibration.measurement.measurement import (
    BOARD_HASH,
    Measurement,
    read_header,
    read_measurement,
    write_measurement,
)
from hwmodels.board.file import hash_board, list_boards
from hwmodels.core.file import name_core
from hwmodels.errors import TwinError, reworded
from hwmodels.files import read_regular
from hwmodels.frozen import NamedTexts, frozen
from twin.api.commands.claims import claim_folder
from twin.api.commands.measuring import HOST, Watcher, launch_virtual
from twin.api.requests.measurement import MeasureOptions, PowerRuns
from twin.errors import UsageError

if TYPE_CHECKING:
    from calibration.collecting.collector import Campaign, Progress
    from calibration.collecting.plan import Plan
    from calibration.collecting.wire.payloads import Identity
    from calibration.measurement.measurement import Measurement
    from calibration.measurement.sample import Header
    from calibration.power_trace.trace import PowerTrace
    from calibration.virtual_board import Launched
    from hwmodels.board.facts import Board
    from twin.attribution.measured_layers import MeasuredNetwork
    from twin.network.graph import Graph
    from twin.pricing.prediction import Prediction
    from twin.program.image.compile.build import Build

BUILT = Path("build", "firmware")
"""Where `twin firmware build` puts images by default."""


@frozen
class Run:
    """A measurement with everything it needs, on a board that is yet to be reached.

    Parameters
    ----------
    board : Board or None
        What it is placed on; None is this machine.
    folder : Path
        Of image and samples.
    data : bytes or None
        The network's input; None: seeded noise.
    watcher : Watcher
        Called with progress and warnings.
    """

    graph: Graph
    board: Board | None
    options: MeasureOptions
    folder: Path
    data: bytes | None
    watcher: Watcher

    def measure(self) -> tuple[MeasuredNetwork, ...]:
        """Open the line, make every plan the board allows, and describe what came."""
        from calibration.collecting.link import find_port

        with launch_virtual(self.options.virtual, self.board, self.make) as made:
            line = made.port if made is not None else find_port(self.options.port)
            campaign, networks = self.collect_plans(line, made)
        self.judge(campaign, networks)
        return networks

    def make(self, virtual: str) -> Path:
        """Return the image for a virtual board, built where none was named."""
        from calibration.virtual_board import port_of
        from twin.program.image.compile.ports import check_core

        if self.board is not None:
            check_core(port_of(virtual), self.board)
        image = self.options.image
        return Path(image) if image is not None else self.build(port_of(virtual))

    def build(self, name: str) -> Path:
        """Build the image; an emulated core gets the memories of the board it stands for."""
        from twin.deployment.deploy import deploy
        from twin.program.image.compile.build import build_firmware, choose_kernels
        from twin.program.image.compile.ports import load_port

        port = load_port(name)
        placed = None if port.fixed_map or self.board is None else deploy(self.graph, self.board)
        with contextlib.ExitStack() as held:
            claim = functools.partial(held.enter_context, claim_folder(
                self.folder / "firmware", "builds into it"))
            if not self.options.resume:
                claim()

            def accept(built: Build) -> None:
                if self.options.resume:
                    self.compare(built)
                    claim()

            return build_firmware(self.graph, port, self.folder / "firmware", deployment=placed,
                                  kernels=choose_kernels(), accept=accept, within=self.folder).image

    def compare(self, built: Build) -> None:
        """Refuse another image than a measurement was started with, before that is written over."""
        from twin.program.image.compile.build import runtime_of

        for header in read_started(self.folder):
            then = header.facts
            refuse_other(self.folder, (
                ("runtime", header.runtime, runtime_of(built.compiler)),
                ("compiler", then.get("compiler"), built.compiler[:63]),
                ("firmware", then.get("firmware_sha256", "")[:12], built.digest.hex()[:12])))

    def collect_plans(self, line: str, made: Launched | None,
                      ) -> tuple[Campaign, tuple[MeasuredNetwork, ...]]:
        """Make every plan, then the silent runs; the line is left idle, whatever happens."""
        from calibration.collecting.link import open_link
        from calibration.collecting.plan import make_plans
        from calibration.collecting.wire.conversation import RETURN_S
        from calibration.collecting.wire.session import Session
        from twin.program.image.compile.build import runtime_of

        options, remarks = self.options, list[str]()
        with open_link(line, baud=options.baud) as link:
            session = Session(link, on_event=remarks.append,
                              return_s=RETURN_S if made is None else 0.0)
            try:
                session.open(timeout_s=10.0)
                identity = session.identify()
                self.check_part(identity, line)
                runtime = runtime_of(identity.compiler)
                campaign = self.begin(session, runtime, identity, made)
                campaign.prepare(self.data)
                plans = make_plans(
                    campaign.identity, campaign.counters, warmup=options.warmup,
                    runs=100 if options.runs is None else options.runs, events=options.counters,
                    mask=options.mask, adaptive=not options.fixed)
                networks = tuple(self.collect(campaign, plan, runtime) for plan in plans)
                if options.power is not None:
                    self.power(campaign, options.power, networks[-1])
            finally:
                session.stop()
                for remark in remarks:
                    self.watcher.remark(remark)
        if made is not None and made.failure() is not None:
            self.watcher.remark(str(made.failure()))
        return campaign, networks

    def check_part(self, identity: Identity, line: str) -> None:
        """Hold the core that answers against the board's; another port is remarked.

        Raises
        ------
        UsageError
            For another core, unless it is to be measured anyway.
        """
        board = self.board
        if board is None or self.options.virtual is not None:
            return
        core = name_core(identity.core_id)
        if core not in (None, board.core.model):
            text = (f"{line}: a {core} answers (CPUID {identity.core_id:#010x}), {board.name} has "
                    f"a {board.core.model}")
            if not self.options.anyway:
                raise UsageError(f"{text}; accepted: -b of the board on the line, or --anyway")
            self.watcher.remark(f"{text}: measured as it was asked for")
        elif identity.port != board.name and identity.port in list_boards():
            self.watcher.remark(f"{line}: the image is of port {identity.port}, the board asked "
                                f"for is {board.name}: is it the one on the line?")

    def begin(self, session: Any, runtime: str, identity: Identity, made: Launched | None,
              ) -> Campaign:
        """Return the campaign of a session."""
        from calibration.collecting.collector import Campaign
        from twin.attribution.folders import note_file

        return Campaign(
            session=session, runtime=runtime, folder=self.folder, model=self.graph.name,
            board=self.board.name if self.board is not None else HOST,
            model_sha256=self.graph.sha256, architecture_id=self.graph.architecture_id,
            model_layers=len(self.graph.layers),
            supply_v=self.options.supply_v, resume=self.options.resume,
            placement=self.place(identity.build_sha256, made),
            scales=made.scales(identity.timer_hz) if made and identity.timer_hz else {},
            gauges=made.gauges if made else None, clocked=made is None or made.clocked,
            environment={
                **(made.environment if made else {}), **note_file(self.graph),
                **({} if self.board is None else {BOARD_HASH: hash_board(self.board)})})

    def place(self, digest: bytes, made: Launched | None) -> NamedTexts:
        """Return where weights, arena and code lie: as the image has them, else the board's file.

        Parameters
        ----------
        digest : bytes
            As the image on the board states it.
        """
        if self.board is None:
            return ()
        from twin.program.image.compile.image_sizes import read_sizes
        from twin.program.image.compile.ports import read_fixed_places

        fixed = read_fixed_places(self.board)
        declared = {**dict(self.board.placement), **fixed}  # of every image of the board's port
        image = self.find_flashed(digest) if made is None else made.image
        if image is None and fixed:
            return tuple(declared.items())
        if image is None:
            self.watcher.remark("placement: as the board's file declares, as the image that runs "
                                f"is none under {BUILT}: "
                                + ", ".join(f"{role} in {name}" for role, name in declared.items())
                                + "; --image FILE names one built elsewhere")
            return tuple(declared.items())
        found = dict(read_sizes(image, self.board).placement)
        others = [f"{role} in {name} ({declared.get(role)})" for role, name in found.items()
                  if name != declared.get(role)]
        if others:
            self.watcher.remark(f"placement: {', '.join(others)}, as the image has it (in "
                                "brackets what the board's file declares)")
        return tuple((declared | found).items())

    def find_flashed(self, digest: bytes) -> Path | None:
        """Return the image a real board runs: the one that was named, or one that was built.

        Raises
        ------
        UsageError
            When the one that was named is not what runs.
        """
        if self.options.image is None:
            return find_image(digest)
        image = Path(self.options.image)
        with reworded(OSError, UsageError, f"{image}: cannot be read (", ")"):
            content = read_regular(image)
        if any(digest) and digest not in content:
            raise UsageError(f"--image {image}: is not what runs on the board, whose image states "
                             f"{digest.hex()[:12]}; flash it (twin firmware flash --image), or "
                             "name the one that was flashed")
        return image

    def collect(self, campaign: Campaign, plan: Plan, runtime: str) -> MeasuredNetwork:
        """Make the runs of a plan; the watcher may ask what they say so far."""
        from twin.attribution.measured_layers import describe_network, find_limits

        limits = find_limits(self.board)
        prediction = self.predict(runtime, plan.temperature, dict(campaign.placement))

        def describe(measured: Measurement) -> MeasuredNetwork:
            return describe_network(measured, self.graph, limits, prediction)

        def update(progress: Progress) -> None:
            self.watcher.progress(progress, lambda: describe(read_measurement(
                campaign.folder_of(plan.temperature), growing=True)))

        campaign.on_progress = update
        return describe(campaign.collect(plan))

    def predict(self, runtime: str, temperature: str,
                placement: Mapping[str, str]) -> Prediction | None:
        """Predict the image's kernels; None on the host and where they cannot be placed."""
        if self.board is None:
            return None
        from twin.deployment.deploy import deploy
        from twin.pricing.calibrated import predict_calibrated

        try:
            return predict_calibrated(
                deploy(self.graph, self.board, runtime=runtime, weights=placement.get("weights"),
                       arena=placement.get("arena")), temperature=temperature)
        except TwinError:
            return None

    def power(self, campaign: Campaign, power: PowerRuns, network: MeasuredNetwork) -> None:
        """Make the silent runs; with an INA226, integrate what it read."""
        if power.bus is None:
            begin, end = campaign.power_window(power.runs, layers=power.layers)
            self.watcher.remark(f"power window: {power.runs} runs in {(end - begin) * 1e-6:.3f} s; "
                                "give the meter's recording to `twin energy`")
            return
        from calibration.power_trace.board_energy import energy_samples
        from calibration.power_trace.repetition import repeat_layers

        record = _open_meter(campaign, power)
        samples = energy_samples(record(power.runs, power.layers), (), (), runs=power.runs)
        times = {layer.index: layer.time_us for layer in network.layers
                 if layer.index is not None and layer.time_us is not None}
        if power.repeat and len(times) == len(network.layers):
            samples += repeat_layers(lambda place, repeat: record(1, False, place, repeat),
                                     list(times), list(times.values()))
        found = Measurement(header=network.measurement.header, samples=tuple(samples))
        self.watcher.energy(found, write_measurement(campaign.folder_of("energy"), found))

    def judge(self, campaign: Campaign, networks: tuple[MeasuredNetwork, ...]) -> None:
        """Tell the watcher what the quality of each network's samples is."""
        from calibration.collecting.board_samples import counter_name
        from calibration.collecting.clock_check import describe_latency
        from twin.attribution.measured_layers import judge_network

        widths = {counter_name(one): one.bits for one in campaign.counters}
        check = campaign.clock if self.board is not None else None  # the host's clock is its own
        clock = (check.ratio, check.uncertainty) if check else None
        if check is not None and (text := describe_latency(check, campaign.session.link.port)):
            self.watcher.remark(text)
        for network in networks:
            findings = judge_network(network, widths=widths, mismatches=campaign.mismatches,
                                     clock=clock)
            for finding in findings:
                self.watcher.remark(f"{network.measurement.header.temperature}: {finding}")


def read_started(folder: Path) -> list[Header]:
    """Return the headers of what was measured into a folder, of each temperature."""
    return [read_header(folder / part) for part in ("cold", "warm")
            if (folder / part / "header.json").exists()]


def refuse_other(folder: Path, same: Iterable[tuple[str, str | None, str]]) -> None:
    """Refuse to resume a measurement of something else.

    Parameters
    ----------
    same : iterable of (str, str or None, str)
        What must not differ: its name, as it was, and as it is now.
    """
    for name, then, now in same:
        if then != now:
            raise UsageError(f"{folder}: cannot be resumed: the {name} was {then}, now {now}; "
                             "ask for what it was started with, or give another -o")


def find_image(digest: bytes) -> Path | None:
    """Return the image `twin firmware build` made under `BUILT` that states a hash; None: no such.

    Parameters
    ----------
    digest : bytes
        Of every source and option; the image holds it.
    """
    return next((image for image in sorted(BUILT.glob("*/firmware.elf"))
                 if any(digest) and digest in image.read_bytes()), None)


def _open_meter(campaign: Campaign, power: PowerRuns) -> Any:
    """Open an INA226; return what records silent runs with it."""
    from calibration.collecting.wire.payloads import NO_LAYER
    from calibration.power_trace.ina226 import Ina226
    from calibration.power_trace.live import LiveTrace

    assert power.bus is not None
    meter = Ina226.open(power.bus, shunt_ohm=power.shunt_ohm)

    def record(runs: int, layers: bool, place: int = NO_LAYER, repeat: int = 1) -> PowerTrace:
        with LiveTrace(meter) as live:
            time.sleep(0.1)  # some idle before and after, so that the window is covered
            edges = campaign.power_window(runs, layers=layers, repeat_layer=place, repeat=repeat)
            time.sleep(0.1)
        return live.trace(edges)

    return record
