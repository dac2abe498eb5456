"""CMSIS-NN lowering for scalar and DSP cores: laws, choice of function, compiled truth."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from made_cases import for_each
from made_graphs import list_models, needs_models

from hwmodels.isa.instruction import parse_code
from hwmodels.kernel import Kernel, Operand
from hwmodels.nest.stream import check_nests
from hwmodels.nest.traffic import measure_traffic
from twin.errors import RuntimeRefusedError
from twin.network.graph import Graph, Layer, Quantization, Tensor, Window
from twin.runtimes.library import find_lowering, find_operators
from twin.runtimes.lowering import Lowering, Site

OPERATORS = sorted(find_operators("cmsis_nn"))
ISAS = ("armv6-m", "armv7-m", "armv7e-m", "rv32imc")


def find(op: str, isa: str) -> Lowering:
    """What the library runs of int8 layers on a core."""
    lowering = find_lowering(("cmsis_nn",), op, "int8", isa)
    assert lowering is not None
    return lowering


def build(op, inputs, output, weights=None, bias=True, window=None, groups=1, isa="armv7e-m",
          **options):
    """One-layer graph and a site whose operands follow each other in one memory."""
    shapes = [("input" if i == 0 else f"input{i + 1}", shape, False)
              for i, shape in enumerate(inputs)]
    if weights:
        shapes.append(("weights", weights, True))
        if bias:
            shapes.append(("bias", (output[-1],), True) if bias is True
                          else ("weights2", bias, True))
    shapes.append(("output", output, False))
    quantization = Quantization(scales=(1.0,), zero_points=(0,))
    tensors = tuple(
        Tensor(name=name, shape=shape, dtype="int32" if name == "bias" else "int8",
               quantization=quantization, data=np.zeros(1, np.int8) if constant else None)
        for name, shape, constant in shapes)
    layer = Layer(index=0, name=op, op=op, inputs=tuple(range(len(shapes) - 1)),
                  outputs=(len(shapes) - 1,), window=window, groups=groups,
                  options=tuple(sorted(options.items())))
    graph = Graph(name=op, source="test", sha256="", tensors=tensors, layers=(layer,),
                  inputs=(0,), outputs=(len(shapes) - 1,))
    sizes = [(name, tensor.size_bytes) for (name, _, _), tensor in zip(shapes, tensors,
                                                                         strict=True)]
    if weights:
        sizes.append(("parameters", 8 * output[-1]))
    scratch = find(op, isa).scratch_bytes(
        Site(graph=graph, layer=layer, isa=isa, fpu=None, operands=()))
    if scratch:
        sizes.append(("scratch", scratch))
    operands, address = [], 0x20000000
    for name, size_bytes in sizes:
        operands.append(Operand(name=name, role=re.sub(r"\d", "", name), memory="sram",
                                address=address, size_bytes=size_bytes))
        address += (size_bytes + 31) // 32 * 32
    return Site(graph=graph, layer=layer, isa=isa, fpu=None, operands=tuple(operands))


def lower(op, *args, **kwargs) -> Kernel:
    site = build(op, *args, **kwargs)
    (kernel,) = find(op, site.isa).lower(site)
    return kernel


def conv(rows, columns, channels, filters, kernel, stride=(1, 1), padding=(0, 0), isa="armv7e-m",
         dilation=(1, 1), groups=1):
    window = Window(kernel=kernel, stride=stride, dilation=dilation,
                    padding=sides(padding))
    out = output_extent((rows, columns), window)
    return lower("conv_2d", [(1, rows, columns, channels)], (1, *out, filters), isa=isa,
                 weights=(filters, *kernel, channels // groups), window=window, groups=groups)


def depthwise(rows, columns, channels, kernel, stride=(1, 1), padding=(0, 0), multiplier=1,
              dilation=(1, 1), isa="armv7e-m"):
    window = Window(kernel=kernel, stride=stride, dilation=dilation,
                    padding=sides(padding))
    out = output_extent((rows, columns), window)
    filters = channels * multiplier
    return lower("depthwise_conv_2d", [(1, rows, columns, channels)], (1, *out, filters), isa=isa,
                 weights=(1, *kernel, filters), window=window, groups=channels)


def pool(op, rows, columns, channels, kernel, stride, padding=0, isa="armv7e-m"):
    window = Window(kernel=kernel, stride=stride, padding=(padding,) * 4)
    out = output_extent((rows, columns), window)
    return lower(op, [(1, rows, columns, channels)], (1, *out, channels), window=window, isa=isa)


def sides(padding):
    """(rows, columns) on both sides, or (top, bottom, left, right)."""
    return tuple(padding) if len(padding) == 4 else (padding[0],) * 2 + (padding[1],) * 2


def output_extent(extents, window):
    """floor((n + padding - dilation (k - 1) - 1) / stride) + 1, by axis."""
    return tuple((n + sum(window.padding[2 * i:2 * i + 2]) - 1
                  - window.dilation[i] * (window.kernel[i] - 1)) // window.stride[i] + 1
                 for i, n in enumerate(extents))


def totals(kernel):
    """Instructions, loads and stores, and loads and stores besides the stack's."""
    sums = dict.fromkeys(("instructions", "loads", "stores", "reads", "writes", "lanes"), 0)
    for block in kernel.blocks:
        for one in parse_code(block.code):
            stack = one.base == "sp" or one.mnemonic in ("push", "pop") or "sp" in one.text
            sums["instructions"] += block.trips
            sums["lanes"] += block.trips * one.mac_lanes
            if one.kind in ("load", "store"):
                sums[one.kind + "s"] += block.trips
                if not stack:
                    sums["reads" if one.kind == "load" else "writes"] += block.trips
    return sums


