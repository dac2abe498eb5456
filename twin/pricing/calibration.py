"""Learnt prices for a deployment: factors on what is stated, of an overlay, shipped or of a file.

Time is split by who does the work: one price per operator family of the kernel library for what
the core executes, one for calling kernels, one for waiting on memories. Energy is split by what
draws it: activity, stalls, memories, clock tree, leakage.

Where a library's instructions were counted and its core was not measured, cycles are known to

    sd(log T)^2 = (core's share)^2 (CORE_SD^2 + CARRIED_SD^2) + (waiting's share x WAITING_SD)^2
                  + (calling's share x CALLING_SD)^2 + errors of network and row

Nothing of the library's structure is left open. `CARRIED_SD` is there where the code was counted on
another instruction set only.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from calibration.fitting.cell import PARTS, UNSEEN_RUNTIME, Estimate, locate
from calibration.fitting.intervals import (
    CALLING_SD,
    CARRIED_SD,
    CORE_SD,
    CORES,
    LEVEL,
    OPERATOR_SD,
    SHOWN,
    WAITING_SD,
    Band,
    remaining_sd,
)
from calibration.fitting.overlay import (
    BandModel,
    Entry,
    Learnt,
    Overlay,
    find_entry,
    pack_covariance,
    read_overlay,
    read_shipped,
)
from calibration.fitting.student import student_quantile
from hwmodels.board.facts import Board, Core
from hwmodels.counts import COPYING, CORE_EVENTS, ISSUE_EVENTS
from hwmodels.isa import load_isa
from twin.deployment.deployment import Deployment
from twin.deployment.placement import layer_dtype
from twin.errors import UsageError
from twin.network.operators import OPERATORS
from twin.runtimes.library import find_operators
from twin.runtimes.runtime import COPY, FAMILIES

if TYPE_CHECKING:
    from twin.runtimes.runtime import Runtime

WIDE, STREAM = "conv_wide", "stream"
"""Prices that part another by the shape of layers: convolutions to many channels, and waiting for
memory in fully connected layers, most of it for weights, each of which is read once.
"""

OWN_FAMILIES = ("conv", WIDE, "pointwise", "depthwise", "fully_connected", "elementwise", "pool",
                "reduce", "quantize", COPY)
"""Families with a price of their own; the rest share "other": too little time to tell apart."""

TIME_PRICES = (*OWN_FAMILIES, "other", "call", "memory", STREAM)
"""Prices of time, each a factor on what the lowered kernels and the datasheet say."""

ENERGY_PRICES = ("activity", "stall", "memory", "clock_tree", "leakage")
"""Prices of energy, each a factor on what the datasheet's currents say."""

EXTERNAL = "memory outside the chip"
"""Waiting for it is treated as an operator: a row with much of one informs the next."""

STALL_EVENTS = ("pipeline_stall", "branch_refill")
"""Core events in which nothing issues."""


def family_of(family: str, place: str) -> str:
    """Return the family whose efficiency scales a core event of a kernel: copying has its own."""
    return COPY if place == COPYING else family


def price_of_family(family: str) -> str:
    """Return the time price an operator family is charged under."""
    return family if family in OWN_FAMILIES else "other"


FAMILIES_OF = {price: tuple(family for family in FAMILIES if price_of_family(family) == price)
               for price in (*OWN_FAMILIES, "other")}
"""Operator families behind each price of executed work."""


@cache
def waits_on_memory(event: str) -> bool:
    """Whether an event is charged under the time price of memories."""
    return event not in (*CORE_EVENTS, "kernel_dispatch", "clock_tree", "leakage", "sleep")


def name_work(event: str, place: str, family: str, wide: float) -> str:
    """Return what scales an event of a kernel: a family, with its width where it is mixed.

    Of every event of a fully connected kernel that waits on memory, whatever operand it is for, it
    is `STREAM`; of other events outside the core "".

    Parameters
    ----------
    wide
        How wide a convolution is, 0 to 1.
    """
    if event not in CORE_EVENTS:
        return STREAM if family == "fully_connected" and waits_on_memory(event) else ""
    work = family_of(family, place)
    return f"{work} {wide}" if wide and work == "conv" else work


