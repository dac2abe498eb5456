"""NNoM: loops of plain C over 8-bit values, or CMSIS-NN's kernels of 2020, chosen by shape.

References
----------
majianjia/nnom 4d1d8fc, src: backends/nnom_local.c, layers/nnom_conv2d.c, nnom_dw_conv2d.c.
"""

from __future__ import annotations

from twin.network.graph import GraphLayer, Window
from twin.runtimes.counted.copies import count_fills
from twin.runtimes.counted.terms import elementwise, movement, products, reductions, rows
from twin.runtimes.counted.terms.tinymaix import count_outputs
from twin.runtimes.counted.terms.windows import count_inside
from twin.runtimes.counted.work import Terms, Work, count_blocks

ALIKE: Terms = {**elementwise.TERMS, **movement.TERMS, **products.TERMS, **reductions.TERMS,
                **rows.TERMS}
"""Operators without windows, whose loops are those of TFLite Micro's kernels."""

RGB = 3
"""Channels of an image, which CMSIS-NN has a kernel of its own for."""


def describe_layer(step: GraphLayer) -> Work:
    """Return the work of a layer, and of the activation that runs behind it."""
    if (window := step.layer.window) is not None:
        variant, terms = _choose(step, window), _count_window(step, window)
    else:
        work = ALIKE[step.op](step)
        variant = work.variant.split(" ")[0]
        terms = {**work.terms, **work.own, "source": step.source.elements}
    return Work(variant=variant, terms=terms | count_outputs(step))


def _count_window(step: GraphLayer, window: Window) -> dict[str, float]:
    """Return parts of windows: rows and taps inside, what is copied, pooling in two passes."""
    (_, height, width, depth), (_, lines, across, channels) = (tensor.shape for tensor in step.ends)
    rows, columns = count_inside(window, (1, height, width), (1, lines, across))
    size, pixels = window.kernel[0] * window.kernel[1], lines * across
    parts: dict[str, float] = {f"{name}{end}": often * times for name, often in (
        ("line", lines), ("pixel", pixels), ("row", rows * across),
        ("tap", rows * columns), ("every", pixels * size),
        ("first", height * (columns - across)), ("first pixel", height * across),
        ("second", (rows - lines) * across), ("pair", pixels * (size // 2)))
        for end, times in (("", 1), (" channel", channels), (" four", depth // 4),
                           (" rest", depth % 4))}
    if step.op == "conv_2d":
        parts |= count_blocks(pixels, channels, size * depth) | count_fills(
            2 * depth, pixels * size - rows * columns, step=2 * depth)
        parts["mac"] = rows * columns * channels * depth
    return parts


def _choose(step: GraphLayer, window: Window) -> str:
    """Return which kernel of CMSIS-NN a window of this shape runs."""
    source, target = step.source.shape, step.shape
    dense = window.dilation == (1, 1)
    if step.op == "depthwise_conv_2d":
        return "plain" if dense and source[3] == target[3] else "multiplied"
    square = "square" if all(one == other for one, other in (
        source[1:3], target[1:3], window.kernel, window.stride, window.padding[::2])) else "sides"
    if step.op != "conv_2d":
        return square
    if not dense:
        return "dilated"
    if source[3] % 4 or target[3] % 2:
        return "image" if (source[3], square) == (RGB, "square") else f"basic {square}"
    return "1x1" if square == "square" and window.kernel == window.stride == (1, 1) else square


TERMS: Terms = dict.fromkeys((
    "conv_2d", "depthwise_conv_2d", "fully_connected", "max_pool_2d", "average_pool_2d", "mean",
    "softmax", "add", "sub", "mul", "concatenation", "pad", "relu", "relu6", "leaky_relu",
    "logistic", "tanh"), describe_layer)
