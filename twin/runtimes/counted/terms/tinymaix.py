"""TinyMaix: windows gathered into a buffer, then products of eight; outputs scaled in float.

References
----------
sipeed/TinyMaix 0532ece, src: tm_layers.c, tm_layers_O1.c, arch_cpu.h, arch_arm_simd.h.
"""

from __future__ import annotations

import math

from twin.network.graph import GraphLayer, Window
from twin.runtimes.counted.work import Terms, Work

BLOCK = 2
"""Outputs a side that the faster build's depthwise kernel computes together."""

WHOLE = 4
"""Extents that are no multiple of this take two passes more over all outputs, one by one."""


def _spans(window: Window, place: int, size: int, outputs: int, at_once: int) -> tuple[int, int]:
    """Return windows of a dimension inside the image, and taps of the others that are inside."""
    kernel, before = window.kernel[place] + at_once - 1, window.padding[2 * place]
    starts = [at * window.stride[place] - before for at in range(0, outputs - at_once + 1, at_once)]
    taps = [min(kernel, size - start) - max(0, -start) for start in starts]
    return sum(1 for one in taps if one == kernel), sum(one for one in taps if one != kernel)


def _count_windows(step: GraphLayer, depth: int, at_once: int = 1) -> dict[str, float]:
    """Return windows inside the image and across its edge, and what each of them copies.

    Parameters
    ----------
    at_once
        Outputs a side of a block that share one window.
    """
    source, target = (tensor.shape for tensor in step.ends)
    window = step.layer.sliding_window
    high, wide = (window.kernel[place] + at_once - 1 for place in range(2))
    (rows, row_taps), (columns, column_taps) = (
        _spans(window, place, source[1 + place], target[1 + place], at_once) for place in range(2))
    inside = rows * columns
    edge = (target[1] // at_once) * (target[2] // at_once) - inside
    down, across = rows * high + row_taps, columns * wide + column_taps
    terms: dict[str, float] = {
        "inside": inside, "inside tap": inside * high * wide, "edge": edge,
        "edge row": down * (target[2] // at_once) - inside * high,
        "edge tap": down * across - inside * high * wide, "edge fill": edge * high * wide}
    return {"line": target[1]} | {
        f"{name}{end}": often * times for name, often in terms.items()
        for end, times in (("", 1), (" depth", depth))}


def _count_products(pixels: int, channels: int, column: int) -> dict[str, float]:
    """Return dot products, one at a time, two, or eight, in steps of eight or four."""
    parts: dict[str, float] = {}
    for name, count in (("each", channels), ("pair", channels // 2), ("odd", channels % 2),
                        ("batch", channels // 8), ("beside", channels % 8)):
        parts |= {f"{name}{step}": pixels * count * often for step, often in (
            ("", 1), (" eight", column // 8), (" rest", column % 8), (" four", column // 4),
            (" left", column % 4), (" whole", column % 8 == 0))}
    return parts


def count_outputs(step: GraphLayer) -> dict[str, float]:
    """Return outputs, their pixels and channels, and those an activation runs over."""
    target = step.output
    kinds = {f"output {kind}": target.elements * (step.layer.activation == kind)
             for kind in ("relu", "relu6")}
    return {"call": 1, "pixel": target.rows, "channel": target.channels,
            "output": target.elements, **kinds}


def describe_convolution(step: GraphLayer) -> Work:
    """Return the work of a convolution."""
    target, weights = step.output, step.weights
    window, depth = step.layer.window, weights.shape[3]
    assert window is not None
    small = window.kernel == (1, 1)
    terms = count_outputs(step) | _count_products(
        target.pixels, target.shape[3], math.prod(window.kernel) * depth)
    terms |= {"line": target.shape[1]} if small else _count_windows(step, depth)
    return Work(variant="1x1" if small else "window", terms=terms)


def describe_depthwise(step: GraphLayer) -> Work:
    """Return the work of a depthwise convolution: blocks, then one by one what they leave."""
    source, target = step.source.shape, step.shape
    window, channels = step.layer.window, target[3]
    assert window is not None
    size, pixels = math.prod(window.kernel), target[1] * target[2]
    terms = count_outputs(step) | _count_windows(step, channels)
    if source[3] != channels:
        return Work(variant="multiplied", terms=terms | _count_products(pixels, channels, size))
    if window.kernel != (3, 3):
        return Work(variant="window", terms=terms | _count_products(pixels, channels, size))
    if window.stride != (1, 1):
        return Work(variant="3x3 strided", terms=terms)
    odd = any(extent % WHOLE for extent in target[1:3])
    terms |= {f"again {name}": odd * often for name, often in terms.items()}
    blocks = _count_windows(step, channels, BLOCK)
    terms |= {f"block {name}": often for name, often in blocks.items()}
    return Work(variant="3x3", terms=terms)


def describe_rows(step: GraphLayer) -> Work:
    """Return the work of what goes over its elements once: mean, softmax, addition."""
    source, target = step.ends
    pixels = source.rows if source.shape else 1
    return Work(variant="plain", terms={
        "call": 1, "element": source.elements, "output": target.elements,
        "line": target.elements * (source.shape[1] if len(source.shape) > 1 else 1),
        "four": pixels * source.channels // 4})


def describe_dense(step: GraphLayer) -> Work:
    """Return the work of a fully connected layer."""
    rows, columns = step.weights.shape[:2]
    return Work(variant="plain", terms={**count_outputs(step), **_count_products(1, rows, columns)})


TERMS: Terms = {
    "conv_2d": describe_convolution, "depthwise_conv_2d": describe_depthwise,
    "fully_connected": describe_dense,
    **dict.fromkeys(("mean", "softmax", "add"), describe_rows),
}
