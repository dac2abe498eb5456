"""The .onnx reader: layouts, folding, quantised forms and refusals.

Numbers are checked end to end where an interpreter is at hand: the ONNX reference evaluator on
the original file against the TensorFlow Lite interpreter on the graph written as .tflite.
"""

import random
import sys

import numpy as np
import pytest
from made_graphs import assert_same_graph
from made_onnx import TensorProto, assert_computes_the_same, described, node, save, weights

from hwmodels.errors import ToolMissingError
from twin.errors import ModelError
from twin.network import zoo
from twin.network.graph import Graph
from twin.network.operators import graph_macs
from twin.network.readers import read_model
from twin.network.writers.onnx import encode_onnx

CASES = {  # name: (nodes, inputs, outputs, constants, expected operators)
    "convolution, norm, relu, pool, flatten, product": (
        [node("Conv", "x w b", "c", pads=[1, 1, 1, 1]),
         node("BatchNormalization", "c gamma beta mean variance", "n"), node("Relu", "n", "r"),
         node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
         node("Flatten", "p", "f"), node("Gemm", "f v u", "y", transB=1)],
        {"x": [1, 3, 8, 6]}, {"y": [1, 5]},
        {"w": weights(4, 3, 3, 3), "b": weights(4), "gamma": weights(4) + 2, "beta": weights(4),
         "mean": weights(4), "variance": abs(weights(4)) + 1, "v": weights(5, 48),
         "u": weights(5)},
        ["conv_2d relu", "max_pool_2d", "reshape", "fully_connected"]),
    "shape computed, matmul, bias, relu": (
        [node("Conv", "x w", "c"), node("Shape", "c", "s"), node("Gather", "s zero", "n"),
         node("Unsqueeze", "n axis", "m"), node("Concat", "m rest", "to", axis=0),
         node("Reshape", "c to", "f"), node("MatMul", "f v", "p"), node("Add", "p u", "q"),
         node("Relu", "q", "y")],
        {"x": [1, 3, 4, 6]}, {"y": [1, 5]},
        {"w": weights(4, 3, 1, 1), "zero": np.array(0), "axis": np.array([0]),
         "rest": np.array([-1]), "v": weights(96, 5), "u": weights(5)},
        ["conv_2d", "reshape", "fully_connected relu"]),
    "exported channels last": (
        [node("Transpose", "x", "t", perm=[0, 3, 1, 2]),
         node("Conv", "t w", "c", auto_pad="SAME_UPPER", strides=[2, 2]),
         node("Clip", "c low high", "k"), node("Transpose", "k", "u", perm=[0, 2, 3, 1]),
         node("Reshape", "u to", "f"), node("Gemm", "f v", "y")],
        {"x": [1, 8, 6, 3]}, {"y": [1, 5]},
        {"w": weights(4, 3, 3, 3), "low": np.float32(0), "high": np.float32(6),
         "to": np.array([1, 48]), "v": weights(48, 5)},
        ["conv_2d relu6", "reshape", "fully_connected"]),
    "squeeze and excite": (
        [node("Conv", "x w", "c", group=4, pads=[1, 1, 1, 1]),
         node("GlobalAveragePool", "c", "g"), node("Conv", "g v u", "e"),
         node("Sigmoid", "e", "s"), node("Mul", "c s", "m"), node("Add", "m x", "a"),
         node("ReduceMean", "a", "y", axes=[2, 3], keepdims=0)],
        {"x": [1, 4, 7, 5]}, {"y": [1, 4]},
        {"w": weights(4, 1, 3, 3), "v": weights(4, 4, 1, 1), "u": weights(4)},
        ["depthwise_conv_2d", "average_pool_2d", "conv_2d", "logistic", "mul", "add", "mean"]),
    "pad, concat, split, slice": (
        [node("Pad", "x amounts", "p"), node("Conv", "p w", "c", strides=[2, 2]),
         node("Concat", "c c", "k", axis=1), node("LeakyRelu", "k", "l", alpha=0.1),
         node("Split", "l lengths", "s t", axis=1), node("Sub", "s t", "d"),
         node("Slice", "d start end axes", "y")],
        {"x": [1, 3, 8, 6]}, {"y": [1, 4, 2, 2]},
        {"amounts": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "w": weights(4, 3, 3, 3),
         "lengths": np.array([4, 4]), "start": np.array([1, 0]), "end": np.array([3, 2]),
         "axes": np.array([2, 3])},
        ["pad", "conv_2d", "concatenation", "leaky_relu", "split", "sub", "slice"]),
    "signal": (
        [node("Conv", "x w b", "c", pads=[1, 1]), node("Relu", "c", "r"),
         node("MaxPool", "r", "p", kernel_shape=[2], strides=[2]), node("Flatten", "p", "f"),
         node("Gemm", "f v", "y", transB=1)],
        {"x": [1, 3, 16]}, {"y": [1, 5]},
        {"w": weights(4, 3, 3), "b": weights(4), "v": weights(5, 32)},
        ["conv_2d relu", "max_pool_2d", "reshape", "fully_connected"]),
    "hard swish, prelu, softmax over channels": (
        [node("Conv", "x w", "c"), node("HardSigmoid", "c", "g", alpha=1 / 6, beta=0.5),
         node("Mul", "c g", "m"), node("PRelu", "m slopes", "r"),
         node("Softmax", "r", "y", axis=1)],
        {"x": [1, 3, 5, 4]}, {"y": [1, 4, 5, 4]},
        {"w": weights(4, 3, 1, 1), "slopes": weights(4, 1, 1)},
        ["conv_2d", "hard_swish", "prelu", "softmax"]),
    "normalised input, transpose that moves": (
        [node("Sub", "x mean", "a"), node("Div", "a deviation", "b"), node("Conv", "b w", "c"),
         node("Transpose", "c", "y", perm=[0, 2, 1, 3])],
        {"x": [1, 3, 5, 4]}, {"y": [1, 5, 4, 4]},
        {"mean": weights(3, 1, 1), "deviation": abs(weights(1, 3, 1, 1)) + 1,
         "w": weights(4, 3, 1, 1)},
        ["sub", "mul", "conv_2d", "transpose"]),
    "resize and transposed convolution": (
        [node("Resize", "x  scales", "r", mode="linear"),
         node("ConvTranspose", "r w", "y", strides=[2, 2])],
        {"x": [1, 3, 5, 4]}, {"y": [1, 2, 20, 16]},
        {"scales": np.array([1, 1, 2, 2], np.float32), "w": weights(3, 2, 2, 2)},
        ["resize_bilinear", "transpose_conv_2d"]),
}
# "x  scales" splits without the empty regions-of-interest input in between.
CASES["resize and transposed convolution"][0][0].input.insert(1, "")


