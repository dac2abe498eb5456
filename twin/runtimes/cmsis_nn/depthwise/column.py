"""Depthwise convolution of a window gathered into columns, with DSP and Helium.

DSP widens a position's window to one int16 column; Helium gathers the windows of four positions,
a block of channels at a time, and multiplies four channels at once.

References
----------
ARM-software/CMSIS-NN 6.0, Source/ConvolutionFunctions: arm_depthwise_conv_s8_opt.c,
arm_depthwise_conv_get_buffer_sizes_s8.c; Source/NNSupportFunctions/arm_nn_depthwise_conv_nt_t_s8.c.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from hwmodels.kernel import Block, Blocks, Kernel, Nests
from twin.runtimes.cmsis_nn.columns import Columns, gather_blocks, gather_drafts
from twin.runtimes.cmsis_nn.sequences import (
    CODE,
    bookkeeping,
    entry,
    floor_width,
    lane_moves,
    requantise,
)
from twin.runtimes.lowering import Site
from twin.runtimes.lowering.blocks import BRANCH, block, build_kernel, draft_kernel, join
from twin.runtimes.lowering.geometry import (
    Geometry,
    needed_bounds,
    output_steps,
    over_pixels,
    over_window,
    window_load,
)
from twin.runtimes.lowering.libc import fill_blocks
from twin.runtimes.lowering.nests import closing, load, repeat, resolve, step, store

_CODE = CODE["depthwise.column"]


_IM2COL = "data_copy"


def column_scratch_bytes(shape: Geometry) -> int:
    """Bytes of the column: one int16 for each window position and channel."""
    return 2 * shape.window_taps * shape.input_channels


def lower_column(shape: Geometry, site: Site) -> Kernel:
    """Lower `arm_depthwise_conv_s8_opt` on its DSP path.

    Parameters
    ----------
    shape
        Channel multiplier one, batch one, no dilation.
    """
    dialect = site.dialect
    return draft_kernel(
        "arm_depthwise_conv_s8_opt", "depthwise", site,
        entry(dialect, 80, 1),
        *over_pixels(shape, *_gather(dialect, shape), *_multiply(dialect, shape)),
        macs=shape.taps_inside * shape.input_channels)


def _gather(dialect: str, shape: Geometry) -> tuple[Any, ...]:
    """Return a position's window widened into the column; positions outside filled."""
    channels, pixels, wide = shape.input_channels, shape.pixels, 2 * shape.input_channels
    rows, inside = shape.window_rows, shape.taps_inside
    outside = rows * shape.kernel_columns - inside
    quads, rest = divmod(channels, 4)
    end = BRANCH[dialect]
    widen = join(bookkeeping(dialect, 2, 1, 24 if rest else 22, 1), end)
    source = window_load(shape, needed_bounds(shape), 4, 1, c=4)
    target = store("scratch", 4, 0, ky=shape.kernel_columns * wide, kx=wide, c=8)
    one = source._replace(width_bytes=1, offset_bytes=source.offset_bytes + 4 * quads,
                          steps_bytes={**source.steps_bytes, "c": 1})
    one_out = target._replace(width_bytes=2, offset_bytes=8 * quads,
                              steps_bytes={**target.steps_bytes, "c": 2})
    return (
        block("gather pixel", join(bookkeeping(dialect, 18, 8, 22), end), pixels, 1, _IM2COL),
        block("gather line", join(bookkeeping(dialect, 10, 2, 8), end), rows, pixels, _IM2COL),
        block("gather position", widen, inside, rows, _IM2COL),
        block("pad position", join(bookkeeping(dialect, 0, 0, 11, 1), end), outside, cause=_IM2COL),
        *fill_blocks(dialect, wide, outside),
        *fill_blocks(dialect, wide * shape.kernel_columns, pixels * shape.kernel_rows - rows),
        block("widen four", _CODE.widen_4_ordered, inside * quads, inside, _IM2COL),
        block("widen", _CODE.widen_1, inside * rest, inside, _IM2COL),
        over_window(shape, repeat("c", quads, source, target._replace(offset_bytes=4), target),
                    repeat("c", rest, one, one_out)))


