"""Kernels of every library whole: instructions, accesses by operand, useful MACs."""

import math
import zlib
from collections import Counter
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest
from made_graphs import one_layer, tensor
from made_layers import example, make
from made_outlines import compare_kept, outline

from hwmodels.kernel import walk_accesses
from twin.deployment.core import lower_network
from twin.deployment.deploy import deploy
from twin.errors import RuntimeRefusedError
from twin.network.graph import Quantization, Window
from twin.runtimes.file import load_runtime
from twin.runtimes.library import find_operators

KEPT = Path(__file__).parent / "kept"
CASES = [(runtime, model, board) for board, runtimes in {
    "nucleo_l4r5zi": ("cmsis-nn", "tflm-cmsis-nn", "tflm-reference@2023", "x-cube-ai"),
    "apollo510_evb": ("cmsis-nn",), "rpi_pico": ("cmsis-nn",),
    "esp32s3_devkitc": ("tflm-esp-nn",), "esp32c3_devkitm": ("esp-nn-ansi",),
    "nucleo_h7a3zi_q": ("x-cube-ai",), "stm32n6570_dk": ("neural-art",)}.items()
    for runtime in runtimes
    for model in (("kws", "ic", "sww") if runtime == "cmsis-nn" else ("kws",))]


def describe(kernel):
    """Write a kernel: sums by block and operand, and a checksum of all code and addresses."""
    accesses = [(extents, one.operand, one.write, one.width_bytes, one.offset_bytes,
                 one.steps_bytes, [astuple(guard) for guard in one.guards])
                for extents, one in walk_accesses(kernel.nests)]
    moved = Counter()
    for extents, operand, write, width_bytes, *_ in accesses:
        moved[operand + (" written" if write else "")] += math.prod(extents) * width_bytes
    code = [(block.name, block.code, block.trips, block.entries, block.cause)
            for block in kernel.blocks]
    return (kernel.name, kernel.family, kernel.useful_macs, kernel.code_bytes, kernel.assumed,
            [(name, trips) for name, _, trips, *_ in code], dict(moved),
            f"{zlib.crc32(repr((code, accesses)).encode()):08x}")


@pytest.mark.parametrize("runtime, model, board", CASES)
def test_kernels(runtime, model, board) -> None:
    found = [[describe(kernel) for kernel in layer]
             for layer in lower_network(deploy(model, board, runtime=runtime))]
    compare_kept(KEPT / f"{runtime}-{model}-{board}.txt", outline(found, 14))


OPERATORS = [(runtime, board, dtypes) for board, runtimes, dtypes in (
    ("nucleo_l4r5zi", ("tflm-reference@2023",), ("int8", "int16", "float32")),
    ("nucleo_l4r5zi", ("cmsis-nn",), ("int8", "int16")),
    ("apollo510_evb", ("cmsis-nn",), ("int8",)),
    ("rpi_pico", ("cmsis-nn", "float-reference"), ("int8", "float32")),
    ("esp32c3_devkitm", ("esp-nn-ansi",), ("int8",)), ("esp32s3_devkitc", ("esp-dl", "tflm-esp-nn"),
                                                       ("int8",)),
    ("gap9evk", ("gap",), ("int8",)), ("max78000evkit", ("ai8x",), ("int8",)),
    ("xg24_dk2601b", ("mvp",), ("int8", "float32")),
    ("nucleo_l4r5zi", ("nnom@cmsis", "nnom@local", "tinymaix@o1"), ("int8",)),
    ("nucleo_l4r5zi", ("emlearn@o2",), ("float32",)))
    for runtime in runtimes]


@pytest.mark.parametrize(("runtime", "board", "dtypes"), OPERATORS)
def test_operators(runtime, board, dtypes) -> None:
    """A layer of each operator a library has, alone, a line each: what kws has none of, too."""
    lines = []
    for op in sorted({*find_operators("reference")} - {"svdf"}):  # which some want a state of
        for dtype in dtypes:
            graph, layer = example(op, dtype)
            graph = replace(graph, inputs=tuple(
                place for place in layer.inputs if graph.tensors[place].data is None))
            try:
                found = [describe(kernel) for group in lower_network(deploy(
                    graph, board, runtime=runtime)) for kernel in group]
            except RuntimeRefusedError:
                found = []
            lines += [f"{op} {dtype}: {name}, {family}, {macs} MACs, {code_bytes} bytes, assumed "
                      f"{assumed}, {check}" for name, family, macs, code_bytes, assumed, *_, check
                      in found] or [f"{op} {dtype}: refused"]
    compare_kept(KEPT / f"operators-{runtime}-{board}.txt", "\n".join(lines) + "\n")


