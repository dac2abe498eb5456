"""Depthwise convolution without a fast function: multipliers, dilation, or a core without DSP.

References
----------
ARM-software/CMSIS-NN 6.0, Source/ConvolutionFunctions/arm_depthwise_conv_s8.c.
"""

from __future__ import annotations

from typing import Any

from hwmodels.kernel import Kernel
from twin.runtimes.cmsis_nn.sequences import bookkeeping, entry, finish_four, requantise
from twin.runtimes.lowering import Site
from twin.runtimes.lowering.blocks import (
    BRANCH,
    block,
    choose_dialect,
    draft_kernel,
    join,
    plain,
)
from twin.runtimes.lowering.geometry import (
    Geometry,
    needed_bounds,
    output_steps,
    over_pixels,
    over_window,
    window_load,
)
from twin.runtimes.lowering.nests import closing, load, repeat, step, store

_GENERIC_TAP = {  # generic kernel: one position of one channel
    "thumb2": "ldrsb r3, [r2]; ldrsb r7, [r1]; adds r0, #1; add r3, r10; cmp r6, r0; add r2, r8;"
              "mla r4, r7, r3, r4; add r1, r9; bne 0b",
    "thumb1": "ldr r6, [sp, #4]; movs r3, #0; mov r8, r6; ldrsb r3, [r2, r3]; movs r7, #0;"
              "ldrsb r7, [r1, r7]; adds r0, #1; add r3, r8; add r2, r8; muls r7, r3, r7;"
              "adds r4, r4, r7; add r1, r9; cmp r6, r0; bne 0b",
    "rv32": "lb a5, 0(a2); lb a4, 0(a1); addi a0, a0, 1; add a5, a5, s11; add a2, a2, s8;"
            "mul a5, a5, a4; add a1, a1, s9; add s0, s0, a5; bne a0, a6, 0b",
}

_MULTIPLIER_4_TAP = {  # one input position by four output channels: 4 MAC
    "thumb2": "ldrsb r3, [lr]; ldrsb r2, [r1]; add r3, r9; mla r7, r3, r2, r7; ldrsb r2, [r1, #1];"
              "mla r4, r3, r2, r4; ldrsb r2, [r1, #2]; adds r0, #1; mla r5, r3, r2, r5;"
              "ldrsb r2, [r1, #3]; cmp r0, r12; add lr, r11; mla r6, r3, r2, r6; add r1, r10;"
              " bne 0b",
    "thumb1": "movs r3, #0; ldrsb r3, [r4, r3]; adds r3, r3, r7; movs r2, #0; ldrsb r2, [r1, r2];"
              "muls r2, r3, r2; add r8, r2; movs r2, #1; ldrsb r2, [r1, r2]; muls r2, r3, r2;"
              "add r9, r2; movs r2, #2; ldrsb r2, [r1, r2]; muls r2, r3, r2; add r10, r2;"
              "movs r2, #3; ldrsb r2, [r1, r2]; muls r2, r3, r2; adds r6, r6, r2; adds r0, #1;"
              "add r4, r11; add r1, r12; cmp r0, r5; bne 0b",
    "rv32": "lb a5, 0(a3); lb a4, 0(a1); lb a2, 1(a1); lb t3, 2(a1); lb t4, 3(a1);"
            "add a5, a5, s11; mul a4, a5, a4; mul a2, a5, a2; mul t3, a5, t3; mul a5, a5, t4;"
            "add s0, s0, a4; add s1, s1, a2; add s2, s2, t3; add s3, s3, a5; addi a0, a0, 1;"
            "add a3, a3, s8; add a1, a1, s9; bne a0, a6, 0b",
}


_ROW = {"thumb2": (10, 1, 11), "thumb1": (6, 1, 28), "rv32": (10, 1, 11)}
"""Stack loads, stack stores and arithmetic per window row of one output."""

