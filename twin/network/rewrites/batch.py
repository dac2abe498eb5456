"""Several inputs at a time."""

from __future__ import annotations

from hwmodels.quantities import read_count
from twin.errors import NotApplicableError, UsageError
from twin.network.graph import Graph
from twin.network.operators import list_states
from twin.network.rewrites.rewrite import Rewrite
from twin.network.shapes import infer_shapes

MOST = 64
"""Inputs of a batch at most."""


def change_batch(graph: Graph, batch: int) -> Graph:
    """Return a network that takes so many inputs at a time.

    Raises
    ------
    NotApplicableError
        When it keeps states, or a layer works on one input only.

    Notes
    -----
    Figures are of the whole batch: all its inputs.
    """
    text = f"network.batch={batch}"
    if list_states(graph):
        raise NotApplicableError(f"{text}: {graph.name} keeps states between inferences; the "
                                 "inputs of a batch would share them")
    shapes = {i: graph.tensors[i].shape for i in graph.inputs}
    if any(not shape or shape[0] != 1 for shape in shapes.values()):
        first = next(iter(shapes.values()))
        raise NotApplicableError(f"{text}: the first axis of the input {list(first)} is not a "
                                 "batch of 1")
    return infer_shapes(graph, {i: (batch, *shape[1:]) for i, shape in shapes.items()}, text)


def _read(text: str) -> int:
    count = read_count(text, MOST)
    if not count:
        raise UsageError(f"network.batch: {text!r}; accepted: 1 to {MOST}")
    return count


REWRITE = Rewrite(
    name="network.batch", accepted=f"inputs at a time, 1 to {MOST}",
    does="so many inputs are computed at a time: all figures are of all of them, and a period of "
         "--every holds one batch",
    effort="conversion", costs="", stage=80, values=lambda graph: ("2", "4"), read=_read,
    apply=change_batch, neutral=1.0, whole=True, several=True)
