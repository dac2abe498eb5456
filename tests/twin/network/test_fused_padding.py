"""Padding done by the convolution behind it: the same numbers, one tensor less."""

import numpy as np
import pytest
from made_graphs import QUANTIZED, tensor

from twin.deployment.core import lower_network
from twin.deployment.deploy import deploy
from twin.network.arithmetic import run_network
from twin.network.graph import Graph, Layer, Quantization, Tensor, Window
from twin.network.operators import is_alias
from twin.network.rewrites.fused_padding import fuse_padding
from twin.network.zoo.builder import Builder


def padded_convolution(paddings=((0, 0), (0, 1), (2, 1), (0, 0)), **options) -> Graph:
    """A padding, then a convolution with padding of its own: 7x6x3 to 4 channels."""
    rows, columns = (7 + sum(paddings[1]), 6 + sum(paddings[2]))
    per_channel = Quantization(scales=(0.02, 0.01, 0.03, 0.04), zero_points=(0,) * 4, axis=0)
    window = Window(kernel=(3, 3), stride=(2, 1), padding=(1, 0, 0, 1))
    output = ((rows + 1 - 3) // 2 + 1, columns + 1 - 3 + 1)
    tensors = (
        tensor((1, 7, 6, 3)), tensor((1, rows, columns, 3)),
        tensor((4, 3, 3, 3), data="random", quantization=per_channel),
        Tensor(name="bias", shape=(4,), dtype="int32", data=np.arange(4, dtype=np.int32) * 50,
               quantization=per_channel),
        tensor((1, *output, 4), quantization=QUANTIZED))
    options = {"mode": "constant", "value": 0.0, "paddings": paddings} | options
    layers = (
        Layer(index=0, name="pad", op="pad", inputs=(0,), outputs=(1,),
              options=tuple(sorted(options.items()))),
        Layer(index=1, name="conv", op="conv_2d", inputs=(1, 2, 3), outputs=(4,), window=window))
    return Graph(name="padded", source="made", sha256="0" * 64, tensors=tensors, layers=layers,
                 inputs=(0,), outputs=(4,))


def test_the_output_is_the_same_to_the_bit() -> None:
    graph = padded_convolution()
    fused = fuse_padding(graph)
    image = np.random.default_rng(1).integers(-128, 128, (1, 7, 6, 3)).astype(np.int8)
    assert np.array_equal(run_network(fused, [image])[4], run_network(graph, [image])[4])
    assert fused.layers[1].window.padding == (1, 1, 2, 2)
    assert is_alias(fused.layers[0]) and fused.tensors[1].shape == (1, 7, 6, 3)
    assert fused.sha256 != graph.sha256
    assert fuse_padding(fused) is fused


@pytest.mark.parametrize("changes", [
    {"mode": "mirror"}, {"value": 1.0}, {"paddings": ((0, 0), (0, 0), (0, 0), (0, 1))},
    {"paddings": ((0, 0), (-1, 1), (0, 0), (0, 0))}])
def test_what_a_convolution_cannot_pad_stays(changes) -> None:
    graph = padded_convolution(**changes)
    assert fuse_padding(graph) is graph


@pytest.mark.parametrize("zero_point, fused", [(-128, True), (-127, False)])
def test_maximum_pooling_pads_with_the_least_value(zero_point, fused) -> None:
    scale = Quantization(scales=(0.5,), zero_points=(zero_point,))
    paddings = ((0, 0), (1, 1), (1, 0), (0, 0))
    shapes = ((1, 6, 5, 3), (1, 8, 6, 3), (1, 4, 3, 3))
    layers = (
        Layer(index=0, name="pad", op="pad", inputs=(0,), outputs=(1,),
              options=(("mode", "constant"), ("paddings", paddings), ("value", 0.0))),
        Layer(index=1, name="pool", op="max_pool_2d", inputs=(1,), outputs=(2,),
              window=Window(kernel=(2, 2), stride=(2, 2))))
    graph = Graph(name="pooled", source="made", sha256="2" * 64, layers=layers, inputs=(0,),
                  outputs=(2,), tensors=tuple(tensor(shape, quantization=scale)
                                              for shape in shapes))
    image = np.random.default_rng(2).integers(-128, -100, shapes[0]).astype(np.int8)
    made = fuse_padding(graph)
    assert (made is not graph) == fused
    assert np.array_equal(run_network(made, [image])[2], run_network(graph, [image])[2])


def test_a_padding_that_another_operator_reads_stays() -> None:
    graph = padded_convolution()
    relu = Layer(index=2, name="relu", op="relu", inputs=(1,), outputs=(5,))
    both = Graph(name="both", source="made", sha256="1" * 64,
                 tensors=(*graph.tensors, graph.tensors[1]), layers=(*graph.layers, relu),
                 inputs=(0,), outputs=(4, 5))
    assert fuse_padding(both) is both


@pytest.mark.parametrize("pads", [(1, 1), (0, 1)])
@pytest.mark.parametrize("size", [15, 16, 17])
def test_padding_ahead_of_same_padding_fits_the_kernels(size, pads):
    # The last window then reaches two columns past the image.
    net = Builder("padded", 1)
    image = net.input((1, size, size, 8))
    made = size + sum(pads)
    padded = net.layer("pad", (image,), (1, made, made, 8), mode="constant", value=0.0,
                       paddings=((0, 0), pads, pads, (0, 0)),
                       quantization=net.quantization(image))
    graph = net.finish(net.conv(net.depthwise(padded, 3, 2), 16, 1))
    kernels = lower_network(deploy(graph, "nucleo_l4r5zi", runtime="x-cube-ai"))
    assert sum(kernel.useful_macs for kernel in kernels[1]) > 0
