"""Write a graph as an .onnx file: float operators, integers between quantise-dequantise pairs.

References
----------
ONNX operator set 17.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hwmodels.errors import extra_missing
from twin.errors import ModelError
from twin.network.graph import Graph, Layer, Quantization
from twin.network.writers.model_file import replace_file

OPSET = 17
IR_VERSION = 8
TO_FILE = (0, 3, 1, 2)
"""Stored axis behind each file axis of an image: channels come second in the file."""
_STORED_TO_FILE = (0, 2, 3, 1)
_INTEGERS = ("int8", "uint8", "int32")


@dataclass(slots=True)
class Output:
    """A file being made; encoders ask it for values and hand it nodes."""

    graph: Graph
    names: tuple[str, ...]
    nodes: list[Any] = field(default_factory=list)
    initializers: dict[str, Any] = field(default_factory=dict)
    real_names: dict[int, str] = field(default_factory=dict)

    def shape(self, tensor: int) -> tuple[int, ...]:
        """Shape of a tensor as the file has it."""
        return to_file_shape(self.graph.tensors[tensor].shape)

    def constant(self, name: str, values: np.ndarray) -> str:
        """Add an initializer and return its name."""
        import onnx

        self.initializers.setdefault(name, onnx.numpy_helper.from_array(
            np.ascontiguousarray(values) if values.ndim else values, name))
        return name

    def integers(self, layer: Layer, what: str, values: Any) -> str:
        """Add an int64 initializer for a layer and return its name."""
        return self.constant(f"{self.names[layer.outputs[0]]}/{what}",
                             np.asarray(values, np.int64))

    def node(self, op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        """Add a node."""
        import onnx

        self.nodes.append(onnx.helper.make_node(op, inputs, outputs, **attributes))

    def real(self, tensor_id: int, values: np.ndarray | None = None, axis: int = 0) -> str:
        """Name of a tensor's real values, dequantised first where it holds integers.

        Parameters
        ----------
        tensor_id : int
            Of the graph.
        values : ndarray, optional
            A constant's data, arranged as the file wants it.
        axis : int
            Axis of per-channel scales in that arrangement.
        """
        tensor, name = self.graph.tensors[tensor_id], self.names[tensor_id]
        if tensor_id in self.real_names:
            return self.real_names[tensor_id]
        if tensor.data is not None:
            self.constant(name, tensor.data if values is None else values)
        self.real_names[tensor_id] = name
        if tensor.dtype in _INTEGERS:
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

    def refuse(self, layer: Layer, why: str) -> ModelError:
        """Return the error that says a layer cannot be written."""
        return ModelError(f"{self.graph.name}: layer {layer.index} {layer.op} {layer.name!r} "
                          f"cannot be written as .onnx: {why}")


def to_file_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of a stored tensor in the file: images have channels second."""
    return tuple(shape[axis] for axis in TO_FILE) if len(shape) == 4 else shape


def to_file_axis(axis: int, rank: int) -> int:
    """File axis of a stored axis."""
    return _STORED_TO_FILE[axis] if rank == 4 else axis


def write_onnx(graph: Graph, path: str | Path) -> None:
    """Write a graph as an .onnx file.

    Parameters
    ----------
    graph : Graph
        Float32, or int8 and uint8.
    path : str or Path
        File to create or replace, atomically.

    Raises
    ------
    ModelError
        When the format, or this writer, has no way to say a layer; or the file cannot be
        written.
    ToolMissingError
        Without the `onnx` extra.
    """
    replace_file(path, encode_onnx(graph))


def encode_onnx(graph: Graph) -> bytes:
    """Return the bytes of the .onnx file of a graph; the same graph gives the same bytes."""
    try:
        import onnx
    except ImportError:
        raise extra_missing(".onnx files", "the package onnx", "onnx") from None
    output = Output(graph=graph, names=_unique_names(graph))
    for layer in graph.layers:
        _write_layer(output, layer)
    body = onnx.helper.make_graph(
        output.nodes, graph.name, [_declare(output, i) for i in graph.inputs],
        [_declare(output, i) for i in graph.outputs],
        initializer=list(output.initializers.values()))
    model = onnx.helper.make_model(
        body, producer_name="embedded-twin", ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)])
    onnx.checker.check_model(model)
    return model.SerializeToString(deterministic=True)


def _unique_names(graph: Graph) -> tuple[str, ...]:
    names: list[str] = []
    for number, tensor in enumerate(graph.tensors):
        name = tensor.name or f"tensor_{number}"
        names.append(f"{name}_{number}" if name in names else name)
    return tuple(names)


def _declare(output: Output, tensor_id: int) -> Any:
    import onnx

    dtype = np.dtype(output.graph.tensors[tensor_id].dtype)
    return onnx.helper.make_tensor_value_info(
        output.names[tensor_id], onnx.helper.np_dtype_to_tensor_dtype(dtype),
        output.shape(tensor_id))


def _write_layer(output: Output, layer: Layer) -> None:
    from twin.network.writers.onnx_operators import ENCODERS

    tensors = [output.graph.tensors[i] for i in (*layer.inputs, *layer.outputs) if i >= 0]
    strange = {tensor.dtype for tensor in tensors} - {"float32", *_INTEGERS}
    if strange:
        raise output.refuse(layer, f"type {', '.join(sorted(strange))}")
    if layer.op not in ENCODERS:
        raise output.refuse(layer, f"accepted: {', '.join(sorted(ENCODERS))}")
    if layer.op in ("quantize", "dequantize", "reshape"):
        ENCODERS[layer.op](output, layer, [output.names[i] for i in layer.outputs])
        return
    integer = [output.graph.tensors[i].dtype != "float32" for i in layer.outputs]
    reals = [f"{output.names[i]}/computed" if quantised else output.names[i]
             for i, quantised in zip(layer.outputs, integer, strict=True)]
    before = list(reals)
    if layer.activation is not None:
        before = [f"{name}/linear" for name in reals]
    ENCODERS[layer.op](output, layer, before)
    if layer.activation is not None:
        _write_activation(output, layer, before[0], reals[0])
    for tensor_id, real, quantised in zip(layer.outputs, reals, integer, strict=True):
        if quantised:
            output.node("QuantizeLinear", [real, *output.scale(tensor_id)],
                        [output.names[tensor_id]])


def _write_activation(output: Output, layer: Layer, source: str, result: str) -> None:
    bounds = {"relu6": (0, 6), "relu_n1_to_1": (-1, 1)}.get(layer.activation or "")
    if layer.activation == "relu":
        output.node("Relu", [source], [result])
    elif bounds is not None:
        limits = [output.constant(f"limit_{bound}", np.asarray(bound, np.float32))
                  for bound in bounds]
        output.node("Clip", [source, *limits], [result])
    else:
        raise output.refuse(layer, f"fused {layer.activation}")
