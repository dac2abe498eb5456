"""Many factors, clocks and powers on one structure's costs: times, energies and intervals of all.

Equations are those of `twin.pricing.assurance.assure`, a row at a time there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from calibration.fitting.cell import Estimate
from calibration.fitting.intervals import (
    BORROWED_SD,
    LAYER_SD,
    TYPICAL,
    Band,
    left_untold,
)
from calibration.fitting.overlay import Learnt
from hwmodels.counts import CAUSES
from hwmodels.paths.timing import Floats
from twin.deployment.core import lower_network
from twin.deployment.deployment import Deployment
from twin.deployment.transfers import expect_waits
from twin.pricing.assurance import doubt_operators
from twin.pricing.batch import Batch, LayerArrays
from twin.pricing.calibration import Calibration
from twin.pricing.distance import between_sd, far_sd
from twin.pricing.factors import ENERGY_PRICES, EXTERNAL, TIME_PRICES
from twin.pricing.itemised import POWERS, Itemised
from twin.pricing.prediction import list_assumed
from twin.pricing.structure import find_structure

ROWS = 4096
"""Worked out at a time, so that a hundred thousand take no more memory than their answers."""

_IDLE, _DMA = CAUSES.index("idle"), CAUSES.index("dma_wait")
_MEMORY, _MOVING = TIME_PRICES.index("memory"), ENERGY_PRICES.index("memory")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Doubt:
    """What intervals of one deployment come from.

    Parameters
    ----------
    calibration : Calibration
        Learnt prices.
    untold : ndarray of float, (layers,)
        How far each layer's operator is left open by rows.
    beyond : float
        How far waiting outside the chip is.
    layer_sd : float
        Of a layer beside its operator.
    least_time, least_power : float
        The least a total is known to: `between_sd`.
    """

    calibration: Calibration
    untold: Floats
    beyond: float
    layer_sd: float
    least_time: float
    least_power: float


def doubt(deployment: Deployment, calibration: Calibration, *, cold: bool) -> Doubt:
    """Return what intervals of a deployment, and of others of its structure, come from."""
    structure = find_structure(deployment, partial(lower_network, deployment), cold=cold)
    assumed = list_assumed(deployment, structure.layers)
    return Doubt(
        calibration=calibration, untold=doubt_operators(deployment, assumed, calibration),
        beyond=left_untold(calibration.operators.get(EXTERNAL, 0.0), BORROWED_SD),
        layer_sd=LAYER_SD[deployment.runtime.structure],
        least_time=between_sd(deployment.graph.architecture_id, calibration.entry, time=True),
        least_power=between_sd(deployment.graph.architecture_id, calibration.entry, time=False))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """Cycles and energy of rows at their factors.

    Parameters
    ----------
    totals : ndarray of float, (rows, layers)
        Cycles.
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

    totals: Floats
    waits: Floats
    moving_pj: Floats
    drawn: Floats
    shares: Floats
    background: Floats
    hertz: Floats


def fill_rows(batch: Batch, rows: np.ndarray, item: Itemised, doubted: Doubt | None, *,
              hertz: Floats, time: Floats, power: Floats, toward: Floats | None = None) -> None:
    """Work out rows of a batch that share structure and timing.

    Parameters
    ----------
    batch : Batch
        Whose arrays are written.
    rows : ndarray of int, (n,)
        Which of them.
    item : Itemised
        Costs at stated prices.
    doubted : Doubt or None
        For intervals.
    hertz : ndarray of float, (n,)
        Clock of the core.
    time, power : ndarray of float, (n, prices)
        Factors on stated prices.
    toward : ndarray of float, (n,), optional
        Where energies have two ends: 0 at the first, 1 at the other.
    """
    mixed = (np.ones((len(rows), 1)) if toward is None
             else np.column_stack([1 - toward, toward]))
    for begin in range(0, len(rows), ROWS):
        piece = slice(begin, begin + ROWS)
        _fill(batch, rows[piece], item, doubted, hertz[piece], time[piece], power[piece],
              mixed[piece])


