"""ONNX operators to canonical ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from hwmodels.frozen import frozen
from twin.network.graph import Window, same_padding
from twin.network.readers.onnx_fusion import Group, clip_activation, clip_bounds
from twin.network.readers.onnx_layout import CHANNELS_LAST, PLAIN, stored_axes, stored_axis
from twin.network.readers.onnx_movement import (
    convert_blocks,
    convert_concat,
    convert_gather,
    convert_identity,
    convert_pad,
    convert_repetition,
    convert_reshape,
    convert_scattered,
    convert_slice,
    convert_split,
    convert_transpose,
)
from twin.network.readers.onnx_recurrent import convert_recurrent
from twin.network.readers.onnx_rows import RESIZES, ROWS
from twin.network.readers.onnx_values import OnnxReader
from twin.network.readers.refusal import UnsupportedError

Convert = Callable[[OnnxReader, Group], None]


@frozen
class Converter:
    """How one operator becomes a layer.

    Parameters
    ----------
    convert
        (reader, group) -> None; emits layers.
    places
        Inputs that must be dequantised integers for the layer to be an integer one; empty: all.
    """

    convert: Convert
    places: tuple[int, ...]


def _window(reader: OnnxReader, group: Group, kernel: tuple[int, ...]) -> Window:
    """Window of a convolution or pooling; signals slide along their length only."""
    node = group.node
    size = reader.shape(node.source)[2:]
    made = reader.shape(group.output)[2:]
    ones = (1,) * len(size)
    stride = tuple(node.option("strides", ones))
    dilation = tuple(node.option("dilations", ones))
    pads = list(node.option("pads", (0,) * 2 * len(size)))
    before, after = pads[:len(size)], pads[len(size):]
    mode = node.option("auto_pad", "NOTSET")
    for axis in range(len(size)):
        if mode.startswith("SAME"):
            pair = same_padding(size[axis], kernel[axis], stride[axis], dilation[axis])
            before[axis], after[axis] = pair if mode == "SAME_UPPER" else pair[::-1]
        if node.option("ceil_mode", 0):
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
    shape = reader.shape(name)
    if len(shape) not in (3, 4):
        raise UnsupportedError(f"{len(shape) - 2} spatial dimensions")
    batches = {1, *(size for one in reader.model.inputs for size in reader.shape(one)[:1])}
    if shape[0] not in batches:
        raise UnsupportedError(f"a batch of {shape[0]}; export the model with batch 1")


def _conv(reader: OnnxReader, group: Group) -> None:
    node = group.node
    _check_rank(reader, node.source)
    shape, kernel = reader.shape(node.source), reader.shape(node.inputs[1])
    groups = node.option("group", 1)
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
    _check_rank(reader, node.source)
    if node.option("group", 1) != 1:
        raise UnsupportedError("grouped")
    data = reader.data(group, 0, CHANNELS_LAST)
    weights = reader.weights(group, 1, lambda values: _four_axes(values).transpose(1, 2, 3, 0))
    inputs = [data, weights]
    if node.input(2):
        inputs.append(reader.bias(node.inputs[2], data, weights))
    reader.emit(group, "transpose_conv_2d", inputs, CHANNELS_LAST,
                window=_window(reader, group, reader.shape(node.inputs[1])[2:]))


def _pool(op: str, whole: bool = False) -> Convert:
    def convert(reader: OnnxReader, group: Group) -> None:
        node = group.node
        _check_rank(reader, node.source)
        size = reader.shape(node.source)[2:]
        if whole:
            padded = (1,) * (2 - len(size)) + size
            window = Window(kernel=(padded[0], padded[1]), stride=(padded[0], padded[1]))
        else:
            window = _window(reader, group, tuple(node.attributes["kernel_shape"]))
        data = reader.data(group, 0, CHANNELS_LAST)
        if node.option("count_include_pad", 0) and any(window.padding):
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
    flat = reader.flattened(node.source)

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


def _elementwise(op: str, operands: int = 2) -> Convert:
    def convert(reader: OnnxReader, group: Group) -> None:
        names = group.node.inputs
        if len(names) != operands:
            raise UnsupportedError(f"{len(names)} operands")
        rank = len(reader.shape(group.output))
        computed = [name for name in names if not reader.is_constant(name)]
        last = any(reader.layout(name) == CHANNELS_LAST for name in computed)
        full = all(len(reader.shape(name)) == rank for name in computed)
        layout = CHANNELS_LAST if last and full else PLAIN
        inputs = [reader.operand(group, place, layout, rank) for place in range(operands)]
        reader.emit(group, op, inputs, layout)

    return convert


def _power(reader: OnnxReader, group: Group) -> None:
    """Pow: a square or a root where the exponent is one."""
    exponent = reader.constant(group.node.inputs[1])
    value = None if exponent is None or exponent.size != 1 else float(exponent.reshape(-1)[0])
    op = {2.0: "square", 0.5: "sqrt"}.get(value or 0.0)
    if op is None or group.quantised:
        _elementwise("pow")(reader, group)
    else:
        _unary(op)(reader, group)


def _unary(op: str, **defaults: Any) -> Convert:
    def convert(reader: OnnxReader, group: Group) -> None:
        node = group.node
        layout = reader.layout(node.source)
        options = {key: node.option(key, value) for key, value in defaults.items()}
        reader.emit(group, op, [reader.data(group, 0, layout)], layout, **options)

    return convert


def _cast(reader: OnnxReader, group: Group) -> None:
    """Cast: nothing where the type stays."""
    name = group.node.source
    if reader.model.dtypes[name] == reader.model.dtypes[group.output]:
        convert_identity(reader, group)
    else:
        _unary("cast")(reader, group)


def _clip(reader: OnnxReader, group: Group) -> None:
    op = clip_activation(reader.model, group.node)
    layout = reader.layout(group.node.source)
    data = [reader.data(group, 0, layout)]
    if op in ("relu", "relu6"):
        reader.emit(group, op, data, layout)
        return
    bounds = zip(("low", "high"), clip_bounds(reader.model, group.node), strict=True)
    options: dict[str, Any] = {name: value for name, value in bounds if value is not None}
    reader.emit(group, "clip", data, layout, **options)


def _softmax(op: str) -> Convert:
    def convert(reader: OnnxReader, group: Group) -> None:
        node = group.node
        axis = node.option("axis", -1 if reader.model.opset >= 13 else 1)
        layout = reader.layout(node.source)
        rank = len(reader.shape(node.source))
        options: dict[str, Any] = {"beta": 1.0} if op == "softmax" else {}
        reader.emit(group, op, [reader.data(group, 0, layout)], layout,
                    axis=stored_axis(axis, rank, layout), **options)

    return convert


def _kept_layout(reader: OnnxReader, name: str, axes: set[int], keep: bool) -> str:
    """Layout in which the axes that stay are in the file's order, if some are dropped."""
    shape, layout = reader.shape(name), reader.layout(name)
    if layout == PLAIN or keep:
        return layout
    left = [axis for axis in stored_axes(len(shape), layout)
            if axis >= 0 and axis not in axes and shape[axis] > 1]
    return layout if left == sorted(left) else PLAIN


