"""A deployment at learnt prices: efficiencies of its runtime and prices of its board.

An overlay changes no fact: what was stated stays, for one prediction it costs otherwise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import lru_cache

from hwmodels.board.facts import Board, EventPrice
from hwmodels.file_cache import Same
from hwmodels.prices import derive_prices
from twin.deployment.deployment import Deployment
from twin.pricing.calibration import Calibration
from twin.pricing.factors import (
    ENERGY_PRICES,
    FAMILIES_OF,
    TIME_PRICES,
    power_of,
    waits_on_memory,
)
from twin.runtimes import Runtime


def apply_calibration(deployment: Deployment, calibration: Calibration) -> Deployment:
    """Return the deployment with learnt factors on its prices.

    Parameters
    ----------
    deployment : Deployment
        With stated prices.
    calibration : Calibration
        From `choose_calibration`.

    Returns
    -------
    Deployment
        Equal in everything but what things cost.
    """
    return apply_factors(
        deployment, dict(zip(TIME_PRICES, calibration.time.factors, strict=True)),
        {} if calibration.energy is None else
        dict(zip(ENERGY_PRICES, calibration.energy.factors.tolist(), strict=True)))


def apply_factors(deployment: Deployment, time: Mapping[str, float],
                  energy: Mapping[str, float]) -> Deployment:
    """Return the deployment with factors on its prices; a price that is not named keeps its own.

    Parameters
    ----------
    deployment : Deployment
        With stated prices.
    time, energy : mapping of str to float
        Factors by price, of `TIME_PRICES` and `ENERGY_PRICES`.
    """
    runtime, board = _apply(Same((deployment.board, deployment.runtime)), tuple(time.items()),
                            tuple(energy.items()))
    return deployment.repriced(runtime=runtime, board=board)


@lru_cache(maxsize=16)
def _apply(priced: Same[tuple[Board, Runtime]], times: tuple[tuple[str, float], ...],
           energies: tuple[tuple[str, float], ...]) -> tuple[Runtime, Board]:
    """Return what deployments with the same board and runtime share."""
    (board, runtime), time, energy = priced.parts, dict(times), dict(energies)
    efficiency = {family: runtime.efficiency.get(family, 1.0) * float(time.get(price, 1.0))
                  for price, families in FAMILIES_OF.items() for family in families}
    return (dataclasses.replace(
                runtime, efficiency=efficiency,
                dispatch_cycles=runtime.dispatch_cycles * time.get("call", 1.0)),
            _reprice(board, float(time.get("memory", 1.0)),
                     {name: energy.get(name, 1.0) for name in ENERGY_PRICES}))


def _reprice(board: Board, memory: float, powers: dict[str, float]) -> Board:
    """Return the board with every price stated, times its factor."""
    stated = []
    for (event, place), price in sorted(derive_prices(board).table.items(),
                                        key=lambda item: (item[0][0], item[0][1])):
        waits = waits_on_memory(event)
        scale = memory if waits else 1.0
        stated.append(EventPrice(
            event=event, place=place, cycles=price.cycles * scale, clock=price.clock,
            pj=None if price.pj is None else price.pj * scale * powers[power_of(event)]))
    return dataclasses.replace(board, prices=tuple(stated))
