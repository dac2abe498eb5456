"""Pooling on Helium: sixteen channels at a time.

The mix of average pooling is gcc's at -O3: at -O2 the division loop stays rolled and spills, which
the Apollo510 measurement does not show.

References
----------
ARM-software/CMSIS-NN 6.0, Source/PoolingFunctions: arm_avgpool_s8.c, arm_max_pool_s8.c, the MVE
paths.
"""

from __future__ import annotations

from typing import Any

from hwmodels.kernel import Block, Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.dialect import block, build_kernel, join
from twin.runtimes.cmsis_nn.geometry import Geometry, read_geometry
from twin.runtimes.cmsis_nn.nests import Bound, bound, repeat, resolve
from twin.runtimes.cmsis_nn.vector_mve import (
    floor_width,
    guarded,
    int8_only,
    row_load,
    row_moves,
    row_store,
    vectors,
)
from twin.runtimes.lowering import Site

_SAVE = "stmdb sp!, {r4, r5, r6, r7, r8, r9, r10, r11, lr}; vpush {d8-d15}; sub sp, #188"
_RESTORE = ("movs r0, #0; add sp, #188; vpop {d8-d15};"
            "ldmia sp!, {r4, r5, r6, r7, r8, r9, r10, r11, pc}")
_ENTRY = join(_SAVE, (
    "mov r5, r2; ldrd r4, r6, [sp, #288]; ldr r7, [r4, #4]; ldr r4, [r4, #8];"
    "ldrd r2, r6, [r6, #4]; str r4, [sp, #136]; mov r4, r3; ldrd lr, r11, [r5, #8];"
    "ldr r3, [r1, #4]; cmp r2, #0; str r3, [sp, #124]; ldr r3, [r5, #4];"
    "ldr r0, [sp, #296]; str r3, [sp, #120]; ldr r3, [r1]; str r6, [sp, #116]; str r3, [sp, #128];"
    "str r7, [sp, #132]; ldrd r5, r3, [r1, #8]; str r5, [sp, #140]; ldrd r5, r1, [r1, #16];"
    "vdup.32 q0, r5; add r5, sp, #72; vstrw.32 q0, [r5]; vdup.32 q0, r1;"
    "add r1, sp, #88; vstrw.32 q0, [r1]; add r1, r0, r11;"
    "str r1, [sp, #108]; negs r1, r3; mul r0, r11, r6; mul r6, lr, r11; str r0, [sp, #148];"
    "str r12, [sp, #156]"), _RESTORE)
_ROW = (
    "ldr r0, [sp, #116]; cmp r0, #0; ldr r0, [sp, #132]; ldr r7, [sp, #120]; add r0, r1;"
    "cmp r7, r0; it ge; movge r7, r0; mov lr, #0; ldr r0, [sp, #108]; mov r8, r11;"
    "str r0, [sp, #64]; bic r0, r1, r1, asr #31; str r0, [sp, #68]; mul r0, r4, r0;"
    "str r0, [sp, #144]; ldr r0, [sp, #140]; mov r11, r9; rsb r12, r0, #0; strd r2, r3, [sp, #160];"
    "add r0, r6, r9; mov r3, lr; mov r9, r7; str r0, [sp, #152]; str r12, [sp, #112];"
    "mov r9, r11; mov r11, r8; ldr r2, [sp, #160]; ldr r3, [sp, #164]; ldr r0, [sp, #108];"
    "ldr r5, [sp, #148]; adds r3, #1; add r0, r5; str r0, [sp, #108]; ldr r0, [sp, #124];"
    "cmp r2, r3; add r1, r0; bne 0b")
