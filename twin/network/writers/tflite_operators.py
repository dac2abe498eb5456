"""Canonical operators as TensorFlow Lite operators: the way back of the reader's converters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from twin.errors import ModelError
from twin.network.graph import Graph, Layer, Quantization, same_padding
from twin.network.operators import Form, list_form
from twin.network.readers.tflite_nodes import ACTIVATIONS, PLAIN

AddConstant = Callable[..., int]
"""(name, values, quantization=None) -> tensor index of a new constant."""
_ACTIVATION_NUMBERS = {name: number for number, name in ACTIVATIONS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """An operator as the schema has it.

    Parameters
    ----------
    builtin : str
        Name in BuiltinOperator.
    inputs, outputs : tuple of int
        Tensor indices of the file.
    table : str or None
        Its options table.
    options : dict
        Fields of the table in snake case.
    """

    builtin: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    table: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


Encoder = Callable[[Graph, Layer, AddConstant], Encoded]


def _encoded(layer: Layer, builtin: str, table: str | None = None,
             inputs: tuple[int, ...] | None = None, **options: Any) -> Encoded:
    return Encoded(builtin=builtin, inputs=layer.inputs if inputs is None else inputs,
                   outputs=layer.outputs, table=table, options=options)


def _same(layer: Layer, inputs: tuple[int, ...] | None = None, **options: Any) -> Encoded:
    """Return an operator the schema has, with its options, under the same name."""
    table = f"{layer.op.title().replace('_', '')}Options"
    return _encoded(layer, layer.op.upper(), table, inputs, **options)


def _int32(values: Any) -> np.ndarray:
    return np.asarray(values, dtype=np.int32)


def _with_constant(layer: Layer, add: AddConstant, what: str, values: Any) -> tuple[int, ...]:
    return (layer.inputs[0], add(f"{layer.name}/{what}", _int32(values)))


def _activation(layer: Layer) -> int:
    return _ACTIVATION_NUMBERS[layer.activation]


def _padding(graph: Graph, layer: Layer, size: tuple[int, ...]) -> int:
    """Return number of SAME or VALID for a window sliding over an input of that size."""
    window = layer.window
    assert window is not None, f"layer {layer.index} has no window"
    same = (*same_padding(size[0], window.kernel[0], window.stride[0], window.dilation[0]),
            *same_padding(size[1], window.kernel[1], window.stride[1], window.dilation[1]))
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
            "fused_activation_function": _activation(layer)}


def _with_bias(graph: Graph, layer: Layer, add: AddConstant) -> tuple[int, ...]:
    """Return inputs of a convolution; one without bias gets zeros, which interpreters insist on."""
    if len(layer.inputs) > 2:
        return layer.inputs
    data, weights, output = (graph.tensors[i] for i in (*layer.inputs, *layer.outputs))
    entry, kernel = data.quantization, weights.quantization
    if entry is None or kernel is None:
        return (*layer.inputs, add(f"{layer.name}/zeros",
                                   np.zeros(output.shape[-1], np.float32)))
    scales = tuple(entry.scales[0] * scale for scale in kernel.scales)
    dtype = np.int64 if data.dtype == "int16" else np.int32
    zeros = add(f"{layer.name}/zeros", np.zeros(output.shape[-1], dtype),
                Quantization(scales=scales, zero_points=(0,) * len(scales),
                             axis=0 if len(scales) > 1 else None))
    return (*layer.inputs, zeros)


def _conv(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    assert layer.window is not None
    size = graph.tensors[layer.inputs[0]].shape[1:3]
    depthwise: dict[str, Any] = {}
    if layer.op == "depthwise_conv_2d":
        depthwise["depth_multiplier"] = graph.tensors[layer.outputs[0]].shape[3] // layer.groups
    return _same(
        layer, _with_bias(graph, layer, add),
        **_window_options(graph, layer, size), **depthwise,
        dilation_w_factor=layer.window.dilation[1], dilation_h_factor=layer.window.dilation[0])


def _transpose_conv(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    shape = graph.tensors[layer.outputs[0]].shape
    data, weights, *bias = layer.inputs
    inputs = (add(f"{layer.name}/shape", _int32(shape)), weights, data, *bias)
    return _encoded(layer, "TRANSPOSE_CONV", "TransposeConvOptions", inputs,
                    **_window_options(graph, layer, shape[1:3]))


def _pool(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    assert layer.window is not None
    size = graph.tensors[layer.inputs[0]].shape[1:3]
    return _encoded(layer, layer.op.upper(), "Pool2DOptions",
                    **_window_options(graph, layer, size),
                    filter_width=layer.window.kernel[1], filter_height=layer.window.kernel[0])


def _fully_connected(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    keep = len(graph.tensors[layer.outputs[0]].shape) > 2
    return _same(layer, keep_num_dims=keep,
                    fused_activation_function=_activation(layer))


def _batch_matmul(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    return _encoded(layer, "BATCH_MATMUL", "BatchMatMulOptions",
                    adj_x=layer.option("adj_x", False), adj_y=layer.option("adj_y", False))


def _elementwise(table: str | None, activated: bool = False) -> Encoder:
    def encode(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
        options: dict[str, Any] = {}
        if activated:
            options["fused_activation_function"] = _activation(layer)
        return _encoded(layer, layer.op.upper(), table, **options)

    return encode


def _reduction(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    inputs = _with_constant(layer, add, "axes", layer.option("axes"))
    return _encoded(layer, layer.op.upper(), "ReducerOptions", inputs,
                    keep_dims=layer.option("keep_dims", False))


def _concatenation(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    return _same(layer, axis=layer.option("axis"),
                    fused_activation_function=_activation(layer))


def _split(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    axis = layer.option("axis")
    lengths = [graph.tensors[i].shape[axis] for i in layer.outputs]
    inputs = (layer.inputs[0], add(f"{layer.name}/lengths", _int32(lengths)),
              add(f"{layer.name}/axis", _int32(axis)))
    return _encoded(layer, "SPLIT_V", "SplitVOptions", inputs, num_splits=len(lengths))


def _slice(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    begin, strides = layer.option("begin"), layer.option("strides")
    source = graph.tensors[layer.inputs[0]].shape
    output = graph.tensors[layer.outputs[0]].shape
    boxed = set(strides) == {1} and not layer.option("strided", False)
    if boxed and len(output) == len(source):
        inputs = (layer.inputs[0], add(f"{layer.name}/begin", _int32(begin)),
                  add(f"{layer.name}/size", _int32(output)))
        return _same(layer, inputs)
    if len(output) != len(source) or min(strides) < 1:
        raise ModelError(f"{graph.name}: layer {layer.index} slice {layer.name!r}: only slices "
                         "that step forward and keep every dimension can be written as .tflite")
    end = [start + (size - 1) * stride + 1
           for start, size, stride in zip(begin, output, strides, strict=True)]
    parts = (("begin", begin), ("end", end), ("strides", strides))
    added = [add(f"{layer.name}/{what}", _int32(values)) for what, values in parts]
    return _encoded(layer, "STRIDED_SLICE", "StridedSliceOptions", (layer.inputs[0], *added))


def _pad(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    inputs = _with_constant(layer, add, "paddings", layer.option("paddings"))
    if layer.option("mode", "constant") != "constant":
        return _encoded(layer, "MIRROR_PAD", "MirrorPadOptions", inputs)
    value = layer.option("value", 0.0)
    if value:
        constant = np.asarray(value, graph.tensors[layer.inputs[0]].dtype)
        return _encoded(layer, "PADV2", "PadV2Options",
                        (*inputs, add(f"{layer.name}/value", constant)))
    return _same(layer, inputs)


def _reshape(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    shape = graph.tensors[layer.outputs[0]].shape
    return _same(layer, _with_constant(layer, add, "shape", shape), new_shape=shape)


def _transpose(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    inputs = _with_constant(layer, add, "perm", layer.option("perm"))
    return _same(layer, inputs)


def _softmax(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    rank = len(graph.tensors[layer.inputs[0]].shape)
    if layer.option("axis", rank - 1) != rank - 1:
        raise ModelError(f"{graph.name}: layer {layer.index} softmax {layer.name!r}: .tflite has "
                         "softmax over the last axis only")
    return _same(layer, beta=layer.option("beta", 1.0))


def _leaky_relu(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    return _same(layer, alpha=layer.option("alpha"))


def _resize(builtin: str, table: str) -> Encoder:
    def encode(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
        size = graph.tensors[layer.outputs[0]].shape[1:3]
        return _encoded(layer, builtin, table, _with_constant(layer, add, "size", size),
                        align_corners=layer.option("align_corners", False),
                        half_pixel_centers=layer.option("half_pixel_centers", False))

    return encode


def _along(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    """Encode an operator along one axis that its options name."""
    options: dict[str, Any] = {"pack": {"values_count": len(layer.inputs)},
                               "unpack": {"num": len(layer.outputs)}}.get(layer.op, {})
    return _same(layer, axis=layer.option("axis"), **options)


def _choice(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    wide = graph.tensors[layer.outputs[0]].dtype == "int64"
    inputs = _with_constant(layer, add, "axis", layer.option("axis"))
    return _same(layer, inputs, output_type=4 if wide else 2)


def _blocks(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    if layer.option("order", "dcr") != "dcr":
        raise ModelError(f"{graph.name}: layer {layer.index} {layer.op} {layer.name!r}: .tflite "
                         "splits blocks before channels")
    return _same(layer, block_size=layer.option("block"))


def _repetition(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    source, made = (graph.tensors[i].shape for i in (layer.inputs[0], layer.outputs[0]))
    if layer.op == "broadcast_to":
        return _same(layer, _with_constant(layer, add, "shape", made))
    times = [size // before for size, before in zip(made, source, strict=True)]
    return _same(layer, _with_constant(layer, add, "times", times))


def _svdf(graph: Graph, layer: Layer, add: AddConstant) -> Encoded:
    return _encoded(layer, "SVDF", "SVDFOptions", rank=layer.option("rank"),
                    fused_activation_function=_activation(layer))


ENCODERS: Mapping[str, Encoder] = {
    "conv_2d": _conv, "depthwise_conv_2d": _conv, "transpose_conv_2d": _transpose_conv,
    "average_pool_2d": _pool, "max_pool_2d": _pool,
    "fully_connected": _fully_connected, "batch_matmul": _batch_matmul,
    **{op: _elementwise(f"{op.capitalize()}Options", activated=True)
       for op in ("add", "sub", "mul", "div")},
    **{op: _elementwise(table) for op, table in PLAIN.items()},
    "select": lambda graph, layer, add: _encoded(layer, "SELECT_V2"),
    **dict.fromkeys(list_form(Form.REDUCE), _reduction),
    "concatenation": _concatenation, "arg_max": _choice, "arg_min": _choice,
    "pack": _along, "unpack": _along, "gather": _along,
    "space_to_depth": _blocks, "depth_to_space": _blocks,
    "tile": _repetition, "broadcast_to": _repetition,
    "split": _split, "slice": _slice, "pad": _pad, "reshape": _reshape, "transpose": _transpose,
    "softmax": _softmax, "leaky_relu": _leaky_relu, "svdf": _svdf,
    "resize_nearest": _resize("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
    "resize_bilinear": _resize("RESIZE_BILINEAR", "ResizeBilinearOptions"),
}
"""Canonical operators this writes."""
