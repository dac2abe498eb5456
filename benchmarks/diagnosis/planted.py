"""Faults of a set-up, planted: real firmware on an emulated core whose hidden costs are wrong.

Each measurement claims the set-up that was asked for; only what ran differs. The emulated core
takes its timing from the twin's own tables: what is found here tests the method, not the model. It
also counts exactly (`block_*`) what no Cortex-M4, M7 or M33 can: `as_a_core_counts` drops that.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from calibration.collecting.collector import Campaign
from calibration.collecting.link import Link
from calibration.collecting.plan import Pass, Plan
from calibration.collecting.wire.session import Session
from calibration.measurement.measurement import Measurement, read_measurement
from calibration.virtual_board.costs import Costs, Disturbance, costs_of
from calibration.virtual_board.unicorn_board import run_unicorn
from hwmodels.board.file import change_board
from twin.deployment.deployment import Deployment, deploy
from twin.image.compile.build import build_firmware
from twin.image.compile.ports import firmware_folder, load_port
from twin.network.operators import graph_macs

QUIET = Disturbance()
REFERENCE = Path(__file__).parent / "reference_kernels"
PORTS = {"cortex-m4": "unicorn-m4", "cortex-m7": "unicorn-m7", "cortex-m33": "unicorn-m33"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is wrong, and how it is planted.

    Parameters
    ----------
    kind : str
        As the diagnosis calls it.
    name : str
        Of this one, for files and tables.
    optimisation, defines, reference
        How the image is built instead.
    weights, arena : str or None
        Where data really are.
    changes : mapping
        Of the board, by dotted path: clocks, caches.
    disturbance : Disturbance
        Beside the work.
    lies : bool
        The firmware believes the clock it was told to set.
    """

    kind: str
    name: str
    optimisation: str = "-O2"
    defines: tuple[str, ...] = ()
    reference: bool = False
    weights: str | None = None
    arena: str | None = None
    changes: Mapping[str, object] = field(default_factory=dict)
    disturbance: Disturbance = QUIET
    lies: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Bench:
    """A network on a board as asked for, and where images and samples are kept.

    Parameters
    ----------
    network, board : str
        Of the zoo, and of the boards with an emulated core.
    folder : Path
        For images and measurements.
    """

    network: str
    board: str
    folder: Path

    @cached_property
    def deployment(self) -> Deployment:
        """As asked for."""
        return deploy(self.network, self.board)

    @property
    def port(self) -> str:
        """Emulated core."""
        return PORTS[self.deployment.board.core.model]

    def image(self, fault: Fault) -> Path:
        """Build the image that really ran; one per way of building and placement."""
        key = "-".join(filter(None, (
            self.network, self.board, fault.optimisation.strip("-"), *fault.defines,
            "reference" if fault.reference else "", fault.weights or "", fault.arena or "")))
        folder = self.folder / key
        if (folder / "firmware.elf").exists():
            return folder / "firmware.elf"
        placed = deploy(self.network, self.board, weights=fault.weights, arena=fault.arena)
        with _kernels(folder.parent / "firmware-reference" if fault.reference else None):
            return build_firmware(self.deployment.graph, load_port(self.port), folder,
                                  optimisation=fault.optimisation, defines=fault.defines,
                                  deployment=placed).image

    def costs(self, fault: Fault) -> Costs:
        """Return what the hidden board costs."""
        hidden = change_board(self.deployment.board, dict(fault.changes)) \
            if fault.changes else self.deployment.board
        costs = costs_of(hidden)
        claimed = self.deployment.board.clock("cpu").frequency_hz
        return dataclasses.replace(costs, disturbance=fault.disturbance,
                                   clock_hz=claimed if fault.lies else costs.clock_hz)

    def measure(self, fault: Fault, runs: int = 12) -> Measurement:
        """Run the firmware on the hidden board and return what it sent."""
        folder = self.folder / "samples" / f"{self.network}-{self.board}-{fault.name}"
        shutil.rmtree(folder, ignore_errors=True)
        graph, board = self.deployment.graph, self.deployment.board
        costs = self.costs(fault)
        told = {"clock_by_host": f"{self._real_hz(fault) / costs.clock_hz:.5f} +- 0.00100"}
        with run_unicorn(self.port, self.image(fault), costs=costs) as made, \
                Link(made.port) as link:
            session = Session(link)
            session.open(20.0)
            campaign = Campaign(
                session=session, folder=folder, board=board.name, model=graph.name,
                runtime="firmware", model_sha256=graph.sha256, gauges=made.gauges,
                architecture_id=graph.architecture_id, placement=tuple(board.placement),
                environment=told)
            campaign.prepare()
            plan = Plan(temperature="warm", warmup=0, passes=(Pass(events=(), runs=runs),),
                        most_runs=runs)
            campaign.collect(plan)
            session.stop()
        return read_measurement(campaign.folder_of("warm"))

    def _real_hz(self, fault: Fault) -> float:
        name = f"clocks.{self.deployment.board.core.clock}.frequency_hz"
        return float(str(fault.changes.get(name, self.costs(fault).clock_hz)))