@cache
def list_parts(work: str) -> tuple[tuple[str, float], ...]:
    """Return the families whose efficiencies a line's work mixes, each with its weight."""
    family, _, wide = work.partition(" ")
    return ((family, 1 - float(wide)), (WIDE, float(wide))) if wide else ((family, 1.0),)


def mix_efficiency(efficiency: Mapping[str, float], work: str) -> float:
    """Return what the cycles of a line are multiplied by: `name_work`."""
    return sum(weight * efficiency.get(family, efficiency.get("conv", 1.0) if family == WIDE
                                       else 1.0) for family, weight in list_parts(work))


@cache
def time_price(event: str, family: str) -> int:
    """Return the place in `TIME_PRICES` of the price an event of a family is charged under."""
    return TIME_PRICES.index(
        price_of_family(family) if event in CORE_EVENTS else
        "call" if not waits_on_memory(event) else STREAM if family == STREAM else "memory")


@cache
def power_of(event: str) -> str:
    """Return the energy price an event is charged under."""
    if event in ("clock_tree", "leakage"):
        return event
    if event in STALL_EVENTS:
        return "stall"
    return "activity" if event in (*ISSUE_EVENTS, "kernel_dispatch") else "memory"


def name_operators(deployment: Deployment) -> tuple[str, ...]:
    """Return which operator each layer is to a kernel library: its name, type and instructions.

    Parameters
    ----------
    deployment
        Whose executed network is named.

    Returns
    -------
    tuple of str
        One per layer: "conv_2d int8 dsp"; other types and other instructions run other code.
    """
    graph = deployment.executed
    code = load_isa(deployment.board.core.isa).extensions[0]
    return tuple(f"{layer.op} {layer_dtype(graph, layer)} {code}" for layer in graph.layers)


OWN_PRICE = tuple(name for name, operator in OPERATORS.items() if operator.sums_products)
"""Operators that a price of time is stated of: no other of its family is beside them."""


def operator_sd(name: str, evidence: Mapping[str, float], sd: float) -> float:
    """Return what rows leave open of an operator beside its price.

    Parameters
    ----------
    name
        From `name_operators`, or `EXTERNAL`.
    evidence
        How well rows of the library know each: `intervals.remaining_sd`.
    sd
        Before any row: `OPERATOR_SD` or `BORROWED_SD`.

    Notes
    -----
    Where rows show code of its type and instructions, nothing of one in `OWN_PRICE`: the price's
    deviation is all of it; of others, `SHOWN` of what is assumed where they show none. Code of one
    library on another instruction set follows one structure: it deviates from what rows show there
    by `OPERATOR_SD`.
    """
    operator, _, code = name.partition(" ")
    shown = any(f"{other} {code}" in evidence for other in OWN_PRICE)
    if shown and operator in OWN_PRICE:
        return 0.0
    alike = name.rpartition(" ")[0]
    elsewhere = max((information for other, information in evidence.items()
                     if other.rpartition(" ")[0] == alike), default=0.0)
    return min(remaining_sd(evidence.get(name, 0.0), SHOWN * sd if shown else sd),
               math.hypot(OPERATOR_SD, remaining_sd(elsewhere, sd)))


def list_external(board: Board) -> frozenset[str]:
    """Return the memories of a board that are outside the chip."""
    return frozenset(memory.name for memory in board.memories
                     if memory.role in ("external_ram", "external_flash"))


HERE, CARRIED = "on this instruction set", "on another instruction set"
"""What `Calibration.counted` may be."""


def core_band() -> Band:
    """Return how far `CORE_SD` reaches: Student t, as few cores were held out."""
    reach = student_quantile(0.5 + LEVEL / 2, CORES - 1)
    return Band(down=reach, up=reach, level=LEVEL, basis="model-based", count=CORES)


