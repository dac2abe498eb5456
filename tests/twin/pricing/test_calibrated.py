"""Learnt prices on a deployment: the same bill, other prices, intervals and their reasons."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
import yaml
from rich.console import Console

import twin
from calibration.datasets import published_rows
from calibration.errors import FitError, MeasurementError
from calibration.fitting.intervals import BORROWED_SD, OPERATOR_SD
from calibration.fitting.overlay import STANDS_IN, read_overlay, write_overlay
from calibration.fitting.prices import log_total
from calibration.measurement.measurement import Measurement, write_measurement
from calibration.measurement.sample import Header, Sample
from hwmodels.board.file import SHIPPED, load_board
from twin import calibrate
from twin.attribution.folders import note_file
from twin.attribution.observations import observe_any, observe_folder, observe_rows
from twin.deployment.deploy import deploy
from twin.errors import UsageError
from twin.learning.evidence import time_evidence
from twin.learning.overlays import learn, make_overlays
from twin.learning.own import Total, learn_own
from twin.network.readers import read_model
from twin.pricing.assurance import price_cycles
from twin.pricing.batched import predict_many
from twin.pricing.calibrated import apply_calibration, predict_calibrated
from twin.pricing.calibration import (
    choose_calibration,
    name_far,
    shipped_calibration,
    unseen_prices,
)
from twin.pricing.design import make_design
from twin.pricing.draw import probability_faster
from twin.pricing.extrapolation import COLD
from twin.pricing.grade import GRADES, grade_energy, grade_prediction, say_grade
from twin.pricing.inference import predict
from twin.pricing.locality import replacement_range
from twin.pricing.price_names import TIME_PRICES
from twin.reports.page.deployment import Report, list_answers
from twin.reports.tables.calibration import overlay_table, totals_table
from twin.reports.tables.header import answer_pairs, describe_rest
from twin.reports.tables.studies import head_grade
from twin.runtimes import load_runtime
from twin.studies.points import Deployer

BOARD, RUNTIME = "nucleo_l4r5zi", "x-cube-ai@9.0.0-time"


@pytest.fixture(scope="module")
def kws():
    return deploy("kws", BOARD, runtime=RUNTIME)


@pytest.fixture(scope="module")
def learnt():
    """Prices learnt from the rows of two boards and one release."""
    rows = [row for row in published_rows() if row.runtime == RUNTIME
            and row.board in (BOARD, "nucleo_u575zi_q")]
    return learn(observe_rows(rows))


def test_a_design_matrix_is_the_prediction_by_price(kws) -> None:
    design, prediction = make_design(kws), predict(kws)
    assert design.cycles.sum() == pytest.approx(prediction.cycles, rel=1e-12)
    terms = design.energy_terms(np.zeros(len(TIME_PRICES)))
    assert terms.sum() * 1e-6 == pytest.approx(prediction.energy_uj, rel=1e-9)
    for row, layer in zip(design.cycles, prediction.layers, strict=True):
        assert row.sum() == pytest.approx(layer.cycles, rel=1e-12)
    assert price_cycles(prediction) == pytest.approx(design.cycles, rel=1e-9)


def test_copying_is_charged_apart() -> None:
    ic = deploy("ic", BOARD, runtime=RUNTIME)
    half = replace(ic, runtime=replace(ic.runtime, efficiency={**ic.runtime.efficiency,
                                                               "copy": 0.5}))
    copied = make_design(ic).cycles[:, TIME_PRICES.index("copy")]
    assert copied.sum() > 0.05 * predict(ic).cycles  # im2col of every convolution
    lost = [before.cycles - after.cycles for before, after in zip(
        predict(ic).layers, predict(half).layers, strict=True)]
    assert lost == pytest.approx(list(copied / 2), rel=1e-9)
    assert not make_design(ic).cycles[:, TIME_PRICES.index("reduce")].any()  # it pools


def test_factors_of_an_overlay_scale_the_bill_and_nothing_else(kws) -> None:
    calibration = choose_calibration(kws)
    assert calibration is not None
    design = make_design(kws)
    stated, learnt = predict(kws), predict(apply_calibration(kws, calibration))
    totals, _ = log_total(design.cycles.sum(axis=0)[None, :], calibration.time.log)
    assert learnt.cycles == pytest.approx(np.exp(totals[0]), rel=1e-9)
    assert calibration.energy is not None
    terms = design.energy_terms(calibration.time.log) * calibration.energy.factors
    assert learnt.energy_uj == pytest.approx(terms.sum() * 1e-6, rel=1e-9)
    for before, after in zip(stated.layers, learnt.layers, strict=True):
        assert before.counts == after.counts
        assert before.instructions == after.instructions


def test_a_calibrated_prediction_says_how_sure_it_is(kws) -> None:
    prediction = predict_calibrated(kws)
    sure = prediction.certainty
    assert sure is not None and prediction.deployment is kws
    assert sure.time_us.holds(prediction.time_us) and sure.time_us.level == 0.9
    assert sure.energy_uj is not None and sure.energy_uj.holds(prediction.energy_uj)
    assert sure.basis == "conformal" and sure.extrapolating == ()
    assert len(sure.layers) == len(prediction.layers)
    widths = [layer.time_us.high / layer.time_us.low for layer, predicted in
              zip(sure.layers, prediction.layers, strict=True) if predicted.cycles]
    # a layer's structure error is larger than that of the network it averages out in
    assert min(widths) > sure.time_us.high / sure.time_us.low
    assert any("calibrated: shipped overlay" in text for text in prediction.warnings)
    assert predict_calibrated(kws, calibration="none").certainty is None


def test_an_unknown_replacement_policy_widens_the_interval() -> None:
    deployment = deploy("ic", "stm32n6570_dk", runtime="tflm-cmsis-nn")
    sure = predict_calibrated(deployment).certainty
    policies = replacement_range(apply_calibration(deployment, choose_calibration(deployment)))
    assumed = policies.time_us[0][0]
    alone = predict_calibrated(deployment.replace({
        f"caches.{name}.replacement": assumed for name in policies.caches})).certainty
    assert policies.high > 1.05
    assert sure.time_us.high == pytest.approx(alone.time_us.high * policies.high, rel=1e-12)
    assert sure.time_us.low == pytest.approx(alone.time_us.low * policies.low, rel=1e-12)
    known = deployment.replace({"caches.l1d.replacement": "lru", "caches.l1i.replacement": "lru"})
    assert replacement_range(known).high == replacement_range(known).low == 1


def test_the_same_deployment_gives_the_same_interval(kws) -> None:
    one, two = predict_calibrated(kws), predict_calibrated(kws)
    assert one.certainty.time_us == two.certainty.time_us and one.bill == two.bill


@pytest.mark.parametrize(("board", "runtime", "change", "reason"), [
    ("nucleo_h723zg", RUNTIME, {}, "is learnt from, only of other boards with cortex-m7"),
    ("gap9evk", "nnom@local", {}, "the core of gap9evk is learnt from, nor of any ri5cy"),
    (BOARD, "x-cube-ai@8.0.0", {}, "x-cube-ai@8.0.0 was never measured on"),
    (BOARD, "st-edge-ai@4.0.0", {}, "st-edge-ai@4.0.0 was never measured on"),
    (BOARD, RUNTIME, {"clocks.cpu.frequency_hz": "16MHz"}, "clock of 16 MHz; measured at 120 MHz"),
    (BOARD, RUNTIME, {"kernels.extension": "c"}, "comes compiled: kernels.extension=c is no build"),
])
def test_what_the_data_do_not_support_is_said(board, runtime, change, reason) -> None:
    deployment = deploy("kws", board, runtime=runtime)
    if change:
        deployment = deployment.replace(change)
    sure = predict_calibrated(deployment).certainty
    assert any(reason in text for text in sure.extrapolating)
    known = predict_calibrated(deploy("kws", BOARD, runtime=RUNTIME)).certainty
    if not change:
        assert sure.basis == "model-based"
        assert sure.time_us.high / sure.time_us.low > known.time_us.high / known.time_us.low


@pytest.mark.parametrize("temperature", ["warm", "cold"])
def test_waiting_on_memories_lowers_no_lower_end(temperature) -> None:
    """In XIP flash a network waits, how long is unsure; it is no faster than from SRAM."""
    flash = deploy("ad", "rpi_pico2")
    slow, fast = (predict_calibrated(one, temperature=temperature).certainty
                  for one in (flash, flash.replace({"placement.weights": "sram"})))
    assert slow.time_us.high > 10 * fast.time_us.high
    assert slow.time_us.low > 0.98 * fast.time_us.low
    for ours, theirs in zip(slow.layers, fast.layers, strict=True):
        assert ours.time_us.low > 0.9 * theirs.time_us.low
    many = twin.predict_many(flash, vary={}, temperature=temperature, layers=True)
    assert many.time_low_us[0] == pytest.approx(slow.time_us.low, rel=1e-12)
    assert many.layers.time_low_us[0] == pytest.approx(
        [layer.time_us.low for layer in slow.layers], rel=1e-12)


def test_what_fills_cold_caches_extrapolates_and_widens(kws) -> None:
    warm, cold = (predict_calibrated(kws, temperature=one) for one in ("warm", "cold"))
    assert cold.time_us == warm.time_us  # a loop over code larger than the cache leaves it cold
    assert cold.certainty.time_us == warm.certainty.time_us and not cold.certainty.extrapolating
    board = deploy("kws", "nucleo_h7a3zi_q")
    warm, cold = (predict_calibrated(board, temperature=one) for one in ("warm", "cold"))
    share = 1 - warm.time_us / cold.time_us
    wider = cold.certainty.time_us.high / cold.time_us - (
        warm.certainty.time_us.high / warm.time_us)
    assert share > 1e-3 and wider > OPERATOR_SD * share
    assert share < COLD and not cold.certainty.extrapolating  # no digit of what is shown
    slow = deploy("kws", "esp32s3_devkitc")
    before, after = (predict_calibrated(slow, temperature=one).certainty
                     for one in ("warm", "cold"))
    reason, *_ = after.extrapolating
    assert re.fullmatch("cold: only warm inferences were measured; filling caches, "
                        r"5\.\d % of the time, widens the interval", reason)
    for less, more in zip((before, *before.layers), (after, *after.layers), strict=True):
        assert more.time_us.low >= less.time_us.low * (1 - 1e-9)  # filling caches only adds
    assert after.energy_uj.low >= 0.99 * before.energy_uj.low
    many = twin.predict_many(board, vary={}, temperature="cold", layers=True)
    assert many.time_high_us[0] == pytest.approx(cold.certainty.time_us.high, rel=1e-12)
    assert many.layers.time_high_us[0] == pytest.approx(
        [layer.time_us.high for layer in cold.certainty.layers], rel=1e-12)


def test_runtimes_nobody_measured_stay_at_stated_prices_where_asked() -> None:
    deployment = deploy("kws", BOARD, runtime="tflm-reference")
    prediction = predict_calibrated(deployment, calibration="none")
    assert prediction.certainty is None
    assert prediction.bill == predict(deployment).bill


@pytest.mark.parametrize("runtime", ["float-reference", "unknown"])
def test_a_library_nobody_measured_takes_the_spread_between_libraries(runtime: str) -> None:
    sure = predict_calibrated(deploy("kws", BOARD, runtime=runtime)).certainty
    assert "spread between libraries" in sure.calibration
    assert sure.basis == "model-based"
    # of 136 rows predicted as of a library nobody measured 88 % lie inside (docs/accuracy.md)
    assert 2.1 < sure.time_us.high / sure.time_us.low < 4


def test_a_library_nobody_described_is_measured_by_its_own_rows() -> None:
    shipped = choose_calibration(deploy("kws", BOARD, runtime="unknown"))
    own = replace(shipped, origin="own.yaml", entry=replace(
        shipped.entry, time=replace(shipped.entry.time, rows=1)))
    assert not shipped.measured
    assert own.measured
    assert own.description == f"own.yaml overlay of {BOARD}, unknown@any, learnt from 1 row"


def test_our_own_code_takes_no_spread_between_libraries_and_floats_do() -> None:
    ours = deploy("kws", BOARD, runtime="tflm-reference")
    floats = tuple(replace(tensor, dtype="float32") for tensor in ours.graph.tensors)
    assert choose_calibration(ours) is not None
    assert choose_calibration(replace(ours, runtime=load_runtime("firmware"))) is None
    found = choose_calibration(replace(ours, graph=replace(ours.graph, tensors=floats)))
    assert found is not None and found.entry == choose_calibration(ours).entry


def test_a_file_is_used_when_it_has_the_board(kws, tmp_path: Path, learnt) -> None:
    overlays = make_overlays(learnt)
    path = write_overlay(tmp_path / "own.yaml", overlays["x-cube-ai", BOARD])
    prediction = predict_calibrated(kws, calibration=str(path))
    assert prediction.certainty.calibration.startswith("own.yaml overlay of")
    with pytest.raises(UsageError, match=r"no entry for cmsis-nn@6\.0 on"):
        predict_calibrated(deploy("kws", BOARD, runtime="cmsis-nn"), calibration=str(path))
    with pytest.raises(FitError, match=r"gone\.yaml: cannot be read"):
        predict_calibrated(kws, calibration=str(tmp_path / "gone.yaml"))
    (tmp_path / "mine.yaml").write_text(kws.board.document)
    with pytest.raises(FitError, match=r"mine\.yaml: is no overlay; accepted: a file of learnt"):
        predict_calibrated(kws, calibration=str(tmp_path / "mine.yaml"))


def test_a_file_of_one_library_says_which_on_one_board_and_on_two(tmp_path: Path) -> None:
    runtime = "tflm-cmsis-nn@2026"
    folder = write_folder(tmp_path / "kws", deploy("kws", BOARD, runtime=runtime), {}, layers=True)
    path = str(write_overlay(tmp_path / "own.yaml", learn_own(
        observe_folder(folder, BOARD), load_board(BOARD))))
    there, elsewhere = twin.sweep("kws", [BOARD, "nucleo_h7a3zi_q"], calibration=path).rows
    assert there.runtime == runtime and not there.failure
    assert there.time_us == pytest.approx(predict_calibrated(
        deploy("kws", BOARD, runtime=runtime), calibration=path).time_us, rel=1e-12)
    assert f"no entry for {runtime} on nucleo_h7a3zi_q" in elsewhere.reason
    chosen, = twin.sweep("kws", [BOARD], calibration=path, runtimes="x-cube-ai").rows
    assert "no entry for x-cube-ai" in chosen.reason


def test_two_boards_of_one_release_are_fitted_and_left_out(learnt) -> None:
    # L4R5 and U575 under one release, four networks each: the in-sample error of the issue's
    # published boards is far below what stated prices give (67 to 91 % on these eight rows)
    assert np.median(np.abs(learnt.time.residuals)) < 0.05
    assert np.abs(learnt.time.residuals).max() < 0.15
    assert np.median(np.abs(np.expm1(-learnt.left_out.log_errors))) < 0.25
    assert learnt.energy is not None and np.median(np.abs(learnt.energy.residuals)) < 0.05


def test_rows_of_this_board_and_library_make_it_measured(kws) -> None:
    chosen = choose_calibration(kws)
    assert chosen.measured and not replace(chosen, kinds=("simulated",)).measured
    assert not replace(chosen, kinds=("simulated", "doubted")).measured
    assert replace(chosen, kinds=("measured", "simulated")).measured
    for board, runtime in (("nucleo_f746zg", RUNTIME), (BOARD, "tflm-cmsis-nn@2026"),
                           ("esp32s3_devkitc", "esp-nn")):
        assert not choose_calibration(deploy("kws", board, runtime=runtime)).measured, board


def test_sealed_rows_are_refused() -> None:
    sealed = published_rows(use="test")[:1]
    with pytest.raises(MeasurementError, match="is sealed"):
        observe_rows(sealed)


def test_rows_no_model_deploys_are_left_out() -> None:
    rows = [row for row in published_rows() if row.runtime == "tflm-reference@2.3.1"]
    assert rows and observe_any(rows) == ()


def test_rows_whose_arena_lay_elsewhere_teach_nothing() -> None:
    rows = [row for row in published_rows() if "arena_beyond_chip" in row.flags]
    seen = {one.network.partition("_")[0] for one in observe_rows(rows)}
    assert seen == {"squeezenet", "mobilenet"}  # the plan has them in two memories, too
    free = [replace(row, flags=()) for row in rows if row.model and row.model.startswith("ssd")]
    assert len(observe_rows(free)) == len(free) == 2


def write_folder(folder: Path, deployment, factors, *, layers: bool, power: float = 0.0) -> Path:
    """A measurement made of a design at known factors; with energy if a factor of it is given."""
    design = make_design(deployment)
    cycles = design.cycles @ np.array([factors.get(name, 1.0) for name in TIME_PRICES])
    header = Header(
        kind="measured", model=deployment.graph.name, board=deployment.board.name,
        runtime=deployment.runtime.identity, temperature="warm", source="made by this test",
        clocks_hz=(("cpu", 120e6),), architecture_id=deployment.graph.architecture_id)
    values = ([(place, value) for place, value in enumerate(cycles) if value] if layers
              else [(None, cycles.sum())])
    samples = tuple(Sample(run=run, layer=layer, counter="cpu_cycles", clock="cpu",
                           value=float(round(value)), unit="cycles")
                    for run in range(3) for layer, value in values)
    if power:
        terms = design.energy_terms(np.log([factors.get(name, 1.0) for name in TIME_PRICES]))
        samples += (Sample(run=0, counter="energy", value=terms.sum() * power * 1e-6, unit="uj"),)
    return write_measurement(folder, Measurement(header=header, samples=samples))


def test_ones_own_measurements_move_prices_to_what_was_measured(tmp_path: Path) -> None:
    factors = {"conv": 0.7, "conv_wide": 0.7, "pointwise": 0.6, "depthwise": 1.3, "call": 0.5,
               "memory": 2.0}  # as learnt there: these networks hold it and depthwise together
    truth = {}
    folders = []
    for name in ("kws", "ic"):
        deployment = deploy(name, BOARD, runtime=RUNTIME)
        folders.append(write_folder(tmp_path / name, deployment, factors, layers=True))
        truth[name] = float((make_design(deployment).cycles.sum(axis=0)
                             * [factors.get(price, 1.0) for price in TIME_PRICES]).sum())
    observations = [one for folder in folders for one in observe_folder(folder, BOARD)]
    assert len(time_evidence(observations)) > 20  # layers, not totals
    overlay = learn_own(observations, load_board(BOARD))
    path = write_overlay(tmp_path / "own.yaml", overlay)
    assert read_overlay(path) == overlay
    found = dict(zip(TIME_PRICES, np.exp(overlay.entries[0].time.log), strict=True))
    assert found["conv_wide"] == pytest.approx(0.7, rel=0.03)
    assert found["pointwise"] == pytest.approx(0.6, rel=0.03)
    assert found["depthwise"] == pytest.approx(1.3, rel=0.05)
    for name, cycles in truth.items():
        prediction = predict_calibrated(deploy(name, BOARD, runtime=RUNTIME),
                                        calibration=str(path))
        assert prediction.cycles == pytest.approx(cycles, rel=0.03)
        assert prediction.certainty.time_us.holds(cycles / 120)


@pytest.mark.parametrize("added", [10_000, 480_000])
def test_an_interval_holds_what_its_prices_were_learnt_from(tmp_path: Path, added: int) -> None:
    """A print of 4 ms in each layer: layers of few cycles are taken for outliers."""
    deployment = deploy("kws", BOARD, runtime="tflm-cmsis-nn@2026")
    log = choose_calibration(deployment).time.log
    spent = make_design(deployment).cycles @ np.exp(log) + added
    folder = write_folder(tmp_path / "log", deployment, {}, layers=True)
    rows = [replace(row, cycles=float(cycles)) for row, cycles in zip(
        observe_folder(folder, BOARD), spent, strict=True)]
    path = write_overlay(tmp_path / "own.yaml", learn_own(rows, load_board(BOARD)))
    after = predict_calibrated(deployment, calibration=str(path))
    assert after.certainty.time_us.holds(sum(row.cycles for row in rows) / 120)


def test_an_interval_holds_the_energy_its_powers_were_learnt_from(tmp_path: Path) -> None:
    deployment = deploy("kws", BOARD, runtime=RUNTIME)
    folder = write_folder(tmp_path / "log", deployment, {}, layers=False, power=0.5)
    rows = observe_folder(folder, BOARD)
    path = write_overlay(tmp_path / "own.yaml", learn_own(rows, load_board(BOARD)))
    after = predict_calibrated(deployment, calibration=str(path))
    assert after.certainty.energy_uj.holds(rows[0].energy_pj * 1e-6)


def test_measured_energy_moves_what_currents_are_worth(tmp_path: Path) -> None:
    observations = []
    for name in ("kws", "ic", "ad"):
        folder = write_folder(tmp_path / name, deploy(name, BOARD, runtime=RUNTIME),
                              {"conv": 0.6, "conv_wide": 0.6, "pointwise": 0.5},
                              layers=False, power=1.6)
        observations += observe_folder(folder, BOARD)
    overlay = learn_own(observations, load_board(BOARD))
    energy = overlay.entries[0].energy
    assert energy is not None and energy.rows == 3
    # three rows tell the common factor, not what draws it
    factors = dict(zip(overlay.energy_prices, np.exp(energy.log), strict=True))
    assert factors["activity"] == pytest.approx(1.6, rel=0.1)
    path = write_overlay(tmp_path / "own.yaml", overlay)
    for seen in observations:
        prediction = predict_calibrated(
            deploy(Path(seen.label).name, BOARD, runtime=RUNTIME), calibration=str(path))
        # time is predicted too, from three totals
        assert prediction.energy_uj * 1e6 == pytest.approx(seen.energy_pj, rel=0.13)
        assert prediction.certainty.energy_uj.holds(seen.energy_pj * 1e-6)


def test_units_a_calibration_does_not_read_are_refused(tmp_path: Path, kws) -> None:
    folder = write_folder(tmp_path / "kws", kws, {}, layers=True)
    samples = folder / "samples.jsonl"
    text = samples.read_text()
    samples.write_text(text.replace('"cycles"}', '"ms"}'))
    assert samples.read_text() != text
    with pytest.raises(MeasurementError, match=r"'ms' of cpu_cycles.*; accepted: cycles"):
        observe_folder(folder, BOARD)
    samples.write_text("")
    with pytest.raises(MeasurementError, match="it has no finished run"):
        observe_folder(folder, BOARD)


def test_prices_out_of_all_proportion_are_refused(tmp_path: Path, kws) -> None:
    folder = write_folder(tmp_path / "kws", kws, dict.fromkeys(TIME_PRICES, 1e7), layers=True)
    with pytest.raises(FitError, match="differ from every possible price"):
        learn_own(observe_folder(folder, BOARD), load_board(BOARD))


def test_folders_of_other_boards_networks_or_temperatures_are_refused(tmp_path: Path, kws) -> None:
    folder = write_folder(tmp_path / "kws", kws, {}, layers=False)
    assert len(observe_folder(folder, BOARD)) == 1
    for slower in ("nucleo_u575zi_q", "nucleo_f401re"):  # the second stops at 84 MHz
        with pytest.raises(MeasurementError, match="measured on nucleo_l4r5zi, not on"):
            observe_folder(folder, slower)
    text = (folder / "header.json").read_text()
    (folder / "header.json").write_text(text.replace('"warm"', '"cold"'))
    with pytest.raises(MeasurementError, match="accepted: warm measurements"):
        observe_folder(folder, BOARD)


def test_a_folder_of_a_file_is_read_from_there_or_from_the_model_given(tmp_path: Path, kws):
    """`twin measure` notes the path, as `twin import` does; older folders have none."""
    own = str(twin.export_model("kws", tmp_path / "own.tflite"))
    folder = write_folder(tmp_path / "kws", kws, {}, layers=False)
    header = json.loads((folder / "header.json").read_text()) | {"model": "own"}
    (folder / "header.json").write_text(json.dumps(header))
    with pytest.raises(MeasurementError, match=r"kws: own: no zoo network .*`calibrate --model"):
        observe_folder(folder, BOARD)
    with pytest.raises(MeasurementError, match=r"--model ad is another network than the folder's$"):
        observe_folder(folder, BOARD, model="ad")
    assert len(observe_folder(folder, BOARD, model=own)) == 1
    header["environment"] |= note_file(read_model(own))
    (folder / "header.json").write_text(json.dumps(header))
    for model in (None, "ad"):  # a folder of another network keeps to its own
        assert len(observe_folder(folder, BOARD, model=model)) == 1
    assert note_file(read_model("kws")) == {}


def test_a_change_shares_its_draws_with_what_it_is_compared_to(kws) -> None:
    faster = deploy("kws", BOARD, runtime=RUNTIME, weights="sram")
    before, after = predict_calibrated(kws), predict_calibrated(faster)
    assert after.time_us < before.time_us  # weights in SRAM wait for no flash
    shared = probability_faster(before.time_us, after.time_us, before.certainty.draw,
                                after.certainty.draw)
    unseen_entry = replace(after.certainty.draw, source=("elsewhere",))
    apart = probability_faster(before.time_us, after.time_us, before.certainty.draw, unseen_entry)
    assert shared > apart > 0.5
    same = before.certainty.draw
    assert probability_faster(10.0, 10.0, same, same) == 0.5


def test_counts_of_assumed_loops_are_no_surer_than_the_loops() -> None:
    """A little by another cache is not certain under a closed library; by fewer waits it is."""
    base = deploy("kws", "nucleo_u575zi_q", runtime="x-cube-ai@10.2.0-time")
    before = predict_calibrated(base)

    def odds(path: str, value: object) -> float:
        after = predict_calibrated(base.replace({path: value}))
        assert after.time_us < before.time_us
        return probability_faster(before.time_us, after.time_us, before.certainty.draw,
                                  after.certainty.draw)

    assert before.certainty.draw.counts_sd == BORROWED_SD
    assert 0.8 < odds("caches.icache.size_bytes", "64KiB") < NormalDist().cdf(1 / BORROWED_SD)
    assert odds("memories.flash.latency.cycles", 1) > 0.99


def test_each_replacement_policy_is_as_likely() -> None:
    draw = predict_calibrated(deploy("kws", BOARD, runtime=RUNTIME)).certainty.draw
    sure = replace(draw, row_sd=0.0, counts_sd=0.0, policies=np.array([1.0, 1.0]))
    other = replace(sure, policies=np.array([1.0, 1.2]))
    assert probability_faster(10.0, 9.0, sure, sure) == 1.0
    assert probability_faster(10.0, 9.0, sure, other) == 0.5  # Under the second it is slower.


def test_what_only_adds_waits_is_slower_for_certain() -> None:
    def wait(states):
        return predict_calibrated(deploy("ic", "nucleo_h7a3zi_q", runtime=RUNTIME)
                                  .replace({"memories.flash.wait_states": states}))

    few, more, many = wait(6), wait(7), wait(30)
    assert few.time_us < more.time_us < many.time_us
    odds = [probability_faster(few.time_us, other.time_us, few.certainty.draw,
                               other.certainty.draw) for other in (more, many)]
    assert all(chance < 0.05 for chance in odds)


def test_the_command_learns_from_folders_and_predicts_from_its_file(tmp_path: Path, kws) -> None:
    from typer.testing import CliRunner

    from twin.cli import app

    folder = write_folder(tmp_path / "kws", kws, {"conv_wide": 0.7, "pointwise": 0.5}, layers=True)
    path = tmp_path / "own.yaml"
    result = CliRunner().invoke(app, ["calibrate", "-b", BOARD, str(folder), "-o", str(path)])
    assert result.exit_code == 0, result.stderr
    for words in (RUNTIME, "pointwise", "stated sd, %", "which decide", "largest residual"):
        assert words in result.stdout
    assert "or a fault" not in result.stdout
    overlay = read_overlay(path)
    entry = overlay.entries[0]
    alike = {line.split()[0]: line for line in overlay_table(overlay, entry, [
        math.exp(log) for log in entry.time.log]).lines(200) or () if line.strip()}
    assert "x before" in alike["price"] and all(
        "1.000" in alike[name] and STANDS_IN not in alike[name] for name in TIME_PRICES)
    assert "x before" in result.stdout
    console = Console(width=80)
    with console.capture() as captured:
        console.print(overlay_table(overlay, replace(entry, time=replace(
            entry.time, residuals={"kws 3": math.log(1000)}))))
    assert "+99900.0 % (kws 3), or a fault: `twin diagnose` first" in captured.get()
    shipped = replace(entry.time, residuals={"resnet 1": 2.0})
    borrowed = replace(entry, powers_of="another board", energy=shipped)
    assert "resnet 1" not in "".join(overlay_table(overlay, borrowed).lines(200) or ())
    assert f"wrote {path}" in result.stderr and "within its stated sd" in result.stderr
    # The warning and the table's line name the same prices as fitted as one, no others.
    text = " ".join(result.stdout.split())
    (warned,) = re.findall(r": ([^:]*): no row asks for prices of their own", result.stderr)
    assert set(warned.split(", ")) == set(text.partition("fitted as one ")[2].partition(
        ":")[0].split(", "))
    (line,) = (line for line in result.stdout.splitlines() if line.startswith(str(folder)))
    before, now, measured = map(float, line.split()[-3:])
    assert abs(now / measured - 1) < 0.02 < abs(before / measured - 1)
    ended = CliRunner().invoke(app, ["predict", "kws", "-b", BOARD, "--runtime", RUNTIME,
                                    "--calibration", str(path)])
    assert ended.exit_code == 0, ended.stderr
    assert "own.yaml overlay of nucleo_l4r5zi" in ended.stdout and "90 % interval" in ended.stdout
    assert "measured here: own.yaml" in ended.stdout.replace("not measured here", "")
    for arguments, code in ((["calibrate", str(folder)], 2),
                            (["calibrate", "published", "-b", BOARD], 2),
                            (["calibrate", "-b", BOARD, str(tmp_path)], 3)):
        assert CliRunner().invoke(app, arguments).exit_code == code, arguments


@pytest.mark.parametrize("runtime", ["x-cube-ai@9.0.0", "tflm-cmsis-nn@2026"])
def test_a_price_that_takes_up_a_fault_is_doubted_wherever_it_is_used(runtime, tmp_path) -> None:
    deployment, learnt = deploy("kws", BOARD, runtime=runtime), {}
    usual = dict(zip(TIME_PRICES, np.exp(choose_calibration(deployment).time.log), strict=True))
    for factor in (1.1, 2.2):  # from 2.4 on they are taken for outliers of all prices
        folder = write_folder(tmp_path / f"{factor:g}", deployment,
                              usual | {"depthwise": factor * usual["depthwise"]}, layers=True)
        path = tmp_path / f"{factor:g}.yaml"
        calibrate(folder, BOARD, output=path)
        learnt[factor] = predict_calibrated(deployment, calibration=str(path)).certainty.calibration
    assert "doubted: " in learnt[2.2] and "depthwise at " in learnt[2.2].partition("doubted")[2]
    assert "doubted" not in learnt[1.1]


def test_layers_taken_for_outliers_of_prices_that_moved_are_called_a_fault(tmp_path) -> None:
    """Depthwise layers at four times: all other prices move with what is left of them."""
    from typer.testing import CliRunner

    from twin.cli import app

    deployment = deploy("kws", BOARD, runtime=RUNTIME)
    usual = dict(zip(TIME_PRICES, np.exp(choose_calibration(deployment).time.log), strict=True))
    for factor, is_fault in ((1.0, False), (4.0, True)):
        folder = write_folder(tmp_path / f"{factor:g}", deployment,
                              usual | {"depthwise": factor * usual["depthwise"]}, layers=True)
        result = CliRunner().invoke(app, ["calibrate", str(folder), "-b", BOARD, "-o",
                                          str(tmp_path / f"{factor:g}.yaml")])
        assert ("or a fault: `twin diagnose` first" in result.stdout) is is_fault, result.stdout


def test_a_network_further_from_its_own_log_is_named() -> None:
    rows = [Total(folder=name, before_us=8437, now_us=now_us, measured_us=8443)
            for name, now_us in (("ad", 8469), ("near", 8444))]
    assert "; ad: further from it than before" in str(totals_table(rows).title)


def test_what_nobody_measured_here_draws_what_networks_do_on_the_board(tmp_path: Path) -> None:
    """Time alone is measured: energy stays at learnt powers, not at a datasheet's currents."""
    folder = write_folder(tmp_path / "m", deploy("kws", BOARD, runtime=RUNTIME), {}, layers=True)
    unknown = [replace(one, runtime="firmware@O2")
               for one in observe_folder(folder, BOARD)]
    entry, = learn_own(unknown, load_board(BOARD)).entries
    powers = unseen_prices(load_board(BOARD))
    assert powers is not None and entry.powers_of == powers.powers_of == BOARD
    assert entry.energy == powers.entry.energy


