"""The views of one difference say the same of one pair: total, gap and causes."""

import dataclasses
import json
import shutil

import pytest
from made_measurements import check_sums, measure
from made_predictions import make_prediction
from typer.testing import CliRunner

import twin
from calibration.measurement.measurement import Measurement, write_measurement
from calibration.measurement.sample import Sample
from twin.attribution.document import (
    comparison_document,
    difference_document,
    load_schema,
    what_if_document,
)
from twin.attribution.folders import note_file
from twin.attribution.measured import side_of_measurement
from twin.attribution.predicted import side_of_prediction
from twin.attribution.views import attribute, diff, set_what_if
from twin.cli import app
from twin.deployment.deploy import deploy
from twin.documents import dump_document
from twin.errors import UsageError
from twin.network.readers import read_model
from twin.pricing.document import to_document
from twin.pricing.inference import predict

PHASES = ("pre_cycles", "core_cycles", "post_cycles", "core_npu_cycles")


def run(*arguments: object) -> dict:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def said(document):
    """Of each quantity: total, gap, and what every cause moved."""
    return {one["quantity"]: (one["total"]["first"], one["total"]["second"], one["total"]["gap"],
                              one["total"]["unexplained"],
                              {tuple(cause["causes"]): cause["gap"]
                               for cause in one["total"]["causes"]})
            for one in document["accounts"]}


def test_compare_and_attribute_say_the_same_of_a_measurement(tmp_path):
    prediction = predict(deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn"))
    told = {"model": "kws", "runtime": "cmsis-nn@6.0"}
    write_measurement(tmp_path / "m", measure(
        prediction, factor=1.3, counters={"stall_frontend": lambda layer: 500.0}, **told))
    compared = run("compare", "kws", "-b", "nucleo_l4r5zi", "--measured", tmp_path / "m",
                   "--runtime", "cmsis-nn", "--calibration", "none", "--json")
    attributed = run("attribute", "kws", tmp_path / "m", "--no-diagnose", "--calibration", "none",
                     "--json")
    assert (compared["kind"], attributed["kind"]) == ("comparison", "attribution")
    assert said(compared) == said(attributed)
    assert compared["accounts"] == attributed["accounts"]
    assert said(compared)["cycles"][2] > 0


def test_diff_and_what_if_say_the_same_of_two_predictions(tmp_path):
    base = deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    before, after = predict(base), predict(base.replace({"placement.weights": "sram"}))
    for name, one in (("a", before), ("b", after)):
        (tmp_path / f"{name}.json").write_text(dump_document(to_document(one)))
    moved = run("whatif", "kws", "-b", "nucleo_l4r5zi", "--runtime", "cmsis-nn", "--set",
                "placement.weights=sram", "--calibration", "none", "--json")
    diffed = run("diff", tmp_path / "a.json", tmp_path / "b.json", "--json")
    assert said(moved) == said(diffed)
    assert moved["accounts"] == diffed["accounts"]
    assert all(unexplained == 0 for quantity, (_, _, _, unexplained, _) in said(moved).items()
               if quantity != "instructions")


def test_four_views_of_one_pair_agree():
    """The second prediction, written as a measurement of its cycles, has the same totals."""
    before, after = make_prediction(4), make_prediction(4, seed=9)
    first, second = side_of_prediction(before), side_of_prediction(after)
    counted = dataclasses.replace(
        second, kind="measured", runs=1,
        parts=tuple(dataclasses.replace(part, causes={}) for part in second.parts),
        whole=dataclasses.replace(second.whole, causes={}))
    measured = attribute(first, counted)
    documents = (what_if_document(set_what_if(before, after, {})),
                 difference_document(diff(first, second), None),
                 comparison_document(measured, "attribution"),
                 comparison_document(measured, "comparison"))
    totals = [{name: values[:3] for name, values in said(one).items()} for one in documents]
    assert totals[0] == totals[1] == totals[2] == totals[3]
    assert [one["schema"] for one in documents] == [2] * 4
    assert said(documents[0]) == said(documents[1]) and said(documents[2]) == said(documents[3])
    causes = [{name: set().union(*map(set, values[4])) for name, values in said(one).items()
               if name in ("time", "energy")} for one in documents]
    assert causes[0] == causes[1] and causes[2] == causes[3]
    assert causes[0]["energy"] == causes[2]["energy"]  # nothing counts energy: cause by cause
    shape = {"first", "second", "findings", "accounts", "sizes", "counters", "notes"}
    assert all(shape <= set(one) for one in documents)
    assert shape <= set(load_schema()["required"])


def npu_measurement(prediction, extra=None):
    """What a profiler would say of a prediction; `extra` adds counters to an epoch by name."""
    samples = []
    for epoch in prediction.tasks:
        counted = dict(zip(PHASES, (epoch.pre_cpu_cycles, epoch.core_cpu_cycles,
                                    epoch.post_cpu_cycles, epoch.run.core_npu_cycles),
                           strict=True))
        for name, value in (extra or {}).items():
            counted[name] = counted.get(name, 0.0) + value
        samples += [Sample(run=0, layer=epoch.index, counter=name, unit="cycles",
                           clock="npu" if "npu" in name else "cpu", value=round(value))
                    for name, value in counted.items()]
    header = dataclasses.replace(
        measure(make_prediction(1)).header, board="stm32n6570_dk", model="kws",
        runtime="neural-art@3.0.0", model_sha256=None,
        architecture_id=prediction.deployment.graph.architecture_id,
        clocks_hz=tuple(side_of_prediction(prediction).clocks_hz.items()))
    return Measurement(samples=tuple(samples), header=header)


@pytest.fixture(scope="module")
def npu():
    return predict(deploy("kws", "stm32n6570_dk", runtime="neural-art"))


@pytest.mark.parametrize(("phase", "group"), [
    ("pre_cycles", "host"), ("post_cycles", "host"), ("extra_pre_cycles", "host"),
    ("extra_core_cycles", "host"), ("extra_post_cycles", "host"),
    ("core_npu_cycles", "accelerator")])
def test_every_phase_of_an_epoch_is_in_the_attribution(npu, phase, group):
    """4,000 cycles more in a phase of each epoch are told by its clock, and by nothing else."""
    more = {phase: 4000.0}
    ours = side_of_prediction(npu)
    clocks = ours.clocks_hz
    clock = "npu" if group == "accelerator" else "cpu"
    if clock == "npu":  # the core waits as long
        more["core_cycles"] = 4000.0 * clocks["cpu"] / clocks["npu"]
    plain = attribute(ours, side_of_measurement(npu_measurement(npu)))
    found = attribute(ours, side_of_measurement(npu_measurement(npu, more)))
    check_sums(found)
    expected_ns = 4000 / clocks[clock] * 1e9
    before, after = plain.account("time"), found.account("time")
    for old, new in zip(before.parts, after.parts, strict=True):
        assert new.second - old.second == pytest.approx(expected_ns, abs=2)
        gaps = [{line.counter.partition(",")[0]: line.gap for line in row.lines if line.counter}
                for row in (old, new)]
        assert gaps[1][group] - gaps[0][group] == pytest.approx(expected_ns, abs=2)
        other = "host" if group == "accelerator" else "accelerator"
        assert gaps[1][other] == gaps[0][other]
        assert abs(new.unexplained - old.unexplained) <= 3


def test_what_a_change_makes_surely_faster_its_opposite_makes_slower():
    fast = twin.deploy("ad", "nucleo_l4r5zi")
    slow = fast.replace({"clocks.cpu.frequency_hz": "80MHz"})
    one, other = twin.predict(fast), twin.predict(slow)
    there, back = set_what_if(other, one, {}), set_what_if(one, other, {})
    assert there.odds > 0.99 and there.odds + back.odds == pytest.approx(1)
    plain = [twin.predict(deployment, calibration="none") for deployment in (fast, slow)]
    assert set_what_if(*plain, {}).odds is None


def test_an_overlay_does_not_judge_what_it_was_learnt_from(tmp_path):
    deployment = deploy("ad", "nucleo_l4r5zi", runtime="cmsis-nn")
    write_measurement(tmp_path / "m", measure(predict(deployment), factor=1.4, model="ad",
                                              runtime=deployment.runtime.identity))
    own = tmp_path / "own.yaml"
    twin.calibrate([tmp_path / "m"], "nucleo_l4r5zi", output=own)
    with pytest.raises(UsageError, match=r"own.yaml was learnt from .*m: its faults"):
        twin.diagnose(tmp_path / "m", calibration=own)
    seen = twin.attribute("ad", tmp_path / "m", calibration=own)
    assert seen.diagnosis is None
    assert "own.yaml was learnt from" in seen.remarks[0]
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "m", other)
    with pytest.raises(UsageError, match=r"own.yaml was learnt from"):
        twin.diagnose(other, calibration=own)
    write_measurement(tmp_path / "again", measure(predict(deployment), factor=1.41, model="ad",
                                                  runtime=deployment.runtime.identity))
    assert twin.attribute("ad", tmp_path / "again", calibration=own).diagnosis is not None


