"""Whether a graph holds together: what every reader checks before handing it on.

A file can be well-formed and still nonsense; later stages index and divide by shapes, so every
relation they rely on is checked here once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from twin.errors import ModelError
from twin.network.graph import DTYPE_BITS, Graph, Layer, Shape, Shapes, Tensor
from twin.network.operators import OPERATORS, Form, list_states, traits
from twin.network.readers.budget import check_operators

MAX_ELEMENTS = 2**40
"""More elements than any machine this project describes could hold."""

Check = Callable[[Layer, Shapes, Shape], None]

_PIECES = ("split", "pack", "unpack")
"""Operators that write as many elements as they read, into any number of tensors."""


class _Mismatch(Exception):
    """What does not fit, before it is known where."""


def verify_graph(graph: Graph) -> Graph:
    """Check tensors, connections and shapes of a graph and return it.

    Returns
    -------
    Graph
        The same.

    Raises
    ------
    ModelError
        Naming the file and the layer or tensor at fault.
    """
    if not graph.layers:
        raise ModelError(f"{graph.source}: no operators")
    check_operators(graph.source, len(graph.layers))
    for number, tensor in enumerate(graph.tensors):
        try:
            _verify_tensor(tensor)
        except _Mismatch as mismatch:
            raise ModelError(f"{graph.source}: tensor {number} {tensor.name!r}: "
                             f"{mismatch}") from None
    _verify_connections(graph)
    for layer in graph.layers:
        try:
            inputs = [graph.tensors[i].shape if i >= 0 else () for i in layer.inputs]
            outputs = [graph.tensors[i].shape for i in layer.outputs]
            check = CHECKS.get(layer.op) or _FORMS.get(traits(layer).form)
            if layer.op in _PIECES:
                _expect("output elements", sum(map(math.prod, outputs)),
                        sum(map(math.prod, inputs)))
            elif check is not None:
                check(layer, inputs, outputs[0])
        except (_Mismatch, IndexError) as mismatch:
            why = str(mismatch) if isinstance(mismatch, _Mismatch) else (
                "an input or a dimension is missing")
            raise ModelError(f"{graph.source}: operator {layer.index} {layer.op} "
                             f"{layer.name!r}: {why}") from None
    return graph


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise _Mismatch(message)


def _verify_tensor(tensor: Tensor) -> None:
    _need(tensor.dtype in DTYPE_BITS, f"type {tensor.dtype}; accepted: {', '.join(DTYPE_BITS)}")
    _need(all(isinstance(size, int | np.integer) and not isinstance(size, bool) and size > 0
              for size in tensor.shape),
          f"shape {list(tensor.shape)}; every dimension must be a fixed positive number")
    _need(tensor.elements <= MAX_ELEMENTS, f"{tensor.elements} elements")
    if tensor.data is not None:
        _need(tensor.data.shape == tensor.shape,
              f"data of shape {tensor.data.shape} for shape {tensor.shape}")
    quantization = tensor.quantization
    if quantization is None:
        return
    count = len(quantization.scales)
    _need(count == len(quantization.zero_points) > 0, "as many zero points as scales are needed")
    _need(all(0 < scale < math.inf for scale in quantization.scales), "scales must be positive")
    if quantization.axis is None:
        _need(count == 1, f"{count} scales and no axis")
    else:
        _need(0 <= quantization.axis < len(tensor.shape)
              and tensor.shape[quantization.axis] == count,
              f"{count} scales along axis {quantization.axis} of shape {list(tensor.shape)}")


def _verify_connections(graph: Graph) -> None:
    count = len(graph.tensors)
    available = set(graph.inputs) | set(list_states(graph))
    available.update(i for i, tensor in enumerate(graph.tensors) if tensor.is_constant)
    written: set[int] = set()
    for layer in graph.layers:
        where = f"{graph.source}: operator {layer.index} {layer.op} {layer.name!r}"
        if layer.op not in OPERATORS:
            raise ModelError(f"{where}: not an operator this knows")
        if not layer.outputs or not all(0 <= i < count for i in layer.outputs):
            raise ModelError(f"{where}: writes a tensor that does not exist")
        if not layer.inputs or not all(-1 <= i < count for i in layer.inputs):
            raise ModelError(f"{where}: reads a tensor that does not exist")
        if layer.source_id < 0:
            raise ModelError(f"{where}: has no data input")
        for i in layer.inputs:
            if i >= 0 and i not in available:
                raise ModelError(f"{where}: reads tensor {i} {graph.tensors[i].name!r} before "
                                 "any operator writes it")
        for i in layer.outputs:
            if i in available or i in written:
                raise ModelError(f"{where}: writes tensor {i} {graph.tensors[i].name!r}, which "
                                 "another operator, the input or a constant already fills")
        available.update(layer.outputs)
        written.update(layer.outputs)
    for i in (*graph.inputs, *graph.outputs):
        if not 0 <= i < count or i not in available:
            raise ModelError(f"{graph.source}: input or output tensor {i} is filled by nobody")


def _expect(what: str, given: object, expected: object) -> None:
    _need(given == expected, f"{what} is {given}, expected {expected}")


def _check_window(layer: Layer, data: Shape, output: Shape) -> None:
    window = layer.window
    if window is None:
        raise _Mismatch("no window")
    _expect("rank of data", len(data), 4)
    _expect("rank of output", len(output), 4)
    _need(min(*window.kernel, *window.stride, *window.dilation) >= 1 and min(window.padding) >= 0,
          f"window {window} is impossible")
    for place, (name, size) in enumerate(zip(("height", "width"), window.slide(*data[1:3]),
                                             strict=True)):
        _need(size >= 1, f"kernel of {name} {window.kernel[place]} on {data[place + 1]}")
        _expect(f"output {name}", output[place + 1], size)
    _expect("batch of output", output[0], data[0])


def _check_bias(inputs: Shapes, layer: Layer, channels: int) -> None:
    if len(layer.inputs) > 2 and layer.inputs[2] >= 0:
        _expect("bias elements", math.prod(inputs[2]), channels)


def _check_filters(layer: Layer, inputs: Shapes, output: Shape) -> None:
    _check_window(layer, inputs[0], output)
    _expect("rank of weights", len(inputs[1]), 4)
    _expect("kernel", layer.kernel, inputs[1][1:3])


def _check_conv(layer: Layer, inputs: Shapes, output: Shape) -> None:
    _check_filters(layer, inputs, output)
    data, weights = inputs[:2]
    _need(layer.groups >= 1 and weights[0] % layer.groups == 0,
          f"{layer.groups} groups of {weights[0]} output channels")
    _expect("input channels", data[3], weights[3] * layer.groups)
    _expect("output channels", output[3], weights[0])
    _check_bias(inputs, layer, weights[0])


def _check_depthwise(layer: Layer, inputs: Shapes, output: Shape) -> None:
    _check_filters(layer, inputs, output)
    data, weights = inputs[:2]
    _expect("leading dimension of weights", weights[0], 1)
    _expect("groups", layer.groups, data[3])
    _need(weights[3] % data[3] == 0, f"{weights[3]} filters for {data[3]} channels")
    _expect("output channels", output[3], weights[3])
    _check_bias(inputs, layer, weights[3])


def _check_transpose_conv(layer: Layer, inputs: Shapes, output: Shape) -> None:
    data, weights = inputs[0], inputs[1]
    for what, shape in (("data", data), ("weights", weights), ("output", output)):
        _expect(f"rank of {what}", len(shape), 4)
    _need(layer.window is not None and min(layer.window.stride) >= 1, "no window")
    _expect("groups", layer.groups, 1)
    _expect("input channels", data[3], weights[3])
    _expect("output channels", output[3], weights[0])
    _check_bias(inputs, layer, weights[0])


def _check_fully_connected(layer: Layer, inputs: Shapes, output: Shape) -> None:
    weights = inputs[1]
    _expect("rank of weights", len(weights), 2)
    elements = math.prod(inputs[0])
    _need(elements % weights[1] == 0, f"{elements} inputs for weights {list(weights)}")
    _expect("output elements", math.prod(output), elements // weights[1] * weights[0])
    _expect("output channels", output[-1:], weights[:1])
    _check_bias(inputs, layer, weights[0])


def _check_batch_matmul(layer: Layer, inputs: Shapes, output: Shape) -> None:
    left, right = inputs[0], inputs[1]
    _need(min(len(left), len(right), len(output)) >= 2, "matrices need two dimensions")
    rows, depth = left[-2:] if not layer.option("adj_x", False) else left[:-3:-1]
    depth2, columns = right[-2:] if not layer.option("adj_y", False) else right[:-3:-1]
    _expect("inner dimension", depth2, depth)
    _expect("output matrix", output[-2:], (rows, columns))
    try:
        batches = np.broadcast_shapes(left[:-2], right[:-2])
    except ValueError:
        raise _Mismatch(f"batches of {left} and {right} do not broadcast") from None
    _expect("batches of output", math.prod(output[:-2]), math.prod(batches))


def _check_pool(layer: Layer, inputs: Shapes, output: Shape) -> None:
    _check_window(layer, inputs[0], output)
    _expect("output channels", output[3], inputs[0][3])


def _check_broadcast(layer: Layer, inputs: Shapes, output: Shape, *, count: int = 2) -> None:
    _expect("number of inputs", len(inputs), count)
    try:
        shape = np.broadcast_shapes(*inputs)
    except ValueError:
        raise _Mismatch(f"shapes {inputs} do not broadcast") from None
    _expect("output shape", output, shape)


def _check_same_elements(layer: Layer, inputs: Shapes, output: Shape) -> None:
    _expect("output elements", math.prod(output), math.prod(inputs[0]))


def _check_same_shape(layer: Layer, inputs: Shapes, output: Shape) -> None:
    _expect("output shape", output, inputs[0])


def _check_reduction(layer: Layer, inputs: Shapes, output: Shape) -> None:
    axes = layer.option("axes", ())
    _need(all(0 <= axis < len(inputs[0]) for axis in axes), f"axes {axes} of {inputs[0]}")
    kept = [size for axis, size in enumerate(inputs[0]) if axis not in axes]
    _expect("output elements", math.prod(output), math.prod(kept))


def _axis(layer: Layer, shape: Shape) -> int:
    axis: int = layer.option("axis", 0)
    _need(0 <= axis < len(shape), f"axis {axis} of {shape}")
    return axis


def _check_concatenation(layer: Layer, inputs: Shapes, output: Shape) -> None:
    axis = _axis(layer, output)
    for shape in inputs:
        _expect("rank of an input", len(shape), len(output))
        _expect("other dimensions", shape[:axis] + shape[axis + 1:],
                output[:axis] + output[axis + 1:])
    _expect("output length", output[axis], sum(shape[axis] for shape in inputs))


def _check_slice(layer: Layer, inputs: Shapes, output: Shape) -> None:
    _need(math.prod(output) <= math.prod(inputs[0]), "output larger than input")
    _expect("length of begin", len(layer.option("begin", ())), len(inputs[0]))
    _expect("length of strides", len(layer.option("strides", ())), len(inputs[0]))


def _check_pad(layer: Layer, inputs: Shapes, output: Shape) -> None:
    paddings = layer.option("paddings", ())
    _expect("length of paddings", len(paddings), len(inputs[0]))
    _need(all(min(pair) >= 0 for pair in paddings), f"paddings {paddings}; accepted: 0 or more")
    _expect("output shape", output, tuple(
        size + before + after for size, (before, after) in zip(inputs[0], paddings, strict=True)))


def _check_transpose(layer: Layer, inputs: Shapes, output: Shape) -> None:
    perm = layer.option("perm", ())
    _expect("sorted perm", sorted(perm), list(range(len(inputs[0]))))
    _expect("output shape", output, tuple(inputs[0][axis] for axis in perm))


def _check_resize(layer: Layer, inputs: Shapes, output: Shape) -> None:
    _expect("rank of data", len(inputs[0]), 4)
    _expect("rank of output", len(output), 4)
    _expect("output channels", output[3], inputs[0][3])


def _check_svdf(layer: Layer, inputs: Shapes, output: Shape) -> None:
    rank = layer.option("rank", 1)
    _expect("number of inputs", len(inputs), 5)
    _need(rank >= 1 and len(inputs[1]) == len(inputs[2]) == 2, f"rank {rank}")
    _expect("features", math.prod(inputs[0]), inputs[1][1])
    _expect("filters of weights_time", inputs[2][0], inputs[1][0])
    _expect("units x rank", math.prod(output) * rank, inputs[1][0])


def _check_recurrent(layer: Layer, inputs: Shapes, output: Shape) -> None:
    gates = {"lstm": 4, "gru": 3, "rnn": 1}[layer.op]
    weights, recurrent = inputs[1], inputs[2]
    _expect("rank of weights", len(weights), 2)
    _expect("rank of recurrent weights", len(recurrent), 2)
    hidden = recurrent[1]
    _expect("rows of weights", weights[0], gates * hidden)
    _expect("rows of recurrent weights", recurrent[0], gates * hidden)
    _need(math.prod(inputs[0]) % weights[1] == 0, f"data {inputs[0]} for weights {weights}")
    steps = math.prod(inputs[0]) // weights[1]
    _need(math.prod(output) in (hidden, steps * hidden), f"output {output}")


def _check_choice(layer: Layer, inputs: Shapes, output: Shape) -> None:
    axis = _axis(layer, inputs[0])
    _expect("output elements", math.prod(output), math.prod(inputs[0]) // inputs[0][axis])


def _check_gather(layer: Layer, inputs: Shapes, output: Shape) -> None:
    _expect("number of inputs", len(inputs), 2)
    axis = _axis(layer, inputs[0])
    _expect("output elements", math.prod(output),
            math.prod(inputs[0]) // inputs[0][axis] * math.prod(inputs[1]))


def _check_repetition(layer: Layer, inputs: Shapes, output: Shape) -> None:
    _need(math.prod(output) % math.prod(inputs[0]) == 0,
          f"{output} holds no whole number of {inputs[0]}")


def _check_top(layer: Layer, inputs: Shapes, output: Shape) -> None:
    axis = _axis(layer, inputs[0])
    _expect("rank of output", len(output), len(inputs[0]))
    _need(output[axis] <= inputs[0][axis], f"{output[axis]} of {inputs[0][axis]} values")


def _check_suppression(layer: Layer, inputs: Shapes, output: Shape) -> None:
    _need(len(inputs) >= 2 and len(inputs[0]) == len(inputs[1]) == 3, f"shapes {inputs}")
    _expect("boxes", inputs[0][1:], (inputs[1][2], 4))
    _expect("rank of output", len(output), 2)


def _check_detection(layer: Layer, inputs: Shapes, output: Shape) -> None:
    _expect("number of inputs", len(inputs), 3)
    _need(all(len(shape) >= 2 for shape in inputs), f"shapes {inputs}")
    boxes = inputs[0][-2]
    _expect("boxes of the scores", inputs[1][-2], boxes)
    _expect("anchors", inputs[2], (boxes, 4))


CHECKS: Mapping[str, Check] = {
    "conv_2d": _check_conv, "depthwise_conv_2d": _check_depthwise,
    "transpose_conv_2d": _check_transpose_conv, "batch_matmul": _check_batch_matmul,
    **dict.fromkeys(("space_to_depth", "depth_to_space", "read_variable", "assign_variable"),
                    _check_same_elements),
    "cumsum": _check_same_shape,
    "select": partial(_check_broadcast, count=3), "gather": _check_gather,
    "arg_max": _check_choice, "arg_min": _check_choice,
    "tile": _check_repetition, "broadcast_to": _check_repetition,
    "slice": _check_slice, "svdf": _check_svdf, "top_k": _check_top,
    "non_max_suppression": _check_suppression, "detection_postprocess": _check_detection,
}
"""What an operator's shapes must satisfy, where its form does not say it all."""

_FORMS: Mapping[Form, Check] = {
    Form.WINDOW: _check_pool, Form.PRODUCT: _check_fully_connected,
    Form.ELEMENTWISE: _check_same_elements, Form.ROWS: _check_same_shape,
    Form.RESHAPE: _check_same_elements, Form.BROADCAST: _check_broadcast,
    Form.REDUCE: _check_reduction, Form.RESIZE: _check_resize, Form.JOIN: _check_concatenation,
    Form.PAD: _check_pad, Form.PERMUTE: _check_transpose, Form.RECURRENT: _check_recurrent,
}
"""The same by form."""
