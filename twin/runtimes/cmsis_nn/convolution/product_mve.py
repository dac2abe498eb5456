"""Rows times transposed weights on Helium: what the MVE loops of a convolution execute."""

from __future__ import annotations

from typing import Any

from hwmodels.frozen import frozen
from hwmodels.kernel import Blocks
from twin.runtimes.cmsis_nn.sequences import (
    CODE,
    VECTOR_BYTES,
    floor_width,
    lane_moves,
    row_load,
    vectors,
)
from twin.runtimes.lowering.blocks import block, join, straight
from twin.runtimes.lowering.nests import Repeat, bound, guarded, load, repeat, store

_CODE = CODE["convolution.product_mve"]


@frozen
class ProductMve:
    """Rows times transposed weights.

    Parameters
    ----------
    depth
        Multiply-accumulates of one result; bytes of a row.
    calls, quads, singles
        Calls of the function, groups of four rows and left-over rows over all of them.
    has_bias
        Whether a bias is read per channel.
    """

    depth: int
    channels: int
    calls: int
    quads: int
    singles: int
    has_bias: bool


def product_blocks_mve(shape: ProductMve) -> Blocks:
    """Return the blocks of `arm_nn_mat_mult_nt_t_s8`."""
    fours, ones = shape.quads * shape.channels, shape.singles * shape.channels
    per_row = vectors(shape.depth)
    bias_4, bias_1 = (_CODE.bias_4_mve, _CODE.bias_1_mve) if shape.has_bias else ("", "")
    with_quads = min(shape.calls, shape.quads)
    tail = shape.channels % 4
    return (
        block("call", _CODE.entry_mve, shape.calls, cause="kernel_call"),
        block("set up rows of four", _CODE.quads_mve, with_quads, cause="kernel_call"),
        block("four rows", _CODE.quad_mve, shape.quads, with_quads),
        block("channel of four rows", _CODE.channel_4_mve, fours),
        block("multiply 4 x 16", _CODE.inner_4_mve, fours * per_row, fours),
        block("requantise four rows", join(_CODE.finish_4_mve, bias_4, _CODE.scale_4_mve), fours,
              shape.quads),
        straight("left-over row", _CODE.single_mve, shape.singles),
        block("channel of one row", _CODE.channel_1_mve, ones),
        block("multiply 16", _CODE.inner_1_mve, ones * per_row, ones),
        straight("finish one row", join(_CODE.finish_1_mve, bias_1, _CODE.keep_1_mve), ones,
                 ones - shape.singles * (shape.channels // 4)),
        block("requantise four channels", _CODE.scale_1_mve, shape.singles * (shape.channels // 4)),
        straight("next channel", _CODE.next_1_mve, ones, ones - shape.singles),
        block("requantise one channel", _CODE.tail_1_mve, shape.singles * tail,
              shape.singles if tail else 0),
    )


def quad_drafts(shape: ProductMve, source: str, row_step_bytes: int, rows_offset_bytes: int,
                output_offset_bytes: int, output_row_bytes: int, *, source_steps: dict[str, int],
                output_steps: dict[str, int]) -> Repeat:
    """Return the accesses of four rows times all channels.

    Parameters
    ----------
    source
        Operand the rows are in.
    row_step_bytes, rows_offset_bytes
        Between rows, and of the first row.
    output_offset_bytes, output_row_bytes
        Of the first result, and between rows of results.
    source_steps, output_steps
        Steps of the rows and of the results in enclosing loops, in bytes by loop name.
    """
    return repeat(
        "channel", shape.channels,
        *_weights_and_rows(shape, [
            row_load(source, rows_offset_bytes + one * row_step_bytes, **source_steps)
            for one in range(4)]),
        *_channel_parameters(shape, 4, shape.has_bias),
        *[store("output", 1, output_offset_bytes + one * output_row_bytes, channel=1,
                **output_steps) for one in range(4)])


def single_drafts(shape: ProductMve, source: str, rows_offset_bytes: int,
                  output_offset_bytes: int, *, source_steps: dict[str, int],
                  output_steps: dict[str, int]) -> list[Any]:
    """Return the accesses of one row times all channels: bias by channel, the rest by four."""
    fours, tail = divmod(shape.channels, 4)

    def channel(first: int, **outer: int) -> list[Any]:
        return _weights_and_rows(
            shape, [row_load(source, rows_offset_bytes, **source_steps)], first, outer
        ) + ([load("bias", 4, 4 * first, channel=4, **{name: 4 * step
                                                       for name, step in outer.items()})]
             if shape.has_bias else [])

    shifts = 4 * shape.channels
    by_four = repeat(
        "four", fours, repeat("channel", 4, *channel(0, four=4)),
        load("parameters", 16, shifts, four=16), load("parameters", 16, 0, four=16),
        *lane_moves(store("output", 4, output_offset_bytes, four=4, **output_steps), 4))
    last = [repeat("channel", tail, *channel(4 * fours)),
            repeat("channel", tail, load("parameters", 4, 16 * fours, channel=4),
                   load("parameters", 4, shifts + 16 * fours, channel=4),
                   store("output", 1, output_offset_bytes + 4 * fours, channel=1,
                         **output_steps))]
    return [by_four, *last]


def _channel_parameters(shape: ProductMve, width_bytes: int, has_bias: bool) -> list[Any]:
    bias = [load("bias", width_bytes, 0, channel=4)] if has_bias else []
    return [*bias, load("parameters", width_bytes, 0, channel=4),
            load("parameters", width_bytes, 4 * shape.channels, channel=4)]


def _weights_and_rows(shape: ProductMve, rows: list[Any], first: int = 0,
                      outer: dict[str, int] | None = None) -> list[Any]:
    """One channel: weights with each row, then the weights fetched ahead of the next channel.

    Weights are loaded one vector ahead: the last full load of a row, and the one after it, reach
    into the next rows; where that would leave the tensor the access is narrowed or omitted.
    """
    depth, channels = shape.depth, shape.channels
    full, tail = divmod(depth, VECTOR_BYTES)
    weight_steps = {"channel": depth, **{name: step * depth
                                         for name, step in (outer or {}).items()}}
    index_steps = {"channel": 1, **(outer or {})}
    weights = row_load("weights", first * depth, **weight_steps)
    moves: list[Any] = [repeat("vector", full, *[
        row._replace(steps_bytes={**row.steps_bytes, "vector": VECTOR_BYTES})
        for row in (weights, *rows)])]
    lanes = tail or VECTOR_BYTES
    if tail:
        moves += _overreaching(weights, full * VECTOR_BYTES, VECTOR_BYTES, tail, depth, channels,
                               first, index_steps)
        moves += [row._replace(width_bytes=floor_width(tail),
                               offset_bytes=row.offset_bytes + full * VECTOR_BYTES)
                  for row in rows]
    ahead = vectors(depth) * VECTOR_BYTES
    return moves + _overreaching(weights, ahead, floor_width(lanes), 0, depth, channels, first,
                                 index_steps)


def _overreaching(weights: Any, offset_bytes: int, width_bytes: int, inside_bytes: int,
                  depth: int, channels: int, first: int, steps: dict[str, int]) -> list[Any]:
    """Return an access that may leave its row; near the tensor's end `inside_bytes` wide."""
    rows_needed = -(-(offset_bytes + width_bytes) // depth)
    limit = channels - rows_needed + 1  # channels below it have enough rows behind them
    move = weights._replace(offset_bytes=weights.offset_bytes + offset_bytes)
    wide = guarded(move._replace(width_bytes=width_bytes), bound(first, limit, **steps))
    if not inside_bytes:
        return [wide]
    narrow = guarded(move._replace(width_bytes=floor_width(inside_bytes)),
                     bound(first - limit, channels - limit, **steps))
    return [wide, narrow]
