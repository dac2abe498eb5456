"""How sure cycles are where a library's instructions were counted and its core was not measured.

    sd(log T)^2 = (core's share)^2 (CORE_SD^2 + CARRIED_SD^2) + (waiting's share x WAITING_SD)^2
                  + (calling's share x CALLING_SD)^2 + errors of network and row

Nothing of the library's structure is left open. `CARRIED_SD` is there where the code was counted on
another instruction set only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from calibration.fitting.intervals import (
    CALLING_SD,
    CARRIED_SD,
    CORE_SD,
    CORES,
    LEVEL,
    WAITING_SD,
    Band,
)
from calibration.fitting.overlay import BandModel, Learnt
from calibration.fitting.student import student_quantile
from hwmodels.board.facts import Core
from hwmodels.isa import load_isa
from twin.deployment.placement import layer_dtype
from twin.pricing.factors import OWN_FAMILIES, TIME_PRICES
from twin.runtimes.library import find_operators

if TYPE_CHECKING:
    from twin.deployment.deployment import Deployment
    from twin.runtimes.runtime import Runtime

HERE, CARRIED = "on this instruction set", "on another instruction set"
"""What `Calibration.counted` may be."""


def core_band() -> Band:
    """Return how far `CORE_SD` reaches: Student t, as few cores were left out."""
    reach = student_quantile(0.5 + LEVEL / 2, CORES - 1)
    return Band(down=reach, up=reach, level=LEVEL, basis="model-based", count=CORES)


def tell_basis(runtime: Runtime, core: Core) -> str:
    """Return where a runtime's instructions were counted, seen from a core.

    Parameters
    ----------
    runtime : Runtime
        A library.
    core : Core
        It runs on.

    Returns
    -------
    str
        `HERE`, `CARRIED`, or "": not counted, or only as a stand-in that is marked assumed.
    """
    counted_here, carried = core.isa in runtime.counted_on, bool(runtime.counted_on)
    if runtime.counted is not None:
        from twin.runtimes.counted.table import REFERENCE, choose_core

        counted_here = not choose_core(core.isa, core.fpu)[1]
        carried = runtime.counted[0] == REFERENCE
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


def know_core(time: Learnt, basis: str) -> Learnt | None:
    """Return prices whose deviations are those of a core's table; None where rows know as much.

    Parameters
    ----------
    time : Learnt
        No row of which is of this release on this board.
    basis : str
        From `tell_basis`.

    Notes
    -----
    What the core executes is off by one factor: its prices are wholly correlated.
    """
    shared = CORE_SD**2 + (CARRIED_SD**2 if basis == CARRIED else 0.0)
    covariance = np.full((len(TIME_PRICES), len(TIME_PRICES)), shared)
    for name, sd in (("memory", WAITING_SD), ("call", CALLING_SD)):
        place = TIME_PRICES.index(name)
        covariance[place], covariance[:, place] = 0.0, 0.0
        covariance[place, place] = sd**2
    band = core_band()
    even = np.array([1.0 if name in OWN_FAMILIES else 0.0 for name in TIME_PRICES])
    even /= even.sum()
    if time.band.up * math.sqrt(even @ time.matrix() @ even) <= band.up * math.sqrt(shared):
        return None
    lower = np.tril_indices(len(TIME_PRICES))
    return replace(
        time, covariance=tuple(covariance[lower].tolist()), unidentified=(),
        band=BandModel(down=band.down, up=band.up, level=band.level, basis=band.basis,
                       count=band.count))
