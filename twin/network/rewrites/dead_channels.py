"""Drop channels nobody reads, or that are zero throughout, where that changes no output bit.

Pruned networks keep zero channels in their files; some runtimes remove them, others compute them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from twin.network.graph import DTYPE_BITS, Graph, GraphLayer, Layer, Quantization, Tensor
from twin.network.operators import CLAMPS, Form, traits

Masks = dict[int, np.ndarray]
"""A boolean per channel (last axis) of a tensor, by tensor index."""


def drop_dead_channels(graph: Graph) -> Graph:
    """Remove the channels no output bit depends on.

    Parameters
    ----------
    graph
        With constant weights.

    Returns
    -------
    Graph
        Same layers at the same indices with narrower tensors, or the graph itself when nothing
        can go. Its `sha256` is derived from the original's.

    Notes
    -----
    Output channel c of a convolution or fully connected layer goes when every convolution or
    fully connected layer that reads it, possibly through depthwise convolutions and pooling,
    either has zero weights for c, or finds c at its zero point everywhere, so that
    w * (x - zero point) is zero. A channel is at its zero point when its weights are zero and
    its bias is zero, or not positive ahead of a clamp at zero; padding is at the zero point too.
    At least one channel of a tensor is kept.
    """
    zero = _zero_channels(graph)
    dropped = _dropped_channels(graph, _needed_channels(graph, zero))
    if not dropped:
        return graph
    tensors = list(graph.tensors)
    cuts = [(tensor_id, -1, gone) for tensor_id, gone in dropped.items()]
    for layer in graph.layers:
        cuts += _cut_constants(layer, dropped.get(layer.source_id), dropped.get(layer.target_id))
    for tensor_id, axis, gone in cuts:
        tensors[tensor_id] = take_entries(tensors[tensor_id], axis, np.flatnonzero(~gone))
    layers = group_depthwise(graph, tensors)
    return Graph(
        name=graph.name, source=graph.source, tensors=tuple(tensors), layers=layers,
        inputs=graph.inputs, outputs=graph.outputs, notes=graph.notes,
        channel_first=graph.channel_first,
        sha256=hashlib.sha256(f"{graph.sha256} without dead channels".encode()).hexdigest())


def group_depthwise(graph: Graph, tensors: Sequence[Tensor]) -> tuple[Layer, ...]:
    """Return the layers of a graph, depthwise ones with a group for each channel they read."""
    return tuple(replace(layer, groups=tensors[layer.source_id].shape[3])
                 if traits(layer).is_depthwise else layer for layer in graph.layers)


def _zero_channels(graph: Graph) -> Masks:
    """Channels that hold real zero whatever the input is."""
    zero: Masks = {}
    for step in graph.steps:
        source = zero.get(step.layer.source_id)
        mask = None
        if _mixes_channels(step):
            read = weights = _values(step, 1)
            if source is not None and len(source) == weights.shape[-1]:
                read = weights[..., ~source]
            mask = ~read.reshape(len(weights), -1).any(axis=1)
        elif source is not None and _keeps_channels(step):
            mask = source
        if mask is not None:
            mask = mask & _clamped(step)
            if mask.any():
                zero[step.layer.target_id] = mask
    return zero


def _clamped(step: GraphLayer) -> np.ndarray:
    """Output channels at which a sum of products of zero comes out as real zero."""
    output = step.output
    if not traits(step.layer).sums_products or step.layer.bias < 0:
        return np.ones(output.channels, bool)
    if not step.input(2).is_constant:
        return np.zeros(output.channels, bool)
    bias = _values(step, 2).reshape(-1)
    return bias <= 0 if _clamps_at_zero(output, step.layer.activation) else bias == 0


def _clamps_at_zero(output: Tensor, activation: str | None) -> bool:
    if activation in CLAMPS:
        return True
    lowest = -(1 << DTYPE_BITS[output.dtype] - 1) if output.dtype.startswith("int") else None
    return (activation is None and output.quantization is not None
            and set(output.quantization.zero_points) == {lowest})


def _needed_channels(graph: Graph, zero: Masks) -> Masks:
    """Channels of each computed tensor that some output depends on."""
    needed: Masks = {}
    shared = shared_constants(graph)

    def need(tensor_id: int, mask: np.ndarray | bool) -> None:
        shape = graph.tensors[tensor_id].shape
        if shape:
            needed[tensor_id] = needed.get(tensor_id, np.zeros(shape[-1], bool)) | mask

    for tensor_id in graph.outputs:
        need(tensor_id, True)
    for step in reversed(graph.steps):
        mask: np.ndarray | bool = True
        layer = step.layer
        if shared.isdisjoint(layer.inputs):
            mask = _read_channels(step, zero, needed.get(layer.target_id))
        need(layer.source_id, mask)
        for tensor_id in layer.inputs[1:]:
            if tensor_id >= 0:
                need(tensor_id, True)
    return needed


def _read_channels(step: GraphLayer, zero: Masks,
                   needed_output: np.ndarray | None) -> np.ndarray | bool:
    """Channels of its data a layer depends on; True when it may be all."""
    if needed_output is None:
        return True
    if _keeps_channels(step):
        return needed_output
    if not _mixes_channels(step):
        return True
    weights = _values(step, 1)
    if weights.shape[-1] != step.source.channels:
        return True
    read = weights.reshape(len(weights), -1, weights.shape[-1])[needed_output].any(axis=(0, 1))
    return read & ~zero.get(step.layer.source_id, np.zeros(1, bool))


def _dropped_channels(graph: Graph, needed: Masks) -> Masks:
    """Channels that go, for each tensor that loses any."""
    dropped: Masks = {}
    shared = shared_constants(graph)
    for step in graph.steps:
        layer, output = step.layer, step.layer.target_id
        if not shared.isdisjoint(layer.inputs) or output not in needed:
            continue
        if _mixes_channels(step):
            gone = ~needed[output]
            gone[0] &= not gone.all()
            if gone.any():
                dropped[output] = gone
        elif layer.source_id in dropped and _keeps_channels(step):
            dropped[output] = dropped[layer.source_id]
    return dropped


def _values(step: GraphLayer, place: int) -> np.ndarray:
    data = step.input(place).data
    assert data is not None, f"layer {step.layer.index}: input {place} is not constant"
    return data


def _mixes_channels(step: GraphLayer) -> bool:
    """Whether the layer is a dense product whose zero weights can be seen."""
    operator = traits(step.layer)
    if not operator.sums_products or operator.is_depthwise or step.layer.groups != 1:
        return False
    weights = step.weights
    # A stored zero is a real zero only where the zero point is zero.
    return weights.is_constant and (weights.quantization is None
                                    or not any(weights.quantization.zero_points))


def _keeps_channels(step: GraphLayer) -> bool:
    """Whether output channel c depends on input channel c alone, for every c."""
    source, output = (tensor.shape for tensor in step.ends)
    if not source or not output or source[-1] != output[-1]:
        return False
    operator = traits(step.layer)
    if operator.is_depthwise:
        return step.weights.is_constant
    if operator.alias:
        return step.source.elements == source[-1]
    if operator.form is Form.REDUCE:
        return len(source) - 1 not in step.option("axes", ())
    per_channel = (tensor.quantization for tensor in step.ends)
    zero_stays = operator.is_pool or operator.clamps or operator.converts
    return zero_stays and all(q is None or q.axis is None for q in per_channel)


def shared_constants(graph: Graph) -> set[int]:
    """Return constants that more than one layer reads: narrowing one changes the other."""
    seen: set[int] = set()
    shared: set[int] = set()
    for layer in graph.layers:
        constants = {i for i in layer.inputs if i >= 0 and graph.tensors[i].is_constant}
        shared |= seen & constants
        seen |= constants
    return shared


def _cut_constants(layer: Layer, gone_in: np.ndarray | None,
                   gone_out: np.ndarray | None) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield which entries of a layer's weights and bias go: tensor, axis and places."""
    operator = traits(layer)
    if not operator.sums_products:
        return
    if gone_out is not None:
        yield layer.inputs[1], 3 if operator.is_depthwise else 0, gone_out
        if layer.bias >= 0:
            yield layer.bias, 0, gone_out
    if gone_in is not None and not operator.is_depthwise:
        yield layer.inputs[1], -1, gone_in


def take_entries(tensor: Tensor, axis: int, kept: np.ndarray) -> Tensor:
    """Return a tensor of some entries of an axis.

    Parameters
    ----------
    axis
        May count from the last.
    kept : ndarray of int
        Places on the axis, in order; one may come again.
    """
    axis %= len(tensor.shape)
    shape = (*tensor.shape[:axis], len(kept), *tensor.shape[axis + 1:])
    data = None if tensor.data is None else np.take(tensor.data, kept, axis=axis)
    return replace(tensor, shape=shape, data=data, quantization=_kept_scales(tensor, axis, kept))


def _kept_scales(tensor: Tensor, axis: int, kept: np.ndarray) -> Quantization | None:
    quantization = tensor.quantization
    if quantization is None or quantization.axis != axis:
        return quantization
    return Quantization(scales=tuple(quantization.scales[i] for i in kept),
                        zero_points=tuple(quantization.zero_points[i] for i in kept), axis=axis)
