"""Write a graph as a .tflite flatbuffer.

References
----------
The TensorFlow Lite schema, version 3, as generated in the PyPI package `tflite`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from twin.errors import ModelError
from twin.network.graph import Graph, Layer, Quantization, Tensor
from twin.network.operators import list_states
from twin.network.readers.tflite import DTYPES, IDENTIFIER
from twin.network.readers.tflite_rows import refuse_to_write
from twin.network.writers.model_file import replace_file
from twin.network.writers.tflite_operators import ENCODERS, Encoded, Encoding

SCHEMA_VERSION = 3
_DTYPE_NUMBERS = {name: number for number, name in DTYPES.items()}
_DATA_ALIGNMENT_BYTES = 16
_VERSIONS = {"BROADCAST_TO": 2}
"""Of operators interpreters do not have in the first."""


@dataclass(slots=True)
class _Output:
    """A flatbuffer being built: `tensors` grows by the constants operators need."""

    graph: Graph
    builder: Any
    tensors: list[Tensor] = field(default_factory=list)

    def add_constant(self, name: str, values: np.ndarray,
                     quantization: Quantization | None = None) -> int:
        """Append a constant tensor and return its index."""
        self.tensors.append(Tensor(name=name, shape=values.shape, dtype=str(values.dtype),
                                   data=values, quantization=quantization))
        return len(self.tensors) - 1


def write_tflite(graph: Graph, path: str | Path) -> None:
    """Write a graph as a .tflite file.

    Parameters
    ----------
    path : str or Path
        File to create or replace, atomically.

    Raises
    ------
    ModelError
        When the format has no way to say a layer (padding that is neither SAME nor VALID, gru,
        an assumed copy), or the file cannot be written.

    Notes
    -----
    Tensors keep their order; constants that carry shapes, axes and amounts follow behind, so
    reading the file back gives the same tensors and layers, except that a convolution without
    bias comes back with a zero one, which interpreters insist on.
    """
    replace_file(path, encode_tflite(graph))


def encode_tflite(graph: Graph) -> bytes:
    """Return the bytes of the .tflite file of a graph; the same graph gives the same bytes."""
    from flatbuffers import Builder

    size_bytes = sum(tensor.size_bytes for tensor in graph.tensors if tensor.is_constant)
    output = _Output(graph=graph, builder=Builder(size_bytes + 65536), tensors=list(graph.tensors))
    encoded = [_encode_layer(output, layer) for layer in graph.layers]
    builder = output.builder
    buffers = _write_buffers(output)
    numbers, states = _buffer_numbers(output.tensors), list_states(graph)
    tensors = [_write_tensor(builder, tensor, numbers[i], variable=i in states)
               for i, tensor in enumerate(output.tensors)]
    codes = sorted({layer.builtin for layer in encoded})
    operators = [_write_operator(builder, layer, codes.index(layer.builtin)) for layer in encoded]
    subgraph = _table(
        builder, "SubGraph",
        tensors=_offsets(builder, tensors),
        inputs=_integers(builder, graph.inputs), outputs=_integers(builder, graph.outputs),
        operators=_offsets(builder, operators), name=builder.CreateString(graph.name))
    model = _table(
        builder, "Model", version=SCHEMA_VERSION,
        operator_codes=_offsets(builder, [_write_code(builder, name) for name in codes]),
        subgraphs=_offsets(builder, [subgraph]),
        description=builder.CreateString("embedded-twin"), buffers=_offsets(builder, buffers))
    builder.Finish(model, file_identifier=IDENTIFIER)
    return bytes(builder.Output())


def _encode_layer(output: _Output, layer: Layer) -> Encoded:
    step = Encoding(output.graph, layer, constant=output.add_constant)
    if layer.repeats > 1:
        raise refuse_to_write(step, " stands in a loop, which cannot be written as .tflite")
    if layer.op not in ENCODERS:
        raise refuse_to_write(step, " cannot be written as .tflite; accepted: "
                              + ", ".join(sorted(ENCODERS)))
    return ENCODERS[layer.op](step)


def _table(builder: Any, name: str, /, **fields: Any) -> int:
    """Write a schema table; fields are named in snake case, None is left at its default."""
    module = importlib.import_module(f"tflite.{name}")
    module.Start(builder)
    for key, value in fields.items():
        if value is not None:
            getattr(module, "Add" + "".join(part.capitalize() for part in key.split("_")))(
                builder, value)
    return module.End(builder)


def _offsets(builder: Any, offsets: list[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def _integers(builder: Any, values: Iterable[int]) -> int:
    return builder.CreateNumpyVector(np.asarray(tuple(values), dtype=np.int32))


def _buffer_numbers(tensors: list[Tensor]) -> list[int]:
    """Buffer of each tensor; number 0 is the empty one every computed tensor shares."""
    numbers, used = [], 0
    for tensor in tensors:
        used += tensor.is_constant
        numbers.append(used if tensor.is_constant else 0)
    return numbers


def _write_buffers(output: _Output) -> list[int]:
    builder = output.builder
    offsets = [_table(builder, "Buffer")]
    for tensor in output.tensors:
        if tensor.data is not None:
            raw = _stored_bytes(tensor)
            # Interpreters map constants in place and need them aligned; the generated helper
            # for byte vectors aligns to one.
            builder.StartVector(1, len(raw), _DATA_ALIGNMENT_BYTES)
            builder.head = builder.head - len(raw)
            builder.Bytes[builder.head:builder.head + len(raw)] = raw
            offsets.append(_table(builder, "Buffer", data=builder.EndVector()))
    return offsets


def _stored_bytes(tensor: Tensor) -> bytes:
    assert tensor.data is not None
    if tensor.dtype != "int4":
        return np.ascontiguousarray(tensor.data).astype(
            np.dtype(tensor.dtype).newbyteorder("<"), copy=False).tobytes()
    halves = np.zeros(tensor.elements + tensor.elements % 2, np.uint8)
    halves[:tensor.elements] = tensor.data.reshape(-1).astype(np.int8).view(np.uint8) & 0x0F
    return (halves[::2] | halves[1::2] << 4).tobytes()


def _write_tensor(builder: Any, tensor: Tensor, buffer: int, *, variable: bool) -> int:
    if tensor.dtype not in _DTYPE_NUMBERS:
        raise ModelError(f"tensor {tensor.name!r}: type {tensor.dtype} cannot be written as "
                         ".tflite")
    name = builder.CreateString(tensor.name)
    shape = _integers(builder, tensor.shape)
    quantization = _write_quantization(builder, tensor.quantization)
    return _table(builder, "Tensor", shape=shape, type=_DTYPE_NUMBERS[tensor.dtype],
                  buffer=buffer, name=name, quantization=quantization, is_variable=variable)


def _write_quantization(builder: Any, quantization: Quantization | None) -> int | None:
    if quantization is None:
        return None
    scales = builder.CreateNumpyVector(np.asarray(quantization.scales, np.float32))
    zero_points = builder.CreateNumpyVector(np.asarray(quantization.zero_points, np.int64))
    return _table(builder, "QuantizationParameters", scale=scales, zero_point=zero_points,
                  quantized_dimension=quantization.axis or 0)


def _write_code(builder: Any, name: str) -> int:
    from tflite.BuiltinOperator import BuiltinOperator

    code = getattr(BuiltinOperator, name)
    return _table(builder, "OperatorCode", deprecated_builtin_code=min(code, 127),
                  version=_VERSIONS.get(name, 1), builtin_code=code)


def _write_operator(builder: Any, layer: Encoded, code: int) -> int:
    from tflite.BuiltinOptions import BuiltinOptions

    inputs = _integers(builder, layer.inputs)
    outputs = _integers(builder, layer.outputs)
    kind, options = None, None
    if layer.table is not None:
        vectors = {key: _integers(builder, value) if isinstance(value, tuple) else value
                   for key, value in layer.options.items()}
        options = _table(builder, layer.table, **vectors)
        kind = getattr(BuiltinOptions, layer.table)
    return _table(builder, "Operator", opcode_index=code, inputs=inputs, outputs=outputs,
                  builtin_options_type=kind, builtin_options=options)
