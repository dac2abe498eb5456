"""MAX78000 and MAX78002: the maker's formula, layers mapped, weights loaded once."""

import pytest

import twin
from benchmarks.accuracy.dsp import shape_of_row
from calibration.datasets import read_table
from twin.network.zoo.builder import Builder
from twin.runtimes.ai8x.cycles import LayerShape, count_cycles

ROWS = read_table("max78000_layers").rows


def deploy(graph, board="max78000evkit", **options):
    return twin.deploy(graph, board, runtime="ai8x", **options)


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_published_layers_are_exact(row):
    assert count_cycles(shape_of_row(row)) + 1 == row["cycles"]


def test_padding_is_read_once_where_pooling_comes_last():
    # two operands, windows of 4, 2 passes: data 2 (2 x 4 + 1) = 18 cycles a turn, padding 2 x 2
    shape = LayerShape(pooled=(4, 4), channels=5, kernel=(3, 3), padding=(1, 1), pool=(2, 2),
                       passes=2, operands=2, pool_first=False)
    first_row = 2 * (4 + 1) + 2 * 4 * (4 + 1)
    kept = 2 * (4 + 1) + 2 * 4 * (18 + 1)
    outputs = 2 * 4 * 5
    used = (4 + 1) + 2 * 1 * (18 + 1) + 2 * 3 * 18 + 4
    below = (4 + 1) + 2 * 1 * (4 + 1) + 2 * 3 * 4 + 4
    assert count_cycles(shape) == first_row + kept + 3 * (used + outputs) + below + outputs


def pooled_network(channels=32):
    net = Builder("pooled", 0)
    image = net.conv(net.input((1, 16, 16, 3)), channels, 3, activation="relu")
    image = net.conv(net.pool("max_pool_2d", image, 2, 2), 64, 3, activation="relu")
    return net.finish(net.fully_connected(net.flatten(image), 10))


def test_pooling_runs_in_flight_and_layers_follow_without_the_host():
    prediction = twin.predict(deploy(pooled_network()))
    tasks = [epoch.run.task for epoch in prediction.tasks]
    assert [task.layers for task in tasks] == [(0,), (1, 2), (4,)]
    cycles = [count_cycles(shape) for shape in (
        LayerShape(pooled=(16, 16), channels=32, kernel=(3, 3), padding=(1, 1)),
        LayerShape(pooled=(8, 8), channels=64, kernel=(3, 3), padding=(1, 1), pool=(2, 2)),
        LayerShape(pooled=(64, 1), channels=10, flattens=True))]
    assert sum(epoch.run.core_npu_cycles for epoch in prediction.tasks) == 1 + sum(cycles)
    # 768 bytes in and 10 out, four a word and 8 CPU cycles each; start and end 100 each
    assert [(task.host_before_cycles, task.host_after_cycles) for task in tasks] == [
        (100 + 8 * 192, 0), (0, 0), (0, 100 + 8 * 3)]


def test_weights_are_loaded_once_and_apart():
    deployment = deploy(pooled_network())
    (wait, *_) = deployment.target.count_setup(deployment).lines
    # 72-bit words of each processor: 32 kernels in 3, 64 in 32, 640 weights of 64 pixels in 64;
    # a byte a CPU cycle, of which two are one of the accelerator
    words = 32 * 3 + 64 * 32 + -(-10 * 64 // 36) * 4 * 64
    assert (wait.place, wait.exposed) == ("KERNELS", 9 * words // 2)
    prediction = twin.predict(deployment)
    assert not any(epoch.run.task.transfers for epoch in prediction.tasks)
    copied = sum(line.energy_pj for line in prediction.setup.lines if line.place == "KERNELS")
    assert copied == pytest.approx(63 * 9 * words)


@pytest.mark.parametrize(("change", "reason"), [
    ({"kernel": 5}, "kernel of 5x5"), ({"kernel": 3, "stride": 2}, "a stride")])
def test_what_the_accelerator_has_not_stays_on_the_host_with_its_reason(change, reason):
    net = Builder("other", 0)
    graph = net.finish(net.conv(net.input((1, 8, 8, 4)), 8, **change))
    assert reason in deploy(graph).plan.reasons[0]


def test_only_the_larger_chip_runs_depthwise_layers():
    net = Builder("depthwise", 0)
    graph = net.finish(net.depthwise(net.input((1, 8, 8, 64)), 3))
    assert "64 groups" in deploy(graph).plan.reasons[0]
    assert not deploy(graph, "max78002evkit").plan.reasons[0]


def test_layers_stay_on_the_host_when_weight_memory_is_full():
    # kernels of each processor: 256 outputs of one pass, then 128 of four: 768, all there are
    net = Builder("wide", 0)
    image = net.conv(net.input((1, 4, 4, 64)), 256, 3)
    graph = net.finish(net.conv(net.conv(image, 128, 3), 8, 1))
    assert deploy(graph).plan.reasons == ("", "", "weight memory holds 768 kernels a processor, "
                                          "all taken")
    assert not any(deploy(graph, "max78002evkit").plan.reasons)


def test_an_image_that_no_data_memory_holds_stays_on_the_host():
    net = Builder("large", 0)
    graph = net.finish(net.conv(net.input((1, 96, 96, 3)), 8, 3))
    assert "streaming is not modelled" in deploy(graph).plan.reasons[0]
