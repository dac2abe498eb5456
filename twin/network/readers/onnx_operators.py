"""ONNX operators to canonical ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from hwmodels.frozen import frozen
from twin.network.graph import Options, Window, options_of_reduction, same_padding
from twin.network.readers.onnx_fusion import clip_activation, clip_bounds
from twin.network.readers.onnx_layout import CHANNELS_LAST, PLAIN, stored_axes
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
from twin.network.readers.onnx_reader import OnnxReader
from twin.network.readers.onnx_recurrent import convert_recurrent
from twin.network.readers.onnx_rows import RESIZES, ROWS
from twin.network.readers.refusal import UnsupportedError

Convert = Callable[[OnnxReader], None]


@frozen
class Converter:
    """How one operator becomes a layer.

    Parameters
    ----------
    convert
        (reader) -> None; emits layers of `reader.group`.
    places
        Inputs that must be dequantised integers for the layer to be an integer one; empty: all.
    """

    convert: Convert
    places: tuple[int, ...]


def _window(reader: OnnxReader, kernel: tuple[int, ...]) -> Window:
    """Window of a convolution or pooling; signals slide along their length only."""
    node = reader.node
    size, made = reader.source_shape[2:], reader.result_shape[2:]
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


def _check_rank(reader: OnnxReader) -> None:
    shape = reader.source_shape
    if len(shape) not in (3, 4):
        raise UnsupportedError(f"{len(shape) - 2} spatial dimensions")
    batches = {1, *(size for one in reader.model.inputs for size in reader.shape(one)[:1])}
    if shape[0] not in batches:
        raise UnsupportedError(f"a batch of {shape[0]}; export the model with batch 1")


def _conv(reader: OnnxReader) -> None:
    _check_rank(reader)
    groups = reader.node.option("group", 1)
    depthwise = groups > 1 and groups == reader.source_shape[1]
    order = (1, 2, 3, 0) if depthwise else (0, 2, 3, 1)
    inputs = reader.weighted(CHANNELS_LAST, lambda values: _four_axes(values).transpose(order),
                             channel_axis=3 if depthwise else 0)
    reader.emit("depthwise_conv_2d" if depthwise else "conv_2d", inputs, CHANNELS_LAST,
                window=_window(reader, reader.kernel_shape[2:]), groups=groups)


def _conv_transpose(reader: OnnxReader) -> None:
    _check_rank(reader)
    if reader.node.option("group", 1) != 1:
        raise UnsupportedError("grouped")
    inputs = reader.weighted(CHANNELS_LAST, lambda values: _four_axes(values).transpose(1, 2, 3, 0))
    reader.emit("transpose_conv_2d", inputs, CHANNELS_LAST,
                window=_window(reader, reader.kernel_shape[2:]))


def _pool(reader: OnnxReader, op: str, whole: bool = False) -> None:
    node = reader.node
    _check_rank(reader)
    size = reader.source_shape[2:]
    if whole:
        padded = (1,) * (2 - len(size)) + size
        window = Window(kernel=(padded[0], padded[1]), stride=(padded[0], padded[1]))
    else:
        window = _window(reader, tuple(node.attributes["kernel_shape"]))
    counted = node.option("count_include_pad", 0) and any(window.padding)
    options: Options = {"count_include_pad": True} if counted else {}
    reader.emit(op, [reader.data(CHANNELS_LAST)], CHANNELS_LAST, window=window, **options)


def _product(reader: OnnxReader) -> None:
    """Gemm, and MatMul with constant weights; any other MatMul multiplies two activations."""
    node = reader.node
    attributes = node.attributes
    if attributes.get("transA", 0) or any(attributes.get(key, 1.0) != 1.0
                                          for key in ("alpha", "beta")):
        raise UnsupportedError("transA, alpha or beta")
    if not reader.is_constant(node.inputs[1]) or len(reader.kernel_shape) != 2:
        inputs = [reader.operand(place, PLAIN, len(reader.shape(node.inputs[place])))
                  for place in (0, 1)]
        reader.emit("batch_matmul", inputs, PLAIN, adj_x=False, adj_y=False)
        return
    flat = reader.flattened(node.source)

    def arrange(values: np.ndarray) -> np.ndarray:
        rows = values if attributes.get("transB", 0) else values.T
        if flat is None:
            return rows
        # The inputs come in height, width, channel order; the file's are channel first.
        order = [axis for axis in stored_axes(1 + len(flat), CHANNELS_LAST) if axis > 0]
        return rows.reshape(len(rows), *flat).transpose(0, *order).reshape(rows.shape)

    reader.emit("fully_connected", reader.weighted(PLAIN, arrange), PLAIN)


def _elementwise(reader: OnnxReader, op: str, operands: int = 2) -> None:
    if len(reader.node.inputs) != operands:
        raise UnsupportedError(f"{len(reader.node.inputs)} operands")
    reader.emit(op, *reader.operands())


def _power(reader: OnnxReader) -> None:
    """Pow: a square or a root where the exponent is one."""
    exponent = reader.constant(reader.node.inputs[1])
    value = None if exponent is None or exponent.size != 1 else float(exponent.reshape(-1)[0])
    op = {2.0: "square", 0.5: "sqrt"}.get(value or 0.0)
    if op is None or reader.group.quantised:
        _elementwise(reader, "pow")
    else:
        _unary(reader, op)


def _unary(reader: OnnxReader, op: str, **defaults: Any) -> None:
    layout = reader.source_layout
    options = {key: reader.node.option(key, value) for key, value in defaults.items()}
    reader.emit(op, [reader.data(layout)], layout, **options)


def _cast(reader: OnnxReader) -> None:
    """Cast: nothing where the type stays."""
    name = reader.node.source
    if reader.model.dtypes[name] == reader.model.dtypes[reader.group.output]:
        convert_identity(reader)
    else:
        _unary(reader, "cast")


def _clip(reader: OnnxReader) -> None:
    op = clip_activation(reader.model, reader.node)
    layout = reader.source_layout
    data = [reader.data(layout)]
    if op in ("relu", "relu6"):
        reader.emit(op, data, layout)
        return
    bounds = zip(("low", "high"), clip_bounds(reader.model, reader.node), strict=True)
    options: Options = {name: value for name, value in bounds if value is not None}
    reader.emit("clip", data, layout, **options)


def _softmax(reader: OnnxReader, op: str) -> None:
    axis = reader.node.option("axis", -1 if reader.model.opset >= 13 else 1)
    layout = reader.source_layout
    options: Options = {"beta": 1.0} if op == "softmax" else {}
    reader.emit(op, [reader.data(layout)], layout, axis=reader.stored_axis(axis, layout), **options)


def _kept_layout(reader: OnnxReader, axes: set[int], keep: bool) -> str:
    """Layout in which the axes that stay are in the file's order, if some are dropped."""
    shape, layout = reader.source_shape, reader.source_layout
    if layout == PLAIN or keep:
        return layout
    left = [axis for axis in stored_axes(len(shape), layout)
            if axis >= 0 and axis not in axes and shape[axis] > 1]
    return layout if left == sorted(left) else PLAIN


