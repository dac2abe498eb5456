"""A log of layers beside a network that runs as tiles on an accelerator."""

import math

import pytest
from typer.testing import CliRunner

import twin
from calibration.errors import MeasurementError
from calibration.measurement.measurement import append_samples
from calibration.measurement.sample import Sample
from hwmodels.counts import CAUSES, Bill
from twin.attribution.views import compare_measured
from twin.cli import app
from twin.deployment.costs import bill_us
from twin.errors import UsageError
from twin.pricing.accelerator.learnt import reprice
from twin.pricing.accelerator.report import count_tasks
from twin.pricing.accelerator.timeline import list_spans
from twin.pricing.task_prices import (
    HOST_LAUNCH,
    list_powers,
    list_prices,
    split_by_power,
    split_by_price,
)
from twin.reports.glossary import load_glossary
from twin.reports.tables.header import answer_pairs, describe_rest


def plant_log(prediction, folder, factors, of_ops=()):
    """Import a log whose layers take what is predicted, times a factor for each cause and operator.
    """
    board = prediction.deployment.board
    hertz = board.clock(board.core.clock).frequency_hz
    lines = []
    for layer in prediction.layers:
        took_us = dict(of_ops).get(layer.op, 1.0) * sum(
            factors.get(line.cause, 1.0) * bill_us(Bill((line,)), board)
            for line in layer.bill.lines if line.cycles)
        lines.append(f"{layer.op.upper()} took {round(1e-6 * took_us * hertz)} ticks "
                     f"({1e-3 * took_us:.0f} ms).")
    (folder / "log").write_text("\n".join(lines))
    ended = CliRunner().invoke(app, [
        "import", "tflm", str(folder / "log"), "-b", board.name, "--model",
        prediction.deployment.graph.name, "--runtime", prediction.deployment.runtime.identity,
        "--clock", f"{hertz / 1e6:g}MHz", "-o", str(folder / "m")])
    assert ended.exit_code == 0, ended.output
    return str(folder / "m")


@pytest.fixture(scope="module")
def kws_on_gap9():
    return twin.predict(twin.deploy("kws", "gap9evk", runtime="gap"))


def test_layers_are_compared_one_by_one(kws_on_gap9, tmp_path):
    measured = plant_log(kws_on_gap9, tmp_path, dict.fromkeys(CAUSES, 1.25))
    view = compare_measured("kws", "gap9evk", measured, runtime="gap")
    pairs = [(ours.amounts["time"], theirs.amounts["time"])
             for ours, theirs in view.difference.pairing.pairs if ours.amounts["time"]]
    assert len(pairs) == 12  # all but the reshape
    assert [theirs / ours for ours, theirs in pairs] == pytest.approx([1.25] * 12, rel=0.01)


def test_a_recording_of_a_log_teaches_the_total(tmp_path):
    stated = twin.predict(twin.deploy("ad", "max78000evkit", runtime="ai8x"))
    measured, runs = plant_log(stated, tmp_path, {}), 200
    own_us = sum(layer.time_us for layer in stated.layers)
    window_ms, current_ua = own_us * runs * 1e-3, 1.4e6 * stated.energy_uj / own_us / 1.8
    (tmp_path / "rec.csv").write_text("Timestamp(ms),Current(uA),D0-D7\n" + "".join(
        f"{at / 50:.2f},{current_ua:.2f},{10**7 * (10 <= at / 50 < 10 + window_ms):08d}\n"
        for at in range(round(50 * window_ms) + 1000)))
    energy = twin.energy(measured, tmp_path / "rec.csv", meter="ppk2", supply_v=1.8, runs=runs)
    with pytest.raises(MeasurementError, match="name the folder of its run's times too"):
        twin.calibrate(energy.folder, "max78000evkit")
    overlay = tmp_path / "own.yaml"
    entry = twin.calibrate([energy.folder, measured], "max78000evkit", output=overlay).entries[0]
    assert entry.energy.rows == 1
    learnt = twin.predict(stated.deployment, calibration=str(overlay))
    assert learnt.energy_uj == pytest.approx(1.4 * stated.energy_uj, rel=0.05)
    assert "assumed currents" in " ".join(stated.warnings)
    assert "assumed currents" not in " ".join(learnt.warnings)


UNIT, MEMORY = 1.3, 1.6
"""Planted factors on what an accelerator's cycles and MACs, and its memories' bytes, draw."""


