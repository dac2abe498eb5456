"""A structure's costs by price, layer and cause: what learnt factors, clock and power multiply.

With t and p the factors on prices of time and power, and c the cycles of a layer by price,

    cycles = t c      energy = sum over k, j of t_k E_kj p_j + what being powered costs meanwhile

so that any number of factors and clocks is one product of matrices, as long as timing stays.
Energies that follow a supply voltage are held at two, and mixed. What DMA brings is waited for as
far as layers do not hide it, which depends on the factors: it is held as copies, and added later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial

import numpy as np

from hwmodels.counts import CAUSES, EVENTS, ISSUE_EVENTS, Prices
from hwmodels.paths.exposure import expose_once
from hwmodels.paths.timing import Floats, Places, read_timing
from twin.deployment.core import lower_network
from twin.deployment.deployment import Deployment
from twin.deployment.transfers import Transfers
from twin.pricing.host import runtime_prices
from twin.pricing.rates import count_calls, list_lines, rate_lines
from twin.pricing.replacement import list_open, list_rivals
from twin.pricing.structure import Groups, Structure, find_structure
from twin.pricing.tally import (
    ENERGY_PRICES,
    STALL_EVENTS,
    TIME_PRICES,
    list_external,
    price_of_family,
)

POWERS = 3
"""Energy prices of work: activity, stall, memory; the others are of being powered."""

STRUCTURES_KEPT = 256
"""Whose lines' columns are kept, beside the structures in memory."""

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
    energy_pj : ndarray of float, (layers, time prices, ends x 3)
        Of work, at each supply voltage; NaN is not known.
    cause_cycles : ndarray of float, (time prices, causes)
        Of the whole.
    cause_pj : ndarray of float, (time prices, ends x 3, causes)
        Of the whole; NaN is not known.
    clock_tree_pj, leakage_pj : ndarray of float, (ends,)
        Per cycle, and per nanosecond; NaN is not known.
    rivals : ndarray of float, (policies, layers, time prices)
        Cycles, warm, under each policy a cache may have, the assumed one first.
    brought : Brought or None
        Weights that come by DMA.
    """

    work: Floats
    rest: Floats
    evenly: Floats
    external: Floats
    energy_pj: Floats
    cause_cycles: Floats
    cause_pj: Floats
    clock_tree_pj: Floats
    leakage_pj: Floats
    rivals: Floats
    brought: Brought | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Brought:
    """Weights that come by DMA, and what waiting for them and moving them costs.

    Parameters
    ----------
    transfers : Transfers
        What is copied for each layer.
    wait_cycles : float
        Price of a cycle waited.
    wait_pj : ndarray of float, (ends,)
        Of a cycle waited, at each supply voltage; NaN is not known.
    moved_pj : ndarray of float, (ends, layers)
        Of the bytes of each layer.
    outside : bool
        Whether they come from outside the chip.
    """

    transfers: Transfers
    wait_cycles: float
    wait_pj: Floats
    moved_pj: Floats
    outside: bool


def itemise(deployment: Deployment, *, cold: bool, unsure: bool,
            top: Deployment | None = None) -> Itemised:
    """Return the costs of a deployment by price.

    Parameters
    ----------
    deployment : Deployment
        At stated prices, all of it on the core.
    cold : bool
        Caches start empty.
    unsure : bool
        Whether what unknown policies may do is wanted.
    top : Deployment, optional
        The same at another supply voltage: energies then have two ends.
    """
    ends = [runtime_prices(one) for one in (deployment, top) if one is not None]
    prices, lower = ends[0], cache(partial(lower_network, deployment))
    structure = find_structure(deployment, lower, cold=cold)
    layers, causes, columns = len(structure.layers), len(CAUSES), _columns(structure)
    read = cache(partial(read_timing, deployment.board))
    occurred, exposed = expose_once(structure.sheet, read(structure.sheet.places))
    by_layer, price, work = list_lines(structure).layers, columns.price, columns.work
    cycles = exposed * rate_lines(structure, prices, deployment.runtime.efficiency)[0]
    calls = np.array(count_calls(structure, deployment.runtime), dtype=np.float64)
    energy_pj = np.zeros((layers, len(TIME_PRICES), len(ends) * POWERS))
    cause_cycles = np.zeros((len(TIME_PRICES), causes))
    cause_pj = np.zeros((len(TIME_PRICES), len(ends) * POWERS, causes))
    np.add.at(cause_cycles, (price, columns.cause), cycles)
    for end, own in enumerate(ends):
        pj_rate = rate_lines(structure, own, deployment.runtime.efficiency)[1]
        energy = np.where(occurred != 0, occurred * pj_rate, 0.0)
        power, call_pj = end * POWERS + columns.power, np.where(
            calls != 0, calls * _pj(own, "kernel_dispatch"), 0.0)
        np.add.at(energy_pj, (by_layer, price, power), energy)
        np.add.at(cause_pj, (price, power, columns.cause), energy)
        energy_pj[:, _CALL, end * POWERS] += call_pj
        cause_pj[_CALL, end * POWERS, _CAUSE["kernel_dispatch"]] += call_pj.sum()
    parts = np.zeros((2, layers, len(TIME_PRICES)))
    np.add.at(parts, (np.where(work, 0, 1), by_layer, price), cycles)
    call_cycles = calls * prices.price("kernel_dispatch", "").cycles
    parts[1, :, _CALL] += call_cycles
    cause_cycles[_CALL, _CAUSE["kernel_dispatch"]] += call_cycles.sum()
    external, outside = np.zeros(layers), columns.outside(deployment)
    np.add.at(external, by_layer[outside], cycles[outside])
    return Itemised(
        work=parts[0], rest=parts[1], evenly=_share_evenly(structure), external=external,
        energy_pj=energy_pj, cause_cycles=cause_cycles, cause_pj=cause_pj,
        clock_tree_pj=np.array([_pj(one, "clock_tree") for one in ends]),
        leakage_pj=np.array([_pj(one, "leakage") for one in ends]),
        rivals=_itemise_rivals(deployment, prices, lower, read) if unsure else np.ones(
            (1, layers, len(TIME_PRICES))),
        brought=_itemise_transfers(deployment, ends))


def _itemise_transfers(deployment: Deployment, ends: Sequence[Prices]) -> Brought | None:
    transfers = deployment.transfers
    if transfers is None:
        return None
    source, sizes = transfers.source.name, np.array(transfers.buffers.layer_bytes, np.float64)
    return Brought(
        transfers=transfers, wait_cycles=ends[0].price("dma_wait", source).cycles,
        wait_pj=np.array([_pj(one, "dma_wait", source) for one in ends]),
        moved_pj=np.array([np.where(sizes != 0, sizes * _pj(one, "dma_byte", source), 0.0)
                           for one in ends]),
        outside=source in list_external(deployment.board))


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


@lru_cache(maxsize=STRUCTURES_KEPT)
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


@lru_cache(maxsize=STRUCTURES_KEPT)
def _share_evenly(structure: Structure) -> Floats:
    shares = np.zeros((len(structure.layers), len(TIME_PRICES)))
    for row, layer in zip(shares, structure.layers, strict=True):
        for kernel in layer:
            row[TIME_PRICES.index(price_of_family(kernel.family))] += 1 / len(layer)
    return shares


def _itemise_rivals(deployment: Deployment, prices: Prices, lower: Groups,
                    read: Callable[[Places], Floats]) -> Floats:
    """Cycles by layer and price under every policy; prices and timing are the same."""
    open_caches = list_open(deployment.board)
    rivals = [one for _, one in list_rivals(deployment, open_caches)] if open_caches else []
    rows = np.zeros((max(1, len(rivals)), len(deployment.graph.layers), len(TIME_PRICES)))
    for row, rival in zip(rows, rivals, strict=False):
        structure = find_structure(rival, lower, cold=False)
        rates, _ = rate_lines(structure, prices, deployment.runtime.efficiency)
        np.add.at(row, (list_lines(structure).layers, _columns(structure).price),
                  expose_once(structure.sheet, read(structure.sheet.places))[1] * rates)
        row[:, _CALL] += np.array(count_calls(structure, deployment.runtime)) * prices.price(
            "kernel_dispatch", "").cycles
    return rows if rivals else np.ones_like(rows)


def _pj(prices: Prices, event: str, place: str = "") -> float:
    """Picojoules of an event; NaN is not known."""
    pj = prices.price(event, place).pj
    return np.nan if pj is None else pj


assert ENERGY_PRICES[:POWERS] == ("activity", "stall", "memory")
