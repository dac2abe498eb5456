"""Products of matrices: fully connected, batched, recurrent.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference: fully_connected.h,
batch_matmul.h, integer_ops; micro/kernels/svdf_common.cc, unidirectional_sequence_lstm.cc.
"""

from __future__ import annotations

from twin.network.graph import Graph, Layer
from twin.network.operators import layer_macs
from twin.runtimes.counted.work import Terms, Work


def describe_fully_connected(graph: Graph, layer: Layer) -> Work:
    """Return the work of a fully connected layer."""
    source, target = graph.tensors[layer.inputs[0]], graph.tensors[layer.outputs[0]]
    weights = graph.tensors[layer.inputs[1]]
    quantization = weights.quantization
    each = quantization is not None and len(quantization.scales) > 1
    return Work(variant=f"{source.dtype}{' per channel' if each else ''}", terms={
        "call": 1, "output": target.elements, "mac": target.elements * weights.shape[1],
        "rest": target.elements * (weights.shape[1] % 4)})


def describe_batch_matmul(graph: Graph, layer: Layer) -> Work:
    """Return the work of products of matrices."""
    left, target = graph.tensors[layer.inputs[0]], graph.tensors[layer.outputs[0]]
    return Work(variant=f"{left.dtype}", terms={
        "call": 1, "output": target.elements, "mac": layer_macs(graph, layer),
        "turned": (0 if layer.option("adj_y", False) else graph.tensors[layer.inputs[1]].elements)
        + (left.elements if layer.option("adj_x", False) else 0)})


def describe_svdf(graph: Graph, layer: Layer) -> Work:
    """Return the work of a step of SVDF."""
    feature, time = (graph.tensors[layer.inputs[place]] for place in (1, 2))
    source, target = graph.tensors[layer.inputs[0]], graph.tensors[layer.outputs[0]]
    state = graph.tensors[layer.inputs[4]].dtype
    return Work(variant=f"{source.dtype} {state}", terms={
        "call": 1, "filter": feature.shape[0], "feature mac": feature.elements,
        "time mac": time.elements, "output": target.elements})


def describe_lstm(graph: Graph, layer: Layer) -> Work:
    """Return the work of a sequence: gates, products, states."""
    source = graph.tensors[layer.inputs[0]]
    weights, recurrent = (graph.tensors[layer.inputs[place]] for place in (1, 2))
    steps = source.elements // weights.shape[1]
    return Work(variant=source.dtype, terms={
        "call": 1, "step": steps, "unit": steps * recurrent.shape[1],
        "mac": steps * (weights.elements + recurrent.elements)})


FAMILY = "fully_connected"

TERMS: Terms = {
    "fully_connected": describe_fully_connected, "batch_matmul": describe_batch_matmul,
    "svdf": describe_svdf, "lstm": describe_lstm,
}
