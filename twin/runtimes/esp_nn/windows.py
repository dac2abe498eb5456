"""Convolutions of ESP-NN: four channels a turn in C, 8 or 16 lanes on the ESP32-S3.

References
----------
espressif/esp-nn 1.2.3, src/convolution: esp_nn_conv_opt.c, esp_nn_depthwise_conv_opt.c,
esp_nn_conv_esp32s3.c, esp_nn_conv_s8_mult8_1x1_esp32s3.S,
esp_nn_conv_s8_filter_aligned_input_padded_esp32s3.S, esp_nn_depthwise_conv_s8_esp32s3.c,
esp_nn_depthwise_conv_s8_mult1_3x3_padded_esp32s3.S, esp_nn_depthwise_conv_s16_mult8_esp32s3.S.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hwmodels.kernel import Blocks, Lowered
from twin.runtimes.esp_nn import p4
from twin.runtimes.esp_nn_ansi.kernels import KERNELS as ANSI
from twin.runtimes.esp_nn_ansi.kernels import window_blocks
from twin.runtimes.esp_nn_ansi.sequences import (
    INT8,
    LEVELS,
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
    output_steps,
    over_pixels,
    over_window,
    window_bounds,
    window_load,
)
from twin.runtimes.lowering.nests import load, repeat, resolve
from twin.runtimes.reference.windows import conv_accesses, depthwise_accesses, output_moves

_LEVELS = LEVELS["windows"]

_ONE = "lb a3, 0(t2); lb s7, 0(a2); add a3, a3, s10; mul a3, a3, s7; add a0, a0, a3"
_QUAD = join(*[_ONE] * 4, "addi t2, t2, 4; addi a2, a2, 4; addi a4, a4, 4")
_LEFT = join(_ONE, "addi t2, t2, 1; addi a2, a2, 1")

_FIVE = join("lb a3, 0(t2); add a3, a3, s10", *["lb s7, 0(a2); mul s6, a3, s7; add a0, a0, s6"] * 4,
             "addi a4, a4, 1")

_EIGHT_OUTPUT = _LEVELS["eight_output"].plus(_LEVELS["quantise_same"], 2).plus(_LEVELS["call_8"], 2)
_DOT_OUTPUT = _LEVELS["dot_output"].plus(_LEVELS["call_8"])
_SIXTEEN_OUTPUT = _LEVELS["sixteen_output"].plus(
    _LEVELS["quantise_own"], 4).plus(_LEVELS["call_8"], 4)
_LANES_OUTPUT = _LEVELS["lanes_output"].plus(_LEVELS["quantise_own"], 2).plus(_LEVELS["call_8"], 2)


def _lower_conv(site: Site) -> Lowered:
    """Lower a convolution in generic C: four channels a turn; grouped ones in ANSI C."""
    if site.layer.groups != 1:
        return ANSI["conv_2d"]["c"].lower(site)
    check_core(site)
    shape = site.geometry
    outputs = shape.outputs
    taps = shape.products
    quads, left = divmod(shape.input_channels, 4)
    one = shape.kernel_rows == shape.kernel_columns == 1
    rows = shape.rows_run * shape.output_channels
    inner = (innermost("multiply-accumulate, four", _QUAD, taps * quads, taps, site, 8),
             innermost("multiply-accumulate", _LEFT, taps * left, taps, site, 2))
    around: Blocks = (
        run_through("fours entered", _LEVELS["quads_entered"][one], taps if quads else 0),)
    around += () if one else (
        run_through("left over entered", _LEVELS["left_entered"], taps if left else 0),
        looped("window position", _LEVELS["conv"]["tap"], taps, rows))
    return (build_kernel(
        "esp_nn_conv_s8_opt", "pointwise" if shape.is_pointwise else "conv", site,
        (*inner, *around, *window_blocks(shape, _LEVELS["pointwise" if one else "conv"],
                                         shape.output_channels, outputs)),
        resolve(*conv_accesses(INT8, shape, 1)), taps * shape.input_channels),)


def _lower_depthwise(site: Site) -> Lowered:
    """Lower a depthwise convolution in generic C: four outputs a turn of the window's loops."""
    check_core(site)
    shape = site.geometry
    multiplier = shape.output_channels // shape.input_channels
    single = multiplier == 1
    quads, left = divmod(shape.input_channels if single else multiplier, 4)
    turns = 1 if single else shape.input_channels
    pixels, blocks = shape.positions, []
    levels = _LEVELS["depthwise"][single]
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
        shape.products),)