KERNELS = {
    "conv ds-cnn": lambda isa: conv(49, 10, 1, 16, (10, 4), (2, 2), (4, 1), isa),
    "conv rgb": lambda isa: conv(9, 8, 3, 8, (3, 3), (1, 1), (1, 1), isa),
    "conv odd columns": lambda isa: conv(7, 7, 8, 7, (3, 3), (1, 1), (1, 1), isa),
    "conv dilated": lambda isa: conv(9, 9, 4, 6, (3, 3), isa=isa, dilation=(2, 2)),
    "conv grouped": lambda isa: conv(6, 6, 8, 8, (3, 3), isa=isa, groups=2),
    "conv one column": lambda isa: conv(20, 1, 12, 5, (5, 1), (2, 1), (2, 0), isa),
    "1x1": lambda isa: conv(5, 5, 13, 11, (1, 1), isa=isa),
    "1x1 stride 2": lambda isa: conv(8, 8, 16, 8, (1, 1), (2, 2), isa=isa),
    "depthwise 3x3": lambda isa: depthwise(7, 6, 10, (3, 3), (1, 1), (1, 1), isa=isa),
    "depthwise 3x3 stride 2": lambda isa: depthwise(9, 9, 8, (3, 3), (2, 2), isa=isa),
    "depthwise 5x5": lambda isa: depthwise(8, 8, 8, (5, 5), (1, 1), (2, 2), isa=isa),
    "depthwise multiplier 8": lambda isa: depthwise(9, 8, 1, (4, 3), (2, 2), (1, 1), 8, isa=isa),
    "depthwise multiplier 2": lambda isa: depthwise(6, 6, 3, (3, 3), (1, 1), (1, 1), 2, isa=isa),
    "depthwise dilated": lambda isa: depthwise(9, 9, 4, (3, 3), dilation=(2, 2), isa=isa),
    "fully connected": lambda isa: lower("fully_connected", [(1, 66)], (1, 13), (13, 66), isa=isa),
    "average pool": lambda isa: pool("average_pool_2d", 8, 8, 6, (4, 4), (4, 4), isa=isa),
    "max pool": lambda isa: pool("max_pool_2d", 8, 8, 6, (2, 2), (2, 2), isa=isa),
    "add": lambda isa: lower("add", [(1, 35), (1, 35)], (1, 35), isa=isa),
    "mul": lambda isa: lower("mul", [(1, 35), (1, 35)], (1, 35), isa=isa),
    "add broadcast": lambda isa: lower("add", [(1, 4, 8), (1, 1, 8)], (1, 4, 8), isa=isa),
    "concatenation": lambda isa: lower("concatenation", [(1, 4, 8), (1, 4, 3)], (1, 4, 11),
                                       isa=isa, axis=2),
    "pad": lambda isa: lower("pad", [(1, 5, 6, 4)], (1, 7, 8, 4), isa=isa,
                             paddings=((0, 0), (1, 1), (1, 1), (0, 0))),
    "transpose": lambda isa: lower("transpose", [(1, 5, 6, 3)], (1, 3, 5, 6), isa=isa,
                                   perm=(0, 3, 1, 2)),
    "copy": lambda isa: lower("copy", [(1, 67)], (1, 67), isa=isa),
    "batch matmul": lambda isa: lower("batch_matmul", [(2, 5, 12), (2, 12, 7)], (2, 5, 7),
                                      isa=isa),
    "softmax": lambda isa: lower("softmax", [(2, 12)], (2, 12), isa=isa),
}


