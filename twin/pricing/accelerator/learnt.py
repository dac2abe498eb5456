"""Prices learnt on an accelerator: factors on its units, its waits, its launches and its host.

With t_k the stated time under price k, x_k the logarithm of its factor, C the covariance of x and
s_k the share of price k in a total,

    T = sum_k t_k exp(x_k)        sd(log T) = sqrt(s' C s + network_sd^2 c^2 + row_sd^2)

c says how concentrated the time is in few layers; a network that is not among the rows is known no
better than networks lie apart. Energies follow in the same way from prices of energy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from calibration.fitting.intervals import concentrate
from hwmodels.board.facts import Board, EventPrice
from hwmodels.board.npu import THROUGH
from hwmodels.counts import EVENTS, Bill
from hwmodels.prices import derive_prices
from hwmodels.schedule.prices import CYCLE_EVENTS
from twin.deployment.deployment import Deployment
from twin.pricing.accelerator.certainty import make_certainty
from twin.pricing.accelerator.energy import sum_energy
from twin.pricing.calibration import Calibration
from twin.pricing.certainty import Certainty
from twin.pricing.draw import Draw, take_root
from twin.pricing.extrapolation import between_sd, far_sd, find_extrapolation
from twin.pricing.prediction import Prediction
from twin.pricing.task_prices import (
    HOST,
    WORK,
    name_power,
    name_price,
    split_by_power,
    split_by_price,
)


def reprice(deployment: Deployment, factors: Mapping[str, float],
            powers: Mapping[str, float]) -> Deployment:
    """Return a deployment with factors on its prices; a price that is not named keeps its own.

    Parameters
    ----------
    factors, powers
        Of time and of energy. A longer task has more active cycles, whatever they are spent on.
    """
    board = deployment.board
    stated, places = [], (*(unit.kind for unit in board.accelerator.units), THROUGH)
    for (event, place), price in sorted(derive_prices(board).table.items(),
                                        key=lambda item: item[0]):
        works = event in CYCLE_EVENTS and EVENTS[event].cause in WORK
        for where in places if works and not place else (place,):
            factor = factors.get(name_price(event, where), 1.0) if price.cycles else 1.0
            stated.append(EventPrice(
                event=event, place=where, cycles=price.cycles * factor, clock=price.clock,
                pj=None if price.pj is None else price.pj * factor * powers.get(
                    name_power(event, place), 1.0)))
    runtime = deployment.runtime
    return deployment.repriced(board=replace(board, prices=tuple(stated)), runtime=replace(
        runtime, dispatch_cycles=runtime.dispatch_cycles * factors.get(HOST, 1.0)))


def assure_learnt(prediction: Prediction, calibration: Calibration) -> Certainty:
    """Return the intervals of a prediction at learnt prices, by the equation of the module."""
    deployment, entry, time = prediction.deployment, calibration.entry, calibration.entry.time
    board = deployment.board
    bills = [prediction.bill, *(layer.bill for layer in prediction.layers),
             *(task.bill for task in prediction.tasks)]
    times = np.array([split_by_price(bill, board) for bill in bills])
    totals = times.sum(axis=1)
    shares = times / np.where(totals > 0, totals, 1.0)[:, None]
    layers = 1 + len(prediction.layers)
    spread = concentrate(totals[1:layers])
    apart = np.full(len(bills), time.network_sd * concentrate(np.ones(1)))
    apart[0] = time.network_sd * spread
    sds = np.sqrt(np.einsum("ij,jk,ik->i", shares, calibration.time.covariance, shares)
                  + apart**2 + time.row_sd**2)
    hertz = board.core_clock.frequency_hz
    cycles = prediction.time_us * 1e-6 * hertz
    sds[0] = max(sds[0], between_sd(deployment.graph.architecture_id, entry, time=True)) + far_sd(
        cycles, hertz, entry.support, measured=entry.board is not None)
    band = time.band.band()
    return make_certainty(
        prediction, sds.tolist(), _sum_energies(bills[:layers], calibration, board, spread), band,
        calibration=calibration.description,
        extrapolating=tuple(text for holds, text in find_extrapolation(
            deployment, entry, cycles=cycles, hertz=hertz,
            changed=calibration.name_changes(deployment)) if holds),
        doubtful=tuple(time.tied), version=calibration.version, measured=calibration.measured,
        draw=Draw(source=("accelerator", calibration.version), time=shares[0],
                  reach=take_root(calibration.time.covariance) @ shares[0], row_sd=time.row_sd,
                  network_sd=time.network_sd * spread, network=deployment.graph.architecture_id))


def _sum_energies(bills: Sequence[Bill], calibration: Calibration, board: Board,
                  spread: float) -> np.ndarray:
    """Return picojoules of a network's bill and of its layers', and how unsure prices make each.

    Where prices of energy were learnt, by their covariance and what no price explains.
    """
    energies, learnt = np.array([sum_energy(bill, board) for bill in bills]).T, (
        calibration.entry.energy)
    if calibration.energy is not None and learnt is not None:
        drawn = np.array([split_by_power(bill, board) for bill in bills])
        apart = np.full(len(bills), learnt.network_sd)
        apart[0] = max(learnt.network_sd * spread, learnt.between_sd)
        energies[1] = np.sqrt(energies[0]**2 * (apart**2 + learnt.row_sd**2) + np.einsum(
            "ij,jk,ik->i", drawn, calibration.energy.covariance, drawn))
    return energies
