"""The values of an ExecuTorch program as tensors of a graph: layouts, views, constants, layers."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from twin.errors import ModelError
from twin.network.graph import Graph, Quantization, Shape, Tensor
from twin.network.readers.executorch_program import Call, Listed, Numbers, Program, Spec
from twin.network.readers.onnx_layout import CHANNELS_LAST, PLAIN, stored_axes, stored_shape
from twin.network.zoo.builder import GraphDraft


class Reader(GraphDraft):
    """A graph being made; the functions of `executorch_layers` ask it about `call`, its values.

    Parameters
    ----------
    images
        Values that are stored channel last.
    """

    def __init__(self, program: Program, images: set[int]) -> None:
        super().__init__()
        self.program = program
        self.call = Call(place=-1, kernel="", inputs=(), outputs=())
        self._current: dict[int, int] = {}
        self._written: dict[tuple[int, int], int] = {}
        self._known: dict[int, np.ndarray] = {}
        self._constants: dict[Any, int] = {}
        self._images = images
        self._inputs: list[int] = []
        for number in program.inputs:
            spec = program.values[number]
            if isinstance(spec, Spec):
                self._inputs.append(self._write(number, f"input_{len(self._inputs)}"))

    def argument(self, place: int, default: Any = None) -> Any:
        """Return an argument of the call that is not a tensor."""
        value = self.program.values[self.call.inputs[place]] if place < len(
            self.call.inputs) else None
        if isinstance(value, (Spec, Listed)):
            raise ValueError(f"argument {place} is a tensor")
        if isinstance(value, Numbers):
            value = tuple(int(self.program.values[i]) for i in value)
        return default if value is None else value

    def tensors(self) -> list[int]:
        """Return the values of the call that are tensors, those of a list one by one."""
        found: list[int] = []
        for i in self.call.inputs:
            value = self.program.values[i]
            found += value if isinstance(value, Listed) else [i] * isinstance(value, Spec)
        return found

    def shape(self, value: int) -> Shape:
        """Return the shape of a value as the program has it."""
        spec = self.program.values[value]
        if not isinstance(spec, Spec):
            raise ValueError(f"value {value} is not a tensor")
        return spec.shape

    def axes(self, value: int) -> tuple[int, ...]:
        """Return the program's axis behind each stored axis of a value; -1 for an added one."""
        return stored_axes(len(self.shape(value)), self._layout(value))

    def axis(self, value: int, axis: int) -> int:
        """Return the stored axis of a program's axis, which may be negative."""
        return self.axes(value).index(axis % max(1, len(self.shape(value))))

    def values(self, value: int) -> np.ndarray | None:
        """Return what is known of a value before anything runs, axes as the program has them."""
        spec = self.program.values[value]
        if value not in self._known and isinstance(spec, Spec) and (
                spec.buffer and spec.memory is None):
            self._known[value] = self.program.constant(spec)
        return self._known.get(value)

    def learn(self, values: np.ndarray) -> None:
        """Note what the call's output is known to hold."""
        self._known[self.call.outputs[0]] = values

    def constant(self, values: np.ndarray, name: str = "",
                 quantization: Quantization | None = None) -> int:
        """Return the tensor of a constant, one for the same bytes however often they are used."""
        key = (values.__array_interface__["data"][0], values.shape, values.strides, quantization)
        if key not in self._constants:
            self._constants[key] = self.add_tensor(Tensor(
                name=name or f"constant_{len(self._tensors)}", shape=values.shape,
                dtype=str(values.dtype), data=values, quantization=quantization))
        return self._constants[key]

    def data(self, value: int, like: int | None = None) -> int:
        """Return the tensor of a value; a constant beside another is laid out as that is."""
        if value in self._current:
            return self._current[value]
        spec, known = self.program.values[value], self.values(value)
        if known is not None:
            if like is not None and self._layout(like) == CHANNELS_LAST and known.ndim:
                rank = len(self.shape(like))
                known = known.reshape((1,) * (rank - known.ndim) + known.shape)
                known = known.transpose([axis for axis in self.axes(like) if axis >= 0]).reshape(
                    stored_shape(known.shape, CHANNELS_LAST))
            return self.constant(known, spec.name)
        source = self._written.get(spec.memory) if spec.memory else None
        if source is None:
            raise ModelError(f"{self.program.path}: {self.program.place}: reads value {value} "
                             "before any kernel writes it; state between inferences is not read")
        tensor = self._write(value, f"view_{value}")
        self.append_layer(f"view_{value}", "reshape", (source,), (tensor,))
        return tensor

    def set_quantization(self, tensor: int, scale: float, zero_point: int) -> None:
        """Note the scale of integers a tensor holds."""
        self._tensors[tensor] = replace(self._tensors[tensor], quantization=Quantization(
            scales=(float(scale),), zero_points=(int(zero_point),)))

    def emit(self, op: str, inputs: Sequence[int], **options: Any) -> int:
        """Add the layer of the call; return the first tensor it writes."""
        name = f"{self.call.name.rpartition('::')[2].strip('_')}_{self.call.place}"
        outputs = [self._write(i, name if not n else f"{name}/{n}") for n, i in enumerate(
            i for i in self.call.outputs if math.prod(self.shape(i)))]
        self.append_layer(name, op, inputs, outputs, **options)
        return outputs[0]

    def finish(self) -> Graph:
        """Return the graph."""
        program = self.program
        outputs = tuple(self.data(i) for i in program.outputs
                        if isinstance(program.values[i], Spec))
        first = [program.values[i].order for i in program.inputs
                 if isinstance(program.values[i], Spec)][:1]
        return Graph(
            name=Path(program.path).stem, source=program.path,
            sha256=hashlib.sha256(program.content).hexdigest(), tensors=tuple(self._tensors),
            layers=tuple(self._layers), inputs=tuple(self._inputs), outputs=outputs,
            channel_first=bool(first) and list(first[0]) == sorted(first[0]),
            planned_bytes=program.planned_bytes, notes=program.notes)

    def _layout(self, value: int) -> str:
        return CHANNELS_LAST if value in self._images else PLAIN

    def _write(self, value: int, name: str) -> int:
        """Return a new tensor for a value, which from now on is what lies at its place."""
        spec = self.program.values[value]
        tensor = self.add_tensor(Tensor(name=name, dtype=spec.dtype,
                                  shape=stored_shape(self.shape(value), self._layout(value))))
        self._current[value] = tensor
        if spec.memory is not None:
            self._written[spec.memory] = tensor
        return tensor