@pytest.mark.parametrize(("runtime", "assumed"), [
    ("tflm-cmsis-nn@2026", False), ("x-cube-ai@7.3.0", True)])
def test_what_was_counted_of_the_library_is_not_assumed(runtime, assumed):
    """LSTM layers: whose loops nobody read, and whose instructions one library's counts have."""
    found = predict_calibrated(deploy("lstm", BOARD, runtime=runtime))
    assert any(layer.assumed for layer in found.layers) is assumed
    assert any("no source or data" in one for one in found.warnings) is assumed


def test_prices_are_doubted_beside_those_shipped_not_beside_datasheets() -> None:
    shipped = shipped_calibration(load_board(BOARD), "tflm-cmsis-nn@2026")
    names, learnt = shipped.time.names, shipped.entry.time
    sure = replace(learnt, prior_sd=tuple(0.3 for _ in names))
    assert "call" in sure.strained(names) and "call" in name_far(sure, names, None)
    assert not name_far(sure, names, shipped)
    moved = replace(sure, log=tuple(log + (name == "call") for name, log in zip(
        names, sure.log, strict=True)))
    assert name_far(moved, names, shipped) == ("call",)
    # where nothing of the board is shipped: one price that moved while all others stay
    for rest, doubted in ((0.0, ("depthwise",)), (0.2, ())):
        alone = replace(learnt, prior_sd=tuple(0.5 for _ in names), unidentified=(), tied=(),
                        log=tuple(0.7 if name == "depthwise" else rest for name in names))
        assert not alone.strained(names) and name_far(alone, names, None) == doubted


