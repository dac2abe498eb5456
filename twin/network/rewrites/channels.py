"""Which channels of a network must go together: through sums, depthwise filters, flattening.

Every entry of the last axis of every tensor gets a number; numbers that must be kept or dropped
together are joined. Entries whose removal would change what the network means are frozen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from twin.network.graph import Graph, Layer, Tensor
from twin.network.operators import Form, list_states, traits
from twin.network.rewrites.dead_channels import group_depthwise, shared_constants, take_entries


@dataclass(slots=True)
class Channels:
    """Numbers of all channels of a graph, and which belong together.

    Parameters
    ----------
    numbers
        Of the last axis of each tensor, by tensor index.
    columns
        Of the last axis of the weights of each producer, by layer index: what it reads.
    frozen
        Numbers that stay, whatever is joined with them.
    """

    graph: Graph
    numbers: dict[int, np.ndarray] = field(default_factory=dict)
    columns: dict[int, np.ndarray] = field(default_factory=dict)
    frozen: set[int] = field(default_factory=set)
    _parents: list[int] = field(default_factory=list)

    def fresh(self, count: int, *, frozen: bool = False) -> np.ndarray:
        """Return new numbers."""
        first = len(self._parents)
        self._parents.extend(range(first, first + count))
        if frozen:
            self.frozen.update(range(first, first + count))
        return np.arange(first, first + count)

    def root(self, number: int) -> int:
        """Return the number that stands for all that are joined with one."""
        while self._parents[number] != number:
            self._parents[number] = self._parents[self._parents[number]]
            number = self._parents[number]
        return number

    def roots(self, numbers: np.ndarray) -> np.ndarray:
        """Return the root of each number."""
        return np.array([self.root(int(number)) for number in numbers], dtype=np.int64)

    def join(self, left: np.ndarray, right: np.ndarray) -> None:
        """Let channels go together, one by one."""
        for a, b in zip(left, right, strict=True):
            self._parents[self.root(int(a))] = self.root(int(b))

    def freeze(self, tensor_id: int) -> None:
        """Keep all channels of a tensor."""
        if tensor_id in self.numbers:
            self.frozen.update(int(number) for number in self.numbers[tensor_id])

    def fixed(self) -> set[int]:
        """Return the roots that stay."""
        return {self.root(number) for number in self.frozen}


def trace_channels(graph: Graph) -> Channels:
    """Give the channels of a graph numbers, and join those that go together."""
    channels = Channels(graph=graph)
    for tensor_id in (*graph.inputs, *list_states(graph)):
        channels.numbers[tensor_id] = channels.fresh(_width(graph.tensors[tensor_id]), frozen=True)
    shared = shared_constants(graph)
    for layer in graph.layers:
        operator = traits(layer)
        follow = _RULES.get(operator.form, _freeze)
        if operator.filters is not None:
            alone = shared.isdisjoint(layer.inputs)
            follow = _freeze if not alone else _filter_each if operator.is_depthwise else _produce
        follow(channels, layer)
    for tensor_id in graph.outputs:
        channels.freeze(tensor_id)
    return channels


def drop_channels(channels: Channels, gone: set[int]) -> Graph:
    """Return the graph without channels.

    Parameters
    ----------
    gone
        Roots of the channels to remove; none of `Channels.fixed`.
    """
    return _take(channels, lambda roots: np.flatnonzero(~np.isin(roots, list(gone))))


def repeat_channels(channels: Channels, times: float) -> Graph:
    """Return the graph so many times as wide, but for the channels of its inputs and outputs.

    A network trained at that width has these shapes and other weights. Channel r is taken
    floor((r + 1) times) - floor(r times) times: as often in each tensor that has it.
    """
    fixed = list(channels.fixed())
    return _take(channels, lambda roots: np.repeat(np.arange(len(roots)), np.where(
        np.isin(roots, fixed), 1, np.diff(np.floor(np.stack([roots, roots + 1]) * times + 1e-9),
                                          axis=0)[0].astype(int))))


def _take(channels: Channels, choose: Callable[[np.ndarray], np.ndarray]) -> Graph:
    """Return the graph with the channels at the places chosen of their roots."""
    graph = channels.graph
    tensors = list(graph.tensors)

    def take(tensor_id: int, axis: int, numbers: np.ndarray) -> None:
        kept = choose(channels.roots(numbers))
        if tensor_id >= 0 and (len(kept) != len(numbers)):
            tensors[tensor_id] = take_entries(tensors[tensor_id], axis, kept)

    for tensor_id, numbers in channels.numbers.items():
        take(tensor_id, -1, numbers)
    for layer in graph.layers:
        _take_constants(channels, layer, take)
    return replace(graph, tensors=tuple(tensors), layers=group_depthwise(graph, tensors))


def _take_constants(channels: Channels, layer: Layer,
                    take: Callable[[int, int, np.ndarray], None]) -> None:
    graph, output = channels.graph, channels.numbers[layer.target_id]
    bias = layer.bias
    operator, columns = traits(layer), channels.columns.get(layer.index)
    if operator.filters is not None and (columns is not None or operator.is_depthwise):
        take(layer.inputs[1], operator.filters, output)
        take(bias, 0, output)
        if columns is not None:
            take(layer.inputs[1], -1, columns)
    elif operator.form is Form.BROADCAST:
        for tensor_id in layer.inputs:
            tensor = graph.tensors[tensor_id]
            if tensor.is_constant and _width(tensor) == len(output) > 1:
                take(tensor_id, -1, output)


def _width(tensor: Tensor) -> int:
    return tensor.channels if tensor.shape else 1


def _freeze(channels: Channels, layer: Layer) -> None:
    """Keep everything a layer reads and writes."""
    for tensor_id in layer.inputs:
        channels.freeze(tensor_id)
    for tensor_id in layer.outputs:
        tensor = channels.graph.tensors[tensor_id]
        channels.numbers[tensor_id] = channels.fresh(_width(tensor), frozen=True)


def _produce(channels: Channels, layer: Layer) -> None:
    """Give filters numbers of their own; remember which channels their columns read."""
    graph = channels.graph
    source, weights = layer.source_id, graph.input(layer, 1)
    read = channels.numbers.get(source)
    if (layer.groups != 1 or not weights.is_constant or read is None
            or weights.channels % len(read)):
        _freeze(channels, layer)
        return
    channels.columns[layer.index] = np.tile(read, weights.channels // len(read))
    channels.numbers[layer.target_id] = channels.fresh(weights.shape[0])


def _filter_each(channels: Channels, layer: Layer) -> None:
    """Follow a depthwise convolution: its channels are those it reads, times its multiplier."""
    graph = channels.graph
    read = channels.numbers[layer.source_id]
    written = graph.output(layer).channels
    if not graph.input(layer, 1).is_constant:
        _freeze(channels, layer)
        return
    channels.numbers[layer.target_id] = np.repeat(read, written // len(read))


def _keep(channels: Channels, layer: Layer) -> None:
    """Follow an operator that treats every channel by itself."""
    read = channels.numbers.get(layer.source_id)
    if read is None or len(read) != _width(channels.graph.output(layer)):
        _freeze(channels, layer)
        return
    channels.numbers[layer.target_id] = read


def _join_all(channels: Channels, layer: Layer) -> None:
    """Follow an operator whose operands are combined channel by channel."""
    graph = channels.graph
    width = _width(graph.output(layer))
    read = [channels.numbers[i] for i in layer.inputs
            if i in channels.numbers and len(channels.numbers[i]) == width]
    narrow = [i for i in layer.inputs if i in channels.numbers
              and len(channels.numbers[i]) != width]
    odd = [i for i in layer.inputs if graph.tensors[i].is_constant
           and _width(graph.tensors[i]) not in (1, width)]
    if not read or narrow or odd:
        _freeze(channels, layer)
        return
    _tie(channels, layer, read)


def _tie(channels: Channels, layer: Layer, read: Sequence[np.ndarray]) -> None:
    """Let the channels of all inputs of a layer be those of its output."""
    for other in read[1:]:
        channels.join(other, read[0])
    channels.numbers[layer.target_id] = read[0]


def _concatenate(channels: Channels, layer: Layer) -> None:
    graph = channels.graph
    if any(i not in channels.numbers for i in layer.inputs):
        _freeze(channels, layer)
        return
    read = [channels.numbers[i] for i in layer.inputs]
    if layer.option("axis", 0) == len(graph.output(layer).shape) - 1:
        channels.numbers[layer.target_id] = np.concatenate(read)
        return
    _tie(channels, layer, read)


def _reshape(channels: Channels, layer: Layer) -> None:
    """Follow a change of shape that keeps the last axis, or flattens leading ones into it."""
    graph = channels.graph
    read = channels.numbers.get(layer.source_id)
    shape, width = (graph.input(layer).shape, _width(graph.output(layer)))
    if read is None or width % len(read) or (width != len(read) and width != math.prod(shape[1:])):
        _freeze(channels, layer)
        return
    channels.numbers[layer.target_id] = np.tile(read, width // len(read))


def _reduce(channels: Channels, layer: Layer) -> None:
    last = len(channels.graph.input(layer).shape) - 1
    (_freeze if last in layer.option("axes", ()) else _keep)(channels, layer)


def _pad(channels: Channels, layer: Layer) -> None:
    (_freeze if any(layer.option("paddings", ((0, 0),))[-1]) else _keep)(channels, layer)


def _transpose(channels: Channels, layer: Layer) -> None:
    perm = layer.option("perm", ())
    (_keep if perm and perm[-1] == len(perm) - 1 else _freeze)(channels, layer)


_RULES: dict[Form, Callable[[Channels, Layer], None]] = {
    **dict.fromkeys((Form.WINDOW, Form.ELEMENTWISE, Form.RESIZE), _keep),
    Form.BROADCAST: _join_all, Form.REDUCE: _reduce, Form.JOIN: _concatenate,
    Form.RESHAPE: _reshape, Form.PAD: _pad, Form.PERMUTE: _transpose,
}
"""Of operators without filters."""
