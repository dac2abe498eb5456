"""A calibration that no longer holds is noticed, one that does is left alone."""

import dataclasses
import math
import shutil
from importlib.util import find_spec

import numpy as np
import pytest

from calibration.errors import FitError
from calibration.fitting.staleness import find_change, judge_interval


@pytest.mark.parametrize("shift", [-0.1, 0.02, 0.3])
@pytest.mark.parametrize("position", [10, 20, 30])
def test_a_changed_level_is_found_where_it_changed(shift, position):
    random = np.random.default_rng(position)
    series = random.normal(0.05, 0.004, 40)
    series[position:] += shift
    found = find_change(series)
    assert found is not None and abs(found.position - position) <= 1
    assert found.shift == pytest.approx(shift, abs=0.005)


def test_false_alarms_are_rare():
    random = np.random.default_rng(7)
    alarms = sum(find_change(random.normal(0, 0.02, 30)) is not None for _ in range(200))
    assert alarms <= 2  # 0.2 expected at 1e-3


def test_a_steady_or_short_series_has_no_change():
    assert find_change(np.zeros(50)) is None
    assert find_change([0.0, 1.0] * 3) is None
    assert find_change(np.r_[np.zeros(20), np.full(20, 5e-4)]) is None  # not worth a word
    with pytest.raises(FitError, match="finite"):
        find_change([math.nan] * 20)


def test_a_total_outside_its_interval_makes_an_overlay_stale():
    assert judge_interval("made", (90.0, 110.0), 105.0) is None
    assert judge_interval("made", (90.0, 110.0), 117.0) is None  # 2.6 standard deviations
    found = judge_interval("made", (90.0, 110.0), 130.0)
    assert found is not None and found.name == "stale" and "made gives 90 to 110" in found.evidence
    assert judge_interval("made", (90.0, 110.0), 70.0) is not None
    told = judge_interval("made", (90.0, 110.0), 130.0, unit="us")
    assert told is not None and "90 to 110 us, measured is 130 us:" in told.evidence
    with pytest.raises(FitError):
        judge_interval("made", (0.0, 1.0), 1.0)


def test_a_board_whose_costs_change_midway_is_noticed(tmp_path):
    """A calibration learnt on an emulated board; its flash then gets two more wait states."""
    if find_spec("unicorn") is None or shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("unicorn and arm-none-eabi-gcc are needed")
    from benchmarks.diagnosis.planted import Bench, list_plants

    bench = Bench(network="mobilenet_v1_0.25_32", board="nucleo_l4r5zi", folder=tmp_path)
    healthy, hand = list_plants(bench)[0], bench.hand(1)
    learnt = bench.measure(healthy, hand, runs=8).values("cpu_cycles")
    slower = dataclasses.replace(healthy, name="slower-flash", kind="placement", changes={
        "memories.flash.wait_states": bench.deployment.board.memory("flash").wait_states + 2})
    changed = bench.measure(slower, hand, runs=8).values("cpu_cycles")
    price = float(np.median(learnt))  # what a calibration keeps of the board
    steady = np.log(np.concatenate((learnt, bench.measure(healthy, hand, runs=8).values(
        "cpu_cycles"))) / price)
    assert find_change(steady) is None
    found = find_change(np.log(np.concatenate((learnt, changed)) / price))
    assert found is not None and found.position == len(learnt) and found.shift > 0.01
    half = 0.02 * price
    assert judge_interval("learnt before", (price - half, price + half),
                          float(np.median(changed))) is not None