def tell_basis(runtime: Runtime, core: Core) -> str:
    """Return where a runtime's instructions were counted, seen from a core.

    Returns
    -------
    str
        `HERE`, `CARRIED`, or "": not counted, or only as a stand-in that is marked assumed.
    """
    counted_here, carried = core.isa in runtime.counted_on, bool(runtime.counted_on)
    if runtime.counted is not None:
        from twin.runtimes.counted.table import REFERENCE, choose_core

        counted_here = not choose_core(core.isa, core.fpu)[1]
        carried = runtime.counted[0] == REFERENCE or runtime.is_alone
    return HERE if counted_here else CARRIED if (
        carried and load_isa(core.isa).counts_carry) else ""


def list_counted(deployment: Deployment, assumed: Sequence[bool]) -> np.ndarray:
    """Return which layers' instructions were counted, here or elsewhere, shape (layers,)."""
    runtime, graph, core = deployment.runtime, deployment.executed, deployment.board.core
    if runtime.counted is not None:
        from twin.runtimes.counted.lower import stands_in
        from twin.runtimes.counted.table import choose_core

        near, _ = choose_core(core.isa, core.fpu)
        return np.array([not stands_in(*runtime.counted, graph, layer, near)
                         for layer in graph.layers])
    own = find_operators(runtime.library)
    return np.array([layer.op in own and not unknown
                     and layer_dtype(graph, layer) in runtime.dtypes
                     for layer, unknown in zip(graph.layers, assumed, strict=True)])


MIX = {"conv": 0.1, WIDE: 0.2, "pointwise": 0.4, "depthwise": 0.2, "fully_connected": 0.05,
       "memory": 0.05}
"""Shares of time of a typical network by price; assumed."""


def know_core(time: Learnt, basis: str, board_sd: float = 0.0) -> Learnt | None:
    """Return prices whose deviations are those of a core's table; None where rows know as much.

    Parameters
    ----------
    time
        Of this release on this board, or of its nearest.
    basis
        From `tell_basis`.
    board_sd
        How far boards of a core lie apart, where the library was measured on this one: cores left
        out lacked their boards' rows, too.

    Notes
    -----
    What the core executes is off by one factor: its prices are wholly correlated.
    """
    shared = CORE_SD**2 - board_sd**2 + (CARRIED_SD**2 if basis == CARRIED else 0.0)
    covariance = np.full((len(TIME_PRICES), len(TIME_PRICES)), shared)
    for names, sd in ((("memory", STREAM), WAITING_SD), (("call",), CALLING_SD)):
        places = [TIME_PRICES.index(name) for name in names]
        covariance[places], covariance[:, places] = 0.0, 0.0
        covariance[np.ix_(places, places)] = sd**2
    band = core_band()
    mix = np.array([MIX.get(name, 0.0) for name in TIME_PRICES])
    if time.band.up * math.sqrt(mix @ time.matrix() @ mix) <= band.up * math.sqrt(
            mix @ covariance @ mix):
        return None
    lower = np.tril_indices(len(TIME_PRICES))
    return replace(
        time, covariance=tuple(covariance[lower].tolist()), unidentified=(),
        band=BandModel(down=band.down, up=band.up, level=band.level, basis=band.basis,
                       count=band.count))


AUTO, NONE = "auto", "none"
"""Values of `calibration`: the shipped overlay that matches, or stated prices; else a file."""

