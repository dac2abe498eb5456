"""ESP32, ESP32-S3 and ESP32-P4: which code each runs, and how far it is from published ticks."""

import statistics

import pytest

import twin
from benchmarks.accuracy.dsp import ESP, judge_esp
from benchmarks.accuracy.esp_kernels import BUILDS, OFFSET
from hwmodels.isa import load_isa
from twin.deployment.core import lower_on_core
from twin.errors import RuntimeRefusedError
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


def conv(rows, columns, depth, channels, window, stride=1, padding="valid"):
    net = Builder("conv", 0)
    return net.finish(net.conv(net.input((1, rows, columns, depth), quantization=OFFSET), channels,
                               window, stride, padding=padding, activation=None))


def depthwise(rows, columns, channels, stride=1, padding="valid"):
    net = Builder("depthwise", 0)
    return net.finish(net.depthwise(net.input((1, rows, columns, channels), quantization=OFFSET),
                                    3, stride, padding=padding, activation=None))


def count(kernels):
    return sum(block.trips * (block.code.replace("\n", ";").count(";") + 1)
               for kernel in kernels for block in kernel.blocks)


def one(make, *shape, **quantized):
    net = Builder("one", 0)
    return net.finish(make(net, *(net.input(size, **quantized) for size in shape)))


@pytest.mark.parametrize(("graph", "instructions"), [
    (conv(10, 10, 64, 67, 1), 638862), (conv(7, 5, 20, 67, 1), 276769),
    (conv(10, 10, 8, 67, 1), 332593), (conv(8, 8, 32, 67, 3), 586437),
    (conv(10, 10, 3, 64, 3), 674487), (conv(8, 8, 16, 67, 3, 1, "same"), 541424),
    (conv(8, 8, 16, 67, 3, 2, "same"), 509417), (conv(12, 12, 9, 20, 3), 780205),
    (conv(49, 10, 1, 64, (10, 4), 2, "same"), 1208906),
    (conv(16, 16, 1, 20, 3, 1, "same"), 997174),
    (depthwise(18, 18, 16), 211677), (depthwise(16, 16, 32, 1, "same"), 515231),
    (depthwise(16, 16, 24), 253361), (depthwise(16, 16, 20), 303715),
    (depthwise(16, 16, 16, 2, "same"), 67656),
    (one(lambda net, source: net.fully_connected(source, 7), (1, 271)), 1675),
    (one(lambda net, source: net.fully_connected(source, 7), (1, 271), quantization=OFFSET), 17579),
    (one(lambda net, *both: net.add(*both), (1, 1615), (1, 1615)), 86472),
    (one(lambda net, source: net.pool("max_pool_2d", source, 3, 1, padding="valid"),
         (1, 16, 16, 32)), 36181),
    (one(lambda net, source: net.pool("average_pool_2d", source, 3, 1, padding="valid"),
         (1, 16, 16, 32)), 107262),
    (one(lambda net, source: net.softmax(source), (8, 32)), 86604)])
def test_the_p4_runs_the_instructions_its_compiled_kernels_run(graph, instructions):
    # Compiled by GCC 12 -O2 for RV32IMAFC from espressif/esp-nn d45b843 and run once, counted.
    (kernels,) = lower_on_core(twin.deploy(graph, "esp32p4_function_ev", runtime="esp-nn"))
    assert count(kernels) == pytest.approx(instructions, rel=0.05)


@pytest.mark.parametrize(("release", "graph", "instructions"), [
    ("1.2.3-skip-nudge", conv(10, 10, 64, 67, 1), 498301),
    ("1.2.3-skip-nudge", conv(10, 10, 8, 67, 1), 332601),
    ("1.2.3-skip-nudge", conv(8, 8, 16, 67, 3, 1, "same"), 464597),
    ("1.2.3-skip-nudge", conv(16, 16, 1, 20, 3, 1, "same"), 925188),
    ("1.2.3-skip-nudge", depthwise(16, 16, 20), 288858),
    ("1.2.0", conv(10, 10, 8, 67, 1), 712441), ("1.1.0", conv(10, 10, 3, 64, 3), 1162181),
    ("1.1.0", conv(8, 8, 16, 67, 3, 1, "same"), 4186071),
    ("1.1.0", depthwise(18, 18, 16), 433003)])
def test_releases_that_requantise_fast_run_fewer(release, graph, instructions):
    # As above; of 1.1.0 and 1.2.0 those of espressif/esp-nn v1.1.0.
    (kernels,) = lower_on_core(twin.deploy(graph, "esp32p4_function_ev",
                                           runtime=f"esp-nn@{release}"))
    assert count(kernels) == pytest.approx(instructions, rel=0.05)


def test_vectors_of_an_old_release_are_refused_where_nobody_counted_them():
    with pytest.raises(RuntimeRefusedError, match=r"accepted: --runtime esp-nn@1\.2\.3"):
        twin.predict(twin.deploy("ad", "esp32s3_devkitc", runtime="esp-nn@1.1.0"))


def test_a_part_without_vectors_is_slower_than_those_with():
    times = [twin.predict(twin.deploy(pointwise(), board, runtime="esp-nn")).time_us for board in (
        "esp32_devkitc", "esp32s3_devkitc")]
    assert times[0] > 5 * times[1]


def test_published_ticks_are_met_in_the_median():
    for rows in (judge_esp(part, build).rows for part in ESP.items() for build in BUILDS):
        assert statistics.median(abs(made / said - 1) for _, said, made, _ in rows) < 0.15


@pytest.mark.parametrize(("board", "plain"), [
    ("esp32s3_devkitc", "xtensa-lx6"), ("esp32p4_function_ev", "rv32imc")])
def test_without_vectors_kernels_are_those_of_a_part_that_has_none(board, plain):
    deployment = twin.deploy(pointwise(), board, runtime="esp-nn")
    changed = deployment.replace({"kernels.extension": "c"})
    times = [twin.predict(one, calibration="none").time_us for one in (deployment, changed)]
    assert load_isa(deployment.board.core.isa).without == {"c": plain}
    assert times[1] > 3 * times[0]
