"""What a deployment costs by price (`twin.pricing.calibration`): the arrays calibration fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from calibration.fitting.intervals import BORROWED_SD, OPERATOR_SD
from hwmodels.frozen import entity
from hwmodels.quantities import sum_by_key
from twin.deployment.deployment import Deployment
from twin.pricing.inference import predict
from twin.pricing.itemised import itemise
from twin.pricing.operator_evidence import EXTERNAL, name_operators, operator_sd
from twin.pricing.price_names import ENERGY_PRICES, TIME_PRICES
from twin.pricing.task_prices import (
    draws_while,
    list_powers,
    list_prices,
    name_power,
    split_by_price,
)


@entity
class DesignMatrix:
    """Costs of one warm inference at stated prices, by layer and price: rows of the fit.

    Parameters
    ----------
    cycles
        Shape (layers, time prices), cycles of the core's clock.
    energy_pj
        Shape (layers, time prices, energy prices): at the rail, drawn while the time of a price
        passes; NaN where not known. One more of the second holds what is drawn by what is counted,
        however long it takes.
    operators
        Of each layer, by `name_operators`.
    external
        Shape (layers, time prices): cycles waiting for memory outside the chip, part of `cycles`.
    borrowed
        Shape (layers,), bool: whose loops are assumed, or another library's.
    prices, powers
        Of time and of energy: those of cores, or of an accelerator
        (`twin.pricing.task_prices`).
    """

    cycles: np.ndarray
    energy_pj: np.ndarray
    operators: tuple[str, ...]
    external: np.ndarray
    borrowed: np.ndarray
    prices: tuple[str, ...] = TIME_PRICES
    powers: tuple[str, ...] = ENERGY_PRICES

    def select(self, layers: slice) -> DesignMatrix:
        """Return the rows of some layers."""
        return replace(
            self, cycles=self.cycles[layers], energy_pj=self.energy_pj[layers],
            operators=self.operators[layers], external=self.external[layers],
            borrowed=self.borrowed[layers])

    def share_work(self, log: np.ndarray) -> dict[str, float]:
        """Return which share of the time each operator takes, and waiting outside the chip.

        Parameters
        ----------
        log
            Shape (time prices,): log factors work is done with.
        """
        factors = np.exp(log)
        external = self.external @ factors
        spent = self.cycles @ factors
        found = sum_by_key(((EXTERNAL, float(external.sum())), *zip(
            self.operators, (spent - external).tolist(), strict=True)))
        return {name: cycles / spent.sum() for name, cycles in found.items() if cycles > 0}

    def unlearned_sd(self, log: np.ndarray, identified: Mapping[str, float]) -> float:
        """Return what to add to the deviation of log time for operators that no row informs.

        Parameters
        ----------
        log
            Shape (time prices,): log factors work is done with.
        identified
            How well rows know each operator: `calibration.fitting.intervals.remaining_sd`.
        """
        closed = {name for name, borrowed in zip(self.operators, self.borrowed, strict=True)
                  if borrowed} | {EXTERNAL}
        return sum(share * operator_sd(name, identified,
                                       BORROWED_SD if name in closed else OPERATOR_SD)
                   for name, share in self.share_work(log).items())

    def energy_terms(self, log: np.ndarray, cycles: float | None = None) -> np.ndarray:
        """Return what draws energy, in picojoules of the whole inference.

        Parameters
        ----------
        log
            Shape (time prices,): log factors work is done with.
        cycles
            Measured; what draws while work is done is scaled to it.

        Returns
        -------
        numpy.ndarray
            Shape (energy prices,).
        """
        factors, count = np.exp(log), len(self.prices)
        scale = 1.0 if cycles is None else cycles / float((self.cycles @ factors).sum())
        drawn: np.ndarray = np.einsum("lkt,k->t", self.energy_pj[:, :count], factors) * scale
        return drawn + self.energy_pj[:, count:].sum(axis=(0, 1))


def make_design(deployment: Deployment) -> DesignMatrix:
    """Count a deployment's warm inference by price.

    Returns
    -------
    DesignMatrix
        Sums over layers equal the cycles and joules of `predict` at stated prices.
    """
    return _count_tasks(deployment) if deployment.accelerated else _count(deployment)


def _count_tasks(deployment: Deployment) -> DesignMatrix:
    """Count an inference on an accelerator, in cycles of the host's clock."""
    board, layers = deployment.board, predict(deployment).layers
    names, powers = list_prices(board.accelerator), list_powers(board.accelerator)
    times_us = np.array([split_by_price(layer.bill, board) for layer in layers])
    drawn = np.zeros((len(layers), len(names) + 1, len(powers)))
    for layer, spent_us, own in zip(layers, times_us, drawn, strict=True):
        for line in layer.bill.lines:
            while_us = spent_us * draws_while(line, names)
            shares = np.append(while_us, 0.0 if while_us.any() else 1.0)
            own[:, powers.index(name_power(line.event, line.place))] += shares / shares.sum() * (
                np.nan if line.energy_pj is None else line.energy_pj)
    return DesignMatrix(
        cycles=times_us * 1e-6 * board.core_clock.frequency_hz, energy_pj=drawn,
        operators=name_operators(deployment), external=np.zeros_like(times_us),
        borrowed=np.zeros(len(layers), np.bool_), prices=names, powers=powers)


def _count(deployment: Deployment) -> DesignMatrix:
    item, board = itemise(deployment, cold=False, unsure=False), deployment.board
    cycles = item.work + item.rest
    per_cycle_pj = [item.clock_tree_pj[0], item.leakage_pj[0] * 1e9 / board.core_clock.frequency_hz]
    return DesignMatrix(
        cycles=cycles, external=item.external, energy_pj=np.concatenate([
            item.energy_pj, cycles[..., None] * per_cycle_pj], axis=-1),
        operators=name_operators(deployment), borrowed=np.array(item.assumed)
        | (deployment.runtime.structure == "assumed"))
