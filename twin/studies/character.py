"""What of a network decides its cost for each multiply-accumulate: its work and where it lies."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from twin.network.graph import Graph
from twin.network.operators import Form, layer_macs, traits
from twin.network.readers import read_model
from twin.network.rewrites.rewrite import rewrite_network


@dataclass(frozen=True, slots=True, kw_only=True)
class Character:
    """A network in a few numbers.

    Parameters
    ----------
    macs : int
        Multiply-accumulates of an inference.
    depthwise, dense : float
        Shares of them in depthwise convolutions and in fully connected layers.
    bytes_per_mac : float
        Weights and activations, each once, for each multiply-accumulate: how little is reused.
    layers : int
        Operators.
    """

    macs: int
    depthwise: float
    dense: float
    bytes_per_mac: float
    layers: int

    @property
    def layer_macs(self) -> float:
        """Multiply-accumulates of a layer in the mean: over how many a call is spread."""
        return self.macs / self.layers


@functools.lru_cache(maxsize=512)
def characterise(model: str, changes: tuple[tuple[str, str], ...] = ()) -> Character:
    """Return the character of a network.

    Parameters
    ----------
    model : str
        As `read_model` takes it.
    changes : tuple of (str, str)
        Paths of the network that were set.
    """
    graph = _read(model)
    return _describe(rewrite_network(graph, dict(changes)) if changes else graph)


@functools.lru_cache(maxsize=32)
def _read(model: str) -> Graph:
    return read_model(model)


def _describe(graph: Graph) -> Character:
    macs = [layer_macs(graph, layer) for layer in graph.layers]
    total = max(1, sum(macs))
    rows = list(zip(map(traits, graph.layers), macs, strict=True))
    held = sum(tensor.size_bytes for tensor in graph.tensors if tensor.is_constant)
    moved = sum(graph.tensors[i].size_bytes for layer in graph.layers for i in layer.outputs)
    return Character(macs=total,
                     depthwise=sum(count for row, count in rows if row.is_depthwise) / total,
                     dense=sum(count for row, count in rows if row.form is Form.PRODUCT) / total,
                     bytes_per_mac=(held + moved) / total, layers=max(1, len(graph.layers)))
