"""The values of an .onnx file as tensors of a graph: names, layouts, quantisation, layers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from twin.errors import ModelError
from twin.network.graph import Graph, Quantization, Shape, Tensor
from twin.network.readers.onnx_fusion import Group
from twin.network.readers.onnx_layout import (
    CHANNELS_LAST,
    PLAIN,
    guess_layout,
    keeps_order,
    permutation,
    stored_axes,
    stored_shape,
)
from twin.network.readers.onnx_nodes import Node, OnnxModel
from twin.network.readers.onnx_quantization import QUANTISING, find_quantization, read_quantization
from twin.network.readers.refusal import UnsupportedError
from twin.network.zoo.builder import GraphDraft

_CONSTANT = "constant"  # where constants stand, as a layout of their own


class OnnxReader(GraphDraft):
    """A graph being made; converters ask it for inputs and hand it layers.

    `group` is what is being converted.
    """

    group: Group

    def __init__(self, model: OnnxModel) -> None:
        super().__init__()
        self.model = model
        self._called: set[str] = set()
        self._stored: dict[tuple[str, str], int] = {}
        self._consumers = model.consumers()
        self._real = {node.result: node for node in model.nodes if node.op == "DequantizeLinear"}
        self._quantized = find_quantization(model)
        self._flattened: dict[str, Shape] = {}
        for name in model.inputs:
            layout = guess_layout(name, len(model.shapes[name]), self._consumers)
            shape = stored_shape(model.shapes[name], layout)
            self._store(name, layout, Tensor(name=name, shape=shape, dtype=model.dtypes[name],
                                             quantization=self._quantized.get(name)))
        self._inputs = tuple(range(len(model.inputs)))

    # What converters ask

    @property
    def node(self) -> Node:
        """The operator being converted."""
        return self.group.node

    @property
    def source_shape(self) -> Shape:
        """Shape of its first input as the file has it."""
        return self.shape(self.node.source)

    @property
    def rank(self) -> int:
        """Dimensions of its first input."""
        return len(self.source_shape)

    def stored_axis(self, axis: int, layout: str) -> int:
        """Return the stored axis of an axis of its first input, which may be negative."""
        return stored_axes(self.rank, layout).index(axis % self.rank)

    def read_results(self) -> list[str]:
        """Names of what it writes and somebody reads."""
        return [name for name in self.node.outputs
                if name and (self._consumers.get(name) or name in self.model.outputs)]

    @property
    def source_layout(self) -> str:
        """Layout its first input is stored in."""
        return self.layout(self.node.source)

    @property
    def kernel_shape(self) -> Shape:
        """Shape of its second input, the weights of a weighted one, as the file has it."""
        return self.shape(self.node.inputs[1])

    @property
    def result_shape(self) -> Shape:
        """Shape of its result as the file has it."""
        return self.shape(self.group.output)

    def shape(self, name: str) -> Shape:
        """Shape of a value as the file has it."""
        return self.model.shapes[name]

    def constant(self, name: str) -> np.ndarray | None:
        """Values of a constant, dequantised where the file dequantises it."""
        node = self._real.get(name)
        if node is None:
            return self.model.constants.get(name)
        values = self.model.constants.get(node.source)
        if values is None:
            return None
        quantization = read_quantization(self.model, node)
        shape = [1] * values.ndim
        if quantization.axis is not None:
            shape[quantization.axis] = -1
        scales = np.asarray(quantization.scales, np.float32).reshape(shape)
        zeros = np.asarray(quantization.zero_points, np.float32).reshape(shape)
        return ((values.astype(np.float32) - zeros) * scales).astype(np.float32)

    def is_constant(self, name: str) -> bool:
        """Whether a value is known, or known integers dequantised."""
        node = self._real.get(name)
        return (name if node is None else node.source) in self.model.constants

    def layout(self, name: str) -> str:
        """Layout a value is stored in."""
        source = self._source(name)
        return CHANNELS_LAST if (source, CHANNELS_LAST) in self._stored else PLAIN

    def integers(self, place: int, attribute: str) -> list[int] | None:
        """Integers it takes as a constant input or, in older files, an attribute."""
        if self.node.input(place):
            values = self.model.constants.get(self.node.input(place))
            if values is None:
                raise UnsupportedError(f"{attribute} computed at run time")
            return [int(value) for value in values.reshape(-1)]
        given = self.node.option(attribute)
        return None if given is None else [int(value) for value in np.atleast_1d(given)]

    def data(self, layout: str | None = None, place: int = 0) -> int:
        """Tensor of an input in a layout, by default the one it is stored in."""
        name = self.node.inputs[place]
        layout = layout or self.layout(name)
        if self.is_constant(name) and not self._is_stored(name):
            return self.operand(place, layout, len(self.shape(name)))
        if self.group.quantised and name in self._real:
            name = self._real[name].source
        return self._read(name, layout)

    def plain(self, name: str) -> int:
        """Tensor of an input that is never quantised: indices, places."""
        values = self.model.constants.get(name)
        if values is not None:
            return self._constant_tensor(name, values, None)
        return self._read(name, PLAIN)

    def weights(self, place: int, arrange: Callable[[np.ndarray], np.ndarray],
                channel_axis: int = 0) -> int:
        """Tensor of constant weights, rearranged; per-channel scales follow `channel_axis`."""
        name = self.node.inputs[place]
        node = self._real.get(name)
        if node is not None and (self.group.quantised or name in self.model.dynamic):
            values = self.model.constants.get(node.source)
            quantization = read_quantization(self.model, node)
            if quantization.axis is not None:
                quantization = replace(quantization, axis=channel_axis)
            name = node.source
        else:
            values, quantization = self.constant(name), None
        if values is None:
            raise UnsupportedError("weights computed at run time")
        return self._constant_tensor(name, arrange(values), quantization)

    def weighted(self, layout: str, arrange: Callable[[np.ndarray], np.ndarray],
                 channel_axis: int = 0) -> list[int]:
        """Tensors of a weighted operator: data, weights as `weights` has them, bias if any."""
        inputs = [self.data(layout), self.weights(1, arrange, channel_axis)]
        bias = self.group.bias or self.node.input(2)
        return [*inputs, self.bias(bias, *inputs)] if bias else inputs

    def bias(self, name: str, data: int, weights: int) -> int:
        """Tensor of a bias; one of few bits beside integer weights is quantised as they are."""
        node = self._real.get(name)
        entry, kernel = (self._tensors[i].quantization for i in (data, weights))
        exact = kernel is None or entry is None
        integers = None if node is None or exact else self.model.constants.get(node.source)
        if node is not None and integers is not None and integers.dtype in (np.int32, np.int64):
            return self._constant_tensor(node.source, integers, read_quantization(self.model, node))
        values = self.constant(name)
        if values is None:
            raise UnsupportedError("bias computed at run time")
        if kernel is None or entry is None:
            return self._constant_tensor(name, values.reshape(-1), None)
        scales = np.asarray(kernel.scales) * entry.scales[0]
        stored = np.rint(values.reshape(-1) / scales).astype(np.int32)
        quantization = Quantization(scales=tuple(scales.tolist()), zero_points=(0,) * len(scales),
                                    axis=0 if len(scales) > 1 else None)
        return self._constant_tensor(name, stored, quantization)

    def operand(self, place: int, layout: str, rank: int) -> int:
        """Tensor of an element-wise operand; a constant is permuted to the layout."""
        name = self.node.inputs[place]
        integers = self.group.quantised and name in self._real
        source = self._real[name].source if integers else name
        values = self.model.constants.get(source) if integers else self.constant(name)
        if values is None:
            return self.data(layout, place)
        quantization = None
        if integers:
            quantization = read_quantization(self.model, self._real[name])
        elif name not in self._real:
            quantization = self._quantized.get(name)
        if layout == CHANNELS_LAST and values.ndim:
            lifted = values.reshape((1,) * (rank - values.ndim) + values.shape)
            order = [axis for axis in stored_axes(rank, layout) if axis >= 0]
            moved = lifted.transpose(order).reshape(stored_shape(lifted.shape, layout))
            while values.ndim < rank and moved.ndim > 1 and moved.shape[0] == 1:
                moved = moved[0]
            values = moved
        return self._constant_tensor(source, values, quantization)

    def operands(self) -> tuple[list[int], str]:
        """Tensors of all inputs in one layout, and it: channels last where one is computed so."""
        rank = len(self.result_shape)
        computed = [name for name in self.node.inputs if not self.is_constant(name)]
        last = any(self.layout(name) == CHANNELS_LAST for name in computed)
        full = all(len(self.shape(name)) == rank for name in computed)
        layout = CHANNELS_LAST if last and full else PLAIN
        places = range(len(self.node.inputs))
        return [self.operand(place, layout, rank) for place in places], layout

    def set_flattened(self, shape: Shape) -> None:
        """Note that the group's flat output keeps the stored order of a value of that shape."""
        self._flattened[self._stored_name(self.group.output)] = shape

    def flattened(self, name: str) -> Shape | None:
        """Shape in the file of what a flat value was, None when its order is the file's."""
        return self._flattened.get(self._source(name))

    def feeds_products_only(self, name: str) -> bool:
        """Whether only matrix products with constant weights read a value."""
        waiting = [name]
        while waiting:
            name = waiting.pop()
            readers = self._consumers.get(name, [])
            if not readers or name in self.model.outputs or not all(
                    node.op in QUANTISING or (
                        node.op in ("Gemm", "MatMul") and node.source == name
                        and self.is_constant(node.inputs[1])) for node in readers):
                return False
            waiting += [node.result for node in readers if node.op in QUANTISING]
        return True

    def has_consumers(self, name: str) -> bool:
        """Whether any node reads a value."""
        return bool(self._consumers.get(name))

    def alias(self, tensor: int, layout: str) -> None:
        """Let the group's output be a tensor that exists, without a layer."""
        self._stored[self._stored_name(self.group.output), layout] = tensor

    def emit(self, op: str, inputs: Sequence[int], layout: str, *,
             outputs: Sequence[str] = (), activation: str | None = None, **options: Any) -> None:
        """Add a layer that writes the group's output, or several named ones."""
        names = list(outputs) or [self.group.output]
        made = []
        for name in names:
            stored = self._stored_name(name)
            quantization = self._quantized.get(stored)
            dtype = self.model.dtypes[stored]
            if quantization is None and dtype in ("int8", "uint8", "int16", "uint16"):
                quantization = self._tensors[inputs[0]].quantization
            shape = stored_shape(self.model.shapes[name], layout)
            made.append(self._store(stored, layout, Tensor(
                name=stored, shape=shape, dtype=dtype, quantization=quantization)))
        self._layer(op, inputs, made, self.node.name,
                    activation=self.group.activation or activation, **options)

    def add_layer(self, op: str, inputs: Sequence[int], shapes: Sequence[Sequence[int]],
                  **options: Any) -> list[int]:
        """Add a layer the file has no values for; return its outputs, typed as its input."""
        first = self._tensors[inputs[0]]
        made = [self.add_tensor(replace(
            first, name=f"{first.name}/{op}{len(self._tensors)}", shape=tuple(shape), data=None))
            for shape in shapes]
        self._layer(op, inputs, made, **options)
        return made

    # What the driver asks

    def is_quantised(self, places: Sequence[int]) -> bool:
        """Whether a group reads dequantised integers only and its outputs are quantised again."""
        names = [self.node.input(place) for place in places if self.node.input(place)]
        made = [self.group.output, *(name for name in self.node.outputs[1:]
                                if name and self.has_consumers(name))]
        if self.node.op == "Split" and not self.has_consumers(self.group.output):
            made = made[1:]
        return (bool(made) and all(self._quantizer(name) is not None for name in made)
                and all(name in self._real for name in names))

    def add_quantizer(self) -> None:
        """Add the layer of a QuantizeLinear, unless the layer before writes integers itself."""
        name = self.node.result
        if not self._is_stored(name):
            self._convert("quantize", self._source(self.node.source), name, self._quantized[name])

    def add_copy(self) -> None:
        """Stand an assumed copy in for a group."""
        self.group.quantised = False
        node = self.node
        inputs = [self.data(place=place) for place, name in enumerate(node.inputs)
                  if name and not self.is_constant(name)]
        outputs = [name for name in node.outputs[1:] if self.has_consumers(name)]
        self.emit("copy", inputs, PLAIN, outputs=[self.group.output, *outputs], of=node.op,
                  assumed=True)

    def finish(self) -> Graph:
        """Return the graph."""
        outputs = []
        makers = {layer.target_id: place for place, layer in enumerate(self._layers)}
        for name in self.model.outputs:
            if name in self._real and not self._is_stored(name):
                self._dequantise(name)
            elif self.is_constant(name) and len(self.model.outputs) > 1:
                self.model.notes.append(f"output {name!r} is a constant: nothing computes it, and "
                                        "its bytes are in no figure here")
                continue
            key = (name, self.layout(name))
            if key not in self._stored:
                raise ModelError(f"{self.model.path}: output {name!r} is a constant or nobody "
                                 "writes it")
            outputs.append(self._stored[key])
            self._rename(outputs[-1], name, makers)
        return Graph(name=Path(self.model.path).stem, source=self.model.path,
                     sha256=hashlib.sha256(self.model.content).hexdigest(),
                     tensors=tuple(self._tensors), layers=tuple(self._layers),
                     inputs=self._inputs, outputs=tuple(outputs),
                     notes=tuple(self.model.notes), channel_first=True)

    # Inside

    def _rename(self, tensor: int, name: str, makers: Mapping[int, int]) -> None:
        """Call an output of the network what the file calls it, an alias's name or not."""
        place = makers.get(tensor)
        if place is not None:
            if self._layers[place].name == self._tensors[tensor].name:
                self._layers[place] = replace(self._layers[place], name=name)
            self._tensors[tensor] = replace(self._tensors[tensor], name=name)

    def _is_stored(self, name: str) -> bool:
        return (name, PLAIN) in self._stored or (name, CHANNELS_LAST) in self._stored

    def _source(self, name: str) -> str:
        """Name of the integers behind a dequantised value nobody made yet, else the name."""
        return name if name not in self._real or self._is_stored(name) \
            else self._real[name].source

    def _quantizer(self, name: str) -> Node | None:
        """Return the QuantizeLinear that alone reads a value."""
        readers = self._consumers.get(name, [])
        alone = len(readers) == 1 and name not in self.model.outputs
        return readers[0] if alone and readers[0].op == "QuantizeLinear" else None

    def _stored_name(self, name: str) -> str:
        """Name the output of a layer is stored under: the quantised value's where it is one."""
        quantizer = self._quantizer(name) if self.group.quantised else None
        return name if quantizer is None else quantizer.result

    def _store(self, name: str, layout: str, tensor: Tensor) -> int:
        self._stored[name, layout] = self.add_tensor(tensor)
        return self._stored[name, layout]

    def _constant_tensor(self, name: str, values: np.ndarray,
                         quantization: Quantization | None) -> int:
        dtype = str(values.dtype)
        values = np.ascontiguousarray(values) if values.ndim else values
        key = name
        while (key, _CONSTANT) in self._stored:
            # The same values arranged in two ways are two tensors.
            index = self._stored[key, _CONSTANT]
            known = self._tensors[index]
            if (known.data is not None and np.array_equal(known.data, values)
                    and known.quantization == quantization):
                return index
            key += "'"
        if dtype in ("int4", "uint4"):
            values = values.astype(np.int8 if dtype == "int4" else np.uint8)
        return self._store(key, _CONSTANT, Tensor(name=key, shape=values.shape, dtype=dtype,
                                                  data=values, quantization=quantization))

    def _layer(self, op: str, inputs: Sequence[int], outputs: Sequence[int], called: str = "",
               **options: Any) -> None:
        if not called or called in self._called:  # Names of nodes need be there nor be different.
            called = self._tensors[outputs[0]].name
        self._called.add(called)
        self.append_layer(called, op, inputs, outputs, **options)

    def _in_layout(self, name: str, layout: str) -> int:
        """Tensor of a value in a layout, moved there first if it is stored in the other."""
        if (name, layout) in self._stored:
            return self._stored[name, layout]
        other = PLAIN if layout == CHANNELS_LAST else CHANNELS_LAST
        if (name, other) not in self._stored:
            if name in self.model.constants:
                raise UnsupportedError(f"constant {name!r} where computed data is expected")
            raise UnsupportedError(f"{name!r} is not available")
        shape = self.model.shapes[name]
        source = self._stored[name, other]
        perm = permutation(shape, other, layout)
        bare = tuple(shape[axis] for axis in stored_axes(len(shape), other) if axis >= 0)
        made = tuple(bare[axis] for axis in perm)
        if not keeps_order(bare, perm):
            source = self._moved("reshape", source, bare)
            source = self._moved("transpose", source, made, perm=perm)
        self._stored[name, layout] = self._moved("reshape", source, stored_shape(shape, layout))
        return self._stored[name, layout]

    def _moved(self, op: str, source: int, shape: Shape, **options: Any) -> int:
        tensor = self._tensors[source]
        if op == "reshape" and tensor.shape == shape:
            return source
        (made,) = self.add_layer(op, (source,), (shape,), **options)
        return made

    def _read(self, name: str, layout: str) -> int:
        """Tensor of a value in a layout, made real numbers first where nobody did."""
        if name in self._real and not self._is_stored(name):
            self._dequantise(name)
        return self._in_layout(name, layout)

    def _dequantise(self, name: str) -> None:
        self._convert("dequantize", self._real[name].source, name, None)

    def _convert(self, op: str, source: str, name: str, quantization: Quantization | None) -> None:
        """Add a layer that writes a value again in another type."""
        layout = self.layout(source)
        data = self._in_layout(source, layout)
        made = self._store(name, layout, replace(
            self._tensors[data], name=name, dtype=self.model.dtypes[name],
            quantization=quantization, data=None))
        self._layer(op, (data,), (made,))
