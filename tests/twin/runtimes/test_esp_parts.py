"""ESP32, ESP32-S3 and ESP32-P4: which code each runs, and how far it is from published ticks."""

import statistics

import pytest

import twin
from benchmarks.accuracy.dsp import judge
from hwmodels.isa import load_isa
from twin.deployment.core import lower_on_core
from twin.network.zoo.builder import Builder


def kernels_of(graph, board):
    (kernels,) = lower_on_core(twin.deploy(graph, board, runtime="esp-nn"))
    return {block.name: block for kernel in kernels for block in kernel.blocks}


def pointwise(channels=64):
    net = Builder("pointwise", 0)
    return net.finish(net.conv(net.input((1, 8, 8, channels)), 32, 1))


@pytest.mark.parametrize(("board", "name"), [
    ("esp32_devkitc", "multiply-accumulate, four"), ("esp32p4_function_ev", "window, sixteen"),
    ("esp32s3_devkitc", "multiply-accumulate, eight positions")])
def test_each_part_runs_the_code_written_for_it(board, name):
    assert name in kernels_of(pointwise(), board)


def test_sixteen_values_a_turn_the_first_before_the_loop():
    blocks = kernels_of(pointwise(), "esp32p4_function_ev")
    outputs = 64 * 32
    assert (blocks["window entered"].trips, blocks["window, sixteen"].trips) == (
        outputs, outputs * 3)
    assert "window left over" not in blocks or not blocks["window left over"].trips


def test_a_part_without_vectors_is_slower_than_those_with():
    times = [twin.predict(twin.deploy(pointwise(), board, runtime="esp-nn")).time_us for board in (
        "esp32_devkitc", "esp32s3_devkitc")]
    assert times[0] > 5 * times[1]


def test_published_ticks_are_met_in_the_median():
    tables = {judged.table: judged for judged in judge()}
    for build in ("ANSI C", "optimised"):
        rows = tables[f"ESP32-S3 kernels, {build}"].rows
        assert statistics.median(abs(made / said - 1) for _, said, made, _ in rows) < 0.15


@pytest.mark.parametrize(("board", "plain"), [
    ("esp32s3_devkitc", "xtensa-lx6"), ("esp32p4_function_ev", "rv32imc")])
def test_without_vectors_kernels_are_those_of_a_part_that_has_none(board, plain):
    deployment = twin.deploy(pointwise(), board, runtime="esp-nn")
    changed = deployment.replace({"kernels.extension": "c"})
    times = [twin.predict(one, calibration="none").time_us for one in (deployment, changed)]
    assert load_isa(deployment.board.core.isa).without == {"c": plain}
    assert times[1] > 3 * times[0]
