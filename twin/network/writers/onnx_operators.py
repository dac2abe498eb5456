"""Canonical operators as ONNX nodes: the way back of the reader's converters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from twin.network.graph import Layer, Window
from twin.network.readers.onnx_layout import keeps_order
from twin.network.readers.onnx_rows import RESIZES, ROWS
from twin.network.writers.onnx_output import TO_FILE, Output, to_file_axis

Encode = Callable[[Output, Layer, list[str]], None]


def _rank(output: Output, layer: Layer) -> int:
    return len(output.graph.input(layer).shape)


def _window(layer: Layer) -> dict[str, Any]:
    window = layer.window
    assert isinstance(window, Window), f"layer {layer.index} has no window"
    top, bottom, left, right = window.padding
    return {"kernel_shape": window.kernel, "strides": window.stride,
            "dilations": window.dilation, "pads": (top, left, bottom, right)}


def _weighted(output: Output, layer: Layer, order: tuple[int, ...], axis: int = 0) -> list[str]:
    """Names of data, weights in the file's order, and bias."""
    weights = output.graph.input(layer, 1).data
    if weights is None:
        raise output.refuse(layer, "weights computed at run time")
    names = [output.real(layer.source_id),
             output.real(layer.inputs[1], weights.transpose(order), axis)]
    if len(layer.inputs) > 2 and layer.inputs[2] >= 0:
        names.append(output.real(layer.inputs[2]))
    return names


def _conv(output: Output, layer: Layer, results: list[str]) -> None:
    order = (0, 3, 1, 2) if layer.op == "conv_2d" else (3, 0, 1, 2)
    output.node("Conv", _weighted(output, layer, order), results, group=layer.groups,
                **_window(layer))


def _transpose_conv(output: Output, layer: Layer, results: list[str]) -> None:
    window = _window(layer)
    source, made = output.shape(layer.source_id), output.shape(layer.target_id)
    top, left, bottom, right = window["pads"]
    extra = [made[2 + i] - ((source[2 + i] - 1) * window["strides"][i]
                            + window["kernel_shape"][i] - pads)
             for i, pads in enumerate((top + bottom, left + right))]
    if min(extra) < 0:
        raise output.refuse(layer, "output smaller than its padding leaves")
    output.node("ConvTranspose", _weighted(output, layer, (3, 0, 1, 2), axis=1), results,
                output_padding=extra, **window)


def _fully_connected(output: Output, layer: Layer, results: list[str]) -> None:
    if _rank(output, layer) != 2:
        raise output.refuse(layer, "data with other than two dimensions")
    output.node("Gemm", _weighted(output, layer, (0, 1)), results, transB=1)


def _batch_matmul(output: Output, layer: Layer, results: list[str]) -> None:
    if _rank(output, layer) == 4 or layer.option("adj_x") or layer.option("adj_y"):
        raise output.refuse(layer, "four dimensions or a transposed operand")
    output.node("MatMul", [output.real(i) for i in layer.inputs], results)


def _pool(output: Output, layer: Layer, results: list[str], op: str) -> None:
    window = _window(layer)
    if op == "AveragePool":
        # Average pooling learned dilation in operator set 19 only.
        del window["dilations"]
        window["count_include_pad"] = int(layer.option("count_include_pad", False))
    output.node(op, [output.real(layer.source_id)], results, **window)


def _operand(output: Output, tensor_id: int, rank: int) -> str:
    """Name of an element-wise operand; a constant vector runs over channels."""
    data = output.graph.tensors[tensor_id].data
    if data is None or rank != 4 or data.size == 1:
        return output.real(tensor_id)
    if data.ndim == 1:
        return output.real(tensor_id, data.reshape(-1, 1, 1))
    lifted = data.reshape((1,) * (4 - data.ndim) + data.shape)
    return output.real(tensor_id, lifted.transpose(TO_FILE))


def _elementwise(output: Output, layer: Layer, results: list[str], op: str) -> None:
    rank = len(output.graph.output(layer).shape)
    output.node(op, [_operand(output, i, rank) for i in layer.inputs], results)


def _unary(output: Output, layer: Layer, results: list[str], op: str, **attributes: float) -> None:
    chosen = {key: layer.option(key, value) for key, value in attributes.items()}
    output.node(op, [output.real(layer.source_id)], results, **chosen)


def _relu6(output: Output, layer: Layer, results: list[str]) -> None:
    output.clamp("relu6", output.real(layer.source_id), results[0])


def _softmax(output: Output, layer: Layer, results: list[str]) -> None:
    rank = _rank(output, layer)
    if layer.option("beta", 1.0) != 1.0:
        raise output.refuse(layer, f"beta {layer.option('beta')}")
    output.node("Softmax", [output.real(layer.source_id)], results,
                axis=to_file_axis(layer.option("axis", rank - 1), rank))


def _reduction(output: Output, layer: Layer, results: list[str], op: str) -> None:
    rank, axes = _rank(output, layer), layer.option("axes")
    if rank == 4 and not layer.option("keep_dims") and 3 not in axes:
        shape = output.graph.input(layer).shape
        if any(axis not in axes and shape[axis] > 1 for axis in (1, 2)):
            raise output.refuse(layer, "height or width left beside channels")
    output.node(op, [output.real(layer.source_id)], results,
                axes=sorted(to_file_axis(axis, rank) for axis in axes),
                keepdims=int(layer.option("keep_dims", False)))


