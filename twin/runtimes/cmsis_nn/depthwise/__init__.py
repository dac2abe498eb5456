"""Depthwise convolution: 3x3 on four channels at once, gathered columns, or the generic loops.

References
----------
ARM-software/CMSIS-NN 6.0, Source/ConvolutionFunctions/arm_depthwise_conv_wrapper_s8.c.
"""

from __future__ import annotations

from dataclasses import replace

from hwmodels.kernel import Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.convolution.windows import lower_windows_mve, scratch_bytes_mve
from twin.runtimes.cmsis_nn.depthwise.window_3x3 import lower_3x3
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import block
from twin.runtimes.lowering.geometry import Geometry, read_geometry
from twin.runtimes.lowering.nests import load, repeat, resolve, store

_TO_CONV_ABOVE = 8
"""Output channels above which Helium runs a one-channel input as an ordinary convolution."""


def _is_simple(shape: Geometry) -> bool:
    """Apply the wrapper's condition for a fast function: multiplier one, batch one, no dilation."""
    return (shape.output_channels == shape.input_channels and shape.batches == 1
            and shape.window.dilation == (1, 1))


def _is_3x3(shape: Geometry) -> bool:
    window = shape.window
    return (_is_simple(shape) and window.kernel == (3, 3)
            and window.padding[0] <= 1 and window.padding[2] <= 1)


def _lower_c(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    shape = read_geometry(graph, layer)
    if _is_3x3(shape):
        return (lower_3x3(shape, site),)
    from twin.runtimes.cmsis_nn.depthwise.generic import lower_generic

    return (lower_generic(shape, site),)


def _lower_dsp(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    shape = read_geometry(graph, layer)
    if _is_simple(shape) and not _is_3x3(shape):
        from twin.runtimes.cmsis_nn.depthwise.column import lower_column

        return (lower_column(shape, site),)
    return _lower_c(graph, layer, site)


def _scratch_bytes_dsp(graph: Graph, layer: Layer, isa: str) -> int:
    shape = read_geometry(graph, layer)
    if not _is_simple(shape) or _is_3x3(shape):
        return 0
    from twin.runtimes.cmsis_nn.depthwise.column import column_scratch_bytes

    return column_scratch_bytes(shape)


def _lower_mve(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Choose scalar code for a dilated window or a channel multiplier above one, like elsewhere."""
    shape = read_geometry(graph, layer)
    if _is_convolution(shape):
        return (_lower_to_conv_mve(shape, site),)
    if not _is_simple(shape):
        return _lower_c(graph, layer, site)
    from twin.runtimes.cmsis_nn.depthwise.column import lower_column_mve

    return (lower_column_mve(shape, site),)


def _scratch_bytes_mve(graph: Graph, layer: Layer, isa: str) -> int:
    shape = read_geometry(graph, layer)
    if _is_convolution(shape):  # columns, and the weights transposed
        taps = shape.kernel_rows * shape.kernel_columns
        return scratch_bytes_mve(shape, 1) + taps * shape.output_channels
    if not _is_simple(shape):
        return 0
    from twin.runtimes.cmsis_nn.depthwise.column import column_scratch_bytes_mve

    return column_scratch_bytes_mve(shape)


def _is_convolution(shape: Geometry) -> bool:
    return shape.input_channels == 1 and shape.output_channels > _TO_CONV_ABOVE


def _lower_to_conv_mve(shape: Geometry, site: Site) -> Kernel:
    """Transpose the weights behind the columns in scratch, then run the ordinary convolution.

    The convolution's accesses keep naming the weights: the transposed copy is as large.
    """
    taps, channels = shape.kernel_rows * shape.kernel_columns, shape.output_channels
    transposed = block(
        "transpose weights", "ldrsb r3, [r1], r2; strb r3, [r0], #1; subs r4, #1; bne 0b",
        taps * channels, channels, "data_copy")
    copy = resolve(repeat("out", channels, repeat(
        "tap", taps, load("weights", 1, 0, out=1, tap=channels),
        store("scratch", 1, 4 * 8 * -(-taps // 8), out=taps, tap=1))))
    kernel = lower_windows_mve(shape, 1, site)
    return replace(kernel, name="arm_depthwise_conv_wrapper_s8", family="depthwise",
                   blocks=(transposed, *kernel.blocks), nests=(*copy, *kernel.nests))


KERNELS: Kernels = {
    "depthwise_conv_2d": {
        "c": Lowering(lower=_lower_c),
        "dsp": Lowering(lower=_lower_dsp, scratch_bytes=_scratch_bytes_dsp),
        "mve": Lowering(lower=_lower_mve, scratch_bytes=_scratch_bytes_mve),
    },
}
