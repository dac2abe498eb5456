"""ONNX operators to canonical ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from twin.network.graph import Window, same_padding
from twin.network.readers.onnx_fusion import Group, clip_activation
from twin.network.readers.onnx_layout import CHANNELS_LAST, PLAIN, stored_axes, stored_axis
from twin.network.readers.onnx_movement import (
    convert_concat,
    convert_pad,
    convert_reshape,
    convert_slice,
    convert_split,
    convert_transpose,
)
from twin.network.readers.onnx_values import OnnxReader
from twin.network.readers.refusal import UnsupportedError

Convert = Callable[[OnnxReader, Group], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Converter:
    """How one operator becomes a layer.

    Parameters
    ----------
    convert : callable
        (reader, group) -> None; emits layers.
    places : tuple of int
        Inputs that must be dequantised integers for the layer to be an integer one; empty: all.
    """

    convert: Convert
    places: tuple[int, ...]


def _window(reader: OnnxReader, group: Group, kernel: tuple[int, ...]) -> Window:
    """Window of a convolution or pooling; signals slide along their length only."""
    node = group.node
    size = reader.shape(node.inputs[0])[2:]
    made = reader.shape(group.output)[2:]
    ones = (1,) * len(size)
    stride = tuple(node.attributes.get("strides", ones))
    dilation = tuple(node.attributes.get("dilations", ones))
    pads = list(node.attributes.get("pads", (0,) * 2 * len(size)))
    before, after = pads[:len(size)], pads[len(size):]
    mode = node.attributes.get("auto_pad", "NOTSET")
    for axis in range(len(size)):
        if mode.startswith("SAME"):
            pair = same_padding(size[axis], kernel[axis], stride[axis], dilation[axis])
            before[axis], after[axis] = pair if mode == "SAME_UPPER" else pair[::-1]
        if node.attributes.get("ceil_mode", 0):
            reach = (kernel[axis] - 1) * dilation[axis] + 1
            short = (made[axis] - 1) * stride[axis] + reach - (
                size[axis] + before[axis] + after[axis])
            after[axis] += max(0, short)
    if len(size) == 1:
        return Window(kernel=(1, kernel[0]), stride=(1, stride[0]), dilation=(1, dilation[0]),
                      padding=(0, 0, before[0], after[0]))
    return Window(kernel=(kernel[0], kernel[1]), stride=(stride[0], stride[1]),
                  dilation=(dilation[0], dilation[1]),
                  padding=(before[0], after[0], before[1], after[1]))


def _four_axes(weights: np.ndarray) -> np.ndarray:
    return weights[:, :, None, :] if weights.ndim == 3 else weights


def _check_rank(reader: OnnxReader, name: str) -> None:
    if len(reader.shape(name)) not in (3, 4):
        raise UnsupportedError(f"{len(reader.shape(name)) - 2} spatial dimensions")


def _conv(reader: OnnxReader, group: Group) -> None:
    node = group.node
    _check_rank(reader, node.inputs[0])
    shape, kernel = reader.shape(node.inputs[0]), reader.shape(node.inputs[1])
    groups = node.attributes.get("group", 1)
    depthwise = groups > 1 and groups == shape[1]
    order = (1, 2, 3, 0) if depthwise else (0, 2, 3, 1)
    data = reader.data(group, 0, CHANNELS_LAST)
    weights = reader.weights(group, 1, lambda values: _four_axes(values).transpose(order),
                             channel_axis=3 if depthwise else 0)
    inputs = [data, weights]
    if node.input(2):
        inputs.append(reader.bias(node.inputs[2], data, weights))
    reader.emit(group, "depthwise_conv_2d" if depthwise else "conv_2d", inputs, CHANNELS_LAST,
                window=_window(reader, group, kernel[2:]), groups=groups)


def _conv_transpose(reader: OnnxReader, group: Group) -> None:
    node = group.node
    _check_rank(reader, node.inputs[0])
    if node.attributes.get("group", 1) != 1:
        raise UnsupportedError("grouped")
    data = reader.data(group, 0, CHANNELS_LAST)
    weights = reader.weights(group, 1, lambda values: _four_axes(values).transpose(1, 2, 3, 0))
    inputs = [data, weights]
    if node.input(2):
        inputs.append(reader.bias(node.inputs[2], data, weights))
    reader.emit(group, "transpose_conv_2d", inputs, CHANNELS_LAST,
                window=_window(reader, group, reader.shape(node.inputs[1])[2:]))


def _pool(op: str, whole: bool) -> Convert:
    def convert(reader: OnnxReader, group: Group) -> None:
        node = group.node
        _check_rank(reader, node.inputs[0])
        size = reader.shape(node.inputs[0])[2:]
        if whole:
            padded = (1,) * (2 - len(size)) + size
            window = Window(kernel=(padded[0], padded[1]), stride=(padded[0], padded[1]))
        else:
            window = _window(reader, group, tuple(node.attributes["kernel_shape"]))
        data = reader.data(group, 0, CHANNELS_LAST)
        if node.attributes.get("count_include_pad", 0) and any(window.padding):
            reader.emit(group, op, [data], CHANNELS_LAST, window=window, count_include_pad=True)
        else:
            reader.emit(group, op, [data], CHANNELS_LAST, window=window)

    return convert


def _product(reader: OnnxReader, group: Group) -> None:
    """Gemm, and MatMul with constant weights; any other MatMul multiplies two activations."""
    node = group.node
    attributes = node.attributes
    if attributes.get("transA", 0) or any(attributes.get(key, 1.0) != 1.0
                                          for key in ("alpha", "beta")):
        raise UnsupportedError("transA, alpha or beta")
    kernel = reader.shape(node.inputs[1])
    if not reader.is_constant(node.inputs[1]) or len(kernel) != 2:
        inputs = [reader.operand(group, place, PLAIN, len(reader.shape(node.inputs[place])))
                  for place in (0, 1)]
        reader.emit(group, "batch_matmul", inputs, PLAIN, adj_x=False, adj_y=False)
        return
    flat = reader.flattened(node.inputs[0])

    def arrange(values: np.ndarray) -> np.ndarray:
        rows = values if attributes.get("transB", 0) else values.T
        if flat is None:
            return rows
        # The inputs come in height, width, channel order; the file's are channel first.
        order = [axis for axis in stored_axes(1 + len(flat), CHANNELS_LAST) if axis > 0]
        return rows.reshape(len(rows), *flat).transpose(0, *order).reshape(rows.shape)

    data = reader.data(group, 0, PLAIN)
    weights = reader.weights(group, 1, arrange)
    inputs = [data, weights]
    bias = group.bias or node.input(2)
    if bias:
        inputs.append(reader.bias(bias, data, weights))
    reader.emit(group, "fully_connected", inputs, PLAIN)


def _elementwise(op: str) -> Convert:
    def convert(reader: OnnxReader, group: Group) -> None:
        names = group.node.inputs
        if len(names) != 2:
            raise UnsupportedError(f"{len(names)} operands")
        rank = len(reader.shape(group.output))
        computed = [name for name in names if not reader.is_constant(name)]
        last = any(reader.layout(name) == CHANNELS_LAST for name in computed)
        full = all(len(reader.shape(name)) == rank for name in computed)
        layout = CHANNELS_LAST if last and full else PLAIN
        inputs = [reader.operand(group, place, layout, rank) for place in (0, 1)]
        reader.emit(group, op, inputs, layout)

    return convert


def _unary(op: str, **defaults: Any) -> Convert:
    def convert(reader: OnnxReader, group: Group) -> None:
        node = group.node
        layout = reader.layout(node.inputs[0])
        options = {key: node.attributes.get(key, value) for key, value in defaults.items()}
        reader.emit(group, op, [reader.data(group, 0, layout)], layout, **options)

    return convert


def _clip(reader: OnnxReader, group: Group) -> None:
    op = clip_activation(reader.model, group.node)
    if op not in ("relu", "relu6"):
        raise UnsupportedError("bounds other than 0 and 6, or 0 alone")
    _unary(op)(reader, group)


def _softmax(reader: OnnxReader, group: Group) -> None:
    node = group.node
    axis = node.attributes.get("axis", -1 if reader.model.opset >= 13 else 1)
    layout = reader.layout(node.inputs[0])
    rank = len(reader.shape(node.inputs[0]))
    reader.emit(group, "softmax", [reader.data(group, 0, layout)], layout, beta=1.0,
                axis=stored_axis(axis, rank, layout))


def _reduction(op: str) -> Convert:
    def convert(reader: OnnxReader, group: Group) -> None:
        node = group.node
        shape = reader.shape(node.inputs[0])
        rank = len(shape)
        given = reader.integers(node, 1, "axes")
        axes = {axis % rank for axis in (given if given else range(rank))}
        keep = bool(node.attributes.get("keepdims", 1))
        layout = reader.layout(node.inputs[0])
        if layout == CHANNELS_LAST and not keep:
            left = [axis for axis in stored_axes(rank, layout) if axis >= 0 and axis not in axes
                    and shape[axis] > 1]
            if left != sorted(left):
                layout = PLAIN
        stored = tuple(place for place, axis in enumerate(stored_axes(rank, layout))
                       if axis in axes or (axis < 0 and not keep))
        reader.emit(group, op, [reader.data(group, 0, layout)], layout if keep else PLAIN,
                    axes=stored, keep_dims=keep)

    return convert


def _prelu(reader: OnnxReader, group: Group) -> None:
    layout = reader.layout(group.node.inputs[0])
    rank = len(reader.shape(group.output))
    inputs = [reader.operand(group, place, layout, rank) for place in (0, 1)]
    reader.emit(group, "prelu", inputs, layout)


def _resize(reader: OnnxReader, group: Group) -> None:
    node = group.node
    op = {"nearest": "resize_nearest", "linear": "resize_bilinear"}.get(
        node.attributes.get("mode", "nearest"))
    if op is None or len(reader.shape(node.inputs[0])) != 4:
        raise UnsupportedError(f"mode {node.attributes.get('mode')}, "
                               f"{len(reader.shape(node.inputs[0]))} dimensions")
    mode = node.attributes.get("coordinate_transformation_mode",
                               "asymmetric" if node.op == "Upsample" else "half_pixel")
    reader.emit(group, op, [reader.data(group, 0, CHANNELS_LAST)], CHANNELS_LAST,
                align_corners=mode == "align_corners", half_pixel_centers="half_pixel" in mode)


def _recurrent(op: str, gates: tuple[int, ...]) -> Convert:
    def convert(reader: OnnxReader, group: Group) -> None:
        node = group.node
        used = [name for name in node.outputs if name
                and (reader.has_consumers(name) or name in reader.model.outputs)]
        if node.attributes.get("direction", "forward") == "bidirectional":
            raise UnsupportedError("bidirectional")
        if node.input(4) or node.input(7) or "activations" in node.attributes:
            raise UnsupportedError("sequence lengths, peepholes or other activations")
        if not used or set(used) & set(node.outputs[2:]):
            raise UnsupportedError("cell state as an output")

        def arrange(values: np.ndarray) -> np.ndarray:
            # One direction; gates in canonical order, a bias has them twice.
            blocks = values[0].reshape(-1, len(gates), values.shape[1] // len(gates)
                                       // (2 if values.ndim == 2 else 1), *values.shape[2:])
            return blocks[:, list(gates)].reshape(values.shape[1:])

        inputs = [reader.data(group, 0, PLAIN), reader.weights(group, 1, arrange),
                  reader.weights(group, 2, arrange)]
        inputs.append(reader.weights(group, 3, arrange) if node.input(3) else -1)
        for place in (5, 6):
            computed = node.input(place) and not reader.is_constant(node.inputs[place])
            inputs.append(reader.data(group, place, PLAIN) if computed else -1)
        while inputs[-1] == -1:
            inputs.pop()
        reader.emit(group, op, inputs, PLAIN, outputs=used)

    return convert


def _refuse(reason: str) -> Convert:
    def convert(reader: OnnxReader, group: Group) -> None:
        raise UnsupportedError(reason)

    return convert


def _one(convert: Convert) -> Converter:
    return Converter(convert=convert, places=(0,))


def _two(convert: Convert) -> Converter:
    return Converter(convert=convert, places=(0, 1))


CONVERTERS: Mapping[str, Converter] = {
    "Conv": _two(_conv), "ConvTranspose": _two(_conv_transpose),
    "Gemm": _two(_product), "MatMul": _two(_product),
    "AveragePool": _one(_pool("average_pool_2d", whole=False)),
    "MaxPool": _one(_pool("max_pool_2d", whole=False)),
    "GlobalAveragePool": _one(_pool("average_pool_2d", whole=True)),
    "GlobalMaxPool": _one(_pool("max_pool_2d", whole=True)),
    "ReduceMean": _one(_reduction("mean")), "ReduceMax": _one(_reduction("reduce_max")),
    **{name: _two(_elementwise(op)) for name, op in (
        ("Add", "add"), ("Sub", "sub"), ("Mul", "mul"), ("Min", "minimum"), ("Max", "maximum"))},
    "Concat": Converter(convert=convert_concat, places=()), "Split": _one(convert_split),
    "Slice": _one(convert_slice), "Pad": _one(convert_pad),
    **{name: _one(convert_reshape) for name in ("Reshape", "Flatten", "Squeeze", "Unsqueeze")},
    "Transpose": _one(convert_transpose), "Softmax": _one(_softmax),
    "Sigmoid": _one(_unary("logistic")),
    "Tanh": _one(_unary("tanh")), "Relu": _one(_unary("relu")), "Clip": _one(_clip),
    "LeakyRelu": _one(_unary("leaky_relu", alpha=0.01)), "PRelu": _two(_prelu),
    "HardSwish": _one(_unary("hard_swish")), "Resize": _one(_resize), "Upsample": _one(_resize),
    # The file orders LSTM gates input, output, forget, cell.
    "LSTM": Converter(convert=_recurrent("lstm", (0, 2, 3, 1)), places=(0, 1, 2)),
    "GRU": Converter(convert=_recurrent("gru", (0, 1, 2)), places=(0, 1, 2)),
    "BatchNormalization": _one(_refuse("not behind a convolution with constant weights")),
    "HardSigmoid": _one(_refuse("only as the gate of a hard swish")),
}
"""Operators this reads, besides QuantizeLinear and DequantizeLinear."""