def _reduction(op: str) -> Convert:
    def convert(reader: OnnxReader, group: Group) -> None:
        node = group.node
        rank = len(reader.shape(node.source))
        given = reader.integers(node, 1, "axes")
        if not given and node.option("noop_with_empty_axes", 0):
            convert_identity(reader, group)
            return
        axes = {axis % rank for axis in (given if given else range(rank))}
        keep = bool(node.option("keepdims", 1))
        layout = _kept_layout(reader, node.source, axes, keep)
        stored = tuple(place for place, axis in enumerate(stored_axes(rank, layout))
                       if axis in axes or (axis < 0 and not keep))
        reader.emit(group, op, [reader.data(group, 0, layout)], layout if keep else PLAIN,
                    axes=stored, keep_dims=keep)

    return convert


def _choice(op: str) -> Convert:
    def convert(reader: OnnxReader, group: Group) -> None:
        node = group.node
        rank = len(reader.shape(node.source))
        axis = node.option("axis", 0) % rank
        keep = bool(node.option("keepdims", 1))
        layout = _kept_layout(reader, node.source, {axis}, keep)
        reader.emit(group, op, [reader.data(group, 0, layout)], layout if keep else PLAIN,
                    axis=stored_axis(axis, rank, layout))

    return convert


def _top(reader: OnnxReader, group: Group) -> None:
    """TopK: values and places, whichever are read."""
    node = group.node
    layout = reader.layout(node.source)
    rank = len(reader.shape(node.source))
    used = [name for name in node.outputs if name
            and (reader.has_consumers(name) or name in reader.model.outputs)]
    reader.emit(group, "top_k", [reader.data(group, 0, layout)], layout, outputs=used,
                axis=stored_axis(node.option("axis", -1), rank, layout))