@pytest.mark.parametrize(("path", "now", "here"), [
    ("memories.dtcm.size_bytes", "96KiB", True), ("memories.itcm.latency.cycles", "3", True),
    ("memories.flash.read_bytes", "8", False), ("caches.l1d.enabled", "false", False)])
def test_one_question_has_one_grade_however_it_is_asked(tmp_path, path, now, here) -> None:
    """Facts changed in a copy of the board's file or by a what-if; only what the network uses."""
    board, (*sections, key) = "nucleo_h7a3zi_q", path.split(".")
    document = yaml.safe_load((SHIPPED / f"{board}.yaml").read_text())
    section = document
    for name in sections:
        section = section[name]
    old, value = section.get(key), yaml.safe_load(now)
    section[key] = [value, *old[1:]] if isinstance(old, list) else value
    copy = tmp_path / "mine.yaml"
    copy.write_text(yaml.safe_dump(document))
    found = [predict_calibrated(deploy("kws", one)) for one in (
        load_board(copy), load_board(board, overrides={path: now}), load_board(board))]
    file, what_if, shipped = found
    assert file.certainty.time_us == what_if.certainty.time_us
    assert file.certainty.energy_uj == what_if.certainty.energy_uj
    width = [math.log(one.certainty.time_us.high / one.certainty.time_us.low) for one in found]
    assert (width[1] == pytest.approx(width[2])) is here and width[1] >= width[2]
    for one in (file, what_if):
        assert grade_prediction(one) == GRADES[not here]
        assert any(path in reason for reason in one.certainty.extrapolating) is not here
        assert say_grade(one).endswith("extrapolates") is not here
    rows = predict_many([file.deployment, what_if.deployment, shipped.deployment])
    assert rows.extrapolates.tolist() == [not here, not here, False]


