"""Dropping dead channels: how many, and bit-exactness by integer arithmetic done here."""

from dataclasses import replace

import numpy as np
import pytest
from made_graphs import model_file, needs_models, tensor

from twin.errors import ModelError
from twin.network import zoo
from twin.network.graph import Graph, Quantization
from twin.network.operators import graph_macs, graph_parameters, layer_macs
from twin.network.readers import read_model
from twin.network.readers.verification import verify_graph
from twin.network.rewrites.dead_channels import drop_dead_channels
from twin.network.writers import write_model
from twin.network.zoo.builder import Builder

# MLPerf Tiny's vww_96_int8.tflite with dead channels omitted, counted layer by layer in the
# file: live output channels x live input channels x pixels.
VWW_LIVE_MACS = {10: 552_960, 11: 19_440, 12: 228_960, 13: 34_344, 14: 217_512, 15: 18_468,
                 16: 61_560, 17: 9_720, 18: 20_520, 19: 6_156, 20: 11_628, 21: 5_508, 22: 16_524,
                 23: 2_187, 24: 7_533, 25: 2_511, 26: 6_138, 29: 44}


VWW = [pytest.param(lambda: zoo.build("vww"), id="zoo"),
       pytest.param(lambda: read_model(model_file("vww")), id="file", marks=needs_models)]


@pytest.mark.parametrize("build", VWW)
def test_vww_loses_half_its_macs(build):
    graph = build()
    dropped = verify_graph(drop_dead_channels(graph))
    assert graph_macs(dropped) == 3_733_073
    weights = sum(tensor.elements for tensor in dropped.tensors
                  if tensor.is_constant and tensor.dtype == "int8")
    assert weights == 29_286
    for index, macs in VWW_LIVE_MACS.items():
        assert layer_macs(dropped, dropped.layers[index]) == macs
    assert [layer.op for layer in dropped.layers] == [layer.op for layer in graph.layers]
    assert dropped.sha256 != graph.sha256


@pytest.mark.parametrize("name", ["kws", "ic", "ad", "sww"])
def test_networks_without_dead_channels_stay_as_they_are(name):
    graph = zoo.build(name)
    assert drop_dead_channels(graph) is graph


def small_net() -> Graph:
    """Pointwise, depthwise, pointwise, pool, fully connected: dead channels 1 and 3 of five."""
    net = Builder("small", 7)
    x = net.conv(net.input((1, 5, 4, 3)), 5, 1)
    x = net.conv(net.depthwise(x, 3), 4, 1)
    x = net.flatten(net.pool("average_pool_2d", x, (5, 4)))
    return net.finish(net.fully_connected(x, 2))


def edited(graph: Graph, layer: int, place: int, edit) -> Graph:
    """The graph with one constant changed in place by `edit`."""
    tensors = list(graph.tensors)
    index = graph.layers[layer].inputs[place]
    data = tensors[index].data.copy()
    edit(data)
    tensors[index] = replace(tensors[index], data=data)
    return replace(graph, tensors=tuple(tensors))


def with_dead_rows(graph: Graph) -> Graph:
    def zero_rows(weights):
        weights[[1, 3]] = 0

    return edited(graph, 0, 1, zero_rows)


def negative(values):
    values[:] = -abs(values) - 1


