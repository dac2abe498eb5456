"""Depthwise convolution without a fast function: multipliers, dilation, or a core without DSP."""

from __future__ import annotations

from typing import Any

from hwmodels.kernel import Block, Kernel
from twin.runtimes.cmsis_nn.depthwise_sequences import (
    CLAMP_4_PACKED,
    GENERIC_TAP,
    MULTIPLIER_4_TAP,
)
from twin.runtimes.cmsis_nn.dialect import (
    BRANCH,
    CLAMP,
    PARAMETERS,
    SCALE,
    STORE,
    block,
    bookkeeping,
    build_kernel,
    choose_dialect,
    entry,
    join,
    requantise,
)
from twin.runtimes.cmsis_nn.geometry import Geometry
from twin.runtimes.cmsis_nn.nests import Bound, bound, load, repeat, resolve, store
from twin.runtimes.lowering import Site


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
    four = (multiplier % 4 == 0 and shape.batches == 1 and shape.window.dilation == (1, 1))
    at_once = 4 if four else 1
    blocks = (_blocks_of_four if four else _blocks_of_one)(dialect, shape, multiplier)
    return build_kernel("arm_depthwise_conv_s8", "depthwise", site,
                        (entry(dialect, 90, 1), *blocks),
                        resolve(*_drafts(dialect, shape, multiplier, at_once)),
                        macs=shape.batches * shape.taps_inside * shape.output_channels)


_ROW = {"dsp": (10, 1, 11), "thumb2": (10, 1, 11), "thumb1": (6, 1, 28), "rv32": (10, 1, 11)}
"""Stack loads, stack stores and arithmetic per window row of one output."""

_SOFT_DIVISION = (  # newlib's unrolled shift and subtract for a small quotient
    "bl __aeabi_idiv; cmp r1, #0; beq 1f; movs r3, r0; orrs r3, r1; bmi 2f; movs r2, #0;"
    "lsrs r3, r0, #1; cmp r3, r1; bcc 3f;" + "lsrs r3, r0, #2; cmp r3, r1; bcc 4f;" * 3
    + "lsls r3, r1, #1; cmp r0, r3; b 5f; lsls r2, r2, #1; adds r2, #1;" * 4
    + "subs r1, r0, r1; bcs 6f; movs r1, r0; adcs r2, r2; movs r0, r2; bx lr")
_DIVISIONS = {  # first and last window position along a dilated axis: two divisions
    "dsp": "rsbs r2, r3, #0; add r2, r1; subs r2, #1; sdiv r2, r2, r1; bic r2, r2, r2, asr #31;"
           "subs r5, r6, r3; add r5, r1; subs r5, #1; sdiv r5, r5, r1; cmp r5, r7; it ge;"
           "movge r5, r7",
    "thumb1": f"rsbs r2, r3, #0; add r2, r1; subs r2, #1; {_SOFT_DIVISION}; mvns r3, r0;"
              f"asrs r3, r3, #31; ands r3, r0; subs r5, r6, r3; add r5, r1; subs r5, #1;"
              f"{_SOFT_DIVISION}; cmp r5, r7; blt 1f; movs r5, r7",
    "rv32": "neg a2, a3; add a2, a2, a1; addi a2, a2, -1; div a2, a2, a1; srai a4, a2, 31;"
            "not a4, a4; and a2, a2, a4; sub a5, a6, a3; add a5, a5, a1; addi a5, a5, -1;"
            "div a5, a5, a1; blt a5, a7, 1f; mv a5, a7",
}
_DIVISIONS["thumb2"] = _DIVISIONS["dsp"]


def _bias(dialect: str, shape: Geometry) -> str:
    if not shape.has_bias:
        return ""
    return "lw s0, 0(s4)" if dialect == "rv32" else "ldr r4, [r2]"


