"""A measurement beside a prediction: refused when of something else, complete and adding up."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from rich.console import Console

from calibration.errors import MeasurementError
from calibration.importers.log import Log
from calibration.importers.npu_profiler import read_log
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Header, Sample
from twin.attribution.agreement import (
    Subject,
    find_mismatches,
    order_layers,
    require_agreement,
)
from twin.attribution.epochs import compare_epochs, find_gaps
from twin.attribution.layers import compare_layers
from twin.deployment.deployment import deploy
from twin.network.operators import layer_macs
from twin.prediction.accelerator.report import EpochSheet, ModelSheet, make_sheet, read_sheet
from twin.prediction.prediction import predict
from twin.reports.figures.beside import draw_beside
from twin.reports.tables.beside import epochs_beside, layers_beside
from twin.reports.tables.epochs import epochs_part


@pytest.fixture(scope="module")
def prediction():
    return predict(deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn"))


def subject(prediction, **changes):
    deployment = prediction.deployment
    return replace(Subject(graph=deployment.graph, board=deployment.board, temperature="warm",
                           runtime=deployment.runtime.identity), **changes)


def header(prediction, **changes) -> Header:
    graph = prediction.deployment.graph
    return replace(Header(kind="measured", model=graph.name, model_sha256=graph.sha256,
                          architecture_id=graph.architecture_id, board="nucleo_l4r5zi",
                          runtime="tflm-cmsis-nn@2023", clocks_hz=(("cpu", 120e6),),
                          temperature="warm", source="a log"), **changes)


def measured(prediction, factor=2.0, **changes) -> Measurement:
    """A measurement with `factor` times the predicted cycles, and 1,000 between layers."""
    samples = [Sample(run=0, layer=layer.index, counter="cpu_cycles", clock="cpu", unit="cycles",
                      value=factor * layer.bill.cycles("cpu")) for layer in prediction.layers]
    whole = math.fsum(sample.value for sample in samples) + 1000
    samples.append(Sample(run=0, counter="cpu_cycles", clock="cpu", unit="cycles", value=whole))
    return Measurement(header=header(prediction, **changes), samples=tuple(samples))


def test_what_agrees_is_compared_layer_by_layer_and_sums(prediction):
    found = measured(prediction)
    assert find_mismatches(subject(prediction), found) == ()
    comparison = compare_layers(prediction, found)
    *layers, between, whole = comparison.rows
    assert len(layers) == len(prediction.layers)
    moving = [row.figures["cpu_cycles"] for row in layers if row.figures["cpu_cycles"].measured]
    assert all(figure.ratio == pytest.approx(0.5) for figure in moving)
    assert between.figures["cpu_cycles"].measured == pytest.approx(1000)
    parts = [row.figures["cpu_cycles"].measured for row in (*layers, between)]
    assert math.fsum(parts) == pytest.approx(whole.figures["cpu_cycles"].measured)
    assert whole.figures["cpu_cycles"].predicted == pytest.approx(prediction.cycles)


@pytest.mark.parametrize(("changes", "what", "refuses", "text"), [
    ({"architecture_id": "0123456789ab", "model_sha256": None}, "network", True, "it is of kws"),
    ({"model_sha256": "0" * 64}, "network", False, "other weights"),
    ({"model_sha256": None, "architecture_id": None, "model": "ic"}, "network", False,
     "names ic, the prediction kws"),
    ({"board": "nucleo_u575zi_q"}, "board", True, "of nucleo_u575zi_q, not of nucleo_l4r5zi"),
    ({"board": "not known"}, "board", False, "--board"),
    ({"board": "a desk"}, "board", False, "names its board a desk, which is none of ours"),
    ({"clocks_hz": (("cpu", 80e6),)}, "clock", True, "--clock 80MHz predicts at its clock"),
    ({"clocks_hz": (("cpu", 80e6),), "kind": "simulated"}, "clock", True, "--clock 80MHz"),
    ({"runtime": "x-cube-ai@9.0.0"}, "runtime", False, "of x-cube-ai@9.0.0"),
    ({"runtime": "tflm-cmsis-nn@2.3.1"}, "runtime", False, "2.3.1"),
    ({"temperature": "cold"}, "temperature", False, "is cold"),
])
def test_what_is_of_something_else_is_told(prediction, changes, what, refuses, text):
    found = measured(prediction, **changes)
    (mismatch,) = find_mismatches(subject(prediction), found)
    assert (mismatch.what, mismatch.refuses) == (what, refuses)
    assert text in mismatch.text
    if refuses:
        with pytest.raises(MeasurementError, match=r"folder: not a measurement of this.*--anyway"):
            require_agreement(subject(prediction), found, "folder")
    assert require_agreement(subject(prediction), found, "folder", anyway=True) == [
        f"{what}: {mismatch.text}"]


@pytest.mark.parametrize(("environment", "counted", "text"), [
    ({"operators": "CONV_2D,SOFTMAX"}, {}, "lists 2 operators, kws has 13"),
    ({"operators": ",".join(["SOFTMAX"] * 13)}, {}, "its operator 0 is SOFTMAX"),
    ({"inputs": "uint8[1,224,224,3]"}, {}, "those of kws have 490 elements"),
    ({}, {"macs": 1e6}, "it counts 1,000,000 MACs, kws has 2,656,768"),
    ({}, {"ops": 9e9}, "it counts 9,000,000,000 operations"),
])
def test_a_network_without_a_hash_is_told_by_its_work(prediction, environment, counted, text):
    samples = tuple(Sample(run=0, counter=name, unit="count", value=value)
                    for name, value in counted.items())
    found = Measurement(samples=samples, header=header(
        prediction, model_sha256=None, architecture_id=None, model="not known", runtime="tflm",
        environment=tuple(environment.items())))
    first = find_mismatches(subject(prediction, operations=5.4e6), found)[0]
    assert first.refuses and text in first.text


def test_operators_and_macs_of_a_log_prove_the_network(prediction):
    graph = prediction.deployment.graph
    macs = [Sample(run=0, layer=layer.index, counter="estimated_macs", unit="MACs",
                   value=layer_macs(graph, layer)) for layer in graph.layers]
    tags = ",".join(layer.op.upper()[:11] for layer in graph.layers)
    head = header(prediction, model_sha256=None, architecture_id=None, model="not known",
                  runtime="tflm", environment=(("operators", tags),))
    assert find_mismatches(subject(prediction), Measurement(header=head, samples=tuple(macs))) == ()
    claimed = header(prediction, environment=(("operators", "CONV_2D"),), runtime="tflm")
    assert any(one.refuses for one in find_mismatches(subject(prediction), Measurement(
        header=claimed)))  # whatever hash a user gave it
    macs[3] = replace(macs[3], value=1.0)
    total = Measurement(header=head, samples=tuple(macs))
    assert any("operator 3 has 1 MACs" in one.text for one in find_mismatches(
        subject(prediction), total))


def test_layers_that_cannot_be_told_apart_are_left_out(prediction):
    graph = prediction.deployment.graph
    found = measured(prediction)
    aliased = tuple(one for one in found.samples if one.layer != 10)  # the reshape
    assert order_layers(graph, replace(found, samples=aliased))[11] == 11
    few = tuple(one for one in found.samples if one.layer in (0, 1, None))
    assert order_layers(graph, replace(found, samples=few)) is None
    comparison = compare_layers(prediction, replace(found, samples=few))
    assert [row.label for row in comparison.rows] == ["total"]
    assert "only the inference is compared" in comparison.note


def show(part) -> str:
    console = Console(width=250)
    with console.capture() as captured:
        console.print(part)
    return captured.get()


def test_tables_name_both_sides(prediction):
    text = show(layers_beside(compare_layers(prediction, measured(prediction))))
    assert "measured" in text and "between layers" in text and "n = 13" in text
    other = measured(prediction, kind="predicted")
    assert "other prediction" in show(layers_beside(compare_layers(prediction, other)))


@pytest.fixture(scope="module")
def sheet():
    return make_sheet(predict(deploy("kws", "stm32n6570_dk", runtime="neural-art")))


def test_every_line_of_epochs_is_there_and_sums_to_the_whole(sheet):
    comparison = compare_epochs(sheet, sheet)
    assert comparison.paired_by == "name"
    for name in ("pre, MCU cycles", "core, MCU cycles", "post, MCU cycles", "core, NPU cycles",
                 "busif0, read, bytes", "busif1, write, bursts of 8", "busif (total), read, bytes",
                 "stream engines in, active NPU cycles", "NPU cache, read miss",
                 "pools (total), write, bytes", "ops"):
        parts = [pair.lines[name].measured for pair in comparison.pairs if name in pair.lines]
        assert comparison.whole[name].measured == pytest.approx(math.fsum(parts)), name
        assert comparison.whole[name].ratio in (None, 1.0)
    for pair in comparison.pairs:
        assert pair.lines["pre + core + post, MCU cycles"].predicted == pytest.approx(math.fsum(
            pair.lines[f"{phase}, MCU cycles"].predicted for phase in ("pre", "core", "post")))
    assert comparison.whole["pre + core + post, MCU cycles"].predicted == pytest.approx(
        comparison.stated["MCU cycles"].predicted)


def test_extra_epochs_count_to_their_hybrid_one():
    epoch = EpochSheet(index=0, title="EpochBlock_1", kind="HYBRID", counters={
        "pre_cycles": 1.0, "core_cycles": 2.0, "post_cycles": 3.0, "extra_pre_cycles": 10.0,
        "extra_core_cycles": 20.0, "extra_post_cycles": 30.0})
    one = ModelSheet(host_hz=1.0, npu_hz=1.0, epochs=(epoch,), totals={})
    (pair,) = compare_epochs(one, one).pairs
    assert pair.lines["pre, MCU cycles"].measured == 11
    assert pair.lines["pre + core + post, MCU cycles"].measured == 66


def test_other_schedules_are_paired_in_order_and_say_so(sheet):
    renamed = replace(sheet, epochs=tuple(
        replace(epoch, title=f"EpochBlock_{900 + place}", index=2 * place)
        for place, epoch in enumerate(sheet.epochs[:-1])))
    comparison = compare_epochs(sheet, renamed)
    assert comparison.paired_by == "order"
    assert comparison.pairs[-1].measured is None
    text = show(epochs_beside(comparison))
    assert "paired in order" in text and "12 and 11 epochs" in text


@pytest.mark.parametrize("side", ["layers", "epochs"])
def test_pictures_have_a_pair_of_bars_each(prediction, sheet, side):
    pytest.importorskip("matplotlib", reason="pictures need the plot extra")
    comparison = compare_layers(prediction, measured(prediction)) if side == "layers" \
        else compare_epochs(sheet, sheet)
    figure = draw_beside("kws on a board", comparison)
    first = figure.axes[0]
    names = [label.get_text() for label in first.get_yticklabels()]
    assert names[0] == ("0 conv_2d" if side == "layers" else "EpochBlock_1 HW")
    bars = [bar for bar in first.patches if bar.get_width()]
    # each row is a pair; between layers nothing is predicted
    assert len(bars) == 2 * len(names) - (side == "layers")


def test_a_measurement_that_is_not_whole_says_so_and_only_shared_epochs_are_summed(sheet):
    console = Console(width=300)
    with console.capture() as captured:
        console.print(epochs_part(sheet))
    whole = read_log(Log(where="log", text=captured.get()))
    assert find_gaps(whole) == ()
    cut = replace(whole, samples=whole.samples[:300])
    (gap,) = find_gaps(cut)
    assert gap.startswith("the folder has lost") and gap.endswith("of 12 epochs its log had")
    without = replace(whole, samples=tuple(one for one in whole.samples if one.layer is not None))
    assert find_gaps(without) == ("the folder has lost the totals its log had",)
    comparison = compare_epochs(sheet, read_sheet(cut), gaps=find_gaps(cut))
    assert not comparison.stated
    # what was imported is rounded, an epoch cut within is not summed
    assert all(0.97 < figure.ratio < 1.03 for name, figure in comparison.whole.items()
               if figure.ratio is not None), comparison.whole
    text = show(epochs_beside(comparison))
    assert "whole model: sums" not in text and "not whole" in text
