"""Read an .espdl file of ESP-DL: a flatbuffer in ONNX's terms, channels last, int8 or int16.

References
----------
espressif/esp-dl 12c0616d: fbs_loader/espdl.fbs, fbs_loader/src/fbs_loader.cpp
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hwmodels.files import MISSHAPEN
from hwmodels.flatbuffer import Flatbuffer, FlatbufferError, Table
from twin.errors import ModelError
from twin.network.graph import Graph, Quantization, Shape, Window, options_of_slice
from twin.network.model_file import name_model, read_bytes
from twin.network.readers.budget import check_operators
from twin.network.readers.refusal import UnsupportedError, refuse_unknown
from twin.network.readers.verification import verify_graph
from twin.network.zoo.builder import Builder

MARK = b"EDL2"
_HEADER_BYTES = 16
"""Mark, whether it is encrypted, length of the flatbuffer, four bytes of nothing."""

_DTYPES = {1: "float32", 2: "uint8", 3: "int8", 5: "int16", 6: "int32", 7: "int64", 9: "bool"}
_ATTRIBUTES: Mapping[int, Callable[[Table], Any]] = {
    1: lambda one: one.number(4, "f"), 2: lambda one: one.number(5, "q"),
    3: lambda one: one.text(6), 6: lambda one: one.vector(10, "f").tolist(),
    7: lambda one: one.vector(11, "q").tolist()}
"""By type: float, int, string, floats, ints."""

_ACTIVATIONS = {"Linear": None, "Relu": "relu", "": None}


def read_espdl(path: str | Path, *, assume_unsupported: str | None = None) -> Graph:
    """Read an .espdl file.

    Parameters
    ----------
    assume_unsupported
        "copy" to keep unknown operators as assumed memory copies.

    Returns
    -------
    Graph
        With a layer for each node; a table look-up is `logistic`, whose table it is read as.

    Raises
    ------
    ModelError
        Naming file and node.

    Notes
    -----
    Weights lie in blocks of 16 outputs as the kernels read them; their values are kept in that
    order, so times hold and results would not.
    """
    path, reader = str(path), None
    content = read_bytes(path)
    if content[:4] != MARK:
        raise ModelError(f"{path}: no ESP-DL model of version 2; accepted: one that begins EDL2, "
                         "as ESP-PPQ writes it since 2024")
    if any(content[4:8]):
        raise ModelError(f"{path}: is encrypted; accepted: the .espdl exported without encrypt")
    try:
        model = Flatbuffer(content, _HEADER_BYTES).root.table(7)
        if model is None:
            raise ModelError(f"{path}: no graph in it; is it cut short?")
        reader = _Reader(path, model)
        graph = reader.read(assume_unsupported)
    except ModelError:
        raise
    except (*MISSHAPEN, FlatbufferError, MemoryError) as error:
        place = "header" if reader is None else reader.place
        raise ModelError(f"{path}: malformed at {place}: {error}"[:400]) from None
    return verify_graph(replace(
        graph, name=name_model(path), source=path, sha256=hashlib.sha256(content).hexdigest(),
        notes=("model: weights in the order ESP-DL's kernels read them: for times, not results",)))


class _Reader:
    """Converts one graph, node by node."""

    def __init__(self, path: str, model: Table) -> None:
        self._path, self._net = path, Builder("espdl", 0)
        self._nodes = model.tables(0)
        self._stored = {one.text(6): one for one in model.tables(2)}
        self._values = {one.text(0): one for field in (4, 5, 6) for one in model.tables(field)}
        self._inputs = [one.text(0) for one in model.tables(4)]
        self._outputs = [one.text(0) for one in model.tables(5)]
        self._made: dict[str, int] = {}
        self.place = "graph"

    def read(self, assume_unsupported: str | None) -> Graph:
        """Convert every node and return the graph."""
        check_operators(self._path, len(self._nodes))
        names = [f"{number} {node.text(3)}" for number, node in enumerate(self._nodes)]
        refuse_unknown(self._path, [name for name, node in zip(names, self._nodes, strict=True)
                                    if node.text(3) not in _OPERATORS], assume_unsupported)
        for name in self._inputs:
            self._made[name] = self._net.input(*self.describe(name))
        unknown = []
        for name, node in zip(names, self._nodes, strict=True):
            self.place = f"node {name}"
            try:
                _convert(self, node)
            except UnsupportedError as refusal:
                unknown.append(f"{name}{refusal.suffix}")
                for made in node.texts(1):
                    self.emit(made, "copy", node.texts(0)[:1], of=node.text(3), assumed=True)
        refuse_unknown(self._path, unknown, assume_unsupported)
        return self._net.finish(*(self._made[name] for name in self._outputs), source=self._path)

    def describe(self, name: str) -> tuple[Shape, str, Quantization | None]:
        """Return shape, type and scale of a tensor that is computed."""
        value = self._values[name]
        kind = (value.table(1) or value).table(1)
        shape = kind and kind.table(1)
        if kind is None or shape is None:
            raise ValueError(f"tensor {name!r} has no shape")
        sizes = tuple(size.number(1, "q") for one in shape.tables(0)
                      for size in [one.table(0)] if size is not None)
        return sizes, _DTYPES[kind.number(0, "i")], _scale(value.vector(3, "q"))

    def shape(self, name: str) -> Shape:
        """Return the shape of any tensor, as it is stored."""
        if name in self._stored:
            return tuple(self._stored[name].vector(0, "q").tolist())
        return self._net.shape(self._made[name])

    def values(self, name: str) -> np.ndarray:
        """Return the values of a constant, flat."""
        tensor = self._stored[name]
        dtype = np.dtype(_DTYPES[tensor.number(1, "i")])
        first = tensor.span(8)[0]
        count = len(tensor.vector(8, "B")) * _HEADER_BYTES // dtype.itemsize
        wanted = math.prod(self.shape(name))
        found = np.frombuffer(tensor.buffer.content, dtype, min(count, wanted), first)
        if len(found) < wanted:
            raise ValueError(f"constant {name!r} holds {len(found):,} of {wanted:,} values")
        return found

    def constant(self, name: str, shape: Shape | None = None) -> int:
        """Return the tensor of a constant, or of what was computed under that name."""
        if name in self._made and shape is None:
            return self._made[name]
        data = self.values(name).reshape(shape or self.shape(name))
        return self._net.tensor(name, data.shape, str(data.dtype), data=data,
                                quantization=_scale(self._stored[name].vector(13, "q")))

    def emit(self, made: str, op: str, inputs: Sequence[str | int], shape: Shape = (),
             **options: Any) -> None:
        """Add a layer; inputs are names, or tensors; its shape is the stated one if none."""
        stated, dtype, scale = self.describe(made)
        self._made[made] = self._net.layer(
            op, [one if isinstance(one, int) else self.constant(one) for one in inputs],
            shape or stated, dtype=dtype, quantization=scale, **options)


def _scale(exponents: np.ndarray) -> Quantization | None:
    if not len(exponents):
        return None
    scales = tuple(float(2.0 ** int(one)) for one in exponents[:1])
    return Quantization(scales=scales, zero_points=(0,))


class _Call(NamedTuple):
    """A node as it is converted; inputs and outputs by name."""

    reader: _Reader
    inputs: list[str]
    outputs: list[str]
    options: Mapping[str, Any]

    def shape(self, place: int = 0) -> Shape:
        """Return the shape of an input, as it is stored."""
        return self.reader.shape(self.inputs[place])

    def emit(self, op: str, inputs: Sequence[str | int], shape: Shape = (), **options: Any) -> None:
        """Add the layer of the first output, as `_Reader.emit` does."""
        self.reader.emit(self.outputs[0], op, inputs, shape, **options)

    def window(self, kernel: Sequence[int]) -> Window:
        """Return the window over the first input; UnsupportedError of a signal."""
        if len(self.shape()) != 4 or len(kernel) != 2:
            raise UnsupportedError("of a signal")
        top, left, bottom, right = self.options.get("pads", (0, 0, 0, 0))
        stride, dilation = (tuple(self.options.get(name, (1, 1)))
                            for name in ("strides", "dilations"))
        return Window(kernel=(kernel[0], kernel[1]), stride=stride, dilation=dilation,
                      padding=(top, bottom, left, right))


_Convert = Callable[[_Call], None]


def _convert(reader: _Reader, node: Table) -> None:
    found = {one.text(0): one for one in node.tables(5)}
    options = {name: read(one) for name, one in found.items()
               for read in [_ATTRIBUTES.get(one.number(3, "i"))] if read is not None}
    op = node.text(3)
    if op not in _OPERATORS:
        raise UnsupportedError("")
    _OPERATORS[op](_Call(reader, [one for one in node.texts(0) if one], node.texts(1), options))


def _conv(call: _Call) -> None:
    """Read filters of [rows, columns, inputs, outputs]; by channel [rows, columns, n, 1]."""
    image, weights, *bias = call.inputs
    *kernel, depth, count = call.shape(1)
    activation = call.options.get("activation", "Linear")
    if activation not in _ACTIVATIONS:
        raise UnsupportedError(f"activation {activation}")
    groups = call.options.get("group", 1)
    by_channel = groups > 1 and count == 1
    window = call.window(kernel)
    filters = call.reader.constant(weights, (1, *kernel, depth) if by_channel else
                                   (count, *kernel, depth))
    call.emit("depthwise_conv_2d" if by_channel else "conv_2d", [image, filters, *bias],
              window=window, activation=_ACTIVATIONS[activation], groups=groups)


def _gemm(call: _Call) -> None:
    image, weights, *bias = call.inputs
    depth, count = call.shape(1)[-2:]
    call.emit("fully_connected", [image, call.reader.constant(weights, (count, depth)), *bias],
              activation=_ACTIVATIONS.get(call.options.get("activation", "Linear")))


def _pool(op: str) -> _Convert:
    return lambda call: call.emit(op, call.inputs, window=call.window(call.options["kernel_shape"]))


def _plain(op: str, operands: int = 1, **fixed: Any) -> _Convert:
    return lambda call: call.emit(op, call.inputs[:operands], **fixed)


def _mean(call: _Call) -> None:
    before, after = call.shape(), call.reader.describe(call.outputs[0])[0]
    axes = tuple(place for place, size in enumerate(before) if len(after) == len(before)
                 and after[place] != size) or tuple(range(1, len(before) - 1))
    call.emit("mean", call.inputs[:1], axes=axes, keep_dims=len(after) == len(before))


def _split(call: _Call) -> None:
    """Add a slice for each part."""
    axis, start = call.options["axis"], 0
    rank = len(call.shape())
    for name in call.outputs:
        call.reader.emit(name, "slice", call.inputs[:1],
                         **options_of_slice(rank, {axis % rank: (start, 1)}))
        start += call.reader.describe(name)[0][axis]


def _slice(call: _Call) -> None:
    sizes = call.shape()
    starts, axes, steps = ([int(one) for one in call.reader.values(call.inputs[place])]
                           if len(call.inputs) > place else [] for place in (1, 3, 4))
    cuts = {axis: (start % sizes[axis], step) for start, axis, step in zip(
        starts, axes or range(len(starts)), steps or [1] * len(starts), strict=True)}
    call.emit("slice", call.inputs[:1], **options_of_slice(len(sizes), cuts))


def _axis(op: str, **fixed: Any) -> _Convert:
    return lambda call: call.emit(
        op, call.inputs, axis=call.options.get("axis", -1) % len(call.shape()), **fixed)


def _transpose(call: _Call) -> None:
    before = call.shape()
    perm = tuple(axis % len(before) for axis in call.options["perm"])
    call.emit("transpose", call.inputs, tuple(before[axis] for axis in perm), perm=perm)


def _prelu(call: _Call) -> None:
    image, slopes = call.inputs
    call.emit("prelu", [image, call.reader.constant(slopes, (-1,))])


def _resize(call: _Call) -> None:
    mode = {"nearest": "nearest", "linear": "bilinear"}.get(call.options.get("mode", "nearest"))
    if mode is None:
        raise UnsupportedError(f"mode {call.options['mode']}")
    call.emit(f"resize_{mode}", call.inputs[:1], align_corners=False, half_pixel_centers="half"
              in call.options.get("coordinate_transformation_mode", ""))


_OPERATORS: Mapping[str, _Convert] = {
    "Conv": _conv, "Gemm": _gemm, "MaxPool": _pool("max_pool_2d"),
    "AveragePool": _pool("average_pool_2d"), "GlobalAveragePool": _mean, "ReduceMean": _mean,
    "Split": _split, "Slice": _slice, "Transpose": _transpose, "Resize": _resize,
    "Concat": _axis("concatenation"), "Softmax": _axis("softmax", beta=1.0),
    "MatMul": _plain("batch_matmul", 2, adj_x=False, adj_y=False), "PRelu": _prelu,
    **{name: _plain(name.lower(), 2) for name in ("Add", "Sub", "Mul", "Div")},
    **dict.fromkeys(("Sigmoid", "Swish", "LUT", "HardSigmoid", "HardSwish", "Gelu", "Tanh"),
                    _plain("logistic")),
    **dict.fromkeys(("RequantizeLinear", "QuantizeLinear"), _plain("quantize")),
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), _plain("reshape")),
    "Relu": _plain("relu"), "Clip": _plain("relu6"), "Sqrt": _plain("sqrt")}
"""By the name of a node; tables stand for every function of one byte."""