_POSITION = (
    "ldr r0, [sp, #112]; ldr r2, [sp, #136]; add r2, r0; cmp r2, r4; it ge; movge r2, r4;"
    "cmp r11, #0; mov r12, r2; bic r2, r0, r0, asr #31; ldr r0, [sp, #156]; ldr r5, [sp, #152];"
    "str r0, [sp, #20]; ldr r0, [sp, #144]; strd r3, r1, [sp, #172]; adds r0, r2, r0;"
    "mla r0, r11, r0, r5; mov r5, sp; subs r0, #16; str r0, [sp, #104]; sub r0, r12, r2;"
    "mov lr, r11; vstrh.16 q3, [r5]; mov r1, r0; str r4, [sp, #168]; str r2, [sp, #28];"
    "str r6, [sp, #180]; ldrd r4, r3, [sp, #168]; ldrd r1, r6, [sp, #176]; ldr r2, [sp, #112];"
    "ldr r0, [sp, #128]; adds r3, #1; add r2, r0; str r2, [sp, #112]; ldr r2, [sp, #64];"
    "add r2, r11; str r2, [sp, #64]; ldr r2, [sp, #116]; cmp r2, r3; bne 0b")
_CHANNELS = (
    "vctp.8 lr; ldr r3, [sp, #64]; vdup.32 q0, r10; sub r3, r3, lr; str r3, [sp, #24];"
    "vmrs r3, p0; uxth r7, r3; ldr r3, [sp, #68]; vmov q6, q0; cmp r3, r9; vmov q5, q0;"
    "vmov q4, q0; sub lr, lr, #16; mov r2, sp; mov r5, r3; movs r3, #0; ldr r0, [sp, #104];"
    "vldrh.u16 q3, [r2]; ldr r2, [sp, #28]; sub r6, r0, lr; sxth r4, r7; str lr, [sp, #32]")
_WINDOW_ROW = ("cmp r2, r12; bge 1f; sub lr, r12, r2; dls lr, lr; mov r0, r6; add r3, r1;"
               "adds r5, #1; cmp r9, r5; add r6, r8; bne 0b")
_SUM = ("vmsr p0, r4; vpst; vldrbt.u8 q1, [r0]; vmovlb.s8 q2, q1; vmovlb.s16 q7, q2;"
        "vmovlt.s8 q3, q1; vadd.i32 q0, q0, q7; vmovlt.s16 q7, q2; vadd.i32 q6, q6, q7;"
        "vmovlb.s16 q7, q3; vadd.i32 q5, q5, q7; vmovlt.s16 q7, q3; add r0, r11;"
        "vadd.i32 q4, q4, q7; le lr, 0b")
_SIGNS = (
    "mov r0, sp; ldr lr, [sp, #32]; vstrh.16 q3, [r0]; str r2, [sp, #28]; cmp r3, #0;"
    "vcmp.s32 gt, q0, r10; vmrs r5, p0; vcmp.s32 gt, q6, r10; vmrs r4, p0; vcmp.s32 gt, q5, r10;"
    "sxth r2, r5; str r2, [sp, #32]; sxth r2, r4; strh r7, [sp, #62]; str r2, [sp, #36];"
    "vmrs r7, p0; mvns r2, r4; vcmp.s32 gt, q4, r10; str r2, [sp, #40]; sxth r2, r7; vmrs r6, p0;"
    "str r2, [sp, #44]; mvns r2, r7; str r2, [sp, #48]; sxth r2, r6; str r2, [sp, #52];"
    "mvns r2, r6; str r2, [sp, #56]; mvns r5, r5; asrs r0, r3, #1")
_DIVIDE = (  # four sums: round by half the count with the sign, divide lane by lane, clamp
    "ldrh r2, [sp, #36]; vmsr p0, r2; vmov q0, q6; ldrh r2, [sp, #40]; vpst;"
    "vaddt.i32 q0, q6, r0; vmsr p0, r2; vpst; vsubt.i32 q0, q0, r0; vmov r7, s0;"
    "vmov.32 r6, d0[1]; sdiv r7, r7, r3; vmov.32 r5, d1[0]; vmov.32 r4, d1[1]; vmov q0, q6;"
    "sdiv r6, r6, r3; vmov.32 d0[0], r7; sdiv r5, r5, r3; vmov.32 d0[1], r6; sdiv r4, r4, r3;"
    "vmov.32 d1[0], r5; vmov.32 d1[1], r4; vmax.s32 q0, q0, q7; vmin.s32 q0, q0, q3")
