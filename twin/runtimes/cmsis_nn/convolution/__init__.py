"""Convolution: 1x1 and rows multiplied where they lie, other windows gathered into columns.

References
----------
ARM-software/CMSIS-NN 6.0, Source/ConvolutionFunctions: arm_convolve_wrapper_s8.c (choice of
function), arm_convolve_1x1_s8_fast.c, arm_convolve_1x1_s8.c, arm_convolve_1_x_n_s8.c.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from hwmodels.kernel import Blocks, Kernel, Lowered, Nests
from twin.runtimes.cmsis_nn.convolution.product import Product, product_drafts
from twin.runtimes.cmsis_nn.convolution.product_mve import (
    ProductMve,
    product_blocks_mve,
    quad_drafts,
    single_drafts,
)
from twin.runtimes.cmsis_nn.convolution.windows import (
    lower_windows,
    lower_windows_mve,
    scratch_bytes,
    scratch_bytes_mve,
)
from twin.runtimes.cmsis_nn.sequences import CODE, entry
from twin.runtimes.lowering import MOST_KEPT, Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import block, build_kernel
from twin.runtimes.lowering.geometry import Geometry
from twin.runtimes.lowering.nests import count_blocks, repeat, resolve

_CODE = CODE["convolution"]


def _lower(site: Site, tile_bytes: int = 0, filters: int = 1) -> Lowered:
    """Return the wrapper's choice in C and with DSP."""
    shape = site.geometry
    if shape.is_pointwise and site.layer.groups == 1:
        return (_lower_pointwise(shape, site, tile_bytes > 0),)
    return (lower_windows(shape, site.layer.groups, site, tile_bytes, filters),)


@lru_cache(maxsize=MOST_KEPT)
def tile_weights(lowering: Lowering, tile_bytes: int, filters: int) -> Lowering:
    """Return a convolution that widens its weights: by tiles (`lower_windows`), 1x1 by two rows.

    Any other lowering is returned as it is. Working memory stays: ignores the room of the tile.
    """
    if lowering.lower is not _lower:
        return lowering
    return replace(lowering, lower=partial(_lower, tile_bytes=tile_bytes, filters=filters))


def _scratch_bytes(site: Site) -> int:
    shape = site.geometry
    direct = shape.is_pointwise and site.layer.groups == 1
    return 0 if direct else scratch_bytes(shape, site.layer.groups)


def _lower_mve(site: Site) -> Lowered:
    """Return the wrapper's choice with Helium."""
    shape = site.geometry
    if shape.is_pointwise and site.layer.groups == 1:
        return (_build_pointwise(shape, site, *_plan_pointwise_mve(shape)),)
    if _is_one_row(shape) and site.layer.groups == 1:
        return (_lower_one_row_mve(shape, site),)
    return (lower_windows_mve(shape, site.layer.groups, site),)


def _scratch_bytes_mve(site: Site) -> int:
    shape = site.geometry
    direct = site.layer.groups == 1 and (shape.is_pointwise or _is_one_row(shape))
    return 0 if direct else scratch_bytes_mve(shape, site.layer.groups)


def _is_one_row(shape: Geometry) -> bool:
    """Apply the library's condition for its 1xN function, which needs no gathering."""
    window = shape.window
    return (shape.input_rows == 1 and shape.kernel_rows == 1 and window.dilation[1] == 1
            and window.stride[1] * shape.input_channels % 4 == 0)


def _build_pointwise(shape: Geometry, site: Site, blocks: Blocks,
                     nests: Nests) -> Kernel:
    fast = shape.window.stride == (1, 1)
    return build_kernel(
        "arm_convolve_1x1_s8_fast" if fast else "arm_convolve_1x1_s8", "pointwise", site,
        blocks, nests,
        macs=shape.outputs * shape.input_channels)


def _lower_pointwise(shape: Geometry, site: Site, widened: bool) -> Kernel:
    """1x1 without padding: one product, or one per output row where the stride is not one."""
    dialect, channels = site.dialect, shape.input_channels
    stride_rows, stride_columns = shape.window.stride
    batches, lines, pixels = shape.batches, shape.output_rows, shape.output_columns
    if stride_rows == stride_columns == 1:
        batches, lines, pixels = 1, 1, shape.positions
    calls, line_in = batches * lines, shape.input_columns * channels
    product = Product(pixels, shape.output_channels, channels, shape.has_bias, widened)
    draft = repeat("batch", batches, repeat("line", lines, *product_drafts(
        dialect, product, stride_columns * channels, calls,
        {"line": stride_rows * line_in, "batch": shape.input_rows * line_in},
        {"line": pixels * product.rows, "batch": shape.pixels * product.rows})))
    return _build_pointwise(shape, site, (entry(dialect, 70, calls), *count_blocks(draft)),
                            resolve(draft))


@lru_cache(maxsize=256)
def _plan_pointwise_mve(shape: Geometry) -> tuple[Blocks, Nests]:
    stride_rows, stride_columns = shape.window.stride
    fast = (stride_rows, stride_columns) == (1, 1)
    calls = 1 if fast else shape.output_rows * shape.batches
    rows = shape.positions if fast else shape.output_columns
    product = ProductMve(
        depth=shape.input_channels, channels=shape.output_channels, calls=calls,
        quads=rows // 4 * calls, singles=rows % 4 * calls, has_bias=shape.has_bias)
    step = shape.input_channels * stride_columns
    call_step = {} if fast else {"call": stride_rows * shape.input_columns * shape.input_channels}
    drafts = repeat("call", calls, *_row_drafts_mve(
        product, rows, step, call_step, {} if fast else {"call": rows * shape.output_channels}))
    call = block("call", _CODE.entry_mve, calls, cause="kernel_call")
    return (call, *product_blocks_mve(product)), resolve(drafts)


def _row_drafts_mve(product: ProductMve, rows: int, step: int, input_steps: dict[str, int],
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


def _lower_one_row_mve(shape: Geometry, site: Site) -> Kernel:
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
    blocks = [block("call", _CODE.entry_mve, shape.batches, cause="kernel_call"),
              *product_blocks_mve(product)]
    padded: list[Any] = []
    for place, inside in enumerate(taps):
        if inside == shape.kernel_columns or inside == 0:
            continue
        one = ProductMve(depth=inside * channels, channels=shape.output_channels,
                         calls=shape.batches, quads=0, singles=shape.batches,
                         has_bias=shape.has_bias)
        blocks += product_blocks_mve(one)
        start = max(0, place * window.stride[1] - window.padding[2]) * channels
        padded += single_drafts(one, "input", start, place * shape.output_channels,
                                source_steps=batch_in, output_steps=batch_out)
    offset = (first * window.stride[1] - window.padding[2]) * channels
    drafts = repeat("batch", shape.batches, *padded, *_row_drafts_mve(
        product, count, step, batch_in, batch_out, offset, first * shape.output_channels))
    return build_kernel("arm_convolve_1_x_n_s8", "conv", site, tuple(blocks), resolve(drafts),
                        shape.products * channels)


KERNELS: Kernels = {
    "conv_2d": {
        "c": Lowering(lower=_lower, scratch_bytes=_scratch_bytes),
        "mve": Lowering(lower=_lower_mve, scratch_bytes=_scratch_bytes_mve),
    },
}
