"""Where a library's instructions were counted, and how sure that makes prices of the core.

Where its instructions were counted and its core was not measured, cycles are known to

    sd(log T)^2 = (core's share)^2 (CORE_SD^2 + CARRIED_SD^2) + (waiting's share x WAITING_SD)^2
                  + (calling's share x CALLING_SD)^2 + errors of network and row

Nothing of the library's structure is left open. `CARRIED_SD` is there where the code was counted on
another instruction set only. A factor on the counts that was learnt from networks adds their spread
around it, leave-one-out; on the core it was learnt on, that spread holds errors of the
core and of its memories, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
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
from hwmodels.board.facts import Core
from hwmodels.isa import load_isa
from twin.deployment.deployment import Deployment
from twin.deployment.placement import layer_dtype
from twin.network.graph import GraphLayer
from twin.pricing.price_names import STREAM, TIME_PRICES, WIDE
from twin.runtimes.library import find_operators

if TYPE_CHECKING:
    from twin.runtimes.runtime import Runtime


HERE, CARRIED = "on this instruction set", "on another instruction set"
IMAGE = "in its own image"
RATIO = f"{HERE} in another release or build, and carried by the Cortex-M4's ratio"
LEARNT = f"{HERE} and scaled as networks published of it ask"
"""What `Calibration.counted` may be."""


def core_band() -> Band:
    """Return how far `CORE_SD` reaches: Student t, as few cores were held out."""
    from calibration.fitting.student import student_quantile

    reach = student_quantile(0.5 + LEVEL / 2, CORES - 1)
    return Band(down=reach, up=reach, level=LEVEL, basis="model-based", count=CORES)


def tell_basis(runtime: Runtime, core: Core) -> str:
    """Return where a runtime's instructions were counted, seen from a core.

    Returns
    -------
    str
        `IMAGE`, `HERE`, `RATIO`, `LEARNT`, `CARRIED`, or "": not counted, or as a stand-in that is
        marked assumed.

    Notes
    -----
    A ratio r is off by 0.2 to 0.7 log(r) where both cores were counted (-Os, int8). Of releases
    2023 and 2024 log(r) is below 0.05 in the median of products, pooling, ADD and MUL, so of them
    `RATIO` is as sure as `HERE`; of SUB it is 0.15, of comparisons, DIV and ARG_MAX to 0.3.
    """
    if runtime.is_compiled:
        return IMAGE
    if core.isa in runtime.learnt_on:
        return LEARNT
    counted_here, carried = core.isa in runtime.counted_on, bool(runtime.counted_on)
    here = HERE
    if runtime.counted is not None:
        from twin.runtimes.counted.table import REFERENCE, choose_core, is_carried

        counted, elsewhere = choose_core(core.isa, core.fpu, runtime.counted[0])
        counted_here = not elsewhere
        here = RATIO if is_carried(runtime.counted[0], counted, runtime.counted[1]) else HERE
        carried = runtime.counted[0] == REFERENCE or (runtime.is_alone and (
            load_isa(core.isa).code.foreign not in runtime.library))
    return here if counted_here else CARRIED if (
        carried and load_isa(core.isa).counts_carry) else ""


def list_input_assumptions(deployment: Deployment) -> dict[str, list[int]]:
    """Return what is assumed of inputs that decide what counted layers execute, and the layers."""
    found: dict[str, list[int]] = {}
    if deployment.runtime.counted is not None:
        from twin.runtimes.counted.describe import describe

        for layer in deployment.executed.layers:
            work = describe(GraphLayer(deployment.executed, layer), deployment.runtime.counted[0])
            if work is not None and work.guessed:
                found.setdefault(work.guessed, []).append(layer.index)
    return found


def list_counted(deployment: Deployment, assumed: Sequence[bool]) -> np.ndarray:
    """Return which layers' instructions were counted, here or elsewhere, shape (layers,)."""
    runtime, graph, core = deployment.runtime, deployment.executed, deployment.board.core
    if runtime.is_compiled:
        return np.ones(len(assumed), np.bool_)
    if runtime.counted is not None:
        from twin.runtimes.counted.lower import stands_in

        return np.array([not stands_in(*runtime.counted, GraphLayer(graph, layer), core)
                         for layer in graph.layers])
    own = find_operators(runtime.library)
    return np.array([layer.op in own and not unknown
                     and layer_dtype(graph, layer) in runtime.dtypes
                     for layer, unknown in zip(graph.layers, assumed, strict=True)])


MIX = {"conv": 0.1, WIDE: 0.2, "pointwise": 0.4, "depthwise": 0.2, "fully_connected": 0.05,
       "memory": 0.05}
"""Shares of time of a typical network by price; assumed."""


def know_core(time: Learnt, basis: str, board_sd: float, factor_sd: float) -> Learnt | None:
    """Return prices whose deviations are those of a core's table; None where own rows know as much.

    Parameters
    ----------
    time
        Of this release on this board, or of its nearest.
    basis
        From `tell_basis`.
    board_sd
        How far boards of a core lie apart, where the library was measured on this one: cores left
        out lacked their boards' rows, too.
    factor_sd
        How far networks lie from the library's factor.

    Notes
    -----
    What the core executes is off by one factor: its prices are wholly correlated. Rows of other
    boards, or of other releases, say no more than the instructions that this release executes.
    """
    known = state_core(time, basis, board_sd, factor_sd)
    mix = np.array([MIX.get(name, 0.0) for name in TIME_PRICES])
    before, after = (one.band.up * math.sqrt(mix @ one.matrix() @ mix) for one in (time, known))
    return known if after < before or not time.rows else None


def state_core(time: Learnt, basis: str, board_sd: float = 0.0, factor_sd: float = 0.0) -> Learnt:
    """Return prices whose deviations are those of a core's table; arguments as of `know_core`."""
    shared = factor_sd**2 + (0.0 if basis == LEARNT else CORE_SD**2 - board_sd**2) + (
        CARRIED_SD**2 if basis == CARRIED else 0.0)
    covariance = np.full((len(TIME_PRICES), len(TIME_PRICES)), shared)
    waiting_sd = factor_sd if basis == LEARNT else WAITING_SD
    calls = () if basis == IMAGE else ((("call",), CALLING_SD),)  # Its calls are among its code.
    for names, sd in ((("memory", STREAM), waiting_sd), *calls):
        places = [TIME_PRICES.index(name) for name in names]
        covariance[places], covariance[:, places] = 0.0, 0.0
        covariance[np.ix_(places, places)] = sd**2
    lower = np.tril_indices(len(TIME_PRICES))
    return replace(
        time, covariance=tuple(covariance[lower].tolist()), unidentified=(),
        band=BandModel(**asdict(core_band())))