def _reduction(reader: OnnxReader, op: str) -> None:
    rank, node = reader.rank, reader.node
    given = reader.integers(1, "axes")
    if not given and node.option("noop_with_empty_axes", 0):
        convert_identity(reader)
        return
    axes = {axis % rank for axis in (given or range(rank))}
    keep = bool(node.option("keepdims", 1))
    layout = _kept_layout(reader, axes, keep)
    reader.emit(op, [reader.data(layout)], layout if keep else PLAIN,
                **options_of_reduction(stored_axes(rank, layout), axes, keep))


def _choice(reader: OnnxReader, op: str) -> None:
    axis = reader.node.option("axis", 0) % reader.rank
    keep = bool(reader.node.option("keepdims", 1))
    layout = _kept_layout(reader, {axis}, keep)
    reader.emit(op, [reader.data(layout)], layout if keep else PLAIN,
                axis=reader.stored_axis(axis, layout))


def _top(reader: OnnxReader) -> None:
    """TopK: values and places, whichever are read."""
    layout = reader.source_layout
    reader.emit("top_k", [reader.data(layout)], layout, outputs=reader.read_results(),
                axis=reader.stored_axis(reader.node.option("axis", -1), layout))


def _suppression(reader: OnnxReader) -> None:
    """NonMaxSuppression of boxes by their scores."""
    reader.emit("non_max_suppression", [reader.data(PLAIN), reader.data(PLAIN, 1)], PLAIN)


