"""Causes found from the counters of an accelerator: planted truths, predicted with noise."""

import importlib.util
import io
import math

import numpy as np
import pytest
from rich.console import Console

import twin
from calibration.errors import MeasurementError
from twin.attribution.diagnosis.counted import HIDDEN
from twin.errors import UsageError
from twin.reports.tables.why import why_report

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ethosu") is None,
                                reason="ethos-u-vela is not installed")
NAMES = ("npu_active", "axi0_rd_data_beat_received", "axi0_wr_data_beat_written",
         "axi1_rd_data_beat_received")


def write_log(path, changes, seed, model="kws"):
    """A log of the kit with the counters of a changed deployment, each a few per cent off."""
    deployment = twin.deploy(model, "alif_e7_devkit", runtime="ethos-u-vela").replace(changes)
    prediction = twin.predict(deployment)
    totals = dict.fromkeys(NAMES, 0.0)
    for counters in prediction.compiler.count_runs([task.run for task in prediction.tasks]):
        for name in NAMES:
            totals[name] += counters.get(name, 0.0)
    noise = np.random.default_rng(seed).normal(0, 0.04, len(NAMES))
    lines = [f"INFO - NPU {name.removeprefix('npu_').upper()}: {value * math.exp(off):.0f} "
             f"{'beats' if 'beat' in name else 'cycles'}"
             for (name, value), off in zip(totals.items(), noise, strict=True)]
    active = lines[0].split()[4]
    path.write_text("\n".join([*lines, "INFO - NPU IDLE: 300 cycles",
                               f"INFO - NPU TOTAL: {int(active) + 300} cycles"]) + "\n")
    return path


def diagnose(tmp_path, changes, seed=0, model="kws", claimed="kws"):
    twin.import_log("ethos-u", write_log(tmp_path / "uart.log", changes, seed, model),
                    clock_hz=400e6, board="alif_e7_devkit", model=claimed, output=tmp_path / "log")
    return twin.diagnose(tmp_path / "log")


@pytest.mark.parametrize("changes, cause", [
    ({}, "as expected"),
    ({"npu.memory_mode": "Sram_Only"}, "memory_mode"),
    ({"npu.config": "ethos-u55-64"}, "npu_size"),
    ({"npu.pools.MRAM.bytes_per_cycle": 0.24}, "npu_memory"),
    ({"offload.host": "depthwise_conv_2d"}, "fallback")])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_planted_cause_is_the_first_of_its_counters(tmp_path, changes, cause, seed):
    found = diagnose(tmp_path, changes, seed)
    assert found.verdict == cause
    chances = [row.probability for row in found.rows]
    assert chances == sorted(chances, reverse=True)
    assert math.fsum([*chances, found.as_expected]) == pytest.approx(1.0)
    assert found.also == (HIDDEN,) and len(found.remarks) == len(NAMES)
    out = io.StringIO()
    Console(file=out, width=300).print(why_report(found))
    assert "counted   active time of the accelerator alone, and so are the times" in out.getvalue()


def test_counters_of_the_pmu_are_set_beside_the_bill_by_cause(tmp_path):
    found = diagnose(tmp_path, {"npu.pools.MRAM.bytes_per_cycle": 0.24})
    assert found.releases[0][0] in (tmp_path / "log/header.json").read_text()  # with its version
    difference = twin.attribute(twin.predict(twin.deploy("kws", "alif_e7_devkit")),
                                tmp_path / "log").difference
    row, = next(one for one in difference.accounts if one.quantity == "time").rows
    active = next(line for line in row.lines if "external_memory" in line.causes)
    assert active.counter == "NPU active, whole network" and active.gap > 0.5 * row.gap > 0


@pytest.mark.parametrize("board, message", [
    ("alif_e8_devkit", "axi0_rd_data_beat_received is no counter of the ethos-u85-256"),
    ("nucleo_l4r5zi", "nucleo_l4r5zi has no Ethos-U; accepted: the board it ran on")])
def test_counters_of_another_product_are_refused(tmp_path, board, message):
    (tmp_path / "uart.log").write_text("NPU AXI0_RD_DATA_BEAT_RECEIVED: 7\nNPU TOTAL: 9\n")
    with pytest.raises(MeasurementError, match=message):
        twin.import_log("ethos-u", tmp_path / "uart.log", board=board, clock_hz=100e6)


def test_another_network_is_none_of_them(tmp_path):
    assert diagnose(tmp_path, {}, model="ad", claimed="kws").verdict == "other"


def test_what_is_weighed_on_cores_only_is_refused(tmp_path):
    diagnose(tmp_path, {})
    with pytest.raises(UsageError, match="--prior: counters of an accelerator are weighed by"):
        twin.diagnose(tmp_path / "log", priors={"clock": 0.5})
