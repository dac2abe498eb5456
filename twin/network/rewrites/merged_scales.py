"""A product and a sum by constants done as one layer, where a runtime merges them."""

from __future__ import annotations

from dataclasses import replace

from twin.network.graph import Graph
from twin.network.operators import ADD, MUL, RESHAPE
from twin.network.rewrites.rewrite import derive


def merge_scales(graph: Graph) -> Graph:
    """Let a product by a constant add the constant that follows: what is left of a batch norm.

    Returns
    -------
    Graph
        Same layers at the same indices, a merged sum only renames its input; the graph itself
        where nothing can be merged. Constants stay.
    """
    readers = graph.readers
    constants = {place for place, tensor in enumerate(graph.tensors) if tensor.is_constant}
    products = {layer.target_id for layer in graph.layers
                if layer.op == MUL and constants & {*layer.inputs}
                and len(readers.get(layer.target_id, ())) == 1}
    layers = tuple(
        replace(layer, op=RESHAPE, options=(), inputs=tuple(products & {*layer.inputs}))
        if layer.op == ADD and constants & {*layer.inputs} and products & {*layer.inputs}
        else layer for layer in graph.layers)
    return graph if layers == graph.layers else derive(graph, "merged scales", layers=layers)
