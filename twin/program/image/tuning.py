"""Tiles and levels of our own kernels: chosen by prediction, judged on a virtual board."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibration.virtual_board import check_virtual_board
from hwmodels.board.facts import Board
from hwmodels.errors import check_word
from hwmodels.frozen import frozen
from twin.deployment.deploy import deploy
from twin.deployment.deployment import Deployment
from twin.deployment.kernels import TILES
from twin.errors import FirmwareError, UsageError
from twin.network.graph import Graph
from twin.program.image.compile.build import build_firmware
from twin.program.image.compile.ports import load_port
from twin.program.image.compile.verification import BoardRun, open_board, random_input, run_on_board

Progress = Callable[[int, int, str], None]
"""(builds done, builds, the next one's name)."""

APART = 0.01
"""Layers whose candidates differ by less than that share are not judged."""


@frozen
class Candidate:
    """One way to build the firmware.

    Parameters
    ----------
    tile
        Windows its convolution copies at a time.
    level
        Compiler and level: "O2".
    cycles
        Predicted, of one inference.
    run
        What the virtual board counted; None: it was not among the best few.
    """

    tile: int
    level: str
    cycles: float
    layer_cycles: tuple[float, ...]
    ram_bytes: int
    run: BoardRun | None = None


@frozen
class Tuning:
    """All candidates, best predicted first, and what the best few came to.

    Parameters
    ----------
    deployment
        As it was before.
    candidates
        By rising prediction; those that were run have a `run`.
    """

    deployment: Deployment
    virtual: str
    candidates: tuple[Candidate, ...]

    @property
    def measured(self) -> tuple[Candidate, ...]:
        """Those that were run, best measured first."""
        return tuple(sorted((one for one in self.candidates if one.run is not None),
                            key=lambda one: one.run.total if one.run else 0.0))

    @property
    def kept(self) -> Candidate:
        """The best measured."""
        return self.measured[0]

    @property
    def best_was_best(self) -> bool:
        """Whether the best predicted is the best measured."""
        return self.kept is self.candidates[0]

    @property
    def pairs(self) -> tuple[int, int]:
        """Pairs of those that were run which prediction ordered as measurement did, and all."""
        runs = [one for one in self.candidates if one.run is not None]
        ordered = [(one.run.total <= other.run.total) for one, other in
                   itertools.combinations(runs, 2) if one.run and other.run]
        return sum(ordered), len(ordered)

    @property
    def layers(self) -> tuple[int, int]:
        """Layers whose best predicted build was their best measured, and all that were judged.

        Notes
        -----
        A layer is judged where its counts differ by more than `APART` between builds; a build as
        near to the best counts as it.
        """
        right = judged = 0
        runs = [one for one in self.candidates if one.run is not None]
        for position, layer in enumerate(runs[0].run.layers if runs and runs[0].run else ()):
            counts = [one.run.layers[position].count for one in runs if one.run]
            if max(counts) <= min(counts) * (1 + APART):
                continue
            judged += 1
            chosen = min(range(len(runs)), key=lambda i: runs[i].layer_cycles[layer.index])
            right += counts[chosen] <= min(counts) * (1 + APART)
        return right, judged


def tune(model: str | Graph, board: str | Board, predict: Callable[[Deployment], Any], *,
         virtual: str, tiles: Sequence[int] = (), levels: Sequence[str] = ("O2",), best: int = 3,
         on_progress: Progress | None = None) -> Tuning:
    """Predict every tile and level, build and run the best few, and keep the best measured.

    Parameters
    ----------
    model, board
        As `deploy` takes them.
    predict
        Returns the `Prediction` of a deployment, at stated prices.
    virtual
        A virtual board with the board's core.
    tiles
        Windows at a time; by default 1 to 16.
    levels
        Of the runtime firmware: "O2", "Os", "clang-O2".
    best
        How many are built and run.
    on_progress
        Called with each that is built next.

    Raises
    ------
    UsageError
        For no candidate, or a tile that cannot be.
    LinkError, ToolMissingError
        When there is no such virtual board, or what runs it is not installed; nothing is computed.
    FirmwareError
        When a build computes other bits than the arithmetic.
    """
    tiles = tuple(tiles) or (1, 2, 4, 8, 16)
    for tile in tiles:
        check_word("tile", str(tile), TILES, UsageError)
    if best < 1 or not levels:
        raise UsageError("tune: accepted: one level or more, and one build or more to run")
    check_virtual_board(virtual)  # Before what takes seconds.
    base = deploy(model, board, runtime=f"firmware@{levels[0]}")
    found = sorted((_predict(base, predict, tile, level) for level in levels for tile in tiles),
                   key=lambda one: one.cycles)
    ran = []
    for place, one in enumerate(found[:best]):
        if on_progress is not None:
            on_progress(place, min(best, len(found)), f"tile {one.tile} at {one.level}")
        ran.append(replace(one, run=_run(base, one, virtual)))
    return Tuning(deployment=base, virtual=virtual, candidates=(*ran, *found[best:]))


def _predict(base: Deployment, predict: Callable[[Deployment], Any], tile: int,
             level: str) -> Candidate:
    changed = base.replace({"runtime": f"firmware@{level}", "kernels.tile": str(tile)})
    prediction = predict(changed)
    clock = base.board.core.clock
    return Candidate(
        tile=tile, level=level, cycles=float(prediction.cycles), ram_bytes=changed.ram_bytes,
        layer_cycles=tuple(layer.bill.cycles(clock) for layer in prediction.layers))


def _run(base: Deployment, candidate: Candidate, virtual: str) -> BoardRun:
    compiler, _, level = candidate.level.rpartition("-")
    with tempfile.TemporaryDirectory(prefix="tune-") as folder:
        built = build_firmware(base.graph, load_port(virtual), Path(folder),
                               compiler=compiler or None, optimisation=f"-{level}",
                               tile=candidate.tile)
        with open_board(virtual, built.image, virtual=True, board=base.board) as (session, scales):
            run = run_on_board(session, base.graph, random_input(base.graph), runs=1, scales=scales)
    if not run.is_right:
        raise FirmwareError(f"tile {candidate.tile} at {candidate.level}: a layer is not what "
                            "arithmetic says")
    return run
