"""Normalisation of rows: softmax, its logarithm, unit length.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference: softmax.h, log_softmax.h,
l2normalization.h. How many exponentials a softmax computes depends on the data.
"""

from __future__ import annotations

from twin.network.graph import Graph, Layer
from twin.runtimes.counted.work import Terms, Work


def describe_rows(graph: Graph, layer: Layer) -> Work:
    """Return the work of normalising each row of the last dimension."""
    source, target = graph.tensors[layer.inputs[0]], graph.tensors[layer.outputs[0]]
    types = source.dtype if source.dtype == target.dtype else f"{source.dtype} {target.dtype}"
    return Work(variant=types, terms={
        "call": 1, "row": source.elements // source.shape[-1], "element": source.elements})


FAMILY = "softmax"

TERMS: Terms = dict.fromkeys(("softmax", "log_softmax", "l2_normalization"), describe_rows)
