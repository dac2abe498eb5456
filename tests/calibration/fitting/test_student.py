"""Statistics of a measurement that need no statistics package, against one."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from made_patience import HANG_S

from calibration.fitting.student import student_quantile
from calibration.measurement.quality import _trend


@pytest.fixture(scope="module")
def stats():
    return pytest.importorskip("scipy.stats", reason="the oracle is SciPy")


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 30, 101, math.inf])
@pytest.mark.parametrize("probability", [0.6, 0.975, 0.9995])
def test_quantiles_are_those_of_scipy(freedom, probability, stats):
    assert student_quantile(probability, freedom) == pytest.approx(
        stats.t.ppf(probability, freedom), rel=1e-9)


@pytest.mark.parametrize("ties", [False, True])
def test_trend_is_scipys(ties, stats):
    random = np.random.default_rng(3)
    data = random.normal(size=60) + 0.02 * np.arange(60)
    data = np.round(data) if ties else data
    runs = np.arange(60) * 3
    probability, slope = _trend(runs, data)
    assert probability == pytest.approx(
        stats.kendalltau(runs, data, method="asymptotic").pvalue, rel=1e-9)
    assert slope == pytest.approx(stats.theilslopes(data, runs).slope, rel=1e-12)


def test_measuring_and_its_energies_need_no_scipy():
    """What `twin measure` and `twin energy` import and call, with SciPy out of reach."""
    code = """
import sys; sys.modules["scipy"] = None
import numpy as np
from calibration.measurement.quality import judge_runs
from calibration.power_trace.alignment import _correlation
assert [one.name for one in judge_runs(np.linspace(100, 120, 50))].count("drift") == 1
power = np.random.default_rng(0).normal(size=1000); shape = power[200:450] - power[200:450].mean()
score = _correlation(power, shape)
assert len(score) == 751 and score.argmax() == 200 and abs(score.max() - 1) < 1e-9
import calibration.collecting.collector, calibration.power_trace.energy
import twin.cli.measure
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HANG_S)
