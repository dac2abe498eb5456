"""Many predictions at once: of many deployments, or of one with values varied.

Rows of one structure and timing are one product of matrices (`rows`). Beside other masters a
structure is of one clock, as what they ask for in a cycle follows it. On an accelerator rows of
one placement are columns, whatever their clocks (`spans`, `offloaded`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.fitting.cell import Estimate
from calibration.fitting.intervals import LEVEL
from hwmodels.errors import TwinError
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.pricing.assurance import doubt
from twin.pricing.batch import (
    Batch,
    Failure,
    Floats,
    Variation,
    count_layers,
    empty_batch,
    fill_row,
    read_variation,
)
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.calibration import (
    AUTO,
    NONE,
    Calibration,
    choose_calibration,
    choose_powers,
)
from twin.pricing.configurations import Group, gather_rows, list_groups
from twin.pricing.factors import ENERGY_PRICES, TIME_PRICES
from twin.pricing.itemised import itemise
from twin.pricing.prediction import TEMPERATURES
from twin.pricing.repricing import apply_factors
from twin.pricing.rows import fill_rows
from twin.pricing.spans import Span, list_spans

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
        variation = read_variation({} if vary is None else vary)
        most, groups = len(deployments.graph.layers), list_groups(deployments, variation)
    else:
        if vary:
            raise UsageError("vary: accepted with one deployment, the one that is varied")
        listed = _check(deployments)
        variation, most = Variation(rows=len(listed), paths={}), count_layers(listed)
        groups = (gather_rows(one, np.array([row])) for row, one in enumerate(listed))
    batch = empty_batch(variation.rows, most if layers else None)
    maker = _Maker(batch=batch, variation=variation, temperature=temperature,
                   calibration=calibration, stops=errors == "raise",
                   base=deployments if isinstance(deployments, Deployment) else None)
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
    try:
        listed = list(deployments)
    except TypeError:
        raise UsageError(f"predict_many: {deployments!r} is no deployment; accepted: "
                         "twin.deploy(model, board), or several") from None
    for one in listed:
        if not isinstance(one, Deployment):
            raise UsageError(f"predict_many: {one!r} is no deployment; accepted: "
                             "twin.deploy(model, board), or several")
    return listed


class _Maker:
    """Fills a batch group by group."""

    def __init__(self, *, batch: Batch, variation: Variation, temperature: str,
                 calibration: str | Calibration | None, stops: bool,
                 base: Deployment | None) -> None:
        self.batch, self.variation, self.base, self.stops = batch, variation, base, stops
        self.temperature, self.calibration = temperature, calibration
        self.failures: list[Failure] = []
        self.level = np.nan

    def make(self, group: Group) -> None:
        """Fill the rows of a group, by product where its bill is counts times prices."""
        if group.deployment.target.offloads:
            self._offload(group)
            return
        self._keep(group.rows.tolist(), partial(self._multiply, group))

    def _multiply(self, group: Group) -> None:
        deployment, rows, chosen = group.deployment, group.rows, self._choose(group.deployment)
        doubted, cold = None, self.temperature == "cold"
        item = itemise(deployment, cold=cold, unsure=chosen is not None, top=group.top)
        if chosen is not None:
            doubted = doubt(deployment, chosen, item)
            self.level = chosen.entry.time.band.level
        fill_rows(
            self.batch, rows, item, doubted, hertz=group.hertz, toward=group.toward,
            time=self._factors(rows, TIME_PRICES, self.variation.time,
                               None if chosen is None else chosen.time),
            power=self._factors(rows, ENERGY_PRICES, self.variation.energy,
                                self._powers(deployment, chosen)))
        self.batch.ram_bytes[rows] = deployment.ram_bytes
        self.batch.flash_bytes[rows] = deployment.flash_bytes

    def _choose(self, deployment: Deployment) -> Calibration | None:
        return (choose_calibration(deployment, self.calibration)
                if isinstance(self.calibration, str) else self.calibration)

    def _powers(self, deployment: Deployment, chosen: Calibration | None) -> Estimate | None:
        powers = chosen or choose_powers(deployment, self.calibration)
        return None if powers is None else powers.energy

    def _factors(self, rows: np.ndarray, names: tuple[str, ...], varied: Mapping[str, Floats],
                 estimate: Estimate | None) -> Floats:
        own = np.ones(len(names)) if estimate is None else estimate.factors
        factors = np.repeat(own[None], len(rows), axis=0)
        for name, values in varied.items():
            factors[:, names.index(name)] = values[rows]
        return factors

    def _offload(self, group: Group) -> None:
        """Fill rows on an accelerator: spans of clocks and voltages as columns."""
        base, varied = self.base or group.deployment, self.variation
        shared = any(name.startswith("load.") for name in varied.paths)
        plain = not (varied.time or varied.energy)
        for span in list_spans(base, self.variation, group.rows):
            if isinstance(span, Failure):
                self.failures.append(span)
            if isinstance(span, Failure) or (self.failures and self.stops):
                continue
            rows = span.rows.tolist()
            if shared or _runs_by_time(span.deployment):
                for row in rows:
                    self._keep([row], partial(self._change_one, base, row))
            elif plain and len(rows) == 1:
                self._keep(rows, partial(self._predict, span.deployment, rows[0]))
            else:
                self._keep(rows, partial(self._fill_span, span))

    def _keep(self, rows: Sequence[int], fill: Callable[[], None]) -> None:
        """Fill rows, or keep what refuses them."""
        try:
            fill()
        except TwinError as error:
            self.failures += [Failure(row=row, error=error) for row in rows]

    def _fill_span(self, span: Span) -> None:
        from twin.pricing.offloaded import Offloaded
        from twin.pricing.offloaded_rows import Asked, fill_offloaded

        varied = bool(self.variation.time or self.variation.energy)
        unsure = self.calibration not in (None, NONE)
        fill_offloaded(self.batch, Offloaded(span.deployment), Asked(
            rows=span.rows, hertz=dict(span.hertz), volts=span.volts,
            time=self._factors(span.rows, TIME_PRICES, self.variation.time, None)
            if varied else None,
            power=self._factors(span.rows, ENERGY_PRICES, self.variation.energy, None)
            if varied else None), unsure=unsure)
        if unsure:
            self.level = LEVEL

    def _change_one(self, base: Deployment, row: int) -> None:
        """Predict one configuration of what is varied by itself."""
        paths, varied = self.variation.paths, (self.variation.time, self.variation.energy)
        changed = base.replace({name: values[row] for name, values in paths.items()})
        time, energy = ({name: float(values[row]) for name, values in one.items()}
                        for one in varied)
        self._predict(apply_factors(changed, time, energy) if time or energy else changed, row)

    def _predict(self, deployment: Deployment, row: int) -> None:
        """Predict a configuration; what another voltage scale would save is not asked."""
        if deployment.own_scale is not None:
            deployment = dataclasses.replace(deployment, own_scale=None)
        made = predict_calibrated(deployment, temperature=self.temperature,
                                  calibration=self.calibration)
        fill_row(self.batch, row, made)
        if made.certainty is not None:
            self.level = made.certainty.time_us.level


def _runs_by_time(deployment: Deployment) -> bool:
    """Whether what caches and buses meet follows clocks, so that no row tells of another."""
    return bool(deployment.loads or deployment.transfers or any(
        cache.streaming_lines and cache.enabled for cache in deployment.board.caches))


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