def _concatenation(output: Output, layer: Layer, results: list[str]) -> None:
    rank = _rank(output, layer)
    output.node("Concat", [_operand(output, i, rank) for i in layer.inputs], results,
                axis=to_file_axis(layer.option("axis"), rank))


def _split(output: Output, layer: Layer, results: list[str]) -> None:
    rank, axis = _rank(output, layer), layer.option("axis")
    lengths = [output.graph.tensors[i].shape[axis] for i in layer.outputs]
    output.node("Split", [output.real(layer.source_id),
                          output.integers(layer, "lengths", lengths)], results,
                axis=to_file_axis(axis, rank))


def _slice(output: Output, layer: Layer, results: list[str]) -> None:
    rank = _rank(output, layer)
    begin, strides = layer.option("begin"), layer.option("strides")
    made = output.graph.output(layer).shape
    if len(made) != rank or min(strides) < 1:
        raise output.refuse(layer, "steps back or drops a dimension")
    end = [start + (size - 1) * stride + 1
           for start, size, stride in zip(begin, made, strides, strict=True)]
    parts = (("begin", begin), ("end", end),
             ("axes", [to_file_axis(axis, rank) for axis in range(rank)]), ("strides", strides))
    output.node("Slice", [output.real(layer.source_id),
                          *(output.integers(layer, what, values) for what, values in parts)],
                results)


def _pad(output: Output, layer: Layer, results: list[str]) -> None:
    rank, paddings = _rank(output, layer), layer.option("paddings")
    order = TO_FILE if rank == 4 else range(rank)
    amounts = [paddings[axis][0] for axis in order] + [paddings[axis][1] for axis in order]
    constant = layer.option("mode", "constant") == "constant"
    inputs = [output.real(layer.source_id), output.integers(layer, "pads", amounts)]
    if constant and layer.option("value", 0.0):
        inputs.append(output.constant(f"{output.names[layer.target_id]}/value",
                                      np.asarray(layer.option("value"), output.real_type)))
    output.node("Pad", inputs, results, mode="constant" if constant else "reflect")


def _reshape(output: Output, layer: Layer, results: list[str]) -> None:
    """Reshape the stored values themselves; images go through channels last and back."""
    source_id, made_id = layer.source_id, layer.target_id
    source, made = (output.graph.tensors[i] for i in (source_id, made_id))
    if source.quantization != made.quantization or source.data is not None:
        raise output.refuse(layer, "constant data, or quantisation changes")
    name = output.names[source_id]
    if len(source.shape) == 4 and not keeps_order(source.shape, TO_FILE):
        output.node("Transpose", [name], [f"{results[0]}/last"], perm=(0, 2, 3, 1))
        name = f"{results[0]}/last"
    if len(made.shape) == 4 and not keeps_order(made.shape, TO_FILE):
        flat = f"{results[0]}/stored"
        output.node("Reshape", [name, output.integers(layer, "shape", made.shape)], [flat])
        output.node("Transpose", [flat], results, perm=TO_FILE)
    else:
        shape = output.integers(layer, "shape", output.shape(made_id))
        output.node("Reshape", [name, shape], results)


def _transpose(output: Output, layer: Layer, results: list[str]) -> None:
    perm = layer.option("perm")
    if len(perm) == 4:
        perm = tuple(to_file_axis(perm[TO_FILE[axis]], 4) for axis in range(4))
    output.node("Transpose", [output.real(layer.source_id)], results, perm=perm)


def _resize(output: Output, layer: Layer, results: list[str], mode: str) -> None:
    coordinates = "asymmetric"
    if layer.option("align_corners", False):
        coordinates = "align_corners"
    elif layer.option("half_pixel_centers", False):
        coordinates = "half_pixel"
    sizes = output.integers(layer, "sizes", output.shape(layer.target_id))
    output.node("Resize", [output.real(layer.source_id), "", "", sizes], results, mode=mode,
                coordinate_transformation_mode=coordinates)


def _quantize(output: Output, layer: Layer, results: list[str]) -> None:
    output.node("QuantizeLinear", [output.real(layer.source_id),
                                   *output.scale(layer.target_id)], results)


def _dequantize(output: Output, layer: Layer, results: list[str]) -> None:
    source = layer.source_id
    output.node("DequantizeLinear", [output.names[source], *output.scale(source)], results)


_FAMILIES: Mapping[str, Callable[..., None]] = {
    "pool": _pool, "reduction": _reduction, "pair": _elementwise, "unary": _unary}

ENCODERS: Mapping[str, Encode] = {
    **{row.op: partial(_FAMILIES[row.family], op=row.name, **row.attributes)
       for row in ROWS if row.written},
    **{op: partial(_resize, mode=mode) for mode, op in RESIZES.items()},
    "conv_2d": _conv, "depthwise_conv_2d": _conv, "transpose_conv_2d": _transpose_conv,
    "fully_connected": _fully_connected, "batch_matmul": _batch_matmul,
    "prelu": partial(_elementwise, op="PRelu"), "concatenation": _concatenation, "split": _split,
    "slice": _slice, "pad": _pad, "reshape": _reshape, "transpose": _transpose,
    "softmax": _softmax, "relu6": _relu6, "quantize": _quantize, "dequantize": _dequantize,
}
"""Canonical operators this writes."""
