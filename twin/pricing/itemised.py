"""A structure's costs by price, layer and cause: what learnt factors, clock and power multiply.

With t and p the factors on prices of time and power, and c the cycles of a layer by price,

    cycles = t c      energy = sum over k, j of t_k E_kj p_j + what being powered costs meanwhile

so that any number of factors and clocks is one product of matrices, as long as timing stays.
Energies that follow a supply voltage are held at two, and mixed. What DMA brings is waited for as
far as layers do not hide it, which depends on the factors: it is held as copies, and added later.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from hwmodels.counts import CAUSE_PLACES, CAUSES, CORE_EVENTS, Prices
from hwmodels.frozen import entity
from hwmodels.paths.timing import Floats, read_timing
from twin.deployment.core import lower_network
from twin.deployment.deployment import Deployment
from twin.pricing.lines import Lines, list_shares, price_lines, price_rivals, runtime_prices
from twin.pricing.operator_evidence import list_external
from twin.pricing.price_names import (
    ENERGY_PRICES,
    TIME_PRICES,
    list_parts,
    mix_efficiency,
    name_work,
    power_of,
    price_of_family,
    time_price,
)
from twin.pricing.structure import Groups, Structure, find_structure, list_assumed
from twin.runtimes import Runtime

if TYPE_CHECKING:
    from twin.deployment.transfers import Transfers

POWERS = 3
"""Energy prices of work: activity, stall, memory; the others are of being powered."""

STRUCTURES_KEPT = 256
"""Whose lines' columns are kept, beside the structures in memory."""

_MEMORY, _MOVING = TIME_PRICES.index("memory"), ENERGY_PRICES.index("memory")


@entity
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
    external : ndarray of float, (layers, time prices)
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
    assumed
        Layers nothing stands behind the costs of.
    brought
        Weights that come by DMA.
    warm
        Of a cold inference the same with its caches filled.
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
    assumed: tuple[bool, ...]
    brought: Brought | None = None
    warm: Itemised | None = None

    @property
    def filling(self) -> Floats:
        """Cycles beyond those of a warm inference, shape (layers, time prices)."""
        return np.zeros_like(self.rest) if self.warm is None else np.maximum(
            self.work + self.rest - self.warm.work - self.warm.rest, 0.0)


@entity
class Brought:
    """Weights that come by DMA, and what waiting for them and moving them costs.

    Parameters
    ----------
    transfers
        What is copied for each layer.
    wait_cycles
        Price of a cycle waited.
    wait_pj : ndarray of float, (ends,)
        Of a cycle waited, at each supply voltage; NaN is not known.
    moved_pj : ndarray of float, (ends, layers)
        Of the bytes of each layer.
    outside
        Whether they come from outside the chip.
    """

    transfers: Transfers
    wait_cycles: float
    wait_pj: Floats
    moved_pj: Floats
    outside: bool

    def wait(self, cycles: Floats) -> Floats:
        """Return cycles layers wait whose own cycles are these, shape (rows, layers)."""
        from twin.deployment.transfers import expect_waits

        return expect_waits(self.transfers, cycles)


def itemise(deployment: Deployment, *, cold: bool, unsure: bool,
            top: Deployment | None = None) -> Itemised:
    """Return the costs of a deployment by price.

    Parameters
    ----------
    deployment
        At stated prices, all of it on the core.
    cold
        Caches start empty.
    unsure
        Whether what unknown policies may do is wanted.
    top
        The same at another supply voltage: energies then have two ends.
    """
    ends = [runtime_prices(one) for one in (deployment, top) if one is not None]
    prices, lower = ends[0], cache(partial(lower_network, deployment))
    rivals = _itemise_rivals(deployment, prices, lower) if unsure else None
    runtime, structure = deployment.runtime, find_structure(deployment, lower, cold=cold)
    timing = read_timing(deployment.board, structure.arrays.places)
    shares = list_shares(deployment)
    priced = [price_lines(structure, runtime, own, timing, shares) for own in ends]
    lines, cycles = priced[0].lines, priced[0].cycles
    columns = _columns(lines)
    layers, causes = len(structure.layers), len(CAUSES)
    energy_pj = np.zeros((layers, len(TIME_PRICES), len(ends) * POWERS))
    cause_cycles = np.zeros((len(TIME_PRICES), causes))
    cause_pj = np.zeros((len(TIME_PRICES), len(ends) * POWERS, causes))
    cycles, of = columns.part(cycles, runtime), lines.layers[columns.line]
    np.add.at(cause_cycles, (columns.price, columns.cause), cycles)
    for end, own in enumerate(priced):
        energy, power = columns.part(own.energy_pj, runtime), end * POWERS + columns.power
        np.add.at(energy_pj, (of, columns.price, power), energy)
        np.add.at(cause_pj, (columns.price, power, columns.cause), energy)
    parts = np.zeros((2, layers, len(TIME_PRICES)))
    np.add.at(parts, (np.where(columns.work, 0, 1), of, columns.price), cycles)
    external, outside = np.zeros((layers, len(TIME_PRICES))), columns.outside(deployment)
    np.add.at(external, (of[outside], columns.price[outside]), cycles[outside])
    return Itemised(
        work=parts[0], rest=parts[1], evenly=_share_evenly(structure), external=external,
        energy_pj=energy_pj, cause_cycles=cause_cycles, cause_pj=cause_pj,
        clock_tree_pj=np.array([_pj(one, "clock_tree") for one in ends]),
        leakage_pj=np.array([_pj(one, "leakage") for one in ends]),
        warm=itemise(deployment, cold=False, unsure=False) if cold else None,
        rivals=np.ones((1, layers, len(TIME_PRICES))) if rivals is None else rivals,
        assumed=list_assumed(deployment, structure.layers),
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
                           for one in ends]), outside=source in list_external(deployment.board))


