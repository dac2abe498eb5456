"""What a deployment costs by price: the arrays calibration fits, which know no layer.

Time is split by who does the work: one price per operator family of the kernel library for what
the core executes, one for calling kernels, one for waiting on memories. Energy is split by what
draws it: activity, stalls, memories, clock tree, leakage.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

import hwmodels
from hwmodels.counts import Counts, Prices
from hwmodels.files import read_regular, write_whole
from hwmodels.simulator import simulate
from twin.deployment.core import code_address, lower_network
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.prediction.host import CORE_EVENTS, family_of, runtime_prices
from twin.runtimes.runtime import COPY, FAMILIES

OWN_FAMILIES = ("conv", "pointwise", "depthwise", "fully_connected", "elementwise", "pool",
                "reduce", "quantize", COPY)
"""Families with a price of their own; the rest share "other": too little time to tell apart."""

TIME_PRICES = (*OWN_FAMILIES, "other", "call", "memory")
"""Prices of time, each a factor on what the lowered kernels and the datasheet say."""

ENERGY_PRICES = ("activity", "stall", "memory", "clock_tree", "leakage")
"""Prices of energy, each a factor on what the datasheet's currents say."""

STALL_EVENTS = ("pipeline_stall", "branch_refill")
"""Core events in which nothing issues."""

LARGEST_KEPT_BYTES = 1 << 20
"""Of a tally: a few arrays of tens of numbers."""

_SOURCES = ("hwmodels", "twin/runtimes", "twin/prediction/host.py", "twin/deployment/core.py",
            "twin/deployment/placement.py", "twin/deployment/split.py", "twin/network/operators.py",
            "twin/network/rewrites/dead_channels.py", "twin/learning/tally.py")


def price_of_family(family: str) -> str:
    """Return the time price an operator family is charged under."""
    return family if family in OWN_FAMILIES else "other"


FAMILIES_OF = {price: tuple(family for family in FAMILIES if price_of_family(family) == price)
               for price in (*OWN_FAMILIES, "other")}
