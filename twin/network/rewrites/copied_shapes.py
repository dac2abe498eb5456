"""Changes of shape that copy, where a runtime moves the data instead of renaming it."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from twin.network.graph import Graph
from twin.network.operators import RESHAPE, RESHAPE_COPY


def copy_shapes(graph: Graph) -> Graph:
    """Turn each change of shape into a copy.

    Parameters
    ----------
    graph
        With changes of shape that only rename their input.

    Returns
    -------
    Graph
        Same layers at the same indices; the graph itself where there is none.

    References
    ----------
    tensorflow/tflite-micro, tensorflow/lite/micro/kernels/reshape.cc: memcpy unless in place.
    """
    if not any(layer.op == RESHAPE for layer in graph.layers):
        return graph
    layers = tuple(replace(layer, op=RESHAPE_COPY) if layer.op == RESHAPE else layer
                   for layer in graph.layers)
    return replace(graph, layers=layers,
                   sha256=hashlib.sha256(f"{graph.sha256}:copied shapes".encode()).hexdigest())