_NARROW = (
    "add r2, sp, #72; vldrw.u32 q7, [r2]; add r2, sp, #88; vldrw.u32 q3, [r2]; vmovnb.i32 q2, q0;"
    "vmovnt.i32 q2, q0; vmov q6, q7; mov r2, sp; vmov q7, q3; vldrh.u16 q3, [r2];"
    "vmovnb.i32 q3, q0; vmovnt.i32 q3, q0; vmovnb.i16 q1, q2; mov r3, sp; ldrh r2, [sp, #62];"
    "vmovnt.i16 q1, q3; vmsr p0, r2; vstrh.16 q3, [r3]; ldr r3, [sp, #24]; vpst;"
    "vstrbt.8 q1, [r3]; ldr r3, [sp, #20]; subs r3, #1; str r3, [sp, #20]; bne 0b")
_MAX_ENTRY = (
    "stmdb sp!, {r4, r5, r6, r7, r8, r9, r10, r11, lr}; vpush {d8-d9}; sub sp, #116;"
    "str r3, [sp, #52]; ldr r3, [r2, #4]; ldrd r0, r4, [sp, #168]; str r3, [sp, #68];"
    "ldr r3, [r1, #4]; ldr r7, [r4, #4]; str r3, [sp, #72]; ldr r4, [r4, #8]; ldr r3, [r1];"
    "str r4, [sp, #16]; str r3, [sp, #40]; ldr r4, [r0, #4]; ldr r3, [r1, #8]; ldr r0, [r0, #8];"
    "cmp r7, #0; ldr r6, [r1, #12]; str r4, [sp, #76]; str r0, [sp, #44]; ldr r12, [sp, #176];"
    "str r7, [sp, #56]; str r3, [sp, #60]; ldrd r9, r0, [r2, #8]; ldrd r4, r1, [r1, #16];"
    "mov r8, #0; add r2, r0, #30; adds r3, r0, #15; negs r5, r6; mul r2, r0, r9; mov r10, r9;"
    "str r12, [sp, #176]; mov r9, r8; mov r7, r6; str r2, [sp, #12]; ldr r2, [sp, #16];"
    "strd r4, r1, [sp, #84]; mul r2, r0, r2; str r2, [sp, #80]; ldr r2, [sp, #60];"
    "mov r11, r3, asr #4; negs r2, r2; str r2, [sp, #64]; ldrd r4, r1, [sp, #84];"
    "ldr r12, [sp, #176]; ldr r3, [sp, #56]; vdup.8 q1, r1; mul r3, r2, r3; mul r3, r0, r3;"
    "adds r2, r3, #15; vdup.8 q2, r4; mov r2, r2, asr #4; dls lr, r2; add r12, r3; movs r0, #0;"
    "add sp, #116; vpop {d8-d9}; ldmia sp!, {r4, r5, r6, r7, r8, r9, r10, r11, pc}")
_MAX_ROW = (
    "ldr r3, [sp, #16]; cmp r3, #0; cmp r12, #0; ite le; movle r5, r7; movgt r5, #0;"
    "ldr r3, [sp, #68]; ldr r2, [sp, #76]; add r3, r7; cmp r3, r2; it ge; movge r3, r2;"
    "movs r4, #0; str r5, [sp, #36]; add r5, r12; mul r5, r10, r5; ldr r6, [sp, #60];"
    "strd r10, r12, [sp, #92]; strd r9, r8, [sp, #100]; ldr r2, [sp, #64]; mov r1, r6;"
    "add lr, r10, r6; str r5, [sp, #48]; add r6, r8, r0; str r3, [sp, #8]; str r7, [sp, #108];"
    "ldrd r9, r8, [sp, #100]; ldrd r10, r12, [sp, #92]; ldr r3, [sp, #80]; ldr r7, [sp, #108];"
    "add r8, r3; ldr r3, [sp, #72]; add r9, r9, #1; add r12, r3; subs r7, r7, r3;"
    "ldr r3, [sp, #56]; cmp r3, r9; bne 0b")
