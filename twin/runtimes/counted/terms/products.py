"""Products of matrices: fully connected, batched, recurrent, transposed convolution.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference: fully_connected.h,
batch_matmul.h, transpose_conv.h, integer_ops; micro/kernels/svdf_common.cc,
unidirectional_sequence_lstm.cc; ARM-software/CMSIS-NN, Source: arm_nn_vec_mat_mult_t_s8.c,
arm_nn_vec_mat_mult_t_s16.c, arm_batch_matmul_s8.c, arm_transpose_conv_s8.c.
"""

from __future__ import annotations

import math
from dataclasses import replace

from hwmodels.quantities import sum_by_key
from twin.network.graph import GraphLayer, Tensor, Window
from twin.runtimes.counted.copies import count_copies
from twin.runtimes.counted.terms.windows import FAST, count_inside
from twin.runtimes.counted.work import Terms, Work, count_blocks
from twin.runtimes.lowering.geometry import has_bias, has_one_scale
from twin.runtimes.tflm.scratch import is_pointwise_product

DEEP = 16
"""Channels beyond which CMSIS-NN turns the weights of a transposed convolution, and convolves."""

UNROLLED = 32
"""Columns of a turn of the loop that the source of a product asks GCC to unroll."""


def _count_products(vectors: int, rows: int, columns: int) -> dict[str, float]:
    """Return the parts of vectors times a matrix: rows two, three or four at a time."""
    steps = {"{}": 1, "scalar {} quad": columns // 4, "scalar {} rest": columns % 4,
             "scalar {} depth": columns, "scalar {} sixteen": columns // 16,
             "scalar {} over": columns % 16, "vector {}": -(-columns // 16),
             "vector {} eight": -(-columns // 8)}
    return {step.format(name): vectors * count * often for name, count in (
        ("pair", rows // 2), ("odd", rows % 2), ("triple", rows // 3), ("triple rest", rows % 3),
        ("four", rows // 4), ("four rest", rows % 4)) for step, often in steps.items()}


def describe_fully_connected(step: GraphLayer) -> Work:
    """Return the work of a fully connected layer."""
    source, target = step.ends
    weights = step.weights
    rows, columns = weights.shape[0], weights.shape[1]
    vectors, over = target.elements // rows, max(0, columns - FAST)
    each = not has_one_scale(step)
    long = source.dtype == "int16" and over > 0
    variant = f"{source.dtype}{' per channel' if each else ''}"
    plain = Work(variant=variant, path=f"{variant} long" if long else "", terms={
        "call": 1, "vector": vectors, "output": target.elements,
        "mac": target.elements * columns,
        "biased output": target.elements * has_bias(step.layer)}, own={
        "vector weight": rows * -(-columns // 16),
        "scalar long pair": over * vectors * (rows // 2),
        "scalar long odd": over * vectors * (rows % 2),
        "vector long four": over * vectors * (rows // 4),
        "vector long one": over * vectors * (rows % 4),
        **_count_products(vectors, rows, FAST if long else columns)})
    if source.dtype != "int8" or not is_pointwise_product(step):
        return plain
    return replace(plain, path="int8 1x1", runs="conv_2d", oldest=plain, terms={
        **plain.terms, "pixel": vectors}, own=count_blocks(vectors, rows, columns) | {
            "channel": rows, "weight": weights.elements, "line": 1,
            "shared scale": rows * (not each)})


def describe_batch_matmul(step: GraphLayer) -> Work:
    """Return the work of products of matrices."""
    left, right, target = step.source, step.input(1), step.output
    turned, kept = bool(step.option("adj_x", False)), bool(step.option("adj_y", False))
    rows, columns = target.shape[-2], target.channels
    depth = left.shape[-2 if turned else -1]
    batches = target.elements // (rows * columns)
    turns = not kept and not right.is_constant
    lefts, rights = (turned * left.elements), (turns * right.elements)
    return Work(variant=left.dtype, terms={
        "call": 1, "batch": batches, "left turned": lefts, "right turned": rights,
        "left turned row": lefts // depth, "right turned row": rights // depth,
        "right turns": turns, "left turns": turned, "dimension": len(target.shape),
        "column": batches * columns, "output": target.elements, "mac": target.elements * depth,
        "vector": batches * rows,
        "single matrix": min(len(left.shape), len(right.shape)) > 2 and right.shape[-3] == 1,
    }, own=_count_products(batches * rows, columns, depth) | {
        "scalar pair turn": batches * rows * (columns // 2) * (depth // UNROLLED),
        "scalar odd turn": batches * rows * (columns % 2) * (depth // UNROLLED)})


def describe_svdf(step: GraphLayer) -> Work:
    """Return the work of a step of SVDF."""
    feature, time = (step.input(place) for place in (1, 2))
    source, target = step.ends
    state = step.input(4).dtype
    filters, memory = time.shape
    return Work(variant=f"{source.dtype} {state}", terms={
        "call": 1, "filter": filters, "time mac": time.elements, "target": target.elements,
        "filter mac": target.shape[0] * feature.elements}, own={
        "time quad": filters * (memory // 4), "time rest": filters * (memory % 4),
        "time pair": filters * (memory // 2), "time odd": filters * (memory % 2),
        **_count_products(target.shape[0], filters, feature.shape[1])})


def describe_lstm(step: GraphLayer) -> Work:
    """Return the work of a sequence: gates, products, states.

    CMSIS-NN multiplies no state in the first step of a sequence, where all of it is zero. Of
    batches and steps the smaller number is taken to be the batches.
    """
    source = step.source
    weights, recurrent = (step.input(place) for place in (1, 2))
    width, units = weights.shape[1], recurrent.shape[1]
    steps = source.elements // width
    later = steps - min(source.shape[:2])
    gates = sum_by_key((
        ("mac", 4 * units * (width * steps + units * later)),
        *_count_products(4 * steps, units, width).items(),
        *_count_products(4 * later, units, units).items()))
    return Work(variant=source.dtype, terms={
        "call": 1, "step": steps, "unit": steps * units,
        "mac": steps * 4 * units * (width + units)}, own={} if source.dtype == "float32" else {
        "unit quad": steps * (units // 4), "unit rest": steps * (units % 4),
        "input sum": 4 * units * width, **gates})


def describe_transpose_convolution(step: GraphLayer) -> Work:
    """Return the work of a transposed convolution: every input spreads over its window."""
    source, target = step.ends
    weights, window = step.weights, step.layer.window
    assert window is not None
    size = weights.pixels
    inputs = source.pixels
    inside = math.prod(count_inside(window, target.shape, source.shape))
    depth, channels = weights.shape[3], weights.shape[0]
    terms: dict[str, float] = {
        "call": 1, "output": target.elements, "mac": inside * depth * channels,
        "outside mac": (inputs * size - inside) * depth * channels,
        "biased output": target.elements * has_bias(step.layer),
        "tap depth": inputs * size * depth, "input": source.elements,
        "input row": source.elements * weights.shape[1]}
    if source.dtype != "int8":
        return Work(variant=source.dtype, terms=terms)
    if max(window.stride) > 2 or depth <= DEEP:
        return Work(variant=source.dtype, path="int8 spread", terms=terms,
                    own=_count_spread(source, target, weights, window))
    dense = window.stride == (1, 1)
    return Work(variant=source.dtype, path=f"int8 turned{'' if dense else ' spaced'}", terms=terms,
                own=_count_turned(source, target, weights, window))


def _count_spread(source: Tensor, target: Tensor, weights: Tensor,
                  window: Window) -> dict[str, float]:
    """Return CMSIS-NN's parts: four inputs of a row at a time, into a buffer of rows."""
    channels, height, width, depth = weights.shape
    step, before = window.stride[0], window.padding[0]
    rows = sum(max(0, height - max(0, before - place * step)
                   - max(0, place * step + height - before - target.shape[1] - 1))
               for place in range(source.shape[1]))
    fours, single = source.shape[2] // 4, source.shape[2] % 4
    buffer = (source.shape[2] - 1) * window.stride[1] + max(width, window.stride[1])
    resets = buffer * (max(height, step) + source.shape[1] * step)
    own: dict[str, float] = {
        "pixel": target.pixels, "line": source.shape[1],
        **count_copies(4 * channels, resets),
        "vector output": target.pixels * -(-channels // 4)}
    for name, count in (("group", fours), ("single", single)):
        often = count * channels * rows * width
        own |= {f"{name} channel": source.shape[1] * count * channels,
                f"{name} row": count * channels * rows, name: often,
                f"{name} quad": often * (depth // 4), f"{name} rest": often * (depth % 4),
                f"vector {name}": often * -(-depth // 16)}
    return own


def _count_turned(source: Tensor, target: Tensor, weights: Tensor,
                  window: Window) -> dict[str, float]:
    """Return CMSIS-NN's parts: a convolution of the image, spaced out, with turned weights."""
    channels, height, width, depth = weights.shape
    rows, columns = count_inside(window, target.shape, source.shape)
    pixels, taps, column = target.pixels, rows * columns, depth * height * width
    return count_blocks(pixels, channels, column) | {
        "pixel": pixels, "line": target.shape[1], "weight row": channels * height * width,
        "window row": pixels * height, "reached row": rows * target.shape[2],
        "row tap": rows * target.shape[2] * width,
        "scalar column quad": pixels * (column // 4), "vector column": pixels * -(-column // 16),
        "scalar column eight": pixels * (column // 16), "weight": weights.elements,
        **count_copies(depth, taps, from_step=depth)}


FAMILY = "fully_connected"

TERMS: Terms = {
    "fully_connected": describe_fully_connected, "batch_matmul": describe_batch_matmul,
    "svdf": describe_svdf, "lstm": describe_lstm,
    "transpose_conv_2d": describe_transpose_convolution,
}
