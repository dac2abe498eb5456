"""Baselines that know a board by its specification only, fitted to the rows a protocol leaves."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.accuracy.baselines import (
    WORK_NAMES,
    LinearBaseline,
    Observations,
    PowerBaseline,
    by_core,
    by_core_and_runtime,
    count_work,
    fit_linear,
    fit_power,
)
from calibration.datasets import PublishedRow
from calibration.fitting.cell import locate
from calibration.fitting.networks import name_network
from twin.learning.published import build_published

PER_MAC = "MACs x constant"
FOUR = "four constants"
CORE_RATIO = "core ratio and clock"
FOREST = "random forest"
POWER = "constant power x calibrated time"

COREMARK_PER_MHZ = {"cortex-m4": 3.42, "cortex-m33": 4.02, "cortex-m7": 5.01, "cortex-m55": 4.2}
"""Arm's product pages of the cores; how one would scale a latency from core to core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baselines:
    """Baselines fitted to some rows."""

    rows: tuple[PublishedRow, ...]
    per_mac: LinearBaseline
    four: LinearBaseline
    power: PowerBaseline
    forest: Any

    def predict(self, row: PublishedRow, cycles: float) -> dict[str, float]:
        """Return log(measured / predicted) of each; NaN where one says nothing.

        Parameters
        ----------
        row : PublishedRow
            What to predict.
        cycles : float
            Calibrated prediction, for the energy baseline.
        """
        work = _work(str(row.model), bool(row.drops_dead_channels))
        assert row.clock_hz is not None
        says = {PER_MAC: self.per_mac.predict_ms(row, (sum(work[:3]),)),
                FOUR: self.four.predict_ms(row, work), CORE_RATIO: self._scale(row),
                FOREST: math.exp(self.forest.predict([_features(row)])[0]) / row.clock_hz * 1e3}
        errors = {name: math.nan if value is None or not value or not row.latency_ms
                  else math.log(row.latency_ms / value) for name, value in says.items()}
        joules = self.power.predict_uj(row, cycles / row.clock_hz * 1e3)
        known = joules is not None and row.judges_energy and row.energy_uj
        errors[POWER] = math.log(float(row.energy_uj or 1) / joules) if known and joules \
            else math.nan
        return errors

    def _scale(self, row: PublishedRow) -> float | None:
        """Same network and library elsewhere, by the ratio of CoreMark per MHz and of clocks."""
        library = locate("", "", str(row.runtime)).library
        ours = COREMARK_PER_MHZ.get(row.core)
        found = [other.latency_ms * other.clock_hz * COREMARK_PER_MHZ[other.core] / ours
                 for other in self.rows
                 if ours and other.latency_ms and other.clock_hz and other.board != row.board
                 and name_network(str(other.model)) == name_network(str(row.model))
                 and locate("", "", str(other.runtime)).library == library]
        return float(np.median(found)) / row.clock_hz if found and row.clock_hz else None


def fit_baselines(rows: Iterable[PublishedRow]) -> Baselines:
    """Fit every baseline to rows that may be learnt from."""
    from sklearn.ensemble import RandomForestRegressor

    known = tuple(rows)
    work = [_work(str(row.model), bool(row.drops_dead_channels)) for row in known]
    macs = Observations(rows=known, names=("macs",),
                        counts=np.array([[sum(each[:3])] for each in work], float))
    four = Observations(rows=known, names=WORK_NAMES, counts=np.array(work, float))
    forest = RandomForestRegressor(n_estimators=100, random_state=0)
    forest.fit([_features(row) for row in known], np.log(macs.cycles))
    return Baselines(rows=known, per_mac=fit_linear(macs, by_core), power=fit_power(known),
                     four=fit_linear(four, by_core_and_runtime), forest=forest)


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