@pytest.mark.parametrize(("model", "changes", "grade"), [
    ("kws", {}, "measured here"), ("kws", {"network.precision": "float32"}, "not measured here"),
    ("kws", {"kernels.extension": "c"}, "not measured here"),
    ("kws", {"kernels.extension": "dsp"}, "measured here"),
    ("kws", {"clocks.cpu.frequency_hz": 1e6}, "not measured here"),
    ("kws", {"clocks.cpu.frequency_hz": 110e6}, "measured here"),
    ("lstm", {}, "not measured here")])
def test_what_nobody_measured_is_not_called_measured(model, changes, grade) -> None:
    """On a board and under a library with rows: by every table and screen alike."""
    deployment = deploy(model, "nucleo_u575zi_q").replace(changes)
    prediction = predict_calibrated(deployment)
    assert prediction.certainty.measured and grade_prediction(prediction) == grade
    row, = Deployer().predict_changed(deployment, [{}])
    assert row.grade == grade


def test_energy_has_a_grade_of_its_own() -> None:
    own, borrowed = (predict_calibrated(deploy("kws", board)) for board in (
        "nucleo_u575zi_q", "b_u585i_iot02a"))
    assert (say_grade(own), say_grade(borrowed)) == (
        "measured here", "measured here, its energy not")
    assert [grade_energy(one) for one in (own, borrowed)] == ["measured here", "not measured here"]
    cards = {one.name: one.range for one in list_answers(Report(prediction=borrowed))}
    assert cards["time"].endswith("; measured here")
    assert cards["energy"].endswith("; not measured here")
    stated = predict_calibrated(own.deployment.replace({"power.reference_ipc": 0.5}))
    assert say_grade(stated) == "measured here, its energy not"


