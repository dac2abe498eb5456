"""Canonical operators as TensorFlow Lite operators: the way back of the reader's converters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np

from hwmodels.frozen import frozen
from twin.network.graph import GraphLayer, Options, Quantization, TensorIds
from twin.network.readers.tflite_rows import ACTIVATION_NUMBERS, ROWS, Row, refuse_to_write


@frozen
class Encoding(GraphLayer):
    """A layer being written.

    Parameters
    ----------
    constant
        (name, values, quantization=None) -> tensor index of a new constant.
    """

    constant: Callable[..., int]

    def add(self, what: str, values: Any, quantization: Quantization | None = None) -> int:
        """Add a constant, of int32 unless it is an array; return its tensor index."""
        held = values if isinstance(values, np.ndarray) else np.asarray(values, np.int32)
        return self.constant(f"{self.layer.name}/{what}", held, quantization)


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
    options: Options = field(default_factory=dict)


Encoder = Callable[[Encoding], Encoded]


def _encoded(step: GraphLayer, builtin: str, table: str | None = None,
             inputs: TensorIds | None = None, **options: Any) -> Encoded:
    return Encoded(builtin=builtin, inputs=step.layer.inputs if inputs is None else inputs,
                   outputs=step.layer.outputs, table=table, options=options)


def _same(step: GraphLayer, inputs: TensorIds | None = None, **options: Any) -> Encoded:
    """Return an operator the schema has, with its options, under the same name."""
    table = f"{step.op.title().replace('_', '')}Options"
    return _encoded(step, step.op.upper(), table, inputs, **options)


def _with_constants(step: Encoding, **values: Any) -> TensorIds:
    """Return the inputs of what reads one tensor, and integers the file keeps as others."""
    return (step.layer.source_id, *(step.add(what, one) for what, one in values.items()))


def _padding(step: Encoding, size: tuple[int, ...]) -> int:
    """Return number of SAME or VALID for a window sliding over an input of that size."""
    window = step.layer.sliding_window
    same = window.pad_same(*size).padding
    if window.padding == same:
        return 0
    if window.padding == (0, 0, 0, 0):
        return 1
    raise refuse_to_write(step, f": padding {window.padding} cannot be written as .tflite; "
                          f"accepted: none, or SAME, which is {same} here")


def _window_options(step: Encoding, place: tuple[int, ...]) -> Options:
    window = step.layer.sliding_window
    return {"padding": _padding(step, place),
            "stride_w": window.stride[1], "stride_h": window.stride[0],
            "fused_activation_function": ACTIVATION_NUMBERS[step.layer.activation]}


def _with_bias(step: Encoding) -> tuple[int, ...]:
    """Return inputs of a convolution; one without bias gets zeros, which interpreters insist on."""
    if len(step.layer.inputs) > 2:
        return step.layer.inputs
    data, weights, output = (step.graph.tensors[i] for i in step.layer.tensors)
    entry, kernel = data.quantization, weights.quantization
    if entry is None or kernel is None:
        return (*step.layer.inputs, step.add("zeros", np.zeros(output.channels, np.float32)))
    scales = tuple(entry.scales[0] * scale for scale in kernel.scales)
    dtype = np.int64 if data.dtype == "int16" else np.int32
    return (*step.layer.inputs, step.add("zeros", np.zeros(output.channels, dtype), Quantization(
        scales=scales, zero_points=(0,) * len(scales), axis=0 if len(scales) > 1 else None)))


def _conv(step: Encoding) -> Encoded:
    size = step.source.shape[1:3]
    depthwise: Options = {}
    if step.op == "depthwise_conv_2d":
        depthwise["depth_multiplier"] = step.shape[3] // step.layer.groups
    return _same(
        step, _with_bias(step), **_window_options(step, size), **depthwise,
        dilation_w_factor=step.layer.sliding_window.dilation[1],
        dilation_h_factor=step.layer.sliding_window.dilation[0])


def _transpose_conv(step: Encoding) -> Encoded:
    shape = step.shape
    data, weights, *bias = step.layer.inputs
    inputs = (step.add("shape", shape), weights, data, *bias)
    return _encoded(step, "TRANSPOSE_CONV", "TransposeConvOptions", inputs,
                    **_window_options(step, shape[1:3]))


def _pool(step: Encoding) -> Encoded:
    size = step.source.shape[1:3]
    return _encoded(step, step.op.upper(), "Pool2DOptions",
                    **_window_options(step, size),
                    filter_width=step.layer.kernel[1], filter_height=step.layer.kernel[0])


def _split(step: Encoding) -> Encoded:
    axis = step.option("axis")
    lengths = [step.graph.tensors[i].shape[axis] for i in step.layer.outputs]
    return _encoded(step, "SPLIT_V", "SplitVOptions", _with_constants(
        step, lengths=lengths, axis=axis), num_splits=len(lengths))


def _slice(step: Encoding) -> Encoded:
    begin, strides = step.option("begin"), step.option("strides")
    source, output = step.source.shape, step.shape
    boxed = set(strides) == {1} and not step.option("strided", False)
    if boxed and len(output) == len(source):
        return _same(step, _with_constants(step, begin=begin, size=output))
    if len(output) != len(source) or min(strides) < 1:
        raise refuse_to_write(step, ": only slices that step forward and keep every dimension can "
                              "be written as .tflite")
    end = [start + (size - 1) * stride + 1
           for start, size, stride in zip(begin, output, strides, strict=True)]
    return _encoded(step, "STRIDED_SLICE", "StridedSliceOptions", _with_constants(
        step, begin=begin, end=end, strides=strides))


def _pad(step: Encoding) -> Encoded:
    inputs = _with_constants(step, paddings=step.option("paddings"))
    if step.option("mode", "constant") != "constant":
        return _encoded(step, "MIRROR_PAD", "MirrorPadOptions", inputs)
    value = step.option("value", 0.0)
    if value:
        constant = np.asarray(value, step.source.dtype)
        return _encoded(step, "PADV2", "PadV2Options", (*inputs, step.add("value", constant)))
    return _same(step, inputs)


def _softmax(step: Encoding) -> Encoded:
    rank = len(step.source.shape)
    if step.option("axis", rank - 1) != rank - 1:
        raise refuse_to_write(step, ": .tflite has softmax over the last axis only")
    return _same(step, beta=step.option("beta", 1.0))


def _row(row: Row, step: Encoding) -> Encoded:
    inputs = None if row.constant is None else _with_constants(
        step, **{row.constant.name: row.constant.values(step)})
    return _encoded(step, row.builtin, row.table, inputs, **row.options(step))


ENCODERS: Mapping[str, Encoder] = {
    **{row.op: partial(_row, row) for row in ROWS},
    "conv_2d": _conv, "depthwise_conv_2d": _conv, "transpose_conv_2d": _transpose_conv,
    "average_pool_2d": _pool, "max_pool_2d": _pool, "split": _split, "slice": _slice, "pad": _pad,
    "softmax": _softmax,
}
"""Canonical operators this writes."""
