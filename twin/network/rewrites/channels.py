"""Which channels of a network must go together: through sums, depthwise filters, flattening.

Every entry of the last axis of every tensor gets a number; numbers that must be kept or dropped
together are joined. Entries whose removal would change what the network means are frozen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy import ndarray

from twin.network.graph import Graph, GraphLayer, Layer, Tensor
from twin.network.operators import Form, list_states, traits
from twin.network.rewrites.dead_channels import group_depthwise, shared_constants, take_entries

Numbers = ndarray | None
"""Of the channels a layer writes; None: what it reads and writes stays."""


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
    numbers: dict[int, ndarray] = field(default_factory=dict)
    columns: dict[int, ndarray] = field(default_factory=dict)
    frozen: set[int] = field(default_factory=set)
    _parents: list[int] = field(default_factory=list)
    _roots: ndarray | None = None

    def fresh(self, count: int, *, frozen: bool = False) -> ndarray:
        """Return new numbers."""
        numbers, self._roots = range(len(self._parents), len(self._parents) + count), None
        self._parents.extend(numbers)
        if frozen:
            self.frozen.update(numbers)
        return np.array(numbers, np.int64)

    def root(self, number: int) -> int:
        """Return the number that stands for all that are joined with one."""
        while self._parents[number] != number:
            self._parents[number] = self._parents[self._parents[number]]
            number = self._parents[number]
        return number

    def roots(self, numbers: ndarray) -> ndarray:
        """Return the root of each number."""
        if self._roots is None:
            self._roots = np.array([*map(self.root, range(len(self._parents)))], np.int64)
        return np.asarray(self._roots[numbers])

    def join(self, left: ndarray, right: ndarray) -> None:
        """Let channels go together, one by one."""
        self._roots = None
        for a, b in zip(left, right, strict=True):
            self._parents[self.root(int(a))] = self.root(int(b))

    def freeze(self, tensor_id: int) -> None:
        """Keep all channels of a tensor."""
        if tensor_id in self.numbers:
            self.frozen.update(self.numbers[tensor_id].tolist())

    def fixed(self) -> ndarray:
        """Return whether each number is a root that stays."""
        return self.mask(map(self.root, self.frozen))

    def mask(self, roots: Iterable[int]) -> ndarray:
        """Return whether each number is one of these roots."""
        found = np.zeros(len(self._parents), bool)
        found[[*roots]] = True
        return found


def trace_channels(graph: Graph) -> Channels:
    """Give the channels of a graph numbers, and join those that go together."""
    channels = Channels(graph=graph)
    for tensor_id in (*graph.inputs, *list_states(graph)):
        channels.numbers[tensor_id] = channels.fresh(_width(graph.tensors[tensor_id]), frozen=True)
    shared = shared_constants(graph)
    for step in graph.steps:
        layer = step.layer
        operator = traits(layer)
        follow = _RULES.get(operator.form)
        if operator.filters is not None:
            alone = shared.isdisjoint(layer.inputs)
            follow = None if not alone else _filter_each if operator.is_depthwise else _produce
        written = follow and follow(channels, step)
        if written is None:
            _freeze(channels, layer)
        else:
            channels.numbers[layer.target_id] = written
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
    stays = ~channels.mask(gone)
    return _take(channels, lambda roots: np.flatnonzero(stays[roots]))


def repeat_channels(channels: Channels, times: float) -> Graph:
    """Return the graph so many times as wide, but for the channels of its inputs and outputs.

    A network trained at that width has these shapes and other weights. Channel r is taken
    floor((r + 1) times) - floor(r times) times: as often in each tensor that has it.
    """
    fixed = channels.fixed()
    return _take(channels, lambda roots: np.repeat(np.arange(len(roots)), np.where(
        fixed[roots], 1, np.diff(np.floor(np.stack([roots, roots + 1]) * times + 1e-9),
                                 axis=0)[0].astype(int))))


def _take(channels: Channels, choose: Callable[[ndarray], ndarray]) -> Graph:
    """Return the graph with the channels at the places chosen of their roots."""
    graph = channels.graph
    tensors = list(graph.tensors)

    def take(tensor_id: int, axis: int, numbers: ndarray) -> None:
        kept = choose(channels.roots(numbers))
        if tensor_id >= 0 and (len(kept) != len(numbers)):
            tensors[tensor_id] = take_entries(tensors[tensor_id], axis, kept)

    for tensor_id, numbers in channels.numbers.items():
        take(tensor_id, -1, numbers)
    for layer in graph.layers:
        _take_constants(channels, layer, take)
    return replace(graph, tensors=tuple(tensors), layers=group_depthwise(graph, tensors))


def _take_constants(channels: Channels, layer: Layer,
                    take: Callable[[int, int, ndarray], None]) -> None:
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


def _produce(channels: Channels, step: GraphLayer) -> Numbers:
    """Give filters numbers of their own; remember which channels their columns read."""
    weights, read = step.weights, channels.numbers.get(step.layer.source_id)
    if (step.layer.groups != 1 or not weights.is_constant or read is None
            or weights.channels % len(read)):
        return None
    channels.columns[step.layer.index] = np.tile(read, weights.channels // len(read))
    return channels.fresh(weights.shape[0])


def _filter_each(channels: Channels, step: GraphLayer) -> Numbers:
    """Follow a depthwise convolution: its channels are those it reads, times its multiplier."""
    read = channels.numbers[step.layer.source_id]
    return np.repeat(read, step.output.channels // len(read)) if step.weights.is_constant else None


def _keep(channels: Channels, step: GraphLayer) -> Numbers:
    """Follow an operator that treats every channel by itself."""
    read = channels.numbers.get(step.layer.source_id)
    return read if read is not None and len(read) == _width(step.output) else None


def _join_all(channels: Channels, step: GraphLayer) -> Numbers:
    """Follow an operator whose operands are combined channel by channel."""
    width = _width(step.output)
    read = [channels.numbers[i] for i in step.layer.inputs if i in channels.numbers]
    odd = [tensor for tensor in step.reads
           if tensor.is_constant and _width(tensor) not in (1, width)]
    return None if odd or {*map(len, read)} != {width} else _tie(channels, read)


def _tie(channels: Channels, read: Sequence[ndarray]) -> ndarray:
    """Let the channels of all inputs of a layer be those of its output."""
    for other in read[1:]:
        channels.join(other, read[0])
    return read[0]


def _concatenate(channels: Channels, step: GraphLayer) -> Numbers:
    inputs = step.layer.inputs
    if any(i not in channels.numbers for i in inputs):
        return None
    read = [channels.numbers[i] for i in inputs]
    last = step.option("axis", 0) == len(step.shape) - 1
    return np.concatenate(read) if last else _tie(channels, read)


def _reshape(channels: Channels, step: GraphLayer) -> Numbers:
    """Follow a change of shape that keeps the last axis, or flattens leading ones into it."""
    read = channels.numbers.get(step.layer.source_id)
    shape, width = step.source.shape, _width(step.output)
    if read is None or width % len(read) or (width != len(read) and width != math.prod(shape[1:])):
        return None
    return np.tile(read, width // len(read))


def _reduce(channels: Channels, step: GraphLayer) -> Numbers:
    last = len(step.source.shape) - 1
    return None if last in step.option("axes", ()) else _keep(channels, step)


def _pad(channels: Channels, step: GraphLayer) -> Numbers:
    return None if any(step.option("paddings", ((0, 0),))[-1]) else _keep(channels, step)


def _transpose(channels: Channels, step: GraphLayer) -> Numbers:
    perm = step.option("perm", ())
    return _keep(channels, step) if perm and perm[-1] == len(perm) - 1 else None


_RULES: dict[Form, Callable[[Channels, GraphLayer], Numbers]] = {
    **dict.fromkeys((Form.WINDOW, Form.ELEMENTWISE, Form.RESIZE), _keep),
    Form.BROADCAST: _join_all, Form.REDUCE: _reduce, Form.JOIN: _concatenate,
    Form.RESHAPE: _reshape, Form.PAD: _pad, Form.PERMUTE: _transpose,
}
"""Of operators without filters."""
