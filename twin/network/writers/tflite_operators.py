"""Canonical operators as TensorFlow Lite operators: the way back of the reader's converters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np

from hwmodels.frozen import frozen
from twin.errors import ModelError
from twin.network.graph import Graph, Layer, Quantization, TensorIds
from twin.network.readers.tflite_rows import ACTIVATION_NUMBERS, ROWS, Row

AddConstant = Callable[..., int]
"""(name, values, quantization=None) -> tensor index of a new constant."""


@frozen
class Encoded:
    """An operator as the schema has it.

    Parameters
    ----------
    inputs, outputs
        Tensor indices of the file.
    table
        Its options table.
    options
        Fields of the table in snake case.
    """

    builtin: str
    inputs: TensorIds
    outputs: TensorIds
    table: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


Encoder = Callable[[Graph, Layer, AddConstant], Encoded]


def _encoded(layer: Layer, builtin: str, table: str | None = None,
             inputs: TensorIds | None = None, **options: Any) -> Encoded:
    return Encoded(builtin=builtin, inputs=layer.inputs if inputs is None else inputs,
                   outputs=layer.outputs, table=table, options=options)


def _same(layer: Layer, inputs: TensorIds | None = None, **options: Any) -> Encoded:
    """Return an operator the schema has, with its options, under the same name."""
    table = f"{layer.op.title().replace('_', '')}Options"
    return _encoded(layer, layer.op.upper(), table, inputs, **options)


def _int32(values: Any) -> np.ndarray:
    return np.asarray(values, dtype=np.int32)


def _with_constant(layer: Layer, add: AddConstant, what: str, values: Any) -> tuple[int, ...]:
    return (layer.source_id, add(f"{layer.name}/{what}", _int32(values)))


def _padding(graph: Graph, layer: Layer, size: tuple[int, ...]) -> int:
    """Return number of SAME or VALID for a window sliding over an input of that size."""
    window = layer.sliding_window
    same = window.pad_same(*size).padding
    if window.padding == same:
        return 0
    if window.padding == (0, 0, 0, 0):
        return 1
    raise ModelError(f"{graph.name}: layer {layer.index} {layer.op} {layer.name!r}: padding "
                     f"{window.padding} cannot be written as .tflite; accepted: none, or SAME, "
                     f"which is {same} here")


def _window_options(graph: Graph, layer: Layer, place: tuple[int, ...]) -> dict[str, Any]:
    window = layer.window
    padding = _padding(graph, layer, place)
    assert window is not None
    return {"padding": padding, "stride_w": window.stride[1], "stride_h": window.stride[0],
            "fused_activation_function": ACTIVATION_NUMBERS[layer.activation]}


def _with_bias(graph: Graph, layer: Layer, add: AddConstant) -> tuple[int, ...]:
    """Return inputs of a convolution; one without bias gets zeros, which interpreters insist on."""
    if len(layer.inputs) > 2:
        return layer.inputs
    data, weights, output = (graph.tensors[i] for i in layer.tensors)
    entry, kernel = data.quantization, weights.quantization
    if entry is None or kernel is None:
        return (*layer.inputs, add(f"{layer.name}/zeros", np.zeros(output.channels, np.float32)))
    scales = tuple(entry.scales[0] * scale for scale in kernel.scales)
    dtype = np.int64 if data.dtype == "int16" else np.int32
    zeros = add(f"{layer.name}/zeros", np.zeros(output.channels, dtype),
                Quantization(scales=scales, zero_points=(0,) * len(scales),
                             axis=0 if len(scales) > 1 else None))
    return (*layer.inputs, zeros)


def _conv(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    size = graph.input(layer).shape[1:3]
    depthwise: dict[str, Any] = {}
    if layer.op == "depthwise_conv_2d":
        depthwise["depth_multiplier"] = graph.output(layer).shape[3] // layer.groups
    return _same(
        layer, _with_bias(graph, layer, add),
        **_window_options(graph, layer, size), **depthwise,
        dilation_w_factor=layer.sliding_window.dilation[1],
        dilation_h_factor=layer.sliding_window.dilation[0])


def _transpose_conv(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    shape = graph.output(layer).shape
    data, weights, *bias = layer.inputs
    inputs = (add(f"{layer.name}/shape", _int32(shape)), weights, data, *bias)
    return _encoded(layer, "TRANSPOSE_CONV", "TransposeConvOptions", inputs,
                    **_window_options(graph, layer, shape[1:3]))


def _pool(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    size = graph.input(layer).shape[1:3]
    return _encoded(layer, layer.op.upper(), "Pool2DOptions",
                    **_window_options(graph, layer, size),
                    filter_width=layer.kernel[1], filter_height=layer.kernel[0])


def _split(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    axis = layer.option("axis")
    lengths = [graph.tensors[i].shape[axis] for i in layer.outputs]
    inputs = (layer.source_id, add(f"{layer.name}/lengths", _int32(lengths)),
              add(f"{layer.name}/axis", _int32(axis)))
    return _encoded(layer, "SPLIT_V", "SplitVOptions", inputs, num_splits=len(lengths))


def _slice(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    begin, strides = layer.option("begin"), layer.option("strides")
    source = graph.input(layer).shape
    output = graph.output(layer).shape
    boxed = set(strides) == {1} and not layer.option("strided", False)
    if boxed and len(output) == len(source):
        inputs = (layer.source_id, add(f"{layer.name}/begin", _int32(begin)),
                  add(f"{layer.name}/size", _int32(output)))
        return _same(layer, inputs)
    if len(output) != len(source) or min(strides) < 1:
        raise ModelError(f"{graph.name}: layer {layer.index} slice {layer.name!r}: only slices "
                         "that step forward and keep every dimension can be written as .tflite")
    end = [start + (size - 1) * stride + 1
           for start, size, stride in zip(begin, output, strides, strict=True)]
    parts = (("begin", begin), ("end", end), ("strides", strides))
    added = [add(f"{layer.name}/{what}", _int32(values)) for what, values in parts]
    return _encoded(layer, "STRIDED_SLICE", "StridedSliceOptions", (layer.source_id, *added))


def _pad(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    inputs = _with_constant(layer, add, "paddings", layer.option("paddings"))
    if layer.option("mode", "constant") != "constant":
        return _encoded(layer, "MIRROR_PAD", "MirrorPadOptions", inputs)
    value = layer.option("value", 0.0)
    if value:
        constant = np.asarray(value, graph.input(layer).dtype)
        return _encoded(layer, "PADV2", "PadV2Options",
                        (*inputs, add(f"{layer.name}/value", constant)))
    return _same(layer, inputs)


def _softmax(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    rank = len(graph.input(layer).shape)
    if layer.option("axis", rank - 1) != rank - 1:
        raise ModelError(f"{graph.name}: layer {layer.index} softmax {layer.name!r}: .tflite has "
                         "softmax over the last axis only")
    return _same(layer, beta=layer.option("beta", 1.0))


def _row(row: Row, graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    inputs = None if row.constant is None else _with_constant(
        layer, add, row.constant.name, row.constant.values(graph, layer))
    return _encoded(layer, row.builtin, row.table, inputs, **row.options(graph, layer))


ENCODERS: Mapping[str, Encoder] = {
    **{row.op: partial(_row, row) for row in ROWS},
    "conv_2d": _conv, "depthwise_conv_2d": _conv, "transpose_conv_2d": _transpose_conv,
    "average_pool_2d": _pool, "max_pool_2d": _pool, "split": _split, "slice": _slice, "pad": _pad,
    "softmax": _softmax,
}
"""Canonical operators this writes."""
