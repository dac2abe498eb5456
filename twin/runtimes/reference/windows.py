"""Convolutions, plain C: one output at a time, positions outside the input skipped.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference: conv.h, depthwiseconv_float.h,
transpose_conv.h; integer_ops/conv.h, integer_ops/depthwise_conv.h, integer_ops/transpose_conv.h.
"""

from __future__ import annotations

from typing import Any

from hwmodels.kernel import Block, Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import block, join
from twin.runtimes.lowering.geometry import (
    Geometry,
    output_steps,
    over_pixels,
    over_window,
    read_geometry,
    window_bounds,
    window_load,
)
from twin.runtimes.lowering.nests import load, repeat, store
from twin.runtimes.reference.sequences import CALL_COUNTS, COUNTS, Machine, Table, choose_machine

_COUNTS = COUNTS["windows"]

_MULTIPLY = {
    "thumb2 int8": "ldrsb r8, [r1], #1; ldrsb r2, [r6], #1; cmp r3, r1; add r2, r11;"
                   "mla r0, r8, r2, r0; bne 0b",
    "thumb1 int8": "ldrsb r2, [r4, r3]; ldrsb r7, [r5, r3]; adds r2, r2, r1; muls r7, r2;"
                   "adds r3, #1; adds r0, r0, r7; cmp r6, r3; bne 0b",
    "rv32 int8": "lb a3, 0(t2); lb s7, 0(a2); addi a2, a2, 1; add a3, a3, s10; mul a3, a3, s7;"
                 "addi t2, t2, 1; add a0, a0, a3; bne s5, a2, 0b",
    "thumb2 int16": "ldrsh r8, [r1], #2; ldrsb r2, [r6], #1; cmp r3, r6; smlal r0, r9, r8, r2;"
                    "bne 0b",
    "thumb1 int16": "ldrsh r2, [r4, r3]; ldrsb r7, [r5, r6]; muls r7, r2; asrs r2, r7, #31;"
                    "adds r0, r0, r7; adcs r1, r2; adds r3, #2; adds r6, #1; cmp r6, r4; bne 0b",
    "rv32 int16": "lh a3, 0(t2); lb s7, 0(a2); mul a3, a3, s7; srai a4, a3, 31; add a5, a0, a3;"
                  "sltu a0, a5, a0; add a1, a1, a4; add a1, a1, a0; mv a0, a5; addi a2, a2, 1;"
                  "addi t2, t2, 2; bne s5, a2, 0b",
    "thumb2 float": "vldmia r3!, {s14}; vldmia r0!, {s10}; cmp r3, r7; vfma.f32 s15, s10, s14;"
                    "bne 0b",
    "rv32 float": "flw fa3, 0(a5); flw fa4, 0(a4); addi a5, a5, 4; addi a4, a4, 4;"
                  "fmadd.s fa5, fa3, fa4, fa5; bne a5, a3, 0b",
}

_ONE_MULTIPLY = {
    "thumb2": "add lr, r1; mla r12, r1, lr, r12", "rv32": "add a4, a4, s2; mul a4, a4, a5;"
    "add a0, a0, a4", "thumb1": "adds r1, r1, r0; muls r2, r1; add r12, r2",
}
_WIDE_MULTIPLY = {
    "thumb2": "smlal r0, r9, r8, r2", "rv32": "mul a3, a3, s7; srai a4, a3, 31; add a5, a0, a3;"
    "sltu a0, a5, a0; add a1, a1, a4; add a1, a1, a0",
    "thumb1": "muls r7, r2; asrs r2, r7, #31; adds r0, r0, r7; adcs r1, r2",
}
_DIVIDE_GROUP = {"thumb2": "sdiv r2, r3, r2", "rv32": "div a2, a3, a2"}


def _lower_conv(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a convolution: for each output the window, input channels innermost."""
    machine, shape = choose_machine(graph, layer, site), read_geometry(graph, layer)
    depth = shape.input_channels // layer.groups
    name = "Conv" if machine.is_float else "ConvPerChannel"
    inside = shape.taps_inside * shape.batches * shape.output_channels
    inner = block("multiply-accumulate", multiply_loop(machine), inside * depth, inside)
    group = _DIVIDE_GROUP.get(machine.dialect, machine.routine(13))
    family = "pointwise" if shape.is_pointwise else "conv"
    return machine.kernel(
        f"{machine.namespace}::{name}", family, CALL_COUNTS,
        *_window_blocks(machine, _COUNTS["conv"], shape, group, inner),
        *conv_accesses(machine, shape, layer.groups), macs=inside * depth)


def _lower_depthwise(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a depthwise convolution: channels outermost of the window loops."""
    machine, shape = choose_machine(graph, layer, site), read_geometry(graph, layer)
    name = "DepthwiseConv" if machine.is_float else "DepthwiseConvPerChannel"
    inside = shape.taps_inside * shape.batches * shape.output_channels
    code = join(machine.load(machine.element_bytes), machine.load(machine.weight_bytes),
                multiply_once(machine))
    return machine.kernel(
        f"{machine.namespace}::{name}", "depthwise", CALL_COUNTS,
        *_window_blocks(machine, _COUNTS["depthwise"], shape, "",
                        block("multiply-accumulate", code, inside)),
        *depthwise_accesses(machine, shape), macs=inside)


def multiply_loop(machine: Machine) -> str:
    """Return the innermost loop of a product: load twice, multiply, add."""
    if machine.number == "soft":
        return join(machine.load(4, 2), machine.math("mul", "add"), machine.loop((0, 0, 5)))
    return _MULTIPLY[f"{machine.dialect} {machine.number}"]


def multiply_once(machine: Machine) -> str:
    """Return one multiply-accumulate on loaded values."""
    if machine.number == "float":
        return ("fmadd.s fa5, fa3, fa4, fa5" if machine.dialect == "rv32"
                else "vfma.f32 s15, s10, s14")
    if machine.number == "soft":
        return machine.math("mul", "add")
    return (_WIDE_MULTIPLY if machine.number == "int16" else _ONE_MULTIPLY)[machine.dialect]


def finish_output(machine: Machine, counts: Table, has_bias: bool) -> str:
    """Return bias, requantisation, clamp and store of one output, closing its loop."""
    bias = machine.load(4, machine.bias_bytes // 4) if has_bias else ""
    if machine.is_float:
        middle = machine.math(*["add"] * has_bias, *["compare"] * (2 * (machine.number == "soft")))
    else:
        middle = join(machine.load(4, 2), machine.requantise())
    return join(bias, middle, machine.store(machine.element_bytes), machine.loop(counts))


def _window_blocks(machine: Machine, levels: dict[str, Table], shape: Geometry,
                   per_output: str, inner: Block) -> tuple[Block, ...]:
    """Blocks of the loops around `inner`, which runs per window position inside the input."""
    pixels, outputs = shape.pixels * shape.batches, shape.output_channels
    taps, inside = (shape.taps * shape.batches * outputs,
                    shape.taps_inside * shape.batches * outputs)
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
    machine : Machine
        Widths.
    has_bias : bool
        Whether a bias is read.
    channels : int
        Output channels, where shifts begin behind the multipliers.
    store_steps : dict
        Steps of the output in elements by loop name.
    channel : int
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
    """Return the accesses of a convolution that takes one output at a time.

    Parameters
    ----------
    machine : Machine
        Widths.
    shape : Geometry
        Extents.
    groups : int
        Of the channels.
    """
    depth, per_group = shape.input_channels // groups, shape.output_channels // groups
    wide = machine.weight_bytes
    size = shape.kernel_rows * shape.kernel_columns * depth * wide
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
