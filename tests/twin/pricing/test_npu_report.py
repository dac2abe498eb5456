"""The profiler's report, predicted: complete, consistent, readable by the profiler's importer."""

import math

import pytest
from rich.console import Console

from calibration.importers.log import Log
from calibration.importers.neural_art_profiler import read_log
from calibration.measurement.measurement import Measurement
from hwmodels.quantities import significant
from hwmodels.schedule import BURST_BEATS
from twin.attribution.measured import side_of_measurement
from twin.attribution.predicted import profile_whole, side_of_prediction
from twin.deployment.deploy import deploy
from twin.errors import UsageError
from twin.pricing.inference import predict
from twin.reports.tables.coverage import coverage_pairs
from twin.reports.tables.tasks import tasks_part

# Every label of the profiler document's report, epoch and whole model.
COMPILER = ("epoch type", "operations", "processor units", "ops", "compute cycles", "ops/cycle",
            "mem accesses")
TARGET = ("duration", "mcu cycles", "core npu cycles", "compute cycles ratio", "busif 0", "busif 1",
          "busif (total)", "ops/cycle", "strg engines", " active", "NPU cache cnts", " octoFlash",
          " total")
MODEL = ("cycles", "ideal cycles", "ops", "ops/cycle", "inf/s", "ideal ops/cycle", "ideal inf/s",
         "total duration", "mcu cycles", "npu cycles", "compute cycles ratio", "octoFlash")


@pytest.fixture(scope="module")
def prediction():
    return predict(deploy("kws", "stm32n6570_dk", runtime="neural-art"))


@pytest.fixture(scope="module")
def text(prediction):
    console = Console(width=300, file=None, record=True, force_terminal=False)
    with console.capture() as captured:
        console.print(tasks_part(side_of_prediction(prediction)))
    return captured.get()


def labels(lines):
    return [line.partition(" : ")[0].removeprefix("  ").rstrip() for line in lines if " : " in line]


def test_every_line_of_the_report_is_there(text, prediction):
    first = text[text.index("EpochBlock_1 "):text.index("EpochBlock_2 ")]
    compiler, target = first.split("[target]")
    assert labels(compiler.splitlines()) == list(COMPILER)
    assert set(TARGET) <= set(labels(target.splitlines()))
    assert set(MODEL) <= set(labels(profile_whole(side_of_prediction(prediction))))


def test_mcu_and_npu_cycles_give_the_same_time(prediction):
    sheet = side_of_prediction(prediction)
    hardware = [epoch for epoch in sheet.parts if epoch.op == "HW"]
    for epoch in hardware:
        waited_s = epoch.counts["core_cycles"] / sheet.clocks_hz["cpu"]
        assert waited_s == pytest.approx(epoch.counts["core_npu_cycles"] / sheet.clocks_hz["npu"],
                                         abs=1 / sheet.clocks_hz["cpu"])  # whole cycles of both
    totals = sheet.whole.counts
    assert totals["cpu_cycles"] / 800 == pytest.approx(prediction.time_us, abs=1 / 800)
    assert totals["npu_cycles"] / 1000 == pytest.approx(prediction.time_us)
    assert sum(totals[f"{phase}_share"] for phase in ("pre", "core", "post")) == pytest.approx(100)


def test_bursts_sum_to_the_bytes_of_an_interface(prediction):
    for epoch in side_of_prediction(prediction).parts:
        for name in [key for key in epoch.counts if key.endswith(("_read_bytes", "_write_bytes"))
                     and key.startswith("busif")]:
            stem = name.removesuffix("_bytes")
            bursts = sum(8 * beats * epoch.counts[f"{stem}_bursts_{beats}"]
                         for beats in BURST_BEATS)
            assert bursts == epoch.counts[name]


def test_the_importer_reads_the_predicted_report_back(text, prediction):
    sheet = side_of_prediction(prediction)
    measurement = read_log(Log(where="predicted.log", text=text))
    assert measurement.header.kind == "predicted"
    assert measurement.layers == tuple(epoch.index for epoch in sheet.parts)
    for counter in ("cpu_cycles", "core_npu_cycles", "max_cycles"):
        assert measurement.values(counter)[0] == round(sheet.whole.counts[counter])
    for epoch in sheet.parts:
        for counter, expected in epoch.counts.items():
            (value,) = measurement.values(counter, epoch.index)
            assert value == round(expected), (epoch.name, counter)