def _blocks_of_one(dialect: str, shape: Geometry, multiplier: int) -> tuple[Block, ...]:
    pixels = shape.batches * shape.pixels
    outputs = pixels * shape.output_channels
    rows = shape.batches * sum(shape.row_taps) * shape.output_columns * shape.output_channels
    taps = shape.batches * shape.taps_inside * shape.output_channels
    end = BRANCH[dialect]
    jumps = 4 if shape.window.dilation == (1, 1) else 0
    return (
        block("pixel", join(bookkeeping(dialect, 16, 10, 18), end), pixels, 1),
        block("input channel", join(bookkeeping(dialect, 8, 8, 8), end),
              pixels * shape.input_channels, pixels),
        *[block("window bounds by division", _DIVISIONS[dialect], outputs)
          for dilation in shape.window.dilation if dilation > 1],
        block("output channel", join(
            _bias(dialect, shape), bookkeeping(dialect, 8, 4, 18 - jumps, jumps),
            requantise(dialect, 1), end), outputs, outputs // multiplier),
        block("window row", join(bookkeeping(dialect, *_ROW[dialect]), end), rows, outputs),
        block("window position", GENERIC_TAP[dialect], taps, rows))


def _blocks_of_four(dialect: str, shape: Geometry, multiplier: int) -> tuple[Block, ...]:
    tiles = shape.pixels * shape.output_channels // 4
    rows = sum(shape.row_taps) * shape.output_columns * shape.output_channels // 4
    taps = shape.taps_inside * shape.output_channels // 4
    scale = join(PARAMETERS[dialect], SCALE[dialect])
    if dialect in ("dsp", "thumb2"):
        finish = join(*[scale] * 4, CLAMP_4_PACKED)
    else:
        finish = join(*[scale] * 4, *[join(CLAMP[dialect], STORE[dialect])] * 4)
    end = BRANCH[dialect]
    return (
        block("pixel", join(bookkeeping(dialect, 14, 8, 16), end), shape.pixels, 1),
        block("four channels", join(*[_bias(dialect, shape)] * 4, bookkeeping(dialect, 20, 9, 16),
                                    finish, end), tiles, shape.pixels),
        block("window row", join(bookkeeping(dialect, 6, 1, 8), end), rows, tiles),
        block("window position", MULTIPLIER_4_TAP[dialect], taps, rows))


def _drafts(dialect: str, shape: Geometry, multiplier: int, at_once: int) -> tuple[Any, ...]:
    """Accesses in program order: pixel, input channel, tile of output channels, window."""
    window, channels, outputs = shape.window, shape.input_channels, shape.output_channels
    line_bytes = shape.input_columns * channels
    top, first = -window.padding[0], -window.padding[2]
    bounds: list[Bound] = []
    if sum(shape.row_taps) < shape.output_rows * shape.kernel_rows:
        bounds.append(bound(top, shape.input_rows, line=window.stride[0], ky=window.dilation[0]))
    if sum(shape.column_taps) < shape.output_columns * shape.kernel_columns:
        bounds.append(bound(first, shape.input_columns, pixel=window.stride[1],
                            kx=window.dilation[1]))
    inside = tuple(bounds)
    source = load("input", 1, top * line_bytes + first * channels, channel=1,
                  batch=shape.input_rows * line_bytes, line=window.stride[0] * line_bytes,
                  pixel=window.stride[1] * channels, ky=window.dilation[0] * line_bytes,
                  kx=window.dilation[1] * channels)._replace(bounds=inside)
    weights = [load("weights", 1, k, ky=shape.kernel_columns * outputs, kx=outputs,
                    channel=multiplier, tile=at_once)._replace(bounds=inside)
               for k in range(at_once)]
    words = {"channel": 4 * multiplier, "tile": 4 * at_once}
    merged = at_once == 4 and dialect in ("dsp", "thumb2")
    width, times = (4, 1) if merged else (1, at_once)
    biases = [load("bias", 4, 4 * k, **words) for k in range(at_once if shape.has_bias else 0)]
    return (repeat("batch", shape.batches, repeat("line", shape.output_rows, repeat(
        "pixel", shape.output_columns, repeat("channel", channels, repeat(
            "tile", multiplier // at_once, *biases,
            repeat("ky", shape.kernel_rows, repeat(
                "kx", shape.kernel_columns, source, *weights)),
            *[load("parameters", 4, 4 * (part * outputs + k), **words)
              for k in range(at_once) for part in (1, 0)],
            *[store("output", width, width * k, channel=multiplier, tile=at_once,
                    pixel=outputs, line=shape.output_columns * outputs,
                    batch=shape.pixels * outputs) for k in range(times)]))))),)
