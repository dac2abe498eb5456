"""Many predictions at once: of many deployments, or of one with values varied.

Rows of one structure and timing are one product of matrices (`rows`). Beside other masters a
structure is of one clock, as what they ask for in a cycle follows it. On an accelerator what rows
set alike is predicted once, and their learnt factors are a product too (`offloaded`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.fitting.cell import Estimate
from hwmodels.errors import TwinError
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.learning.batch import (
    Batch,
    Failure,
    Floats,
    Variation,
    count_layers,
    empty_batch,
    fill_row,
    read_variation,
)
from twin.learning.calibrated import predict_calibrated
from twin.learning.calibration import AUTO, Calibration, choose_calibration
from twin.learning.configurations import Group, Remaker, gather_rows, list_groups
from twin.learning.itemised import itemise
from twin.learning.rows import doubt, fill_rows
from twin.learning.tally import ENERGY_PRICES, TIME_PRICES
from twin.prediction.prediction import TEMPERATURES, Prediction, predict

ERRORS = ("raise", "keep")
"""What becomes of a configuration that cannot be: the first is raised, or all are kept as rows."""


def predict_batch(deployments: Deployment | Iterable[Deployment], *,
                  vary: Mapping[str, ArrayLike] | None = None, temperature: str = "warm",
                  calibration: str | Calibration | None = AUTO, layers: bool = False,
                  errors: str = "raise") -> Batch:
    """Predict many inferences; `twin.predict_many` says what each parameter is.

    Raises
    ------
    TwinError
        Of the first configuration that cannot be, unless errors are kept.
    """
    if temperature not in TEMPERATURES:
        raise UsageError(f"temperature {temperature!r}; accepted: {', '.join(TEMPERATURES)}")
    if errors not in ERRORS:
        raise UsageError(f"errors {errors!r}; accepted: {', '.join(ERRORS)}")
    if isinstance(deployments, Deployment):
        variation = read_variation(vary or {})
        most, groups = len(deployments.graph.layers), list_groups(deployments, variation)
    else:
        if vary:
            raise UsageError("vary: accepted with one deployment, the one that is varied")
        listed = _check(deployments)
        variation, most = Variation(rows=len(listed), paths={}), count_layers(listed)
        groups = (gather_rows(one, np.array([row])) for row, one in enumerate(listed))
    batch = empty_batch(variation.rows, most if layers else None)
    maker = _Maker(batch=batch, variation=variation, temperature=temperature,
                   calibration=calibration, stops=errors == "raise", remaker=Remaker(
                       deployments) if isinstance(deployments, Deployment) else None)
    listed_groups = list(groups)
    maker.failures += [one for one in listed_groups if isinstance(one, Failure)]
    for group in listed_groups:
        if maker.failures and errors == "raise":
            break
        if isinstance(group, Group):
            maker.make(group)
    if maker.failures and errors == "raise":
        raise min(maker.failures, key=lambda one: one.row).error
    return dataclasses.replace(batch, level=maker.level, failures=tuple(
        sorted(maker.failures, key=lambda one: one.row)))


def _check(deployments: Iterable[Deployment]) -> list[Deployment]:
    listed = list(deployments)
    for one in listed:
        if not isinstance(one, Deployment):
            raise UsageError(f"predict_many: {one!r} is no deployment; accepted: "
                             "twin.deploy(model, board), or several")
    return listed


class _Maker:
    """Fills a batch group by group."""

    def __init__(self, *, batch: Batch, variation: Variation, temperature: str,
                 calibration: str | Calibration | None, stops: bool,
                 remaker: Remaker | None) -> None:
        self.batch, self.variation, self.remaker, self.stops = batch, variation, remaker, stops
        self.temperature, self.calibration = temperature, calibration
        self.failures: list[Failure] = []
        self.level = np.nan

    def make(self, group: Group) -> None:
        """Fill the rows of a group, by product where its bill is counts times prices."""
        if group.deployment.target.offloads:
            self._predict_each(group)
            return
        try:
            self._multiply(group)
        except TwinError as error:
            self.failures += [Failure(row=row, error=error) for row in group.rows.tolist()]

    def _multiply(self, group: Group) -> None:
        deployment, rows, chosen = group.deployment, group.rows, self._choose(group.deployment)
        doubted = None
        if chosen is not None:
            doubted = doubt(predict(deployment, temperature=self.temperature), chosen)
            self.level = chosen.entry.time.band.level
        item = itemise(deployment, cold=self.temperature == "cold", unsure=doubted is not None,
                       top=group.top)
        fill_rows(
            self.batch, rows, item, doubted, hertz=group.hertz, toward=group.toward,
            time=self._factors(rows, TIME_PRICES, self.variation.time,
                               None if chosen is None else chosen.time),
            power=self._factors(rows, ENERGY_PRICES, self.variation.energy,
                                None if chosen is None else chosen.energy))
        self.batch.ram_bytes[rows] = deployment.ram_bytes
        self.batch.flash_bytes[rows] = deployment.flash_bytes

    def _choose(self, deployment: Deployment) -> Calibration | None:
        return (choose_calibration(deployment, self.calibration)
                if isinstance(self.calibration, str) else self.calibration)

    def _factors(self, rows: np.ndarray, names: tuple[str, ...], varied: Mapping[str, Floats],
                 estimate: Estimate | None) -> Floats:
        own = np.ones(len(names)) if estimate is None else estimate.factors
        factors = np.repeat(own[None], len(rows), axis=0)
        for name, values in varied.items():
            factors[:, names.index(name)] = values[rows]
        return factors

    def _predict_each(self, group: Group) -> None:
        """Predict rows one by one, and once where several set the same but learnt factors."""
        alike: dict[tuple[str, ...], list[int]] = {}
        for row in group.rows.tolist():
            alike.setdefault(tuple([repr(values[row]) for values in self.variation.paths.values()]),
                             []).append(row)
        for rows in alike.values():
            if self.failures and self.stops:
                break
            settings = {name: values[rows[0]] for name, values in self.variation.paths.items()}
            self._predict(group.deployment, settings, np.array(rows))

    def _predict(self, deployment: Deployment, settings: Mapping[str, Any],
                 rows: np.ndarray) -> None:
        """Predict rows that set the same."""
        try:
            changed = (self.remaker.make(settings) if self.remaker and settings
                       else dataclasses.replace(deployment, own_scale=None))
            chosen = self._choose(changed)
            if not changed.target.offloads:
                self._multiply(gather_rows(changed, rows))
            elif not self.variation.time and not self.variation.energy:
                self._repeat(changed, rows)
            elif chosen is None:
                self._multiply_offloaded(changed, rows)
            else:
                for row in rows.tolist():
                    self._fill(row, _predict_row(changed, chosen, self.variation, row,
                                                 self.temperature))
        except TwinError as error:
            self.failures += [Failure(row=row, error=error) for row in rows.tolist()]

    def _repeat(self, deployment: Deployment, rows: np.ndarray) -> None:
        made = predict_calibrated(deployment, temperature=self.temperature,
                                  calibration=self.calibration)
        for row in rows.tolist():
            self._fill(row, made)

    def _multiply_offloaded(self, deployment: Deployment, rows: np.ndarray) -> None:
        from twin.learning.offloaded import fill_offloaded, itemise_offloaded

        item = itemise_offloaded(predict(deployment, temperature=self.temperature))
        fill_offloaded(self.batch, rows, item,
                       time=self._factors(rows, TIME_PRICES, self.variation.time, None),
                       power=self._factors(rows, ENERGY_PRICES, self.variation.energy, None))
        self.batch.ram_bytes[rows] = deployment.ram_bytes
        self.batch.flash_bytes[rows] = deployment.flash_bytes

    def _fill(self, row: int, made: Prediction) -> None:
        fill_row(self.batch, row, made)
        if made.certainty is not None:
            self.level = made.certainty.time_us.level


def _predict_row(deployment: Deployment, chosen: Calibration, variation: Variation, row: int,
                 temperature: str) -> Prediction:
    """Predict one configuration, at its own factors."""
    time = {name: float(values[row]) for name, values in variation.time.items()}
    energy = {name: float(values[row]) for name, values in variation.energy.items()}
    return predict_calibrated(deployment, temperature=temperature, calibration=dataclasses.replace(
        chosen, time=set_factors(chosen.time, TIME_PRICES, time),
        energy=set_factors(chosen.energy, ENERGY_PRICES, energy)))


def set_factors(estimate: Estimate | None, names: tuple[str, ...],
                factors: Mapping[str, float]) -> Any:
    """Return an estimate with some factors in place of those it has; its covariance stays."""
    if not factors:
        return estimate
    before = np.zeros(len(names)) if estimate is None else estimate.log
    log = np.array([np.log(factors[name]) if name in factors else own
                    for name, own in zip(names, before, strict=True)])
    if estimate is None:
        none = np.zeros((len(names), len(names)))
        return Estimate(names=names, log=log, covariance=none, prior_covariance=none)
    return dataclasses.replace(estimate, log=log)
