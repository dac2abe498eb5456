"""Canonical operators as ONNX nodes: the way back of the reader's converters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from twin.network.graph import Options
from twin.network.readers.onnx_layout import keeps_order
from twin.network.readers.onnx_rows import RESIZES, ROWS
from twin.network.writers.onnx_output import TO_FILE, Output, to_file_axis

Encode = Callable[[Output], None]


def _window(output: Output) -> Options:
    window = output.layer.sliding_window
    top, bottom, left, right = window.padding
    return {"kernel_shape": window.kernel, "strides": window.stride,
            "dilations": window.dilation, "pads": (top, left, bottom, right)}


def _weighted(output: Output, order: tuple[int, ...], axis: int = 0) -> list[str]:
    """Names of data, weights in the file's order, and bias."""
    inputs = output.layer.inputs
    weights = output.graph.tensors[inputs[1]].data
    if weights is None:
        raise output.refuse("weights computed at run time")
    return [output.source(), output.real(inputs[1], weights.transpose(order), axis),
            *(output.real(i) for i in inputs[2:] if i >= 0)]


def _conv(output: Output) -> None:
    order = (0, 3, 1, 2) if output.layer.op == "conv_2d" else (3, 0, 1, 2)
    output.node("Conv", _weighted(output, order), group=output.layer.groups, **_window(output))


def _transpose_conv(output: Output) -> None:
    window = _window(output)
    source, made = map(output.shape, (output.layer.source_id, output.layer.target_id))
    top, left, bottom, right = window["pads"]
    extra = [made[2 + i] - ((source[2 + i] - 1) * window["strides"][i]
                            + window["kernel_shape"][i] - pads)
             for i, pads in enumerate((top + bottom, left + right))]
    if min(extra) < 0:
        raise output.refuse("output smaller than its padding leaves")
    output.node("ConvTranspose", _weighted(output, (3, 0, 1, 2), axis=1),
                output_padding=extra, **window)


def _fully_connected(output: Output) -> None:
    if output.rank != 2:
        raise output.refuse("data with other than two dimensions")
    output.node("Gemm", _weighted(output, (0, 1)), transB=1)


def _batch_matmul(output: Output) -> None:
    if output.rank == 4 or output.option("adj_x") or output.option("adj_y"):
        raise output.refuse("four dimensions or a transposed operand")
    output.node("MatMul", [output.real(i) for i in output.layer.inputs])


def _pool(output: Output, op: str) -> None:
    window = _window(output)
    if op == "AveragePool":
        # Average pooling learned dilation in operator set 19 only.
        del window["dilations"]
        window["count_include_pad"] = int(output.option("count_include_pad", False))
    output.node(op, [output.source()], **window)


def _operand(output: Output, tensor_id: int, rank: int) -> str:
    """Name of an element-wise operand; a constant vector runs over channels."""
    data = output.graph.tensors[tensor_id].data
    if data is None or rank != 4 or data.size == 1:
        return output.real(tensor_id)
    if data.ndim == 1:
        return output.real(tensor_id, data.reshape(-1, 1, 1))
    lifted = data.reshape((1,) * (4 - data.ndim) + data.shape)
    return output.real(tensor_id, lifted.transpose(TO_FILE))


def _elementwise(output: Output, op: str) -> None:
    rank = len(output.graph.output(output.layer).shape)
    output.node(op, [_operand(output, i, rank) for i in output.layer.inputs])


def _unary(output: Output, op: str, **attributes: float) -> None:
    chosen = {key: output.option(key, value) for key, value in attributes.items()}
    output.node(op, [output.source()], **chosen)


def _relu6(output: Output) -> None:
    output.clamp("relu6", output.source(), output.results[0])


def _softmax(output: Output) -> None:
    rank = output.rank
    if output.option("beta", 1.0) != 1.0:
        raise output.refuse(f"beta {output.option('beta')}")
    output.node("Softmax", [output.source()],
                axis=to_file_axis(output.option("axis", rank - 1), rank))


