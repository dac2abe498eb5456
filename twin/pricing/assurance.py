"""How sure a prediction at learnt prices is: covariance of prices through shares of its bill."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from calibration.fitting.cell import Estimate
from calibration.fitting.intervals import (
    BORROWED_SD,
    LAYER_SD,
    OPERATOR_SD,
    Band,
    Interval,
    bound,
    concentrate,
    join_bands,
    left_untold,
)
from calibration.fitting.overlay import Learnt
from hwmodels.counts import Bill
from twin.deployment.deployment import Deployment
from twin.pricing.calibration import Calibration
from twin.pricing.certainty import Certainty, Draw, LayerCertainty
from twin.pricing.distance import between_sd, far_sd, find_extrapolation
from twin.pricing.factors import (
    CORE_EVENTS,
    ENERGY_PRICES,
    EXTERNAL,
    TIME_PRICES,
    family_of,
    list_external,
    name_operators,
    power_of,
    price_of_family,
    waits_on_memory,
)
from twin.pricing.prediction import Prediction
from twin.pricing.replacement import ReplacementRange

NOTABLE_SHARE = 0.1
"""A price that could not be told is worth naming from this share of the time on."""

NOTABLE_UNTOLD = 0.05
"""Standard deviation of log time from which operators without rows are worth naming."""

LARGE_SHARE = 0.25
"""From this share on, a price that could not be told makes the prediction an extrapolation."""


def widen(certainty: Certainty, policies: ReplacementRange) -> Certainty:
    """Return wider intervals of the whole time: by what an unknown replacement policy may do."""
    return dataclasses.replace(certainty, time_us=widen_interval(certainty.time_us, policies))


def widen_interval(interval: Interval, policies: ReplacementRange) -> Interval:
    """Return an interval wider by what an unknown replacement policy may do."""
    return dataclasses.replace(interval, low=interval.low * policies.low,
                               high=interval.high * policies.high)


def assure(prediction: Prediction, calibration: Calibration, temperature: str) -> Certainty:
    """Return the intervals of a prediction made at learnt prices.

    Parameters
    ----------
    prediction : Prediction
        Of a deployment `calibration` was applied to.
    calibration : Calibration
        Whose covariance is propagated through the bill.
    temperature : str
        Overlays are learnt warm: a cold prediction extrapolates.

    Notes
    -----
    With s_k the share of price k in a total, C their covariance, w the shares of its layers and
    u = `left_untold` of their operators, the standard deviation of the logarithm is

        sqrt(s' C s + network_sd^2 sum w^2 / TYPICAL + row_sd^2) + sum w u + d

    with d = `far_sd`, of a network or a clock beyond those measured. It is never less than
    networks were found to lie apart, unless this one is among the rows: `between_sd`.

    A layer is a network of one, to which `LAYER_SD` is added under the root.
    """
    entry, time, cycles = calibration.entry, calibration.time, price_cycles(prediction)
    totals = cycles.sum(axis=1)
    shares, weights = cycles.sum(axis=0) / totals.sum(), totals / totals.sum()
    untold = _untold(prediction, calibration, totals)
    board = prediction.deployment.board
    away = far_sd(prediction.cycles, board.clock(board.core.clock).frequency_hz, entry.support,
                  measured=entry.board is not None)
    missing = float(weights @ untold) + away
    priced = _sd(time, shares, entry.time, concentrate(totals))
    band = _name_kind(entry.time.band.band(), priced + missing, missing)
    deployed, one = prediction.deployment, concentrate(np.ones(1))
    network, layer_sd = deployed.graph.architecture_id, LAYER_SD[deployed.runtime.structure]
    missing += max(0.0, between_sd(network, entry, time=True) - (priced + missing))
    sds = [priced + missing]
    sds += [math.hypot(_sd(time, line / total, entry.time, one), layer_sd) + more + away
            if total else 0.0
            for line, total, more in zip(cycles, totals, untold, strict=True)]
    energies = _energy_intervals(prediction, calibration, sds, [
        concentrate(totals), *(one for _ in totals)], entry.time.band.band())
    unclear = {name: share for name, share in zip(TIME_PRICES, shares, strict=True)
               if share >= NOTABLE_SHARE and name in entry.time.unidentified}
    return Certainty(
        calibration=calibration.description, time_us=bound(prediction.time_us, sds[0], band),
        energy_uj=energies[0], basis=band.basis, errors=band.count,
        powers=calibration.power_basis if prediction.energy_uj is not None else "",
        layers=tuple(LayerCertainty(time_us=bound(layer.time_us, sd, band), energy_uj=energy)
                     for layer, sd, energy in zip(prediction.layers, sds[1:], energies[1:],
                                                  strict=True)),
        extrapolating=(*find_extrapolation(prediction, entry, temperature),
                       *(f"{share:.0%} of the time is {name}, a price the data cannot tell"
                         for name, share in unclear.items() if share >= LARGE_SHARE),
                       *_name_untold(prediction, weights, untold)),
        unidentified=tuple(unclear), doubtful=_name_doubtful(entry.time),
        draw=Draw(source=_name_source(calibration), covariance=time.covariance, time=shares,
                  row_sd=entry.time.row_sd, untold_sd=missing, network=network,
                  network_sd=entry.time.network_sd * concentrate(totals)))


def _name_source(calibration: Calibration) -> tuple[str, str, str, str]:
    """Return what predictions have to share for their draws to be the same."""
    entry = calibration.entry
    return calibration.origin, str(entry.board), str(entry.core), str(entry.runtime)


def _name_doubtful(time: Learnt) -> tuple[str, ...]:
    """Name prices that are no findings of an overlay: fitted as one, or strained."""
    found = {*time.tied, *time.strained(TIME_PRICES)}
    return tuple(name for name in TIME_PRICES if name in found)


def _sd(estimate: Estimate, shares: np.ndarray, learnt: Learnt, concentration: float) -> float:
    """Return the deviation of a logarithm by its prices, the network and the row."""
    return math.sqrt(float(shares @ estimate.covariance @ shares)
                     + (learnt.network_sd * concentration)**2 + learnt.row_sd**2)


def _untold(prediction: Prediction, calibration: Calibration, totals: np.ndarray) -> np.ndarray:
    """Return how far each layer's cost is left open by rows of the library, shape (layers,)."""
    found, outside = [], list_external(prediction.deployment.board)
    beyond = left_untold(calibration.operators.get(EXTERNAL, 0.0), BORROWED_SD)
    doubts = doubt_operators(prediction.deployment, [layer.assumed for layer in prediction.layers],
                             calibration)
    for layer, left, total in zip(prediction.layers, doubts, totals, strict=True):
        waiting = sum(line.cycles for line in layer.bill.lines if line.place in outside)
        part = waiting / total if total else 0.0
        found.append((1 - part) * left + part * beyond)
    return np.array(found)


def doubt_operators(deployment: Deployment, assumed: Sequence[bool],
                    calibration: Calibration) -> np.ndarray:
    """Return how far rows leave what each layer's operator costs beside others, shape (layers,).

    Parameters
    ----------
    deployment : Deployment
        At the calibration's prices or any others.
    assumed : sequence of bool
        Which layers' costs nothing stands behind.
    calibration : Calibration
        Whose rows tell of operators; an operator whose instructions were counted needs none.
    """
    told, closed = calibration.operators, deployment.runtime.structure == "assumed"
    found = np.array([
        left_untold(told.get(name, 0.0), BORROWED_SD if closed or unknown else OPERATOR_SD)
        for unknown, name in zip(assumed, name_operators(deployment), strict=True)])
    if calibration.counted:
        from twin.pricing.counted import list_counted

        found[list_counted(deployment, assumed)] = 0.0
    return found


def _name_untold(prediction: Prediction, weights: np.ndarray, untold: np.ndarray) -> list[str]:
    """Say which operators widen an interval, if they do so much."""
    added: dict[str, float] = {}
    for layer, weight, more in zip(prediction.layers, weights, untold, strict=True):
        added[layer.op] = added.get(layer.op, 0.0) + float(weight * more)
    total = sum(added.values())
    names = [name for name, more in sorted(added.items(), key=lambda item: -item[1])
             if more >= total / 10]
    return [] if total < NOTABLE_UNTOLD else [
        f"the interval is wider by {math.expm1(total):.0%} each way for what no row of this "
        f"library tells of: {', '.join(names)}"]


def _name_kind(band: Band, sd: float, missing: float) -> Band:
    """Return a band that is called after what most of it rests on."""
    return band if missing < sd / 2 else dataclasses.replace(band, basis="model-based")


def price_cycles(prediction: Prediction) -> np.ndarray:
    """Return cycles by layer and time price, shape (layers, time prices)."""
    memory, call = TIME_PRICES.index("memory"), TIME_PRICES.index("call")
    rows = []
    for layer in prediction.layers:
        row = [0.0] * len(TIME_PRICES)
        for line in layer.bill.lines:
            if waits_on_memory(line.event):
                row[memory] += line.cycles
            elif line.event == "kernel_dispatch":
                row[call] += line.cycles
            elif line.event in CORE_EVENTS:
                # kernels of one layer that belong to several families share its work evenly
                for family in layer.families:
                    price = TIME_PRICES.index(price_of_family(family_of(family, line.place)))
                    row[price] += line.cycles / len(layer.families)
        rows.append(row)
    return np.array(rows).reshape(len(rows), len(TIME_PRICES))


def bound_energies(prediction: Prediction, powers: Calibration, time_sds: list[float],
                   time_band: Band) -> list[Interval | None]:
    """Return bounds of the energy of the total and of each layer, of a program.

    Parameters
    ----------
    prediction : Prediction
        At the powers of `powers`.
    powers : Calibration
        Whose covariance is propagated.
    time_sds : list of float
        Deviations of the logarithm of time, of the total and of each layer.
    time_band : Band
        What those are of.
    """
    one = concentrate(np.ones(1))
    totals = np.array([layer.time_us for layer in prediction.layers])
    return _energy_intervals(prediction, powers, time_sds,
                             [concentrate(totals), *(one for _ in totals)], time_band)


def _energy_intervals(prediction: Prediction, calibration: Calibration, time_sds: list[float],
                      concentrations: list[float], time_band: Band) -> list[Interval | None]:
    """Bounds of the total and of each layer: those of the time, and of the power besides.

    On a board nobody measured they reach what the currents its file states give.
    """
    learnt, estimate = calibration.entry.energy, calibration.energy
    if learnt is None or estimate is None or prediction.energy_uj is None:
        return [None] * (1 + len(prediction.layers))
    power_band = learnt.band.band()
    intervals: list[Interval | None] = []
    factors = None if calibration.entry.powers_are_own else estimate.factors
    parts: list[tuple[Bill, float | None]] = [(prediction.bill, prediction.energy_uj)]
    parts += [(layer.bill, layer.energy_uj) for layer in prediction.layers]
    least = between_sd(prediction.deployment.graph.architecture_id, calibration.entry, time=False)
    leasts = [least, *(0.0 for _ in prediction.layers)]
    for (bill, energy_uj), time_sd, concentration, least in zip(
            parts, time_sds, concentrations, leasts, strict=True):
        terms = power_terms(bill)
        if not energy_uj or not terms.sum():
            intervals.append(None)
            continue
        sd = max(_sd(estimate, terms / terms.sum(), learnt, concentration), least)
        interval = bound(energy_uj, math.hypot(time_sd, sd),
                         join_bands(time_band, time_sd, power_band, sd))
        if factors is not None:
            stated_uj = float((terms / factors).sum()) * 1e-6
            interval = dataclasses.replace(interval, low=min(interval.low, stated_uj),
                                           high=max(interval.high, stated_uj))
        intervals.append(interval)
    return intervals


def power_terms(bill: Bill) -> np.ndarray:
    """Return picojoules by energy price, shape (energy prices,); what is not known is left out."""
    terms = dict.fromkeys(ENERGY_PRICES, 0.0)
    for line in bill.lines:
        terms[power_of(line.event)] += line.energy_pj or 0.0
    return np.array(list(terms.values()))
