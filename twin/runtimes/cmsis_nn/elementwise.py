"""Addition and multiplication of two tensors: one element at a time, four with DSP or Helium.

References
----------
ARM-software/CMSIS-NN 6.0, Source/BasicMathFunctions: arm_elementwise_add_s8.c,
arm_elementwise_mul_s8.c.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from hwmodels.kernel import Lowered
from twin.runtimes.cmsis_nn.sequences import CODE, bookkeeping, entry, in_fours, lane_moves
from twin.runtimes.lowering import Codes, Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import BRANCH, block, draft_kernel, join, plain
from twin.runtimes.lowering.nests import closing, load, repeat, step, store

_CODE = CODE["elementwise"]


_ADD = {"dsp": (40, 10, 30, 6), "thumb2": (18, 0, 7), "thumb1": (5, 0, 9, 5), "rv32": (12, 0, 11)}
_MULTIPLY = {"dsp": (0, 5, 5), "thumb2": (1, 0, 1), "thumb1": (0, 0, 4), "rv32": (0, 0, 4)}
"""Stack loads, stack stores, arithmetic (and jumps) per four elements with DSP, per element
without."""
_SUBSCRIPTS = (8, 2, 20)
"""The same for the subscripts of a broadcast element: the portable loop, estimated."""


class Operation(NamedTuple):
    """What distinguishes the two: rescalings and bookkeeping of an element, Helium's sequences."""

    function: str
    scalings: int
    overheads: Mapping[str, tuple[int, ...]]
    call_mve: str
    four_mve: str


OPERATIONS = {
    "add": Operation("arm_elementwise_add_s8", 3, _ADD, _CODE.add_call_mve, _CODE.add_mve),
    "mul": Operation("arm_elementwise_mul_s8", 1, _MULTIPLY, _CODE.multiply_call_mve,
                     _CODE.multiply_mve),
}


def _lower(site: Site) -> Lowered:
    """Four elements at a time with DSP; a broadcast operand runs element by element."""
    operation = OPERATIONS[site.op]
    dialect = site.dialect
    count = site.output.elements
    inputs = ("input", "input2")[:len(site.layer.inputs)]
    sizes = [tensor.elements for tensor in site.reads[:2]]
    broadcast = any(size < count for size in sizes)
    text = plain(dialect)
    product = {"rv32": "mul a0, a2, a4", "thumb1": "muls r0, r5, r0"}.get(
        dialect, "smulbb r0, r2, r5") if operation.scalings == 1 else ""
    shared = CODE["sequences"]
    result = join(product, *[shared.scale_hoisted[dialect]] * operation.scalings,
                  shared.clamp[dialect])
    fours, ones = (0, count) if broadcast else in_fours(dialect, count)
    four = join(_CODE.read_4, *[result] * 4, bookkeeping(dialect, *operation.overheads["dsp"]),
                _CODE.pack_4, BRANCH[dialect])
    one = join(_CODE.read_1[text], result, bookkeeping(dialect, *operation.overheads[text]),
               bookkeeping(dialect, *_SUBSCRIPTS) if broadcast else "", _CODE.write_1[text],
               BRANCH[dialect])
    loops: list[Any] = [
        repeat("element", extent, closing(name, code),
               *[load(operand, width, done, element=width) for operand in inputs],
               store("output", width, done, element=width))
        for name, code, extent, width, done in (("four elements", four, fours, 4, 0),
                                                ("element", one, ones, 1, 4 * fours))]
    if broadcast:
        inner = max(1, min(sizes))
        loops = [block("element", one, count, 1), repeat("outer", count // inner, repeat(
            "element", inner,
            *[load(operand, 1, element=1, outer=inner if size == count else 0)
              for operand, size in zip(inputs, sizes, strict=True)],
            store("output", 1, element=1, outer=inner)))]
    name = f"{operation.function}_broadcast" if broadcast else operation.function
    return (draft_kernel(name, "elementwise", site, entry(dialect, 70, 1), *loops,
                         assumed=broadcast),)


def _lower_mve(site: Site) -> Lowered:
    """Four elements at a time; a broadcast operand is read again for every repetition."""
    operation = OPERATIONS[site.op]
    count = site.output.elements
    sizes = [site.input(place).elements for place in (0, 1)]
    inner = min(count, *sizes)
    calls = -(-count // inner)
    full, tail = divmod(inner, 4)
    steps = [{} if size < count else {"call": inner} for size in sizes]

    def moves(lanes: int, offset: int) -> list[Any]:
        return [*lane_moves(load("input", 4, offset, four=4, **steps[0]), lanes),
                *lane_moves(load("input2", 4, offset, four=4, **steps[1]), lanes),
                *lane_moves(store("output", 4, offset, four=4, call=inner), lanes)]

    return (draft_kernel(
        operation.function, "elementwise", site,
        repeat("call", calls,
               step("call", operation.call_mve, "kernel_call"),
               repeat("vector", -(-inner // 4), closing("four elements", operation.four_mve)),
               repeat("four", full, *moves(4, 0)),
               *(moves(tail, 4 * full) if tail else ()))),)


_BOTH: Codes = {"c": Lowering(lower=_lower), "mve": Lowering(lower=_lower_mve)}

KERNELS: Kernels = {
    "add": _BOTH,
    "mul": _BOTH,
}
