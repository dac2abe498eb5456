"""Weights that leave their memory a stated number of times, whatever loops read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from hwmodels.kernel import Access, Kernel, Loop, Lowered, Nest, Nests
from twin.runtimes.lowering import MOST_KEPT, Lowering, Site

_OPERAND = "weights"
_WORD_BYTES = 4


@lru_cache(maxsize=MOST_KEPT)
def pass_weights(lowering: Lowering, passes: int) -> Lowering:
    """Return the same kernels, with weights fetched front to back so many times a call.

    Parameters
    ----------
    lowering
        Of an operator whose weights serve many outputs of one call.
    passes
        How often all weights of the layer leave their memory.

    Notes
    -----
    Instructions stay: the loads in between find a weight near, in a register, a line that was
    kept or a tile in scratch. Ignores the room the tile takes in a cache and what filling it
    costs beyond the loads.
    """
    def lower(site: Site) -> Lowered:
        return tuple(_pass_once(kernel, passes) for kernel in lowering.lower(site))

    return replace(lowering, lower=lower)


def _pass_once(kernel: Kernel, passes: int) -> Kernel:
    size_bytes = sum(operand.size_bytes for operand in kernel.operands if operand.name == _OPERAND)
    if not size_bytes:
        return kernel
    words, rest = divmod(size_bytes, _WORD_BYTES)
    body = [Loop(extent=count, body=(Access(
        operand=_OPERAND, write=False, width_bytes=width, offset_bytes=offset,
        steps_bytes=(0, width)),)) for count, width, offset in (
            (words, _WORD_BYTES, 0), (rest, 1, words * _WORD_BYTES)) if count]
    return replace(kernel, nests=(Loop(extent=passes, body=tuple(body)),
                                  *_without_weights(kernel.nests)))


def _without_weights(nests: Sequence[Nest]) -> Nests:
    left: list[Nest] = []
    for nest in nests:
        if isinstance(nest, Access):
            left += [nest] if nest.operand != _OPERAND else []
        elif body := _without_weights(nest.body):
            left.append(replace(nest, body=body))
    return tuple(left)