def _fill(batch: Batch, at: np.ndarray, item: Itemised, doubted: Doubt | None, hertz: Floats,
          time: Floats, power: Floats, mixed: Floats) -> None:
    made, us = _work(item, hertz, time, power, mixed), 1e6 / hertz
    totals, cycles, background = made.totals, made.totals.sum(axis=1), made.background
    waited, moved_pj = made.waits.sum(axis=1), made.moving_pj.sum(axis=1)
    factors = (time[:, :, None] * made.drawn[:, None, :]).reshape(len(at), -1)
    batch.time_us[at], batch.cycles[at] = cycles * us, cycles
    cause_cycles = time @ item.cause_cycles
    cause_pj = factors @ item.cause_pj.reshape(factors.shape[1], -1)
    cause_pj[:, _IDLE] += cycles * background.sum(axis=1)
    if item.brought is not None:
        cause_cycles[:, _DMA] += waited
        cause_pj[:, _DMA] += moved_pj
    batch.cause_cycles[at], batch.cause_pj[at] = cause_cycles, cause_pj
    batch.cause_us[at] = cause_cycles * us[:, None]
    work_pj = _sum_work(item.energy_pj.sum(axis=0), time, made.drawn)
    work_pj[:, _MOVING] += moved_pj
    terms = np.column_stack([work_pj, cycles[:, None] * background])
    batch.energy_uj[at] = terms.sum(axis=1) * 1e-6
    if batch.layers is not None:
        columns = slice(0, totals.shape[1])
        batch.layers.time_us[at, columns] = totals * us[:, None]
        powered = np.where(totals != 0, totals * background.sum(axis=1)[:, None], 0.0)
        batch.layers.energy_uj[at, columns] = 1e-6 * (
            powered + made.moving_pj
            + factors @ item.energy_pj.reshape(totals.shape[1], -1).T)
    if doubted is not None:
        _bound(batch, at, item, doubted, made, terms, time, power)


def _work(item: Itemised, hertz: Floats, time: Floats, power: Floats, mixed: Floats) -> Work:
    """Return cycles of rows and what multiplies energies."""
    own, shares = time @ (item.work + item.rest).T, _share(item, time)
    waits, moving, memory = np.zeros_like(own), np.zeros_like(own), time[:, [_MEMORY]]
    if item.brought is not None:
        waited = expect_waits(item.brought.transfers, own)
        waits = waited * item.brought.wait_cycles * memory
        moving = power[:, [_MOVING]] * memory * (
            waited * (mixed @ item.brought.wait_pj)[:, None] + mixed @ item.brought.moved_pj)
    totals = own + waits
    shares[:, _MEMORY] += waits.sum(axis=1)
    return Work(
        totals=totals, waits=waits, moving_pj=moving, hertz=hertz,
        drawn=(mixed[:, :, None] * power[:, None, :POWERS]).reshape(len(time), -1),
        background=np.column_stack([
            power[:, POWERS] * (mixed @ item.clock_tree_pj),
            power[:, POWERS + 1] * (mixed @ item.leakage_pj) * 1e9 / hertz]),
        shares=shares / totals.sum(axis=1)[:, None])


def _sum_work(energy_pj: Floats, time: Floats, drawn: Floats) -> Floats:
    """Energies of work by power, shape (rows, powers), of (time prices, ends x powers)."""
    ends = [(time @ energy_pj[:, one]) * drawn[:, one] for one in range(energy_pj.shape[1])]
    return np.stack([sum(ends[one::POWERS], np.zeros(len(time))) for one in range(POWERS)], axis=1)


def _share(item: Itemised, time: Floats) -> Floats:
    """Cycles by price as intervals see them: kernels of a layer share what it executes evenly."""
    return time * item.rest.sum(axis=0) + (time @ item.work.T) @ item.evenly


def _rival_cycles(item: Itemised, time: Floats) -> Floats:
    """Cycles of rows under each policy a cache may have, shape (rows, policies)."""
    if item.brought is None:
        return time @ item.rivals.sum(axis=1).T
    found = []
    for rival in item.rivals:
        own = time @ rival.T
        waits = expect_waits(item.brought.transfers, own) * item.brought.wait_cycles
        found.append((own + waits * time[:, [_MEMORY]]).sum(axis=1))
    return np.stack(found, axis=1)


