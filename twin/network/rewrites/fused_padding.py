"""Padding done by the layer that reads it, where a runtime fuses the two."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from twin.network.graph import Graph, Layer
from twin.network.operators import RESHAPE, Form, traits


def fuse_padding(graph: Graph) -> Graph:
    """Let convolutions and maximum pooling pad for themselves.

    Parameters
    ----------
    graph
        With padding as layers of its own.

    Returns
    -------
    Graph
        Same layers at the same indices: a fused padding only renames its input, and the windows
        of its readers are padded wider. The graph itself where nothing can be fused; else its
        `sha256` is derived from the original's.

    Notes
    -----
    A padding is fused when it pads rows and columns only, with what a convolution takes for zero
    (the zero point), and only convolutions read it; or maximum pooling, where the zero point is
    the least value there is, so that a padded position never wins.
    """
    readers = graph.readers
    fused = {layer.target_id: layer for layer in graph.layers
             if traits(layer).form is Form.PAD and _can_be_fused(graph, layer, readers)}
    if not fused:
        return graph
    tensors = list(graph.tensors)
    layers = list(graph.layers)
    for position, layer in enumerate(graph.layers):
        if layer.target_id in fused:
            output = layer.target_id
            tensors[output] = replace(tensors[output], shape=tensors[layer.source_id].shape)
            layers[position] = replace(layer, op=RESHAPE, options=())
        elif layer.inputs and layer.source_id in fused:
            amounts = dict(fused[layer.source_id].options)["paddings"]
            added = (*amounts[1], *amounts[2])
            padding = tuple(a + b for a, b in zip(layer.sliding_window.padding, added, strict=True))
            layers[position] = replace(layer, window=replace(layer.sliding_window, padding=padding))
    return replace(graph, tensors=tuple(tensors), layers=tuple(layers),
                   sha256=hashlib.sha256(f"{graph.sha256}:fused padding".encode()).hexdigest())


def _can_be_fused(graph: Graph, layer: Layer, readers: dict[int, list[Layer]]) -> bool:
    options = dict(layer.options)
    amounts = options.get("paddings", ())
    output = layer.target_id
    return (options.get("mode") == "constant" and options.get("value") == 0.0
            and len(amounts) == 4 and not any((*amounts[0], *amounts[3]))
            and all(amount >= 0 for pair in amounts for amount in pair)
            and output not in graph.outputs and bool(readers.get(output))
            and all(_pads_for_itself(graph, reader, output) for reader in readers[output]))


def _pads_for_itself(graph: Graph, reader: Layer, tensor_id: int) -> bool:
    if reader.source_id != tensor_id or tensor_id in reader.inputs[1:]:
        return False
    operator = traits(reader)
    if operator.takes_largest:
        tensor = graph.tensors[tensor_id]
        return (tensor.dtype == "int8" and tensor.quantization is not None
                and tensor.quantization.zero_points == (-128,))
    return operator.is_convolution