_SOFT_DIVISION = (  # newlib's unrolled shift and subtract for a small quotient
    "bl __aeabi_idiv; cmp r1, #0; beq 1f; movs r3, r0; orrs r3, r1; bmi 2f; movs r2, #0;"
    "lsrs r3, r0, #1; cmp r3, r1; bcc 3f;" + "lsrs r3, r0, #2; cmp r3, r1; bcc 4f;" * 3
    + "lsls r3, r1, #1; cmp r0, r3; b 5f; lsls r2, r2, #1; adds r2, #1;" * 4
    + "subs r1, r0, r1; bcs 6f; movs r1, r0; adcs r2, r2; movs r0, r2; bx lr")
_DIVISIONS = {  # first and last window position along a dilated axis: two divisions
    "thumb2": "rsbs r2, r3, #0; add r2, r1; subs r2, #1; sdiv r2, r2, r1; bic r2, r2, r2, asr #31;"
              "subs r5, r6, r3; add r5, r1; subs r5, #1; sdiv r5, r5, r1; cmp r5, r7; it ge;"
              "movge r5, r7",
    "thumb1": f"rsbs r2, r3, #0; add r2, r1; subs r2, #1; {_SOFT_DIVISION}; mvns r3, r0;"
              f"asrs r3, r3, #31; ands r3, r0; subs r5, r6, r3; add r5, r1; subs r5, #1;"
              f"{_SOFT_DIVISION}; cmp r5, r7; blt 1f; movs r5, r7",
    "rv32": "neg a2, a3; add a2, a2, a1; addi a2, a2, -1; div a2, a2, a1; srai a4, a2, 31;"
            "not a4, a4; and a2, a2, a4; sub a5, a6, a3; add a5, a5, a1; addi a5, a5, -1;"
            "div a5, a5, a1; blt a5, a7, 1f; mv a5, a7",
}


def _bias(dialect: str, shape: Geometry) -> str:
    if not shape.has_bias:
        return ""
    return "lw s0, 0(s4)" if dialect == "rv32" else "ldr r4, [r2]"


def lower_generic(shape: Geometry, site: Site) -> Kernel:
    """Lower `arm_depthwise_conv_s8`: four output channels at a time where the multiplier allows.

    Parameters
    ----------
    shape : Geometry
        Any depthwise convolution.
    site : Site
        Operands.
    """
    dialect = choose_dialect(site.isa)
    multiplier = shape.output_channels // shape.input_channels
    four = multiplier % 4 == 0 and shape.batches == 1 and shape.window.dilation == (1, 1)
    drafts = (_four_channels if four else _one_channel)(dialect, shape, multiplier)
    return draft_kernel("arm_depthwise_conv_s8", "depthwise", site,
                        entry(dialect, 90, 1), *over_pixels(shape, *drafts),
                        macs=shape.batches * shape.taps_inside * shape.output_channels)


def _one_channel(dialect: str, shape: Geometry, multiplier: int) -> tuple[Any, ...]:
    """Loops of one position: input channels, each with its output channels one by one."""
    pixels, end = shape.batches * shape.pixels, BRANCH[dialect]
    outputs = pixels * shape.output_channels
    rows = shape.batches * shape.window_rows * shape.output_channels
    taps = shape.batches * shape.taps_inside * shape.output_channels
    jumps = 4 if shape.window.dilation == (1, 1) else 0
    return (
        block("pixel", join(bookkeeping(dialect, 16, 10, 18), end), pixels, 1),
        repeat("channel", shape.input_channels,
               closing("input channel", join(bookkeeping(dialect, 8, 8, 8), end)),
               repeat("tile", multiplier,
                      *[step("window bounds by division", _DIVISIONS[plain(dialect)])
                        for dilation in shape.window.dilation if dilation > 1],
                      closing("output channel", join(
                          _bias(dialect, shape), bookkeeping(dialect, 8, 4, 18 - jumps, jumps),
                          requantise(dialect, 1), end)),
                      block("window row", join(bookkeeping(dialect, *_ROW[plain(dialect)]), end),
                            rows, outputs),
                      block("window position", _GENERIC_TAP[plain(dialect)], taps, rows),
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
        block("window position", _MULTIPLIER_4_TAP[plain(dialect)], taps, rows),
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
