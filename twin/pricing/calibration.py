"""Learnt prices for a deployment: an overlay, shipped or of a file, and which of it applies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from calibration.fitting.cell import STRANGER_RUNTIME, Estimate, locate
from calibration.fitting.overlay import Entry, Overlay, find_entry, read_overlay, read_shipped
from hwmodels.board.facts import Board
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.pricing.factors import ENERGY_PRICES, TIME_PRICES
from twin.runtimes.choice import computes_float

AUTO, NONE = "auto", "none"
"""Values of `calibration`: the shipped overlay that matches, or stated prices; else a file."""

@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Learnt prices that apply to a deployment.

    Parameters
    ----------
    origin : str
        "shipped" or the file's name.
    entry : Entry
        Of the overlay.
    time, energy : Estimate, Estimate or None
        Log factors and covariance, in the order of `TIME_PRICES` and `ENERGY_PRICES`.
    spread, energy_spread : mapping of str to float
        How far apart prices lie by level, where it was learnt: `calibration.fitting.prior.Spread`.
    operators : mapping of str to float
        What rows of the library tell of each operator: `intervals.left_untold`.
    kinds : tuple of str
        Of the measurements it was learnt from.
    counted : str
        Where instructions were counted that no row is asked for: "on this instruction set", "on
        another instruction set"; else "".
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

    @property
    def powers_of(self) -> str:
        """Whose the energy prices are."""
        kin = f"boards with {self.entry.core}" if self.entry.core else "other boards"
        return self.entry.powers_of or self.entry.board or kin

    @property
    def power_basis(self) -> str:
        """What powers rest on where no row measured energy; "" where some did."""
        if self.energy is None:
            return "stated by the board's file"
        return f"as shipped, of {self.entry.powers_of}" if self.entry.powers_of else ""

    @property
    def description(self) -> str:
        """What it is, for a report's header."""
        if "simulated" not in self.kinds:
            return self._describe()
        others = " and ".join(kind for kind in self.kinds if kind != "simulated")
        return f"{self._describe()}; simulated: of an emulated board" + (
            f" and {others}" if others else ", not of hardware")

    def _describe(self) -> str:
        entry, rows = self.entry, self.entry.time.rows
        if self.counted:
            whose = f" as libraries measured on {entry.board}" if entry.board else ""
            return (f"instructions of the library's code, counted {self.counted}; {self.origin} "
                    f"prices{whose}, spread of cores left out")
        if entry.runtime == STRANGER_RUNTIME:
            return (f"{self.origin} overlay of the spread between libraries, for one nobody "
                    f"measured, on {entry.board or 'a board nobody measured'}")
        if entry.board is not None and rows:
            return (f"{self.origin} overlay of {entry.board}, {entry.runtime}, learnt from {rows} "
                    f"row{'' if rows == 1 else 's'}")
        if entry.board is not None and entry.time.residuals:
            return (f"{self.origin} overlay of {entry.board}, {entry.runtime}: prices of other "
                    "releases and boards, corrected by micro-benchmarks ("
                    + ", ".join(entry.time.residuals) + ")")
        if entry.board is not None:
            return (f"{self.origin} overlay of {entry.board}; {entry.runtime} itself was not "
                    "measured there, taken from other releases and boards")
        known = f"boards with {entry.core}" if entry.core else "boards of other cores"
        return (f"{self.origin} overlay for a board nobody measured, from "
                f"{known} under {entry.runtime or 'the same library'}")


