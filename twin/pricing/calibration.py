"""Learnt prices of a deployment: factors on what is stated, of an overlay, shipped or a file."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from calibration.fitting.cell import PARTS, UNSEEN_RUNTIME, Estimate, locate
from calibration.fitting.intervals import CORE_SD
from calibration.fitting.overlay import (
    DOUBTS,
    Entry,
    Learnt,
    Overlay,
    Support,
    find_entry,
    pack_covariance,
    read_overlay,
    read_shipped,
)
from hwmodels.board.facts import Board, Core
from hwmodels.frozen import frozen
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.pricing.counted_prices import IMAGE, know_core, state_core, tell_basis
from twin.pricing.extrapolation import MACHINE, name_changes
from twin.pricing.price_names import ENERGY_PRICES, EXECUTED, TIME_PRICES
from twin.runtimes import load_runtime
from twin.runtimes.runtime import Runtime

AUTO, NONE = "auto", "none"
"""Values of `calibration`: the shipped overlay that matches, or stated prices; else a file."""

FAR = math.log(1.5)
"""Logarithm from which a price is doubted that is not shipped so, where that was learnt from rows
of the board, where it is strained, or where it moved alone: assumed."""

MOVED = 0.1
"""Logarithm that prices rows do not ask for move by less than (assumed)."""


@frozen
class Calibration:
    """Learnt prices that apply to a deployment.

    Parameters
    ----------
    origin
        "shipped" or the file's name.
    time, energy
        Log factors and covariance, in the order of `TIME_PRICES` and `ENERGY_PRICES`.
    spread, energy_spread
        How far apart prices lie by level, where it was learnt: `calibration.fitting.prior.Spread`.
    operators
        How well rows of the library know each operator: `intervals.remaining_sd`.
    kinds
        Of the measurements it was learnt from.
    counted
        Where instructions were counted that no row is asked for: what `tell_basis` returns.
    far
        Time prices of a file that are `FAR` from those shipped: not believed.
    sources, contents
        What it was learnt from: rows of tables, folders and their layers; hashes of measurements.
    """

    origin: str
    entry: Entry
    time: Estimate
    energy: Estimate | None
    spread: Mapping[str, float]
    energy_spread: Mapping[str, float]
    operators: Mapping[str, float]
    kinds: tuple[str, ...] = ()
    counted: str = ""
    far: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    contents: tuple[str, ...] = ()

    def rests_on(self, folder: Path, content: str) -> bool:
        """Whether it was learnt from the measurement in a folder, or that of such a hash.

        Its faults are then in the prices.
        """
        return content in self.contents or (self.origin != "shipped" and folder.resolve() in {
            Path(re.sub(" layer [0-9]+$", "", source)).resolve() for source in self.sources})

    @property
    def version(self) -> str:
        """What identifies these prices: a hash of their content."""
        return hashlib.sha256(repr(self.entry).encode()).hexdigest()[:12]

    def share_by_shape(self, shares: np.ndarray) -> float:
        """Return what prices parted by the shape of layers add to a time, as a share of it.

        Parameters
        ----------
        shares : ndarray of float, (time prices,)
            Of the time, by price.

        Notes
        -----
        With both parts of a price at the mean m of their logarithms x, a share s would take
        s exp(m - x): nothing is added where they are one.
        """
        mean = self.time.log.copy()
        for part, whole in PARTS.items():
            both = [TIME_PRICES.index(part), TIME_PRICES.index(whole)]
            mean[both] = self.time.log[both].mean()
        return float(shares @ -np.expm1(mean - self.time.log))

    @property
    def powers_of(self) -> str:
        """Whose the energy prices are."""
        boards = f"boards with {self.entry.core}" if self.entry.core else "other boards"
        return self.entry.powers_of or self.entry.board or boards

    def name_changes(self, deployment: Deployment,
                     sections: Sequence[str] = MACHINE) -> tuple[str, ...]:
        """Return `name_changes` from the board its rows are of; none where none is of this one."""
        entry, board = self.entry, deployment.board
        return () if entry.board is None or not entry.time.rows else name_changes(
            deployment, entry.board if self.origin == "shipped" else board.file or board.name,
            sections)

    @property
    def power_basis(self) -> str:
        """What powers rest on where no row measured energy; "" where some did."""
        if self.energy is None:
            return "stated by the board's file"
        of = self.entry.powers_of if self.origin != "shipped" else ""
        return f"as shipped, of {of}" if of else ""

    @property
    def measured(self) -> bool:
        """Whether rows behind its times are of this board and library, not all emulated."""
        entry = self.entry
        return (entry.board is not None and entry.time.rows > 0 and not self.counted
                and {*self.kinds} - {*DOUBTS} != {"simulated"})

    @property
    def description(self) -> str:
        """What it is, for a report's header."""
        doubts = [f"{DOUBTS[kind]}, as --anyway asked" for kind in self.kinds if kind in DOUBTS]
        if self.far:
            factors = dict(zip(self.time.names, np.exp(self.time.log), strict=True))
            doubts.append(", ".join(f"{name} at {factors[name]:.3g} x" for name in self.far)
                          + " what is stated, further than its spread or other prices moved: a "
                          "fault, or what no price counts")
        text = "; doubted: ".join((self._describe(), *doubts))
        if "simulated" not in self.kinds:
            return text
        others = " and ".join(kind for kind in self.kinds if kind not in ("simulated", *DOUBTS))
        return f"{text}; simulated: of an emulated board" + (
            f" and {others}" if others else ", not of hardware")

    def _describe(self) -> str:
        entry, rows = self.entry, self.entry.time.rows
        corrected = "" if rows or not entry.time.residuals else (
            f"corrected by micro-benchmarks ({', '.join(entry.time.residuals)})")
        if self.counted:
            whose = f" as libraries measured on {entry.board}" if entry.board else ""
            return (f"instructions of the library's code, counted {self.counted}; {self.origin} "
                    f"prices" + (f", {corrected}" if corrected else
                                 f"{whose}, spread of held-out cores"))
        if entry.runtime == UNSEEN_RUNTIME and not rows:
            return (f"{self.origin} overlay of the spread between libraries, for one nobody "
                    f"measured, on {entry.board or 'a board nobody measured'}")
        if entry.board is not None and rows:
            return (f"{self.origin} overlay of {entry.board}, {entry.runtime}, learnt from {rows} "
                    f"row{'' if rows == 1 else 's'}")
        if entry.board is not None and corrected:
            return (f"{self.origin} overlay of {entry.board}, {entry.runtime}: prices of other "
                    f"releases and boards, {corrected}")
        if entry.board is not None:
            return (f"{self.origin} overlay of {entry.board}; {entry.runtime} itself was not "
                    "measured there, taken from other releases and boards")
        known = f"boards with {entry.core}" if entry.core else "boards of other cores"
        return (f"{self.origin} overlay for a board nobody measured, from "
                f"{known} under {entry.runtime or 'the same library'}")


