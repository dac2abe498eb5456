"""Average and maximum pooling.

References
----------
ARM-software/CMSIS-NN 6.0, Source/PoolingFunctions: arm_avgpool_s8.c (with DSP: sums of all
channels in a buffer; without: channel by channel), arm_max_pool_s8.c.
"""

from __future__ import annotations

from typing import Any

from hwmodels.kernel import Block, Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.dialect import (
    BRANCH,
    MVE,
    block,
    bookkeeping,
    build_kernel,
    choose_dialect,
    entry,
    join,
)
from twin.runtimes.cmsis_nn.geometry import Geometry, read_geometry
from twin.runtimes.cmsis_nn.libc import (
    COPY_4_FROM_STACK,
    COPY_4_TO_STACK,
    copy_blocks,
    copy_moves,
)
from twin.runtimes.cmsis_nn.nests import Bound, bound, load, repeat, resolve, store
from twin.runtimes.lowering import Site

_FIRST = "ldrsb r1, [r3, #1]!; str r1, [r2, #4]!; cmp r3, r5; bne 0b"
_ACCUMULATE = ("ldrsb r3, [r2, #1]!; ldr r0, [r1, #4]!; qadd r3, r3, r0; cmp r2, r5; str r3, [r1];"
               "bne 0b")
_DIVIDE = ("ldr r5, [r7, #4]!; cmp r5, #0; ite gt; addgt r5, lr; suble r5, r5, lr;"
           "sdiv r5, r5, r0; cmp r5, r1; it lt; movlt r5, r1; cmp r5, r2; it ge; movge r5, r2;"
           "cmp r3, r7; strb r5, [r12, #1]!; bne 0b")

_SUM_TAP = {  # one window position inside the input: bounds checks, load, sum, count
    "thumb2": "orrs r4, r1, r3; bmi 1f; cmp r11, r1; ble 1f; cmp r10, r3; ble 1f;"
              "ldrsb r4, [r2]; adds r6, #1; add r7, r4; adds r3, #1; cmp r3, r0; add r2, r12;"
              "bne 0b",
    "thumb1": "movs r0, r1; orrs r0, r3; bmi 1f; mov r0, r9; cmp r0, r1; ble 1f; cmp r8, r3;"
              "ble 1f; movs r0, #0; ldrsb r0, [r2, r0]; add r11, r0; movs r0, #1; mov r12, r0;"
              "add r10, r12; adds r3, #1; adds r2, r2, r6; cmp r3, r4; bne 0b",
    "rv32": "bltz a1, 1f; bltz a3, 1f; bge a1, s1, 1f; bge a3, s2, 1f; lb a4, 0(a2);"
            "addi a6, a6, 1; add a7, a7, a4; addi a3, a3, 1; add a2, a2, s3; bne a3, a0, 0b",
}
_SKIP_TAP = {
    "thumb2": "orrs r4, r1, r3; bmi 1f; adds r3, #1; cmp r3, r0; add r2, r12; bne 0b",
    "thumb1": "movs r0, r1; orrs r0, r3; bmi 1f; adds r3, #1; adds r2, r2, r6; cmp r3, r4; bne 0b",
    "rv32": "bltz a1, 1f; bltz a3, 1f; addi a3, a3, 1; add a2, a2, s3; bne a3, a0, 0b",
}
_AVERAGE = {  # rounded division by the count, clamp, store
    "thumb2": "cmp r7, #0; add r3, r6, r6, lsr #31; ite gt; addgt r7, r7, r3, asr #1;"
              "suble r7, r7, r3, asr #1; sdiv r7, r7, r6; ldr r3, [sp, #40]; cmp r7, r3; it lt;"
              "movlt r7, r3; ldr r3, [sp, #44]; cmp r7, r3; it ge; movge r7, r3; strb r7, [r5]",
    "thumb1": "mov r0, r10; lsrs r3, r0, #31; adds r0, r0, r3; asrs r0, r0, #1; mov r3, r11;"
              "cmp r3, #0; ble 1f; adds r0, r0, r3; mov r1, r10; bl __aeabi_idiv; cmp r1, #0;"
              "beq 2f; movs r2, #0; " + "lsrs r3, r0, #1; cmp r3, r1; bcc 3f;" * 8
              + "lsls r3, r1, #1; cmp r0, r3; b 5f; lsls r2, r2, #1; adds r2, #1;" * 8
              + "movs r0, r2; bx lr; ldr r3, [sp, #40]; cmp r0, r3; bge 6f; movs r0, r3;"
              "ldr r3, [sp, #44]; cmp r0, r3; ble 7f; movs r0, r3; strb r0, [r5]",
    "rv32": "srli a4, a6, 31; add a4, a4, a6; srai a4, a4, 1; blez a7, 1f; add a7, a7, a4;"
            "div a7, a7, a6; lw a4, 40(sp); bge a7, a4, 2f; mv a7, a4; lw a4, 44(sp);"
            "bge a4, a7, 3f; mv a7, a4; sb a7, 0(a5)",
}

