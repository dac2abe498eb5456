"""Depthwise convolution without a fast function: multipliers, dilation, or a core without DSP.

References
----------
ARM-software/CMSIS-NN 6.0, Source/ConvolutionFunctions/arm_depthwise_conv_s8.c.
"""

from __future__ import annotations

from typing import Any

from hwmodels.kernel import Kernel
from twin.runtimes.cmsis_nn.sequences import CODE, bookkeeping, entry, finish_four, requantise
from twin.runtimes.lowering import Site
from twin.runtimes.lowering.blocks import BRANCH, block, draft_kernel, join, plain
from twin.runtimes.lowering.geometry import (
    Geometry,
    needed_bounds,
    output_steps,
    over_pixels,
    over_window,
    window_load,
)
from twin.runtimes.lowering.nests import closing, load, repeat, step, store

_CODE = CODE["depthwise.generic"]


_ROW = {"thumb2": (10, 1, 11), "thumb1": (6, 1, 28), "rv32": (10, 1, 11)}
"""Stack loads, stack stores and arithmetic per window row of one output."""


def _bias(dialect: str, shape: Geometry) -> str:
    if not shape.has_bias:
        return ""
    return "lw s0, 0(s4)" if dialect == "rv32" else "ldr r4, [r2]"


def lower_generic(shape: Geometry, site: Site) -> Kernel:
    """Lower `arm_depthwise_conv_s8`: four output channels at a time where the multiplier allows."""
    dialect = site.dialect
    multiplier = shape.output_channels // shape.input_channels
    four = multiplier % 4 == 0 and shape.batches == 1 and shape.window.dilation == (1, 1)
    drafts = (_four_channels if four else _one_channel)(dialect, shape, multiplier)
    return draft_kernel("arm_depthwise_conv_s8", "depthwise", site,
                        entry(dialect, 90, 1), *over_pixels(shape, *drafts),
                        macs=shape.products)


def _one_channel(dialect: str, shape: Geometry, multiplier: int) -> tuple[Any, ...]:
    """Loops of one position: input channels, each with its output channels one by one."""
    pixels, end = shape.positions, BRANCH[dialect]
    outputs = pixels * shape.output_channels
    rows = shape.rows_run * shape.output_channels
    taps = shape.products
    jumps = 4 if shape.window.dilation == (1, 1) else 0
    return (
        block("pixel", join(bookkeeping(dialect, 16, 10, 18), end), pixels, 1),
        repeat("channel", shape.input_channels,
               closing("input channel", join(bookkeeping(dialect, 8, 8, 8), end)),
               repeat("tile", multiplier,
                      *[step("window bounds by division", _CODE.divisions[plain(dialect)])
                        for dilation in shape.window.dilation if dilation > 1],
                      closing("output channel", join(
                          _bias(dialect, shape), bookkeeping(dialect, 8, 4, 18 - jumps, jumps),
                          requantise(dialect, 1), end)),
                      block("window row", join(bookkeeping(dialect, *_ROW[plain(dialect)]), end),
                            rows, outputs),
                      block("window position", _CODE.generic_tap[plain(dialect)], taps, rows),
                      *_tile(shape, multiplier, 1, 1))))


def _four_channels(dialect: str, shape: Geometry, multiplier: int) -> tuple[Any, ...]:
    """Loops of one position: input channels, each with its output channels in fours."""
    end, tiles = BRANCH[dialect], shape.pixels * shape.output_channels // 4
    rows = shape.window_rows * shape.output_channels // 4
    taps = shape.taps_inside * shape.output_channels // 4
    return (
        block("pixel", join(bookkeeping(dialect, 14, 8, 16), end), shape.pixels, 1),
        block("four channels", join(*[_bias(dialect, shape)] * 4, bookkeeping(dialect, 20, 9, 16),
                                    finish_four(dialect), end), tiles, shape.pixels),
        block("window row", join(bookkeeping(dialect, 6, 1, 8), end), rows, tiles),
        block("window position", _CODE.multiplier_4_tap[plain(dialect)], taps, rows),
        repeat("channel", shape.input_channels, repeat(
            "tile", multiplier // 4,
            *_tile(shape, multiplier, 4, 4 if plain(dialect) == "thumb2" else 1))))


def _tile(shape: Geometry, multiplier: int, count: int, store_bytes: int) -> tuple[Any, ...]:
    """Return accesses of `count` output channels of one input channel."""
    outputs, inside = shape.output_channels, needed_bounds(shape)
    words = {"channel": 4 * multiplier, "tile": 4 * count}
    return (
        *[load("bias", 4, 4 * k, **words) for k in range(count if shape.has_bias else 0)],
        over_window(shape, window_load(shape, inside, channel=1), *[
            load("weights", 1, k, ky=shape.kernel_columns * outputs, kx=outputs,
                 channel=multiplier, tile=count)._replace(bounds=inside) for k in range(count)]),
        *[load("parameters", 4, 4 * (part * outputs + k), **words)
          for k in range(count) for part in (1, 0)],
        *[store("output", store_bytes, k, channel=multiplier, tile=count, **output_steps(shape))
          for k in range(0, count, store_bytes)])