Wanted = str | Calibration | None
"""Prices as they are asked for: `AUTO`, `NONE` or a file; those chosen already; None is `NONE`."""


def choose_calibration(deployment: Deployment, wanted: str = AUTO, *,
                       runtime: str | None = None) -> Calibration | None:
    """Return the learnt prices for a deployment.

    Parameters
    ----------
    deployment
        Whose board and runtime are looked up.
    wanted
        "auto": shipped overlays; "none": stated prices; else an overlay file.
    runtime
        What was measured, where the deployment's runtime only stands in for it.

    Returns
    -------
    Calibration or None
        None for "none", and for "auto" when nothing shipped matches; a library nobody measured
        takes prices from the spread between libraries.

    Raises
    ------
    FitError
        When a file is refused.
    UsageError
        When a file has no entry for this board and runtime, or other prices.
    """
    learnt = deployment.runtime.learnt is not None  # Its instructions need no factor.
    if wanted == NONE or (wanted == AUTO and (learnt or deployment.accelerated)):
        return None
    runtime = runtime or deployment.runtime.identity
    if wanted == AUTO:
        # Of our own firmware and of programs machine code is read. Floats take factors of integers:
        # six rows of three networks in float lie 8 to 17 % below (docs/accuracy.md).
        found = shipped_calibration(deployment.board, runtime) or (
            None if is_read(deployment) else unseen_prices(deployment.board))
        return None if found is None else _know_instructions(found, deployment.runtime,
                                                             deployment.board.core)
    overlay, board = read_overlay(Path(wanted)), deployment.board
    entry = find_entry(overlay, board=board.name, core=board.core.model, runtime=runtime)
    if entry is None:
        raise UsageError(f"{wanted}: no entry for {runtime} on {board.name} ({board.core.model}); "
                         "it has: " + "; ".join(
            f"{one.runtime} on {one.board or 'any board'} ({one.core or 'any core'})"
            for one in overlay.entries[:6]))
    prices: tuple[tuple[str, ...], tuple[str, ...]] = TIME_PRICES, ENERGY_PRICES
    if deployment.accelerated:
        from twin.pricing.task_prices import list_powers, list_prices

        prices = list_prices(board.accelerator), list_powers(board.accelerator)
    if (overlay.time_prices, overlay.energy_prices) != prices:
        raise UsageError(f"{wanted}: made for other prices ({', '.join(overlay.time_prices)}); "
                         "calibrate again")
    found = _take(overlay, entry, Path(wanted).name, board)
    if not entry.time.rows:  # Micro-benchmarks alone: what was counted stays so.
        found = replace(found, counted=tell_basis(deployment.runtime, board.core))
    return replace(found, far=name_far(
        entry.time, found.time.names,
        None if deployment.accelerated else shipped_calibration(board, runtime)))


