"""Rows of a batch: many factors, clocks and powers on one structure's costs, with intervals."""

from __future__ import annotations

import numpy as np

from hwmodels.counts import CAUSES
from hwmodels.paths.timing import Floats
from twin.pricing.assurance import ALONE, Doubt, bound_energies, deviate, deviate_layers
from twin.pricing.batch import Batch
from twin.pricing.itemised import (
    Itemised,
    Work,
    count_rivals,
    draw_layers,
    draw_total,
    multiply,
)

ROWS = 1024
"""Worked out at a time, so that a hundred thousand take no more memory than their answers."""

_IDLE, _DMA = CAUSES.index("idle"), CAUSES.index("dma_wait")


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
    mixed = None if toward is None else np.column_stack([1 - toward, toward])
    for begin in range(0, len(rows), ROWS):
        piece = slice(begin, begin + ROWS)
        _fill(batch, rows[piece], item, doubted, multiply(
            item, hertz=hertz[piece], time=time[piece], power=power[piece],
            mixed=None if mixed is None else mixed[piece]), power[piece])


def _fill(batch: Batch, at: np.ndarray, item: Itemised, doubted: Doubt | None, work: Work,
          power: Floats) -> None:
    totals, us, background = work.totals, 1e6 / work.hertz, work.background
    cycles, terms = totals.sum(axis=1), draw_total(item, work)
    factors = (work.time[:, :, None] * work.drawn[:, None, :]).reshape(len(at), -1)
    batch.time_us[at], batch.cycles[at] = cycles * us, cycles
    cause_cycles = work.time @ item.cause_cycles
    cause_pj = factors @ item.cause_pj.reshape(factors.shape[1], -1)
    cause_pj[:, _IDLE] += cycles * background.sum(axis=1)
    if item.brought is not None:
        cause_cycles[:, _DMA] += work.waits.sum(axis=1)
        cause_pj[:, _DMA] += work.moving_pj.sum(axis=1)
    batch.cause_cycles[at], batch.cause_pj[at] = cause_cycles, cause_pj
    batch.cause_us[at] = cause_cycles * us[:, None]
    batch.energy_uj[at] = terms.sum(axis=1) * 1e-6
    if batch.layers is not None:
        columns = slice(0, totals.shape[1])
        batch.layers.time_us[at, columns] = totals * us[:, None]
        powered = np.where(totals != 0, totals * background.sum(axis=1)[:, None], 0.0)
        batch.layers.energy_uj[at, columns] = 1e-6 * (
            powered + work.moving_pj
            + factors @ item.energy_pj.reshape(totals.shape[1], -1).T)
    if doubted is not None:
        _bound(batch, at, item, doubted, work, terms, power)


def _bound(batch: Batch, at: np.ndarray, item: Itemised, doubted: Doubt, work: Work,
           terms: Floats, power: Floats) -> None:
    calibration, found = doubted.calibration, deviate(item, doubted, work)
    band, rivals, sd = calibration.entry.time.band.band(), count_rivals(item, work), found.total
    low, high = (fold(rivals, axis=1) / rivals[:, 0] for fold in (np.min, np.max))
    batch.time_low_us[at] = batch.time_us[at] * np.exp(-band.down * sd) * low
    batch.time_high_us[at] = batch.time_us[at] * np.exp(band.up * sd) * high
    batch.energy_low_uj[at], batch.energy_high_uj[at] = bound_energies(
        calibration, terms, sd, band, found.spread, factors=power, least=doubted.least_power)
    layers = batch.layers
    if layers is None:
        return
    sd = deviate_layers(item, doubted, work, found)
    columns = (at[:, None], np.arange(sd.shape[1]))
    layers.time_low_us[columns] = layers.time_us[columns] * np.exp(-band.down * sd)
    layers.time_high_us[columns] = layers.time_us[columns] * np.exp(band.up * sd)
    layers.energy_low_uj[columns], layers.energy_high_uj[columns] = bound_energies(
        calibration, draw_layers(item, work), sd, band, ALONE, factors=power[:, None])