def convolve(op, source, kernel, outputs, groups=1, **window):
    """A convolution of 9 x 7 pixels with a bias, padded as far as `window` says."""
    rows, columns = kernel
    shape = Window(kernel=kernel, **window)
    top, bottom, left, right = shape.padding
    size = [(extent + before + after - taps) // step + 1 for extent, before, after, taps, step in (
        (9, top, bottom, rows, shape.stride[0]), (7, left, right, columns, shape.stride[1]))]
    weights = ((1, rows, columns, outputs) if op == "depthwise_conv_2d" else
               (outputs, rows, columns, source // groups))
    return make(op, [(1, 9, 7, source), (weights, "int8"), ((outputs,), "int32")],
                (1, *size, outputs), window=shape, groups=groups)


DEEP, CONV = "depthwise_conv_2d", "conv_2d"
SHAPES = {
    "1x1": lambda: convolve(CONV, 8, (1, 1), 8),
    "1x1 by twos": lambda: convolve(CONV, 6, (1, 1), 5, stride=(2, 2)),
    "1x1 of 3": lambda: convolve(CONV, 3, (1, 1), 5),
    "3x3 by twos": lambda: convolve(CONV, 3, (3, 3), 8, stride=(2, 2), padding=(0, 1, 0, 1)),
    "1x5": lambda: convolve(CONV, 4, (1, 5), 4, padding=(0, 0, 2, 2)),
    "5x1": lambda: convolve(CONV, 4, (5, 1), 4), "all": lambda: convolve(CONV, 2, (9, 7), 4),
    "groups": lambda: convolve(CONV, 8, (3, 3), 4, groups=2),
    "deep": lambda: convolve(DEEP, 8, (3, 3), 8, groups=8, padding=(1, 1, 1, 1)),
    "deep of 6 by twos": lambda: convolve(DEEP, 6, (5, 5), 6, groups=6, stride=(2, 2)),
    "deep of one": lambda: convolve(DEEP, 1, (3, 3), 4, padding=(1, 1, 1, 1)),
    "deep of one to one": lambda: convolve(DEEP, 1, (3, 3), 1),
    "deep, twice": lambda: convolve(DEEP, 4, (2, 2), 8, groups=4),
    "deep 1x1": lambda: convolve(DEEP, 4, (1, 1), 4, groups=4),
    "dense": lambda: make("fully_connected", [(1, 37), ((5, 37), "int8"), ((5,), "int32")], (1, 5)),
    "dense without bias": lambda: make("fully_connected", [(3, 16), ((4, 16), "int8")], (3, 4))}


@pytest.mark.parametrize(("runtime", "board"), [
    (runtime, board) for runtime, board, dtypes in OPERATORS if "int8" in dtypes])
def test_shapes(runtime, board) -> None:
    """Convolutions and dense layers of the shapes libraries part their kernels by."""
    lines = []
    for name, shape in SHAPES.items():
        try:
            found = [describe(kernel) for group in lower_network(deploy(
                shape()[0], board, runtime=runtime)) for kernel in group]
        except RuntimeRefusedError:
            found = [("refused", "")]
        lines += [f"{name}: {', '.join(map(str, one))}" for one in found]
    compare_kept(KEPT / f"shapes-{runtime}-{board}.txt", "\n".join(lines) + "\n")


@pytest.mark.parametrize("adj", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_matrix_products(adj, dtype) -> None:
    """Two pairs of matrices, 4 x 3 by 3 x 5; adj: the second comes transposed."""
    graph = one_layer("batch_matmul", [tensor((1, 2, 4, 3), dtype),
                                       tensor((1, 2, 5, 3) if adj else (1, 2, 3, 5), dtype)],
                      [tensor((1, 2, 4, 5), dtype)], options={"adj_x": False, "adj_y": adj})
    runtime = "tflm-reference@2023" if dtype == "int8" else "float-reference"
    layer, = lower_network(deploy(graph, "nucleo_l4r5zi", runtime=runtime))
    assert sum(kernel.useful_macs for kernel in layer) == 2 * 4 * 3 * 5
    compare_kept(KEPT / f"matmul-{dtype}-{adj}.txt", outline([describe(one) for one in layer], 20))


def test_products_of_a_library_with_scales_of_their_own_and_of_two_activations() -> None:
    """CMSIS-NN's: five rows of weights, each with its scale; two pairs of matrices."""
    scales = Quantization(scales=(0.1, 0.2, 0.3, 0.4, 0.5), zero_points=(0,) * 5, axis=0)
    dense = one_layer("fully_connected", [
        tensor((1, 8)), tensor((5, 8), data=np.ones((5, 8), np.int8), quantization=scales)],
        [tensor((1, 5))])
    batched = one_layer("batch_matmul", [tensor((1, 2, 4, 3)), tensor((1, 2, 5, 3))],
                        [tensor((1, 2, 4, 5))], options={"adj_x": False, "adj_y": True})
    found = [[describe(kernel) for kernel in layer] for graph in (dense, batched)
             for layer in lower_network(deploy(graph, "nucleo_l4r5zi", runtime="cmsis-nn"))]
    assert [sum(kernel[2] for kernel in layer) for layer in found] == [5 * 8, 2 * 4 * 3 * 5]
    compare_kept(KEPT / "cmsis-nn-products.txt", outline(found, 20))


@pytest.mark.parametrize("name", ["cmsis-nn", "neural-art", "tflm-esp-nn"])
def test_runtimes(name) -> None:
    compare_kept(KEPT / f"{name}.txt", outline(load_runtime(name), 40))