@for_each(KERNELS, ISAS)
def test_accesses_of_the_nests_are_the_loads_and_stores_of_the_blocks(name, isa):
    kernel = KERNELS[name](isa)
    check_nests(kernel.nests, [operand.name for operand in kernel.operands])
    traffic = measure_traffic(kernel.nests, kernel.operands, 32)  # refuses an access outside
    counted = totals(kernel)
    assert sum(one.reads for one in traffic) == counted["reads"]
    assert sum(one.writes for one in traffic) == counted["writes"]


@for_each(KERNELS)
def test_blocks_have_trips_and_a_footprint(name):
    kernel = KERNELS[name]("armv7e-m")
    assert all(0 < block.entries <= block.trips for block in kernel.blocks)
    assert 50 < kernel.code_bytes < 8192


@pytest.mark.parametrize(("kernel", "macs"), [
    # the window is gathered with its padding: pixels x kernel x channels x filters
    (lambda: conv(49, 10, 1, 16, (10, 4), (2, 2), (4, 5, 1, 1)), 25 * 5 * 40 * 16),
    (lambda: conv(5, 5, 13, 11, (1, 1)), 25 * 13 * 11),
    # rows and columns outside are skipped: (3 x 25 - 2) x (3 x 5 - 2) positions
    (lambda: depthwise(25, 5, 64, (3, 3), (1, 1), (1, 1)), 73 * 13 * 64),
    (lambda: depthwise(8, 8, 8, (5, 5), (1, 1), (2, 2)), 64 * 25 * 8),
    (lambda: lower("fully_connected", [(1, 66)], (1, 13), (13, 66)), 66 * 13),
])
def test_multiplies_executed_are_those_of_the_loops(kernel, macs):
    assert totals(kernel())["lanes"] == macs


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("op", "data", "output", "weights", "second", "macs"), [
    # 64 filters: products over 40 features and over 10 remembered steps
    ("svdf", (1, 40), (1, 32), (64, 40), (64, 10), 64 * (40 + 10)),
    # 5 steps, 4 gates x 16 units, over 12 features and 16 states
    ("lstm", (1, 5, 12), (1, 5, 16), (64, 12), (64, 16), 5 * 64 * (12 + 16)),
    ("gru", (1, 5, 12), (1, 5, 16), (48, 12), (48, 16), 5 * 48 * (12 + 16)),
    # every input pixel times a 3x3 window of 8 channels and 6 filters
    ("transpose_conv_2d", (1, 4, 5, 8), (1, 8, 10, 6), (6, 3, 3, 8), True, 4 * 5 * 9 * 8 * 6),
])
def test_assumed_kernels_say_so_and_stay_inside_their_operands(op, data, output, weights, second,
                                                               macs, isa):
    window = Window(kernel=(3, 3), stride=(2, 2), padding=(0, 1, 0, 1))
    kernel = lower(op, [data], output, weights, second, isa=isa,
                   window=window if op == "transpose_conv_2d" else None)
    assert kernel.assumed
    assert kernel.useful_macs == macs
    traffic = dict(zip([one.name for one in kernel.operands],
                       measure_traffic(kernel.nests, kernel.operands, 32), strict=True))
    assert traffic["output"].write_bytes >= math.prod(output)
    assert traffic["weights"].read_bytes >= math.prod(weights)
    counted = totals(kernel)
    assert counted["instructions"] > counted["loads"] > 0


def test_useful_macs_leave_out_padding():
    # 10x4 stride 2 over 49x10, padding 4 and 1: sums of window rows and columns inside
    rows = sum(min(10, 49 - start) - max(0, -start) for start in range(-4, 46, 2))
    columns = sum(min(4, 10 - start) - max(0, -start) for start in range(-1, 9, 2))
    kernel = conv(49, 10, 1, 64, (10, 4), (2, 2), (4, 5, 1, 1))
    assert kernel.useful_macs == rows * columns * 64 < 320_000
    assert depthwise(25, 5, 64, (3, 3), (1, 1), (1, 1)).useful_macs == 73 * 13 * 64


