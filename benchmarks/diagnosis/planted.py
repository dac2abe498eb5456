"""Faults of a set-up, planted: real images, counted once, priced by hands the twin does not know.

Each measurement claims the set-up that was asked for; only what ran differs. What ran is the real
machine code, counted per layer by an emulator; what it costs is drawn by seed (`hands`, `timing`)
and shares nothing with the twin's tables. Cycles per layer are what a Cortex-M sends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from unittest.mock import patch

import numpy as np

from benchmarks.diagnosis.hands import Beside, Hand, draw_hand, run_layers, time_layers
from benchmarks.diagnosis.recorded import Work, load_work, record_work, save_work
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Header, Sample
from hwmodels.board.facts import Board
from hwmodels.board.file import change_board
from hwmodels.frozen import entity, frozen
from twin.deployment.deploy import deploy
from twin.deployment.deployment import Deployment
from twin.network.operators import graph_macs
from twin.program.image.compile.build import build_firmware
from twin.program.image.compile.ports import firmware_folder, load_port

NOTHING = Beside()
REFERENCE = Path(__file__).parent / "reference_kernels"
PORTS = {"cortex-m4": "unicorn-m4", "cortex-m7": "unicorn-m7", "cortex-m33": "unicorn-m33"}
RUNS, SLOW_RUNS = 12, 3
SECOND_HZ = 16e6
"""Clock of a second measurement, as the diagnosis advises most."""


@frozen
class Plant:
    """What is wrong, and how it is planted.

    Parameters
    ----------
    kind : str
        As the diagnosis calls it; of two, both, with " and " between.
    name : str
        Of this one, for files and tables.
    optimisation, defines, reference
        How the image is built instead.
    weights, arena : str or None
        Where data really are.
    changes : mapping
        Of the board, by dotted path: clocks, caches, memories.
    beside : Beside
        What goes on beside the work.
    lies : bool
        The firmware believes the clock it was told to set.
    runs : int
        How often it is measured.
    masked : bool
        Interrupts are, and the clock is `SECOND_HZ`.
    """

    kind: str
    name: str
    optimisation: str = "-O2"
    defines: tuple[str, ...] = ()
    reference: bool = False
    weights: str | None = None
    arena: str | None = None
    changes: Mapping[str, object] = field(default_factory=dict)
    beside: Beside = NOTHING
    lies: bool = False
    runs: int = RUNS
    masked: bool = False

    @property
    def image(self) -> str:
        """Name of the image that really ran."""
        return "-".join(filter(None, (
            self.optimisation.strip("-"), *self.defines, "reference" if self.reference else "",
            f"weights-{self.weights}" if self.weights else "",
            f"arena-{self.arena}" if self.arena else "")))


@entity
class Bench:
    """A network on a board as asked for, and where images and counts are kept.

    Parameters
    ----------
    network, board : str
        Of the zoo, and of the boards with an emulated core.
    folder : Path
        For images and what they were counted to do.
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

    def image(self, plant: Plant) -> Path:
        """Build the image that really ran; one per way of building and placement."""
        folder = self.folder / f"{self.network}-{self.board}-{plant.image}"
        if (folder / "firmware.elf").exists():
            return folder / "firmware.elf"
        placed = deploy(self.network, self.board, weights=plant.weights, arena=plant.arena)
        with _kernels(folder.parent / "firmware-reference" if plant.reference else None):
            return build_firmware(self.deployment.graph, load_port(self.port), folder,
                                  optimisation=plant.optimisation, defines=plant.defines,
                                  deployment=placed).image

    def hidden(self, plant: Plant) -> Board:
        """Return the board as it really is."""
        asked = self.deployment.board
        return change_board(asked, dict(plant.changes)) if plant.changes else asked

    def work(self, plant: Plant) -> Work:
        """Count what the image does, once per image and caches."""
        board = self.hidden(plant)
        image = self.image(plant)
        caches = [f"{cache.name}{cache.line_bytes}" for cache in board.caches if cache.enabled]
        kept = image.parent / f"{'-'.join(caches) or 'none'}.npz"
        if not kept.exists():
            save_work(kept, record_work(self.port, image, self.deployment.graph, board))
        return load_work(kept)

    def take_otherwise(self, plant: Plant) -> Plant:
        """Return a plant as a second measurement finds it: at `SECOND_HZ`, interrupts masked.

        A clock that is off is off by the same factor.
        """
        board = self.hidden(plant)
        path, asked = f"clocks.{board.core.clock}.frequency_hz", self.deployment.board.clock(
            board.core.clock).frequency_hz
        off = board.clock(board.core.clock).frequency_hz / asked if plant.lies else 1.0
        return replace(plant, changes={**plant.changes, path: SECOND_HZ * off}, masked=True,
                       beside=replace(plant.beside, gap_cycles=0.0))

    def hand(self, seed: int) -> Hand:
        """Return the hidden board a seed draws."""
        return draw_hand(self.deployment.board.core.model, seed)

    def measure(self, plant: Plant, hand: Hand, runs: int | None = None) -> Measurement:
        """Return what a hidden board sends.

        Parameters
        ----------
        plant : Plant
            What is wrong with it.
        hand : Hand
            What it costs.
        runs : int, optional
            Instead of the plant's.
        """
        work, board = self.work(plant), self.hidden(plant)
        layers = time_layers(hand, work, board, plant.beside, plant.image)
        seed = sum(plant.name.encode())
        rows = run_layers(hand, layers, plant.beside, runs or plant.runs, seed)
        samples = [sample for run, row in enumerate(rows) for sample in _sample(run, row, work)]
        return Measurement(header=self._header(plant, board), samples=tuple(samples))

    def _header(self, plant: Plant, board: Board) -> Header:
        asked, graph = self.deployment.board, self.deployment.graph
        core = asked.core.clock
        real = board.clock(core).frequency_hz
        told = SECOND_HZ if plant.masked else asked.clock(core).frequency_hz
        claimed = told if plant.lies else real
        return Header(
            kind="measured", model=graph.name, model_sha256=graph.sha256,
            architecture_id=graph.architecture_id, board=asked.name, runtime="firmware",
            clocks_hz=((core, claimed),), placement=tuple(asked.placement), temperature="warm",
            source="a hidden board, its costs drawn by seed", environment=(
                ("clock_by_host", f"{real / claimed:.5f} +- 0.00100"),
                *((("interrupts", "masked"),) if plant.masked else ())))