@dataclass(frozen=True, slots=True, kw_only=True)
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

    @property
    def power_basis(self) -> str:
        """What powers rest on where no row measured energy; "" where some did."""
        if self.energy is None:
            return "stated by the board's file"
        of = self.entry.powers_of if self.origin != "shipped" else ""
        return f"as shipped, of {of}" if of else ""

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
                    f"prices{whose}, spread of held-out cores")
        if entry.runtime == UNSEEN_RUNTIME:
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
    if wanted == NONE or (wanted == AUTO and (learnt or deployment.target.offloads)):
        return None
    runtime = runtime or deployment.runtime.identity
    if wanted == AUTO:
        found = (shipped_calibration(deployment.board, runtime)
                 or _unseen_calibration(deployment))
        return None if found is None else _know_instructions(found, deployment)
    overlay, board = read_overlay(Path(wanted)), deployment.board
    entry = find_entry(overlay, board=board.name, core=board.core.model, runtime=runtime)
    if entry is None:
        raise UsageError(f"{wanted}: no entry for {runtime} on {board.name} ({board.core.model}); "
                         "it has: " + "; ".join(
            f"{one.runtime} on {one.board or 'any board'} ({one.core or 'any core'})"
            for one in overlay.entries[:6]))
    prices: tuple[tuple[str, ...], tuple[str, ...]] = TIME_PRICES, ENERGY_PRICES
    if deployment.target.offloads and board.npu is not None:
        from twin.pricing.task_prices import list_powers, list_prices

        prices = list_prices(board.npu), list_powers(board.npu)
    if (overlay.time_prices, overlay.energy_prices) != prices:
        raise UsageError(f"{wanted}: made for other prices ({', '.join(overlay.time_prices)}); "
                         "calibrate again")
    return _take(overlay, entry, Path(wanted).name, board)


def shipped_calibration(board: Board, runtime: str) -> Calibration | None:
    """Return what is shipped for a runtime on a board, or for boards like it; None without."""
    cell = locate(board.name, board.core.model, runtime)
    overlay = read_shipped(cell.library, cell.board)
    entry = None if overlay is None else find_entry(
        overlay, board=cell.board, core=cell.core, runtime=runtime)
    return None if overlay is None or entry is None else _take(
        overlay, entry, "shipped", board)


def _unseen_calibration(deployment: Deployment) -> Calibration | None:
    """Return prices drawn from the spread between libraries, for one nobody measured.

    None for our own firmware and for programs, whose machine code is read. Floats take factors of
    integers: six rows of three networks in float lie 8 to 17 % below (docs/accuracy.md).
    """
    board = deployment.board
    read = deployment.runtime.is_compiled or deployment.runtime.library == "program"
    if read:
        return None
    return unseen_prices(board)


def _know_instructions(found: Calibration, deployment: Deployment) -> Calibration:
    """Return prices as sure as counted instructions make them, where no row was more.

    Factors stay. What is left is how far cores lie from their tables.
    """
    runtime = deployment.runtime
    if not (runtime.counted or runtime.counted_on):
        return found
    basis = tell_basis(runtime, deployment.board.core)
    time = know_core(found.entry.time, basis, 0.0 if found.entry.board is None else min(
        found.spread.get("board", 0.0), CORE_SD / 2)) if basis else None
    return found if time is None else replace(
        found, counted=basis, entry=replace(found.entry, time=time),
        time=replace(found.time, covariance=time.matrix()))


def choose_powers(deployment: Deployment, wanted: str | Calibration | None) -> Calibration | None:
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
    if wanted in (None, NONE) or deployment.target.offloads or not is_read(deployment):
        return None
    found = unseen_prices(deployment.board)
    return None if found is None or found.energy is None else found


EXECUTED = ("conv", "pointwise", "depthwise", "fully_connected", "elementwise", "pool", "memory")
"""Prices of time that hold for a library's kernels wherever they are linked into: the rest are of
its runtime, or of what lowering assumes of data."""


def choose_kernel_prices(deployment: Deployment, wanted: str | Calibration | None
                         ) -> dict[str, float]:
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
    overlay = read_shipped("", board.name)
    entry = None if overlay is None else find_entry(
        overlay, board=board.name, core=board.core.model, runtime=UNSEEN_RUNTIME)
    return None if overlay is None or entry is None else _take(
        overlay, entry, "shipped", board)


def _take_powers(entry: Entry, board: Board) -> Entry:
    """Return an entry with what its board draws, whatever runs: of the board, or its regulator.

    What a file states of its currents widens those of a regulator. Currents measured while networks
    ran keep a factor of one, as far as firmwares on one board lie apart.
    """
    overlay, regulator = read_shipped("", ""), board.power.regulator
    if overlay is None or not overlay.powers:
        return entry
    names = (board.name, regulator, "")
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
        spread=overlay.spread, energy_spread=overlay.energy_spread,
        operators=overlay.operators, kinds=overlay.data.kinds)
