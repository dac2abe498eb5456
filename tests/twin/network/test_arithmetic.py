"""Bit-exact integer arithmetic against its definitions, and against LiteRT."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_graphs import MLPERF_TINY, model_file, needs_models, one_layer, tensor

from twin.errors import RuntimeRefusedError, UsageError
from twin.network.arithmetic import run_layer, run_network
from twin.network.arithmetic.parameters import folded_bias, lookup_table, softmax_table
from twin.network.arithmetic.requantisation import (
    activation_range,
    round_away,
    scale_values,
    split_scale,
)
from twin.network.graph import Graph, GraphLayer, Quantization, Window
from twin.network.readers import read_model
from twin.network.writers.tflite import write_tflite
from twin.network.zoo import build
from twin.program.image.compile.verification import random_input

INT32 = st.integers(-2**31, 2**31 - 1)


def scale_by_definition(x: int, multiplier: int, shift: int) -> int:
    """TFLite's MultiplyByQuantizedMultiplier, word for word, in Python's integers.

    SaturatingRoundingDoublingHighMul nudges by 2**30 or 1 - 2**30 and divides towards zero;
    RoundingDivideByPOT rounds half away from zero.
    """
    left, right = max(shift, 0), max(-shift, 0)
    x = (x << left) + 2**31 & 0xFFFFFFFF
    x -= 2**31
    product = x * multiplier
    nudged = product + (2**30 if product >= 0 else 1 - 2**30)
    high = abs(nudged) // 2**31 * (1 if nudged >= 0 else -1)
    quotient, rest = divmod(abs(high), 1 << right)
    rounded = quotient + (2 * rest >= 1 << right and right > 0)
    return rounded if high >= 0 else -rounded


@given(INT32, st.integers(2**30, 2**31 - 1), st.integers(-31, 8))
def test_scaling_is_tflites(x, multiplier, shift):
    assert scale_values(np.array(x), multiplier, shift) == scale_by_definition(
        x, multiplier, shift)


def test_scaling_at_the_ends():
    for x in (-2**31, -2**31 + 1, -1, 0, 1, 2**31 - 1):
        for shift in (-31, -30, -1, 0, 1):
            assert scale_values(np.array(x), 2**30, shift) == scale_by_definition(x, 2**30, shift)


@given(st.floats(2**-31, 2**20))
def test_split_scale_is_close_and_normal(scale):
    multiplier, shift = split_scale(scale)
    assert 2**30 <= multiplier < 2**31
    assert math.ldexp(multiplier, shift - 31) == pytest.approx(scale, rel=2**-30)


def test_split_scale_at_its_limits():
    assert split_scale(0.0) == (0, 0) and split_scale(2.0**-40) == (0, 0)
    assert split_scale(0.5) == (2**30, 0)          # 0.5 = 2**30 / 2**31
    assert split_scale(1.0 - 2**-40) == (2**30, 1)  # rounds up to 1
    with pytest.raises(RuntimeRefusedError, match="does not fit"):
        split_scale(2.0**32)


def test_rounding_is_half_away_from_zero():
    assert round_away(np.array([-1.5, -0.5, -0.4, 0.5, 1.5, 2.4])).tolist() == [-2, -1, 0, 1, 2, 2]


@pytest.mark.parametrize(("activation", "expected"), [
    # scale 0.5, zero point 3: real 0 is stored as 3, real 6 as 15, real -1 as 1.
    (None, (-128, 127)), ("relu", (3, 127)), ("relu6", (3, 15)), ("relu_n1_to_1", (1, 5))])
def test_activation_range(activation, expected):
    graph = one_layer("add", [tensor((1, 4)), tensor((1, 4))], [tensor((1, 4))],
                      activation=activation)
    assert activation_range(GraphLayer(graph, graph.layers[0])) == expected


def test_folded_bias_equals_subtracting_the_zero_point():
    graph = build("ad")
    layer = graph.layers[3]
    weights = graph.tensors[layer.inputs[1]].data.astype(int)
    bias = graph.tensors[layer.inputs[2]].data.astype(int)
    zero = graph.tensors[layer.inputs[0]].quantization.zero_points[0]
    stored = np.arange(weights.shape[1]) % 251 - 125
    np.testing.assert_array_equal(weights @ stored + folded_bias(GraphLayer(graph, layer)),
                                  weights @ (stored - zero) + bias)


def test_softmax_is_within_one_step_of_the_exact_one():
    out = tensor((1, 1000), quantization=Quantization(scales=(1 / 256,), zero_points=(-128,)))
    graph = one_layer("softmax", [tensor((1, 1000))], [out], options={"axis": 1, "beta": 1.0})
    table = softmax_table(GraphLayer(graph, graph.layers[0])).astype(np.int64)
    # bits = min(23, 31 - 10): a thousand of the largest stay below 2**31.
    assert table[0] == 2**21 and table[0] * 1000 < 2**31
    values = np.random.default_rng(1).integers(-128, 128, (1, 1000)).astype(np.int8)
    made = run_layer(graph, graph.layers[0], [values]).astype(int)
    real = np.exp(0.5 * (values - values.max().astype(int)))
    exact = real / real.sum() * 256 - 128
    assert np.abs(made - exact).max() <= 1.0


def test_lookup_rounds_the_real_function():
    graph = one_layer("logistic", [tensor((1, 4))], [tensor(
        (1, 4), quantization=Quantization(scales=(1 / 256,), zero_points=(-128,)))])
    table = lookup_table(GraphLayer(graph, graph.layers[0]))
    for stored in (-128, -1, 3, 20, 127):
        real = 1 / (1 + math.exp(-0.5 * (stored - 3)))
        assert table[stored + 128] == min(127, math.floor(real * 256 + 0.5) - 128)


def test_averages_round_half_away_from_zero_and_leave_borders_out():
    graph = one_layer("average_pool_2d", [tensor((1, 2, 2, 1))], [tensor((1, 2, 2, 1))],
                      window=Window(kernel=(2, 2), padding=(0, 1, 0, 1)))
    image = np.array([[1, 2], [3, 4]], np.int8).reshape(1, 2, 2, 1)
    made = run_layer(graph, graph.layers[0], [image]).reshape(-1)
    assert made.tolist() == [3, 3, 4, 4]   # 10/4 = 2.5, 6/2, 7/2 = 3.5, 4
    made = run_layer(graph, graph.layers[0], [-image]).reshape(-1)
    assert made.tolist() == [-3, -3, -4, -4]


@pytest.mark.parametrize(("graph", "said"), [
    (one_layer("sub", [tensor((1, 4)), tensor((1, 4))], [tensor((1, 4))]), "no kernel"),
    (one_layer("add", [tensor((1, 4)), tensor((1, 1))], [tensor((1, 4))]), "one shape"),
    (one_layer("mean", [tensor((1, 4, 4, 2))], [tensor((1, 4, 2))],
               options={"axes": (1,), "keep_dims": False}), "height and width"),
    (one_layer("softmax", [tensor((1, 4))], [tensor((1, 4))],
               options={"axis": 1, "beta": 1.0}), "1/256"),
    (one_layer("max_pool_2d", [tensor((1, 4, 4, 1))], [tensor(
        (1, 2, 2, 1), quantization=Quantization(scales=(0.25,), zero_points=(3,)))],
               window=Window(kernel=(2, 2), stride=(2, 2))), "scales differ"),
    (one_layer("relu", [tensor((1, 4), "int16")], [tensor((1, 4), "int16")]), "no kernel"),
])
def test_what_the_kernels_cannot_do_is_refused(graph: Graph, said):
    inputs = [np.zeros(graph.tensors[i].shape, graph.tensors[i].dtype) for i in graph.inputs]
    with pytest.raises(RuntimeRefusedError, match=said):
        run_layer(graph, graph.layers[0], inputs)


def test_inputs_of_another_shape_or_type_are_refused():
    graph = build("ad")
    for values in (np.zeros((1, 64), np.int8), np.zeros((1, 640), np.float32)):
        with pytest.raises(UsageError, match="is expected"):
            run_network(graph, [values])


# ---- LiteRT ----


def compare_with_litert(path: Path, graph: Graph) -> dict[str, int]:
    """Greatest difference by operator, each layer on LiteRT's own inputs."""
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="needs ai-edge-litert")
    interpreter = litert.Interpreter(
        str(path), experimental_preserve_all_tensors=True,
        experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], random_input(graph, 3))
    interpreter.invoke()
    places = {entry["name"]: entry["index"] for entry in interpreter.get_tensor_details()}

    def value(index: int) -> np.ndarray:
        entry = graph.tensors[index]
        return interpreter.get_tensor(places[entry.name]).reshape(entry.shape)

    worst: dict[str, int] = {}
    for layer in graph.layers:
        made = run_layer(graph, layer, [value(i) for i in graph.list_data(layer)])
        difference = int(np.abs(made.astype(int) - value(layer.outputs[0]).astype(int)).max())
        worst[layer.op] = max(worst.get(layer.op, 0), difference)
    return worst


@pytest.mark.parametrize("name", ["kws", "ic", "mobilenet_v2_0.35_32", "squeezenet1.1_32"])
def test_zoo_layers_are_within_one_step_of_litert(name, tmp_path):
    path = tmp_path / "model.tflite"
    write_tflite(build(name), path)
    worst = compare_with_litert(path, read_model(path))
    assert len(worst) >= 5 and max(worst.values()) <= 1, worst


@needs_models
@pytest.mark.parametrize("name", MLPERF_TINY)
def test_reference_models_are_within_one_step_of_litert(name):
    worst = compare_with_litert(model_file(name), read_model(model_file(name)))
    assert max(worst.values()) <= 1, worst
    # Convolutions, pools, additions and softmax are equal bit for bit; fully connected layers of
    # LiteRT 2 round once where TFLite's reference rounds twice.
    assert all(step == 0 for op, step in worst.items() if op != "fully_connected"), worst
