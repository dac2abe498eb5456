"""Narrower weights: the same network with the weights of its convolutions in fewer bits."""

from __future__ import annotations

from dataclasses import replace

from twin.deployment.accelerator.grouping import Planner, explain_host
from twin.network.graph import Graph
from twin.network.operators import traits

_WIDTHS = {4: "int4", 8: "int8"}


def narrow_weights(graph: Graph, bits: int, planner: Planner) -> Graph:
    """Return a graph whose 8-bit convolution weights take so many bits where an NPU reads them.

    Parameters
    ----------
    graph : Graph
        Any network.
    bits : int
        4 or 8.
    planner : Planner
        Says which layers stay on the host: its kernels read bytes.

    Returns
    -------
    Graph
        The same layers; values are kept as they are, only their stored width changes, as a cost
        model sees it. What it does to accuracy is not asked.
    """
    chosen = {layer.inputs[1] for layer in graph.layers
              if traits(layer).filters is not None
              and not explain_host(graph, layer, planner)}
    tensors = tuple(
        replace(tensor, dtype=_WIDTHS[bits])
        if position in chosen and tensor.is_constant and tensor.dtype in ("int8", "int4")
        else tensor for position, tensor in enumerate(graph.tensors))
    return replace(graph, tensors=tensors)
