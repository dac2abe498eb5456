"""What a layer's shape asks of a kernel nobody described: how often loops may turn, and features.

The terms are those counted kernels have (`describe`), behind the products of the loops any kernel
of the operator may have; the first that fits is taken, so plain ones come first.
"""

from __future__ import annotations

import math

from twin.network.graph import GraphLayer
from twin.runtimes.counted.describe import describe
from twin.runtimes.counted.terms.windows import count_inside
from twin.runtimes.counted.work import SCALAR, VECTOR

BLOCKS = (2, 4, 8, 16)
"""Iterations unrolled loops take at a time."""

AT_ONCE = (1, 2, 4)
"""Rows and columns of a product computed at once."""

PLAIN = frozenset((
    "call", "output", "last", "source", "pixel", "line", "channel", "tap", "window tap", "tap row",
    "window row", "outside tap", "mac", "every mac", "column", "inside column", "channel column",
    "depth", "output tap", "output row", "output window row", "element"))
"""Terms that may have any coefficient, as what data decide has; others come whole or in parts."""

KINDS = {"conv_2d": "product", "fully_connected": "product", "average_pool_2d": "pool",
         "max_pool_2d": "pool"}
"""Operators whose shapes have the same terms, so that one function may run them."""


def count_terms(step: GraphLayer) -> dict[str, float]:
    """Return how often loops of a layer's kernel may turn, by name, plain ones first."""
    target = step.output
    source = step.source
    terms: dict[str, float] = {"call": 1.0, "output": target.elements}
    if step.layer.window is not None and len(source.shape) == 4 == len(target.shape):
        terms |= _count_window(step)
    elif step.op == "fully_connected":
        terms |= _count_dense(step)
    else:
        terms |= {"last": target.channels if target.shape else 1,
                  "source": source.elements} | _cut("output", target.elements, 1)
    work = describe(step)
    if work is not None:
        for name, often in {**work.terms, **work.own}.items():
            terms.setdefault(name.removeprefix(SCALAR).removeprefix(VECTOR), float(often))
    return {name: float(often) for name, often in terms.items() if often > 0}


