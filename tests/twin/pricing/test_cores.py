"""Two cores: which layers ESP-DL divides, what memory and barrier make of it, predict as sweep."""

import numpy as np
import pytest

import twin
from twin.network.graph import GraphLayer
from twin.network.zoo.builder import Builder
from twin.pricing.cores import split_lines
from twin.runtimes.esp_dl.cores import share_rows

ONE, TWO = "esp-dl@3.2", "esp-dl@3.2-multi-core"
BARRIER = 4000


def conv(rows, kernel=3, stride=1, padding="valid"):
    net = Builder("conv", 0)
    return net.finish(net.conv(net.input((1, rows, 32, 16)), 16, kernel, stride, padding=padding,
                               activation=None))


@pytest.mark.parametrize(("graph", "rows"), [
    (conv(12), 1), (conv(13), 6 / 11), (conv(16, padding="same"), 8 / 16),
    (conv(33, 3, 2, "same"), 9 / 17), (conv(4, 1), 1), (conv(5, 1), 3 / 5)])
def test_rows_are_halved_of_inputs_taller_than_four_windows(graph, rows):
    assert share_rows(GraphLayer(graph, graph.layers[0])) == pytest.approx(rows)


def test_only_convolutions_are_divided():
    net = Builder("rest", 0)
    graph = net.finish(net.add(net.input((1, 64, 64, 16)), net.input((1, 64, 64, 16))))
    assert share_rows(GraphLayer(graph, graph.layers[0])) == 1


def test_work_halves_and_the_layer_waits_for_both():
    one, two = (twin.predict(twin.deploy(conv(30, 1), "esp32p4_function_ev", runtime=runtime),
                             calibration="none") for runtime in (ONE, TWO))
    called = twin.deploy(conv(30, 1), "esp32p4_function_ev", runtime=ONE).runtime.dispatch_cycles
    own = one.cycles - called
    assert own / 2 <= two.cycles - called - BARRIER + 1 < own * 0.55
    assert one.layers[0].instructions == two.layers[0].instructions


@pytest.mark.parametrize(("operand", "factor"), [
    ("input", 0.5 * (1 + 200 / 500)), ("weights", 0.5), ("", 0.5)])
def test_a_core_waits_for_the_other_at_rows_of_its_own_alone(operand, factor):
    lines = np.array([300.0, 200.0, 100.0])
    found = split_lines(lines, ["", operand], np.zeros(3, np.int64), np.array([0.5]), BARRIER)
    assert found == pytest.approx([0.5, factor, 1 + BARRIER / 100])


def test_a_sweep_says_what_a_prediction_does():
    table = twin.sweep("ic", "esp32p4_function_ev", runtimes=TWO, clocks="180MHz")
    own = twin.predict(twin.deploy("ic", "esp32p4_function_ev", runtime=TWO).replace(
        {"clocks.cpu.frequency_hz": "180MHz"}))
    assert [row.time_us for row in table.rows] == [pytest.approx(own.time_us)]
