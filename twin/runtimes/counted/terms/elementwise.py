"""One result per element: of one operand, of two that broadcast, of three.

Operands that broadcast are walked by nested loops: neighbouring dimensions are one loop where the
steps of all operands allow it, and the innermost loop is a run in which each operand moves by an
element or stays.

References
----------
tensorflow/tflite-micro, tensorflow/lite/micro/kernels and tensorflow/lite/kernels/internal:
elementwise.cc, broadcast_loop.h, add.h, mul.h, sub.h, div.h, maximum_minimum.h, comparisons.h,
select.h, squared_difference.cc; ARM-software/CMSIS-NN, Source/BasicMathFunctions: arm_maximum_s8.c.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from twin.network.graph import GraphLayer, Shape, Tensor
from twin.network.operators import Form, list_form
from twin.runtimes.counted.copies import count_copies
from twin.runtimes.counted.work import Terms, Work


def describe_unary(step: GraphLayer) -> Work:
    """Return the work of one result per element of one operand."""
    source, target = step.ends
    types = source.dtype if source.dtype == target.dtype else f"{source.dtype} {target.dtype}"
    return Work(variant=types, terms={
        "call": 1, "dimension": len(target.shape), "element": target.elements})


def describe_quantize(step: GraphLayer) -> Work:
    """Return the work of changing a type: 8-bit types of one scale only flip their top bit."""
    source, target = step.ends
    work = describe_unary(step)
    first, second = source.quantization, target.quantization
    if {source.dtype, target.dtype} != {"int8", "uint8"} or first is None or second is None:
        return work
    apart = first.zero_points[0] - second.zero_points[0]
    flips = first.scales == second.scales and abs(apart) == 128
    return Work(variant=f"{work.variant} flip" if flips else work.variant, terms=work.terms)


def fuse_loops(shapes: Sequence[Shape], target: Shape) -> list[tuple[int, tuple[bool, ...]]]:
    """Return the loops over operands that broadcast, innermost first.

    Returns
    -------
    list of (int, tuple of bool)
        Turns, and which operands move.
    """
    rank = len(target)
    whole = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    strides = [1] * len(shapes)
    loops: list[tuple[int, tuple[bool, ...]]] = []
    made: list[Shape] = []
    for place in reversed(range(rank)):
        turns = target[place]
        steps = tuple(0 if shape[place] == 1 != turns else stride
                      for shape, stride in zip(whole, strides, strict=True))
        if made and (turns == 1 or all(
                (step == 0) if last == 0 else (step == stride)
                for step, last, stride in zip(steps, made[-1], strides, strict=True))):
            loops[-1] = (loops[-1][0] * turns, loops[-1][1])
        else:
            made.append(steps)
            loops.append((turns, tuple(step > 0 for step in steps)))
        strides = [stride * shape[place] for stride, shape in zip(strides, whole, strict=True)]
    return loops or [(1, (True,) * len(shapes))]


def _count_loops(loops: Sequence[tuple[int, tuple[bool, ...]]]) -> dict[str, float]:
    """Return how often loops begin: innermost runs, and calls of the loops around them."""
    outer = list(itertools.accumulate((turns for turns, _ in reversed(loops[1:])),
                                      lambda left, right: left * right, initial=1))
    return {"run": outer[-1], "turn": sum(outer[:-1]), "loop": len(loops)}


def _share_negative(operand: Tensor) -> float:
    """Return the share of 8-bit values below zero: of a constant's, else even over their range."""
    if operand.quantization is None or operand.dtype != "int8":
        return 0.0
    point = operand.quantization.zero_points[0]
    if operand.data is not None and operand.data.any():
        return float((operand.data < point).mean())
    return (point + 128) / 256


