"""Which layer of a program is which layer of the network it runs: in order, by operator and work.

What a program runs inside another layer, or not at all, has no layer of its own: activations,
padding, reshapes. Products of weights are never omitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from hwmodels.frozen import frozen
from twin.errors import NotTheSameError
from twin.network.graph import Graph, GraphLayer, Layer
from twin.network.operators import OPERATORS, graph_macs, is_alias, layer_macs, traits
from twin.runtimes.counted.shapes import count_terms

LEAST, MOST = 0.4, 3.0
"""Products a layer's code computes over those of the network, inside the border and with it: zero
points are multiplied, too, and taps outside (assumed)."""

WIDER = 4.0
"""By how much these bounds widen where all products together keep to them: lanes left empty
multiply zeros, most in the smallest layers (TinyMaix's depthwise ones 3.1 times)."""

_ALIKE, _POSSIBLE, _LEFT_OUT = 3.0, 1.0, -1.0
_NEVER = -1e9


@frozen
class Ran:
    """A layer of a program.

    Parameters
    ----------
    name
        The function it is a call of.
    functions
        All that ran, most instructions first.
    macs
        Products computed.
    """

    name: str
    functions: tuple[str, ...]
    macs: int


def match_layers(graph: Graph, ran: Sequence[Ran], where: str) -> list[tuple[int, int]]:
    """Return which layers of a network are which of a program.

    Parameters
    ----------
    graph
        The network, as its library runs it.
    where
        File of the program.

    Returns
    -------
    list of (int, int)
        Positions in the network and in the program.

    Raises
    ------
    NotTheSameError
        Naming the first layer of products that has no counterpart.
    """
    counting = any(one.macs for one in ran)
    found = _match(graph, ran, counting, 1.0)
    if found is None and _agree_together(graph, ran):
        found = _match(graph, ran, counting, WIDER)
    if found is None:
        raise NotTheSameError(_say(graph, ran, counting, where))
    return found


def _agree_together(graph: Graph, ran: Sequence[Ran]) -> bool:
    """Whether a program computes about as many products as a network has."""
    macs = graph_macs(graph)
    return LEAST * macs <= sum(one.macs for one in ran) <= MOST * macs


def _match(graph: Graph, ran: Sequence[Ran], counting: bool,
           wider: float) -> list[tuple[int, int]] | None:
    """Return the best alignment with bounds of products so much wider; None where there is none."""
    table = [[0.0] * (len(ran) + 1) for _ in range(len(graph.layers) + 1)]
    moves: dict[tuple[int, int], str] = {}
    for i in range(len(graph.layers), -1, -1):
        for j in range(len(ran), -1, -1):
            found = []
            if i < len(graph.layers):
                found.append((table[i + 1][j] + _drop(graph, graph.layers[i]), "network"))
            if j < len(ran):
                found.append((table[i][j + 1] + _leave(ran[j], graph), "program"))
            if i < len(graph.layers) and j < len(ran):
                found.append((table[i + 1][j + 1] + _agree(graph, graph.layers[i], ran[j],
                                                           counting, wider), "both"))
            if found:
                table[i][j], moves[i, j] = max(found, key=lambda one: one[0])
    return None if table[0][0] <= _NEVER / 2 else _follow(moves, len(graph.layers), len(ran))


def _follow(moves: Mapping[tuple[int, int], str], layers: int, ran: int) -> list[tuple[int, int]]:
    pairs, i, j = [], 0, 0
    while (i, j) != (layers, ran):
        move = moves[i, j]
        if move == "both":
            pairs.append((i, j))
        i, j = i + (move != "program"), j + (move != "network")
    return pairs


def _drop(graph: Graph, layer: Layer) -> float:
    if layer_macs(graph, layer):
        return _NEVER
    return 0.0 if is_alias(layer) else _LEFT_OUT


@lru_cache(maxsize=16)
def _count_products(graph: Graph) -> dict[int, tuple[float, float]]:
    """Return the products of a network's layers by index: inside borders, and at most."""
    found = {}
    for layer in graph.layers:
        if macs := layer_macs(graph, layer):
            terms = count_terms(GraphLayer(graph, layer))
            every = max(terms.get("every mac", 0.0), macs, 1.0)
            found[layer.index] = terms.get("mac", every), every
    return found


def _leave(ran: Ran, graph: Graph) -> float:
    """Return what leaving out a layer of the program counts: one of many products is none to."""
    least = min((inside for inside, _ in _count_products(graph).values()), default=0)
    return _NEVER if least and ran.macs > least else _LEFT_OUT


def _agree(graph: Graph, layer: Layer, ran: Ran, counting: bool, wider: float = 1.0) -> float:
    own = traits(layer).words
    if is_alias(layer) and not own:
        return _NEVER
    text = " ".join((ran.name, *ran.functions)).lower()
    named = any(word in text for word in own.split() or (layer.op,))
    score = _ALIKE if named else _POSSIBLE / 2
    others = {word for name, operator in OPERATORS.items() if name != layer.op
              for word in operator.words.split()}
    if not named and any(word in ran.name.lower() for word in others):
        score = 2 * _LEFT_OUT - 1
    if layer.index not in (products := _count_products(graph)):
        return score
    if not counting:
        return score if named or score > 0 else _NEVER
    inside, every = products[layer.index]
    return score + _ALIKE if (
        LEAST * inside / wider <= ran.macs <= MOST * every * wider) else _NEVER


def _say(graph: Graph, ran: Sequence[Ran], counting: bool, where: str) -> str:
    """Name the first layer of products that has no counterpart in what is left."""
    products = [one for one in ran if any(
        _agree(graph, layer, one, counting) > _NEVER / 2
        for layer in graph.layers if layer_macs(graph, layer))]
    left = list(products)
    for layer in graph.layers:
        if not layer_macs(graph, layer):
            continue
        place = next((at for at, one in enumerate(left)
                      if _agree(graph, layer, one, counting) > _NEVER / 2), None)
        if place is None:
            beside = left[0] if left else (ran[-1] if ran else None)
            found = (f"next there is {beside.name} with {beside.macs:,} products" if beside
                     else "the program has no layers")
            return (f"{where}: not of network {graph.name}: layer {layer.index} {layer.op} "
                    f"{layer.name!r} of {layer_macs(graph, layer):,} MACs has no counterpart; "
                    f"{found}; accepted: the network it runs, or other --layers")
        del left[:place + 1]
    extra = next((one for one in ran if _leave(one, graph) <= _NEVER), ran[-1])
    return (f"{where}: not of network {graph.name}: {extra.name} computes {extra.macs:,} products "
            "and no layer is left for it; accepted: the network it runs, or other --layers")
