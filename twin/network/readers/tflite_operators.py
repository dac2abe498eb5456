"""TensorFlow Lite operators to canonical ones: inputs, windows and options.

Shapes, axes and amounts that the file keeps as constant tensors become options; see
`twin.network.operators.OPERATORS` for the canonical forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twin.errors import ModelError
from twin.network.graph import Layer, Options, RowsColumns, Shape, Window
from twin.network.operators import OPERATORS
from twin.network.readers.refusal import UnsupportedError
from twin.network.readers.tflite_nodes import Converter, Node, plain
from twin.network.readers.tflite_nodes import data_all as _all
from twin.network.readers.tflite_nodes import data_first as _one
from twin.network.readers.tflite_rare import RARE
from twin.network.readers.tflite_recurrent import RECURRENT
from twin.network.readers.tflite_rows import list_converters


def _window(node: Node, kernel: RowsColumns, over: Shape, options: Any,
            dilation: RowsColumns = (1, 1)) -> Window:
    stride = (options.StrideH(), options.StrideW())
    if min(*kernel, *stride, *dilation) < 1:
        raise ModelError(f"{node.place}: kernel {kernel}, stride {stride}, dilation {dilation}")
    window = Window(kernel=kernel, stride=stride, dilation=dilation)
    same = options.Padding() == 0 and len(over) == 4
    return window.pad_same(*over[1:3]) if same else window


def _kernel(node: Node, data: Shape) -> RowsColumns:
    weights = node.shape(1)
    if len(weights) != 4 or len(data) != 4:
        raise ModelError(f"{node.place}: data {data} and weights {weights}; both need four "
                         "dimensions")
    return weights[1], weights[2]


def _pairs(node: Node, place: int) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, node.values(place).reshape(-1, 2).astype(int).tolist()))


def _conv(node: Node) -> Layer:
    traits = OPERATORS[node.builtin.lower()]
    options = node.options("DepthwiseConv2DOptions" if traits.is_depthwise else "Conv2DOptions")
    dilation = (options.DilationHFactor(), options.DilationWFactor())
    window = _window(node, _kernel(node, node.shape(0)), node.shape(0), options, dilation)
    each = 1 if traits.is_depthwise else node.shape(1)[3]
    return node.layer(traits.name, window=window, groups=max(1, node.shape(0)[3] // each),
                      activation=node.activation(options.FusedActivationFunction()))


def _transpose_conv(node: Node) -> Layer:
    options = node.options("TransposeConvOptions")
    window = _window(node, _kernel(node, node.shape(2)), node.tensor(node.outputs[0]).shape,
                     options)
    return node.layer("transpose_conv_2d", (node.input(2), node.input(1), *node.inputs[3:4]),
                      window=window, activation=node.activation(options.FusedActivationFunction()))


def _pool(node: Node) -> Layer:
    options = node.options("Pool2DOptions")
    if len(node.shape(0)) != 4:
        raise ModelError(f"{node.place}: data of shape {node.shape(0)}; four dimensions "
                         "are needed")
    window = _window(node, (options.FilterHeight(), options.FilterWidth()), node.shape(0), options)
    return node.layer(node.builtin.lower(), window=window,
                      activation=node.activation(options.FusedActivationFunction()))


def _split(node: Node) -> Layer:
    data, stated = (1, 0) if node.builtin == "SPLIT" else (0, 2)
    (axis,) = node.axes(stated, len(node.shape(data)))
    return node.layer("split", (node.input(data),), axis=axis)


def _slice(node: Node) -> Layer:
    begin = node.integers(1)
    return node.layer("slice", node.inputs[:1], begin=begin, strides=(1,) * len(begin))


def _strided_slice(node: Node) -> Layer:
    options = node.options("StridedSliceOptions")
    if options.EllipsisMask() or options.NewAxisMask():
        raise UnsupportedError("ellipsis or new axis")
    shape, strides = node.shape(0), node.integers(3)
    begin = []
    for axis, (start, stride) in enumerate(zip(node.integers(1), strides, strict=True)):
        if options.BeginMask() >> axis & 1:
            start = 0 if stride > 0 else shape[axis] - 1
        begin.append(start % shape[axis])
    rest = len(shape) - len(begin)
    # Another operator of the file than SLICE, even where its strides are one.
    flag: Options = {"strided": True} if set(strides) == {1} else {}
    return node.layer("slice", node.inputs[:1], begin=(*begin, *(0,) * rest),
                      strides=(*strides, *(1,) * rest), **flag)


def _pad(node: Node) -> Layer:
    value = float(node.values(2).reshape(-1)[0]) if len(node.inputs) > 2 else 0.0
    mode = "mirror" if node.builtin == "MIRROR_PAD" else "constant"
    return node.layer("pad", node.inputs[:1], mode=mode, value=value, paddings=_pairs(node, 1))


def _reshape(node: Node) -> Layer:
    return node.layer("reshape", node.inputs[:1], of=node.builtin.lower())


def _softmax(node: Node) -> Layer:
    beta = round(node.options("SoftmaxOptions").Beta(), 9)
    return node.layer("softmax", axis=len(node.shape(0)) - 1, beta=beta)


def _batches(node: Node) -> Layer:
    name = "paddings" if node.builtin == "SPACE_TO_BATCH_ND" else "crops"
    amounts: Options = {name: _pairs(node, 2)}
    return node.layer(node.builtin.lower(), node.inputs[:1], block=node.integers(1), **amounts)


CONVERTERS: Mapping[str, Converter] = {
    **list_converters(),
    "CONV_2D": _all(_conv), "DEPTHWISE_CONV_2D": _all(_conv),
    "TRANSPOSE_CONV": Converter(convert=_transpose_conv, data=(1, 2, 3)),
    "AVERAGE_POOL_2D": _one(_pool), "MAX_POOL_2D": _one(_pool),
    "SPLIT": Converter(convert=_split, data=(1,)), "SPLIT_V": _one(_split),
    "SLICE": _one(_slice), "STRIDED_SLICE": _one(_strided_slice),
    "PAD": _one(_pad), "PADV2": _one(_pad),
    "MIRROR_PAD": _one(_pad), "SQUEEZE": _one(_reshape), "EXPAND_DIMS": _one(_reshape),
    "SOFTMAX": _one(_softmax), "L2_NORMALIZATION": _one(plain("l2_normalization")),
    "SELECT": _all(plain("select")),
    "SPACE_TO_BATCH_ND": _one(_batches), "BATCH_TO_SPACE_ND": _one(_batches), **RECURRENT, **RARE,
}
"""Builtin operators this reads."""