def _cut(name: str, extent: int, often: float) -> dict[str, float]:
    """Return a loop taken several iterations at a time, and what is left over."""
    found = {}
    for size in BLOCKS:
        found[f"{name} by {size}"] = often * (extent // size)
        found[f"{name} beside {size}"] = often * (extent % size)
        found[f"{name} up to {size}"] = often * -(-extent // size)
    return found


def _count_product(pixels: int, channels: int, column: int) -> dict[str, float]:
    """Return the loops of a product of matrices in blocks of pixels and channels."""
    terms: dict[str, float] = {
        "pixel": pixels, "channel": channels, "every mac": pixels * channels * column,
        "column": pixels * column, "channel column": channels * column, "depth": column}
    for name, extent, often in (("mac", column, pixels * channels), ("column", column, pixels),
                                ("channel", channels, 1), ("pixel", pixels, 1),
                                ("pixel channel", channels, pixels)):
        terms |= _cut(name, extent, often)
    for down in AT_ONCE:
        for across in AT_ONCE:
            rows = {f"{down} pixels": pixels // down, f"past {down} pixels": pixels % down}
            parts = {f"{across} channels": channels // across,
                     f"past {across} channels": channels % across}
            for row, often in rows.items():
                for part, each in parts.items():
                    name = f"{row}, {part}"
                    terms[name] = often * each
                    terms[f"{name}, mac"] = often * each * column
                    terms |= _cut(f"{name}, mac", column, often * each)
    return {name: often for name, often in terms.items() if often}


def _count_window(step: GraphLayer) -> dict[str, float]:
    source, target = step.ends
    window = step.layer.sliding_window
    rows, columns = count_inside(window, source.shape, target.shape)
    lines, width, channels = target.shape[1], target.shape[2], target.shape[3]
    pixels, taps = lines * width, rows * columns
    size = math.prod(window.kernel)
    window_taps, window_rows = pixels * size, pixels * window.kernel[0]
    often: dict[str, float] = {
        "pixel": pixels, "tap": taps, "window tap": window_taps, "tap row": rows * width,
        "window row": window_rows, "outside tap": window_taps - taps}
    terms = often | {"line": lines, "channel": channels}
    for at_once in AT_ONCE[1:]:
        terms[f"line by {at_once}"] = lines * (width // at_once)
        terms[f"line beside {at_once}"] = lines * (width % at_once)
    if step.op == "conv_2d":
        depth = step.weights.shape[3]
        terms |= {"mac": taps * depth * channels, "inside column": taps * depth}
        terms |= _cut("tap depth", depth, taps) | _cut(
            "row depth", window.kernel[1] * depth, window_rows)
        return terms | _count_product(pixels, channels, depth * size)
    terms |= {"mac": taps * channels, "output tap": window_taps * channels,
              "output row": rows * width * channels, "output window row": window_rows * channels,
              "window column": pixels * window.kernel[1]}
    for name, times in often.items():
        terms |= _cut(f"{name} channel", channels, times)
    return terms | _cut("pixel", pixels, 1) | _cut("window", size, pixels * channels)


def _count_dense(step: GraphLayer) -> dict[str, float]:
    weights, target = step.weights, step.output
    channels, depth = weights.shape[0], weights.elements // max(1, weights.shape[0])
    rows = target.elements // max(1, channels)
    # Of a convolution of one by one, which libraries often run by the same code.
    return {"pixel": rows, "line": 1, "channel": channels, "tap": rows, "window tap": rows,
            "tap row": rows, "window row": rows, "mac": target.elements * depth,
            "inside column": rows * depth} | _count_product(rows, channels, depth)


FEATURES = {"pointwise": 16, "multiplier": 8, "dilated": 8, "kernel": 4, "same": 4, "stride": 2,
            "padded": 2, "height": 2, "channels": 1, "depth": 1, "path": 2}
"""What may choose a kernel, and how much agreement in it counts (assumed)."""

DECISIVE = ("pointwise", "multiplier", "dilated", "same")
"""A layer that differs from all that were seen in one of these runs other code, maybe."""


def tell_features(step: GraphLayer) -> dict[str, str]:
    """Return what of a layer's shape may choose the kernel that runs."""
    source, target = step.ends
    work = describe(step)
    found = {"path": (work.path or work.variant) if work is not None else ""}
    window = step.layer.window
    if window is None or len(source.shape) != 4:
        shapes = {tensor.shape for tensor in step.reads}
        found["same"] = "yes" if len(shapes) == 1 or step.op == "fully_connected" else "no"
        found["channels"] = str(target.channels % 4 if target.shape else 0)
        return found
    depth = source.shape[3]
    found |= {"kernel": f"{window.kernel[0]}x{window.kernel[1]}",
              "stride": f"{window.stride[0]}x{window.stride[1]}",
              "dilated": "no" if window.dilation == (1, 1) else "yes",
              "padded": "yes" if any(window.padding) else "no",
              "height": "1" if source.shape[1] == 1 else "more",
              "channels": str(target.shape[3] % 4), "depth": str(depth % 4),
              "pointwise": "yes" if window.kernel == (1, 1) else "no"}
    if step.op == "depthwise_conv_2d":
        found["multiplier"] = "1" if target.shape[3] == depth else "more"
    return found


def measure_shape(step: GraphLayer) -> dict[str, float]:
    """Return the sizes a layer is far from others by: outputs, channels, work of an output."""
    terms = count_terms(step)
    outputs = terms.get("output", 1.0)
    channels = step.shape[-1:] or (1,)
    return {"outputs": outputs, "channels": float(channels[0]),
            "work": max(1.0, terms.get("mac", terms.get("tap", outputs)) / outputs)}