def test_a_measurement_becomes_the_same_sheet(text):
    measurement = read_log(Log(where="predicted.log", text=text))
    sheet = side_of_measurement(measurement)
    assert (sheet.clocks_hz["cpu"], sheet.clocks_hz["npu"]) == (800e6, 1e9)
    console = Console(width=300)
    with console.capture() as captured:
        console.print(tasks_part(sheet))
    again = captured.get().splitlines()
    assert [line for line in again if " busif" in line] == [
        line for line in text.splitlines() if " busif" in line]


def test_a_measurement_without_epochs_is_refused(text):
    measurement = read_log(Log(where="predicted.log", text=text))
    whole = Measurement(header=measurement.header)
    with pytest.raises(UsageError, match="has no cycles, time"):
        side_of_measurement(whole)


def test_weights_moved_and_clocks_changed_move_the_report():
    deployment = deploy("ic", "stm32n6570_dk", runtime="neural-art")

    def changed(**changes):
        return predict(deployment.replace({key.replace("__", "."): value
                                           for key, value in changes.items()}))

    def time_us(**changes):
        return changed(**changes).time_us

    def computed(prediction):
        return sum(epoch.run.compute_cycles for epoch in prediction.tasks)

    plain = predict(deployment).time_us
    assert time_us(placement__weights="npu_ram") < plain
    assert time_us(placement__weights="psram") != plain
    assert time_us(offload__weight_bits=4) < plain
    # At 450 MHz these epochs do not wait for the interconnect: what is left is order of service.
    assert time_us(clocks__nic__frequency_hz="90MHz") > plain
    assert time_us(clocks__npu__frequency_hz="500MHz") > plain
    # fewer units compute longer; more wait for their weights here, and are more to set up
    four, eight = predict(deployment), changed(npu__units__CONV_ACC__count=8)
    assert computed(changed(npu__units__CONV_ACC__count=1)) > computed(four) >= computed(eight)
    assert sum(e.pre_cpu_cycles for e in eight.tasks) > sum(e.pre_cpu_cycles for e in four.tasks)
    # weights are read once and in order: the cache has nothing to give; scattered walks need it
    assert time_us(npu__cache__enabled="false") == plain
    outside = deploy("kws", "stm32n6570_dk", runtime="neural-art", arena="hyperRAM")
    assert predict(outside.replace({"npu.cache.enabled": "false"})).time_us > (
        2 * predict(outside).time_us)
    assert time_us(npu__epoch_controller="true") < plain


def test_energy_of_the_npu_is_over_the_macs_the_npu_computed():
    asked = deploy("kws", "stm32n6570_dk", runtime="neural-art")
    for changes in ({}, {"offload.host": "conv_2d"}):
        made = predict(asked.replace(changes))
        pairs = dict(coverage_pairs(made))
        macs = sum(layer.macs for layer, why in zip(made.layers, made.deployment.plan.reasons,
                                                    strict=True) if not why)
        value_uj, _ = made.deployment.target.estimate_energy(made.deployment.board, made.bill)
        assert f"{significant(value_uj * 1e6 / macs, 2)} pJ/MAC of its {macs:,}" \
            in pairs["NPU energy"]
    assert macs < made.macs


def test_totals_are_the_sums_of_epochs(prediction):
    sheet = side_of_prediction(prediction)
    for counter in ("core_npu_cycles", "max_cycles", "ops", "pool_octoFlash_read_bytes"):
        assert sheet.whole.counts[counter] == pytest.approx(math.fsum(
            epoch.counts.get(counter, 0.0) for epoch in sheet.parts))


@pytest.mark.parametrize(("model", "changes"), [
    ("ic", {}), ("vww", {"clocks.cpu.frequency_hz": "100.3MHz"}),
    ("ad", {"npu.epoch_controller": "true"})])
def test_what_is_printed_of_epochs_sums_to_what_is_printed_of_the_whole(model, changes):
    sheet = side_of_prediction(predict(deploy(model, "stm32n6570_dk", runtime="neural-art")
                               .replace(changes)))
    for total, parts in (("cpu_cycles", ("pre_cycles", "core_cycles", "post_cycles")),
                         ("core_cycles", ("core_cycles",)),
                         ("core_npu_cycles", ("core_npu_cycles",))):
        printed = [epoch.counts.get(part, 0) for epoch in sheet.parts for part in parts]
        assert all(value == round(value) for value in printed)
        assert sum(printed) == sheet.whole.counts[total]
    console = Console(width=400)
    with console.capture() as captured:
        console.print(tasks_part(sheet))
    as_measured = captured.get().replace("Target\n", "Measured\n")
    assert read_log(Log(where="x", text=as_measured)).header.kind == "measured"