def name_far(learnt: Learnt, names: Sequence[str], start: Calibration | None) -> tuple[str, ...]:
    """Return the time prices that lie `FAR` from those shipped, or stated, and are doubtful.

    Those are strained, or findings where prices of the same board are shipped or half of all
    prices stay: what one operator alone takes, a library hardly makes and a fault does.
    """
    apart = np.abs(np.array(learnt.log) - (0.0 if start is None else start.time.log))
    here = start is not None and start.entry.board is not None and start.entry.time.rows
    doubtful = {*learnt.strained(names), *(
        {*names} - {*learnt.unidentified, *learnt.tied}
        if here or np.median(apart) < MOVED else ())}
    return tuple(name for name, off in zip(names, apart, strict=True)
                 if off > FAR and name in doubtful)


def shipped_calibration(board: Board, runtime: str) -> Calibration | None:
    """Return what is shipped for a runtime on a board, or for boards like it; None without."""
    cell = locate(board.measured_name, board.core.model, runtime)
    return _find_shipped(cell.library, cell.board, cell.core, runtime, board)


def _find_shipped(library: str, name: str, core: str, runtime: str,
                  board: Board) -> Calibration | None:
    overlay = read_shipped(library, name)
    entry = None if overlay is None else find_entry(overlay, board=name, core=core, runtime=runtime)
    return None if overlay is None or entry is None else _take(overlay, entry, "shipped", board)


def starting_prices(board: Board, runtime: str) -> Calibration | None:
    """Return what measurements of a board correct: what a prediction takes, and as sure as that.

    None: stated prices, of an accelerator and of a library that was learnt from programs.
    """
    library = load_runtime(runtime)
    unseen = None if library.learnt is not None or library.accelerated else unseen_prices(board)
    found = shipped_calibration(board, runtime) or unseen
    return (None if found is None else _state_image(found, runtime) if library.is_compiled
            else _know_instructions(found, library, board.core))


def _state_image(powers: Calibration, runtime: str) -> Calibration:
    """Return stated prices of time, as sure as instructions read from an image make them."""
    blank = replace(powers.entry.time, log=(0.0,) * len(TIME_PRICES), network_sd=0.0, row_sd=0.0,
                    rows=0, tied=(), confused=(), residuals={}, between_sd=0.0)
    entry = replace(powers.entry, runtime=runtime, time=state_core(blank, IMAGE),
                    support=Support())
    return replace(powers, entry=entry, counted=IMAGE, operators={},
                   time=entry.time.estimate(TIME_PRICES))


