"""Kernels ESP-NN publishes of the ESP32-S3, as networks of one layer.

Shapes are those the library's own test program runs and prints (espressif/esp-nn 79d59ae,
test_app/main/main.c, tests/src), where the table's text says another: it prints the last case of
a test (relu6 of 100 elements, softmax of 8 rows of 3, pooling without padding), and the
convolution of 3 to 64 channels has an input of 10x10. At an instruction each, 1,615 elements of
relu6 in plain C would take more than the 1,125 cycles published.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from twin.network.graph import Graph, Quantization, Window
from twin.network.zoo.builder import Builder

BUILDS = {"ANSI C": ("esp-nn-ansi@1.2.3", "ansi_c_cycles_ticks"),
          "optimised": ("esp-nn@1.2.3", "optimized_cycles_ticks")}
"""Runtime and column of each build."""
ELEMENTS = 1615
OFFSET = Quantization(scales=(0.03,), zero_points=(-5,))
"""Of the tests' convolutions: an offset of 5."""


def kernel_graphs() -> Iterator[tuple[str, str, Graph]]:
    """Yield the ESP32-S3's rows in the table's order: name, memory of the operands, network."""
    net = Builder("esp_nn", 0)
    yield "add", "psram", net.finish(net.add(net.input((1, ELEMENTS)), net.input((1, ELEMENTS))))
    net = Builder("esp_nn", 0)
    yield "mul", "psram", net.finish(net.layer(
        "mul", (net.input((1, ELEMENTS)), net.input((1, ELEMENTS))), (1, ELEMENTS)))
    for size, depth, channels, kernel in ((10, 64, 64, 1), (8, 16, 16, 1), (10, 3, 64, 3)):
        net = Builder("esp_nn", 0)
        yield f"conv {kernel}x{kernel}, {depth} to {channels}", "psram", net.finish(net.conv(
            net.input((1, size, size, depth), quantization=OFFSET), channels, kernel,
            padding="valid", activation=None))
    net = Builder("esp_nn", 0)
    yield "depthwise 3x3, 16", "psram", net.finish(net.depthwise(
        net.input((1, 18, 18, 16), quantization=OFFSET), 3, padding="valid", activation=None))
    yield "depthwise 5x5, 4 by 8", "psram", _multiplied()
    for op in ("max_pool_2d", "average_pool_2d"):
        net = Builder("esp_nn", 0)
        yield op, "sram", net.finish(net.pool(op, net.input((1, 16, 16, 16)), 3, 1))
    net = Builder("esp_nn", 0)
    yield "fully connected, 271 to 3", "sram", net.finish(net.fully_connected(
        net.input((1, 271)), 3))
    net = Builder("esp_nn", 0)
    yield "softmax, 8 of 3", "sram", net.finish(net.softmax(net.input((8, 3))))
    net = Builder("esp_nn", 0)
    yield "relu6", "sram", net.finish(net.layer("relu6", (net.input((1, 100)),), (1, 100)))


def _multiplied() -> Graph:
    """A depthwise convolution of 4 channels with a multiplier of 8, padded by one as published."""
    net = Builder("esp_nn", 0)
    source = net.input((1, 12, 12, 4), quantization=OFFSET)
    weights = net.tensor("weights", (1, 5, 5, 32), "int8", net.quantization(source),
                         net.integers((1, 5, 5, 32)))
    bias = net.tensor("bias", (32,), "int32", None, np.zeros(32, np.int32))
    return net.finish(net.layer(
        "depthwise_conv_2d", (source, weights, bias), (1, 12, 12, 32),
        window=Window(kernel=(5, 5), padding=(1, 3, 1, 3)), groups=4))
