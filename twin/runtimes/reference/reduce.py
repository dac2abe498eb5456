"""Reductions over axes, plain C: one element at a time.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference: reduce.h;
integer_ops/mean.h.
"""

from __future__ import annotations

import math
from typing import Any

from hwmodels.kernel import Lowered
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import block, join
from twin.runtimes.lowering.nests import by_axis, load, over_axes, repeat, store, strides
from twin.runtimes.reference.sequences import COUNTS, Counts, Machine, Table, choose_machine

_COUNTS = COUNTS["reduce"]

_CALL: Counts = (16, 13, 25)


def _lower_mean(site: Site) -> Lowered:
    """Lower a mean: over both spatial axes by plain sums, otherwise by the general reduction."""
    machine = choose_machine(site)
    spatial = tuple(sorted(_axes(site))) == (1, 2)
    return _reduce("reference_ops::Mean", machine, machine.math("add"),
                   join(machine.math("div"), machine.requantise()),
                   _COUNTS["sum"] if spatial else _COUNTS["element"], not spatial)


def lower_mean_in_order(site: Site) -> Lowered:
    """Lower a mean that reads in the order of the data and keeps a sum of 32 bits a result.

    Time goes with the elements, not with how many lines a walk along one channel loads again.
    """
    machine, shape = choose_machine(site), site.source.shape
    results, size = site.output.elements, machine.element_bytes
    element = join(machine.load(size), machine.load(4), machine.math("add"), machine.store(4),
                   machine.loop(_COUNTS["ordered"]))
    finish = join(machine.math("div"), machine.requantise(), machine.store(size),
                  machine.loop(_COUNTS["result"]))
    return machine.kernel(
        "forward_mean", "reduce", _CALL, block("element", element, math.prod(shape), results),
        block("result", finish, results, 1),
        *over_axes(shape, load("input", size, 0, **by_axis(strides(shape), size))),
        repeat("result", results, store("output", size, 0, result=size)), assumed=True)


def _lower_max(site: Site) -> Lowered:
    """Lower a maximum over axes by the general reduction."""
    machine = choose_machine(site)
    return _reduce("reference_ops::ReduceGeneric", machine,
                   machine.math("compare"), "", _COUNTS["element"], True)


def _axes(site: Site) -> tuple[int, ...]:
    rank = len(site.source.shape)
    axes = site.layer.option("axes", site.layer.option("axis", tuple(range(1, rank - 1))))
    return tuple(axis % rank for axis in ((axes,) if isinstance(axes, int) else axes))


def _reduce(name: str, machine: Machine, combine: str, finish: str,
            per_element: Table, assumed: bool) -> Lowered:
    """Every result in turn: all elements that fall into it read, then it is stored."""
    shape, axes = machine.at.source.shape, _axes(machine.at)
    results, size = machine.at.output.elements, machine.element_bytes
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    steps = strides(tuple(shape[axis] for axis in kept))
    element = join(machine.load(size), combine, machine.loop(per_element))
    result = join(finish, machine.store(size), machine.loop(_COUNTS["result"]))
    draft: Any = load("input", size, 0, **by_axis(strides(shape), size))
    for axis in reversed(axes):
        draft = repeat(f"axis{axis}", shape[axis], draft)
    body: tuple[Any, ...] = (draft, store("output", size, 0, **{
        f"axis{axis}": step * size for axis, step in zip(kept, steps, strict=True)}))
    for axis in reversed(kept):
        body = (repeat(f"axis{axis}", shape[axis], *body),)
    return machine.kernel(
        name, "reduce", _CALL,
        block("element", element, math.prod(shape), results),
        block("result", result, results, 1), *body, assumed=assumed)


KERNELS: Kernels = {
    "mean": {"c": Lowering(lower=_lower_mean)},
    "reduce_max": {"c": Lowering(lower=_lower_max)},
}
