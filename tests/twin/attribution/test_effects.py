"""What a what-if is said to have done: nothing, or the contrary of what was meant; remarks."""

from dataclasses import replace

import numpy as np
import pytest
from made_graphs import one_layer, tensor
from typer.testing import CliRunner

from hwmodels.board.file import load_board
from twin import what_if
from twin.attribution.effects import list_effects
from twin.cli import app
from twin.deployment.deploy import deploy
from twin.network.graph import Window
from twin.pricing.inference import predict
from twin.reports.page.differences import describe_what_if

BOARD = load_board("stm32n6570_dk")
KWS = deploy("kws", BOARD, runtime="neural-art")


def effects(deployment, changes):
    before, after = predict(deployment), predict(deployment.replace(changes))
    return list(list_effects(before, after, changes,
                             lambda others: predict(deployment.replace(others))))


@pytest.mark.parametrize(("path", "value", "why"), [
    ("npu.cache.enabled", "false", "read once and in order"),
    ("npu.units.CONV_ACC.count", 5, "no epoch uses more than 4"),
    ("npu.engines", 9, "no epoch uses more than 6"),
    ("npu.pools.npuRAM6.size_bytes", "64KiB", "in npuRAM6"),
    ("npu.engines", 10, "it is that already"),
    ("offload.host", "softmax", "on the host already")])
def test_a_path_without_effect_is_named_with_the_reason(path, value, why):
    (found,) = effects(KWS, {path: value})
    assert found.startswith(f"no effect: {path}={value}") and why in found


def test_a_size_that_the_board_takes_from_its_memory_is_that_already():
    gap9 = deploy("ic", "gap9evk")  # its file states no size of L1's pool
    (found,) = effects(gap9, {"npu.pools.L1.size_bytes": "128KiB"})
    assert found.endswith("changes nothing here: it is that already")


def test_of_several_paths_only_the_idle_ones_are_named():
    found = effects(KWS, {"npu.engines": 9, "clocks.npu.frequency_hz": "500MHz"})
    assert len(found) == 1 and "npu.engines" in found[0]


def test_on_the_core_alone_npu_paths_do_nothing():
    on_core = deploy("kws", BOARD, runtime="tflm-cmsis-nn")
    (found,) = effects(on_core, {"npu.start_cycles": 10})
    assert "does not use the NPU" in found


def test_more_units_that_come_out_slower_are_explained():
    # weights come from the flash at the same pace, and the host sets up one unit more
    deployment = deploy("ic", BOARD, runtime="neural-art").replace({"npu.units.CONV_ACC.count": 3})
    (found,) = effects(deployment, {"npu.units.CONV_ACC.count": 4})
    assert found.startswith("more CONV_ACC come out slower") and "to set units up" in found
    (back,) = effects(KWS, {"npu.units.CONV_ACC.count": 2})
    assert back.startswith("fewer CONV_ACC come out faster")
    assert not effects(KWS, {"npu.units.ARITH_ACC.count": 1})  # fewer and slower: as one thinks


def floats():
    return one_layer("conv_2d", [tensor((1, 4, 4, 2), "float32"),
                                 tensor((2, 1, 1, 2), "float32", "random")],
                     [tensor((1, 4, 4, 2), "float32")], window=Window(kernel=(1, 1)))


@pytest.mark.parametrize(("graph", "settings", "temperature", "text"), [
    (floats(), {}, "warm", "every layer, as the NPU computes 8-bit integers only"),
    ("kws", {"npu.engines": 2}, "warm", "on the host: layers 0, 1, 2, 3, 4, 5, 6, 7 and 2 more, "
     "for which the NPU is too small: needs 3 stream engines of 2"),
    ("kws", {"placement.arena": "hyperRAM"}, "warm", "activations outside the chip"),
    ("kws", {"placement.arena": "hyperRAM", "npu.cache.enabled": "false"}, "warm",
     # four depthwise layers read and write 25 x 5 x 64 bytes, channel by channel: one at a time
     f"without the NPU cache {4 * 2 * 8_000:,} bytes outside the chip are read and written in "
     f"{4 * 2 * 8_000:,} accesses of 1.0 bytes on average"),
    # of 13 tasks six convolutions spread their channels over units, each with a stream of weights
    ("ic", {"placement.weights": "hyperRAM"}, "warm",
     "in 6 of 13 tasks several engines read weights from hyperRAM in turns"),
    ("kws", {}, "cold", "cold is as warm here")])
def test_remarks_are_among_the_warnings(graph, settings, temperature, text):
    deployment = deploy(graph, BOARD, runtime="neural-art").replace(settings)
    assert any(text in warning
               for warning in predict(deployment, temperature=temperature).warnings)


def test_remarks_of_memory_off_the_chip_need_a_reason():
    """A memory behind a cache, a bus of its own, or profiled tasks: nothing is assumed."""
    outside = KWS.replace({"placement.arena": "hyperRAM"})
    warnings = predict(outside).warnings
    assert not any("without the NPU cache" in warning for warning in warnings)
    assert not any("in turns" in warning for warning in predict(KWS).warnings)
    mapping = outside.runtime.mapping
    profiled = outside.repriced(outside.board, replace(outside.runtime, offload=replace(
        mapping, spread=replace(mapping.spread, profiled=("external_ram",)))))
    assert any("activations outside" in warning for warning in warnings)
    assert not any("activations outside" in warning for warning in predict(profiled).warnings)


def test_weights_outside_the_chip_are_not_called_activations():
    warnings = predict(KWS.replace({"placement.weights": "hyperRAM"})).warnings
    assert not any("activations outside" in warning for warning in warnings)


