"""A measurement beside a prediction: refused when of something else, complete and adding up."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from rich.console import Console

from calibration.importers.log import Log
from calibration.importers.neural_art_profiler import read_log
from calibration.measurement.measurement import BOARD_HASH, Measurement
from calibration.measurement.sample import Header, Sample
from hwmodels.board.file import change_board, hash_board
from twin.attribution.accounts import OUTSIDE, compare_sides
from twin.attribution.compatibility import agree, require_same
from twin.attribution.measured import side_of_measurement
from twin.attribution.pairing import pair_parts
from twin.attribution.predicted import side_of_prediction
from twin.attribution.side import Part, Side, Work
from twin.attribution.tasks import find_gaps, report_tasks
from twin.attribution.views import View
from twin.deployment.deploy import deploy
from twin.errors import NotTheSameError
from twin.network.operators import layer_macs
from twin.pricing.inference import predict
from twin.reports.figures.beside import draw_beside
from twin.reports.tables.difference import layers_beside, tasks_beside
from twin.reports.tables.tasks import tasks_part


@pytest.fixture(scope="module")
def prediction():
    return predict(deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2023"))


def beside(prediction, found, **work):
    """Both sides, the measured one in a folder named so."""
    ours = side_of_prediction(prediction)
    return (replace(ours, work=replace(ours.work, **work)),
            side_of_measurement(found, "folder"))


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
    ours, theirs = beside(prediction, measured(prediction))
    assert agree(ours, theirs) == ()
    account = compare_sides(ours, theirs).account("cycles")
    *layers, between = account.rows
    assert len(layers) == len(prediction.layers)
    moving = [row for row in layers if row.second]
    assert all(row.ratio == pytest.approx(0.5, abs=1e-4) for row in moving)
    assert between.name == OUTSIDE and between.second == pytest.approx(1000, abs=len(layers))
    assert sum(row.second for row in account.rows) == account.total.second
    assert account.total.first == pytest.approx(prediction.cycles, abs=1)


@pytest.mark.parametrize(("changes", "what", "level", "text"), [
    ({"architecture_id": "0123456789ab", "model_sha256": None}, "network", "refuse",
     "(0123456789ab): other networks"),
    ({"model_sha256": "0" * 64}, "network", "warn", "other weights"),
    ({"model_sha256": None, "architecture_id": None, "model": "ic"}, "network", "warn",
     "names ic, the other side kws"),
    ({"model_sha256": None, "architecture_id": None, "model": "network"}, "network", "warn",
     "does not say which it is of"),
    ({"board": "nucleo_u575zi_q"}, "board", "refuse", "nucleo_l4r5zi -> nucleo_u575zi_q"),
    ({"board": "not known"}, "board", "warn", "--board"),
    ({"board": "mine", "environment": (("board_sha256", "0" * 64),)}, "board", "refuse",
     "nucleo_l4r5zi -> mine; predict with that board's file (-b FILE)"),
    ({"board": "a desk"}, "board", "warn", "names its board a desk, which is none of ours"),
    ({"clocks_hz": (("cpu", 80e6),)}, "clock cpu", "refuse",
     "--clock 80MHz predicts at its clock"),
    ({"clocks_hz": (("cpu", 80e6),), "kind": "simulated"}, "clock cpu", "refuse", "--clock 80MHz"),
    ({"clocks_hz": (("cpu", 119.5e6),)}, "clock cpu", "warn", "120 MHz -> 119.5 MHz"),
    ({"environment": (("inferred_runtime", "tflm"),)}, "runtime", "warn", "inferred from"),
    ({"clocks_hz": (("timer", 64e6),)}, "clock cpu", "warn", "at 120 MHz; the log's ticks are of"),
    ({"runtime": "x-cube-ai@9.0.0"}, "runtime", "warn", "-> x-cube-ai@9.0.0: other kernels"),
    ({"runtime": "tflm-cmsis-nn@2.3.1"}, "runtime", "warn", "2.3.1"),
    ({"runtime": "not known"}, "runtime", "warn", "does not say which"),
    ({"temperature": "cold"}, "temperature", "warn", "warm -> cold"),
    ({"placement": (("weights", "sram"),)}, "placement of weights", "warn", "flash -> sram"),
])
def test_what_is_of_something_else_is_told(prediction, changes, what, level, text):
    ours, theirs = beside(prediction, measured(prediction, **changes))
    (finding,) = agree(ours, theirs)
    assert (finding.what, finding.level) == (what, level)
    assert text in finding.text
    if level == "refuse":
        with pytest.raises(NotTheSameError,
                           match=r"folder: not of the same thing as kws on.*--anyway"):
            require_same(ours, theirs)
    assert require_same(ours, theirs, anyway=True) == (finding,)


def test_two_builds_of_a_program_have_no_weights(prediction):
    old = replace(side_of_prediction(prediction), runtime="program@elf", part="function")
    (finding,) = agree(old, replace(old, model="b.elf", model_sha256="0" * 64))
    assert (finding.what, finding.level) == ("program", "note")
    assert f"{old.model} -> b.elf: another build of the program" in finding.text
    assert agree(old, replace(old, architecture_id="0123456789ab")) == ()
    (grown,) = agree(old, replace(old, model_sha256="0" * 64, architecture_id="0123456789ab"))
    assert grown.text.partition(";")[0].endswith("another build of the program")


@pytest.mark.parametrize(("changes", "what", "level"), [
    ({}, None, None),
    ({"clocks_hz": {"cpu": 80e6}}, "clock cpu", "note"),
    ({"runtime": "cmsis-nn@6.0"}, "runtime", "note"),
    ({"temperature": "cold"}, "temperature", "note"),
    ({"placement": {"weights": "sram"}}, "placement of weights", "note"),
    ({"calibration": "b.yaml"}, "calibration", "note"),
    ({"model_sha256": "0" * 64}, "network", "note"),
    ({"architecture_id": "0123456789ab"}, "network", "refuse"),
    ({"board": "nucleo_u575zi_q"}, "board", "refuse"),
])
def test_between_two_predictions_what_may_change_is_noted(prediction, changes, what, level):
    ours = side_of_prediction(prediction)
    found = agree(ours, replace(ours, **changes))
    assert [(one.what, one.level) for one in found] == ([(what, level)] if what else [])


def test_a_board_file_that_says_something_else_is_told(prediction):
    board = prediction.deployment.board
    slower = change_board(board, {"clocks.cpu.frequency_hz": 80e6}, follow_clock=True)
    assert hash_board(slower) == hash_board(board)
    wider = hash_board(change_board(board, {"memories.flash.read_bytes": 16}))
    for told, levels in ((hash_board(board), []), (wider, ["warn"])):
        ours, theirs = beside(prediction, measured(prediction, environment=((BOARD_HASH, told),)))
        assert [one.level for one in agree(ours, theirs) if one.what == "board file"] == levels


def test_measured_beside_simulated_and_by_another_compiler_is_noted(prediction):
    board = side_of_measurement(measured(prediction, environment=(("compiler", "gcc 12"),)))
    emulator = side_of_measurement(measured(prediction, kind="simulated", environment=(
        ("compiler", "gcc 13"),)))
    assert [(one.level, str(one)) for one in agree(board, emulator)] == [
        ("note", "kind: measured -> simulated"), ("note", "compiler: gcc 12 -> gcc 13")]


def test_refusals_stand_first_and_a_board_is_known_by_its_aliases(prediction):
    found = agree(*beside(prediction, measured(
        prediction, temperature="cold", board="nucleo_u575zi_q", runtime="cmsis-nn@6.0")))
    assert [one.level for one in found] == ["refuse", "warn", "warn"]
    ours = side_of_prediction(prediction)
    alias = prediction.deployment.board.aliases[0]
    assert agree(ours, replace(ours, board=alias)) == ()


@pytest.mark.parametrize(("environment", "counted", "text"), [
    ({"operators": "CONV_2D,SOFTMAX"}, {}, "lists 2 operators, kws has 13"),
    ({"operators": ",".join(["SOFTMAX"] * 13)}, {}, "its operator 0 is SOFTMAX"),
    ({"inputs": "uint8[1,224,224,3]"}, {}, "those of kws have 490 elements"),
    ({}, {"macs": 1e6}, "it counts 1,000,000 MACs, kws has 2,656,768"),
    ({}, {"ops": 9e9}, "it counts 9,000,000,000 operations"),
])
def test_a_network_without_a_hash_is_told_by_its_work(prediction, environment, counted, text):
    samples = tuple(Sample(run=0, counter=name, unit=unit, value=value) for name, unit, value in (
        *((name, "count", value) for name, value in counted.items()), ("cpu_cycles", "cycles", 9)))
    found = Measurement(samples=samples, header=header(
        prediction, model_sha256=None, architecture_id=None, model="not known", runtime="tflm",
        environment=tuple(environment.items())))
    for counted_ours in (5.4e6, None):  # an accelerator's prediction counts them, a core's MACs
        first = agree(*beside(prediction, found, operations=counted_ours))[0]
        assert first.level == "refuse" and text in first.text


def test_operators_and_macs_of_a_log_prove_the_network(prediction):
    graph = prediction.deployment.graph
    time = Sample(run=0, counter="cpu_cycles", unit="cycles", value=9)
    macs = [Sample(run=0, layer=layer.index, counter="estimated_macs", unit="MACs",
                   value=layer_macs(graph, layer)) for layer in graph.layers]
    tags = ",".join(layer.op.upper()[:11] for layer in graph.layers)
    head = header(prediction, model_sha256=None, architecture_id=None, model="not known",
                  runtime="tflm", environment=(("operators", tags),))

    def look(head, samples=()):
        return agree(*beside(prediction, Measurement(header=head, samples=(time, *samples))))

    assert look(head, macs) == ()
    claimed = header(prediction, environment=(("operators", "CONV_2D"),), runtime="tflm")
    assert any(one.level == "refuse" for one in look(claimed))  # whatever hash a user gave it
    macs[3] = replace(macs[3], value=1.0)
    assert any("operator 3 has 1 MACs" in one.text for one in look(head, macs))


def test_layers_that_cannot_be_told_apart_are_left_out(prediction):
    found = measured(prediction)
    aliased = tuple(one for one in found.samples if one.layer != 10)  # the reshape
    pairs = pair_parts(*beside(prediction, replace(found, samples=aliased))).pairs
    assert {ours.index: theirs.index for ours, theirs in pairs}[11] == 11
    few = tuple(one for one in found.samples if one.layer in (0, 1, None))
    assert pair_parts(*beside(prediction, replace(found, samples=few))).pairs == ()
    difference = compare_sides(*beside(prediction, replace(found, samples=few)))
    assert difference.account("cycles").parts == ()
    assert "only the inference is compared" in difference.pairing.note
    assert "only the inference is compared" in show(layers_beside(difference))


def show(part) -> str:
    console = Console(width=250)
    with console.capture() as captured:
        console.print(part)
    return captured.get()


def test_tables_name_both_sides(prediction):
    text = show(layers_beside(compare_sides(*beside(prediction, measured(prediction)))))
    assert "measured" in text and OUTSIDE in text and "n = 13" in text
    other = compare_sides(*beside(prediction, measured(prediction, kind="predicted")))
    assert "other prediction" in show(layers_beside(other))


@pytest.fixture(scope="module")
def npu():
    return predict(deploy("kws", "stm32n6570_dk", runtime="neural-art"))


@pytest.fixture(scope="module")
def epochs(npu):
    return side_of_prediction(npu)


def test_every_line_of_epochs_is_there_and_sums_to_the_whole(epochs):
    report = report_tasks(epochs, epochs)
    assert report.paired_by == "name"
    for name in ("pre, MCU cycles", "core, MCU cycles", "post, MCU cycles", "core, NPU cycles",
                 "busif0, read, bytes", "busif1, write, bursts of 8", "busif (total), read, bytes",
                 "stream engines in, active NPU cycles", "NPU cache, read miss",
                 "pools (total), write, bytes", "ops"):
        parts = [pair.lines[name].second for pair in report.pairs if name in pair.lines]
        assert report.whole[name].second == pytest.approx(math.fsum(parts)), name
        assert report.whole[name].ratio in (None, 1.0)
    for pair in report.pairs:
        assert pair.lines["pre + core + post, MCU cycles"].first == pytest.approx(math.fsum(
            pair.lines[f"{phase}, MCU cycles"].first for phase in ("pre", "core", "post")))
    assert report.whole["pre + core + post, MCU cycles"].first == pytest.approx(
        report.stated["MCU cycles"].first)


def test_extra_epochs_count_to_their_hybrid_one():
    epoch = Part(index=0, name="EpochBlock_1", op="HYBRID", amounts={}, counts={
        "pre_cycles": 1.0, "core_cycles": 2.0, "post_cycles": 3.0, "extra_pre_cycles": 10.0,
        "extra_core_cycles": 20.0, "extra_post_cycles": 30.0})
    one = Side(kind="predicted", source="", model="m", model_sha256=None, architecture_id=None,
               board="b", runtime="neural-art", temperature=None, clocks_hz={}, placement={},
               part="epoch", parts=(epoch,), whole=Part(index=None, amounts={}), work=Work())
    (pair,) = report_tasks(one, one).pairs
    assert pair.lines["pre, MCU cycles"].second == 11
    assert pair.lines["pre + core + post, MCU cycles"].second == 66


def test_other_schedules_are_paired_in_order_and_say_so(epochs):
    renamed = replace(epochs, runs=1, parts=tuple(
        replace(epoch, name=f"EpochBlock_{900 + place}", index=2 * place)
        for place, epoch in enumerate(epochs.parts[:-1])))
    report = report_tasks(epochs, renamed)
    assert report.paired_by == "order"
    assert report.pairs[-1].second is None
    text = show(tasks_beside(report, ("predicted", "measured")))
    assert "paired in order" in text and "12 and 11 epochs" in text


@pytest.mark.parametrize("side", ["layers", "epochs"])
def test_pictures_have_a_pair_of_bars_each(prediction, epochs, side):
    pytest.importorskip("matplotlib", reason="pictures need the plot extra")
    view = View(difference=compare_sides(*beside(prediction, measured(prediction)))) \
        if side == "layers" else View(difference=compare_sides(epochs, epochs),
                                      tasks=report_tasks(epochs, epochs))
    first = draw_beside(view).axes[0]
    names = [label.get_text() for label in first.get_yticklabels()]
    assert names[0] == ("0 conv_2d" if side == "layers" else "EpochBlock_1 HW")
    bars = [bar for bar in first.patches if bar.get_width()]
    # each row is a pair; outside layers nothing is predicted
    assert len(bars) == 2 * len(names) - (side == "layers")


def test_a_measurement_that_is_not_whole_says_so_and_only_shared_epochs_are_summed(npu, epochs):
    console = Console(width=300)
    with console.capture() as captured:
        console.print(tasks_part(side_of_prediction(npu)))
    whole = read_log(Log(where="log", text=captured.get()))
    assert find_gaps(whole, "epoch") == ()
    cut = replace(whole, samples=whole.samples[:290])
    (gap,) = find_gaps(cut, "epoch")
    assert gap.startswith("the folder has lost") and gap.endswith("of 12 epochs its log had")
    without = replace(whole, samples=tuple(one for one in whole.samples if one.layer is not None))
    assert find_gaps(without, "epoch") == ("the folder has lost the totals its log had",)
    for kept in range(240, 310):  # between and within epochs: phases, bytes, engines
        cut = replace(whole, samples=whole.samples[:kept])
        report = report_tasks(epochs, side_of_measurement(cut), gaps=find_gaps(cut, "epoch"))
        assert not report.stated and report.whole
        # what was imported is rounded, an epoch that may be cut within is not summed
        assert all(0.97 < figure.ratio < 1.03 for figure in report.whole.values()
                   if figure.ratio is not None), (kept, report.whole)
    text = show(tasks_beside(report, ("predicted", "measured")))
    assert "whole model: sums" not in text and "not whole" in text


def test_two_of_a_kind_at_two_clocks_are_told_of_wait_states(prediction):
    ours, _ = beside(prediction, measured(prediction))
    (finding,) = agree(ours, replace(ours, clocks_hz={**ours.clocks_hz, "cpu": 80e6}))
    assert finding.level == "note" and "120 MHz -> 80 MHz; cycles of wait states" in finding.text
