"""An .onnx file being made: what encoders of operators hand their nodes and values to."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from twin.errors import ModelError
from twin.network.graph import Graph, Layer, Quantization, Shape
from twin.network.operators import ACTIVATION_BOUNDS

TO_FILE = (0, 3, 1, 2)
"""Stored axis behind each file axis of an image: channels come second in the file."""
_STORED_TO_FILE = (0, 2, 3, 1)
INTEGERS, FLOATS = ("int8", "uint8", "int32"), ("float32", "float16")
"""Types written between quantise-dequantise pairs."""


@dataclass(slots=True)
class Output:
    """A file being made; encoders ask it for values and hand it nodes.

    Parameters
    ----------
    layer, results
        What is being encoded, and the names of what that writes.
    """

    graph: Graph
    names: tuple[str, ...]
    nodes: list[Any] = field(default_factory=list)
    initializers: dict[str, Any] = field(default_factory=dict)
    real_names: dict[int, str] = field(default_factory=dict)
    layer: Layer = field(init=False)
    results: list[str] = field(init=False)

    @property
    def real_type(self) -> str:
        """Type of real numbers: a network of float16 has no others."""
        return FLOATS[any(tensor.dtype == "float16" for tensor in self.graph.tensors)]

    @property
    def rank(self) -> int:
        """Dimensions of what the layer reads."""
        return len(self.graph.input(self.layer).shape)

    def option(self, name: str, default: Any = None) -> Any:
        """Return an option of the layer."""
        return self.layer.option(name, default)

    def source(self) -> str:
        """Name of the real values the layer reads."""
        return self.real(self.layer.source_id)

    def shape(self, tensor: int) -> Shape:
        """Shape of a tensor as the file has it."""
        return to_file_shape(self.graph.tensors[tensor].shape)

    def constant(self, name: str, values: np.ndarray) -> str:
        """Add an initializer and return its name."""
        import onnx

        self.initializers.setdefault(name, onnx.numpy_helper.from_array(
            np.ascontiguousarray(values) if values.ndim else values, name))
        return name

    def integers(self, what: str, values: Any) -> str:
        """Add an int64 initializer for the layer and return its name."""
        return self.constant(f"{self.names[self.layer.target_id]}/{what}",
                             np.asarray(values, np.int64))

    def node(self, op: str, inputs: list[str], outputs: list[str] | None = None,
             **attributes: Any) -> None:
        """Add a node that writes `outputs`, by default what the layer does."""
        import onnx

        self.nodes.append(onnx.helper.make_node(op, inputs, outputs or self.results, **attributes))

    def clamp(self, activation: str, source: str, result: str) -> None:
        """Add the node of an activation that clamps."""
        low, high = ACTIVATION_BOUNDS[activation]
        if math.isinf(high):
            self.node("Relu", [source], [result])
            return
        limits = [self.constant(f"limit_{bound:g}", np.asarray(bound, self.real_type))
                  for bound in (low, high)]
        self.node("Clip", [source, *limits], [result])

    def real(self, tensor_id: int, values: np.ndarray | None = None, axis: int = 0) -> str:
        """Name of a tensor's real values, dequantised first where it holds integers.

        Parameters
        ----------
        values
            A constant's data, arranged as the file wants it.
        axis
            Axis of per-channel scales in that arrangement.
        """
        tensor, name = self.graph.tensors[tensor_id], self.names[tensor_id]
        if tensor_id in self.real_names:
            return self.real_names[tensor_id]
        if tensor.data is not None:
            self.constant(name, tensor.data if values is None else values)
        self.real_names[tensor_id] = name
        if tensor.dtype in INTEGERS:
            self.real_names[tensor_id] = f"{name}/real"
            self.node("DequantizeLinear", [name, *self.scale(tensor_id)], [f"{name}/real"],
                      axis=axis)
        return self.real_names[tensor_id]

    def scale(self, tensor_id: int) -> list[str]:
        """Names of a tensor's scale and zero point."""
        tensor, name = self.graph.tensors[tensor_id], self.names[tensor_id]
        quantization: Quantization | None = tensor.quantization
        if quantization is None:
            raise ModelError(f"{self.graph.name}: tensor {tensor.name!r}: {tensor.dtype} without "
                             "quantisation cannot be written as .onnx")
        scales = np.asarray(quantization.scales, np.float32)
        zeros = np.asarray(quantization.zero_points, tensor.dtype)
        if quantization.axis is None:
            scales, zeros = scales[0], zeros[0]
        return [self.constant(f"{name}/scale", np.asarray(scales)),
                self.constant(f"{name}/zero", np.asarray(zeros))]

    def refuse(self, why: str) -> ModelError:
        """Return the error that says the layer cannot be written."""
        layer = self.layer
        return ModelError(f"{self.graph.name}: layer {layer.index} {layer.op} {layer.name!r} "
                          f"cannot be written as .onnx: {why}")


def to_file_shape(shape: Shape) -> Shape:
    """Shape of a stored tensor in the file: images have channels second."""
    return tuple(shape[axis] for axis in TO_FILE) if len(shape) == 4 else shape


def to_file_axis(axis: int, rank: int) -> int:
    """File axis of a stored axis."""
    return _STORED_TO_FILE[axis] if rank == 4 else axis
