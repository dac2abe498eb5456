"""Dead channels removed from the file, whatever its runtime does: a change one can ask for."""

from __future__ import annotations

from functools import partial

from twin.errors import AlreadySoError
from twin.network.graph import Graph
from twin.network.rewrites.dead_channels import drop_dead_channels
from twin.network.rewrites.rewrite import Rewrite, read_choice


def _drop(graph: Graph, _: str) -> Graph:
    """Drop what nobody reads, or say that there is nothing."""
    dropped = drop_dead_channels(graph)
    if dropped is graph:
        raise AlreadySoError(f"network.dead_channels=dropped: {graph.name} has no dead channels")
    return dropped


REWRITE = Rewrite(
    name="network.dead_channels", accepted="dropped",
    does="channels no output bit depends on are removed from the file", effort="conversion",
    costs="", stage=30, values=lambda graph: ("dropped",), apply=_drop,
    read=partial(read_choice, "network.dead_channels", ("dropped",)))