def test_an_idle_accelerator_is_said_and_a_board_without_one_says_nothing():
    on_core = predict(deploy("kws", BOARD, runtime="tflm-cmsis-nn"))
    assert any("is not used" in warning for warning in on_core.warnings)
    assert not any("NPU" in warning for warning in
                   predict(deploy("kws", "nucleo_l4r5zi")).warnings)


def test_layers_of_two_clocks_are_judged_by_time():
    prediction = predict(KWS)
    hz = {clock.name: clock.frequency_hz for clock in BOARD.clocks}
    for layer in prediction.layers:
        if not layer.alias:
            times = {cause: sum(layer.bill.cycles(clock, cause) / hz[clock]
                                for clock in layer.bill.clocks())
                     for cause in layer.bill.causes()}
            assert times[layer.largest_cause] == np.max(list(times.values()))


def test_the_command_line_sets_paths_and_says_what_was_idle(tmp_path):
    narrow = CliRunner().invoke(app, ["predict", "kws", "-b", "n6", "--runtime", "neural-art",
                                      "--no-epochs", "--details", "--set",
                                      "placement.weight_bits=4"])
    assert narrow.exit_code == 0 and "weight_decode" in narrow.output
    idle = CliRunner().invoke(app, ["whatif", "kws", "-b", "n6", "--runtime", "neural-art",
                                    "--set", "npu.engines=9", "--json"])
    assert '"remarks": [\n    "no effect: npu.engines=9' in idle.stdout
    found = CliRunner().invoke(app, ["predict", "kws", "-b", "n6", "--runtime", "neural-art",
                                    "--no-epochs", "--set", "npu.engines=9", "--set",
                                    "npu.units.CONV_ACC.count=2"]).stderr
    assert "no effect: npu.engines=9" in found and "fewer CONV_ACC come out faster" in found
    swept = CliRunner().invoke(app, ["sweep", "kws", "-b", "n6", "--runtime", "neural-art", "--set",
                                     "npu.engines=9,10"])
    assert "no effect: npu.engines: 9, 10 have equal figures" in swept.stderr
    assert "least energy: stm32n6570_dk" in swept.stdout and "npu.engines 9:" not in swept.stdout
    (tmp_path / "file").write_text("")
    for option in (["--trace", str(tmp_path / "file" / "x.json")],
                   ["--csv", str(tmp_path / "file")]):
        refused = CliRunner().invoke(app, ["predict", "kws", "-b", "n6", "--runtime",
                                           "neural-art", *option])
        assert refused.exit_code == 2 and "EpochBlock_1" not in refused.output


def test_a_change_that_makes_a_network_fit_is_not_idle():
    words = ["ad", "-b", "ch32v307v_evt", "--set", "memories.flash.size_bytes=512KiB"]
    assert "no effect" not in CliRunner().invoke(app, ["predict", *words]).stderr
    refused = CliRunner().invoke(app, ["whatif", *words]).stderr
    assert "without the changes it does not fit" in refused and "`twin predict`" in refused


@pytest.mark.parametrize("words, what", [
    ("--clock 40MHz --set clocks.cpu.frequency_hz=80MHz",
     "--clock and --set clocks.cpu.frequency_hz set the same"),
    ("--weights flash --set placement.weights=sram", "--weights and --set placement.weights"),
    ("--epochs", "runs nothing on an accelerator"),
    ("--report x.html", "`twin report` writes pages")])
def test_options_that_contradict_or_mean_nothing_are_refused(words, what):
    refused = CliRunner().invoke(app, ["predict", "kws", "-b", "nucleo_l4r5zi", *words.split()])
    assert refused.exit_code == 2 and what in refused.stderr


@pytest.mark.parametrize("command", [("check", "kws"), ("advise", "kws"), ("check", "kws", "ad")])
@pytest.mark.parametrize("words, what", [
    ("--clock 40MHz --set clocks.cpu.frequency_hz=80MHz",
     "--clock and --set clocks.cpu.frequency_hz set the same"),
    ("--weights sram --set placement.weights=flash", "--weights and --set placement.weights")])
def test_limits_are_of_no_option_beside_a_change_of_the_same(command, words, what):
    refused = CliRunner().invoke(app, [*command, "-b", "nucleo_l4r5zi", "--max-ms", "100",
                                       *words.split()])
    assert refused.exit_code == 2 and what in refused.stderr


def test_why_takes_no_option_beside_a_change_of_the_same_and_whatif_compares_them():
    placed = "kws", "-b", "nucleo_l4r5zi", "--runtime", "nnom", "--set", "runtime=tflm-reference"
    refused = CliRunner().invoke(app, ["why", *placed, "--measured", "40ms"])
    assert refused.exit_code == 2 and "set the same" in refused.stderr
    compared = CliRunner().invoke(app, ["whatif", *placed, "--json"])
    assert compared.exit_code == 0, compared.stderr
    assert "nnom@" in compared.stdout and "tflm-reference@" in compared.stdout


def test_a_period_shorter_than_an_inference_is_warned_of():
    words = ["predict", "kws", "-b", "nucleo_l4r5zi", "--every"]
    short, long = (CliRunner().invoke(app, [*words, every]).stderr for every in ("1ms", "1s"))
    assert "--every 1ms: shorter than an inference" in short and "shorter" not in long


def test_a_warning_of_one_side_says_of_which():
    base = deploy("kws", "esp32s3_devkitc")
    changed = what_if(base, {"runtime": "esp-dl"})
    of_both = {*changed.before.warnings} & {*changed.after.warnings}
    for text in changed.before.warnings:
        assert (text if text in of_both else f"before: {text}") in changed.remarks
    counted = [text for text in changed.remarks if "counted on this instruction set" in text]
    assert counted and all(text.startswith("after: ") for text in counted)
    page = describe_what_if(changed)
    assert "RAM" in page.verdict and page.verdict.startswith("-") and page.tone == ""