@entity
class _Columns:
    """What each part of a line is charged under: price of time, power, cause; if it is executed.

    Work that mixes families has a part of each.
    """

    line: np.ndarray
    keys: tuple[tuple[str, str, str], ...]
    second: np.ndarray
    price: np.ndarray
    power: np.ndarray
    cause: np.ndarray
    work: np.ndarray
    number: np.ndarray
    places: Sequence[str]

    def part(self, values: Floats, runtime: Runtime) -> Floats:
        """Return values of lines parted by the families each mixes, as a runtime's cycles are."""
        first = []
        for _, _, work in self.keys:
            (family, weight), *other = list_parts(work)
            first.append(weight * mix_efficiency(runtime.efficiency, family) / mix_efficiency(
                runtime.efficiency, work) if other else 1.0)
        share = np.array(first)[self.number]
        found: Floats = values[self.line] * np.where(self.second, 1 - share, share)
        return found

    def outside(self, deployment: Deployment) -> np.ndarray:
        """Return which lines are of memories outside the chip."""
        names = list_external(deployment.board)
        return np.isin(self.number, [key for key, place in enumerate(self.places)
                                     if place in names])


@lru_cache(maxsize=STRUCTURES_KEPT)
def _columns(lines: Lines) -> _Columns:
    mixed = [list_parts(work) for _, _, work in lines.keys]
    several = np.flatnonzero(np.array([len(parts) > 1 for parts in mixed], bool)[lines.number])
    line = np.concatenate([np.arange(len(lines.number)), several])
    second, number = np.arange(len(line)) >= len(lines.number), lines.number[line]
    one, other = (np.array([time_price(event, parts[place][0]) for (event, _, _), parts in zip(
        lines.keys, mixed, strict=True)], int)[number] for place in (0, -1))
    power, cause = (np.array(found, int)[number] for found in (
        [ENERGY_PRICES.index(power_of(event)) for event, _, _ in lines.keys],
        [CAUSE_PLACES[event] for event, _, _ in lines.keys]))
    work = np.array([event in CORE_EVENTS and place == "" for event, place, _ in lines.keys], bool)
    return _Columns(price=np.where(second, other, one), power=power, cause=cause, line=line,
                    work=work[number], number=number, keys=lines.keys, second=second,
                    places=[place for _, place, _ in lines.keys])


@lru_cache(maxsize=STRUCTURES_KEPT)
def _share_evenly(structure: Structure) -> Floats:
    shares = np.zeros((len(structure.layers), len(TIME_PRICES)))
    for row, layer in zip(shares, structure.layers, strict=True):
        for kernel in layer:
            for family, weight in list_parts(name_work("alu_issue", "", kernel.family,
                                                       kernel.wide)):
                row[TIME_PRICES.index(price_of_family(family))] += weight / len(layer)
    return shares


def _itemise_rivals(deployment: Deployment, prices: Prices, lower: Groups) -> Floats:
    """Cycles by layer and price under every policy; prices and timing are the same."""
    found = price_rivals(deployment, prices, lower)
    rows = np.zeros((max(1, len(found)), len(deployment.graph.layers), len(TIME_PRICES)))
    for row, (_, priced) in zip(rows, found, strict=False):
        columns = _columns(priced.lines)
        np.add.at(row, (priced.lines.layers[columns.line], columns.price),
                  columns.part(priced.cycles, deployment.runtime))
    return rows if found else np.ones_like(rows)