def plant_energies(deployment, folder, factors, powers):
    """Add the energy of each layer to a measurement, at planted prices of time and of energy."""
    prices = {name: factors.get({HOST_LAUNCH: "launch"}.get(name, name.rpartition(".")[2]), 1.0)
              for name in list_prices(deployment.board.npu)}
    truth = twin.predict(reprice(deployment, prices, powers), calibration="none")
    append_samples(folder, [Sample(run=0, layer=place, counter="energy", unit="uj",
                                   value=layer.energy_uj)
                            for place, layer in enumerate(truth.layers) if layer.energy_uj])
    return truth.energy_uj


@pytest.mark.parametrize(("factor", "power"), [(1.0, 1.0), (1.5, 1.0), (1.0, 1.4)])
def test_factors_move_no_energy_between_causes_nor_into_the_set_up(factor, power):
    deployment = twin.deploy("ad", "max78000evkit", runtime="ai8x")
    npu = deployment.board.npu
    stated, priced = (twin.predict(one, calibration="none") for one in (deployment, reprice(
        deployment, dict.fromkeys(list_prices(npu), factor),
        {name: power for name in list_powers(npu) if name.startswith("npu.")})))
    of_npu = [[(line.event, line.place, line.energy_pj) for bill in (one.bill, one.setup)
               for line in bill.lines if line.event.startswith("npu_")] for one in (stated, priced)]
    for (event, place, own_pj), (*named, energy_pj) in zip(*of_npu, strict=True):
        passes = factor if event in ("npu_active", "npu_idle") else 1.0
        assert named == [event, place]
        assert energy_pj == pytest.approx(own_pj * passes * power, rel=1e-6)


@pytest.mark.parametrize(("model", "board", "runtime", "factors", "cause", "powers"), [
    ("kws", "gap9evk", "gap", {"mac_waste": 1.3, "launch": 1.6}, "mac_waste",
     {"npu.energy.mac_pj.8x8": UNIT, "npu.energy.active_pj_per_cycle": UNIT,
      "npu.pools.L2.byte_pj": MEMORY}),
    ("ad", "max78000evkit", "ai8x", {"mac_waste": 1.25}, "mac_waste",
     {"npu.energy.active_pj_per_cycle": UNIT}),
    ("kws", "stm32n6570_dk", "neural-art", {"mac_waste": 1.3, "launch": 1.5}, "launch",
     {"npu.energy.mac_pj.8x8": UNIT, "npu.pools.npuRAM3.byte_pj": MEMORY}),
    ("kws", "alif_e7_devkit", "ethos-u-vela", {"sram_wait": 1.25}, "sram_wait",
     {"npu.energy.mac_pj.8x8": UNIT, "npu.energy.active_pj_per_cycle": UNIT,
      "npu.pools.SRAM.byte_pj": MEMORY, "npu.pools.MRAM.byte_pj": MEMORY})])
def test_a_log_teaches_prices_and_names_the_planted_cause(tmp_path, model, board, runtime,
                                                          factors, cause, powers):
    deployment = twin.deploy(model, board, runtime=runtime)
    stated = twin.predict(deployment)
    measured = plant_log(stated, tmp_path, factors)
    took_us = sum(factors.get(line.cause, 1.0) * bill_us(Bill((line,)), deployment.board)
                  for line in stated.bill.lines if line.cycles)
    drew_uj = plant_energies(deployment, measured, factors, powers)
    found = twin.attribute(model, measured).possible
    assert found[0].cause == cause
    overlay = tmp_path / "own.yaml"
    entry = twin.calibrate(measured, board, output=overlay).entries[0]
    assert not entry.time.rank > entry.time.rows
    predicted = twin.predict(deployment, calibration=str(overlay))
    learnt = dict(zip(list_powers(deployment.board.npu), zip(
        entry.energy.log, entry.energy.matrix().diagonal() ** 0.5, entry.energy.prior_sd,
        strict=True), strict=True))
    drawn = split_by_power(stated.bill, deployment.board)
    for pj, (name, (log, sd, prior_sd)) in zip(drawn, learnt.items(), strict=True):
        assert abs(log - math.log(powers.get(name, 1.0))) < 1.5 * sd
        assert sd <= prior_sd * 1.001
        if not pj:  # It keeps its prior.
            assert log == 0 and sd == pytest.approx(prior_sd, rel=1e-3)
    for interval, before, found, truth in (
            (predicted.certainty.time_us, stated.certainty.time_us, predicted.time_us, took_us),
            (predicted.certainty.energy_uj, stated.certainty.energy_uj, predicted.energy_uj,
             drew_uj)):
        assert found == pytest.approx(truth, rel=0.032)
        assert interval.low <= truth <= interval.high
        assert interval.high / interval.low < before.high / before.low
    ends = [span.end_us for span in list_spans(predicted)]
    assert max(ends) <= predicted.time_us * (1 + 1e-9)