_COMPARE_4 = {  # four channels of one window position against the maximum so far
    "thumb2": "ldr r0, [r5]; ldr r3, [r2], #4; sxtb r8, r0; sxtb r4, r3; cmp r8, r4; it lt;"
              "movlt r8, r4; movs r4, #0; sbfx r9, r0, #8, #8; bfi r4, r8, #0, #8;"
              "sbfx r8, r3, #8, #8; cmp r8, r9; it lt; movlt r8, r9; bfi r4, r8, #8, #8;"
              "sbfx r9, r0, #16, #8; sbfx r8, r3, #16, #8; cmp r8, r9; asr r3, r3, #24;"
              "asr r0, r0, #24; it lt; movlt r8, r9; cmp r3, r0; it lt; movlt r3, r0;"
              "bfi r4, r8, #16, #8; bfi r4, r3, #24, #8; str r4, [r5], #4; cmp r5, r7; bne 0b",
    "thumb1": join(
        "mov r1, r5", COPY_4_TO_STACK, "mov r1, r9", COPY_4_TO_STACK,
        *["ldr r3, [sp, #4]; sxtb r3, r3; ldr r0, [sp, #8]; sxtb r0, r0; cmp r3, r0; bge 1f;"
          "movs r0, r3; str r0, [sp, #4]"] * 4, "mov r0, r5", COPY_4_FROM_STACK,
        bookkeeping("thumb1", 0, 0, 10),
        "ldr r3, [sp, #12]; adds r3, #4; str r3, [sp, #12]; adds r5, #4; subs r7, #1; bne 0b"),
    "rv32": join(*["lbu a3, 0(a2); sb a3, 8(sp); lbu a0, 0(a5); sb a0, 12(sp)"] * 4,
                 "lw a3, 8(sp); lw a0, 12(sp)",
                 *["slli a4, a3, 24; srai a4, a4, 24; slli a6, a0, 24; srai a6, a6, 24;"
                   "bge a6, a4, 1f; sb a4, 12(sp)"] * 4,
                 *["lbu a0, 12(sp); slli a4, a0, 8; or a6, a6, a4; sb a0, 0(a5)"] * 4,
                 bookkeeping("rv32", 0, 0, 8),
                 "addi a2, a2, 4; addi a5, a5, 4; bne a5, a7, 0b"),
}
_COMPARE_4["dsp"] = _COMPARE_4["thumb2"]
_COMPARE_1 = {
    "thumb2": "ldrsb r3, [r2], #1; ldrsb r0, [r5]; cmp r3, r0; it gt; movgt r0, r3;"
              "strb r0, [r5], #1; cmp r5, r7; bne 0b",
    "thumb1": "movs r3, #0; ldrsb r3, [r2, r3]; movs r0, #0; ldrsb r0, [r5, r0]; cmp r3, r0;"
              "ble 1f; movs r0, r3; strb r0, [r5]; adds r2, #1; adds r5, #1; cmp r5, r7; bne 0b",
    "rv32": "lb a3, 0(a2); lb a0, 0(a5); bge a0, a3, 1f; mv a0, a3; sb a0, 0(a5); addi a2, a2, 1;"
            "addi a5, a5, 1; bne a5, a7, 0b",
}
_CLAMP_4 = {
    "thumb2": "ldr r3, [r4]; sxtb r12, r3; cmp r12, r9; sbfx r7, r3, #8, #8; it lt; movlt r12, r9;"
              "sxtb r12, r12; cmp r7, r9; sbfx r0, r3, #16, #8; it lt; movlt r7, r9; cmp r12, r5;"
              "sxtb r7, r7; it ge; movge r12, r5; cmp r0, r9; asr r3, r3, #24; it lt; movlt r0, r9;"
              "cmp r7, r5; it ge; movge r7, r5; cmp r3, r9; sxtb r0, r0; it lt; movlt r3, r9;"
              "movs r6, #0; sxtb r3, r3; cmp r0, r5; bfi r6, r12, #0, #8; it ge; movge r0, r5;"
              "bfi r6, r7, #8, #8; cmp r3, r5; it ge; movge r3, r5; bfi r6, r0, #16, #8;"
              "bfi r6, r3, #24, #8; str r6, [r4], #4; cmp r4, r2; bne 0b",
    "thumb1": join(
        "mov r1, r4", COPY_4_TO_STACK,
        *["ldr r3, [sp, #4]; sxtb r3, r3; cmp r3, r6; bge 1f; movs r3, r6; cmp r3, r5; ble 2f;"
          "movs r3, r5; str r3, [sp, #4]"] * 4, "mov r0, r4", COPY_4_FROM_STACK,
        "adds r4, #4; cmp r4, r2; bne 0b"),
    "rv32": join(*["lbu a3, 0(a4); sb a3, 12(sp)"] * 4, "lw a3, 12(sp)",
                 *["slli a0, a3, 24; srai a0, a0, 24; bge a0, s1, 1f; mv a0, s1; bge s2, a0, 2f;"
                   "mv a0, s2; sb a0, 12(sp)"] * 4, *["lbu a0, 12(sp); sb a0, 0(a4)"] * 4,
                 "addi a4, a4, 4; bne a4, a2, 0b"),
}
_CLAMP_4["dsp"] = _CLAMP_4["thumb2"]
_CLAMP_1 = {
    "thumb2": "ldrsb r3, [r4]; cmp r3, r9; it lt; movlt r3, r9; cmp r3, r5; it ge; movge r3, r5;"
              "strb r3, [r4], #1; cmp r4, r2; bne 0b",
    "thumb1": "movs r3, #0; ldrsb r3, [r4, r3]; cmp r3, r6; bge 1f; movs r3, r6; cmp r3, r5;"
              "ble 2f; movs r3, r5; strb r3, [r4]; adds r4, #1; cmp r4, r2; bne 0b",
    "rv32": "lb a3, 0(a4); bge a3, s1, 1f; mv a3, s1; bge s2, a3, 2f; mv a3, s2; sb a3, 0(a4);"
            "addi a4, a4, 1; bne a4, a2, 0b",
}


