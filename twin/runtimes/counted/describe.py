"""The work of a layer, by operator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from twin.network.graph import Graph, Layer
from twin.runtimes.counted.terms import (
    elementwise,
    movement,
    products,
    reductions,
    rows,
    windows,
)
from twin.runtimes.counted.work import Describe, Work


@cache
def _terms() -> Mapping[str, tuple[str, Describe]]:
    return {op: (module.FAMILY, terms)
            for module in (elementwise, movement, products, reductions, rows, windows)
            for op, terms in module.TERMS.items()}


def describe(graph: Graph, layer: Layer) -> Work | None:
    """Return the work of a layer; None for an operator nobody counted."""
    terms = _terms().get(layer.op)
    return None if terms is None else terms[1](graph, layer)


def family_of(op: str) -> str:
    """Return the family a described operator belongs to."""
    return _terms()[op][0]


def is_described(op: str) -> bool:
    """Whether an operator was counted."""
    return op in _terms()
