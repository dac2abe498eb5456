"""A kernel read from a program, as a lowering."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hwmodels.isa import load_isa
from hwmodels.kernel import Block, Kernel, Lowered, split_runs
from twin.network.graph import Layer
from twin.network.operators import layer_macs
from twin.runtimes.counted.describe import family_of, is_described
from twin.runtimes.counted.learnt import Learnt, LearntBlock, LearntKernel, total
from twin.runtimes.counted.mixture import CLASSES, mix
from twin.runtimes.counted.shapes import count_terms
from twin.runtimes.counted.walks import walk
from twin.runtimes.lowering import Lowering, Site
from twin.runtimes.lowering.blocks import build_kernel, plain

_ALIGNMENT_BYTES = 16
_FAMILIES = {"conv_2d": "conv", "depthwise_conv_2d": "depthwise",
             "fully_connected": "fully_connected", "softmax": "softmax"}


def lower_learnt(learnt: Learnt, dtype: str, base: Lowering) -> Lowering:
    """Return how an operator runs that was seen in a program.

    Parameters
    ----------
    base
        What runs where the code is not the core's: of the library it is taken to be like, assumed.
    """
    def lower(site: Site) -> Lowered:
        kernel, stands_in = learnt.choose(site, dtype)
        if kernel is None or learnt.isa not in load_isa(site.isa).learnt_from:
            return tuple(replace(one, assumed=True) for one in base.lower(site))
        return (_make(kernel, site, assumed=stands_in or learnt.isa != site.isa),)

    def scratch_bytes(site: Site) -> int:
        kernel, _ = learnt.choose(site, dtype)
        if kernel is None or learnt.isa not in load_isa(site.isa).learnt_from:
            return base.scratch_bytes(site)
        scratch = kernel.operand("scratch")
        size = 0.0 if scratch is None else total(scratch.size, count_terms(site))
        return -(-round(size) // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES

    return Lowering(lower=lower, scratch_bytes=scratch_bytes)


def _make(kernel: LearntKernel, site: Site, *, assumed: bool) -> Kernel:
    terms = count_terms(site)
    blocks = [one for block in kernel.blocks for one in _run(block, terms)]
    rest = total(kernel.rest, terms)
    amounts = {name: round(rest * kernel.classes.get(name, 0.0)) for name in CLASSES}
    blocks += mix(plain(site.dialect), amounts)
    made = build_kernel(
        kernel.name, family(site.layer), site, tuple(blocks),
        walk(kernel, site, terms), macs=layer_macs(site.graph, site.layer), assumed=assumed)
    return replace(made, code_bytes=kernel.code_bytes)


def _run(block: LearntBlock, terms: dict[str, float]) -> Iterator[Block]:
    """Yield a loop, or a block whose closing branch falls through and is taken."""
    trips = round(total(block.trips, terms))
    through = min(trips, round(total(block.entries, terms)))
    if block.loops and trips:
        through = max(through, 1)
    yield from split_runs(Block(name=block.name, code=block.code, trips=trips, entries=through,
                                cause=block.cause), loops=block.loops, jump="b #0x0")


def family(layer: Layer) -> str:
    """Return the family of operators a layer is of."""
    if layer.op == "conv_2d" and layer.window is not None and layer.window.kernel == (1, 1):
        return "pointwise"
    return _FAMILIES.get(layer.op) or (
        family_of(layer.op) if is_described(layer.op) else "elementwise")