def choose_calibration(deployment: Deployment, wanted: str = AUTO, *,
                       runtime: str | None = None) -> Calibration | None:
    """Return the learnt prices for a deployment.

    Parameters
    ----------
    deployment : Deployment
        Whose board and runtime are looked up.
    wanted : str
        "auto": shipped overlays; "none": stated prices; else an overlay file.
    runtime : str, optional
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
    if wanted == NONE or deployment.target.offloads or (learnt and wanted == AUTO):
        return None
    runtime = runtime or deployment.runtime.identity
    if wanted == AUTO:
        found = (shipped_calibration(deployment.board, runtime)
                 or _stranger_calibration(deployment))
        return None if found is None else _know_instructions(found, deployment)
    overlay, board = read_overlay(Path(wanted)), deployment.board
    entry = find_entry(overlay, board=board.name, core=board.core.model, runtime=runtime)
    if entry is None:
        raise UsageError(f"{wanted}: no entry for {runtime} on {board.name} ({board.core.model}); "
                         "it has: " + "; ".join(
            f"{one.runtime} on {one.board or 'any board'} ({one.core or 'any core'})"
            for one in overlay.entries[:6]))
    if (overlay.time_prices, overlay.energy_prices) != (TIME_PRICES, ENERGY_PRICES):
        raise UsageError(f"{wanted}: made for other prices ({', '.join(overlay.time_prices)}); "
                         "calibrate again")
    return _take(overlay, entry, Path(wanted).name)


def shipped_calibration(board: Board, runtime: str) -> Calibration | None:
    """Return what is shipped for a runtime on a board, or for boards like it; None without."""
    cell = locate(board.name, board.core.model, runtime)
    overlay = read_shipped(cell.library, cell.board)
    entry = None if overlay is None else find_entry(
        overlay, board=cell.board, core=cell.core, runtime=runtime)
    return None if overlay is None or entry is None else _take(overlay, entry, "shipped")


def _stranger_calibration(deployment: Deployment) -> Calibration | None:
    """Return prices drawn from the spread between libraries, for one nobody measured.

    None for our own firmware and for programs, whose machine code is read, and where most layers
    compute in float: only libraries of integers were measured.
    """
    board = deployment.board
    read = deployment.runtime.is_compiled or deployment.runtime.library == "program"
    if read or computes_float(deployment.graph):
        return None
    return stranger_prices(board)


def _know_instructions(found: Calibration, deployment: Deployment) -> Calibration:
    """Return prices as sure as counted instructions make them, where no row was more.

    Factors stay. What is left where nobody measured the library, or this release of it here, is
    how far cores lie from their tables.
    """
    runtime = deployment.runtime
    if found.entry.time.rows or not (runtime.counted or runtime.counted_on):
        return found
    from twin.pricing.counted import know_core, tell_basis

    basis = tell_basis(runtime, deployment.board.core)
    time = know_core(found.entry.time, basis) if basis else None
    return found if time is None else replace(
        found, counted=basis, entry=replace(found.entry, time=time),
        time=replace(found.time, covariance=time.matrix()))


def choose_powers(deployment: Deployment, wanted: str | Calibration | None) -> Calibration | None:
    """Return whose powers bill a deployment whose instructions need no learnt prices of time.

    Parameters
    ----------
    deployment : Deployment
        Of a program, of our own image, or of a library learnt from programs: what an instruction
        draws is the board's, whoever's kernels it is of.
    wanted : str, Calibration or None
        As for `choose_calibration`, which returned None.

    Returns
    -------
    Calibration or None
        Of an unknown library on the board, or on boards like it; None for any other deployment,
        where stated prices are wanted, and where nobody measured energy.
    """
    runtime, target = deployment.runtime, deployment.target
    read = target.executes or runtime.is_compiled or runtime.learnt is not None
    if wanted in (None, NONE) or target.offloads or not read:
        return None
    found = stranger_prices(deployment.board)
    return None if found is None or found.energy is None else found


def stranger_prices(board: Board) -> Calibration | None:
    """Return what is shipped for a board under a library nobody measured."""
    overlay = read_shipped("", board.name)
    entry = None if overlay is None else find_entry(
        overlay, board=board.name, core=board.core.model, runtime=STRANGER_RUNTIME)
    return None if overlay is None or entry is None else _take(overlay, entry, "shipped")


def _take(overlay: Overlay, entry: Entry, origin: str) -> Calibration:
    energy = entry.energy
    return Calibration(
        origin=origin, entry=entry, time=entry.time.estimate(overlay.time_prices),
        energy=None if energy is None else energy.estimate(overlay.energy_prices),
        spread=overlay.spread, energy_spread=overlay.energy_spread,
        operators=overlay.operators, kinds=overlay.data.kinds)