def list_plants(bench: Bench) -> tuple[Fault, ...]:
    """Return the faults that can be planted on a board, the healthy set-up first."""
    board = bench.deployment.board
    clock = f"clocks.{board.core.clock}.frequency_hz"
    asked = board.clock(board.core.clock).frequency_hz
    work = 4.0 * graph_macs(bench.deployment.graph)  # about the cycles of an inference
    caches = [name for name in dict.fromkeys((board.core.dcache, board.core.icache)) if name]
    others = [memory.name for memory in board.memories
              if memory.role == "sram" and memory.name != bench.deployment.arena]
    return (
        Fault(kind="as declared", name="healthy"),
        Fault(kind="-O0", name="unoptimised", optimisation="-O0"),
        Fault(kind="SIMD", name="no-simd", defines=("KERNEL_PORTABLE",)),
        Fault(kind="reference kernels", name="reference", reference=True),
        Fault(kind="placement", name="weights-in-sram", weights="sram"),
        *(Fault(kind="placement", name=f"arena-in-{name}", arena=name) for name in others[:1]),
        *(Fault(kind="cache off", name=f"{name}-off", changes={f"caches.{name}.enabled": False})
          for name in caches[:1]),
        *((Fault(kind="cache off", name="caches-off", changes={
            f"caches.{name}.enabled": False for name in caches}),) if len(caches) > 1 else ()),
        Fault(kind="clock", name="clock-half", changes={clock: asked / 2}, lies=True),
        Fault(kind="clock", name="clock-16mhz", changes={clock: 16e6}),
        Fault(kind="throttling", name="throttling", disturbance=Disturbance(
            slowing=0.05e9 / (10 * work))),
        Fault(kind="interrupts", name="interrupts",
              disturbance=Disturbance(gap_cycles=0.3 * work, service_cycles=0.05 * work)),
    )


def as_a_core_counts(measured: Measurement) -> Measurement:
    """Return a measurement without the emulator's own counts: a Cortex-M4, M7 or M33 has no PMU."""
    return dataclasses.replace(measured, samples=tuple(
        sample for sample in measured.samples if not sample.counter.startswith("block_")))


@contextlib.contextmanager
def _kernels(folder: Path | None) -> Iterator[None]:
    """Build with reference kernels instead of ours while the context lasts."""
    if folder is None:
        yield
        return
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(firmware_folder(), folder)
    for path in REFERENCE.glob("*.c"):
        shutil.copy(path, folder / "kernels" / path.name)
    before = os.environ.get("TWIN_FIRMWARE")
    os.environ["TWIN_FIRMWARE"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["TWIN_FIRMWARE"]
        else:
            os.environ["TWIN_FIRMWARE"] = before
