"""Many predictions at once: of many deployments, or of one with values varied."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.fitting.overlay import Estimate
from hwmodels.errors import TwinError
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.learning.batch import (
    Batch,
    Failure,
    Variation,
    count_layers,
    empty_batch,
    fill_row,
    read_variation,
)
from twin.learning.calibrated import (
    AUTO,
    Calibration,
    apply_factors,
    choose_calibration,
    predict_calibrated,
)
from twin.learning.tally import ENERGY_PRICES, TIME_PRICES
from twin.prediction.prediction import Prediction

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
    if errors not in ERRORS:
        raise UsageError(f"errors {errors!r}; accepted: {', '.join(ERRORS)}")
    if isinstance(deployments, Deployment):
        variation = read_variation(vary or {})
        many: Iterable[Deployment | TwinError] = _vary(deployments, variation)
        rows, most = variation.rows, len(deployments.graph.layers)
    else:
        if vary:
            raise UsageError("vary: accepted with one deployment, the one that is varied")
        listed = list(deployments)
        for one in listed:
            if not isinstance(one, Deployment):
                raise UsageError(f"predict_many: {one!r} is no deployment; accepted: "
                                 "twin.deploy(model, board), or several")
        many, variation = listed, Variation(rows=len(listed), paths={})
        rows, most = len(listed), count_layers(listed)
    batch = empty_batch(rows, most if layers else None)
    failures, level = [], np.nan
    for row, deployment in enumerate(many):
        try:
            if isinstance(deployment, TwinError):
                raise deployment
            made = _predict_row(deployment, calibration, variation, row, temperature)
        except TwinError as error:
            if errors == "raise":
                raise
            failures.append(Failure(row=row, error=error))
            continue
        fill_row(batch, row, made)
        if made.certainty is not None:
            level = made.certainty.time_us.level
    return dataclasses.replace(batch, failures=tuple(failures), level=level)


def _vary(base: Deployment, variation: Variation) -> Iterator[Deployment | TwinError]:
    """Yield each configuration of a variation, or why it cannot be."""
    for row in range(variation.rows):
        settings: dict[str, Any] = {name: values[row] for name, values in variation.paths.items()}
        try:
            yield base.replace(settings) if settings else base
        except TwinError as error:
            yield error


def _predict_row(deployment: Deployment, calibration: str | Calibration | None,
                 variation: Variation, row: int, temperature: str) -> Prediction:
    """Predict one configuration, at its own factors where they are varied."""
    # what another voltage scale would save is said of a prediction, and costs one more
    deployment = dataclasses.replace(deployment, own_scale=None)
    if not variation.time and not variation.energy:
        return predict_calibrated(deployment, temperature=temperature, calibration=calibration)
    chosen = (choose_calibration(deployment, calibration) if isinstance(calibration, str)
              else calibration)
    time = {name: float(values[row]) for name, values in variation.time.items()}
    energy = {name: float(values[row]) for name, values in variation.energy.items()}
    if chosen is None:
        return predict_calibrated(apply_factors(deployment, time, energy),
                                  temperature=temperature, calibration=None)
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
