"""ESP-NN's kernels: C beside what was counted of it, the ESP32-S3's vectors, what is refused."""

from __future__ import annotations

import csv
import statistics

import numpy as np
import pytest

import twin
from benchmarks.accuracy import esp_kernels
from benchmarks.operators.esp_nn import RESULTS, size_of_output
from twin.deployment.core import lower_on_core
from twin.errors import RuntimeRefusedError
from twin.network.graph import Quantization, Window
from twin.network.zoo.builder import Builder
from twin.runtimes.lowering.blocks import count_instructions

OFFSET = Quantization(scales=(0.03,), zero_points=(-5,))
WORST = {"conv_2d": 0.04, "depthwise_conv_2d": 0.2}
"""Of a call in generic C; a depthwise convolution of one channel is the 0.2. ANSI C is exact."""


def network(row):
    """A counted case as a network of one layer."""
    case = {key: int(value) for key, value in row.items() if value.isdigit()}
    op, net, count = row["op"], Builder("case", 0), case["channels"]
    if op in ("add", "mul", "relu6"):
        operands = [net.input((1, count)) for _ in range(1 if op == "relu6" else 2)]
        return net.finish(net.layer(op, operands, (1, count)))
    if op == "softmax":
        return net.finish(net.softmax(net.input((case["height"], count))))
    if op == "fully_connected":
        return net.finish(net.fully_connected(net.input((1, count)), case["outputs"]))
    rows, columns = size_of_output(case)
    kernel, outputs = (case["kernel_rows"], case["kernel_columns"]), case["outputs"]
    window = Window(kernel=kernel, stride=(case["stride"],) * 2, padding=(case["padding"],) * 4)
    source = net.input((1, case["height"], case["width"], count), quantization=OFFSET)
    inputs = [source]
    if op.endswith("conv_2d"):
        shape = (outputs, *kernel, count) if op == "conv_2d" else (1, *kernel, outputs)
        inputs += [net.tensor("weights", shape, "int8", OFFSET, net.integers(shape)),
                   net.tensor("bias", (outputs,), "int32", None, np.zeros(outputs, np.int32))]
    groups = count if op == "depthwise_conv_2d" else 1
    return net.finish(net.layer(op, inputs, (1, rows, columns, outputs), window=window,
                                groups=groups))


def count(graph, board, runtime):
    """Instructions of all kernels."""
    kernels = lower_on_core(twin.deploy(graph, board, runtime=runtime))
    return sum(block.trips * count_instructions(block.code)
               for group in kernels for kernel in group for block in kernel.blocks)


def test_c_kernels_execute_what_was_counted_of_them():
    with RESULTS.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    errors: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        runtime = "esp-nn-ansi@1.2.3" if row["build"] == "ansi" else "esp-nn"
        found = count(network(row), "esp32c3_devkitm", runtime)
        errors.setdefault((row["op"], row["build"]), []).append(
            found / int(row["instructions"]) - 1)
    for (op, build), some in errors.items():
        limit = WORST.get(op, 0.01) if build == "opt" else 0.01
        assert max(abs(one) for one in some) < limit, (op, build)
        assert abs(statistics.median(some)) < 0.01, (op, build)


def test_vectors_of_the_s3_are_worth_what_they_are_in_its_sources():
    found = {}
    for name, _, graph in esp_kernels.kernel_graphs():
        plain, vectors = (count(graph, "esp32s3_devkitc", runtime)
                          for runtime, _ in esp_kernels.BUILDS.values())
        found[name] = plain / vectors
    # 16 products an instruction in place of one in 9; exponentials have no vectors.
    assert found["conv 1x1, 64 to 64"] > 10 and found["fully connected, 271 to 3"] > 5
    assert 1 < found["softmax, 8 of 3"] < 2
    graph = dict((name, one) for name, _, one in esp_kernels.kernel_graphs())["depthwise 3x3, 16"]
    (kernel,), = lower_on_core(twin.deploy(graph, "esp32s3_devkitc", runtime="esp-nn"))
    assert "ee.vmulas" in "".join(block.code for block in kernel.blocks)


def test_a_network_runs_on_both_parts():
    times = {}
    for board in ("esp32c3_devkitm", "esp32s3_devkitc"):
        for runtime in ("esp-nn", "tflm-esp-nn", "tflm-reference"):
            times[board, runtime] = twin.predict(
                twin.deploy("kws", board, runtime=runtime), calibration="none").time_us
    assert times["esp32s3_devkitc", "esp-nn"] < times["esp32c3_devkitm", "esp-nn"] / 5
    assert times["esp32s3_devkitc", "esp-nn"] < times["esp32s3_devkitc", "tflm-esp-nn"]
    assert times["esp32s3_devkitc", "tflm-esp-nn"] < times["esp32s3_devkitc", "tflm-reference"] / 5


@pytest.mark.parametrize("board", ["nucleo_l4r5zi", "launchxl_f28379d", "gap9evk"])
def test_a_core_nobody_counted_it_on_is_refused(board):
    with pytest.raises(RuntimeRefusedError, match=r"on a core of .*; accepted: rv32imc,"):
        twin.predict(twin.deploy("kws", board, runtime="esp-nn"))