@pytest.mark.parametrize(("kernel", "name"), [
    (lambda: conv(5, 5, 64, 64, (1, 1)), "arm_convolve_1x1_s8_fast"),
    (lambda: conv(8, 8, 16, 32, (1, 1), (2, 2)), "arm_convolve_1x1_s8"),
    (lambda: conv(8, 8, 16, 32, (1, 1), (1, 1), (1, 1)), "arm_convolve_s8"),
    (lambda: conv(1, 10, 8, 8, (1, 3)), "arm_convolve_1_x_n_s8"),  # 8 outputs: a multiple of 4
    (lambda: conv(1, 9, 8, 8, (1, 3)), "arm_convolve_s8"),
    (lambda: depthwise(8, 8, 8, (3, 3)), "arm_depthwise_conv_3x3_s8"),
    (lambda: depthwise(8, 8, 8, (3, 3), padding=(2, 2)), "arm_depthwise_conv_s8_opt"),
    (lambda: depthwise(8, 8, 8, (5, 5)), "arm_depthwise_conv_s8_opt"),
    (lambda: depthwise(8, 8, 8, (5, 5), isa="armv7-m"), "arm_depthwise_conv_s8"),
    (lambda: depthwise(8, 8, 8, (3, 3), dilation=(2, 2)), "arm_depthwise_conv_s8"),
    (lambda: depthwise(8, 8, 8, (3, 3), multiplier=2), "arm_depthwise_conv_s8"),
])
def test_function_is_the_one_the_wrapper_chooses(kernel, name):
    assert kernel().name == name


@pytest.mark.parametrize(("op", "window", "shape", "out", "weights", "expected"), [
    # two int16 columns, rounded up to four elements
    ("conv_2d", (3, 3), (1, 8, 8, 3), (1, 6, 6, 4), (4, 3, 3, 3), 2 * 2 * 28),
    ("conv_2d", (1, 1), (1, 8, 8, 3), (1, 8, 8, 4), (4, 1, 1, 3), 0),
    ("depthwise_conv_2d", (5, 5), (1, 8, 8, 6), (1, 4, 4, 6), (1, 5, 5, 6), 2 * 25 * 6),
    ("depthwise_conv_2d", (3, 3), (1, 8, 8, 6), (1, 6, 6, 6), (1, 3, 3, 6), 0),
    ("average_pool_2d", (8, 8), (1, 8, 8, 6), (1, 1, 1, 6), None, 4 * 6),
])
def test_scratch_is_what_the_library_asks_for(op, window, shape, out, weights, expected):
    site = build(op, [shape], out, weights, window=Window(kernel=window))
    assert find(op, "armv7e-m").scratch_bytes(site) == expected
    assert any(operand.name == "scratch" for operand in site.operands) == (expected > 0)


KWS_CONV = (49, 10, 1, 64, (10, 4), (2, 2), (4, 5, 1, 1))
KWS_POINTWISE = (25, 5, 64, 64, (1, 1))


@pytest.mark.parametrize(("shape", "macs", "published"), [
    # MLPerf Tiny kws layers, CMSIS-NN on Cortex-M4 with DSP, gcc 12.2 -O2, counted on an
    # instruction-set simulator (published rows shipped with the data sets)
    (KWS_CONV, 320_000, 3.34),
    (KWS_POINTWISE, 512_000, 1.99),
])
def test_instructions_per_mac_against_published_simulation(shape, macs, published):
    assert totals(conv(*shape))["instructions"] / macs == pytest.approx(published, rel=0.10)


