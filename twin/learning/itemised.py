"""A structure's costs by price, layer and cause: what learnt factors, clock and power multiply.

With t and p the factors on prices of time and power, and c the cycles of a layer by price,

    cycles = t c      energy = sum over k, j of t_k E_kj p_j + what being powered costs meanwhile

so that any number of factors and clocks is one product of matrices, as long as timing stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from hwmodels.counts import CAUSES, EVENTS, ISSUE_EVENTS, Prices
from hwmodels.paths.exposure import expose
from hwmodels.paths.timing import Floats, read_timing
from twin.deployment.core import lower_network
from twin.deployment.deployment import Deployment
from twin.learning.tally import (
    ENERGY_PRICES,
    STALL_EVENTS,
    TIME_PRICES,
    list_external,
    price_of_family,
)
from twin.prediction.host import runtime_prices
from twin.prediction.rates import count_calls, list_lines, rate_lines
from twin.prediction.replacement import list_open, list_rivals
from twin.prediction.structure import Groups, Structure, find_structure

POWERS = 3
"""Energy prices of work: activity, stall, memory; the others are of being powered."""

_CALL, _MEMORY = TIME_PRICES.index("call"), TIME_PRICES.index("memory")
_CAUSE = {event: CAUSES.index(described.cause) for event, described in EVENTS.items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Itemised:
    """What one inference costs by price, at stated prices and one timing.

    Parameters
    ----------
    work : ndarray of float, (layers, time prices)
        Cycles of what kernels execute, by the family of the kernel.
    rest : ndarray of float, (layers, time prices)
        Cycles of copying, calls and memories.
    evenly : ndarray of float, (layers, time prices)
        Shares of a layer's kernels by price, over which `work` is divided where how sure its time
        is comes from: they sum to one, or to nought without kernels.
    external : ndarray of float, (layers,)
        Cycles of waiting outside the chip.
    energy_pj : ndarray of float, (layers, time prices, 3)
        Of work; NaN is not known.
    cause_cycles : ndarray of float, (time prices, causes)
        Of the whole.
    cause_pj : ndarray of float, (time prices, 3, causes)
        Of the whole; NaN is not known.
    clock_tree_pj, leakage_pj : float
        Per cycle, and per nanosecond; NaN is not known.
    rivals : ndarray of float, (policies, time prices)
        Cycles of the whole, warm, under each policy a cache may have, the assumed one first.
    """

    work: Floats
    rest: Floats
    evenly: Floats
    external: Floats
    energy_pj: Floats
    cause_cycles: Floats
    cause_pj: Floats
    clock_tree_pj: float
    leakage_pj: float
    rivals: Floats


def itemise(deployment: Deployment, *, cold: bool, unsure: bool) -> Itemised:
    """Return the costs of a deployment by price.

    Parameters
    ----------
    deployment : Deployment
        At stated prices, of which `is_itemised` holds.
    cold : bool
        Caches start empty.
    unsure : bool
        Whether what unknown policies may do is wanted.
    """
    prices, lower = runtime_prices(deployment), cache(partial(lower_network, deployment))
    structure = find_structure(deployment, lower, cold=cold)
    layers, causes = len(structure.layers), len(CAUSES)
    columns = _columns(structure)
    occurred, exposed = _expose(structure, deployment)
    cycle_rate, pj_rate = rate_lines(structure, prices, deployment.runtime.efficiency)
    cycles = exposed * cycle_rate
    energy = np.where(occurred != 0, occurred * pj_rate, 0.0)
    by_layer, price, work = list_lines(structure).layers, columns.price, columns.work
    energy_pj = np.zeros((layers, len(TIME_PRICES), POWERS))
    cause_cycles = np.zeros((len(TIME_PRICES), causes))
    cause_pj = np.zeros((len(TIME_PRICES), POWERS, causes))
    np.add.at(energy_pj, (by_layer, price, columns.power), energy)
    np.add.at(cause_cycles, (price, columns.cause), cycles)
    np.add.at(cause_pj, (price, columns.power, columns.cause), energy)
    parts = np.zeros((2, layers, len(TIME_PRICES)))
    np.add.at(parts, (np.where(work, 0, 1), by_layer, price), cycles)
    call, calls = prices.price("kernel_dispatch", ""), np.array(
        count_calls(structure, deployment.runtime), dtype=np.float64)
    call_pj = np.where(calls != 0, calls * _or_nan(call.pj), 0.0)
    parts[1, :, _CALL] += calls * call.cycles
    energy_pj[:, _CALL, 0] += call_pj
    cause_cycles[_CALL, _CAUSE["kernel_dispatch"]] += calls.sum() * call.cycles
    cause_pj[_CALL, 0, _CAUSE["kernel_dispatch"]] += call_pj.sum()
    external = np.zeros(layers)
    np.add.at(external, by_layer[columns.outside(deployment)],
              cycles[columns.outside(deployment)])
    return Itemised(
        work=parts[0], rest=parts[1], evenly=_share_evenly(structure), external=external,
        energy_pj=energy_pj, cause_cycles=cause_cycles, cause_pj=cause_pj,
        clock_tree_pj=_or_nan(prices.price("clock_tree", "").pj),
        leakage_pj=_or_nan(prices.price("leakage", "").pj),
        rivals=_itemise_rivals(deployment, prices, lower) if unsure else np.ones(
            (1, len(TIME_PRICES))))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Columns:
    """What each line is charged under: price of time, of power, cause; whether it is executed."""

    price: np.ndarray
    power: np.ndarray
    cause: np.ndarray
    work: np.ndarray
    places: Sequence[str]

    def outside(self, deployment: Deployment) -> np.ndarray:
        """Return which lines are of memories outside the chip."""
        names = list_external(deployment.board)
        return np.array([place in names for place in self.places], dtype=bool)


def _columns(structure: Structure) -> _Columns:
    lines = list_lines(structure)
    price = [TIME_PRICES.index(price_of_family(family)) if family else
             _CALL if event == "kernel_dispatch" else _MEMORY for event, _, family in lines.keys]
    power = [1 if event in STALL_EVENTS else
             0 if event in ISSUE_EVENTS or event == "kernel_dispatch" else 2
             for event, _, _ in lines.keys]
    cause = [_CAUSE[event] for event, _, _ in lines.keys]
    work = [bool(family) and place == "" for _, place, family in lines.keys]
    return _Columns(
        price=np.array(price, int)[lines.number], power=np.array(power, int)[lines.number],
        cause=np.array(cause, int)[lines.number], work=np.array(work, bool)[lines.number],
        places=[place for _, _, place, _ in structure.sheet.lines])


def _expose(structure: Structure, deployment: Deployment) -> tuple[Floats, Floats]:
    sheet = structure.sheet
    occurred, exposed = expose(sheet, read_timing(deployment.board, sheet.places)[None])
    return occurred[0], exposed[0]


def _share_evenly(structure: Structure) -> Floats:
    shares = np.zeros((len(structure.layers), len(TIME_PRICES)))
    for row, layer in zip(shares, structure.layers, strict=True):
        for kernel in layer:
            row[TIME_PRICES.index(price_of_family(kernel.family))] += 1 / len(layer)
    return shares


def _itemise_rivals(deployment: Deployment, prices: Prices, lower: Groups) -> Floats:
    """Cycles by price under every policy; the prices are the same."""
    open_caches = list_open(deployment.board)
    rivals = [one for _, one in list_rivals(deployment, open_caches)] if open_caches else []
    rows = np.zeros((max(1, len(rivals)), len(TIME_PRICES)))
    for row, rival in zip(rows, rivals, strict=False):
        structure = find_structure(rival, lower, cold=False)
        rates, _ = rate_lines(structure, prices, deployment.runtime.efficiency)
        np.add.at(row, _columns(structure).price, _expose(structure, rival)[1] * rates)
        row[_CALL] += sum(count_calls(structure, deployment.runtime)) * prices.price(
            "kernel_dispatch", "").cycles
    return rows if rivals else np.ones_like(rows)


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value


assert ENERGY_PRICES[:POWERS] == ("activity", "stall", "memory")