_MAX_POSITION = (
    "ldr r3, [sp, #44]; cmp r2, #0; ite le; movle r8, r1; movgt r8, #0; cmp r3, lr; it ge;"
    "movge r3, lr; ldr r5, [sp, #8]; mov r12, r3; ldr r3, [sp, #36]; sub r10, r6, r0; cmp r5, r3;"
    "ldr r5, [sp, #48]; mov r9, r3; adds r7, r2, r5; ldr r5, [sp, #52]; add r7, r8;"
    "mla r7, r0, r7, r5; movs r5, #0; strd r2, r4, [sp, #20]; strd lr, r1, [sp, #28]; mov r2, r7;"
    "mov r1, r10; mov r5, r8; adds r4, r0, r7; adds r5, #1; cmp r12, r5; ldrd r2, r4, [sp, #20];"
    "ldrd lr, r1, [sp, #28]; ldr r3, [sp, #40]; adds r4, #1; add r2, r3; subs r1, r1, r3;"
    "sub lr, lr, r3; ldr r3, [sp, #16]; add r6, r0; cmp r3, r4; wlstp.8 lr, r0, 1f; bne 0b")
_MAX_WINDOW_ROW = ("cmp r8, r12; cmp r5, #0; mov r5, r8; mov r4, r7; movs r5, #1;"
                   "ldr r3, [sp, #12]; add r9, r9, #1; add r7, r3; ldr r3, [sp, #8];"
                   "cmp r3, r9; bne 0b")
_MAX_COPY = "vldrb.u8 q0, [r2], #16; vstrb.8 q0, [r1], #16; letp lr, 0b"
_MAX_TAP = ("cmp r0, #0; add r4, r0; cmp r11, #1; mov lr, r11; it lt; movlt lr, #1; mov r2, r0;"
            "dls lr, lr; str r0, [sp, #4]; adds r5, #1; cmp r12, r5; ldr r0, [sp, #4]; bne 0b")
_MAX_COMPARE = ("vctp.8 r2; vmrs r3, p0; sxth r3, r3; vmsr p0, r3; subs r1, r6, r2;"
                "subs r0, r4, r2; vpst; vldrbt.u8 q1, [r0]; vpst; vldrbt.u8 q2, [r1]; vmov q3, q4;"
                "vpst; vmaxt.s8 q3, q2, q1; subs r2, #16; vpst; vstrbt.8 q3, [r1]; le lr, 0b")
_MAX_CLAMP = ("vctp.8 r3; vmrs r2, p0; sxth r2, r2; vmsr p0, r2; sub r1, r12, r3; vpst;"
              "vldrbt.u8 q0, [r1]; vmov q4, q3; vpst; vmaxt.s8 q4, q0, q2; vmov q0, q3; vpst;"
              "vmint.s8 q0, q4, q1; subs r3, #16; vpst; vstrbt.8 q0, [r1]; le lr, 0b")