# Instructions, loads, and loads and stores besides the stack's, of the public sources retyped,
# compiled with arm-none-eabi-gcc 12.2.1 -O2 and run instruction by instruction (Unicorn 2.1.4);
# a double-word access counts once in loads and twice in accesses.
COMPILED = {
    "cortex-m4": ("armv7e-m", [
        (lambda isa: conv(*KWS_CONV, isa), 1_084_299, 253_770, 161_993),
        (lambda isa: conv(*KWS_POINTWISE, isa=isa), 1_047_127, 217_631, 148_747),
        (lambda isa: conv(8, 8, 64, 64, (3, 3), (1, 1), (1, 1), isa), 3_860_297, 1_094_494,
         943_701),
        (lambda isa: depthwise(25, 5, 64, (3, 3), (1, 1), (1, 1), isa=isa), 556_667, 109_082,
         None),
        (lambda isa: depthwise(8, 8, 16, (5, 5), (1, 1), (2, 2), isa=isa), 270_469, 56_059,
         42_029),
        (lambda isa: lower("fully_connected", [(1, 640)], (1, 128), (128, 640), isa=isa), 160_057,
         32_705, 30_986),
        (lambda isa: pool("average_pool_2d", 25, 5, 64, (25, 5), (25, 5), isa=isa), 50_936,
         16_212, 24_078),
    ]),
    "cortex-m3": ("armv7-m", [
        (lambda isa: conv(*KWS_CONV, isa), 1_384_791, 418_305, 369_843),
        (lambda isa: conv(*KWS_POINTWISE, isa=isa), 1_589_744, 565_022, 534_283),
        (lambda isa: depthwise(25, 5, 64, (3, 3), (1, 1), (1, 1), isa=isa), 664_826, 115_397,
         None),
    ]),
    "cortex-m0plus": ("armv6-m", [
        (lambda isa: conv(8, 8, 64, 64, (3, 3), (1, 1), (1, 1), isa), 14_944_624, 4_810_852,
         2_464_533),
        (lambda isa: lower("fully_connected", [(1, 640)], (1, 128), (128, 640), isa=isa), 506_601,
         138_823, 110_346),
    ]),
}


@pytest.mark.parametrize(("core", "row"), [(core, i) for core, (_, rows) in COMPILED.items()
                                           for i in range(len(rows))])
def test_totals_against_compiled_and_executed_kernels(core, row):
    isa, rows = COMPILED[core]
    make, instructions, loads, accesses = rows[row]
    counted = totals(make(isa))
    assert counted["instructions"] == pytest.approx(instructions, rel=0.03)
    assert counted["loads"] == pytest.approx(loads, rel=0.02)
    if accesses is not None:
        assert counted["reads"] + counted["writes"] == pytest.approx(accesses, rel=0.01)


def test_instruction_sets_order_as_their_multipliers():
    counts = [totals(conv(*KWS_POINTWISE, isa=isa))["instructions"]
              for isa in ("armv7e-m", "armv7-m", "armv6-m")]
    assert counts == sorted(counts)


def test_unknown_instruction_set_is_refused_by_name():
    with pytest.raises(RuntimeRefusedError, match="'armv9'"):
        conv(5, 5, 4, 4, (1, 1), isa="armv9")


@needs_models
@pytest.mark.parametrize("isa", ["armv7e-m", "armv6-m"])
def test_real_networks_lower_inside_their_operands(isa):
    from twin.network.readers import read_model

    for path in list_models(".tflite"):
        graph = read_model(path)
        for layer in graph.layers:
            if layer.op not in OPERATORS:
                continue
            kernels = find(layer.op, isa).lower(site_of(graph, layer, isa))
            for kernel in kernels:
                traffic = measure_traffic(kernel.nests, kernel.operands, 32)
                written = sum(one.write_bytes for operand, one
                              in zip(kernel.operands, traffic, strict=True)
                              if operand.role == "output")
                assert written >= math.prod(graph.tensors[layer.outputs[0]].shape)


def site_of(graph, layer, isa):
    """Operands of a layer, each in a memory of its own."""
    site = Site(graph=graph, layer=layer, isa=isa, fpu=None, operands=())
    weighted = layer.op in ("conv_2d", "depthwise_conv_2d", "fully_connected")
    names = ["input", "weights", "bias"] if weighted else ["input", "input2"]
    sizes = [(name, graph.tensors[i].size_bytes)
             for name, i in zip(names, layer.inputs, strict=False) if i >= 0]
    output = graph.tensors[layer.outputs[0]]
    sizes += [("output", output.size_bytes), ("parameters", 8 * output.shape[-1]),
              ("scratch", find(layer.op, isa).scratch_bytes(site))]
    return replace(site, operands=tuple(
        Operand(name=name, role=re.sub(r"\d", "", name), memory="sram",
                address=0x20000000 + (i << 20), size_bytes=size)
        for i, (name, size) in enumerate(sizes) if size))
