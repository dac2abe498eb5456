"""Write a graph as an .onnx file: float operators, integers between quantise-dequantise pairs.

References
----------
ONNX operator set 17.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hwmodels.errors import need_extra
from twin.network.graph import Graph, Layer
from twin.network.operators import ACTIVATION_BOUNDS
from twin.network.writers.model_file import replace_file
from twin.network.writers.onnx_operators import ENCODERS
from twin.network.writers.onnx_output import FLOATS, INTEGERS, Output

OPSET = 17
IR_VERSION = 8


def write_onnx(graph: Graph, path: str | Path) -> None:
    """Write a graph as an .onnx file.

    Parameters
    ----------
    graph
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
    with need_extra(".onnx files", "the package onnx", "onnx"):
        import onnx
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
    output.layer = layer
    tensors = [output.graph.tensors[i] for i in layer.tensors if i >= 0]
    strange = {tensor.dtype for tensor in tensors} - {*FLOATS, *INTEGERS}
    if strange:
        raise output.refuse(f"type {', '.join(sorted(strange))}")
    if layer.repeats > 1:
        raise output.refuse("a layer of a loop is not written")
    if layer.op not in ENCODERS:
        raise output.refuse(f"accepted: {', '.join(sorted(ENCODERS))}")
    if layer.op in ("quantize", "dequantize", "reshape"):
        output.results = [output.names[i] for i in layer.outputs]
        ENCODERS[layer.op](output)
        return
    integer = [output.graph.tensors[i].dtype not in FLOATS for i in layer.outputs]
    reals = [f"{output.names[i]}/computed" if quantised else output.names[i]
             for i, quantised in zip(layer.outputs, integer, strict=True)]
    output.results = reals if layer.activation is None else [f"{name}/linear" for name in reals]
    ENCODERS[layer.op](output)
    if layer.activation is not None:
        if layer.activation not in ACTIVATION_BOUNDS:
            raise output.refuse(f"fused {layer.activation}")
        output.clamp(layer.activation, output.results[0], reals[0])
    for tensor_id, real, quantised in zip(layer.outputs, reals, integer, strict=True):
        if quantised:
            output.node("QuantizeLinear", [real, *output.scale(tensor_id)],
                        [output.names[tensor_id]])
