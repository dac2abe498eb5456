"""A model file, read: tensors, layers and the graph they form, in NHWC layout."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from hwmodels.frozen import entity, frozen, record
from hwmodels.quantities import list_by_key
from twin.errors import RuntimeRefusedError

DTYPE_BITS = {
    "int4": 4, "uint4": 4, "int8": 8, "uint8": 8, "bool": 8, "int16": 16, "uint16": 16,
    "float16": 16, "bfloat16": 16, "int32": 32, "uint32": 32, "float32": 32, "int64": 64,
    "uint64": 64, "float64": 64,
}
"""Bits of one element by data type name."""

Shape = tuple[int, ...]
"""Extents of a tensor, axis by axis as it is stored."""

Shapes = list[Shape]

Options = dict[str, Any]
"""What else an operator needs, by name."""

RowsColumns = tuple[int, int]

TensorIds = tuple[int, ...]
"""Places of tensors in their graph; -1 where an operand is absent."""


@frozen
class Quantization:
    """Affine quantisation, real = scale * (stored - zero_point).

    Parameters
    ----------
    scales
        One per tensor, or one per channel along `axis`.
    zero_points
        As many as `scales`.
    axis
        Channel axis of per-channel quantisation.
    """

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None = None


@entity
class Tensor:
    """An array of the graph; `data` is set for constants only."""

    name: str
    shape: Shape
    dtype: str
    quantization: Quantization | None = None
    data: np.ndarray | None = None

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Stored size in bytes, 4-bit data packed."""
        return (self.elements * DTYPE_BITS[self.dtype] + 7) // 8

    @property
    def element_bytes(self) -> int:
        """Bytes of one element, at least one."""
        return max(1, DTYPE_BITS[self.dtype] // 8)

    @property
    def channels(self) -> int:
        """Size of the last axis: channels of an image, columns of a matrix."""
        return self.shape[-1]

    @property
    def rows(self) -> int:
        """How many times it has those: pixels of an image, rows of a matrix."""
        return self.elements // self.channels

    @property
    def pixels(self) -> int:
        """Height times width of an image."""
        return self.shape[1] * self.shape[2]

    @property
    def is_constant(self) -> bool:
        """Whether the model file carries this tensor's values."""
        return self.data is not None


@frozen
class Window:
    """A sliding window: kernel, stride, dilation and padding as (top, bottom, left, right)."""

    kernel: RowsColumns
    stride: RowsColumns = (1, 1)
    dilation: RowsColumns = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)

    def pad_same(self, height: int, width: int) -> Window:
        """Return the window with the padding TensorFlow calls SAME, on an image of that size."""
        rows, columns = (same_padding(size, *of_axis) for size, *of_axis in zip(
            (height, width), self.kernel, self.stride, self.dilation, strict=True))
        return replace(self, padding=(*rows, *columns))

    def slide(self, height: int, width: int) -> RowsColumns:
        """Return the rows and columns it has a place in; below 1 where it does not fit."""
        rows, columns = (
            (size + sum(self.padding[2 * axis:2 * axis + 2])
             - (self.kernel[axis] - 1) * self.dilation[axis] - 1) // self.stride[axis] + 1
            for axis, size in enumerate((height, width)))
        return rows, columns


def options_of_slice(rank: int, cuts: Mapping[int, tuple[int, int]]) -> Options:
    """Return options of a slice: first place and step of each axis that is cut, all of others."""
    return {name: tuple(cuts.get(axis, (0, 1))[place] for axis in range(rank))
            for place, name in enumerate(("begin", "strides"))}


def options_of_reduction(stored: Sequence[int], axes: Collection[int], keep: bool) -> Options:
    """Return options of a reduction over axes of a file; of one stored besides, unless kept, too.

    Parameters
    ----------
    stored
        Axes of the file in the order the tensor has them, negative where it has none.
    """
    return {"keep_dims": keep, "axes": tuple(
        place for place, axis in enumerate(stored) if axis in axes or (axis < 0 and not keep))}