def _bound(batch: Batch, at: np.ndarray, item: Itemised, doubted: Doubt, made: Work,
           terms: Floats, time: Floats, power: Floats) -> None:
    calibration = doubted.calibration
    learnt, totals = calibration.entry.time, made.totals
    weights = totals / totals.sum(axis=1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        outside = made.waits if item.brought is not None and item.brought.outside else 0.0
        waiting = np.where(
            totals != 0, (time[:, [_MEMORY]] * item.external + outside) / totals, 0.0)
    untold = (1 - waiting) * doubted.untold + waiting * doubted.beyond
    away = far_sd(totals.sum(axis=1), made.hertz, calibration.entry.support,
                  measured=calibration.entry.board is not None)
    spread = np.sqrt((weights**2).sum(axis=1) / TYPICAL)
    sd = np.maximum(deviation(calibration.time, learnt, made.shares, spread)
                    + ((weights * untold).sum(axis=1) + away), doubted.least_time)
    band, rivals = learnt.band.band(), _rival_cycles(item, time)
    low, high = (fold(rivals, axis=1) / rivals[:, 0] for fold in (np.min, np.max))
    batch.time_low_us[at] = batch.time_us[at] * np.exp(-band.down * sd) * low
    batch.time_high_us[at] = batch.time_us[at] * np.exp(band.up * sd) * high
    if calibration.entry.energy is not None and calibration.energy is not None:
        batch.energy_low_uj[at], batch.energy_high_uj[at] = _energy_ends(
            calibration, terms, sd, spread, power, doubted.least_power)
    if batch.layers is not None:
        _bound_layers(batch.layers, at, item, doubted, made, untold + away[:, None], time, power)


def deviation(estimate: Estimate, learnt: Learnt, shares: Floats, spread: Floats) -> Floats:
    """Return the standard deviation of the logarithm of totals, a row each.

    Parameters
    ----------
    estimate : Estimate
        With the covariance C of the logarithms of prices.
    learnt : Learnt
        With the deviations of errors by network and by row.
    shares : ndarray of float, (rows, prices)
        s: shares of the totals by price.
    spread : ndarray of float, (rows,)
        w: how concentrated in few layers the time is; multiplies the network's deviation.

    Returns
    -------
    ndarray of float, (rows,)
        sqrt(s C s' + (w sd_network)^2 + sd_row^2).
    """
    priced = ((shares @ estimate.covariance) * shares).sum(axis=-1)
    found: Floats = np.sqrt(priced + (learnt.network_sd * spread)**2 + learnt.row_sd**2)
    return found


def _join(time: Band, time_sd: Floats, power: Band, sd: Floats) -> tuple[Floats, Floats]:
    """Reaches of a product, down and up, as logarithms."""
    return (np.hypot(time.down * time_sd, power.down * sd),
            np.hypot(time.up * time_sd, power.up * sd))


def _energy_ends(calibration: Calibration, terms: Floats, time_sd: Floats, spread: Floats,
                 power: Floats, least: float = 0.0) -> tuple[Floats, Floats]:
    """Return ends of intervals of energies in microjoules, from what draws them."""
    learnt, estimate = calibration.entry.energy, calibration.energy
    assert learnt is not None and estimate is not None
    whole = terms.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        sd = np.maximum(deviation(estimate, learnt, terms / whole[..., None], spread), least)
    down, up = _join(calibration.entry.time.band.band(), time_sd, learnt.band.band(), sd)
    low, high = whole * 1e-6 * np.exp(-down), whole * 1e-6 * np.exp(up)
    if not calibration.entry.powers_are_own:
        stated = (terms / power).sum(axis=-1) * 1e-6
        low, high = np.minimum(low, stated), np.maximum(high, stated)
    return low, high


def _bound_layers(layers: LayerArrays, at: np.ndarray, item: Itemised, doubted: Doubt,
                  made: Work, untold: Floats, time: Floats, power: Floats) -> None:
    """Intervals of layers: each a network of one."""
    calibration, totals = doubted.calibration, made.totals
    band, alone = calibration.entry.time.band.band(), np.sqrt(1 / TYPICAL)
    known = calibration.entry.energy is not None and calibration.energy is not None
    for layer in range(totals.shape[1]):
        own, spread = totals[:, layer], np.full(len(at), alone)
        cycles = time * item.rest[layer] + (time @ item.work[layer])[:, None] * item.evenly[layer]
        cycles[:, _MEMORY] += made.waits[:, layer]
        with np.errstate(divide="ignore", invalid="ignore"):
            sd = np.where(own != 0, np.hypot(deviation(
                calibration.time, calibration.entry.time, cycles / own[:, None], spread),
                doubted.layer_sd) + untold[:, layer], 0.0)
        layers.time_low_us[at, layer] = layers.time_us[at, layer] * np.exp(-band.down * sd)
        layers.time_high_us[at, layer] = layers.time_us[at, layer] * np.exp(band.up * sd)
        if known:
            work = _sum_work(item.energy_pj[layer], time, made.drawn)
            work[:, _MOVING] += made.moving_pj[:, layer]
            terms = np.column_stack([work, own[:, None] * made.background])
            layers.energy_low_uj[at, layer], layers.energy_high_uj[at, layer] = _energy_ends(
                calibration, terms, sd, spread, power)
