"""The width of stored weights as a change one can ask for."""

from __future__ import annotations

from functools import partial

from twin.network.graph import Graph
from twin.network.operators import traits
from twin.network.rewrites.precision import narrow_weights
from twin.network.rewrites.rewrite import Rewrite, read_choice


def _values(graph: Graph) -> tuple[str, ...]:
    found = {graph.input(layer, 1).dtype for layer in graph.layers
             if traits(layer).filters is not None}
    return ("int4",) if "int8" in found else ("int8",) if "int4" in found else ()


REWRITE = Rewrite(
    name="network.weights", accepted="int4, int8",
    does="weights of convolutions and fully connected layers are stored in so many bits",
    effort="conversion", costs="accuracy not known until it is measured (`twin accuracy`)",
    stage=71, values=_values,
    read=partial(read_choice, "network.weights", ("int4", "int8")), apply=narrow_weights)
