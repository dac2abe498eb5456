"""The work of a layer, by operator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from twin.network.graph import GraphLayer
from twin.runtimes.counted.terms import elementwise, movement, products, reductions, rows, windows
from twin.runtimes.counted.work import Describe, Terms, Work


@cache
def _terms() -> Mapping[str, tuple[str, Describe]]:
    return {op: (module.FAMILY, terms)
            for module in (elementwise, movement, products, reductions, rows, windows)
            for op, terms in module.TERMS.items()}


ALONE = ("tinymaix", "nnom", "emlearn")
"""Kernels of libraries that fall back to no other's; a file of `terms/` describes each."""


def terms_of(kernels: str) -> Terms:
    """Return what kernels that fall back to no other's have, by operator."""
    terms: Terms = import_module(f"{__package__}.terms.{kernels}").TERMS
    return terms


def describe(step: GraphLayer, kernels: str = "") -> Work | None:
    """Return the work of a layer under some kernels; None for an operator nobody counted."""
    found = (terms_of(kernels).get(step.op) if kernels in ALONE else
             _terms()[step.op][1] if is_described(step.op) else None)
    return None if found is None else found(step)


def family_of(op: str) -> str:
    """Return the family a described operator belongs to."""
    return _terms()[op][0]


def is_described(op: str) -> bool:
    """Whether an operator was counted."""
    return op in _terms()