def _prelu(reader: OnnxReader) -> None:
    layout = reader.source_layout
    inputs = [reader.operand(place, layout, len(reader.result_shape)) for place in (0, 1)]
    reader.emit("prelu", inputs, layout)


def _resize(reader: OnnxReader) -> None:
    node = reader.node
    op = RESIZES.get(node.option("mode", "nearest"))
    shape = reader.source_shape
    if op is None or len(shape) not in (3, 4) or shape[:2] != reader.result_shape[:2]:
        raise UnsupportedError(f"mode {node.option('mode', 'nearest')}, {len(shape)} dimensions")
    mode = node.option("coordinate_transformation_mode",
                       "asymmetric" if node.op == "Upsample" else "half_pixel")
    reader.emit(op, [reader.data(CHANNELS_LAST)], CHANNELS_LAST,
                align_corners=mode == "align_corners", half_pixel_centers="half_pixel" in mode)


def _refuse(reader: OnnxReader) -> None:
    raise UnsupportedError("not behind a convolution with constant weights")


def _one(convert: Convert) -> Converter:
    return Converter(convert=convert, places=(0,))


def _two(convert: Convert) -> Converter:
    return Converter(convert=convert, places=(0, 1))


_FAMILIES: Mapping[str, Callable[..., None]] = {
    "pool": _pool, "reduction": _reduction, "choice": _choice, "pair": _elementwise,
    "unary": _unary}

CONVERTERS: Mapping[str, Converter] = {
    **{row.name: (_two if row.family == "pair" else _one)(
        partial(_FAMILIES[row.family], op=row.op, **row.attributes)) for row in ROWS},
    "Conv": _two(_conv), "ConvTranspose": _two(_conv_transpose),
    "Gemm": _two(_product), "MatMul": _two(_product),
    "GlobalAveragePool": _one(partial(_pool, op="average_pool_2d", whole=True)),
    "GlobalMaxPool": _one(partial(_pool, op="max_pool_2d", whole=True)),
    "Pow": Converter(convert=_power, places=(0,)),
    "Where": Converter(convert=partial(_elementwise, op="select", operands=3), places=(1, 2)),
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
    "Transpose": _one(convert_transpose), "Softmax": _one(partial(_softmax, op="softmax")),
    "LogSoftmax": _one(partial(_softmax, op="log_softmax")), "Cast": _one(_cast),
    **{name: _one(convert_identity) for name in ("Identity", "Dropout")},
    "Clip": _one(_clip),
    "PRelu": _two(_prelu),
    "Resize": _one(_resize), "Upsample": _one(_resize), "TopK": _one(_top),
    "NonMaxSuppression": _two(_suppression),
    # The file orders LSTM gates input, output, forget, cell.
    **{name: Converter(convert=partial(convert_recurrent, op=name.lower(), gates=gates),
                       places=(0, 1, 2)) for name, gates in (
        ("LSTM", (0, 2, 3, 1)), ("GRU", (0, 1, 2)), ("RNN", (0,)))},
    "BatchNormalization": _one(_refuse),
}
"""Operators this reads, besides QuantizeLinear and DequantizeLinear."""
