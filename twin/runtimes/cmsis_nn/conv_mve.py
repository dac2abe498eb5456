"""Convolution on Helium: windows gathered into four int8 columns, 1x1 multiplied directly.

References
----------
ARM-software/CMSIS-NN 6.0, Source/ConvolutionFunctions: arm_convolve_wrapper_s8.c (choice of
function), arm_convolve_s8.c, arm_convolve_1x1_s8_fast.c, arm_convolve_1x1_s8.c,
arm_convolve_1_x_n_s8.c, arm_convolve_get_buffer_sizes_s8.c.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from hwmodels.kernel import Block, Kernel, Nest
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.dialect import block, build_kernel
from twin.runtimes.cmsis_nn.gather_mve import (
    CONV_GATHER,
    Columns,
    gather_blocks,
    gather_drafts,
)
from twin.runtimes.cmsis_nn.geometry import Geometry, read_geometry
from twin.runtimes.cmsis_nn.matmul_mve import (
    ProductMve,
    product_blocks,
    quad_drafts,
    single_drafts,
)
from twin.runtimes.cmsis_nn.nests import repeat, resolve
from twin.runtimes.cmsis_nn.vector_mve import int8_only
from twin.runtimes.lowering import Site

_ENTRY_GENERAL = (
    "stmdb sp!, {r4, r5, r6, r7, r8, r9, r10, r11, lr}; ldr r5, [r0]; sub sp, #196;"
    "ldr r4, [sp, #236]; str r5, [sp, #120]; cmp r5, #0; ldrd r7, lr, [r3, #4]; mov r0, r1;"
    "ldrh r6, [r4, #8]; ldrh r1, [r4, #4]; ldrh r5, [r3, #12]; ldr r9, [r3]; str r1, [sp, #64];"
    "ldr r3, [sp, #252]; mul r1, r1, r6; ldrd r4, r12, [r3, #4]; ldr r3, [r3, #12];"
    "mul r1, r5, r1; str r3, [sp, #112]; ldr r3, [r0, #16]; str r1, [sp, #140];"
    "str r3, [sp, #164]; ldr r3, [r0, #20]; cmp r9, #0; str r3, [sp, #168];"
    "ldrd r1, r3, [r0, #8]; str r3, [sp, #172]; ldrd r8, r3, [r0, #24]; str r3, [sp, #72];"
    "ldr r3, [r0, #4]; str r3, [sp, #128]; ldr r3, [r0, #32]; str r3, [sp, #132];"
    "ldr r3, [r0, #36]; str r3, [sp, #136]; ldr r3, [r0]; str r3, [sp, #124]; ldr r3, [r2];"
    "str r3, [sp, #144]; ldr r3, [r2, #4]; str r3, [sp, #148]; uxth r2, r4; uxth r4, r1;"
    "mul r3, r7, r3; str r3, [sp, #180]; mul r3, r5, r3; str r3, [sp, #76]; mul r2, r0, r2;"
    "str r3, [sp, #176]; mul r3, r4, r5; str r3, [sp, #104]; mul r3, r5, r6; str r3, [sp, #80];"
    "mul r4, r5, r8; rsb r11, r3, #0; str r9, [sp, #184]; movs r0, #0; add sp, #196;"
    "ldmia sp!, {r4, r5, r6, r7, r8, r9, r10, r11, pc}")
_ENTRY_DIRECT = (
    "stmdb sp!, {r4, r5, r6, r7, r8, r9, lr}; ldr r5, [r1, #16]; ldr r6, [r1, #20]; cmp r5, #0;"
    "sub sp, #44; ldr r4, [r1, #8]; ldr r7, [r1, #12]; cmp r4, #1; ldrd r4, r7, [r3];"
    "mul r4, r7, r4; ldrd r8, r9, [r3, #8]; mul r4, r8, r4; ldr r5, [sp, #92];"
    "ldr r5, [r5, #12]; str r9, [sp, #40]; str r5, [sp, #36]; ldr r6, [r1, #36];"
    "str r6, [sp, #32]; ldr r6, [r1, #32]; str r6, [sp, #28]; ldrd r6, r7, [r1];"
    "strd r6, r7, [sp, #20]; strd r5, r9, [sp, #12]; ldr r6, [r2, #4]; str r4, [sp, #8];"
    "str r6, [sp, #4]; ldr r6, [r2]; str r6, [sp]; bl 0f; add sp, #44;"
    "ldmia sp!, {r4, r5, r6, r7, r8, r9, pc}")


@int8_only
def lower_conv(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a convolution to the Helium function the library's wrapper chooses.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `conv_2d`.
    site : Site
        Operands: input, weights, bias, parameters, output, scratch.
    """
    shape = read_geometry(graph, layer)
    if shape.is_pointwise and layer.groups == 1:
        return (_lower_pointwise(shape, site),)
    if _is_one_row(shape) and layer.groups == 1:
        return (_lower_one_row(shape, site),)
    return (lower_general(shape, layer.groups, site),)


