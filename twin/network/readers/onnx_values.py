"""The values of an .onnx file as tensors of a graph: names, layouts, quantisation."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from twin.errors import ModelError
from twin.network.graph import Graph, Quantization, Shape, Tensor
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


class OnnxValues(GraphDraft):
    """A graph being made: values by name and layout, moved where another is asked."""

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

    def has_consumers(self, name: str) -> bool:
        """Whether any node reads a value."""
        return bool(self._consumers.get(name))

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

    def add_layer(self, op: str, inputs: Sequence[int], shapes: Sequence[Sequence[int]],
                  **options: Any) -> list[int]:
        """Add a layer the file has no values for; return its outputs, typed as its input."""
        first = self._tensors[inputs[0]]
        made = [self.add_tensor(replace(
            first, name=f"{first.name}/{op}{len(self._tensors)}", shape=tuple(shape), data=None))
            for shape in shapes]
        self._layer(op, inputs, made, **options)
        return made

    def finish(self) -> Graph:
        """Return the graph."""
        outputs = []
        makers = {layer.target_id: place for place, layer in enumerate(self._layers)}
        for name in self.model.outputs:
            if self._source(name) != name:
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
        if self._source(name) != name:
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