@entity
class Work:
    """Cycles and energy of rows at their factors.

    Parameters
    ----------
    time : ndarray of float, (rows, time prices)
        Factors.
    totals : ndarray of float, (rows, layers)
        Cycles.
    cycles : ndarray of float, (rows,)
        Of the whole.
    waits : ndarray of float, (rows, layers)
        Cycles of them that wait for DMA.
    moving_pj : ndarray of float, (rows, layers)
        Energy of what DMA does.
    drawn : ndarray of float, (rows, ends x powers)
        Factors on energies of work, those of each supply voltage.
    shares : ndarray of float, (rows, time prices)
        Of the whole.
    background : ndarray of float, (rows, 2)
        Picojoules a cycle takes: clock tree, leakage.
    hertz : ndarray of float, (rows,)
        Clock of the core.
    """

    time: Floats
    totals: Floats
    cycles: Floats
    waits: Floats
    moving_pj: Floats
    drawn: Floats
    shares: Floats
    background: Floats
    hertz: Floats

    @property
    def memory(self) -> Floats:
        """Factor on waiting for what DMA brings, shape (rows, 1)."""
        return self.time[:, [_MEMORY]]


def multiply(item: Itemised, *, hertz: Floats, time: Floats, power: Floats | None = None,
             mixed: Floats | None = None) -> Work:
    """Return cycles of rows and what multiplies energies.

    Parameters
    ----------
    item
        Costs at stated prices.
    hertz : ndarray of float, (rows,)
        Clock of the core.
    time, power : ndarray of float, (rows, prices)
        Factors on stated prices; powers are by default as stated.
    mixed : ndarray of float, (rows, ends), optional
        Shares of each supply voltage energies are held at; by default alike: times have no part.
    """
    power = np.ones((1, len(ENERGY_PRICES))) if power is None else power
    if mixed is None:
        mixed = np.full((len(hertz), len(item.leakage_pj)), 1 / len(item.leakage_pj))
    own, shares = time @ (item.work + item.rest).T, (
        time * item.rest.sum(axis=0) + (time @ item.work.T) @ item.evenly)
    waits, moving = np.zeros_like(own), np.zeros_like(own)
    if item.brought is not None:
        waited, memory = item.brought.wait(own), time[:, [_MEMORY]]
        waits = waited * item.brought.wait_cycles * memory
        moving = power[:, [_MOVING]] * memory * (
            waited * (mixed @ item.brought.wait_pj)[:, None] + mixed @ item.brought.moved_pj)
    totals = own + waits
    cycles = totals.sum(axis=1)
    shares[:, _MEMORY] += waits.sum(axis=1)
    return Work(
        time=time, totals=totals, cycles=cycles, waits=waits, moving_pj=moving, hertz=hertz,
        drawn=(mixed[:, :, None] * power[:, None, :POWERS]).reshape(len(time), -1),
        background=np.column_stack([
            power[:, POWERS] * (mixed @ item.clock_tree_pj),
            power[:, POWERS + 1] * (mixed @ item.leakage_pj) * 1e9 / hertz]),
        shares=shares / cycles[:, None])


def split_layers(item: Itemised, work: Work) -> Floats:
    """Return cycles by time price, kernels of a layer sharing what it executes evenly.

    Returns
    -------
    ndarray of float, (rows, layers, time prices)
    """
    cycles: Floats = work.time[:, None] * item.rest + (
        work.time @ item.work.T)[:, :, None] * item.evenly
    cycles[:, :, _MEMORY] += work.waits
    return cycles


def draw_total(item: Itemised, work: Work) -> Floats:
    """Return picojoules of an inference by energy price, shape (rows, energy prices)."""
    whole = item.energy_pj.sum(axis=0, keepdims=True)
    return _draw(whole, work, work.moving_pj.sum(axis=1, keepdims=True),
                 work.cycles[:, None])[:, 0]


def draw_layers(item: Itemised, work: Work) -> Floats:
    """Return picojoules of layers by energy price, shape (rows, layers, energy prices)."""
    return _draw(item.energy_pj, work, work.moving_pj, work.totals)


def _draw(energy_pj: Floats, work: Work, moving_pj: Floats, cycles: Floats) -> Floats:
    """Energies of parts, (parts, time prices, ends x powers), at the factors of rows."""
    ends = np.tensordot(work.time, energy_pj, axes=(1, 1)) * work.drawn[:, None]
    powers = ends.reshape(*cycles.shape, -1, POWERS).sum(axis=2)
    powers[:, :, _MOVING] += moving_pj
    background = cycles[:, :, None] * work.background[:, None]
    return np.concatenate([powers, np.where(cycles[:, :, None] != 0, background, 0.0)], axis=2)


def count_rivals(item: Itemised, work: Work) -> Floats:
    """Return cycles of rows under each policy a cache may have, shape (rows, policies)."""
    if item.brought is None:
        return work.time @ item.rivals.sum(axis=1).T
    found = []
    for rival in item.rivals:
        own = work.time @ rival.T
        waits = item.brought.wait(own) * item.brought.wait_cycles
        found.append((own + waits * work.memory).sum(axis=1))
    return np.stack(found, axis=1)


def _pj(prices: Prices, event: str, place: str = "") -> float:
    """Picojoules of an event; NaN is not known."""
    pj = prices.price(event, place).pj
    return np.nan if pj is None else pj


assert ENERGY_PRICES[:POWERS] == ("activity", "stall", "memory")