def test_a_file_of_another_chip_takes_no_measurement_of_its_name(tmp_path) -> None:
    copy = tmp_path / "mine.yaml"
    copy.write_text(re.sub(r"(?m)^  soc: .*$", "  soc: stm32-another", (
        SHIPPED / f"{BOARD}.yaml").read_text()))
    board = load_board(copy)
    kept = load_board(copy, overrides={"clocks.cpu.frequency_hz": "100MHz"})
    assert not (board.as_shipped or kept.as_shipped)
    assert not predict_calibrated(deploy("kws", board, runtime=RUNTIME)).certainty.measured


def test_the_factor_on_stated_currents_is_shown_after_a_calibration_of_times() -> None:
    deployment = deploy("kws", "b_u585i_iot02a")
    chosen = choose_calibration(deployment)
    own = predict_calibrated(deployment, calibration=replace(chosen, origin="own.yaml"))
    text, = [line for line in own.warnings if line.startswith("energy")]
    assert "no measured energy" in text and "1.35 times" in text and "covers both" in text
    assert any("1.35 times" in value for _, value in answer_pairs(own))


def test_what_few_boards_taught_is_not_called_independent() -> None:
    found = predict_calibrated(deploy("kws", "nucleo_f746zg"))
    assert found.certainty.boards == 2
    assert "rows are of 2 boards, so not all are independent" in describe_rest(found)


def test_the_largest_cause_of_a_closed_library_is_called_assumed() -> None:
    closed, read = (dict(answer_pairs(predict_calibrated(deploy("kws", BOARD, runtime=name))))
                    for name in (RUNTIME, "tflm-cmsis-nn@2026"))
    assert closed[""].endswith("; causes assumed") and "assumed" not in read.get("", "")


def test_a_table_of_80_columns_shows_what_was_not_measured() -> None:
    deployer = Deployer()
    rows = [deployer.predict_changed(deploy("kws", "nucleo_u575zi_q"), [change])[0]
            for change in ({}, {"caches.icache.enabled": False})]
    column, = head_grade(rows)
    assert [column.cell(row).text for row in rows] == ["measured", "not"]
    assert not head_grade(rows[:1])
