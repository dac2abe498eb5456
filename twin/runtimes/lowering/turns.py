"""Kernels of a layer that stands in a loop of the network."""

from __future__ import annotations

from dataclasses import replace

from hwmodels.kernel import Access, Guard, Kernel, Loop, Nest


def repeat_kernel(kernel: Kernel, turns: int) -> Kernel:
    """Return a kernel called so many times in a row.

    Returns
    -------
    Kernel
        Blocks and accesses as often; each call touches the same data.

    Notes
    -----
    Other layers of the loop run between two calls, so caches hold less of the data than here.
    """
    return replace(
        kernel, calls=turns * kernel.calls, useful_macs=turns * kernel.useful_macs,
        blocks=tuple(replace(block, trips=turns * block.trips, entries=turns * block.entries)
                     for block in kernel.blocks),
        nests=(Loop(extent=turns, body=tuple(_deepen(nest) for nest in kernel.nests)),)
        if kernel.nests else ())


def _deepen(nest: Nest) -> Nest:
    """Return a nest inside one more loop, in which nothing moves."""
    if isinstance(nest, Loop):
        return replace(nest, body=tuple(_deepen(inner) for inner in nest.body))
    return Access(
        operand=nest.operand, write=nest.write, width_bytes=nest.width_bytes,
        offset_bytes=nest.offset_bytes, steps_bytes=(0, *nest.steps_bytes),
        guards=tuple(Guard(steps=(0, *guard.steps), offset=guard.offset, limit=guard.limit)
                     for guard in nest.guards))
