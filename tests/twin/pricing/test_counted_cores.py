"""Libraries whose instructions were counted, on cores nobody measured: how sure they are."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest

import twin
from benchmarks.accuracy.cores_left_out import LeftOut, judge, make_report, pool
from benchmarks.operators.esp_nn import RESULTS, THUMB
from calibration.fitting.intervals import CARRIED_SD, CORE_SD, CORES
from calibration.fitting.student import student_quantile
from hwmodels.board.file import load_board
from twin.errors import RuntimeRefusedError
from twin.pricing.calibration import choose_calibration
from twin.pricing.counted_prices import HERE, RATIO, tell_basis
from twin.runtimes import load_runtime
from twin.runtimes.file import read_isas


def reach(board, runtime):
    """Logarithm of how far the interval of kws reaches."""
    made = twin.predict(twin.deploy("kws", board, runtime=runtime))
    return math.log(made.certainty.time_us.high / made.time_us), made


def test_what_is_counted_is_as_sure_as_cores_left_out_are():
    table = student_quantile(0.95, CORES - 1) * CORE_SD
    counted, made = reach("esp32c3_devkitm", "tflm-esp-nn")
    assert table <= counted < 1.25 * table
    assert "counted on this instruction set" in made.certainty.calibration
    assert "no row of this library" not in " ".join(made.certainty.extrapolating)
    carried, made = reach("esp32s3_devkitc", "tflm-esp-nn")
    assert math.hypot(1, CARRIED_SD / CORE_SD) * table <= carried < 1.6 * table
    assert "counted on another instruction set" in made.certainty.calibration
    counted, made = reach("esp32p4_function_ev", "tflm-esp-nn")
    assert table <= counted < carried
    assert "counted on this instruction set" in made.certainty.calibration
    # Counted on a Cortex-M33, without Helium's vectors.
    vectors, made = reach("ek_ra8d1", "nnom")
    assert "counted on another instruction set" in made.certainty.calibration and vectors > table
    # What is read from source alone, or counted with instructions of Arm alone, stays wide.
    for board, runtime in (("esp32c3_devkitm", "float-reference"),
                           ("esp32c3_devkitm", "tflm-cmsis-nn@2026"),
                           ("esp32c3_devkitm", "nnom@cmsis")):
        wide, made = reach(board, runtime)
        assert wide > 3 * table and "counted" not in made.certainty.calibration.partition("@")[0]


@pytest.mark.parametrize("board, release, ratio", [
    ("nucleo_l4r5zi", "2023", False), ("nucleo_l4r5zi", "2023-os", True),
    ("nucleo_h7a3zi_q", "2023", True), ("nucleo_h7a3zi_q", "2.3.1-os", False),
    ("nucleo_u575zi_q", "2023", True), ("nucleo_u575zi_q", "2026-os", False)])
def test_a_build_carried_by_the_ratio_of_another_core_says_so(board, release, ratio):
    basis = tell_basis(load_runtime(f"tflm-cmsis-nn@{release}"), load_board(board).core)
    assert basis == (RATIO if ratio else HERE)


def test_a_learnt_factor_has_the_spread_of_its_networks_and_elsewhere_the_core_s_too():
    runtime, one = load_runtime("esp-dl"), student_quantile(0.95, CORES - 1)
    assert runtime.factor_sd == 0.1 and load_runtime("microtvm").factor_sd == 0.0  # assumed there
    learnt, made = reach("esp32s3_devkitc", "esp-dl")
    assert one * runtime.factor_sd <= learnt < 1.4 * one * runtime.factor_sd
    assert "scaled as networks published of it ask" in made.certainty.calibration
    other, made = reach("esp32p4_function_ev", "esp-dl")
    assert one * math.hypot(CORE_SD, runtime.factor_sd) <= other < math.log(2)
    assert "published" not in made.certainty.calibration


def test_an_fpu_gives_a_core_no_dsp_instructions_of_arm():
    fpu, none = (twin.predict(twin.deploy("kws", board, runtime="tflm-cmsis-nn@2026"))
                 for board in ("ch32v307v_evt", "esp32c3_devkitm"))
    counts = [[layer.instructions for layer in made.layers if layer.op == "conv_2d"]
              for made in (fpu, none)]
    assert counts[0] and counts[0] == counts[1]


def test_times_are_those_of_the_overlay_and_only_intervals_are_narrower():
    deployment = twin.deploy("ad", "rpi_pico", runtime="tflm-cmsis-nn@2026")
    chosen = choose_calibration(deployment)
    assert chosen.counted and chosen.entry.core is None
    made = twin.predict(deployment)
    stated = twin.predict(deployment, calibration="none")
    factors = dict(zip(chosen.time.names, chosen.time.factors, strict=True))
    assert min(factors.values()) <= made.time_us / stated.time_us <= max(factors.values())
    # Rows of a release on a board are worth more than any table of a core.
    assert not choose_calibration(twin.deploy(
        "ad", "nucleo_l4r5zi", runtime="microtvm-cmsis-nn@2022")).counted


def test_a_batch_has_the_same_intervals_of_counted_kernels():
    deployment = twin.deploy("kws", "esp32c3_devkitm", runtime="tflm-esp-nn")
    slow = deployment.replace({"clocks.cpu.frequency_hz": 80e6})
    batch = twin.predict_many([deployment, slow])
    for row, one in enumerate((deployment, slow)):
        sure = twin.predict(one).certainty.time_us
        assert batch.time_low_us[row] == pytest.approx(sure.low, rel=1e-12)
        assert batch.time_high_us[row] == pytest.approx(sure.high, rel=1e-12)


def test_what_is_carried_is_how_far_counts_of_two_instruction_sets_lie_apart():
    counts = []
    for path in (RESULTS, THUMB):
        with path.open(newline="", encoding="utf-8") as stream:
            counts.append(list(csv.DictReader(stream)))
    apart: dict[tuple[str, str], list[float]] = {}
    for one, other in zip(*counts, strict=True):
        assert one["op"] == other["op"] and one["channels"] == other["channels"]
        apart.setdefault((one["op"], one["build"]), []).append(
            math.log(int(one["instructions"]) / int(other["instructions"])))
    means = [np.mean(some) for some in apart.values()]
    assert math.sqrt(np.mean(np.square(means))) == pytest.approx(CARRIED_SD, abs=0.005)


def test_each_core_is_judged_by_the_others_and_counts_once():
    cores = [LeftOut(core=name, labels=("a",) * len(errors), errors=np.array(errors),
                     waiting=np.zeros(len(errors)), others=np.zeros(len(errors)))
             for name, errors in (("one", [0.1] * 9), ("two", [-0.1]), ("three", [2.0, 0.1]))]
    assert pool(cores[:2]) == pytest.approx(0.1)
    far, inside = judge(cores[2], cores[:2])
    assert inside.tolist() == [False, True]
    assert far == pytest.approx(math.exp(0.1 * student_quantile(0.95, 1)))
    assert "intervals hold 11 of 12 rows" in make_report(cores)


def test_instruction_sets_are_names(tmp_path):
    assert load_runtime("esp-nn").counted_on == ("rv32imc", "rv32imafc-xesp")
    with pytest.raises(RuntimeRefusedError, match="counted_on: a list of names is expected"):
        read_isas(tmp_path, {"counted_on": "rv32imc"}, "counted_on")
    with pytest.raises(RuntimeRefusedError, match=r"counted_on: no .* 'rv32im'; did you mean rv32"):
        read_isas(tmp_path, {"counted_on": ["armv7-m", "rv32im"]}, "counted_on")
    with pytest.raises(RuntimeRefusedError, match=r"learnt_on: no .* 'xtensa-lx77'; did"):
        read_isas(tmp_path, {"learnt_on": ["xtensa-lx77"]}, "learnt_on")
    assert read_isas(tmp_path, {"counted_on": ["rv32imac"]}, "counted_on") == ("rv32imc",)
