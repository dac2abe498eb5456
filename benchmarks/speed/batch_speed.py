"""Many predictions at once beside a loop over `predict`: `python -m benchmarks.speed batch`.

Processor time of one process on one core, in the same run: a hundred thousand configurations of a
30-layer network that change clock, voltage scale, wait states and learnt factors, with intervals,
on a core and on an accelerator; and one changed cache size or placement of each MLPerf Tiny
network, the first time and kept. Rows picked at random are compared with `predict`, so speed can
never change a result.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before NumPy is loaded: one core

import dataclasses  # noqa: E402
import tempfile  # noqa: E402
from functools import partial  # noqa: E402

import numpy as np  # noqa: E402

import twin  # noqa: E402
from benchmarks.speed.row import median_cpu_s  # noqa: E402
from tests.oracles.fits import set_factors  # noqa: E402
from twin.pricing.batch import Batch  # noqa: E402
from twin.pricing.calibrated import apply_factors, predict_calibrated  # noqa: E402
from twin.pricing.calibration import choose_calibration  # noqa: E402
from twin.pricing.prediction import Prediction  # noqa: E402
from twin.pricing.price_names import ENERGY_PRICES, TIME_PRICES  # noqa: E402
from twin.pricing.structure import forget_structures  # noqa: E402

ROWS, COMPARED = 100_000, 12
NETWORK, BOARD, RUNTIME = "vww", "nucleo_h7a3zi_q", "x-cube-ai@8"
"""31 layers, five voltage scales, wait states by scale; a cache of unknown policy."""

ACCELERATOR = "stm32n6570_dk"

CHANGES = {"cache size": {"caches.l1d.size_bytes": "8KiB"},
           "placement": {"placement.arena": "sram"}}
LIMITS_S = {"batch": 3.0, "clocks": 30.0, "change": 0.010}
"""Clocks of their own: on an accelerator, whose epochs run at each, neighbours as SIMD lanes."""

LIMIT_BYTES = 500e6


def vary_clocks(deployment: twin.Deployment, *names: str, rows: int = ROWS,
                different: int | None = None) -> dict[str, np.ndarray]:
    """Draw clocks over the whole range, all of them different or a few."""
    rng, drawn = np.random.default_rng(7), dict[str, np.ndarray]()
    for name in names:
        clock = deployment.board.clock(name)
        top = clock.max_hz or clock.frequency_hz
        values = rng.uniform(0.05 * top, top, different or rows)
        drawn[f"clocks.{name}.frequency_hz"] = (
            values if different is None else rng.choice(values, rows))
    return drawn


def vary_factors(rows: int = ROWS) -> dict[str, np.ndarray]:
    """Draw every learnt factor."""
    rng = np.random.default_rng(8)
    return {f"learnt.{kind}.{price}": np.exp(rng.normal(0, 0.2, rows))
            for kind, prices in (("time", TIME_PRICES), ("energy", ENERGY_PRICES))
            for price in prices}


def predict_row(deployment: twin.Deployment, drawn: dict[str, np.ndarray], row: int) -> Prediction:
    """Predict one row as a loop would."""
    changed = deployment.replace({name: float(values[row]) for name, values in drawn.items()
                                  if not name.startswith("learnt.")})
    time_factors, energy_factors = (
        {price: float(drawn[path][row]) for price in prices
         if (path := f"learnt.{kind}.{price}") in drawn}
        for kind, prices in (("time", TIME_PRICES), ("energy", ENERGY_PRICES)))
    chosen = choose_calibration(changed)
    if chosen is None:  # an accelerator has stated prices, and intervals of its own
        return predict_calibrated(dataclasses.replace(apply_factors(
            changed, time_factors, energy_factors), own_scale=None))
    return predict_calibrated(
        dataclasses.replace(changed, own_scale=None), calibration=dataclasses.replace(
            chosen, time=set_factors(chosen.time, TIME_PRICES, time_factors),
            energy=set_factors(chosen.energy, ENERGY_PRICES, energy_factors)))


def check(batch: Batch, row: int, made: Prediction) -> None:
    """Demand that a row is its prediction."""
    assert made.certainty is not None
    pairs = [(batch.time_us[row], made.time_us), (batch.energy_uj[row], made.energy_uj),
             (batch.time_low_us[row], made.certainty.time_us.low),
             (batch.time_high_us[row], made.certainty.time_us.high)]
    if made.certainty.energy_uj is not None:
        pairs.append((batch.energy_high_uj[row], made.certainty.energy_uj.high))
    for found, wanted in pairs:
        assert wanted is not None and abs(found / wanted - 1) < 1e-12, (row, found, wanted)


def peak_bytes() -> int:
    """Most memory this process has had."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def time_batch() -> tuple[float, float]:
    """Return seconds of the batch, and of as many predictions one after another."""
    deployment = twin.deploy(NETWORK, BOARD, runtime=RUNTIME)
    core = deployment.board.core.clock
    return time_rows(deployment, vary_clocks(deployment, core) | vary_factors())


def time_rows(deployment: twin.Deployment, drawn: dict[str, np.ndarray], *,
              times: int = 3) -> tuple[float, float]:
    """Return seconds of a batch, the median of some, and of a loop, from rows picked at random."""
    twin.predict(deployment)
    rows, taken = len(next(iter(drawn.values()))), []
    for _ in range(times):
        started = time.process_time()
        batch = twin.predict_many(deployment, vary=drawn)
        taken.append(time.process_time() - started)
    assert len(batch) == rows and not batch.failures
    picked = np.random.default_rng(3).integers(0, rows, COMPARED).tolist()
    started = time.process_time()
    made = [predict_row(deployment, drawn, row) for row in picked]
    loop = (time.process_time() - started) / COMPARED * rows
    for row, one in zip(picked, made, strict=True):
        check(batch, row, one)
    return sorted(taken)[times // 2], loop


def time_accelerator() -> Iterator[tuple[str, int, float, float]]:
    """Yield what is varied on an accelerator, paces of its pools, seconds, seconds of a loop."""
    deployment = twin.deploy(NETWORK, ACCELERATOR, runtime="neural-art")
    few = vary_clocks(deployment, "cpu", "npu", different=10)
    own = vary_clocks(deployment, "cpu", "npu")
    for name, paces, drawn, times in (
            ("factors", 1, vary_factors(), 3),
            ("ten clocks of either x factors", 10, few | vary_factors(), 3),
            ("clocks of their own", ROWS, own, 1)):
        assert len(np.unique(drawn.get("clocks.npu.frequency_hz", [0]))) == paces
        yield (name, paces, *time_rows(deployment, drawn, times=times))


def time_changes() -> Iterator[tuple[str, float, float, float]]:
    """Yield network and change, seconds the first time, and kept at stated and learnt prices."""
    for network in ("kws", "ic", "vww", "ad"):
        for name, changes in CHANGES.items():
            deployment = twin.deploy(network, BOARD, runtime="tflm-cmsis-nn")
            twin.predict(deployment)
            forget_structures()
            with tempfile.TemporaryDirectory() as empty:
                os.environ["TWIN_COUNTS"] = empty
                changed = deployment.replace(changes)
                started = time.process_time()
                twin.predict(changed)
                first = time.process_time() - started
                stated, learnt = (median_cpu_s(partial(
                    twin.predict, changed, calibration=prices), 9) for prices in ("none", "auto"))
            yield f"{network}, {name}", first, stated, learnt