def run(graph: Graph, x: np.ndarray) -> np.ndarray:
    """Integer inference of the small net: exact sums, then rescaled in float64."""
    values = {graph.inputs[0]: x.astype(np.int64)}
    for layer in graph.layers:
        data, output = values[layer.inputs[0]], graph.layer_outputs(layer)[0]
        if layer.op in ("reshape", "average_pool_2d"):
            values[layer.outputs[0]] = (data.reshape(output.shape) if layer.op == "reshape" else
                                        np.rint(data.mean(axis=(1, 2), keepdims=True)))
            continue
        entry, weights, bias = graph.layer_inputs(layer)
        centred = data - entry.quantization.zero_points[0]
        if layer.op == "depthwise_conv_2d":
            padded = np.pad(centred, ((0, 0), (1, 1), (1, 1), (0, 0)))
            total = sum(padded[:, i:i + data.shape[1], j:j + data.shape[2]]
                        * weights.data[0, i, j].astype(np.int64)
                        for i in range(3) for j in range(3))
        else:
            total = centred @ weights.data.reshape(len(weights.data), -1).T.astype(np.int64)
        scale = (entry.quantization.scales[0] * np.asarray(weights.quantization.scales)
                 / output.quantization.scales[0])
        zero = output.quantization.zero_points[0]
        low = zero if layer.activation == "relu" else -128
        values[layer.outputs[0]] = np.clip(np.rint((total + bias.data) * scale) + zero, low,
                                           127).astype(np.int64)
    return values[graph.outputs[0]]


def assert_same_outputs(graph: Graph, dropped: Graph) -> None:
    for seed in range(4):
        x = np.random.default_rng(seed).integers(-128, 128, graph.tensors[graph.inputs[0]].shape)
        np.testing.assert_array_equal(run(graph, x), run(dropped, x))


def test_channels_read_with_zero_weights_go_whatever_they_hold():
    def zero_columns(weights):
        weights[..., [1, 3]] = 0

    graph = edited(small_net(), 2, 1, zero_columns)
    dropped = verify_graph(drop_dead_channels(graph))
    assert dropped.layer_outputs(dropped.layers[0])[0].shape == (1, 5, 4, 3)
    assert dropped.layers[1].groups == 3
    assert_same_outputs(graph, dropped)


def test_zero_channels_go_when_biases_keep_them_at_zero():
    graph = edited(edited(with_dead_rows(small_net()), 0, 2, negative), 1, 2, negative)
    dropped = verify_graph(drop_dead_channels(graph))
    assert dropped.layer_outputs(dropped.layers[0])[0].shape == (1, 5, 4, 3)
    assert graph_parameters(dropped) < graph_parameters(graph)
    assert_same_outputs(graph, dropped)


def test_zero_channels_stay_when_a_bias_makes_them_constant():
    def positive(values):
        values[:] = 1_000

    graph = edited(edited(with_dead_rows(small_net()), 0, 2, positive), 1, 2, negative)
    assert drop_dead_channels(graph) is graph


def test_negative_biases_without_a_clamp_keep_their_channels():
    """A zero row with a negative bias is zero behind a clamp only: here the channel is negative."""
    graph = edited(edited(with_dead_rows(small_net()), 0, 2, negative), 1, 2, negative)
    assert drop_dead_channels(graph) is not graph
    layers = tuple(replace(layer, activation=None) if layer.index < 2 else layer
                   for layer in graph.layers)
    tensors = tuple(replace(one, quantization=replace(one.quantization, zero_points=(3,)))
                    if i in (graph.layers[0].outputs[0], graph.layers[1].outputs[0]) else one
                    for i, one in enumerate(graph.tensors))
    free = replace(graph, layers=layers, tensors=tensors)
    assert drop_dead_channels(free) is free
    lowest = replace(graph, layers=layers, tensors=tuple(
        replace(one, quantization=replace(one.quantization, zero_points=(-128,)))
        if i in (graph.layers[0].outputs[0], graph.layers[1].outputs[0]) else one
        for i, one in enumerate(graph.tensors)))
    # At the lowest number an int8 holds, saturation is the clamp.
    assert drop_dead_channels(lowest) is not lowest
    assert_same_outputs(lowest, drop_dead_channels(lowest))


def test_outputs_and_sums_keep_every_channel():
    net = Builder("sum", 1)
    source = net.input((1, 5, 4, 3))
    left = net.conv(source, 3, 1, live=1)
    graph = net.finish(net.add(left, source))
    assert drop_dead_channels(graph) is graph