@int8_only
def lower_average_pool(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower average pooling.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        An `average_pool_2d`.
    site : Site
        Operands: input, output.
    """
    shape = read_geometry(graph, layer)
    per_channels = vectors(shape.input_channels) * shape.batches
    places = shape.pixels * per_channels
    rows = shape.batches * shape.output_rows
    window_rows = sum(shape.row_taps) * shape.output_columns * per_channels
    blocks = (
        block("call", _ENTRY, shape.batches, cause="kernel_call"),
        block("output row", _ROW, rows, shape.batches),
        block("output position", _POSITION, shape.batches * shape.pixels, rows),
        block("16 channels", _CHANNELS, places),
        block("window row", _WINDOW_ROW, window_rows, places),
        block("sum 16", _SUM, shape.taps_inside * per_channels, window_rows),
        block("divide 16", join(_SIGNS, *[_DIVIDE] * 4, _NARROW), places,
              shape.batches * shape.pixels),
    )
    return (build_kernel("arm_avgpool_s8", "pool", site, blocks, resolve(_average_drafts(shape))),)


def scratch_bytes_average_pool(graph: Graph, layer: Layer, isa: str) -> int:
    """Working memory: none, the sums stay in vector registers."""
    return 0


@int8_only
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
    shape = read_geometry(graph, layer)
    return (build_kernel("arm_max_pool_s8", "pool", site, _max_blocks(shape),
                         resolve(*_max_drafts(shape))),)


def scratch_bytes_max_pool(graph: Graph, layer: Layer, isa: str) -> int:
    """Working memory: none, maxima are kept in the output."""
    return 0


def _max_blocks(shape: Geometry) -> tuple[Block, ...]:
    places, rows = shape.batches * shape.pixels, shape.batches * shape.output_rows
    window_rows = sum(shape.row_taps) * shape.output_columns * shape.batches
    compared = shape.batches * shape.taps_inside - places
    per_place = vectors(shape.input_channels)
    clamps = vectors(shape.pixels * shape.input_channels) * shape.batches
    return (
        block("call", _MAX_ENTRY, shape.batches, cause="kernel_call"),
        block("output row", _MAX_ROW, rows, shape.batches),
        block("output position", _MAX_POSITION, places, rows),
        block("copy 16", _MAX_COPY, places * per_place, places, "data_copy"),
        block("window row", _MAX_WINDOW_ROW, window_rows, places),
        block("window position", _MAX_TAP, compared, min(window_rows, compared)),
        block("compare 16", _MAX_COMPARE, compared * per_place, compared),
        block("clamp 16", _MAX_CLAMP, clamps, shape.batches),
    )


def _window(shape: Geometry) -> tuple[Any, tuple[Bound, ...], dict[str, int]]:
    """Return the load of a window position, its bounds and the steps of the output."""
    window, channels = shape.window, shape.input_channels
    line = shape.input_columns * channels
    source = row_load(
        "input", -window.padding[0] * line - window.padding[2] * channels,
        batch=shape.input_rows * line, row=window.stride[0] * line,
        column=window.stride[1] * channels, ky=line, kx=channels)
    bounds = (bound(-window.padding[0], shape.input_rows, row=window.stride[0], ky=1),
              bound(-window.padding[2], shape.input_columns, column=window.stride[1], kx=1))
    output = {"batch": shape.pixels * channels, "row": shape.output_columns * channels,
              "column": channels}
    return source, bounds, output


def _average_drafts(shape: Geometry) -> Any:
    source, bounds, output = _window(shape)
    full, tail = divmod(shape.input_channels, 16)

    def group(width: int, offset: int) -> list[Any]:
        move = source._replace(width_bytes=width, offset_bytes=source.offset_bytes + offset,
                               steps_bytes={**source.steps_bytes, "vector": 16})
        return [repeat("ky", shape.kernel_rows,
                       repeat("kx", shape.kernel_columns, guarded(move, *bounds))),
                row_store("output", offset, vector=16, **output)._replace(width_bytes=width)]

    body = [repeat("vector", full, *group(16, 0))]
    if tail:
        body += group(floor_width(tail), 16 * full)
    return repeat("batch", shape.batches, repeat(
        "row", shape.output_rows, repeat("column", shape.output_columns, *body)))


def _max_drafts(shape: Geometry) -> tuple[Any, ...]:
    """Every window position inside the input read, the output read back and written.

    The first position of a window only writes; as accesses it reads the output too.
    """
    source, bounds, output = _window(shape)
    result = [guarded(move, *bounds) for move in (
        source, row_load("output", 0, **output), row_store("output", 0, **output))]
    size = shape.pixels * shape.input_channels
    compare = repeat("row", shape.output_rows, repeat("column", shape.output_columns, repeat(
        "ky", shape.kernel_rows, repeat("kx", shape.kernel_columns,
                                        *row_moves(shape.input_channels, *result)))))
    clamp = row_moves(size, row_load("output", 0, batch=size), row_store("output", 0, batch=size))
    return (repeat("batch", shape.batches, compare, *clamp),)