def same_padding(size: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """Return padding before and after that TensorFlow calls SAME: output = ceil(size / stride)."""
    total = max(0, (-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size)
    return total // 2, total - total // 2


@frozen
class Layer:
    """One operator of the graph.

    Parameters
    ----------
    index
        Place in execution order.
    name
        Name of the output tensor, unless the file names the node.
    op
        Canonical operator name, a key of `twin.network.operators.OPERATORS`.
    inputs, outputs
        Tensor indices; -1 is an absent optional input. For weighted operators the order is
        data, weights, bias.
    window
        For convolutions and pooling.
    activation
        Fused activation: "relu", "relu6", "relu_n1_to_1", "tanh" or None.
    groups
        Channel groups of a convolution; a depthwise one has as many as input channels.
    options : tuple of (str, value) pairs
        What else the operator needs: axis, alpha, half_pixel_centers ...; sorted by name.
    assumed
        Whether the layer stands in for an operator nobody priced (`--assume-unsupported`).
    repeats
        How often it runs in one inference: turns of the loop it stands in.
    """

    index: int
    name: str
    op: str
    inputs: TensorIds
    outputs: TensorIds
    window: Window | None = None
    activation: str | None = None
    groups: int = 1
    options: tuple[tuple[str, Any], ...] = ()
    assumed: bool = False
    repeats: int = 1

    @property
    def source_id(self) -> int:
        """First tensor it reads."""
        return self.inputs[0]

    @property
    def target_id(self) -> int:
        """First tensor it writes."""
        return self.outputs[0]

    @property
    def tensors(self) -> TensorIds:
        """What it reads and writes."""
        return (*self.inputs, *self.outputs)

    @property
    def bias(self) -> int:
        """Place of a weighted operator's bias; -1 without one."""
        return self.inputs[2] if len(self.inputs) > 2 else -1

    @property
    def kernel(self) -> RowsColumns:
        """Rows and columns of the window; 1 and 1 without one."""
        return (1, 1) if self.window is None else self.window.kernel

    @property
    def sliding_window(self) -> Window:
        """The window of a layer that has one."""
        assert self.window is not None, f"layer {self.index} {self.op} has no window"
        return self.window

    def option(self, name: str, default: Any = None) -> Any:
        """Return the option of that name, or the default."""
        return dict(self.options).get(name, default)


@entity
class Graph:
    """A model: tensors, layers in execution order, and which tensors go in and out.

    Parameters
    ----------
    name
        Short name: the file's stem or the zoo's.
    source
        Where it came from: a path, or "zoo:NAME".
    sha256
        Of the file's bytes; for a graph built in code, of its content.
    notes
        What its reader assumed, to be said with every prediction.
    channel_first
        Whether the file's images are channel first; tensors here are channel last.
    planned_bytes
        Sizes of the buffers the file's own memory plan asks for, () where it has none; 0 once the
        network was changed.
    left_out : (int, tuple of str) or None
        How many tensors, and which operators, of a .tflite file are not here; an interpreter keeps
        records of both. None: read from no such file.
    overhead_bytes
        Of a .tflite file beside constants and their scales: names, tensors, operators, metadata.
    """

    name: str
    source: str
    sha256: str
    tensors: tuple[Tensor, ...]
    layers: tuple[Layer, ...]
    inputs: TensorIds
    outputs: TensorIds
    notes: tuple[str, ...] = ()
    channel_first: bool = False
    planned_bytes: tuple[int, ...] = ()
    left_out: tuple[int, tuple[str, ...]] | None = None
    overhead_bytes: int | None = None

    @property
    def constant_bytes(self) -> int:
        """Bytes a flatbuffer has of constants, and of scales and zero points: 12 of each."""
        return sum((tensor.size_bytes if tensor.is_constant else 0)
                   + 12 * len(tensor.quantization.scales if tensor.quantization else ())
                   for tensor in self.tensors)

    def input(self, layer: Layer, place: int = 0) -> Tensor:
        """Tensor a layer reads in a place."""
        return self.tensors[layer.inputs[place]]

    def output(self, layer: Layer) -> Tensor:
        """First tensor a layer writes."""
        return self.tensors[layer.target_id]

    @property
    def entry(self) -> Tensor:
        """The first input."""
        return self.tensors[self.inputs[0]]

    @property
    def steps(self) -> tuple[GraphLayer, ...]:
        """The layers in order, each with the graph."""
        return tuple(GraphLayer(self, layer) for layer in self.layers)

    @property
    def readers(self) -> dict[int, list[Layer]]:
        """Layers that read each tensor."""
        return list_by_key((tensor, layer) for layer in self.layers for tensor in layer.inputs)

    def list_data(self, layer: Layer) -> TensorIds:
        """Tensors a layer reads that are no constants."""
        return tuple(i for i in layer.inputs if i >= 0 and not self.tensors[i].is_constant)

    def ends(self, layer: Layer) -> tuple[Tensor, Tensor]:
        """First tensor a layer reads, and the first it writes."""
        return self.input(layer), self.output(layer)

    def layer_inputs(self, layer: Layer) -> tuple[Tensor | None, ...]:
        """Tensors the layer reads, None for absent optional ones."""
        return tuple(self.tensors[i] if i >= 0 else None for i in layer.inputs)

    def layer_outputs(self, layer: Layer) -> tuple[Tensor, ...]:
        """Tensors the layer writes."""
        return tuple(self.tensors[i] for i in layer.outputs)

    @cached_property
    def architecture_id(self) -> str:
        """Hash of operators, shapes, types and attributes: equal for the same network retrained.

        Returns
        -------
        str
            Twelve hexadecimal digits.
        """
        digest = hashlib.sha256()
        order: dict[int, int] = {}
        for layer in self.layers:
            for tensor_id in layer.tensors:
                order.setdefault(tensor_id, len(order))
            described = [
                layer.op, str(layer.window), str(layer.activation), str(layer.groups),
                str([order[i] for i in layer.inputs]), str([order[i] for i in layer.outputs]),
            ]
            for tensor_id in layer.tensors:
                if tensor_id >= 0:
                    tensor = self.tensors[tensor_id]
                    described.append(f"{tensor.shape}{tensor.dtype}{tensor.is_constant}")
            if layer.repeats > 1:
                described.append(f"x{layer.repeats}")
            digest.update("|".join(described).encode())
        return digest.hexdigest()[:12]

    @cached_property
    def content_id(self) -> str:
        """Hash of everything but names: equal for the same tensors, constants and layers."""
        digest = hashlib.sha256()

        def add(*things: object) -> None:
            for thing in things:
                if isinstance(thing, np.ndarray):
                    digest.update(f"{thing.shape}{thing.dtype}".encode())
                    digest.update(np.ascontiguousarray(thing).tobytes())
                else:
                    digest.update(repr(thing).encode())
                digest.update(b";")

        add(self.source, self.inputs, self.outputs, self.channel_first)
        for tensor in self.tensors:
            add(tensor.shape, tensor.dtype, tensor.data)
            if (scaled := tensor.quantization) is not None:
                add(np.array(scaled.scales), np.array(scaled.zero_points), scaled.axis)
        for layer in self.layers:
            add(layer.index, layer.op, layer.inputs, layer.outputs, layer.window,
                layer.activation, layer.groups, layer.assumed, layer.repeats)
            for name, value in layer.options:
                add(name, value)
        return digest.hexdigest()


@record
class GraphLayer:
    """A layer of a graph, and the values of the tensors it reads that are no constants."""

    graph: Graph
    layer: Layer
    inputs: tuple[np.ndarray, ...] = ()

    @property
    def data(self) -> np.ndarray:
        """The first of the values."""
        return self.inputs[0]

    @property
    def source(self) -> Tensor:
        """First tensor it reads."""
        return self.graph.input(self.layer)

    @property
    def weights(self) -> Tensor:
        """Second tensor it reads."""
        return self.graph.input(self.layer, 1)

    @property
    def output(self) -> Tensor:
        """First tensor it writes."""
        return self.graph.output(self.layer)

    @property
    def ends(self) -> tuple[Tensor, Tensor]:
        """First tensor it reads, and the first it writes."""
        return self.graph.ends(self.layer)

    @property
    def shape(self) -> Shape:
        """Of what it writes."""
        return self.output.shape

    @property
    def op(self) -> str:
        """Its operator."""
        return self.layer.op

    @property
    def reads(self) -> tuple[Tensor, ...]:
        """All tensors it reads."""
        return tuple(self.graph.tensors[i] for i in self.layer.inputs if i >= 0)

    @property
    def writes(self) -> tuple[Tensor, ...]:
        """All tensors it writes."""
        return self.graph.layer_outputs(self.layer)

    def input(self, place: int) -> Tensor:
        """Tensor it reads in a place."""
        return self.graph.input(self.layer, place)

    def option(self, name: str, default: Any = None) -> Any:
        """Return the option of that name, or the default."""
        return self.layer.option(name, default)

    def refuse(self, reason: str) -> RuntimeRefusedError:
        """Return the error that says why there is no kernel for it."""
        return RuntimeRefusedError(f"layer {self.layer.index} {self.layer.op}: {reason}")
