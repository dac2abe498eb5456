"""Many predictions as arrays, one row a configuration: what is varied, and what it comes to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.intervals import Band, find_ends
from hwmodels.counts import CAUSES
from hwmodels.errors import TwinError
from hwmodels.frozen import entity, frozen
from hwmodels.paths.timing import Floats
from twin.deployment.deployment import Deployment
from twin.pricing.assurance import (
    ALONE,
    bound_energies,
    choose_bands,
    deviate,
    deviate_layers,
    find_reasons,
    list_draws,
)
from twin.pricing.calibration import Wanted, choose_calibration, choose_powers
from twin.pricing.certainty import Certainty, LayerCertainty
from twin.pricing.doubt import Doubt, doubt
from twin.pricing.itemised import (
    Itemised,
    Work,
    count_rivals,
    draw_layers,
    draw_total,
    itemise,
    multiply,
)
from twin.pricing.prediction import Prediction
from twin.pricing.price_names import ENERGY_PRICES, TIME_PRICES


@frozen
class Failure:
    """A configuration that cannot be: its row, and the error `predict` would have raised."""

    row: int
    error: TwinError


@entity
class Figures:
    """Figures of inferences, or of their layers; NaN beyond the last layer of a shorter network.

    Parameters
    ----------
    time_us, energy_uj : ndarray of float, (rows,) or (rows, layers)
        NaN is not known.
    time_low_us, time_high_us, energy_low_uj, energy_high_uj : ndarray of float, (rows,) or (rows,
    layers)
        Intervals; NaN without one, as at stated prices.
    """

    time_us: Floats
    energy_uj: Floats
    time_low_us: Floats
    time_high_us: Floats
    energy_low_uj: Floats
    energy_high_uj: Floats

    def fill(self, place: Any, time_us: float, energy_uj: float | None,
             certainty: Certainty | LayerCertainty | None) -> None:
        """Write a time, an energy and their intervals at a place."""
        for name, value in (("time{}_us", time_us), ("energy{}_uj", energy_uj)):
            interval = getattr(certainty, name.format(""), None)
            for end in ("", "_low", "_high"):
                getattr(self, name.format(end))[place] = _or_nan(
                    getattr(interval, end[1:], None) if end else value)


@entity
class Batch(Figures):
    """What many inferences are predicted to cost, one row each in the order asked for.

    Parameters
    ----------
    level
        Probability that a measurement lies inside an interval; NaN where no row has one.
    cycles : ndarray of float, (rows,)
        Of the clock most time passes in.
    causes
        Columns of the three below: every cause a line of a bill can have.
    cause_us, cause_cycles, cause_pj : ndarray of float, (rows, causes)
        Time across clocks, cycles of the clock of `cycles`, energy. Rows sum to the whole; NaN is
        not known.
    ram_bytes, flash_bytes : ndarray of int, (rows,)
        Peak RAM; weights and code. -1 in rows that failed.
    extrapolates : ndarray of bool, (rows,)
        Whether measurements do not support it: `Certainty.extrapolating`.
    failures
        Rows that cannot be, all NaN above.
    layers
        Where they were asked for.
    draws : ndarray of Draw or None, (rows,)
        Where they were asked for; None in it is not known.
    """

    level: float
    cycles: Floats
    cause_us: Floats
    cause_cycles: Floats
    cause_pj: Floats
    ram_bytes: NDArray[np.int64]
    flash_bytes: NDArray[np.int64]
    extrapolates: NDArray[np.bool_]
    causes: tuple[str, ...] = CAUSES
    failures: tuple[Failure, ...] = ()
    layers: Figures | None = None
    draws: NDArray[np.object_] | None = None

    def __len__(self) -> int:
        """Return how many configurations there are."""
        return len(self.time_us)


def empty_batch(rows: int, layers: int | None = None, *, draws: bool = False) -> Batch:
    """Return a batch of which nothing is known yet.

    Parameters
    ----------
    layers
        Most layers of a network, where layers are asked for.
    """
    def nan(names: Iterable[str], *shape: int) -> dict[str, Any]:
        return {name: np.full(shape, np.nan) for name in names}

    figures = Figures.__dataclass_fields__
    return Batch(
        **nan((*figures, "cycles"), rows),
        **nan(("cause_us", "cause_cycles", "cause_pj"), rows, len(CAUSES)), level=np.nan,
        ram_bytes=np.full(rows, -1, np.int64), flash_bytes=np.full(rows, -1, np.int64),
        extrapolates=np.zeros(rows, np.bool_), draws=np.full(rows, None) if draws else None,
        layers=None if layers is None else Figures(**nan(figures, rows, layers)))


def fill_row(batch: Batch, row: int, prediction: Prediction) -> None:
    """Write a prediction into a row of a batch's arrays.

    Parameters
    ----------
    row
        From 0.
    prediction
        What is not known of it is written as NaN.
    """
    certainty, board = prediction.certainty, prediction.board
    if batch.draws is not None and certainty is not None:
        batch.draws[row] = certainty.draw
    batch.fill(row, prediction.time_us, prediction.energy_uj, certainty)
    batch.cycles[row] = prediction.cycles
    batch.ram_bytes[row], batch.flash_bytes[row] = prediction.ram_bytes, prediction.flash_bytes
    batch.extrapolates[row] = certainty is not None and bool(certainty.extrapolating)
    bill = prediction.bill
    for column, cause in enumerate(CAUSES):
        cycles = {clock: bill.cycles(clock, cause) for clock in bill.clocks()}
        batch.cause_us[row, column] = sum(
            count / board.clock(clock).frequency_hz * 1e6 for clock, count in cycles.items())
        batch.cause_cycles[row, column] = cycles.get(prediction.clock, 0.0)
        batch.cause_pj[row, column] = _or_nan(bill.energy_pj(cause))
    if batch.layers is None:
        return
    for column, layer in enumerate(prediction.layers):
        batch.layers.fill((row, column), layer.time_us, layer.energy_uj, (
            certainty.layers[column] if certainty is not None and certainty.layers else None))


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value


def count_layers(deployments: Iterable[Any]) -> int:
    """Most layers of a network of some deployments."""
    return max((len(one.graph.layers) for one in deployments), default=0)


@entity
class Span:
    """Rows of one placement and voltage scale.

    Parameters
    ----------
    rows : ndarray of int, (n,)
        Of the batch.
    deployment
        As all of them but for clocks and supply voltage.
    hertz : mapping of str to ndarray of float, (n,)
        Clocks that are varied.
    volts : ndarray of float, (n,), or None
        Supply voltage, where it is.
    """

    rows: NDArray[np.int64]
    deployment: Deployment
    hertz: Mapping[str, Floats]
    volts: Floats | None = None


ROWS = 1024
"""Worked out at a time, so that a hundred thousand take no more memory than their answers."""

_IDLE, _DMA = CAUSES.index("idle"), CAUSES.index("dma_wait")


@entity
class Costs:
    """What rows of one structure and timing share.

    Parameters
    ----------
    item
        Costs at stated prices.
    time, power : ndarray of float, (prices,)
        Learnt factors on stated prices, 1 where none was learnt.
    """

    item: Itemised
    doubted: Doubt | None
    time: Floats
    power: Floats


def find_costs(deployment: Deployment, wanted: Wanted, *, cold: bool,
               top: Deployment | None) -> Costs:
    """Return the costs of a deployment and the prices they are taken at.

    Parameters
    ----------
    deployment, cold, top
        Of `itemise`.
    wanted
        Of `choose_calibration`, or chosen already.
    """
    chosen = choose_calibration(deployment, wanted) if isinstance(wanted, str) else wanted
    powers = chosen or choose_powers(deployment, wanted)
    item = itemise(deployment, cold=cold, unsure=chosen is not None, top=top)
    return Costs(
        item=item, doubted=None if chosen is None else doubt(deployment, chosen, item),
        time=np.ones(len(TIME_PRICES)) if chosen is None else chosen.time.factors,
        power=np.ones(len(ENERGY_PRICES)) if powers is None or powers.energy is None
        else powers.energy.factors)


def list_factors(rows: np.ndarray, names: tuple[str, ...], learnt: Floats,
                 varied: Mapping[str, Floats]) -> Floats:
    """Return factors on stated prices of rows of a batch, shape (n, prices).

    Parameters
    ----------
    rows : ndarray of int, (n,)
        Which of the batch.
    names
        `TIME_PRICES` or `ENERGY_PRICES`.
    learnt : ndarray of float, (prices,)
        Where none is varied.
    varied : mapping of str to ndarray of float, (all rows,)
        Of a `Variation`.
    """
    factors = np.repeat(learnt[None], len(rows), axis=0)
    for name, values in varied.items():
        factors[:, names.index(name)] = values[rows]
    return factors


def fill_rows(batch: Batch, rows: np.ndarray, costs: Costs, *, hertz: Floats, time: Floats,
              power: Floats, toward: Floats | None) -> None:
    """Work out rows of a batch that share structure and timing.

    Parameters
    ----------
    rows : ndarray of int, (n,)
        Which of them.
    hertz : ndarray of float, (n,)
        Clock of the core.
    time, power : ndarray of float, (n, prices)
        Factors on stated prices.
    toward : ndarray of float, (n,), optional
        Where energies have two ends: 0 at the first, 1 at the other.
    """
    item, doubted = costs.item, costs.doubted
    mixed = None if toward is None else np.column_stack([1 - toward, toward])
    for begin in range(0, len(rows), ROWS):
        piece = slice(begin, begin + ROWS)
        _fill(batch, rows[piece], item, doubted, multiply(
            item, hertz=hertz[piece], time=time[piece], power=power[piece],
            mixed=None if mixed is None else mixed[piece]), power[piece])


def _fill(batch: Batch, at: np.ndarray, item: Itemised, doubted: Doubt | None, work: Work,
          power: Floats) -> None:
    totals, us, background = work.totals, 1e6 / work.hertz, work.background
    cycles, terms = work.cycles, draw_total(item, work)
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
    layers, sd = batch.layers, found.total
    layers_sd = None if layers is None else deviate_layers(item, doubted, work, found)
    band, layer_band = choose_bands(item, doubted, work, found, layers_sd)
    rivals = count_rivals(item, work)
    if batch.draws is not None:
        batch.draws[at] = list_draws(item, doubted, work, found, rivals)
    for holds, _ in find_reasons(doubted, work, found):
        batch.extrapolates[at] |= holds
    low, high = (fold(rivals, axis=1) / rivals[:, 0] for fold in (np.min, np.max))
    write_ends(batch, at, sd, band, bound_energies(
        calibration, terms, sd, band, found.spread, factors=power, least=doubted.least_power))
    batch.time_low_us[at] *= low
    batch.time_high_us[at] *= high
    if layers is not None and layers_sd is not None:
        write_ends(layers, (at[:, None], np.arange(layers_sd.shape[1])), layers_sd, layer_band,
                   bound_energies(calibration, draw_layers(item, work), layers_sd, layer_band,
                                  ALONE, factors=power[:, None]))


def write_ends(arrays: Figures, at: Any, sd: Floats, band: Band,
               energies: tuple[Floats, Floats]) -> None:
    """Write intervals of times, by their deviations, and of energies, whose ends are known."""
    arrays.time_low_us[at], arrays.time_high_us[at] = find_ends(arrays.time_us[at], (sd, band))
    arrays.energy_low_uj[at], arrays.energy_high_uj[at] = energies
