"""Units whose loops cost more than their operations, on EFR32xG24's matrix-vector processor."""

import math

import pytest

import twin
from calibration.datasets import read_table
from hwmodels.board.file import load_board
from twin.network.zoo.builder import Builder
from twin.runtimes import load_runtime


def time_cycles(graph, board="xg24_dk2601b"):
    return [unit.compute_cycles for task in twin.predict(twin.deploy(graph, board)).tasks
            for unit in task.run.task.units]


@pytest.mark.parametrize(("channels", "passes"), [(7, 2), (8, 1), (9, 2)])
def test_channels_that_are_no_multiple_of_the_lanes_go_one_at_a_time(channels, passes):
    net = Builder("lanes", 0)
    graph = net.finish(net.conv(net.input((1, 10, 10, channels)), 6, 1))
    assert time_cycles(graph) == [math.ceil(600 * channels * passes / 1.42 + 600 * 3.3)]


def test_a_depthwise_convolution_pays_for_its_pixels():
    net = Builder("pixels", 0)
    graph = net.finish(net.depthwise(net.input((1, 12, 5, 16)), 3))
    assert time_cycles(graph) == [math.ceil(60 * 16 * 9 / 0.54 + 60 * 440)]


def test_fully_connected_layers_have_a_rate_of_their_own_where_a_board_states_it():
    net = Builder("dense", 0)
    graph = net.finish(net.fully_connected(net.input((1, 640)), 128))
    prediction = twin.predict(twin.deploy(graph, "xg24_dk2601b"))
    assert prediction.tasks[0].run.task.units[0].kind == "DENSE"
    assert prediction.time_us == pytest.approx(81_920 / 0.64 / 78, rel=0.03)


def test_networks_nothing_was_learnt_from_come_within_three_percent():
    rows = [row for row in read_table("mlperf_tiny_accelerators").rows
            if row["device"].startswith("Silicon") and row["round"] == "v1.0"
            and row["quantity"] == "latency"]
    assert len(rows) == 2
    for row in rows:
        prediction = twin.predict(twin.deploy(row["network"], "xg24_dk2601b"))
        assert prediction.time_us / 1e3 == pytest.approx(row["value"], rel=0.03)
        low, high = prediction.certainty.time_us.low, prediction.certainty.time_us.high
        assert low / 1e3 < row["value"] < high / 1e3


@pytest.mark.parametrize(("board", "off"), [
    ("lp_mspm0g5187", 0.15), ("launchxl_f28379d", 0.2), ("launchxl_f28p55x", 1.1)])
def test_rooflines_of_whole_networks_hold_their_rows_in_their_intervals(board, off):
    rows = [row for row in read_table("ti_nnc").rows if row["board"] == board]
    npu = load_board(board).npu
    rate = npu.units[0].peak_macs("8x8")
    spread = load_runtime("ti-nnc").offload.spread
    wide = math.exp(spread.reach * spread.network)
    assert len(rows) in (4, 9)
    for row in rows:
        ratio = (8 * npu.hand_over.pre_cycles + row["macs"] / rate) / row["cycles"]
        assert abs(ratio - 1) < off and 1 / wide < ratio < wide