def _suppression(reader: OnnxReader, group: Group) -> None:
    """NonMaxSuppression of boxes by their scores."""
    inputs = [reader.data(group, place, PLAIN) for place in (0, 1)]
    reader.emit(group, "non_max_suppression", inputs, PLAIN)


def _prelu(reader: OnnxReader, group: Group) -> None:
    layout = reader.layout(group.node.source)
    rank = len(reader.shape(group.output))
    inputs = [reader.operand(group, place, layout, rank) for place in (0, 1)]
    reader.emit(group, "prelu", inputs, layout)


def _resize(reader: OnnxReader, group: Group) -> None:
    node = group.node
    op = RESIZES.get(node.option("mode", "nearest"))
    shape = reader.shape(node.source)
    if op is None or len(shape) not in (3, 4) or shape[:2] != reader.shape(group.output)[:2]:
        raise UnsupportedError(f"mode {node.option('mode', 'nearest')}, "
                               f"{len(shape)} dimensions")
    mode = node.option("coordinate_transformation_mode",
                               "asymmetric" if node.op == "Upsample" else "half_pixel")
    reader.emit(group, op, [reader.data(group, 0, CHANNELS_LAST)], CHANNELS_LAST,
                align_corners=mode == "align_corners", half_pixel_centers="half_pixel" in mode)


def _refuse(reason: str) -> Convert:
    def convert(reader: OnnxReader, group: Group) -> None:
        raise UnsupportedError(reason)

    return convert


def _one(convert: Convert) -> Converter:
    return Converter(convert=convert, places=(0,))


def _two(convert: Convert) -> Converter:
    return Converter(convert=convert, places=(0, 1))


_FAMILIES: Mapping[str, Callable[..., Convert]] = {
    "pool": _pool, "reduction": _reduction, "choice": _choice, "pair": _elementwise,
    "unary": _unary}

CONVERTERS: Mapping[str, Converter] = {
    **{row.name: (_two if row.family == "pair" else _one)(
        _FAMILIES[row.family](row.op, **row.attributes)) for row in ROWS},
    "Conv": _two(_conv), "ConvTranspose": _two(_conv_transpose),
    "Gemm": _two(_product), "MatMul": _two(_product),
    "GlobalAveragePool": _one(_pool("average_pool_2d", whole=True)),
    "GlobalMaxPool": _one(_pool("max_pool_2d", whole=True)),
    "Pow": Converter(convert=_power, places=(0,)),
    "Where": Converter(convert=_elementwise("select", 3), places=(1, 2)),
    "Concat": Converter(convert=convert_concat, places=()), "Split": _one(convert_split),
    "Slice": _one(convert_slice), "Pad": _one(convert_pad), "Gather": _one(convert_gather),
    **{name: _one(partial(convert_repetition, op=op)) for name, op in (
        ("Tile", "tile"), ("Expand", "broadcast_to"))},
    **{name: _one(partial(convert_scattered, op=op)) for name, op in (
        ("GatherElements", "gather_nd"), ("GatherND", "gather_nd"),
        ("ScatterElements", "scatter_nd"), ("ScatterND", "scatter_nd"))},
    "DepthToSpace": _one(partial(convert_blocks, op="depth_to_space")),
    "SpaceToDepth": _one(partial(convert_blocks, op="space_to_depth")),
    **{name: _one(convert_reshape) for name in ("Reshape", "Flatten", "Squeeze", "Unsqueeze")},
    "Transpose": _one(convert_transpose), "Softmax": _one(_softmax("softmax")),
    "LogSoftmax": _one(_softmax("log_softmax")), "Cast": _one(_cast),
    **{name: _one(convert_identity) for name in ("Identity", "Dropout")},
    "Clip": _one(_clip),
    "PRelu": _two(_prelu),
    "Resize": _one(_resize), "Upsample": _one(_resize), "TopK": _one(_top),
    "NonMaxSuppression": _two(_suppression),
    # The file orders LSTM gates input, output, forget, cell.
    "LSTM": Converter(convert=convert_recurrent("lstm", (0, 2, 3, 1)), places=(0, 1, 2)),
    "GRU": Converter(convert=convert_recurrent("gru", (0, 1, 2)), places=(0, 1, 2)),
    "RNN": Converter(convert=convert_recurrent("rnn", (0,)), places=(0, 1, 2)),
    "BatchNormalization": _one(_refuse("not behind a convolution with constant weights")),
}
"""Operators this reads, besides QuantizeLinear and DequantizeLinear."""
