"""Convolutions, plain C: one output at a time, positions outside the input skipped.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference: conv.h, depthwiseconv_float.h,
transpose_conv.h; integer_ops/conv.h, integer_ops/depthwise_conv.h, integer_ops/transpose_conv.h.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from hwmodels.kernel import Block, Blocks, Lowered
from twin.runtimes.lowering import MOST_KEPT, Kernels, Lowering, Site, assume
from twin.runtimes.lowering.blocks import block, join
from twin.runtimes.lowering.geometry import (
    Geometry,
    output_steps,
    over_pixels,
    over_window,
    window_bounds,
    window_load,
)
from twin.runtimes.lowering.nests import Move, Repeat, bound, load, repeat, store
from twin.runtimes.reference.sequences import (
    CALL_COUNTS,
    CODE,
    COUNTS,
    Machine,
    Table,
    choose_machine,
)

_COUNTS = COUNTS["windows"]


@lru_cache(maxsize=MOST_KEPT)
def tile_outputs(lowering: Lowering, tile: int) -> Lowering:
    """Return a convolution that computes square tiles of the output, channel by channel.

    Within a tile the loop over output channels is outside that over positions: a filter is reused
    at tile x tile positions, the tile's input by every channel. Nobody ships it: assumed. Any other
    lowering is returned as it is.
    """
    if lowering.lower not in (_lower_conv, _lower_depthwise):
        return lowering
    return assume(replace(lowering, lower=partial(lowering.lower, tile=tile)))


def _lower_conv(site: Site, tile: int = 0) -> Lowered:
    """Lower a convolution: for each output the window, input channels innermost."""
    machine, shape = choose_machine(site), site.geometry
    depth = shape.input_channels // site.layer.groups
    name = "Conv" if machine.is_float else "ConvPerChannel"
    inside = shape.products
    inner = block("multiply-accumulate", multiply_loop(machine), inside * depth, inside)
    group = CODE["divide_group"].get(machine.dialect, machine.routine(13))
    family = "pointwise" if shape.is_pointwise else "conv"
    return machine.kernel(
        f"{machine.namespace}::{name}", family, CALL_COUNTS,
        *_window_blocks(machine, _COUNTS["conv"], shape, group, inner),
        *_over_tiles(shape, tile, conv_accesses(machine, shape, site.layer.groups)),
        macs=inside * depth)


def _lower_depthwise(site: Site, tile: int = 0) -> Lowered:
    """Lower a depthwise convolution: channels outermost of the window loops."""
    machine, shape = choose_machine(site), site.geometry
    name = "DepthwiseConv" if machine.is_float else "DepthwiseConvPerChannel"
    inside = shape.products
    code = join(machine.load(machine.element_bytes), machine.load(machine.weight_bytes),
                multiply_once(machine))
    return machine.kernel(
        f"{machine.namespace}::{name}", "depthwise", CALL_COUNTS,
        *_window_blocks(machine, _COUNTS["depthwise"], shape, "",
                        block("multiply-accumulate", code, inside)),
        *_over_tiles(shape, tile, depthwise_accesses(machine, shape)), macs=inside)


def _over_tiles(shape: Geometry, tile: int, loops: Any) -> Any:
    """Return loops over batch, row, column and what is inside, over square tiles of positions.

    Rows and columns move inside the loops over channels; a tile at an edge stops at the edge.
    """
    rows, columns = min(tile, shape.output_rows), min(tile, shape.output_columns)
    if not tile or (rows, columns) == (1, 1):
        return loops
    (batch,), extents = loops, {"row": (rows, shape.output_rows),
                                "column": (columns, shape.output_columns)}
    edges = tuple(bound(0, whole, **{f"{name}_tile": size, name: 1})
                  for name, (size, whole) in extents.items() if whole % size)

    def spread(steps: dict[str, int]) -> dict[str, int]:
        return steps | {f"{name}_tile": steps[name] * size
                        for name, (size, _) in extents.items() if name in steps}

    def change(one: Any) -> Any:
        if not isinstance(one, Move):
            return one._replace(body=tuple(map(change, one.body)))
        return one._replace(steps_bytes=spread(one.steps_bytes), bounds=(*edges, *(
            found._replace(steps=spread(found.steps)) for found in one.bounds)))

    def sink(one: Any) -> Any:
        if one.name in ("group", "out", "channel", "copy"):
            inner, = one.body if isinstance(one.body[0], Repeat) and one.body[0].name in (
                "out", "copy") else (None,)
            return one._replace(body=(sink(inner),)) if inner is not None else one._replace(
                body=(repeat("row", rows, repeat("column", columns, *map(change, one.body))),))
        return one

    across = batch.body[0].body[0].body
    return (repeat("batch", batch.extent, repeat(
        "row_tile", -(-shape.output_rows // rows), repeat(
            "column_tile", -(-shape.output_columns // columns), *map(sink, across)))),)


def multiply_loop(machine: Machine) -> str:
    """Return the innermost loop of a product: load twice, multiply, add."""
    if machine.number == "soft":
        return join(machine.load(4, 2), machine.math("mul", "add"), machine.loop((0, 0, 5)))
    return CODE["multiply"][f"{machine.dialect} {machine.number}"]


def multiply_once(machine: Machine) -> str:
    """Return one multiply-accumulate on loaded values."""
    if machine.number == "float":
        return ("fmadd.s fa5, fa3, fa4, fa5" if machine.dialect == "rv32"
                else "vfma.f32 s15, s10, s14")
    if machine.number == "soft":
        return machine.math("mul", "add")
    return CODE["wide_multiply" if machine.number == "int16" else "one_multiply"][machine.dialect]


def finish_output(machine: Machine, counts: Table, has_bias: bool) -> str:
    """Return bias, requantisation, clamp and store of one output, closing its loop."""
    bias = machine.load(4, machine.bias_bytes // 4) if has_bias else ""
    if machine.is_float:
        middle = machine.math(*["add"] * has_bias, *["compare"] * (2 * (machine.number == "soft")))
    else:
        middle = join(machine.load(4, 2), machine.requantise())
    return join(bias, middle, machine.store(machine.element_bytes), machine.loop(counts))


def _window_blocks(machine: Machine, levels: dict[str, Table], shape: Geometry,
                   per_output: str, inner: Block) -> Blocks:
    """Blocks of the loops around `inner`, which runs per window position inside the input."""
    pixels, outputs = shape.positions, shape.output_channels
    taps, inside = (shape.taps * shape.batches * outputs, shape.taps_run * outputs)
    near = _taps_not_before(shape) * shape.batches * outputs
    window_rows = pixels * shape.kernel_rows * outputs
    rows = shape.output_rows * shape.batches
    return (
        block("window position", machine.loop(levels["checked"]), taps, window_rows),
        block("before the end?", machine.skip(levels["beyond"]), near, inside),
        block("inside the input", machine.spend(levels["inside"]), inside),
        inner,
        block("outside the input", machine.spend(levels["outside"]), taps - inside),
        block("window row", machine.loop(levels["window_row"]), window_rows, pixels * outputs),
        block("output", join(per_output, finish_output(machine, levels["output"], shape.has_bias)),
              pixels * outputs, pixels),
        block("pixel", machine.loop(levels["pixel"]), pixels, rows),
        block("row", machine.loop(levels["row"]), rows, shape.batches),
    )


def _taps_not_before(shape: Geometry) -> int:
    """Window positions neither above nor left of the input, over all output positions."""
    counts = []
    for outputs, kernel, axis, before in (
            (shape.output_rows, shape.kernel_rows, 0, shape.window.padding[0]),
            (shape.output_columns, shape.kernel_columns, 1, shape.window.padding[2])):
        stride, dilation = shape.window.stride[axis], shape.window.dilation[axis]
        counts.append(sum(place * stride - before + tap * dilation >= 0
                          for place in range(outputs) for tap in range(kernel)))
    return counts[0] * counts[1]


def output_moves(machine: Machine, has_bias: bool, channels: int, store_steps: dict[str, int],
                 **channel: int) -> list[Any]:
    """Return bias, multiplier and shift loads and the store of one output.

    Parameters
    ----------
    has_bias
        Whether a bias is read.
    channels
        Output channels, where shifts begin behind the multipliers.
    store_steps
        Steps of the output in elements by loop name.
    channel
        Steps of the channel index by loop name.
    """
    moves: list[Any] = []
    if has_bias:
        wide = machine.bias_bytes
        moves.append(load("bias", wide, 0, **{name: wide * n for name, n in channel.items()}))
    if not machine.is_float:
        moves += [load("parameters", 4, first, **{name: 4 * n for name, n in channel.items()})
                  for first in (0, 4 * channels)]
    size = machine.element_bytes
    return [*moves, store("output", size, 0,
                          **{name: size * step for name, step in store_steps.items()})]


def conv_accesses(machine: Machine, shape: Geometry, groups: int) -> Any:
    """Return the accesses of a convolution that takes one output at a time."""
    depth, per_group = shape.input_channels // groups, shape.output_channels // groups
    wide = machine.weight_bytes
    size = shape.window_taps * depth * wide
    weights = load("weights", wide, 0, group=per_group * size, out=size,
                   ky=shape.kernel_columns * depth * wide, kx=depth * wide, channel=wide
                   )._replace(bounds=window_bounds(shape))
    element = machine.element_bytes
    data = window_load(shape, window_bounds(shape), element, element, group=depth * element,
                       channel=element)
    channels = shape.output_channels
    return over_pixels(shape, repeat("group", groups, repeat(
        "out", per_group,
        over_window(shape, repeat("channel", depth, data, weights)),
        *output_moves(machine, shape.has_bias, channels, {
            **output_steps(shape), "group": per_group, "out": 1}, group=per_group, out=1))))


def depthwise_accesses(machine: Machine, shape: Geometry) -> Any:
    """Return the accesses of a depthwise convolution; parameters as of `conv_accesses`."""
    channels, wide = shape.output_channels, machine.weight_bytes
    multiplier = channels // shape.input_channels
    weights = load("weights", wide, 0, channel=multiplier * wide, copy=wide,
                   ky=shape.kernel_columns * channels * wide, kx=channels * wide
                   )._replace(bounds=window_bounds(shape))
    element = machine.element_bytes
    data = window_load(shape, window_bounds(shape), element, element, channel=element)
    return over_pixels(shape, repeat("channel", shape.input_channels, repeat(
        "copy", multiplier,
        over_window(shape, data, weights),
        *output_moves(machine, shape.has_bias, channels, {
            **output_steps(shape), "channel": multiplier, "copy": 1},
            channel=multiplier, copy=1))))


KERNELS: Kernels = {
    "conv_2d": {"c": Lowering(lower=_lower_conv)},
    "depthwise_conv_2d": {"c": Lowering(lower=_lower_depthwise)},
}
