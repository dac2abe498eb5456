"""What converters of an .onnx file ask of the group they convert, and hand layers to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from twin.network.graph import Quantization, Shape, Tensor
from twin.network.readers.onnx_fusion import Group
from twin.network.readers.onnx_layout import CHANNELS_LAST, PLAIN, stored_axes, stored_shape
from twin.network.readers.onnx_nodes import Node
from twin.network.readers.onnx_quantization import read_quantization
from twin.network.readers.onnx_values import OnnxValues
from twin.network.readers.refusal import UnsupportedError


class OnnxReader(OnnxValues):
    """A graph being made; `group` is what is being converted."""

    group: Group

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
                if name and (self.has_consumers(name) or name in self.model.outputs)]

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
        values = self.constant(name)
        if values is None:
            raise UnsupportedError("bias computed at run time")
        if kernel is None or entry is None:
            return self._constant_tensor(name, values.reshape(-1), None)
        if node is not None and (integers := self.model.constants[node.source]).dtype in (
                np.int32, np.int64):
            return self._constant_tensor(node.source, integers, read_quantization(self.model, node))
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

    def _stored_name(self, name: str) -> str:
        """Name the output of a layer is stored under: the quantised value's where it is one."""
        quantizer = self._quantizer(name) if self.group.quantised else None
        return name if quantizer is None else quantizer.result