def lower_average_pool(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower average pooling.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        An `average_pool_2d`.
    site : Site
        Operands: input, output, scratch on cores with DSP.
    """
    if site.isa == MVE:
        from twin.runtimes.cmsis_nn.pool_mve import lower_average_pool as lower_mve
        return lower_mve(graph, layer, site)
    shape = read_geometry(graph, layer)
    dialect = choose_dialect(site.isa)
    make = _buffered_average if dialect == "dsp" else _plain_average
    blocks, drafts = make(dialect, shape)
    return (build_kernel("arm_avgpool_s8", "pool", site, (entry(dialect, 70, 1), *blocks),
                         resolve(*drafts)),)


def scratch_bytes_average_pool(graph: Graph, layer: Layer, isa: str) -> int:
    """Working memory: a 32-bit sum per channel on cores with DSP and without MVE."""
    if isa == MVE:
        from twin.runtimes.cmsis_nn.pool_mve import scratch_bytes_average_pool as scratch_mve
        return scratch_mve(graph, layer, isa)
    if choose_dialect(isa) != "dsp":
        return 0
    return 4 * read_geometry(graph, layer).input_channels


def lower_max_pool(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower maximum pooling: the first position copied, the others compared, then one clamp.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `max_pool_2d`.
    site : Site
        Operands: input, output.
    """
    if site.isa == MVE:
        from twin.runtimes.cmsis_nn.pool_mve import lower_max_pool as lower_mve
        return lower_mve(graph, layer, site)
    shape = read_geometry(graph, layer)
    dialect = choose_dialect(site.isa)
    return (build_kernel("arm_max_pool_s8", "pool", site, _max_blocks(dialect, shape),
                         resolve(*_max_drafts(dialect, shape))),)


def _places(shape: Geometry) -> tuple[int, int]:
    """Output positions and, over them, window positions inside the input; all batches."""
    return shape.batches * shape.pixels, shape.batches * shape.taps_inside


def _window_bounds(shape: Geometry) -> tuple[Bound, ...]:
    bounds = []
    if sum(shape.row_taps) < shape.output_rows * shape.kernel_rows:
        bounds.append(bound(-shape.window.padding[0], shape.input_rows,
                            line=shape.window.stride[0], ky=1))
    if sum(shape.column_taps) < shape.output_columns * shape.kernel_columns:
        bounds.append(bound(-shape.window.padding[2], shape.input_columns,
                            pixel=shape.window.stride[1], kx=1))
    return tuple(bounds)


def _window_load(shape: Geometry, width: int, **inner: int) -> Any:
    """Load from the window position (ky, kx) of the pixel at (line, pixel), when inside."""
    channels, window = shape.input_channels, shape.window
    line_bytes = shape.input_columns * channels
    return load("input", width, -window.padding[0] * line_bytes - window.padding[2] * channels,
                batch=shape.input_rows * line_bytes, line=window.stride[0] * line_bytes,
                pixel=window.stride[1] * channels, ky=line_bytes, kx=channels,
                **inner)._replace(bounds=_window_bounds(shape))


def _over_pixels(shape: Geometry, *body: Any) -> tuple[Any, ...]:
    return (repeat("batch", shape.batches, repeat("line", shape.output_rows, repeat(
        "pixel", shape.output_columns, *body))),)


def _output_steps(shape: Geometry) -> dict[str, int]:
    channels = shape.output_channels
    return {"pixel": channels, "line": shape.output_columns * channels,
            "batch": shape.pixels * channels}


def _buffered_average(dialect: str, shape: Geometry) -> tuple[tuple[Block, ...], tuple[Any, ...]]:
    pixels, taps = _places(shape)
    channels = shape.input_channels
    later = taps - pixels
    end = BRANCH[dialect]
    blocks = (
        block("pixel", join(bookkeeping(dialect, 14, 8, 50), end), pixels, 1),
        block("window row", join(bookkeeping(dialect, 3, 1, 4), end),
              shape.batches * sum(shape.row_taps) * shape.output_columns, pixels),
        block("first position", _FIRST, pixels * channels, pixels),
        block("position", join(bookkeeping(dialect, 1, 1, 10), end), later, pixels),
        block("accumulate", _ACCUMULATE, later * channels, later),
        block("divide", _DIVIDE, pixels * channels, pixels))
    buffer = load("scratch", 4, c=4)
    source = _window_load(shape, 1, c=1)
    drafts = _over_pixels(
        shape,
        repeat("c", channels, store("scratch", 4, c=4)),
        repeat("ky", shape.kernel_rows, repeat("kx", shape.kernel_columns, repeat(
            "c", channels, source,
            *[one._replace(bounds=(*source.bounds, bound(-1, 1 << 30, ky=shape.kernel_columns,
                                                         kx=1)))
              for one in (buffer, store("scratch", 4, c=4))]))),
        repeat("c", channels, buffer, store("output", 1, c=1, **_output_steps(shape))))
    return blocks, drafts


def _plain_average(dialect: str, shape: Geometry) -> tuple[tuple[Block, ...], tuple[Any, ...]]:
    pixels, taps = _places(shape)
    channels = shape.input_channels
    outputs = pixels * channels
    lines = outputs * shape.kernel_rows
    end = BRANCH[dialect]
    blocks = (
        block("pixel", join(bookkeeping(dialect, 10, 6, 12), end), pixels, 1),
        block("channel", join(bookkeeping(dialect, 4, 2, 7, 1), _AVERAGE[dialect], end), outputs,
              pixels),
        block("window row", join(bookkeeping(dialect, 0, 0, 6), end), lines, outputs),
        block("position", _SUM_TAP[dialect], taps * channels, min(lines, taps * channels)),
        block("position outside", _SKIP_TAP[dialect],
              (shape.batches * shape.taps - taps) * channels))
    drafts = _over_pixels(shape, repeat(
        "c", channels,
        repeat("ky", shape.kernel_rows, repeat("kx", shape.kernel_columns,
                                               _window_load(shape, 1, c=1))),
        store("output", 1, c=1, **_output_steps(shape))))
    return blocks, drafts


def _max_blocks(dialect: str, shape: Geometry) -> tuple[Block, ...]:
    pixels, taps = _places(shape)
    channels = shape.input_channels
    later = taps - pixels
    text = "thumb2" if dialect == "dsp" else dialect
    quads, rest = divmod(channels, 4)
    all_quads, all_rest = divmod(pixels * channels, 4)
    end = BRANCH[dialect]
    return (
        entry(dialect, 60, 1),
        block("pixel", join(bookkeeping(dialect, 14, 6, 53, 3), end), pixels, 1),
        block("window row", join(bookkeeping(dialect, 4, 1, 4), end),
              shape.batches * sum(shape.row_taps) * shape.output_columns, pixels),
        *copy_blocks(dialect, channels, pixels),
        block("position", join(bookkeeping(dialect, 3, 1, 6), end), later, pixels),
        block("compare four", _COMPARE_4[dialect], later * quads, later),
        block("compare", _COMPARE_1[text], later * rest, later),
        block("clamp four", _CLAMP_4[dialect], all_quads, min(1, all_quads)),
        block("clamp", _CLAMP_1[text], all_rest, min(1, all_rest)))


def _max_drafts(dialect: str, shape: Geometry) -> tuple[Any, ...]:
    """Accesses in program order; at an edge every position inside counts as a comparison."""
    channels = shape.input_channels
    steps = _output_steps(shape)
    word = (4, 1) if dialect in ("dsp", "thumb2") else (1, 4)
    inside = (*_window_bounds(shape), bound(-1, 1 << 30, ky=shape.kernel_columns, kx=1))
    compares = [
        repeat("c", count, *[
            one._replace(offset_bytes=one.offset_bytes + done + width * k, bounds=inside)
            for one in (load("output", width, c=size, **steps),
                        _window_load(shape, width, c=size),
                        store("output", width, c=size, **steps)) for k in range(times)])
        for count, done, size, (width, times) in _parts(channels, word)]
    total = shape.batches * shape.pixels * channels
    clamps = [
        repeat("element", count, *[
            one._replace(offset_bytes=done + width * k)
            for one in (load("output", width, element=size), store("output", width, element=size))
            for k in range(times)])
        for count, done, size, (width, times) in _parts(total, word)]
    return (*_over_pixels(
        shape, *copy_moves(dialect, channels, _window_load(shape, 1), store("output", 1, **steps)),
        repeat("ky", shape.kernel_rows, repeat("kx", shape.kernel_columns, *compares))), *clamps)


def _parts(count: int, word: tuple[int, int]) -> list[tuple[int, int, int, tuple[int, int]]]:
    """Four at once, then single: how many, first byte, bytes each, (width, accesses)."""
    quads, rest = divmod(count, 4)
    return [(quads, 0, 4, word), (rest, 4 * quads, 1, (1, 1))]
