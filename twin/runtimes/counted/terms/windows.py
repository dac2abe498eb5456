"""Windows that slide over an image: convolution, depthwise convolution, pooling.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference: conv.h, depthwiseconv_uint8.h,
integer_ops/conv.h, integer_ops/depthwise_conv.h, pooling.h; ARM-software/CMSIS-NN, Source:
arm_convolve_s8.c, arm_nn_mat_mult_kernel_s8_s16.c, arm_nn_mat_mult_nt_t_s8.c,
arm_depthwise_conv_3x3_s8.c, arm_depthwise_conv_s8_opt.c, arm_depthwise_conv_s8.c.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from twin.network.graph import GraphLayer, Shape, Tensor, Window
from twin.runtimes.counted.copies import PERIOD, count_copies, count_fills
from twin.runtimes.counted.work import VECTOR, Terms, Work, count_blocks
from twin.runtimes.lowering.geometry import has_bias, list_taps

FAST = 512
"""Columns of a product of 16-bit values beyond which CMSIS-NN accumulates in 64 bits."""

BLOCK = 124
"""Channels CMSIS-NN's depthwise kernel for Helium takes at a time."""


def count_inside(window: Window, source: Shape, target: Shape) -> tuple[int, int]:
    """Return rows and columns of windows inside the image, over outputs of their dimension."""
    return sum(list_taps(window, source, target, 0)), sum(list_taps(window, source, target, 1))