def test_weights_two_layers_share_are_left_alone():
    def zero_row_and_column(weights):
        weights[1] = 0
        weights[..., 1] = 0

    net = Builder("shared", 3)
    x = net.conv(net.conv(net.input((1, 5, 4, 4)), 4, 1), 4, 1)
    graph = net.finish(net.fully_connected(net.mean(x), 2))
    for layer in (0, 1):
        graph = edited(graph, layer, 1, zero_row_and_column)
    apart = drop_dead_channels(graph)
    assert apart.layer_outputs(apart.layers[0])[0].shape[3] == 3
    first, second = graph.layers[:2]
    second = replace(second, inputs=(second.inputs[0], first.inputs[1], second.inputs[2]))
    shared = replace(graph, layers=(first, second, *graph.layers[2:]))
    assert drop_dead_channels(shared) is shared


def test_weights_off_zero_are_not_taken_for_zero():
    graph = with_dead_rows(edited(small_net(), 0, 2, negative))
    index = graph.layers[0].inputs[1]
    tensors = list(graph.tensors)
    tensors[index] = replace(tensors[index], dtype="uint8",
                             quantization=Quantization(scales=(0.1,), zero_points=(128,)))
    assert drop_dead_channels(replace(graph, tensors=tuple(tensors))).layers[1].groups == 5


def test_one_channel_always_stays():
    def zero(values):
        values[:] = 0

    graph = edited(edited(edited(small_net(), 0, 1, zero), 0, 2, negative), 1, 2, negative)
    dropped = verify_graph(drop_dead_channels(graph))
    assert dropped.layer_outputs(dropped.layers[0])[0].shape == (1, 5, 4, 1)
    assert_same_outputs(graph, dropped)


@pytest.mark.parametrize("build", VWW)
def test_an_interpreter_finds_no_difference(build, tmp_path):
    interpreter_module = pytest.importorskip(
        "ai_edge_litert.interpreter", reason="no TensorFlow Lite interpreter is installed")
    graph = build()
    outputs = []
    for number, version in enumerate((graph, drop_dead_channels(graph))):
        path = tmp_path / f"{number}.tflite"
        write_model(version, path)
        interpreter = interpreter_module.Interpreter(str(path))
        interpreter.allocate_tensors()
        for seed in range(3):
            x = np.random.default_rng(seed).integers(-128, 128, (1, 96, 96, 3), dtype=np.int8)
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
            interpreter.invoke()
            outputs.append(interpreter.get_tensor(
                interpreter.get_output_details()[0]["index"]).tolist())
    assert outputs[:3] == outputs[3:]


def test_float_channels_go_too():
    def to_float(t):
        data = None if t.data is None else t.data.astype(np.float32)
        return tensor(t.shape, "float32", data, t.name)

    graph = edited(edited(with_dead_rows(small_net()), 0, 2, negative), 1, 2, negative)
    real = replace(graph, tensors=tuple(to_float(t) for t in graph.tensors))
    assert drop_dead_channels(real).layers[1].groups == 3


@pytest.mark.parametrize(("add", "said"), [
    (lambda net, source: net.layer("fully_connected", (source, net.tensor(
        "w", (7, 8), data=np.ones((7, 8), np.int8))), (7, 1)), "output channels"),
    (lambda net, source: net.layer("softmax", (source,), (8, 1)), "output shape"),
    (lambda net, source: net.layer("batch_matmul", (source, net.tensor(
        "w", (3, 8, 2), data=np.ones((3, 8, 2), np.int8))), (2, 1, 2)), "batches of output"),
    (lambda net, source: net.layer("relu", (source,), ("8", 1)), "fixed positive number"),
    (lambda net, source: net.layer("relu", (source,), (8, True)), "fixed positive number")])
def test_a_layer_whose_shapes_disagree_is_refused_where_graphs_are_verified(add, said):
    net = Builder("shapes", 1)
    add(net, net.input((1, 8)))
    with pytest.raises(ModelError, match=said):
        verify_graph(net.finish())
