"""Many elements to one: mean, sum, extremes and their places.

Each input element is visited by an odometer over all dimensions, and its place in the output is
worked out from the axes that stay: each dimension is compared with the axes until one is it.
Without an FPU the first element of a sum, added to zero, takes less.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference/reduce.h, arg_min_max.h.
"""

from __future__ import annotations

import itertools
import math

from twin.network.graph import GraphLayer
from twin.network.operators import Form, list_form
from twin.runtimes.counted.work import Terms, Work


def describe_reduction(step: GraphLayer) -> Work:
    """Return the work of a reduction over axes."""
    source, target = step.ends
    axes, rank = tuple(step.option("axes", ())), len(source.shape)
    keeps = step.option("keep_dims", False)
    terms: dict[str, float] = {"call": 1, "element": source.elements, "output": target.elements,
                               "dimension": len(target.shape),
                               "added": source.elements - target.elements}
    if step.op == "mean" and source.dtype == "float32" and keeps \
            and sorted(axes) == [1, 2] and rank == 4:
        return Work(variant="float32 over an image", terms=terms | {
            "row": source.shape[1] * target.elements})
    compared = sum(axes.index(place) + 1 if place in axes else len(axes) for place in range(rank))
    carries = itertools.accumulate(reversed(source.shape), lambda left, right: left * right)
    return Work(variant=source.dtype, terms=terms | {
        "element dimension": source.elements * rank, "element axis": source.elements * len(axes),
        "element kept": source.elements * (rank - len(axes)),
        "element compared": source.elements * compared,
        "carry": sum(source.elements // size for size in carries),
        "row": source.rows})


def describe_choice(step: GraphLayer) -> Work:
    """Return the work of finding the place of an extreme along an axis."""
    source, target = step.ends
    axis = step.option("axis", 0)
    outer = math.prod(source.shape[:axis])
    compared = source.elements - target.elements
    better = target.elements * (sum(1 / place for place in range(1, source.shape[axis] + 1)) - 1)
    return Work(variant=source.dtype, terms={
        "call": 1, "outer": outer, "output": target.elements, "compared": compared,
        "better": better, "dimension": len(source.shape)})


def describe_top(step: GraphLayer) -> Work:
    """Return the work of the greatest few along an axis: a heap of them (assumed)."""
    work = describe_choice(step)
    kept = step.shape[step.option("axis", 0)]
    turns = 1 + math.log2(kept)
    return Work(variant=work.variant, terms={
        **work.terms, "compared": work.terms["compared"] * turns})


FAMILY = "reduce"

TERMS: Terms = {
    **dict.fromkeys(list_form(Form.REDUCE), describe_reduction),
    **dict.fromkeys(("arg_max", "arg_min"), describe_choice), "top_k": describe_top,
}
