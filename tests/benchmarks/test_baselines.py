"""Baselines: known constants come back, sealed rows are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.accuracy.baselines import (
    Observations,
    by_core,
    by_core_and_release,
    count_work,
    fit_linear,
    fit_power,
)
from calibration.datasets import published_rows
from calibration.errors import MeasurementError
from twin.network import zoo

NAMES = ("conv_macs", "pointwise_macs", "depthwise_macs", "operators")
ROW = next(row for row in published_rows() if row.board == "nucleo_l4r5zi" and row.judges_energy)


def planted(constants, counts, clock_hz=100e6):
    cycles = np.asarray(counts, float) @ np.asarray(constants)
    return Observations(
        rows=tuple(replace(ROW, clock_hz=clock_hz, latency_ms=float(c) / clock_hz * 1e3)
                   for c in cycles),
        names=NAMES, counts=np.asarray(counts, float))


def test_planted_constants_come_back():
    rng = np.random.default_rng(3)
    constants = (1.2, 0.9, 4.0, 5e4)
    counts = rng.uniform(1e5, 1e7, (8, 4)) * (1, 1, 0.1, 1e-6)
    baseline = fit_linear(planted(constants, counts), by_core)
    assert baseline.cycles_each[("cortex-m4",)] == pytest.approx(constants, rel=1e-9)
    assert baseline.rows_each == {("cortex-m4",): 8}
    # cycles / clock: (1e6 x 1.2 + 0 + 0 + 0) / 200 MHz = 6 ms
    row = replace(ROW, clock_hz=200e6)
    assert baseline.predict_ms(row, (1e6, 0, 0, 0)) == pytest.approx(6.0)


def test_constants_are_never_negative():
    counts = [[1e6, 0, 0, 1], [2e6, 0, 0, 30], [3e6, 0, 0, 5], [1e6, 1e6, 0, 9], [5e6, 0, 1e5, 2]]
    observations = planted((2.0, 0.5, 1.0, -1e4), counts)
    constants = fit_linear(observations, by_core).cycles_each[("cortex-m4",)]
    assert min(constants) >= 0
    assert constants[3] == 0


def test_a_group_with_too_few_rows_is_left_out():
    observations = planted((1, 1, 1, 1), np.eye(4) * 1e6 + 1)
    baseline = fit_linear(observations, by_core_and_release)
    assert baseline.cycles_each == {}
    assert baseline.predict_ms(ROW, (1, 1, 1, 1)) is None


@pytest.mark.parametrize("fit", [fit_power,
                                 lambda rows: fit_linear(Observations(
                                     rows=tuple(rows), names=("macs",),
                                     counts=np.ones((len(rows), 1))), by_core)])
def test_no_fit_takes_a_sealed_row(fit):
    sealed = replace(ROW, use="test")
    with pytest.raises(MeasurementError, match="sealed"):
        fit([ROW, sealed])


def test_constant_power():
    # 5 mW for 2 ms is 10 uJ, for 4 ms 20 uJ
    rows = [replace(ROW, latency_ms=2.0, energy_uj=10.0, flags=()),
            replace(ROW, latency_ms=4.0, energy_uj=20.0, flags=())]
    baseline = fit_power(rows)
    assert baseline.predict_uj(ROW, 10.0) == pytest.approx(50.0)
    assert baseline.predict_uj(ROW, None) is None
    assert baseline.predict_uj(replace(ROW, board_name="elsewhere"), 10.0) is None


def test_counts_and_rows_must_agree():
    with pytest.raises(MeasurementError, match="shape"):
        Observations(rows=(ROW,), names=NAMES, counts=np.ones((2, 4)))


def test_work_of_the_reference_networks():
    kws = zoo.build("kws")
    # models.md of MLPerf Tiny's references: conv 320,000; 1x1 4 x 512,000 and the dense 768;
    # depthwise 4 x 72,000; 13 operators of which the reshape moves nothing.
    assert count_work(kws) == (320_000, 4 * 512_000 + 768, 4 * 72_000, 12)
    vww = zoo.build("vww")
    assert sum(count_work(vww)[:3]) == 7_489_664
    # 3,733,073 MACs are left when dead channels are dropped (the same source)
    assert sum(count_work(vww, drops_dead_channels=True)[:3]) == 3_733_073
