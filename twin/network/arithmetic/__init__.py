"""What a network computes: int8 bit for bit as our kernels do, float up to rounding.

arrays = run_network(graph, [image])    arrays[graph.outputs[0]]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twin.errors import RuntimeRefusedError, UsageError
from twin.network.arithmetic import floating, integer, movement
from twin.network.arithmetic.integer import Operation
from twin.network.graph import Graph, GraphLayer, Layer

DTYPES = {"int8": np.int8, "float32": np.float32}
"""Types of activations there are kernels for."""


def find_operation(step: GraphLayer) -> Operation:
    """Return the function that computes a layer.

    Raises
    ------
    RuntimeRefusedError
        When there is no kernel for the operator on these types.
    """
    layer, source, target = step.layer, step.source.dtype, step.output.dtype
    if layer.repeats > 1:
        raise step.refuse(f"runs {layer.repeats} times in a loop; the firmware has none")
    if layer.op == "quantize" and (source, target) == ("float32", "int8"):
        return floating.quantise
    if layer.op == "dequantize" and (source, target) == ("int8", "float32"):
        return floating.dequantise
    tables = {"int8": integer.OPERATIONS, "float32": floating.OPERATIONS}
    if source == target in tables and layer.op in movement.OPERATIONS:
        return movement.OPERATIONS[layer.op]
    if source != target or source not in tables or layer.op not in tables[source]:
        known = ", ".join(sorted({*integer.OPERATIONS, "dequantize"}))
        raise RuntimeRefusedError(f"layer {layer.index} {layer.op} ({source} to {target}): the "
                                  f"firmware has no kernel for it; it has int8 {known}")
    return tables[source][layer.op]


def run_layer(graph: Graph, layer: Layer, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """Compute one layer from its data inputs; weights and biases come from the graph."""
    step = GraphLayer(graph, layer, tuple(inputs))
    return find_operation(step)(step)


def run_network(graph: Graph, inputs: Sequence[np.ndarray]) -> dict[int, np.ndarray]:
    """Compute a network.

    Parameters
    ----------
    graph
        With int8 or float32 activations.
    inputs
        One per network input, of its shape and type.

    Returns
    -------
    dict of int to ndarray
        Every computed tensor and every input, by tensor index.

    Raises
    ------
    RuntimeRefusedError
        When there is no kernel for a layer.
    UsageError
        When an input has another shape or type.
    """
    arrays: dict[int, np.ndarray] = {}
    for index, values in zip(graph.inputs, inputs, strict=True):
        tensor = graph.tensors[index]
        if values.shape != tensor.shape or values.dtype != DTYPES.get(tensor.dtype):
            raise UsageError(f"input {tensor.name!r}: {values.dtype} of shape {values.shape}; "
                             f"{tensor.dtype} of shape {tensor.shape} is expected")
        arrays[index] = values
    for layer in graph.layers:
        data = [arrays[i] for i in graph.list_data(layer)]
        arrays[layer.target_id] = run_layer(graph, layer, data)
    return arrays
