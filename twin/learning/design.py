"""What a deployment costs by price (`twin.pricing.calibration`): the arrays calibration fits."""

from __future__ import annotations

import contextlib
import hashlib
import io
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

import hwmodels
from calibration.fitting.intervals import BORROWED_SD, OPERATOR_SD
from hwmodels.files import read_regular, write_whole
from twin.deployment.core import lower_network
from twin.deployment.deployment import Deployment
from twin.network.operators import is_assumed
from twin.pricing.calibration import EXTERNAL, TIME_PRICES, name_operators, operator_sd
from twin.pricing.itemised import itemise
from twin.pricing.prediction import predict
from twin.pricing.structure import find_structure
from twin.pricing.task_prices import list_prices, split_by_price

LARGEST_KEPT_BYTES = 1 << 20
"""Of a design matrix: a few arrays of tens of numbers."""

_SOURCES = ("hwmodels", "twin/runtimes", "twin/pricing/calibration.py", "twin/pricing/itemised.py",
            "twin/pricing/lines.py", "twin/pricing/structure.py",
            "twin/deployment/core.py", "twin/deployment/placement.py", "twin/deployment/split.py",
            "twin/network/operators.py", "twin/network/rewrites/dead_channels.py",
            "twin/learning/design.py")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DesignMatrix:
    """Costs of one warm inference at stated prices, by layer and price: rows of the fit.

    Parameters
    ----------
    cycles
        Shape (layers, time prices), cycles of the core's clock.
    energy_pj
        Shape (layers, time prices, 3): activity, stall and memory at the rail, by the time price
        whose work draws it; NaN where not known.
    clock_tree_pj, leakage_pj
        Per cycle of the core's clock; NaN where not known.
    operators
        Of each layer, by `name_operators`.
    external
        Shape (layers, time prices): cycles waiting for memory outside the chip, part of `cycles`.
    borrowed
        Shape (layers,), bool: whose loops are assumed, or another library's.
    prices
        Time prices: those of cores, or of an accelerator (`twin.pricing.task_prices`).
    """

    cycles: np.ndarray
    energy_pj: np.ndarray
    clock_tree_pj: float
    leakage_pj: float
    operators: tuple[str, ...]
    external: np.ndarray
    borrowed: np.ndarray
    prices: tuple[str, ...] = TIME_PRICES

    def share_work(self, log: np.ndarray) -> dict[str, float]:
        """Return which share of the time each operator takes, and waiting outside the chip.

        Parameters
        ----------
        log
            Shape (time prices,): log factors work is done with.
        """
        factors = np.exp(log)
        external = self.external @ factors
        spent = self.cycles @ factors
        total, found = spent.sum(), {EXTERNAL: float(external.sum())}
        for operator, cycles in zip(self.operators, spent - external, strict=True):
            found[operator] = found.get(operator, 0.0) + float(cycles)
        return {name: cycles / total for name, cycles in found.items() if cycles > 0}

    def unlearned_sd(self, log: np.ndarray, identified: Mapping[str, float]) -> float:
        """Return what to add to the deviation of log time for operators that no row informs.

        Parameters
        ----------
        log
            Shape (time prices,): log factors work is done with.
        identified
            How well rows know each operator: `calibration.fitting.intervals.remaining_sd`.
        """
        closed = {name for name, borrowed in zip(self.operators, self.borrowed, strict=True)
                  if borrowed} | {EXTERNAL}
        return sum(share * operator_sd(name, identified,
                                       BORROWED_SD if name in closed else OPERATOR_SD)
                   for name, share in self.share_work(log).items())

    def energy_terms(self, log: np.ndarray, cycles: float | None = None) -> np.ndarray:
        """Return what draws energy, in picojoules of the whole inference.

        Parameters
        ----------
        log
            Shape (time prices,): log factors work is done with.
        cycles
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


def make_design(deployment: Deployment, *, cache: Path | None = None) -> DesignMatrix:
    """Count a deployment's warm inference by price.

    Parameters
    ----------
    deployment
        On a core or an accelerator, whose counts are never kept.
    cache
        Folder of counts kept by content: model, board, runtime, placement and this code.

    Returns
    -------
    DesignMatrix
        Sums over layers equal the cycles and joules of `predict` at stated prices.
    """
    if deployment.target.offloads:
        return _count_tasks(deployment)
    path = None if cache is None else cache / f"{content_key(deployment)}.npz"
    if path is not None and (kept := _read_kept(path)) is not None:
        return kept
    design = _count(deployment)
    if path is not None:
        content = io.BytesIO()
        np.savez(content, cycles=design.cycles, energy_pj=design.energy_pj,
                 background=np.array([design.clock_tree_pj, design.leakage_pj]),
                 operators=np.array(design.operators, dtype=str), external=design.external,
                 borrowed=design.borrowed)
        with contextlib.suppress(OSError):  # a full disk makes it slower, not fail
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content.getvalue())
    return design


def _read_kept(path: Path) -> DesignMatrix | None:
    """Return a kept design matrix; None where there is none, or a damaged one."""
    import zipfile

    try:
        with np.load(io.BytesIO(read_regular(path, LARGEST_KEPT_BYTES))) as stored:
            cycles, energy_pj = stored["cycles"], stored["energy_pj"]
            clock_tree_pj, leakage_pj = map(float, stored["background"])
            operators = tuple(map(str, stored["operators"]))
            external, borrowed = stored["external"], stored["borrowed"]
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile, zlib.error):
        return None
    return DesignMatrix(
        cycles=cycles, energy_pj=energy_pj, clock_tree_pj=clock_tree_pj, leakage_pj=leakage_pj,
        operators=operators, external=external, borrowed=borrowed)


def content_key(deployment: Deployment) -> str:
    """Return a hash of everything a design matrix depends on."""
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


def _count_tasks(deployment: Deployment) -> DesignMatrix:
    """Count an inference on an accelerator, in cycles of the host's clock, without energy."""
    board, layers = deployment.board, predict(deployment).layers
    assert board.npu is not None, "a deployment that offloads has an accelerator"
    times_us = np.array([split_by_price(layer.bill, board) for layer in layers])
    return DesignMatrix(cycles=times_us * 1e-6 * board.clock(board.core.clock).frequency_hz,
                 energy_pj=np.full((*times_us.shape, 3), np.nan), clock_tree_pj=np.nan,
                 leakage_pj=np.nan, operators=name_operators(deployment),
                 external=np.zeros_like(times_us), borrowed=np.zeros(len(layers), np.bool_),
                 prices=list_prices(board.npu))


def _count(deployment: Deployment) -> DesignMatrix:
    item, board = itemise(deployment, cold=False, unsure=False), deployment.board
    structure = find_structure(deployment, partial(lower_network, deployment), cold=False)
    hertz = board.clock(board.core.clock).frequency_hz
    return DesignMatrix(
        cycles=item.work + item.rest, energy_pj=item.energy_pj, external=item.external,
        operators=name_operators(deployment), borrowed=np.array([
            deployment.runtime.structure == "assumed" or is_assumed(layer)
            or any(kernel.assumed for kernel in group)
            for layer, group in zip(deployment.executed.layers, structure.layers, strict=True)]),
        clock_tree_pj=float(item.clock_tree_pj[0]),
        leakage_pj=float(item.leakage_pj[0]) * 1e9 / hertz)