def test_layers_of_an_own_file_are_named_where_two_measurements_are_compared(tmp_path):
    """The header's name is the file's stem; the header notes where the file is."""
    own = twin.export_model("kws", tmp_path / "own.tflite")
    graph = read_model(own)
    measured = measure(predict(deploy(graph, "nucleo_l4r5zi")), runtime="firmware", model="own",
                       model_sha256=graph.sha256, environment=tuple(note_file(graph).items()))
    side = side_of_measurement(measured)
    assert not any(part.name for part in side.parts)
    assert [part.name for part in diff(side, side).first.parts if part.index is not None] == [
        graph.layers[part.index].name for part in side.parts if part.index is not None]


def test_layers_that_take_longer_than_their_inference_are_named(tmp_path):
    prediction = predict(deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn"))
    measured = measure(prediction, model="kws", runtime="cmsis-nn@6.0")
    longer = dataclasses.replace(measured, samples=tuple(
        dataclasses.replace(one, value=1.2 * one.value) if one.layer is not None else one
        for one in measured.samples))
    write_measurement(tmp_path / "m", measured)
    write_measurement(tmp_path / "n", longer)
    said = [" ".join(twin.attribute(prediction, tmp_path / name, verdicts=False).remarks)
            for name in "mn"]
    assert "layers: those of" not in said[0]
    assert "sum to 1.2" in said[1]