def _know_instructions(found: Calibration, runtime: Runtime, core: Core) -> Calibration:
    """Return prices as sure as counted instructions make them, where no row was more.

    Factors stay. What is left is how far cores lie from their tables, and networks from a factor.
    """
    if not (runtime.counted or runtime.counted_on):
        return found
    basis = tell_basis(runtime, core)
    time = know_core(found.entry.time, basis, 0.0 if found.entry.board is None else min(
        found.spread.get("board", 0.0), CORE_SD / 2), runtime.factor_sd) if basis else None
    return found if time is None else replace(
        found, counted=basis, entry=replace(found.entry, time=time),
        time=replace(found.time, covariance=time.matrix()))


def choose_powers(deployment: Deployment, wanted: Wanted) -> Calibration | None:
    """Return whose powers bill a deployment whose instructions need no learnt prices of time.

    Parameters
    ----------
    deployment
        Of a program, of our own image, or of a library learnt from programs: what an instruction
        draws is the board's, whoever's kernels it is of.
    wanted
        As for `choose_calibration`, which returned None.

    Returns
    -------
    Calibration or None
        Of an unknown library on the board, or on boards like it; None for any other deployment,
        where stated prices are wanted, and where nobody measured energy.
    """
    if wanted in (None, NONE) or deployment.accelerated or not is_read(deployment):
        return None
    found = unseen_prices(deployment.board)
    return None if found is None or found.energy is None else found


def choose_kernel_prices(deployment: Deployment, wanted: Wanted) -> dict[str, float]:
    """Return factors of time that networks on the kernels of a program took, by price.

    Parameters
    ----------
    wanted
        As for `choose_calibration`, which returned None.
    """
    runtime = deployment.target.name_kernels(deployment) if wanted == AUTO else ""
    found = shipped_calibration(deployment.board, runtime) if runtime else None
    return {} if found is None else {
        name: factor for name, factor in zip(TIME_PRICES, found.time.factors.tolist(), strict=True)
        if name in EXECUTED}


def is_read(deployment: Deployment) -> bool:
    """Whether instructions are read from machine code: a program's, our image's, a library's."""
    runtime = deployment.runtime
    return deployment.target.executes or runtime.is_compiled or runtime.learnt is not None


def unseen_prices(board: Board) -> Calibration | None:
    """Return what is shipped for a board under a library nobody measured."""
    return _find_shipped("", board.measured_name, board.core.model, UNSEEN_RUNTIME, board)


def _take_powers(entry: Entry, board: Board) -> Entry:
    """Return an entry with what its board draws, whatever runs: of the board, or its regulator.

    What a file states of its currents widens those of a regulator. Currents measured while networks
    ran keep a factor of one, as far as firmwares on one board lie apart.
    """
    overlay, regulator = read_shipped("", ""), board.power.regulator
    if overlay is None or not overlay.powers:
        return entry
    names = (board.measured_name or regulator, regulator, "")
    name = next(one for one in names if one in overlay.powers)
    energy, count = overlay.powers[name], len(ENERGY_PRICES)
    if board.power.of_networks:
        apart = overlay.energy_spread["cell"]**2 * np.ones((count, count))
        energy = replace(energy, log=(0.0,) * count, covariance=pack_covariance(apart))
        name = board.name
    elif name != board.name:
        energy = replace(energy, row_sd=math.hypot(energy.row_sd, board.stated_current_sd))
    return replace(entry, energy=energy, powers_of={
        board.name: board.name, "": "other boards"}.get(
            name, f"boards with an {regulator.upper()}"))


def _take(overlay: Overlay, entry: Entry, origin: str, board: Board) -> Calibration:
    if overlay.time_prices == TIME_PRICES and (board.power.of_networks or (
            origin == "shipped" and entry.energy is None)):
        entry = _take_powers(entry, board)
    energy = entry.energy
    return Calibration(
        origin=origin, entry=entry, time=entry.time.estimate(overlay.time_prices),
        energy=None if energy is None else energy.estimate(overlay.energy_prices),
        spread=overlay.spread, energy_spread=overlay.energy_spread, operators=overlay.operators,
        kinds=overlay.data.kinds, sources=overlay.data.sources, contents=overlay.data.contents)