def _reduction(output: Output, op: str) -> None:
    rank, axes = output.rank, output.option("axes")
    if rank == 4 and not output.option("keep_dims") and 3 not in axes:
        shape = output.graph.input(output.layer).shape
        if any(axis not in axes and shape[axis] > 1 for axis in (1, 2)):
            raise output.refuse("height or width left beside channels")
    output.node(op, [output.source()],
                axes=sorted(to_file_axis(axis, rank) for axis in axes),
                keepdims=int(output.option("keep_dims", False)))


def _concatenation(output: Output) -> None:
    rank = output.rank
    output.node("Concat", [_operand(output, i, rank) for i in output.layer.inputs],
                axis=to_file_axis(output.option("axis"), rank))


def _split(output: Output) -> None:
    rank, axis = output.rank, output.option("axis")
    lengths = [output.graph.tensors[i].shape[axis] for i in output.layer.outputs]
    output.node("Split", [output.source(),
                          output.integers("lengths", lengths)], axis=to_file_axis(axis, rank))


def _slice(output: Output) -> None:
    rank = output.rank
    begin, strides = output.option("begin"), output.option("strides")
    made = output.graph.output(output.layer).shape
    if len(made) != rank or min(strides) < 1:
        raise output.refuse("steps back or drops a dimension")
    end = [start + (size - 1) * stride + 1
           for start, size, stride in zip(begin, made, strides, strict=True)]
    parts = (("begin", begin), ("end", end),
             ("axes", [to_file_axis(axis, rank) for axis in range(rank)]), ("strides", strides))
    output.node("Slice", [output.source(),
                          *(output.integers(what, values) for what, values in parts)])


def _pad(output: Output) -> None:
    rank, paddings = output.rank, output.option("paddings")
    order = TO_FILE if rank == 4 else range(rank)
    amounts = [paddings[axis][0] for axis in order] + [paddings[axis][1] for axis in order]
    constant = output.option("mode", "constant") == "constant"
    inputs = [output.source(), output.integers("pads", amounts)]
    if constant and output.option("value", 0.0):
        inputs.append(output.constant(f"{output.names[output.layer.target_id]}/value",
                                      np.asarray(output.option("value"), output.real_type)))
    output.node("Pad", inputs, mode="constant" if constant else "reflect")


def _reshape(output: Output) -> None:
    """Reshape the stored values themselves; images go through channels last and back."""
    source_id, made_id = output.layer.source_id, output.layer.target_id
    source, made = (output.graph.tensors[i] for i in (source_id, made_id))
    if source.quantization != made.quantization or source.data is not None:
        raise output.refuse("constant data, or quantisation changes")
    name, result = output.names[source_id], output.results[0]
    if len(source.shape) == 4 and not keeps_order(source.shape, TO_FILE):
        output.node("Transpose", [name], [f"{result}/last"], perm=(0, 2, 3, 1))
        name = f"{result}/last"
    if len(made.shape) == 4 and not keeps_order(made.shape, TO_FILE):
        flat = f"{result}/stored"
        output.node("Reshape", [name, output.integers("shape", made.shape)], [flat])
        output.node("Transpose", [flat], perm=TO_FILE)
    else:
        shape = output.integers("shape", output.shape(made_id))
        output.node("Reshape", [name, shape])


def _transpose(output: Output) -> None:
    perm = output.option("perm")
    if len(perm) == 4:
        perm = tuple(to_file_axis(perm[TO_FILE[axis]], 4) for axis in range(4))
    output.node("Transpose", [output.source()], perm=perm)


def _resize(output: Output, mode: str) -> None:
    coordinates = "asymmetric"
    if output.option("align_corners", False):
        coordinates = "align_corners"
    elif output.option("half_pixel_centers", False):
        coordinates = "half_pixel"
    sizes = output.integers("sizes", output.shape(output.layer.target_id))
    output.node("Resize", [output.source(), "", "", sizes], mode=mode,
                coordinate_transformation_mode=coordinates)


def _quantize(output: Output) -> None:
    output.node("QuantizeLinear", [output.source(), *output.scale(output.layer.target_id)])


def _dequantize(output: Output) -> None:
    source = output.layer.source_id
    output.node("DequantizeLinear", [output.names[source], *output.scale(source)])


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
