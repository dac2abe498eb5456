"""Depthwise convolution on cores with DSP: a pixel's window widened to one int16 column."""

from __future__ import annotations

from typing import Any

from hwmodels.kernel import Block, Kernel
from twin.runtimes.cmsis_nn.depthwise_sequences import (
    COLUMN_TAP_LAST,
    COLUMN_TAP_SINGLE,
    COLUMN_TAPS_2,
    WIDEN_1,
    WIDEN_4_ORDERED,
)
from twin.runtimes.cmsis_nn.dialect import (
    BRANCH,
    block,
    bookkeeping,
    build_kernel,
    choose_dialect,
    entry,
    join,
    requantise,
)
from twin.runtimes.cmsis_nn.geometry import Geometry
from twin.runtimes.cmsis_nn.libc import fill_blocks
from twin.runtimes.cmsis_nn.nests import bound, load, repeat, resolve, store
from twin.runtimes.lowering import Site

_IM2COL = "data_copy"


def column_scratch_bytes(shape: Geometry) -> int:
    """Bytes of the column: one int16 for each window position and channel."""
    return 2 * shape.kernel_rows * shape.kernel_columns * shape.input_channels


def lower_column(shape: Geometry, site: Site) -> Kernel:
    """Lower `arm_depthwise_conv_s8_opt` on its DSP path.

    Parameters
    ----------
    shape : Geometry
        Channel multiplier one, batch one, no dilation.
    site : Site
        Operands.
    """
    dialect = choose_dialect(site.isa)
    blocks = (entry(dialect, 80, 1), *_gather_blocks(dialect, shape), *_multiply_blocks(
        dialect, shape))
    return build_kernel("arm_depthwise_conv_s8_opt", "depthwise", site, blocks,
                        resolve(*_drafts(shape)), macs=shape.taps_inside * shape.input_channels)


def _gather_blocks(dialect: str, shape: Geometry) -> tuple[Block, ...]:
    channels, pixels = shape.input_channels, shape.pixels
    rows = sum(shape.row_taps) * shape.output_columns
    inside = shape.taps_inside
    outside = rows * shape.kernel_columns - inside
    quads, rest = divmod(channels, 4)
    end = BRANCH[dialect]
    outside_rows = pixels * shape.kernel_rows - rows
    widen = join(bookkeeping(dialect, 2, 1, 24 if rest else 22, 1), end)
    return (
        block("gather pixel", join(bookkeeping(dialect, 18, 8, 22), end), pixels, 1, _IM2COL),
        block("gather line", join(bookkeeping(dialect, 10, 2, 8), end), rows, pixels, _IM2COL),
        block("gather position", widen, inside, rows, _IM2COL),
        block("pad position", join(bookkeeping(dialect, 0, 0, 11, 1), end), outside, cause=_IM2COL),
        *fill_blocks(dialect, 2 * channels, outside),
        *fill_blocks(dialect, 2 * channels * shape.kernel_columns, outside_rows),
        block("widen four", WIDEN_4_ORDERED, inside * quads, inside, _IM2COL),
        block("widen", WIDEN_1, inside * rest, inside, _IM2COL))


def _multiply_blocks(dialect: str, shape: Geometry) -> tuple[Block, ...]:
    taps = shape.kernel_rows * shape.kernel_columns
    quads, rest = divmod(shape.input_channels, 4)
    fours, ones = shape.pixels * quads, shape.pixels * rest
    bias = "ldr r3, [r2]" if shape.has_bias else ""
    return (
        block("two positions of four channels", COLUMN_TAPS_2, fours * (taps // 2), fours),
        block("last position of four channels", COLUMN_TAP_LAST, fours * (taps % 2)),
        block("four channels", join(*[bias] * 4, bookkeeping(dialect, 6, 8, 17),
                                    requantise(dialect, 4), BRANCH[dialect]), fours, shape.pixels),
        block("position of one channel", COLUMN_TAP_SINGLE, ones * taps, ones),
        block("one channel", join(bias, bookkeeping(dialect, 4, 2, 8), requantise(dialect, 1),
                                  BRANCH[dialect]), ones, shape.pixels))


def _drafts(shape: Geometry) -> tuple[Any, ...]:
    return (repeat("line", shape.output_rows, repeat(
        "pixel", shape.output_columns, *_gather(shape), *_multiply(shape))),)


def _gather(shape: Geometry) -> tuple[Any, ...]:
    window, channels = shape.window, shape.input_channels
    line_bytes = shape.input_columns * channels
    top, first = -window.padding[0], -window.padding[2]
    bounds = []
    if sum(shape.row_taps) < shape.output_rows * shape.kernel_rows:
        bounds.append(bound(top, shape.input_rows, line=window.stride[0], ky=1))
    if sum(shape.column_taps) < shape.output_columns * shape.kernel_columns:
        bounds.append(bound(first, shape.input_columns, pixel=window.stride[1], kx=1))
    quads, rest = divmod(channels, 4)
    source = load("input", 4, top * line_bytes + first * channels,
                  line=window.stride[0] * line_bytes, pixel=window.stride[1] * channels,
                  ky=line_bytes, kx=channels, c=4)._replace(bounds=tuple(bounds))
    wide = 2 * channels
    target = store("scratch", 4, 0, ky=shape.kernel_columns * wide, kx=wide, c=8)
    one = source._replace(width_bytes=1, offset_bytes=source.offset_bytes + 4 * quads,
                          steps_bytes={**source.steps_bytes, "c": 1})
    one_out = target._replace(width_bytes=2, offset_bytes=8 * quads,
                              steps_bytes={**target.steps_bytes, "c": 2})
    return (repeat("ky", shape.kernel_rows, repeat(
        "kx", shape.kernel_columns,
        repeat("c", quads, source, target._replace(offset_bytes=4), target),
        repeat("c", rest, one, one_out))),)


def _multiply(shape: Geometry) -> tuple[Any, ...]:
    channels = shape.input_channels
    taps = shape.kernel_rows * shape.kernel_columns
    quads, rest = divmod(channels, 4)
    done, last = 4 * quads, taps // 2 * 2
    pixel = {"line": shape.output_columns * channels, "pixel": channels}

    def finish(start: int, count: int) -> tuple[Any, ...]:
        return tuple(
            part for k in range(count) for part in (
                load("parameters", 4, 4 * (channels + start + k), channel=4 * count),
                load("parameters", 4, 4 * (start + k), channel=4 * count),
                store("output", 1, start + k, channel=count, **pixel)))

    def bias(start: int, count: int) -> tuple[Any, ...]:
        return tuple(load("bias", 4, 4 * (start + k), channel=4 * count)
                     for k in range(count if shape.has_bias else 0))

    wide = 2 * channels
    pair = (
        load("weights", 4, channel=4, tap=2 * channels),
        load("weights", 4, channels, channel=4, tap=2 * channels),
        *[load("scratch", 4, part, channel=8, tap=2 * wide) for part in (0, wide, 4, wide + 4)])
    odd = tuple(
        part for k in range(4) for part in (
            load("weights", 1, last * channels + k, channel=4),
            load("scratch", 2, last * wide + 2 * k, channel=8)))
    return (
        repeat("channel", quads, *bias(0, 4), repeat("tap", taps // 2, *pair),
               repeat("odd", taps % 2, *odd), *finish(0, 4)),
        repeat("channel", rest, *bias(done, 1), repeat(
            "tap", taps, load("weights", 1, done, channel=1, tap=channels),
            load("scratch", 2, 2 * done, channel=2, tap=wide)), *finish(done, 1)))