@pytest.mark.parametrize("case", CASES)
def test_networks_read_as_the_expected_layers(case, tmp_path):
    nodes, inputs, outputs, constants, expected = CASES[case]
    assert described(read_model(save(tmp_path, nodes, inputs, outputs, constants))) == expected


@pytest.mark.parametrize("case", CASES)
def test_the_graph_computes_what_the_file_computes(case, tmp_path):
    nodes, inputs, outputs, constants, _ = CASES[case]
    path = save(tmp_path, nodes, inputs, outputs, constants)
    (shape,) = inputs.values()
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    assert_computes_the_same(path, x, tmp_path, plain=case == "exported channels last")


def test_padding_of_named_axes_is_of_those(tmp_path):
    path = save(tmp_path, [node("Pad", "x amounts value axes", "y")], {"x": [1, 3, 8, 6]},
                {"y": [1, 3, 11, 9]}, {"amounts": np.array([1, 0, 2, 3]), "value": np.float32(0),
                                       "axes": np.array([2, 3])}, opset=18)
    (layer,) = read_model(path).layers
    assert sorted(layer.option("paddings", ())) == [(0, 0), (0, 0), (0, 3), (1, 2)]


def test_recurrent_gates_are_reordered(tmp_path):
    w, r, b = weights(1, 16, 3), weights(1, 16, 4), weights(1, 32)
    path = save(tmp_path, [node("LSTM", "x w r b", "Y Yh", hidden_size=4),
                           node("Squeeze", "Yh axis", "y")],
                {"x": [7, 1, 3]}, {"y": [1, 4]},
                {"w": w, "r": r, "b": b, "axis": np.array([0])})
    graph = read_model(path)
    data, stacked, recurrent, bias = graph.layer_inputs(graph.layers[0])
    # The file orders input, output, forget, cell; a graph input, forget, cell, output.
    order = np.concatenate([np.arange(4), np.arange(8, 12), np.arange(12, 16), np.arange(4, 8)])
    np.testing.assert_array_equal(stacked.data, w[0][order])
    np.testing.assert_array_equal(recurrent.data, r[0][order])
    np.testing.assert_array_equal(bias.data, np.concatenate([b[0][:16][order], b[0][16:][order]]))
    assert data.shape == (7, 1, 3) and graph_macs(graph) == 7 * 16 * (3 + 4)


