"""Convolutions of ESP-NN: four channels a turn in C, 8 or 16 lanes on the ESP32-S3.

References
----------
espressif/esp-nn 1.2.3, src/convolution: esp_nn_conv_opt.c, esp_nn_depthwise_conv_opt.c,
esp_nn_conv_esp32s3.c, esp_nn_conv_s8_mult8_1x1_esp32s3.S,
esp_nn_conv_s8_filter_aligned_input_padded_esp32s3.S, esp_nn_depthwise_conv_s8_esp32s3.c,
esp_nn_depthwise_conv_s8_mult1_3x3_padded_esp32s3.S, esp_nn_depthwise_conv_s16_mult8_esp32s3.S.
"""

from __future__ import annotations

from typing import Any

from hwmodels.kernel import Block, Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.esp_nn_ansi.kernels import KERNELS as ANSI
from twin.runtimes.esp_nn_ansi.kernels import window_blocks
from twin.runtimes.esp_nn_ansi.sequences import (
    INT8,
    Level,
    call_level,
    check_core,
    has_offset,
    innermost,
    looped,
    run_through,
)
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import build_kernel, join
from twin.runtimes.lowering.geometry import (
    Geometry,
    over_pixels,
    over_window,
    read_geometry,
    window_bounds,
    window_load,
)
from twin.runtimes.lowering.nests import load, repeat, resolve
from twin.runtimes.reference.windows import conv_accesses, depthwise_accesses, output_moves

_ONE = "lb a3, 0(t2); lb s7, 0(a2); add a3, a3, s10; mul a3, a3, s7; add a0, a0, a3"
_QUAD = join(*[_ONE] * 4, "addi t2, t2, 4; addi a2, a2, 4; addi a4, a4, 4")
_LEFT = join(_ONE, "addi t2, t2, 1; addi a2, a2, 1")

_FIVE = join("lb a3, 0(t2); add a3, a3, s10", *["lb s7, 0(a2); mul s6, a3, s7; add a0, a0, s6"] * 4,
             "addi a4, a4, 1")

_CONV = {"tap": Level(alu=8, mul=1), "row": Level(alu=12, load=3, store=2, mul=1),
         "output": Level(alu=59, load=21, store=8, high=1, mul=2),
         "pixel": Level(alu=28, load=17, store=12), "line": Level(),
         "call": Level(alu=121, load=64, store=62)}
_QUADS_ENTERED = {True: Level(alu=3, load=4, store=2), False: Level(alu=4, load=3, store=3)}
_LEFT_ENTERED = Level(alu=2)
_POINTWISE = {"output": Level(alu=58, load=3, store=2, high=1),
              "pixel": Level(alu=12, load=12, store=4, mul=1), "line": Level(),
              "call": Level(alu=103, load=69, store=61)}
_DEPTHWISE = {
    True: {"quad row": Level(alu=7, load=3, mul=1), "left row": Level(alu=8, load=1, mul=1),
           "quad output": Level(alu=188, load=19, store=14, high=4, mul=4),
           "left output": Level(alu=60, load=2, store=2, high=1, mul=1),
           "pixel": Level(alu=55, load=30, store=5), "line": Level(),
           "call": Level(alu=100, load=50, store=50)},
    False: {"quad row": Level(alu=15, load=5, mul=1), "left row": Level(alu=8, load=1, mul=1),
            "quad output": Level(alu=190, load=24, store=11, high=4, mul=4),
            "left output": Level(alu=60, load=8, store=2, high=1, mul=1),
            "channel": Level(alu=10, load=6, store=4),
            "pixel": Level(alu=31, load=20, store=20, mul=1), "line": Level(),
            "call": Level(alu=200, load=130, store=57)}}
"""Instructions of one turn of each loop besides its branch, on RV32IMC; of depthwise convolutions
with one filter a channel, and with several."""

_QUANTISE_ONE = Level(alu=32, load=13, store=3, mul=2)
"""Requantising one output of the S3's convolution, and closing its loop."""
QUANTISE_SAME = Level(alu=28, load=1, store=1, mul=8, vload=1, valu=14)
"""Four outputs by one multiplier: esp_nn_multiply_by_quantized_mult_asm_esp32s3."""
QUANTISE_OWN = Level(alu=58, load=9, mul=8, valu=26)
"""Four outputs, each by its own: esp_nn_multiply_by_quantized_mult_ver1_esp32s3."""
_CALL_8 = Level(alu=4)
"""A windowed call and its return, in cycles lost."""

