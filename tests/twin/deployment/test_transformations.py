"""Transformations of a deployment: set by path, listed with reasons, undone by setting again."""

from dataclasses import fields, replace

import pytest

import twin
from twin.deployment.deploy import deploy_towards
from twin.deployment.transformations import list_transformations
from twin.errors import NotApplicableError, RuntimeRefusedError, UsageError
from twin.network.graph import Graph
from twin.network.rewrites.rewrite import list_rewrites
from twin.reports.tables.header import describe_library


def test_a_path_set_again_starts_from_the_network_as_it_was() -> None:
    base = twin.deploy("ic", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026")
    half = base.replace({"network.width": 0.5})
    twice = half.replace({"network.width": 0.25})
    assert twice.graph.sha256 == base.replace({"network.width": 0.25}).graph.sha256
    assert twice.rewritten == (("network.width", "0.25"),)
    both = half.replace({"network.resolution": 16})
    assert dict(both.rewritten) == {"network.width": "0.5", "network.resolution": "16"}
    assert half.replace({"clocks.cpu.frequency_hz": "60MHz"}).graph is half.graph


def test_a_changed_network_costs_less_and_says_what_was_done() -> None:
    base = twin.deploy("ic", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026")
    after = twin.predict(base.replace({"network.width": 0.5}), calibration="none")
    assert after.cycles < twin.predict(base, calibration="none").cycles / 2
    assert any(warning.startswith("network.width=0.5") for warning in after.warnings)


def test_what_only_fits_when_changed_is_deployed_changed() -> None:
    placed = twin.deploy("mobilenet_v1_1.0_224", "nucleo_l4r5zi",
                         network={"network.width": "0.25"})
    assert placed.rewritten == (("network.width", "0.25"),) and placed.original is not None


def test_without_a_runtime_levels_are_of_the_first_default_that_has_them():
    def put(level, **chosen):
        changes = {"kernels.level": level}
        return deploy_towards("kws", "nucleo_f401re", changes, **chosen).replace(changes)

    made = put("Os")
    assert made.runtime.identity == "tflm-cmsis-nn@2026-os"
    assert describe_library(twin.predict(made)).endswith(
        "-os, the first by default with kernels.level to choose")
    with pytest.raises(NotApplicableError, match="was not counted at it; accepted: O2"):
        put("O3")
    with pytest.raises(NotApplicableError, match=r"x-cube-ai.* was counted at one level only"):
        put("Os", runtime="x-cube-ai@9.0.0")
    table = twin.sweep("kws", "nucleo_f401re", settings={
        "network.precision": ["int8", "float32"], "network.batch": [1, 2],
        "kernels.level": ["Os", "O2"]})
    assert len(table.predicted) == 6 and {row.failure for row in table.failed} == {"does not fit"}
    assert {row.runtime for row in table.predicted} == {
        "tflm-cmsis-nn@2026", "tflm-cmsis-nn@2026-os"}


@pytest.mark.parametrize("path, value", [("kernels.extension", "c"), ("kernels.level", "Os")])
def test_slower_code_is_slower(path, value) -> None:
    base = twin.deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026")
    before, after = (twin.predict(one, calibration="none").cycles
                     for one in (base, base.replace({path: value})))
    assert after > before


def test_direct_convolutions_need_no_columns() -> None:
    base = twin.deploy("ic", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026")
    direct = base.replace({"kernels.convolution": "direct"})
    assert direct.placement.scratch_bytes < base.placement.scratch_bytes
    assert direct.replace({"kernels.convolution": "im2col"}).placement == base.placement


def test_a_batch_takes_as_long_as_its_inputs_less_what_is_done_once() -> None:
    base = twin.deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026")
    one, two = (twin.predict(d, calibration="none").cycles
                for d in (base, base.replace({"network.batch": 2})))
    assert 1.9 * one < two < 2.05 * one
    with pytest.raises(RuntimeRefusedError, match="takes one input at a time"):
        base.replace({"network.batch": 2, "runtime": "firmware@O2"})


@pytest.mark.parametrize("runtime, path, value, said", [
    ("x-cube-ai@9.0.0", "network.weights", "int4", "no kernel of conv_2d on 4-bit weights"),
    ("x-cube-ai@9.0.0", "network.precision", "float16", "does not run float16"),
    ("x-cube-ai@9.0.0", "kernels.convolution", "direct", "is not known"),
    ("x-cube-ai@9.0.0", "kernels.level", "Os", "counted at one level"),
    ("tflm-reference@2026", "kernels.convolution", "im2col", "where they are"),
    ("tflm-cmsis-nn@2026", "kernels.extension", "mve", "cannot run 'mve'; accepted: dsp, c"),
    ("tflm-cmsis-nn@2026", "kernels.extension", "foo", "accepted: dsp, c"),
    ("firmware@O2", "kernels.extension", "c", "built for all its core can run")])
def test_a_runtime_without_the_kernels_says_so(runtime, path, value, said) -> None:
    base = twin.deploy("kws", "nucleo_l4r5zi", runtime=runtime)
    with pytest.raises((NotApplicableError, RuntimeRefusedError, UsageError), match=said):
        base.replace({path: value})


def test_a_clock_the_part_does_not_have_is_neither_proposed_nor_predicted_in_silence() -> None:
    base = twin.deploy("kws", "esp32s3_devkitc")
    path = "clocks.cpu.frequency_hz"
    found = next(one for one in list_transformations(base) if one.path == path)
    assert found.values[0] == "160000000" and "120000000" not in found.values
    for hertz, said in ((160e6, False), (200e6, True)):
        warned = twin.predict(base.replace({path: hertz})).warnings
        assert any("at 200 MHz is no clock of the esp32s3: it has 10 MHz, " in one
                   for one in warned) is said


@pytest.mark.parametrize("model, board, runtime", [
    ("ic", "nucleo_l4r5zi", "tflm-cmsis-nn@2026"), ("vww", "stm32n6570_dk", "neural-art"),
    ("kws", "rpi_pico", "tflm-reference@2026")])
def test_every_transformation_has_values_or_a_reason(model, board, runtime) -> None:
    found = twin.list_transformations(twin.deploy(model, board, runtime=runtime))
    assert all(bool(one.values) != bool(one.reason) for one in found)
    assert len({one.path for one in found}) == len(found)
    by_path = {one.path: one for one in found}
    assert "accuracy" in by_path["network.width"].costs
    assert "accuracy" not in by_path["network.fusion"].costs


def test_values_that_are_listed_are_accepted() -> None:
    base = twin.deploy("ic", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026")
    tried = [(one.path, value) for one in twin.list_transformations(base)
             for value in one.values[:2]]
    assert len({path for path, _ in tried}) > 10

    def parts(deployment):
        return [getattr(deployment, one.name) for one in fields(deployment)
                if one.name != "notes"]

    same = [one for one in tried if parts(base.replace(dict([one]))) == parts(base)]
    assert not same


def test_of_some_efforts_the_others_are_not_tried(monkeypatch) -> None:
    base = twin.deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026")
    cheap = ("setting", "rebuild")
    wanted = [one for one in list_transformations(base) if one.effort in cheap]

    def refuse(graph: Graph, value: str) -> Graph:
        raise AssertionError(f"{value} is tried")

    known = [one if one.effort in cheap else replace(one, apply=refuse) for one in list_rewrites()]
    monkeypatch.setattr("twin.deployment.transformations.list_rewrites", lambda: known)
    assert list(list_transformations(base, cheap)) == wanted
    with pytest.raises(AssertionError, match="is tried"):
        list_transformations(base)


def test_a_memory_plan_is_made_once_for_a_network_under_a_library() -> None:
    base = twin.deploy("kws", "nucleo_h7a3zi_q")
    slower = base.replace({"clocks.cpu.frequency_hz": "100MHz", "placement.weights": "sram"})
    assert slower.placement is base.placement and slower.executed is base.executed
    narrow, again, other = (base.replace({"network.width": share})
                            for share in ("0.5", "0.5", "0.25"))
    assert narrow.graph is again.graph and narrow.placement is again.placement
    assert narrow.placement.arena_bytes < base.placement.arena_bytes
    assert other.placement.arena_bytes < narrow.placement.arena_bytes


def test_another_key_a_compiler_offers_is_a_transformation(monkeypatch) -> None:
    base = twin.deploy("kws", "stm32n6570_dk")
    monkeypatch.setattr(type(base.runtime.compiler), "options", {"engines": ("8", "10")})
    found = {one.path: one for one in list_transformations(base)}
    assert found["npu.engines"].values == ("8",) and "npu.epoch_controller" not in found
    core = list_transformations(base.replace({"runtime": "cmsis-nn"}))
    assert "npu.engines" not in {one.path for one in core}