def test_gru_reads(tmp_path):
    path = save(tmp_path, [node("GRU", "x w r", "y", hidden_size=4)], {"x": [7, 1, 3]},
                {"y": [7, 1, 1, 4]}, {"w": weights(1, 12, 3), "r": weights(1, 12, 4)})
    graph = read_model(path)
    assert described(graph) == ["gru"] and graph_macs(graph) == 7 * 12 * (3 + 4)


def integer_constants():
    random = np.random.default_rng(3)
    return {"xs": np.float32(0.05), "xz": np.int8(3), "w": random.integers(
        -127, 128, (4, 3, 3, 3), dtype=np.int8), "ws": np.array([.01, .02, .03, .04], np.float32),
        "wz": np.zeros(4, np.int8), "ys": np.float32(0.1), "yz": np.int8(-128),
        "b": random.integers(-99, 99, 4, dtype=np.int32)}


def test_both_quantised_forms_read_as_the_same_layer(tmp_path):
    constants = integer_constants()
    shapes = {"x": [1, 3, 8, 6]}, {"y": [1, 4, 8, 6]}
    operator = read_model(save(
        tmp_path, [node("QLinearConv", "x xs xz w ws wz ys yz b", "y", pads=[1, 1, 1, 1])],
        *shapes, constants, kind=TensorProto.INT8))
    pairs = read_model(save(
        tmp_path,
        [node("DequantizeLinear", "x xs xz", "xf"),
         node("DequantizeLinear", "w ws wz", "wf", axis=0),
         node("DequantizeLinear", "b bs bz", "bf", axis=0),
         node("Conv", "xf wf bf", "c", pads=[1, 1, 1, 1]),
         node("QuantizeLinear", "c ys yz", "y")],
        *shapes, {**constants, "bs": constants["xs"] * constants["ws"],
                  "bz": np.zeros(4, np.int32)}, kind=TensorProto.INT8))
    assert_same_graph(operator, pairs)
    (layer,) = operator.layers
    data, kernel, bias = operator.layer_inputs(layer)
    np.testing.assert_array_equal(kernel.data, constants["w"].transpose(0, 2, 3, 1))
    assert kernel.quantization.axis == 0 and bias.dtype == "int32"
    assert operator.layer_outputs(layer)[0].quantization.zero_points == (-128,)
    assert operator.layer_outputs(layer)[0].dtype == "int8" and data.shape == (1, 8, 6, 3)


def test_partly_quantised_operators_keep_their_conversions(tmp_path):
    # The sum reads one real value, so it runs on real values.
    path = save(tmp_path, [node("QuantizeLinear", "x s z", "q"),
                           node("DequantizeLinear", "q s z", "d"), node("Add", "d x", "a"),
                           node("QuantizeLinear", "a s z", "r"),
                           node("DequantizeLinear", "r s z", "y")],
                {"x": [1, 6]}, {"y": [1, 6]}, {"s": np.float32(0.1), "z": np.int8(0)})
    assert described(read_model(path)) == ["quantize", "dequantize", "add", "quantize",
                                           "dequantize"]