_TRANSPOSE = Level(alu=2, vload=8, vstore=8, valu=16)
_GROUP = Level(alu=12, load=10, store=2, vload=1, valu=1)
_EIGHT = Level(alu=1, vload=2, vmac=8, valu=3)
_EIGHT_OUTPUT = Level(alu=19, load=26, store=9, vload=8, vstore=5, vmac=8, valu=24).plus(
    QUANTISE_SAME, 2).plus(_CALL_8, 2)
_SINGLE = Level(alu=1, vload=3, vmac=1, valu=6)
_SINGLE_OUTPUT = Level(alu=40, load=26, store=14, mul=2, vload=4, vstore=4, vmac=1, valu=15)
_DOT_OUTPUT = Level(alu=41, load=5, store=1, mul=2, vload=2, vmac=1, valu=2).plus(_CALL_8)
_WINDOW_ROW = Level(alu=15, load=2, vload=3, vmac=1, valu=3)
_PIXEL = Level(alu=6, load=8, store=4)
_PAIR = Level(vload=2, vmac=2, valu=2)
_SUM = Level(alu=3, load=1)
_COPY = Level(load=1, store=1)
_SIXTEEN_OUTPUT = Level(alu=66, load=17, store=2, vload=18, vstore=8, vmac=9, valu=40).plus(
    QUANTISE_OWN, 4).plus(_CALL_8, 4)
_SIXTEEN_GROUP = Level(alu=30, load=13, store=6, mul=16, vload=12, vstore=4, valu=68)
_LANES_TAP = Level(alu=3, vload=2, vmac=1)
_LANES_ROW = Level(alu=13, load=11, store=2, mul=2)
_LANES_OUTPUT = Level(alu=19, load=24, store=17, vload=9, vstore=8, valu=15).plus(
    QUANTISE_OWN, 2).plus(_CALL_8, 2)
_WIDEN = Level(alu=1, vload=1, vstore=2, valu=4)
"""Instructions of the S3's loops, counted in the sources."""


