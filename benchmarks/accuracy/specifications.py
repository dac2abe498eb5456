"""Baselines that know a board by its specification only, fitted to the rows a protocol leaves.

One constant and four constants are fitted by core and release of a library, boards pooled; of a
release with too few rows by library, of a library that is held out by core, of a core to
everything. Each states the spread that 90 % of its logarithmic errors lie within, on networks left
out of its own rows, at that level.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from benchmarks.accuracy.baselines import (
    WORK_NAMES,
    LinearBaseline,
    Observations,
    PowerBaseline,
    by_core,
    by_core_and_library,
    by_core_and_release,
    by_everything,
    count_work,
    fit_linear,
    fit_power,
)
from calibration.datasets import PublishedRow
from calibration.fitting.cell import locate
from calibration.fitting.networks import name_network
from hwmodels.frozen import frozen
from twin.attribution.published import build_published

PER_MAC = "one constant"
FOUR = "four constants"
BOOSTING = "gradient boosting"
POWER = "constant power x calibrated time"

LEVELS = (by_core_and_release, by_core_and_library, by_core, by_everything)
"""Whose rows a baseline is fitted to, the first that has enough."""

REACH = NormalDist().inv_cdf(0.95)
"""Standard deviations to either end of a 90 % interval."""

FOLDS = 3
"""Groups of networks held out in turn for a baseline's spread."""

COREMARK_PER_MHZ = {"cortex-m4": 3.42, "cortex-m33": 4.02, "cortex-m7": 5.01, "cortex-m55": 4.2}
"""Arm's product pages of the cores."""


@frozen
class Baselines:
    """Baselines fitted to some rows; `spreads` by baseline and level, of logarithms."""

    linear: Mapping[str, tuple[LinearBaseline, ...]]
    power: PowerBaseline
    boosting: Any
    spreads: Mapping[tuple[str, int], float] = field(default_factory=dict)

    def predict(self, row: PublishedRow, cycles: float) -> dict[str, tuple[float, float]]:
        """Return log(measured / predicted) of each and its spread; NaN where one says nothing.

        Parameters
        ----------
        row : PublishedRow
            What to predict.
        cycles : float
            Calibrated prediction, for the energy baseline.
        """
        assert row.clock_hz is not None
        says = {(BOOSTING, 0): self.boost_ms(row)}
        for name in self.linear:
            says |= next(({(name, level): found} for level, found in self.by_level(name, row)
                          if found), {(name, 0): None})
        errors = {name: (math.nan if not value or not row.latency_ms
                         else math.log(row.latency_ms / value),
                         self.spreads.get((name, level), math.nan))
                  for (name, level), value in says.items()}
        joules = self.power.predict_uj(row, cycles / row.clock_hz * 1e3)
        known = joules is not None and row.judges_energy and row.energy_uj
        errors[POWER] = (math.log(float(row.energy_uj or 1) / joules) if known and joules
                         else math.nan, math.nan)
        return errors

    def boost_ms(self, row: PublishedRow) -> float | None:
        """Return what gradient boosting says of a row, in ms."""
        cycles = math.exp(self.boosting.predict([_features(row)])[0]) * count_macs(row)
        return cycles / row.clock_hz * 1e3 if row.clock_hz else None

    def by_level(self, name: str, row: PublishedRow) -> list[tuple[int, float | None]]:
        """Return what a linear baseline says of a row at each level, in ms."""
        work = _work(str(row.model), bool(row.drops_dead_channels))
        counts = work if name == FOUR else (sum(work[:3]),)
        return [(level, fitted.predict_ms(row, counts))
                for level, fitted in enumerate(self.linear[name])]


def fit_baselines(rows: Iterable[PublishedRow]) -> Baselines:
    """Fit every baseline to rows that may be learnt from, and its spread."""
    made, errors = _fit(known := tuple(rows)), dict[tuple[str, int], list[float]]()
    names = [name_network(str(row.model)) for row in known]
    fold = {name: place % FOLDS for place, name in enumerate(sorted(set(names)))}
    for left in range(min(FOLDS, len(fold)) if len(fold) > 1 else 0):
        part = _fit(tuple(row for row, name in zip(known, names, strict=True)
                          if fold[name] != left))
        for row, name in zip(known, names, strict=True):
            if fold[name] == left and row.latency_ms:
                said = {(BOOSTING, 0): part.boost_ms(row)} | {
                    (rival, level): found for rival in made.linear
                    for level, found in part.by_level(rival, row)}
                for key, found in said.items():
                    errors.setdefault(key, []).append(
                        math.log(row.latency_ms / found) if found else math.nan)
    return replace(made, spreads={key: float(np.nanquantile(np.abs(found), 0.9)) / REACH
                                  for key, found in errors.items() if np.isfinite(found).any()})


def _fit(known: tuple[PublishedRow, ...]) -> Baselines:
    from sklearn.ensemble import GradientBoostingRegressor

    work = np.array([_work(str(row.model), bool(row.drops_dead_channels)) for row in known], float)
    macs = work[:, :3].sum(axis=1)
    seen = {PER_MAC: Observations(rows=known, names=("macs",), counts=macs[:, None]),
            FOUR: Observations(rows=known, names=WORK_NAMES, counts=work)}
    boosting = GradientBoostingRegressor(n_estimators=100, random_state=0)
    boosting.fit([_features(row) for row in known], np.log(seen[FOUR].cycles / macs))
    return Baselines(power=fit_power(known), boosting=boosting, linear={
        name: tuple(fit_linear(one, level) for level in LEVELS) for name, one in seen.items()})


def _features(row: PublishedRow) -> list[float]:
    """A network by its work, a board by its specification, a runtime by its release."""
    work = _work(str(row.model), bool(row.drops_dead_channels))
    cell = locate("", "", str(row.runtime))
    return [*(math.log1p(amount) for amount in work), math.log(row.clock_hz or 1.0),
            COREMARK_PER_MHZ.get(row.core, 0.0), cell.release, float(cell.library == "x-cube-ai")]


def count_macs(row: PublishedRow) -> float:
    """Return the multiply-accumulates a row's library computes."""
    return float(sum(_work(str(row.model), bool(row.drops_dead_channels))[:3]))


@lru_cache(maxsize=256)
def _work(model: str, dead: bool) -> tuple[int, int, int, int]:
    return count_work(build_published(model), drops_dead_channels=dead)
