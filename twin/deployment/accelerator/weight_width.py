"""Narrower weights: the same network with the weights of its convolutions in fewer bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from twin.network.graph import Graph
from twin.network.operators import traits

_WIDTHS = {4: "int4", 8: "int8"}


def narrow_weights(graph: Graph, bits: int, reasons: Sequence[str]) -> Graph:
    """Return a graph whose 8-bit convolution weights take so many bits where an NPU reads them.

    Parameters
    ----------
    bits
        4 or 8.
    reasons
        Why each layer stays on the host, whose kernels read bytes; "" where it does not.

    Returns
    -------
    Graph
        The same layers; values are kept as they are, only their stored width changes, as a cost
        model sees it. What it does to accuracy is not asked.
    """
    chosen = {layer.inputs[1] for layer, reason in zip(graph.layers, reasons, strict=True)
              if traits(layer).filters is not None and not reason}
    tensors = tuple(
        replace(tensor, dtype=_WIDTHS[bits])
        if position in chosen and tensor.is_constant and tensor.dtype in ("int8", "int4")
        else tensor for position, tensor in enumerate(graph.tensors))
    return replace(graph, tensors=tensors)