def test_kernels_of_one_operator_are_not_taken_for_a_price(kws_on_gap9, tmp_path):
    measured = plant_log(kws_on_gap9, tmp_path, {}, {"depthwise_conv_2d": 1.5})
    found = {one.cause: one for one in twin.attribute("kws", measured).possible}
    kernels = found["none of these prices"]
    assert kernels.probability > 0.2 and found["mac_waste"].probability < 0.8
    assert kernels.mostly == "depthwise_conv_2d"
    shown = CliRunner().invoke(app, ["attribute", "kws", measured]).stdout
    assert "% or none of these prices (kernels of depthwise_conv_2d), 3" in " ".join(shown.split())


def test_learnt_prices_are_of_one_board(tmp_path):
    deployment, overlay = twin.deploy("ad", "max78000evkit"), str(tmp_path / "own.yaml")
    measured = plant_log(twin.predict(deployment), tmp_path, {"mac": 1.2})
    twin.calibrate(measured, "max78000evkit", output=overlay)
    batch = twin.predict_many(deployment, calibration=overlay,
                              vary={"clocks.cnn.frequency_hz": [25e6, 50e6]})
    one = twin.predict(deployment, calibration=overlay)
    assert batch.time_us[1] == one.time_us < batch.time_us[0]
    with pytest.raises(UsageError, match="no entry for gap@2024 on gapuino"):
        twin.predict(twin.deploy("kws", "gapuino", runtime="gap"), calibration=overlay)


@pytest.mark.parametrize(("model", "board"), [
    ("kws", "gap9evk"), ("ad", "max78002evkit"), ("kws", "launchxl_f28p55x"),
    ("kws", "grove_vision_ai_v2")])
def test_every_cycle_of_a_bill_has_a_price(model, board):
    deployment = twin.deploy(model, board)
    stated = twin.predict(deployment, calibration="none")
    names = list_prices(deployment.board.npu)
    assert split_by_price(stated.bill, deployment.board).sum() == pytest.approx(stated.time_us)
    doubled = twin.predict(reprice(deployment, dict.fromkeys(names, 2.0), {}), calibration="none")
    assert doubled.time_us == pytest.approx(2 * stated.time_us)


def test_the_counter_of_an_npu_starts_after_the_host_has_set_it_up(tmp_path):
    deployment = twin.deploy("kws", "alif_e7_devkit", runtime="ethos-u-vela")
    counted = count_tasks(twin.predict(deployment))
    active = sum(one["npu_active"] for one in counted)
    idle = deployment.board.npu.hand_over.post_cycles
    (tmp_path / "log").write_text(f"NPU ACTIVE: {active:.0f}\nNPU IDLE: {idle:.0f}\n"
                                  f"NPU TOTAL: {active + idle:.0f}\n")
    measured = twin.import_log("ethos-u", tmp_path / "log", board="alif_e7_devkit", model="kws",
                               clock_hz=400e6, output=tmp_path / "m").folder
    assert twin.attribute("kws", str(measured)).difference.main.rows[0].gap == 0
    learnt = twin.calibrate(str(measured), "alif_e7_devkit").entries[0].time
    assert learnt.log == pytest.approx([0.0] * len(learnt.log), abs=1e-6)


@pytest.mark.parametrize(("board", "grade"), [
    ("gap9evk", "measured here"), ("gapuino", "not measured here"), ("max78000evkit", "guess"),
    ("nucleo_l4r5zi", "measured here"), ("esp32s3_devkitc", "not measured here")])
def test_prices_have_one_grade_on_every_screen(board, grade):
    prediction = twin.predict(twin.deploy("ad", board))
    assert dict(answer_pairs(prediction))["prices"].startswith(f"{grade}: ")
    (row,) = twin.sweep("ad", board).rows
    assert row.grade == grade
    stated = twin.predict(prediction.deployment, calibration="none")
    if prediction.deployment.accelerated:  # its prices are its runtime's either way
        assert stated.time_us == prediction.time_us
    else:
        grade = "guess"
    said = dict(answer_pairs(stated))["prices"]
    assert said.startswith(f"{grade}: ")
    explained = load_glossary()["prices"].text
    kind = "an accelerator" if prediction.deployment.accelerated else "a core"
    meaning = explained.partition("`--calibration none` makes ")[2].partition(f"of {kind} ")[2]
    assert meaning.startswith(
        "are its runtime's either way" if " either way" in said else "a `guess`")
    # --details say the same as the short view
    assert ("no calibration data of this one" in describe_rest(prediction)) == (
        row.grade.startswith("not"))