def _lower_conv(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a convolution in generic C: four channels a turn; grouped ones in ANSI C."""
    if layer.groups != 1:
        return ANSI["conv_2d"]["c"].lower(graph, layer, site)
    check_core(graph, layer, site)
    shape = read_geometry(graph, layer)
    outputs = shape.pixels * shape.batches * shape.output_channels
    taps = shape.taps_inside * shape.batches * shape.output_channels
    quads, left = divmod(shape.input_channels, 4)
    one = shape.kernel_rows == shape.kernel_columns == 1
    rows = shape.window_rows * shape.batches * shape.output_channels
    inner = (innermost("multiply-accumulate, four", _QUAD, taps * quads, taps, site, 8),
             innermost("multiply-accumulate", _LEFT, taps * left, taps, site, 2))
    around: tuple[Block, ...] = (
        run_through("fours entered", _QUADS_ENTERED[one], taps if quads else 0),)
    around += () if one else (
        run_through("left over entered", _LEFT_ENTERED, taps if left else 0),
        looped("window position", _CONV["tap"], taps, rows))
    return (build_kernel(
        "esp_nn_conv_s8_opt", "pointwise" if shape.is_pointwise else "conv", site,
        (*inner, *around, *window_blocks(shape, _POINTWISE if one else _CONV,
                                         shape.output_channels, outputs)),
        resolve(*conv_accesses(INT8, shape, 1)), taps * shape.input_channels),)


def _lower_depthwise(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a depthwise convolution in generic C: four outputs a turn of the window's loops."""
    check_core(graph, layer, site)
    shape = read_geometry(graph, layer)
    multiplier = shape.output_channels // shape.input_channels
    single = multiplier == 1
    quads, left = divmod(shape.input_channels if single else multiplier, 4)
    turns = 1 if single else shape.input_channels
    pixels, blocks = shape.pixels * shape.batches, []
    levels = _DEPTHWISE[single]
    for name, count, text, signed in (("quad", quads * turns, *((_QUAD, 8) if single
                                                                else (_FIVE, 5))),
                                      ("left", left * turns, _LEFT, 2)):
        taps, rows = (extent * shape.batches * count
                      for extent in (shape.taps_inside, shape.window_rows))
        blocks += [innermost(f"multiply-accumulate, {name}", text, taps, rows, site, signed),
                   looped(f"window row, {name}", levels[f"{name} row"], rows, pixels * count),
                   looped(f"output, {name}", levels[f"{name} output"], pixels * count, pixels)]
    if not single:
        blocks.append(looped("channel", levels["channel"], pixels * turns, pixels))
    blocks += window_blocks(shape, {**levels, "output": Level()}, 0, 0)
    return (build_kernel(
        "esp_nn_depthwise_conv_s8_opt", "depthwise", site, tuple(blocks),
        resolve(*depthwise_accesses(INT8, shape)),
        shape.taps_inside * shape.batches * shape.output_channels),)


# ---- vectors of the ESP32-S3 ----

def _lower_conv_pie(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a convolution of the S3: by the size of its window, as the library chooses."""
    if layer.groups != 1:
        return ANSI["conv_2d"]["c"].lower(graph, layer, site)
    shape = read_geometry(graph, layer)
    depth, outputs = shape.input_channels, shape.pixels * shape.batches * shape.output_channels
    row, window = shape.kernel_columns * depth, shape.kernel_rows * shape.kernel_columns * depth
    if shape.is_pointwise and shape.window.stride == (1, 1):
        blocks = _pointwise_blocks(shape)
    elif row < 16 <= window:
        blocks = _column_blocks(shape, outputs, row, window)
    else:
        blocks = _row_blocks(shape, outputs, row, has_offset(graph, layer))
    wide = widest(depth)
    accesses = over_pixels(shape, repeat(
        "out", shape.output_channels,
        over_window(shape, repeat(
            "part", depth // wide,
            window_load(shape, window_bounds(shape), wide, 1, part=wide),
            load("weights", wide, 0, out=window, ky=row, kx=depth, part=wide)
            ._replace(bounds=window_bounds(shape)))),
        *output_moves(INT8, shape.has_bias, shape.output_channels, _steps(shape), out=1)))
    return (build_kernel(
        "esp_nn_conv_s8_esp32s3", "pointwise" if shape.is_pointwise else "conv", site, blocks,
        resolve(*accesses), shape.taps_inside * shape.batches * shape.output_channels * depth),)


def _steps(shape: Geometry) -> dict[str, int]:
    from twin.runtimes.lowering.geometry import output_steps

    return {**output_steps(shape), "out": 1}


def _pointwise_blocks(shape: Geometry) -> tuple[Block, ...]:
    """Eight positions at once, channels turned to lie beside each other; the rest one by one."""
    groups, left = divmod(shape.pixels * shape.batches, 8)
    channels, eights = shape.output_channels, -(-shape.input_channels // 8)
    return (
        call_level(Level(alu=20, load=2, store=10)),
        run_through("transpose", _TRANSPOSE, groups * eights, groups),
        looped("group", _GROUP, groups, 1),
        run_through("multiply-accumulate, eight positions", _EIGHT,
                    groups * channels * (eights - 1), groups * channels),
        looped("output, eight positions", _EIGHT_OUTPUT, groups * channels, groups),
        run_through("multiply-accumulate", _SINGLE, left * channels * (eights - 1),
                    left * channels),
        looped("output", _SINGLE_OUTPUT, left * channels, left))


def _column_blocks(shape: Geometry, outputs: int, row: int, window: int) -> tuple[Block, ...]:
    """Windows copied to a column each, and multiplied sixteen at a time."""
    pixels = shape.pixels * shape.batches
    filters = shape.output_channels * window
    copied = pixels * shape.kernel_rows
    return (
        call_level(Level(alu=80, load=40, store=30, div=4)),
        run_through("sums of filters", _SUM.plus(_COPY), filters, shape.output_channels),
        run_through("window copied", _COPY, copied * row, copied),
        looped("window row copied", Level(alu=25), copied, pixels),
        run_through("multiply-accumulate", Level(vload=1, vmac=1),
                    outputs * (-(-window // 16) - 1), outputs),
        looped("output", _DOT_OUTPUT, outputs, pixels),
        looped("pixel", _PIXEL, pixels, shape.batches))


def _row_blocks(shape: Geometry, outputs: int, row: int, summed: bool) -> tuple[Block, ...]:
    """Window rows multiplied sixteen at a time, of an input padded before."""
    vectors, rows = -(-row // 16), outputs * shape.kernel_rows
    filters = shape.output_channels * shape.kernel_rows * row
    padded = any(shape.window.padding)
    inputs = shape.batches * shape.input_rows * shape.input_columns * shape.input_channels
    pixels = shape.pixels * shape.batches
    return (
        call_level(Level(alu=60, load=30, store=20)),
        run_through("filters aligned", _COPY, filters // 4 if row % 16 else 0, 1),
        run_through("input padded", Level(vload=1, vstore=1), inputs // 16 if padded else 0, 1),
        run_through("sums of filters", _SUM, filters * summed, shape.output_channels),
        run_through("multiply-accumulate, pairs", _PAIR, rows * ((vectors - 1) // 2), rows),
        run_through("multiply-accumulate", Level(vload=1, vmac=1, valu=1),
                    rows * ((vectors - 1) % 2)),
        looped("window row", _WINDOW_ROW, rows, outputs),
        looped("output", _QUANTISE_ONE, outputs, pixels), looped("pixel", _PIXEL, pixels, 1))


def _lower_depthwise_pie(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a depthwise convolution of the S3: 16 lanes for 3x3, else 8, else generic C."""
    shape = read_geometry(graph, layer)
    multiplier = shape.output_channels // shape.input_channels
    window = (shape.kernel_rows, shape.kernel_columns)
    lanes = (16 if window == (3, 3) and shape.input_channels >= 12 else 8) if (
        multiplier == 1 and shape.input_channels % 8 == 0) else {0: 8, 4: 4}.get(multiplier % 8, 0)
    if not lanes:
        return _lower_depthwise(graph, layer, site)
    groups, pixels = -(-shape.output_channels // lanes), shape.pixels * shape.batches
    outputs, inputs = pixels * groups, graph.input(layer).elements
    filters = shape.output_channels * shape.kernel_rows * shape.kernel_columns
    blocks: tuple[Block, ...]
    if lanes == 16:
        padded = any(shape.window.padding) or shape.input_channels % 16
        blocks = (
            call_level(Level(alu=60, load=20, store=10)),
            run_through("filters and input copied", Level(vload=1, vstore=1),
                        filters // 16 + (inputs // 16 if padded else 0), 1),
            run_through("sums of filters", _SIXTEEN_GROUP, groups),
            looped("output, sixteen", _SIXTEEN_OUTPUT, outputs, groups * shape.output_rows),
            looped("row", _PIXEL, groups * shape.output_rows, groups))
    else:
        taps, rows = shape.taps_inside * shape.batches, shape.window_rows * shape.batches
        blocks = (
            call_level(Level(alu=60, load=20, store=30)),
            run_through("widened", _WIDEN, (inputs + filters) // 16, 1),
            run_through("multiply-accumulate", _LANES_TAP, taps * groups, rows * groups),
            looped("window row", _LANES_ROW, rows * groups, outputs),
            looped("output, eight", _LANES_OUTPUT, outputs, pixels),
            looped("pixel", _PIXEL, pixels, shape.output_rows))
    return (build_kernel(
        "esp_nn_depthwise_conv_s8_esp32s3", "depthwise", site, blocks,
        resolve(*_lane_accesses(shape, multiplier, lanes)),
        shape.taps_inside * shape.batches * shape.output_channels),)


def _lane_accesses(shape: Geometry, multiplier: int, lanes: int) -> Any:
    """Return accesses of a depthwise convolution, as many channels at a time as there are lanes."""
    channels = shape.output_channels
    wide = widest(channels, lanes)
    read = wide if multiplier == 1 else 1
    step = {"out": read} if wide % multiplier == 0 else {}
    moves = output_moves(INT8, shape.has_bias, channels, {**_steps(shape), "out": wide}, out=wide)
    return over_pixels(shape, repeat(
        "out", channels // wide,
        over_window(shape, window_load(shape, window_bounds(shape), read, 1, **step),
            load("weights", wide, 0, out=wide, ky=shape.kernel_columns * channels, kx=channels)
            ._replace(bounds=window_bounds(shape))),
        *(_widen(move, wide * move.width_bytes) for move in moves)))


def _widen(move: Any, width: int) -> Any:
    """Return an access of another width, 16 bytes at a time."""
    piece = min(width, 16)
    return repeat("piece", width // piece, move._replace(
        width_bytes=piece, steps_bytes={**move.steps_bytes, "piece": piece}))


def widest(count: int, most: int = 16) -> int:
    """Return the widest access that divides so many bytes."""
    return next(one for one in (16, 8, 4, 2, 1) if one <= most and count % one == 0)


KERNELS: Kernels = {
    "conv_2d": {"c": Lowering(lower=_lower_conv), "pie": Lowering(lower=_lower_conv_pie)},
    "depthwise_conv_2d": {"c": Lowering(lower=_lower_depthwise),
                          "pie": Lowering(lower=_lower_depthwise_pie)},
}