# ---- vectors of the ESP32-S3 ----
def _lower_conv_pie(site: Site) -> Lowered:
    """Lower a convolution of the S3: by the size of its window, as the library chooses."""
    if site.layer.groups != 1:
        return ANSI["conv_2d"]["c"].lower(site)
    shape = site.geometry
    depth, outputs = shape.input_channels, shape.outputs
    row, window = shape.kernel_columns * depth, shape.window_taps * depth
    if shape.is_pointwise and shape.window.stride == (1, 1):
        blocks = _pointwise_blocks(shape)
    elif row < 16 <= window:
        blocks = _column_blocks(shape, outputs, row, window)
    else:
        blocks = _row_blocks(shape, outputs, row, has_offset(site))
    wide = widest(depth)
    accesses = over_pixels(shape, repeat(
        "out", shape.output_channels,
        over_window(shape, repeat(
            "part", depth // wide,
            window_load(shape, window_bounds(shape), wide, 1, part=wide),
            load("weights", wide, 0, out=window, ky=row, kx=depth, part=wide)
            ._replace(bounds=window_bounds(shape)))),
        *output_moves(INT8, shape.has_bias, shape.output_channels,
                      {**output_steps(shape), "out": 1}, out=1)))
    return (build_kernel(
        "esp_nn_conv_s8_esp32s3", "pointwise" if shape.is_pointwise else "conv", site, blocks,
        resolve(*accesses), shape.products * depth),)