def describe_pool(step: GraphLayer) -> Work:
    """Return the work of pooling."""
    source, target = step.ends
    down, across = (Counter(list_taps(step.layer.sliding_window, source.shape, target.shape, axis))
                    for axis in range(2))
    taps, channels = sum(down.elements()) * sum(across.elements()), target.shape[3]
    rows, pixels = sum(down.elements()), target.pixels
    terms: dict[str, float] = {
        "call": 1, "pixel": pixels, "output": target.elements, "line": target.shape[1],
        "tap": taps, "tap row": rows * target.shape[2], "channel tap": taps * channels,
        "channel row": rows * target.shape[2] * channels,
        "divided output": (step.op == "average_pool_2d") * channels * sum(  # By no power of 2.
            often * other for taken, often in down.items() for reached, other in across.items()
            if (taken * reached) & (taken * reached - 1))}
    oldest = Work(variant=source.dtype, path=f"{source.dtype} axes", terms=terms,
                  own=_count_axes(step.layer.sliding_window, source, target)) \
        if step.op == "max_pool_2d" and source.dtype == "int8" else None
    return Work(variant=source.dtype, terms=terms, oldest=oldest, own={
        "quad tap": taps * (channels // 4), "rest tap": taps * (channels % 4),
        "quad": pixels * (channels // 4), "rest": pixels * (channels % 4),
        "later tap": (taps - pixels) * channels,  # Without DSP every tap is asked if it is inside.
        "window channel tap": target.elements * math.prod(step.layer.kernel),
        "window channel row": target.elements * step.layer.kernel[0],
        **count_copies(channels, pixels, from_step=channels),
        "vector sixteen": pixels * -(-channels // 16),
        "vector sixteen tap": taps * -(-channels // 16),
        "vector eight": pixels * -(-channels // 8),
        "vector eight tap": taps * -(-channels // 8)})


def _count_axes(window: Window, source: Tensor, target: Tensor) -> dict[str, float]:
    """Return the parts of pooling each row along x in its place, then the rows along y.

    Runs of bytes are moved, then compared with those of each further tap, four bytes at a time.
    """
    (height, width, depth), (lines, across) = source.shape[1:], target.shape[1:3]
    starts = [[place * window.stride[axis] - window.padding[2 * axis]
               for place in range(target.shape[1 + axis])] for axis in range(2)]
    rows, taps = (sum(min(start + window.kernel[axis], source.shape[1 + axis]) - 1 - (
        axis * place if start < 0 else start) for place, start in enumerate(starts[axis]))
        for axis in range(2))
    run = across * depth
    return {"move": height * across, "tap": height * taps, "row": rows,
            "quad": height * taps * (depth // 4) + rows * (run // 4),
            "rest": height * taps * (depth % 4) + rows * (run % 4),
            "moving": (count_copies(depth, height * across, from_step=depth) + count_copies(
                run, lines, from_step=width * depth))["copying thumb1"]}  # memmove is alike.


def _count_columns(depth_bytes: int, inside: int, outside: int) -> Counter[str]:
    """Return copies and fills of a column's taps; places they begin at are spread evenly."""
    phases = PERIOD if depth_bytes % PERIOD else 1
    copied = count_fills(depth_bytes, outside, step=depth_bytes)
    for phase in range(phases):
        often = (inside + phase) // phases
        copied += count_copies(depth_bytes, often, from_step=depth_bytes, from_start=phase)
    return copied


def describe_convolution(step: GraphLayer) -> Work:
    """Return the work of a convolution: outputs, taps, multiply-accumulates inside the image."""
    source, target = step.ends
    weights, window = step.weights, step.layer.window
    assert window is not None
    rows, columns = count_inside(window, source.shape, target.shape)
    pixels, taps = target.pixels, rows * columns
    every = pixels * window.kernel[0] * window.kernel[1]
    depth, channels = weights.shape[3], target.shape[3]
    groups = max(1, source.shape[3] // depth)
    terms: dict[str, float] = {
        "call": 1, "pixel": pixels, "output": target.elements,
        "output row": target.elements * window.kernel[0], "output tap": every * channels,
        "output inside tap": taps * channels, "mac": taps * depth * channels,
        "biased output": target.elements * has_bias(step.layer)}
    name = _convolution_path(window, source, target)
    if groups > 1:
        name = f"{name} grouped"
    if source.dtype == "float32":
        return Work(variant=source.dtype, terms=terms)
    if source.dtype == "int16":
        name = "window"  # The only one of 16 bits.
    each = channels // groups
    column = depth * window.kernel[0] * window.kernel[1]
    own = count_blocks(pixels * groups, each, column)
    if source.dtype == "int16" and column > FAST:  # All but a last pixel, which is of 32 bits.
        over = column - FAST
        own = count_blocks(pixels * groups, each, FAST) | {
            part: own[part] for part in own if part.startswith("scalar alone")} | {
                "scalar long pair": over * (pixels // 2) * (each // 2),
                "scalar long last pair": over * (pixels // 2) * (each % 2),
                "vector long four": over * (pixels // 4) * channels,
                "vector long one": over * (pixels % 4) * channels}
    if source.dtype == "int16":
        own["vector call"] = -(-pixels // 4)
    own |= {"channel": channels, "weight": weights.elements, "line": target.shape[1]}
    if name == "1x1 strided":
        rows_of = count_blocks(target.shape[2], each, column)
        own |= {part: count * target.shape[1] for part, count in rows_of.items()}
    if not name.startswith("1x1"):
        own |= {"window tap": every, "inside tap": taps, "outside tap": every - taps,
                  "scalar column quad": pixels * (column // 4),
                "scalar column rest": pixels * (column % 4),
                  "vector copy": taps * -(-depth * source.element_bytes // 16),
                  "vector fill": (every - taps) * -(-depth * source.element_bytes // 16),
                  **_count_columns(depth * source.element_bytes, taps, every - taps)}
    plain = f"{source.dtype} {'window' if name == '1xn' else name}"
    oldest = "1x1" if name == "1x1" and depth % 4 == 0 else "window"
    old = own | {  # Taps are widened four values at a time, products run 16 or one at a time.
        "inside tap": taps, "tap quad": taps * (depth // 4), "tap rest": taps * (depth % 4),
        "scalar pair over": channels // 2 * (pixels // 2) * (column % 16),
        **count_fills(2 * depth, every - taps, step=2 * depth)}
    return Work(variant=source.dtype, path=plain, vector_path=f"{source.dtype} {name}", terms=terms,
                own=own, oldest=Work(variant=source.dtype, terms=terms, own=old,
                                     path=f"{source.dtype} {oldest}"))


def _convolution_path(window: Window, source: Tensor, target: Tensor) -> str:
    """Return what CMSIS-NN's wrapper chooses: by kernel, stride, height, whole words."""
    plain = window.dilation == (1, 1) and not any(window.padding)
    if window.kernel == (1, 1) and plain:
        return "1x1" if window.stride == (1, 1) else "1x1 strided"
    words = window.stride[1] * source.shape[3] % 4 == 0 and window.dilation[1] == 1
    return "1xn" if words and source.shape[1] == 1 and window.kernel[0] == 1 else "window"


def describe_depthwise(step: GraphLayer) -> Work:
    """Return the work of a depthwise convolution."""
    source, target = step.ends
    work = _describe_depthwise(source, target, step.layer.sliding_window)
    if source.dtype != "int8":
        return work
    window = step.layer.sliding_window
    above, left = (any(window.padding) and max(0, size - source.shape[1 + place] + (
        target.shape[1 + place] - 1) * window.stride[place]) // 2
        for place, size in enumerate(window.kernel))
    oldest = _describe_depthwise(source, target, replace(  # Release 2.3.1 dilates nothing.
        window, dilation=(1, 1), padding=(above, 0, left, 0)), optimised="columns")
    return replace(work, oldest=replace(
        oldest, vector_path="", terms=work.terms,
        own={**oldest.own, "channel": target.shape[3], "tap mac": oldest.terms["mac"]}))


def _describe_depthwise(source: Tensor, target: Tensor, window: Window,
                        optimised: str = "") -> Work:
    """Return the work; `optimised` names the kernel of one output a channel if there is but one."""
    depth, channels = source.shape[3], target.shape[3]
    pixels, size = target.pixels, window.kernel[0] * window.kernel[1]
    rows, columns = count_inside(window, source.shape, target.shape)
    taps, lines = rows * columns, rows * target.shape[2]
    terms: dict[str, float] = {
        "call": 1, "pixel": pixels, "output": target.elements, "input pixel": pixels * depth,
        "output row": target.elements * window.kernel[0], "output tap": pixels * size * channels,
        "mac": taps * channels}
    if source.dtype == "float32":
        return Work(variant=source.dtype, terms=terms)
    name = (channels == depth and optimised) or _depthwise_path(
        window, channels // depth, source.dtype)
    quads = -(-channels // 4)
    own: dict[str, float] = {
        "inside tap": taps, "line": target.shape[1], "tap row": lines,
        "output tap row": lines * channels, "input pixel": pixels * depth,
        "outside tap": pixels * size - taps, "outside column": lines * window.kernel[1] - taps,
        "quad": pixels * (channels // 4), "quad row": lines * (channels // 4),
        "quad tap": taps * (channels // 4), "rest": pixels * (channels % 4),
        "rest row": lines * (channels % 4), "rest tap": taps * (channels % 4),
        "scalar quad pair": pixels * (channels // 4) * (size // 2),
        "scalar quad odd": pixels * (channels // 4) * (size % 2),
        "scalar rest every": pixels * (channels % 4) * size,
        "scalar half": pixels * (channels % 4 // 2), "vector four": pixels // 4 * quads,
        "vector four every": pixels // 4 * quads * size, "vector one": pixels % 4 * quads,
        "vector one every": pixels % 4 * quads * size, "vector block": -(-channels // BLOCK),
        "vector copy": taps * -(-channels // 16),
        "vector fill": (pixels * size - taps) * -(-channels // 16)}
    dilated = sum(step > 1 for step in window.dilation)  # Each divides, for either end.
    own |= {"dilated output": target.elements * dilated, "dilated pixel": pixels * dilated}
    if name == "columns":
        above = (target.shape[1] * window.kernel[0] - rows) * target.shape[2]
        own |= count_fills(2 * channels, lines * window.kernel[1] - taps, step=2 * channels)
        own |= {"filled above": above * window.kernel[1] * channels // 8, "above": above}
    vector = "int8 columns" if name == "3x3" else ""
    if depth == 1 and channels > 1 and source.dtype == "int8":  # Helium runs it as convolution.
        vector = "int8 convolution"
        own |= {"weight": channels * size, "window tap": pixels * size, "vector copy": taps} | {
            part: count for part, count in count_blocks(pixels, channels, size).items()
            if part.startswith(VECTOR)}
    return Work(variant=source.dtype, path=f"{source.dtype} {name}", vector_path=vector,
                terms=terms, own=own)


def _depthwise_path(window: Window, multiplier: int, dtype: str) -> str:
    """Return what CMSIS-NN's wrapper chooses: by multiplier, dilation, kernel, padding."""
    dense = window.dilation == (1, 1)
    if dtype == "int16":
        return "columns" if multiplier == 1 and dense else "generic"
    if multiplier == 1 and dense:
        narrow = window.padding[0] <= 1 and window.padding[2] <= 1
        return "3x3" if window.kernel == (3, 3) and narrow else "columns"
    if multiplier % 4 == 0 and dense:
        return "by four"
    return "generic" if dense else "generic dilated"


FAMILY = "pool"

TERMS: Terms = {
    "average_pool_2d": describe_pool, "max_pool_2d": describe_pool,
    "conv_2d": describe_convolution, "depthwise_conv_2d": describe_depthwise,
}
