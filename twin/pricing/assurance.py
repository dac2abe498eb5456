"""How sure predictions at learnt prices are: covariance of prices through shares of bills.

With s_k the share of price k in a total, C their covariance, w the shares of its layers and
u = `remaining_sd` of their operators, the standard deviation of the logarithm is

    sqrt(s' C s + network_sd^2 sum w^2 / TYPICAL + row_sd^2) + sum w u + d

with d = `far_sd`, of a network or a clock beyond those measured, how far boards lie apart where a
fact of the board is another than was measured, and `OPERATOR_SD` of the share of
the time that fills empty caches, which was measured of none; downwards to no less than the end of
the warm inference. It is never less than networks
were found to lie apart, unless this one is among the rows: `between_sd`. Prices of a file that
agree with what is known without it widen no interval but by what they leave of the networks they
were learnt from. A layer is a network of
one, to which `LAYER_SD` and u are added under the root. Energy has the deviation of the time and
that of the power besides. All of it is worked out for many configurations at once, a row each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from calibration.fitting.cell import Estimate
from calibration.fitting.intervals import (
    BORROWED_SD,
    OPERATOR_SD,
    TYPICAL,
    Band,
    Interval,
    bound,
    concentrate,
    even_sides,
    find_ends,
)
from calibration.fitting.overlay import Learnt
from hwmodels.frozen import entity
from hwmodels.paths.timing import Floats
from hwmodels.quantities import sum_by_key
from twin.pricing.calibration import Calibration
from twin.pricing.certainty import Certainty, LayerCertainty
from twin.pricing.doubt import Doubt, doubt
from twin.pricing.draw import Draw, take_root
from twin.pricing.extrapolation import Reason, far_sd, find_extrapolation
from twin.pricing.itemised import (
    Itemised,
    Work,
    count_rivals,
    draw_layers,
    draw_total,
    itemise,
    multiply,
    split_layers,
)
from twin.pricing.prediction import Prediction
from twin.pricing.price_names import ENERGY_PRICES, STREAM, TIME_PRICES
from twin.pricing.structure import structure_key

NOTABLE_SHARE = 0.1
"""A price that is not identifiable is worth naming from this share of the time on."""

NOTABLE_UNLEARNED = 0.05
"""Standard deviation of log time from which what rows leave open is worth naming: operators
without rows, or a price."""

UNWAITED = np.array([name not in ("memory", STREAM) for name in TIME_PRICES])
"""Which prices of time are of what the core executes, not of waiting on memories."""

ALONE = concentrate(np.ones(1))
"""How concentrated the time of a single layer is."""

LARGE_SHARE = 0.25
"""From this share on, a price that is not identifiable makes the prediction an extrapolation."""


@entity
class Deviations:
    """Standard deviations of logarithms of total times, and what they are made of.

    Parameters
    ----------
    open_cycles : ndarray of float, (rows, layers)
        Cycles of each layer times the deviation rows leave open of its operator.
    filling : ndarray of float, (rows,)
        Share of the time that fills empty caches.
    away : ndarray of float, (rows,)
        For how far a network, a clock or a board lies from those measured.
    spread : ndarray of float, (rows,)
        How concentrated in few layers the time is: `concentrate`.
    priced, missing : ndarray of float, (rows,)
        Of the total: by prices, network and row; by what no row informs.
    total : ndarray of float, (rows,)
        Of the total.
    """

    open_cycles: Floats
    filling: Floats
    away: Floats
    spread: Floats
    priced: Floats
    missing: Floats
    total: Floats

    @property
    def unlearned_part(self) -> Floats:
        """Part of each total that no row informs, 0 to 1, shape (rows,)."""
        part: Floats = self.missing / (self.priced + self.missing)
        return part


def deviate(item: Itemised, doubted: Doubt, work: Work) -> Deviations:
    """Return how sure total times are.

    Parameters
    ----------
    item
        Costs at stated prices.
    work
        Rows of it.
    """
    calibration, totals, cycles = doubted.calibration, work.totals, work.cycles
    waiting = work.time @ item.external.T
    if item.brought is not None and item.brought.outside:
        waiting += work.waits
    open_cycles = totals * doubted.unlearned + waiting * (doubted.beyond - doubted.unlearned)
    filling = work.time @ item.filling.sum(axis=0) / cycles
    away = far_sd(cycles, work.hertz, calibration.entry.support,
                  measured=calibration.entry.board is not None) + (
                      calibration.spread.get("board", 0.0) if doubted.changed else 0.0)
    spread = np.sqrt((totals**2).sum(axis=1) / TYPICAL) / cycles
    priced = deviation(calibration.time, calibration.entry.time, work.shares, spread)
    missing = open_cycles.sum(axis=1) / cycles + filling * OPERATOR_SD + away
    total = np.maximum(priced + missing, doubted.least_time)
    if doubted.other is not None:
        ours, others = (one.calibration.entry.time.band for one in (doubted, doubted.other))
        before, moved = look_before(item, doubted, work)
        total = np.where(np.abs(moved) <= before * others.up, np.minimum(total, np.maximum(
            before * others.up / ours.up,
            np.hypot(calibration.entry.time.network_sd * spread, calibration.entry.time.row_sd))),
            total)
    return Deviations(open_cycles=open_cycles, filling=filling, away=away, spread=spread,
                      priced=priced, missing=missing, total=total)


def find_reasons(doubted: Doubt, work: Work, found: Deviations) -> list[Reason]:
    """Return why rows do not support predictions: which of them, and the reason of the first."""
    entry, deployment = doubted.calibration.entry, doubted.deployment
    left = np.sqrt(np.diag(doubted.calibration.time.covariance))
    return [
        *find_extrapolation(deployment, entry, cycles=work.cycles, hertz=work.hertz,
                            filling=found.filling, changed=doubted.changed),
        *(((shares >= LARGE_SHARE) & (shares * sd >= NOTABLE_UNLEARNED),
           f"{shares[0]:.0%} of the time is {name}, a price the data cannot tell")
          for name, shares, sd in zip(TIME_PRICES, work.shares.T, left, strict=True)
          if name in entry.time.unidentified
          and deployment.graph.architecture_id not in entry.support.networks),
        (found.open_cycles.sum(axis=1) / work.cycles >= NOTABLE_UNLEARNED, _name_unlearned(
            [layer.op for layer in deployment.executed.layers],
            found.open_cycles[0] / work.cycles[0]))]


def look_before(item: Itemised, doubted: Doubt, work: Work) -> tuple[Floats, Floats]:
    """Return how sure totals are otherwise, and the logarithm they moved by, each (rows,).

    Of a file's prices: without it. Where a total moved out of its interval, the file's rows
    disagree with what was believed, and its interval may be the wider one.
    """
    assert doubted.other is not None
    then = work if doubted.calibration.origin == "shipped" else multiply(
        item, hertz=work.hertz, time=work.time * np.exp(
            doubted.other.calibration.time.log - doubted.calibration.time.log))
    return deviate(item, doubted.other, then).total, np.log(work.cycles / then.cycles)


def choose_bands(item: Itemised, doubted: Doubt, work: Work, found: Deviations,
                 layers: Floats | None) -> tuple[Band, Band]:
    """Return how far intervals of total times and of those of layers reach.

    Waiting on memories, and what fills empty caches, only add: lower ends are never below those of
    what the core alone needs, nor those of a cold inference below a warm one's.

    Parameters
    ----------
    layers : ndarray of float, (rows, layers), or None
        Of `deviate_layers`; None: nobody asks of layers.
    """
    usual, each = doubted.calibration.entry.time.band.band(), doubted.layer_band
    whole = even_sides(usual, found.unlearned_part)
    lesser = [(item, multiply(item, hertz=work.hertz, time=work.time * UNWAITED))]
    if item.warm is not None:
        lesser.append((item.warm, multiply(item.warm, hertz=work.hertz, time=work.time)))

    def raise_low(band: Band, less: Floats, then: Floats, now: Floats, sd: Floats) -> Band:
        with np.errstate(divide="ignore", invalid="ignore"):
            down: Any = np.fmin(band.down, (less - np.log(then / now)) / sd)
        return replace(band, down=down)

    reach = each.down
    for less, part in lesser:
        sure = deviate(less, doubted, part)
        whole = raise_low(whole, even_sides(usual, sure.unlearned_part).down * sure.total,
                          part.cycles, work.cycles, found.total)
        if layers is not None:
            each = raise_low(each, reach * deviate_layers(less, doubted, part, sure), part.totals,
                             work.totals, layers)
    return whole, each


def deviate_layers(item: Itemised, doubted: Doubt, work: Work, found: Deviations) -> Floats:
    """Return how sure the times of layers are, shape (rows, layers): each is a network of one.

    An operator's own cost and the price of its family deviate independently.
    """
    calibration, totals = doubted.calibration, work.totals
    with np.errstate(divide="ignore", invalid="ignore"):
        priced = deviation(calibration.time, calibration.entry.time,
                           split_layers(item, work) / totals[:, :, None], ALONE)
        unlearned = found.open_cycles / totals
        filling = work.time @ item.filling.T / totals
    return np.where(totals != 0, np.hypot(np.hypot(priced, doubted.layer_sd), unlearned)
                    + filling * OPERATOR_SD + found.away[:, None], 0.0)


def deviation(estimate: Estimate, learnt: Learnt, shares: Floats, spread: Floats | float) -> Floats:
    """Return the standard deviation of the logarithm of totals, a row each.

    Parameters
    ----------
    estimate
        With the covariance C of the logarithms of prices.
    learnt
        With the deviations of errors by network and by row.
    shares : ndarray of float, (..., prices)
        s: shares of the totals by price.
    spread : float or ndarray of float, (...)
        w: how concentrated in few layers the time is; multiplies the network's deviation.

    Returns
    -------
    ndarray of float, (...)
        sqrt(s C s' + (w sd_network)^2 + sd_row^2).
    """
    priced = ((shares @ estimate.covariance) * shares).sum(axis=-1)
    found: Floats = np.sqrt(priced + (learnt.network_sd * spread)**2 + learnt.row_sd**2)
    return found


def bound_energies(calibration: Calibration, terms: Floats, time_sd: Floats, time_band: Band,
                   spread: Floats | float, *, factors: Floats, least: float = 0.0,
                   ) -> tuple[Floats, Floats]:
    """Return ends of intervals of energies in microjoules; NaN where there is none.

    Parameters
    ----------
    calibration
        Whose powers they are at.
    terms : ndarray of float, (..., energy prices)
        Picojoules by what draws them.
    time_sd : ndarray of float, (...)
        Deviations of the times.
    spread : float or ndarray of float, (...)
        As for `deviation`.
    factors : ndarray of float, (..., energy prices)
        On stated prices: on a board nobody measured intervals reach what its file states of the
        run current, whatever the shares of other currents are.
    least
        The least the power is known to.
    """
    learnt, estimate = calibration.entry.energy, calibration.energy
    if learnt is None or estimate is None:
        return (unknown := np.full(terms.shape[:-1], np.nan)), unknown
    whole, band = terms.sum(axis=-1), learnt.band.band()
    with np.errstate(divide="ignore", invalid="ignore"):
        sd = np.maximum(deviation(estimate, learnt, terms / whole[..., None], spread), least)
    low, high = find_ends(whole * 1e-6, (time_sd, time_band), (sd, band))
    if not calibration.entry.powers_are_own:
        stated = whole / factors[..., ENERGY_PRICES.index("activity")] * 1e-6
        low, high = np.minimum(low, stated), np.maximum(high, stated)
    return low, high


def assure(prediction: Prediction, calibration: Calibration, temperature: str) -> Certainty:
    """Return the intervals of a prediction made at learnt prices.

    Parameters
    ----------
    prediction
        Of a deployment `calibration` was applied to.
    calibration
        Whose covariance is propagated through the bill.
    temperature
        Overlays are learnt warm: what fills cold caches extrapolates.

    Notes
    -----
    Equations are those of the module, of one row. Where a replacement policy is not known, the
    interval of the whole time spans every candidate.
    """
    entry, deployed = calibration.entry, prediction.deployment
    item = itemise(deployed, cold=temperature == "cold", unsure=True)
    doubted = doubt(deployed, calibration, item)
    work = multiply(item, hertz=np.array([deployed.board.clock(
        deployed.board.core.clock).frequency_hz]), time=np.ones((1, len(TIME_PRICES))))
    found = deviate(item, doubted, work)
    own = deviate_layers(item, doubted, work, found)
    draw, = list_draws(item, doubted, work, found, count_rivals(item, work))
    band, layer_band = choose_bands(item, doubted, work, found, own)
    band = replace(band, down=np.ravel(band.down)[0], up=np.ravel(band.up)[0])
    downs = np.broadcast_to(layer_band.down, own.shape)[0]
    (sds,), sd = own, float(found.total[0])
    if found.unlearned_part[0] >= 0.5:
        band = replace(band, basis="model-based")
    whole = bound(prediction.time_us, sd, band)
    terms = np.vstack([draw_total(item, work), draw_layers(item, work)[0]])
    energies = bound_terms(calibration, terms, np.array([sd, *sds]), band, float(found.spread[0]),
                           replace(layer_band, down=downs), least=doubted.least_power)
    doubtful = {*entry.time.tied, *entry.time.strained(TIME_PRICES)}  # no findings of an overlay
    unclear = {name: share for name, share, left in zip(
        TIME_PRICES, work.shares[0], np.sqrt(np.diag(calibration.time.covariance)), strict=True)
        if share >= NOTABLE_SHARE and name in entry.time.unidentified
        and share * left >= NOTABLE_UNLEARNED}
    return Certainty(
        calibration=calibration.description, energy_uj=energies[0], basis=band.basis,
        time_us=whole.scale(float(draw.policies.min()), float(draw.policies.max())),
        errors=band.count, measured=calibration.measured, boards=len(entry.support.boards),
        powers_measured=calibration.energy is not None and entry.powers_are_own and (
            not calibration.name_changes(deployed, ("power",))),
        powers=calibration.power_basis if prediction.energy_uj is not None else "",
        version=calibration.version, by_shape=calibration.share_by_shape(work.shares[0]),
        layers=tuple(LayerCertainty(energy_uj=energy, time_us=bound(
            layer.time_us, sd, replace(layer_band, down=down)))
            for layer, sd, down, energy in zip(prediction.layers, sds.tolist(), downs.tolist(),
                                               energies[1:], strict=True)),
        extrapolating=tuple(text for holds, text in find_reasons(doubted, work, found)
                            if np.all(holds)),
        unidentified=tuple(unclear),
        doubtful=tuple(name for name in TIME_PRICES if name in doubtful), draw=draw)


def list_draws(item: Itemised, doubted: Doubt, work: Work, found: Deviations,
               rivals: Floats) -> list[Draw]:
    """Return what totals are uncertain by, of each row; rivals as of `count_rivals`."""
    calibration, deployed = doubted.calibration, doubted.deployment
    entry, root = calibration.entry, take_root(calibration.time.covariance)
    make = partial(
        Draw, source=(calibration.origin, str(entry.board), str(entry.core), str(entry.runtime)),
        row_sd=entry.time.row_sd, network=deployed.graph.architecture_id,
        structure=structure_key(deployed, deployed.target.content(deployed),
                                cold=item.warm is not None),
        counts_sd=0.0 if calibration.counted else BORROWED_SD if (
            deployed.runtime.structure == "assumed") else OPERATOR_SD)
    return [make(reach=root @ shares, time=shares, policies=times / times[0],
                 network_sd=entry.time.network_sd * spread, unlearned_sd=max(0.0, missing))
            for shares, times, spread, missing in zip(
                work.shares, rivals, found.spread, found.total - found.priced, strict=True)]


def bound_terms(calibration: Calibration, terms: Floats, time_sds: Floats, band: Band,
                spread: float, layer_band: Band, *, least: float = 0.0) -> list[Interval | None]:
    """Return intervals of the energies of an inference and of its layers; None without one.

    Parameters
    ----------
    calibration
        Whose powers they are at.
    terms : ndarray of float, (1 + layers, energy prices)
        Picojoules of the whole and of each layer; NaN is not known.
    time_sds : ndarray of float, (1 + layers,)
        Deviations of the logarithms of their times.
    band, layer_band
        How far intervals of the whole time, and of times of layers, reach.
    spread
        How concentrated in few layers the whole time is.
    least
        The least the power of the whole is known to.
    """
    factors = np.ones(1) if calibration.energy is None else calibration.energy.factors
    parts = [bound_energies(calibration, own, sd, reach, one, factors=factors, least=at_least)
             for own, sd, reach, one, at_least in (
                 (terms[:1], time_sds[:1], band, spread, least),
                 (terms[1:], time_sds[1:], layer_band, ALONE, 0.0))]
    known = ~np.isnan(terms[0]).any()
    return [Interval(low=low, high=high, level=band.level) if known and low == low else None
            for lows, highs in parts
            for low, high in zip(lows.tolist(), highs.tolist(), strict=True)]


def price_cycles(prediction: Prediction) -> np.ndarray:
    """Return cycles by layer and time price, shape (layers, time prices), of a prediction."""
    item = itemise(prediction.deployment, cold=prediction.temperature == "cold", unsure=False)
    work = multiply(item, hertz=np.ones(1), time=np.ones((1, len(TIME_PRICES))))
    return split_layers(item, work)[0]


def _name_unlearned(operators: Sequence[str], unlearned: Floats) -> str:
    """Say which operators widen an interval."""
    added = sum_by_key(zip(operators, unlearned.tolist(), strict=True))
    total = sum(added.values())
    names = [name for name, more in sorted(added.items(), key=lambda item: -item[1])
             if more >= total / 10]
    return (f"the interval is wider by a factor of {math.exp(total):.2f} each way: no calibration "
            f"data of this library for {', '.join(names)}")