def scratch_bytes_conv(graph: Graph, layer: Layer, isa: str) -> int:
    """Working memory of a convolution: four int8 columns, each rounded up to eight."""
    shape = read_geometry(graph, layer)
    if layer.groups == 1 and (shape.is_pointwise or _is_one_row(shape)):
        return 0
    depth = shape.kernel_rows * shape.kernel_columns * (shape.input_channels // layer.groups)
    return 4 * 8 * -(-depth // 8)


def _is_one_row(shape: Geometry) -> bool:
    """The library's condition for its 1xN function, which needs no gathering."""
    window = shape.window
    return (shape.input_rows == 1 and shape.kernel_rows == 1 and window.dilation[1] == 1
            and window.stride[1] * shape.input_channels % 4 == 0)


def lower_general(shape: Geometry, groups: int, site: Site) -> Kernel:
    """Lower the convolution that gathers four windows and multiplies them with all channels."""
    blocks, nests = _plan_general(shape, groups)
    depth = shape.input_channels // groups
    return build_kernel("arm_convolve_s8", "conv", site, blocks, nests,
                        shape.taps_inside * depth * shape.output_channels * shape.batches)


@lru_cache(maxsize=256)
def _plan_general(shape: Geometry, groups: int) -> tuple[tuple[Block, ...], tuple[Nest, ...]]:
    """Blocks and accesses; they depend on the shape alone, and networks repeat shapes."""
    channels = shape.input_channels // groups
    depth = shape.kernel_rows * shape.kernel_columns * channels
    repeats = shape.batches * groups
    quads, left = divmod(shape.pixels, 4)
    calls = quads + (left > 0)
    product = ProductMve(
        depth=depth, channels=shape.output_channels // groups, calls=calls * repeats,
        quads=quads * repeats, singles=left * repeats, has_bias=shape.has_bias)
    columns = Columns(shape=shape, copied_bytes=channels, column_step_bytes=channels,
                      input_step_bytes=channels)
    blocks = (block("call", _ENTRY_GENERAL, 1, cause="kernel_call"),
              *gather_blocks(CONV_GATHER, columns, repeats, calls * repeats),
              *product_blocks(product))
    return blocks, resolve(_general_drafts(shape, groups, columns, product))


def _general_drafts(shape: Geometry, groups: int, columns: Columns, product: ProductMve) -> Any:
    depth = product.depth
    outer = {"slice": product.channels, "batch": shape.pixels * shape.output_channels}

    def multiply(position: int, steps: dict[str, int]) -> list[Any]:
        positions = {name: step * shape.output_channels for name, step in steps.items()}
        return [quad_drafts(product, "scratch", depth, 0, position * shape.output_channels,
                            shape.output_channels, source_steps={},
                            output_steps={**positions, **outer})]

    left = shape.pixels % 4
    rest = [single_drafts(product, "scratch", slot * depth,
                          (shape.pixels - left + slot) * shape.output_channels, source_steps={},
                          output_steps=outer) for slot in range(left)]
    return repeat("batch", shape.batches, repeat(
        "slice", groups, *gather_drafts(columns, multiply),
        *[move for moves in rest for move in moves]))


def _lower_pointwise(shape: Geometry, site: Site) -> Kernel:
    """Lower a 1x1 convolution: all positions in one call, or one call per strided output row."""
    blocks, nests = _plan_pointwise(shape)
    fast = shape.window.stride == (1, 1)
    return build_kernel("arm_convolve_1x1_s8_fast" if fast else "arm_convolve_1x1_s8",
                        "pointwise", site, blocks, nests,
                        shape.pixels * shape.batches * shape.input_channels
                        * shape.output_channels)


@lru_cache(maxsize=256)
def _plan_pointwise(shape: Geometry) -> tuple[tuple[Block, ...], tuple[Nest, ...]]:
    stride_rows, stride_columns = shape.window.stride
    fast = (stride_rows, stride_columns) == (1, 1)
    calls = 1 if fast else shape.output_rows * shape.batches
    rows = shape.pixels * shape.batches if fast else shape.output_columns
    product = ProductMve(
        depth=shape.input_channels, channels=shape.output_channels, calls=calls,
        quads=rows // 4 * calls, singles=rows % 4 * calls, has_bias=shape.has_bias)
    step = shape.input_channels * stride_columns
    call_step = {} if fast else {"call": stride_rows * shape.input_columns * shape.input_channels}
    drafts = repeat("call", calls, *_call_drafts(
        product, rows, step, call_step, {} if fast else {"call": rows * shape.output_channels}))
    blocks = (block("call", _ENTRY_DIRECT, calls, cause="kernel_call"), *product_blocks(product))
    return blocks, resolve(drafts)


def _call_drafts(product: ProductMve, rows: int, step: int, input_steps: dict[str, int],
                 output_steps: dict[str, int], offset: int = 0, output_offset: int = 0
                 ) -> list[Any]:
    """Rows multiplied straight from the input, `step` bytes apart."""
    quads, left = divmod(rows, 4)
    wide = product.channels
    drafts: list[Any] = [repeat("quad", quads, quad_drafts(
        product, "input", step, offset, output_offset, wide,
        source_steps={"quad": 4 * step, **input_steps},
        output_steps={"quad": 4 * wide, **output_steps}))]
    for one in range(4 * quads, 4 * quads + left):
        drafts += single_drafts(product, "input", offset + one * step,
                                output_offset + one * wide, source_steps=input_steps,
                                output_steps=output_steps)
    return drafts


def _lower_one_row(shape: Geometry, site: Site) -> Kernel:
    """Lower a 1xN convolution: windows overlap in the input and are read where they lie.

    Padded positions at either end run alone, over the part of the window inside the input.
    """
    channels, window = shape.input_channels, shape.window
    taps = shape.column_taps
    whole = [place for place, count in enumerate(taps) if count == shape.kernel_columns]
    first, count = (whole[0], len(whole)) if whole else (len(taps), 0)
    depth = shape.kernel_columns * channels
    step = window.stride[1] * channels
    product = ProductMve(depth=depth, channels=shape.output_channels, calls=shape.batches,
                         quads=count // 4 * shape.batches, singles=count % 4 * shape.batches,
                         has_bias=shape.has_bias)
    batch_in = {"batch": shape.input_columns * channels}
    batch_out = {"batch": shape.pixels * shape.output_channels}
    blocks = [block("call", _ENTRY_DIRECT, shape.batches, cause="kernel_call"),
              *product_blocks(product)]
    padded: list[Any] = []
    for place, inside in enumerate(taps):
        if inside == shape.kernel_columns or inside == 0:
            continue
        one = ProductMve(depth=inside * channels, channels=shape.output_channels,
                         calls=shape.batches, quads=0, singles=shape.batches,
                         has_bias=shape.has_bias)
        blocks += product_blocks(one)
        start = max(0, place * window.stride[1] - window.padding[2]) * channels
        padded += single_drafts(one, "input", start, place * shape.output_channels,
                                source_steps=batch_in, output_steps=batch_out)
    offset = (first * window.stride[1] - window.padding[2]) * channels
    drafts = repeat("batch", shape.batches, *padded, *_call_drafts(
        product, count, step, batch_in, batch_out, offset, first * shape.output_channels))
    return build_kernel("arm_convolve_1_x_n_s8", "conv", site, tuple(blocks), resolve(drafts),
                        shape.taps_inside * channels * shape.output_channels * shape.batches)