"""Operator families behind each price of executed work."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tally:
    """Costs of one warm inference at stated prices.

    Parameters
    ----------
    cycles : numpy.ndarray
        Shape (layers, time prices), cycles of the core's clock.
    energy_pj : numpy.ndarray
        Shape (layers, time prices, 3): activity, stall and memory at the rail, by the time price
        whose work draws it; NaN where not known.
    clock_tree_pj, leakage_pj : float
        Per cycle of the core's clock; NaN where not known.
    """

    cycles: np.ndarray
    energy_pj: np.ndarray
    clock_tree_pj: float
    leakage_pj: float

    def energy_terms(self, log: np.ndarray, cycles: float | None = None) -> np.ndarray:
        """Return what draws energy, in picojoules of the whole inference.

        Parameters
        ----------
        log : numpy.ndarray
            Shape (time prices,): log factors work is done with.
        cycles : float, optional
            Measured; what draws while work is done is scaled to it.

        Returns
        -------
        numpy.ndarray
            Shape (energy prices,).
        """
        factors = np.exp(log)
        predicted = float((self.cycles @ factors).sum())
        total = predicted if cycles is None else cycles
        working = np.einsum("lkt,k->t", self.energy_pj, factors) * (total / predicted)
        return np.array([*working, total * self.clock_tree_pj, total * self.leakage_pj])


def make_tally(deployment: Deployment, *, cache: Path | None = None) -> Tally:
    """Count a deployment's warm inference by price.

    Parameters
    ----------
    deployment : Deployment
        On a core; runtimes that offload are refused.
    cache : Path, optional
        Folder of counts kept by content: model, board, runtime, placement and this code.

    Returns
    -------
    Tally
        Sums over layers equal the cycles and joules of `predict` at stated prices.

    Raises
    ------
    UsageError
        For a runtime that offloads.
    """
    if deployment.target.offloads:
        raise UsageError(f"{deployment.runtime.identity} runs on an accelerator: prices are learnt "
                         "of cores only")
    path = None if cache is None else cache / f"{content_key(deployment)}.npz"
    kept = None if path is None else _read_kept(path)
    if kept is not None:
        return kept
    tally = _count(deployment)
    if path is not None:
        content = io.BytesIO()
        np.savez(content, cycles=tally.cycles, energy_pj=tally.energy_pj,
                 background=np.array([tally.clock_tree_pj, tally.leakage_pj]))
        with contextlib.suppress(OSError):  # a full disk makes it slower, not fail
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content.getvalue())
    return tally


def _read_kept(path: Path) -> Tally | None:
    """Return a kept tally; None where there is none, or a damaged one."""
    try:
        with np.load(io.BytesIO(read_regular(path, LARGEST_KEPT_BYTES))) as stored:
            cycles, energy_pj = stored["cycles"], stored["energy_pj"]
            clock_tree_pj, leakage_pj = map(float, stored["background"])
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile, zlib.error):
        return None
    return Tally(cycles=cycles, energy_pj=energy_pj, clock_tree_pj=clock_tree_pj,
                 leakage_pj=leakage_pj)


def content_key(deployment: Deployment) -> str:
    """Return a hash of everything a tally depends on."""
    parts = (deployment.graph.sha256, repr(deployment.board), repr(deployment.runtime),
             deployment.weights_named, deployment.arena_named, deployment.code, code_hash())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@lru_cache(maxsize=1)
def code_hash() -> str:
    """Return a hash of the source files that decide what is counted."""
    root = Path(__file__).parents[2]
    assert root == Path(str(hwmodels.__file__)).parents[1]
    digest = hashlib.sha256()
    for name in _SOURCES:
        where = root / name
        files = [where] if where.is_file() else sorted(
            path for path in where.rglob("*") if path.suffix in (".py", ".yaml")
            and "boards" not in path.parts)
        for path in files:
            digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()


def _count(deployment: Deployment) -> Tally:
    prices = runtime_prices(deployment)
    groups = lower_network(deployment)
    flat = [kernel for group in groups for kernel in group]
    runs = iter(simulate(flat, deployment.board, code_address=code_address(deployment),
                         code_memory=deployment.code))
    cycles = np.zeros((len(groups), len(TIME_PRICES)))
    energy = np.zeros((len(groups), len(TIME_PRICES), 3))
    call = TIME_PRICES.index("call")
    slot = prices.price("kernel_dispatch", "")
    for layer, group in enumerate(groups):
        for kernel in group:
            _add(next(runs).counts, kernel.family, prices, deployment.runtime.efficiency,
                 cycles[layer], energy[layer])
        calls = max(len(group), int(deployment.runtime.dispatches_aliases))
        cycles[layer, call] += calls * slot.cycles
        energy[layer, call, 0] += calls * _known(slot.pj)
    hertz = deployment.board.clock(deployment.board.core.clock).frequency_hz
    return Tally(cycles=cycles, energy_pj=energy,
                 clock_tree_pj=_known(prices.price("clock_tree", "").pj),
                 leakage_pj=_known(prices.price("leakage", "").pj) * 1e9 / hertz)


def _add(counts: Counts, family: str, prices: Prices, efficiency: Mapping[str, float],
         cycles: np.ndarray, energy: np.ndarray) -> None:
    """Add a kernel's events: the core's under its family or copying, the rest under memory."""
    memory = TIME_PRICES.index("memory")
    for line in counts.lines:
        cost = prices.price(line.event, line.place)
        on_core = line.event in CORE_EVENTS
        charged = family_of(family, line.place)
        column, scale = ((TIME_PRICES.index(price_of_family(charged)),
                          efficiency.get(charged, 1.0)) if on_core else (memory, 1.0))
        term = ENERGY_PRICES.index(
            "memory" if not on_core else "stall" if line.event in STALL_EVENTS else "activity")
        cycles[column] += line.exposed * cost.cycles * scale
        energy[column, term] += line.occurred * _known(cost.pj) * scale


def _known(pj: float | None) -> float:
    return float("nan") if pj is None else pj