def _pointwise_blocks(shape: Geometry) -> Blocks:
    """Eight positions at once, channels turned to lie beside each other; the rest one by one."""
    groups, left = divmod(shape.positions, 8)
    channels, eights = shape.output_channels, -(-shape.input_channels // 8)
    return (
        call_level(Level(alu=20, load=2, store=10)),
        run_through("transpose", _LEVELS["transpose"], groups * eights, groups),
        looped("group", _LEVELS["group"], groups, 1),
        run_through("multiply-accumulate, eight positions", _LEVELS["eight"],
                    groups * channels * (eights - 1), groups * channels),
        looped("output, eight positions", _EIGHT_OUTPUT, groups * channels, groups),
        run_through("multiply-accumulate", _LEVELS["single"], left * channels * (eights - 1),
                    left * channels),
        looped("output", _LEVELS["single_output"], left * channels, left))


def _column_blocks(shape: Geometry, outputs: int, row: int, window: int) -> Blocks:
    """Windows copied to a column each, and multiplied sixteen at a time."""
    pixels = shape.positions
    filters = shape.output_channels * window
    copied = pixels * shape.kernel_rows
    return (
        call_level(Level(alu=80, load=40, store=30, div=4)),
        run_through("sums of filters", _LEVELS["sum"].plus(_LEVELS["copy"]), filters,
                    shape.output_channels),
        run_through("window copied", _LEVELS["copy"], copied * row, copied),
        looped("window row copied", Level(alu=25), copied, pixels),
        run_through("multiply-accumulate", Level(vload=1, vmac=1),
                    outputs * (-(-window // 16) - 1), outputs),
        looped("output", _DOT_OUTPUT, outputs, pixels),
        looped("pixel", _LEVELS["pixel"], pixels, shape.batches))


def _row_blocks(shape: Geometry, outputs: int, row: int, summed: bool) -> Blocks:
    """Window rows multiplied sixteen at a time, of an input padded before."""
    vectors, rows = -(-row // 16), outputs * shape.kernel_rows
    filters = shape.output_channels * shape.kernel_rows * row
    padded = any(shape.window.padding)
    inputs = shape.batches * shape.input_rows * shape.input_columns * shape.input_channels
    pixels = shape.positions
    return (
        call_level(Level(alu=60, load=30, store=20)),
        run_through("filters aligned", _LEVELS["copy"], filters // 4 if row % 16 else 0, 1),
        run_through("input padded", Level(vload=1, vstore=1), inputs // 16 if padded else 0, 1),
        run_through("sums of filters", _LEVELS["sum"], filters * summed, shape.output_channels),
        run_through("multiply-accumulate, pairs", _LEVELS["pair"],
                    rows * ((vectors - 1) // 2), rows),
        run_through("multiply-accumulate", Level(vload=1, vmac=1, valu=1),
                    rows * ((vectors - 1) % 2)),
        looped("window row", _LEVELS["window_row"], rows, outputs),
        looped("output", _LEVELS["quantise_one"], outputs, pixels),
        looped("pixel", _LEVELS["pixel"], pixels, 1))


def _lower_depthwise_pie(site: Site) -> Lowered:
    """Lower a depthwise convolution of the S3: 16 lanes for 3x3, else 8, else generic C."""
    shape = site.geometry
    multiplier = shape.output_channels // shape.input_channels
    window = (shape.kernel_rows, shape.kernel_columns)
    lanes = (16 if window == (3, 3) and shape.input_channels >= 12 else 8) if (
        multiplier == 1 and shape.input_channels % 8 == 0) else {0: 8, 4: 4}.get(multiplier % 8, 0)
    if not lanes:
        return _lower_depthwise(site)
    groups, pixels = -(-shape.output_channels // lanes), shape.positions
    outputs, inputs = pixels * groups, site.source.elements
    filters = shape.output_channels * shape.window_taps
    blocks: Blocks
    if lanes == 16:
        padded = any(shape.window.padding) or shape.input_channels % 16
        blocks = (
            call_level(Level(alu=60, load=20, store=10)),
            run_through("filters and input copied", Level(vload=1, vstore=1),
                        filters // 16 + (inputs // 16 if padded else 0), 1),
            run_through("sums of filters", _LEVELS["sixteen_group"], groups),
            looped("output, sixteen", _SIXTEEN_OUTPUT, outputs, groups * shape.output_rows),
            looped("row", _LEVELS["pixel"], groups * shape.output_rows, groups))
    else:
        taps, rows = shape.taps_run, shape.rows_run
        blocks = (
            call_level(Level(alu=60, load=20, store=30)),
            run_through("widened", _LEVELS["widen"], (inputs + filters) // 16, 1),
            run_through("multiply-accumulate", _LEVELS["lanes_tap"], taps * groups, rows * groups),
            looped("window row", _LEVELS["lanes_row"], rows * groups, outputs),
            looped("output, eight", _LANES_OUTPUT, outputs, pixels),
            looped("pixel", _LEVELS["pixel"], pixels, shape.output_rows))
    return (build_kernel(
        "esp_nn_depthwise_conv_s8_esp32s3", "depthwise", site, blocks,
        resolve(*_lane_accesses(shape, multiplier, lanes)),
        shape.products),)


def _lane_accesses(shape: Geometry, multiplier: int, lanes: int) -> Any:
    """Return accesses of a depthwise convolution, as many channels at a time as there are lanes."""
    channels = shape.output_channels
    wide = widest(channels, lanes)
    read = wide if multiplier == 1 else 1
    step = {"out": read} if wide % multiplier == 0 else {}
    moves = output_moves(INT8, shape.has_bias, channels, {**output_steps(shape), "out": wide},
                         out=wide)
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


def lower_conv_p4(first: bool, site: Site) -> Lowered:
    """Lower a convolution of the P4, some in generic C.

    Unpadded windows of fewer than 16 values; in the `first` releases padded ones.
    """
    shape = site.geometry
    window = shape.window_taps * shape.input_channels
    padded = any(shape.window.padding[::2])
    if site.layer.groups != 1 or (padded if first else window < p4.LANES and not (
            padded or shape.is_pointwise)):
        return _lower_conv(site)
    return p4.lower_conv(first, site)


def _lower_depthwise_p4(site: Site) -> Lowered:
    """Lower a depthwise convolution of the P4: vectors for a filter a channel, else generic C."""
    shape = site.geometry
    plain = shape.output_channels != shape.input_channels or shape.input_channels < 8
    return (_lower_depthwise if plain else p4.lower_depthwise)(site)


KERNELS: Kernels = {
    "conv_2d": {"c": Lowering(lower=_lower_conv), "pie": Lowering(lower=_lower_conv_pie),
                "xesp": Lowering(lower=partial(lower_conv_p4, False))},
    "depthwise_conv_2d": {"c": Lowering(lower=_lower_depthwise),
                          "pie": Lowering(lower=_lower_depthwise_pie),
                          "xesp": Lowering(lower=_lower_depthwise_p4)},
}