def _multiply(dialect: str, shape: Geometry) -> tuple[Any, ...]:
    """Multiply the column by the weights: four channels at a time, two positions each, then one."""
    channels, taps = shape.input_channels, shape.window_taps
    wide, (quads, rest) = 2 * channels, divmod(channels, 4)
    done, last = 4 * quads, taps // 2 * 2
    bias = "ldr r3, [r2]" if shape.has_bias else ""

    def finish(start: int, count: int) -> tuple[Any, ...]:
        return tuple(
            part for k in range(count) for part in (
                load("parameters", 4, 4 * (channels + start + k), channel=4 * count),
                load("parameters", 4, 4 * (start + k), channel=4 * count),
                store("output", 1, start + k, channel=count, **output_steps(shape))))

    def biases(start: int, count: int) -> tuple[Any, ...]:
        return tuple(load("bias", 4, 4 * (start + k), channel=4 * count)
                     for k in range(count if shape.has_bias else 0))

    return (
        repeat("channel", quads, *biases(0, 4),
               repeat("tap", taps // 2,
                      closing("two positions of four channels", _CODE.column_taps_2),
                      *[load("weights", 4, part, channel=4, tap=wide) for part in (0, channels)],
                      *[load("scratch", 4, part, channel=8, tap=2 * wide)
                        for part in (0, wide, 4, wide + 4)]),
               repeat("odd", taps % 2,
                      step("last position of four channels", _CODE.column_tap_last),
                      *[part for k in range(4) for part in (
                          load("weights", 1, last * channels + k, channel=4),
                          load("scratch", 2, last * wide + 2 * k, channel=8))]),
               closing("four channels", join(*[bias] * 4, bookkeeping(dialect, 6, 8, 17),
                                             requantise(dialect, 4), BRANCH[dialect])),
               *finish(0, 4)),
        repeat("channel", rest, *biases(done, 1),
               repeat("tap", taps, closing("position of one channel", _CODE.column_tap_single),
                      load("weights", 1, done, channel=1, tap=channels),
                      load("scratch", 2, 2 * done, channel=2, tap=wide)),
               closing("one channel", join(bias, bookkeeping(dialect, 4, 2, 8),
                                           requantise(dialect, 1), BRANCH[dialect])),
               *finish(done, 1)))


_BLOCK_CHANNELS = 124
"""CH_IN_BLOCK_MVE: channels gathered at a time, and the step between window positions."""


def column_scratch_bytes_mve(shape: Geometry) -> int:
    """Bytes of four gathered windows of a channel block."""
    return 4 * _BLOCK_CHANNELS * shape.window_taps


def lower_column_mve(shape: Geometry, site: Site) -> Kernel:
    """Lower `arm_depthwise_conv_s8_opt` on its Helium path.

    Parameters
    ----------
    shape
        Channel multiplier one, batch one, no dilation.
    """
    blocks, nests = _plan_mve(shape)
    return build_kernel("arm_depthwise_conv_s8_opt", "depthwise", site, blocks, nests,
                        shape.taps_inside * shape.output_channels)


@lru_cache(maxsize=256)
def _plan_mve(shape: Geometry) -> tuple[Blocks, Nests]:
    """Blocks and accesses; they depend on the shape alone, and networks repeat shapes."""
    full, rest = divmod(shape.input_channels, _BLOCK_CHANNELS)
    blocks: list[Block] = [block("call", _CODE.entry_mve, 1, cause="kernel_call")]
    drafts: list[Any] = []
    if full:
        columns = Columns(shape=shape, copied_bytes=_BLOCK_CHANNELS,
                          column_step_bytes=_BLOCK_CHANNELS, input_step_bytes=_BLOCK_CHANNELS)
        blocks += _slice_blocks(columns, full)
        drafts.append(repeat("slice", full, *_slice_drafts(columns)))
    if rest:
        columns = Columns(shape=shape, copied_bytes=rest, column_step_bytes=_BLOCK_CHANNELS,
                          input_offset_bytes=full * _BLOCK_CHANNELS)
        blocks += _slice_blocks(columns, 1)
        drafts += _slice_drafts(columns)
    return tuple(blocks), resolve(*drafts)