REFUSED = {
    "unknown": ([node("Shrink", "x", "a"), node("Tan", "a", "y")], [1, 4], [1, 4], {},
                "2 operators are not supported: 0 Shrink, 1 Tan"),
    "variant": ([node("Resize", "x  scales", "y", mode="cubic")], [1, 3, 2, 2], [1, 3, 4, 4],
                {"scales": np.array([1, 1, 2, 2], np.float32)}, "0 Resize (mode cubic"),
    "cycle": ([node("Add", "x b", "a"), node("Relu", "a", "b"), node("Relu", "b", "y")], [1, 4],
              [1, 4], {}, "the graph has a cycle: node 0 Add -> 1 Relu -> 0 Add"),
    "nowhere": ([node("Add", "x b", "y")], [1, 4], [1, 4], {}, "reads 'b', which no node, input"),
    "order": ([node("Relu", "a", "y"), node("Neg", "x", "a")], [1, 4], [1, 4], {},
              "node 0 Relu reads 'a', which node 1 makes after it"),
    "dynamic": ([node("Relu", "x", "y")], [1, "n"], [1, "n"], {}, "dynamic shape [1, 'n']"),
    "lone norm": ([node("Neg", "x", "v"), node("Reshape", "v to", "w"),
                   node("BatchNormalization", "x a a a w", "y")], [1, 4], [1, 4],
                  {"a": weights(4), "to": np.array([4])}, "not behind a convolution"),
    "data-dependent": ([node("NonZero", "x", "i"), node("Unique", "x", "u"),
                        node("Cast", "i", "y", to=1)], [1, 4],
                       [2, "k"], {}, "0 NonZero, 1 Unique"),
}


REFUSED["variant"][0][0].input.insert(1, "")


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_the_file_and_the_reason(case, tmp_path):
    nodes, given, made, constants, message = REFUSED[case]
    path = save(tmp_path, nodes, {"x": given}, {"y": made}, constants)
    with pytest.raises(ModelError) as caught:
        read_model(path)
    assert message in str(caught.value) and str(path) in str(caught.value)


def test_unknown_operators_become_assumed_copies_when_asked(tmp_path):
    nodes, given, made, constants, _ = REFUSED["unknown"]
    path = save(tmp_path, nodes, {"x": given}, {"y": made}, constants)
    graph = read_model(path, assume_unsupported="copy")
    assert [(layer.op, layer.assumed) for layer in graph.layers] == [("copy", True)] * 2


def test_damaged_files_give_a_graph_or_a_model_error(tmp_path):
    content, path = encode_onnx(zoo.build("kws")), tmp_path / "damaged.onnx"
    chosen = random.Random(0)
    outcomes = set()
    for turn in range(60):
        changed = bytearray(content)
        if turn % 3 == 0:
            changed = changed[:chosen.randrange(len(changed))]
        else:
            for _ in range(4):
                changed[-chosen.randrange(1, 14_000)] = chosen.randrange(256)
        path.write_bytes(changed)
        try:
            outcomes.add(type(read_model(path)))
        except ModelError:
            outcomes.add(ModelError)
    assert outcomes <= {Graph, ModelError} and ModelError in outcomes


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    (tmp_path / "x.onnx").write_bytes(b"anything")
    with pytest.raises(ToolMissingError, match=r"the extra 'onnx'") as caught:
        read_model(tmp_path / "x.onnx")
    assert caught.value.exit_code == 5


def test_a_constant_output_is_said_and_left_out(tmp_path):
    path = save(tmp_path, [node("Relu", "x", "y")], {"x": [1, 4]},
                {"y": [1, 4], "anchors": [8, 4]}, {"anchors": weights(8, 4)})
    graph = read_model(path)
    assert [graph.tensors[i].name for i in graph.outputs] == ["y"]
    assert any("'anchors' is a constant" in note for note in graph.notes)


def test_layers_bear_the_names_of_their_nodes(tmp_path):
    names = ("conv1", "same", "same", "")
    nodes = [node("Relu", f"v{place}", f"v{place + 1}", name=name)
             for place, name in enumerate(names)]
    graph = read_model(save(tmp_path, nodes, {"v0": [1, 8]}, {"v4": [1, 8]}, {}))
    assert [layer.name for layer in graph.layers] == ["conv1", "same", "v3", "v4"]