def _sample(run: int, row: np.ndarray, work: Work) -> Iterator[Sample]:
    for layer, cycles in (*zip(work.layers, row, strict=True), (None, row.sum())):
        yield Sample(run=run, layer=layer, counter="cpu_cycles", value=float(round(cycles)),
                     unit="cycles", clock="cpu")


def list_plants(bench: Bench) -> tuple[Plant, ...]:
    """Return the faults every board is planted with, the healthy set-up first: 44 on six boards."""
    board = bench.deployment.board
    clock = f"clocks.{board.core.clock}.frequency_hz"
    asked = board.clock(board.core.clock).frequency_hz
    work = 4.0 * graph_macs(bench.deployment.graph)  # about the cycles of an inference
    caches = _caches(board)
    others = [memory.name for memory in board.memories
              if memory.role == "sram" and memory.name != bench.deployment.arena]
    return (
        Plant(kind="as declared", name="healthy"),
        Plant(kind="-O0", name="unoptimised", optimisation="-O0", runs=SLOW_RUNS),
        Plant(kind="SIMD", name="no-simd", defines=("KERNEL_PORTABLE",)),
        Plant(kind="reference kernels", name="reference", reference=True, runs=SLOW_RUNS),
        Plant(kind="placement", name="weights-in-sram", weights="sram"),
        *(Plant(kind="placement", name=f"arena-in-{name}", arena=name) for name in others[:1]),
        *(Plant(kind="cache off", name=f"{name}-off", changes={f"caches.{name}.enabled": False})
          for name in caches[:1]),
        *((Plant(kind="cache off", name="caches-off", changes=_all_off(caches)),)
          if len(caches) > 1 else ()),
        Plant(kind="clock", name="clock-half", changes={clock: asked / 2}, lies=True),
        Plant(kind="clock", name="clock-16mhz", changes={clock: 16e6}),
        Plant(kind="other work", name="throttling",
              beside=Beside(slowing=0.05e9 / (10 * work))),
        Plant(kind="interrupts", name="interrupts",
              beside=Beside(gap_cycles=0.3 * work, service_cycles=0.05 * work)),
    )


def list_wider(bench: Bench) -> tuple[Plant, ...]:
    """Return faults that are smaller, rarer, or two at once."""
    board = bench.deployment.board
    flash = next(memory for memory in board.memories if memory.role == "flash")
    hertz = board.clock(board.core.clock).frequency_hz
    slower = {f"memories.{flash.name}.wait_states": flash.wait_states + 4}
    ticking = Beside(gap_cycles=hertz / 2000, service_cycles=0.05 * hertz / 2000, periodic=True)
    off = _all_off(_caches(board))
    narrow = {f"memories.{flash.name}.read_bytes": flash.read_bytes // 2}
    return (
        Plant(kind="optimisation", name="built-for-size", optimisation="-Os"),
        Plant(kind="optimisation", name="built-for-debugging", optimisation="-O1"),
        Plant(kind="wait states", name="wait-states", changes=slower),
        *((Plant(kind="prefetch", name="prefetch-off",
                 changes={f"memories.{flash.name}.prefetch": False}),) if flash.prefetch else ()),
        *((Plant(kind="flash width", name="half-the-width", changes=narrow),)
          if flash.read_bytes > 8 else ()),
        Plant(kind="interrupts", name="ticks-of-2-khz", beside=ticking),
        *((Plant(kind="load", name="another-master", beside=Beside(wait_cycles=0.4)),)
          if bench.deployment.arena == "sram" else ()),
        Plant(kind="none of these", name="nothing-listed", beside=Beside(strange=0.7)),
        Plant(kind="-O0 and cache off", name="unoptimised-and-caches-off", optimisation="-O0",
              changes=off, runs=SLOW_RUNS),
        Plant(kind="SIMD and wait states", name="no-simd-and-wait-states",
              defines=("KERNEL_PORTABLE",), changes=slower),
        Plant(kind="cache off and interrupts", name="caches-off-and-ticks", changes=off,
              beside=ticking),
        Plant(kind="SIMD and cache off", name="no-simd-and-caches-off",
              defines=("KERNEL_PORTABLE",), changes=off),
    )


def _caches(board: Board) -> list[str]:
    return [name for name in dict.fromkeys((board.core.dcache, board.core.icache)) if name]


def _all_off(caches: list[str]) -> dict[str, object]:
    return {f"caches.{name}.enabled": False for name in caches}


def _kernels(folder: Path | None) -> contextlib.AbstractContextManager[object]:
    """Build with reference kernels instead of ours while the context lasts."""
    if folder is None:
        return contextlib.nullcontext()
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(firmware_folder(), folder)
    for path in REFERENCE.glob("*.c"):
        shutil.copy(path, folder / "kernels" / path.name)
    return patch.dict(os.environ, TWIN_FIRMWARE=str(folder))