def _slice_blocks(columns: Columns, slices: int) -> Blocks:
    """Blocks of `slices` channel blocks over all output positions."""
    shape = columns.shape
    taps = shape.window_taps
    quads, left = divmod(shape.pixels, 4)
    calls, lasts = quads * slices, left * slices
    fours = -(-columns.copied_bytes // 4)
    bias, last_bias = (_CODE.bias_mve, _CODE.last_bias_mve) if shape.has_bias else ("", "")
    return (
        block("channel block", _CODE.slice_mve, slices, cause="kernel_call"),
        *gather_blocks(CODE["columns"].depthwise_gather, columns, slices, calls),
        block("four positions", _CODE.quad_call_mve, calls, cause="kernel_call"),
        block("four channels", join(_CODE.channels_mve, bias), calls * fours),
        block("multiply 4 x 4", _CODE.inner_mve, calls * fours * taps, calls * fours),
        block("requantise 4 x 4", _CODE.finish_mve, calls * fours, calls),
        block("left-over position", join(_CODE.last_mve, last_bias), lasts * fours),
        block("multiply 4", _CODE.last_inner_mve, lasts * fours * taps, lasts * fours),
        block("requantise 4", _CODE.last_finish_mve, lasts * fours, lasts),
    )


def _slice_drafts(columns: Columns) -> list[Any]:
    """Return accesses of one channel block; the enclosing loop over blocks is named "slice"."""
    shape = columns.shape
    first, step = columns.input_offset_bytes, columns.input_step_bytes
    left = shape.pixels % 4

    def multiply(position: int, steps: dict[str, int]) -> list[Any]:
        return _product_drafts(columns, first, step, 4, position, steps)

    drafts = gather_drafts(columns, multiply)
    for slot in range(left):
        drafts += _product_drafts(columns, first, step, 1, shape.pixels - left + slot, {}, slot)
    return drafts


def _product_drafts(columns: Columns, first: int, step: int, positions: int, position: int,
                    steps: dict[str, int], slot: int = 0) -> list[Any]:
    """Four channels at a time of four gathered positions, or of one."""
    fours, tail = divmod(columns.copied_bytes, 4)
    group = [repeat("four", fours, *_four_channels(columns, first, step, positions, position,
                                                   steps, slot, 4))]
    if tail:
        group += _four_channels(columns, first + 4 * fours, step, positions, position,
                                steps, slot, tail)
    return group


def _four_channels(columns: Columns, first: int, step: int, positions: int, position: int,
                   steps: dict[str, int], slot: int, lanes: int) -> list[Any]:
    """Return accesses of up to four channels, narrower for the last (the library overreads)."""
    shape = columns.shape
    channels = shape.output_channels
    taps = shape.window_taps
    size = taps * _BLOCK_CHANNELS
    column = first - columns.input_offset_bytes  # of this group in the gathered window
    words = floor_width(4 * lanes)
    results = {name: stride * channels for name, stride in steps.items()}
    bias = ([load("bias", words, 4 * first, four=16, slice=4 * step)] if shape.has_bias else [])
    return [
        *bias,
        repeat("tap", taps,
               *lane_moves(load("weights", 4, first, four=4, slice=step, tap=channels), lanes),
               *[move for one in range(positions) for move in lane_moves(
                   load("scratch", 4, (slot + one) * size + column, four=4, tap=_BLOCK_CHANNELS),
                   lanes)]),
        load("parameters", words, 4 * channels + 4 * first, four=16, slice=4 * step),
        load("parameters", words, 4 * first, four=16, slice=4 * step),
        *[move for one in range(positions) for move in lane_moves(
            store("output", 4, (position + one) * channels + first, four=4, slice=step, **results),
            lanes)],
    ]