def describe_paired(step: GraphLayer) -> Work:
    """Return the work of one result per element of two operands that may broadcast.

    Operands of 8 bits are scaled, and gemmlowp rounds negative values otherwise.
    """
    first, second = step.reads[:2]
    target = step.output
    terms: dict[str, float] = {
        "call": 1, "dimension": len(target.shape), "element": target.elements,
        "rest": target.elements % 4,
        "negative": target.elements * (_share_negative(first) + _share_negative(second))}
    path, own = "", {"vector four": float(-(-target.elements // 4))}
    if step.op in ("minimum", "maximum") and first.dtype == "int8":
        path, own = _count_extremes(first, second, target)
    alike = step.op in ("mul", "div") or (step.op in ("add", "sub") and first.dtype != "float32")
    if first.shape == second.shape or (alike and _pad(first) == _pad(second)):
        return Work(variant=f"{first.dtype} same", path=path, terms=terms, own=own)
    loops = fuse_loops((first.shape, second.shape), target.shape)
    held = not all(loops[0][1])
    terms |= _count_loops(loops) | {
        "line": math.prod(_pad(target)[:-2]), "row": math.prod(_pad(target)[:-1]),
        "held first element": 0 if loops[0][1][0] else target.elements,
        "rank": len(first.shape) + len(second.shape)}
    return Work(variant=f"{first.dtype} {'held' if held else 'rows'}", path=path, terms=terms,
                own=own, oldest=Work(variant=f"{first.dtype} broadcast", terms=terms))


DECIDED = {"elu": "taken to be even between -1 and 1",
           "floor_mod": "operands taken to be of one range"}
"""What is assumed of inputs that decide what `expm1f` and `fmodf` execute. Counted on a Cortex-M4,
instructions an element: ELU 17, of a negative input down to -17 38 to 71; FLOOR_MOD 51 below the
divisor, beyond it 94 and 7 for each power of two between both.
"""


def describe_decided(step: GraphLayer) -> Work:
    """Return the work of an operator that inputs decide in float."""
    work = (describe_unary if len(step.layer.inputs) == 1 else describe_paired)(step)
    return replace(work, guessed=DECIDED[step.op]) if "float" in work.variant else work


def _pad(tensor: Tensor) -> Shape:
    """Return a shape with leading ones, so that ranks are equal."""
    return ((1,) * 8 + tuple(tensor.shape))[-8:]


def _count_extremes(first: Tensor, second: Tensor, target: Tensor) -> tuple[str, dict[str, float]]:
    """Return how CMSIS-NN walks two operands of four dimensions: path and runs."""
    one, other, whole = (_pad(tensor)[-4:] for tensor in (first, second, target))
    if first.elements == 1 or second.elements == 1:
        depth = 4
    else:
        depth = next((place for place in range(4) if one[place:] == other[place:]
                      or math.prod(one[place:]) == 1 or math.prod(other[place:]) == 1), 3)
        depth = 4 - depth
    run = math.prod(whole[4 - depth:])
    runs = max(1, target.elements // max(1, run))
    held = one[4 - depth:] != other[4 - depth:]
    return f"int8 walked{' broadcast' if one != other else ''}{' held' if held else ''}", {
        "walk": runs, "walked row": math.prod(whole[:2]) if depth < 3 else 0,
        "vector walk": runs * -(-run // 16)}


def describe_selection(step: GraphLayer) -> Work:
    """Return the work of choosing between two operands, element by element."""
    tensors = step.reads[:3]
    target = step.output
    terms: dict[str, float] = {"call": 1, "dimension": len(target.shape),
                               "element": target.elements}
    width = tensors[1].element_bytes
    if len({tensor.shape for tensor in tensors}) == 1:
        return Work(variant=f"{tensors[1].dtype} same", terms=terms)
    loops = fuse_loops([tensor.shape for tensor in tensors], target.shape)
    condition, *both = loops[0][1]
    terms |= _count_loops(loops)
    if not condition and all(both):
        terms |= count_copies(loops[0][0] * width, int(terms["run"]))
    name = "copied" if not condition else "broadcast" if all(both) else "one held" \
        if any(both) else "held"
    return Work(variant=f"{tensors[1].dtype} {name}", terms=terms)


FAMILY = "elementwise"

TERMS: Terms = {**dict.fromkeys(list_form(Form.ELEMENTWISE), describe_unary),
                **dict.fromkeys(list_form(Form.BROADCAST), describe_paired),
                **dict.fromkeys(DECIDED, describe_decided), "quantize": describe_quantize,
                "select": describe_selection, "cumsum": describe_unary, "pow": describe_unary}
