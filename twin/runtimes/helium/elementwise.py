"""Element-wise operators with Helium, where a closed library surely has vectors: all assumed.

Structures are those public kernels of the kind have. Sums and products widen four bytes at a time
and requantise them, a constant of one element is held in a register, extremes compare sixteen bytes
at once, functions of a byte are read from a table of 256, quantising converts four floats. The
element-wise layers of `perlayer/stm32n6_snn_mnist_perlayer.csv` are 2 to 18 cycles an element, as
these are; the reference's loops would take 30 to 200.

References
----------
ARM-software/CMSIS-NN 7.0, Source/BasicMathFunctions: arm_elementwise_add_s8.c,
arm_elementwise_mul_s8.c, arm_minimum_s8.c; tensorflow/lite/kernels/internal/common.h: LookupTable;
ARM-software/CMSIS-DSP, Source/SupportFunctions: arm_float_to_q7.c.
"""

from __future__ import annotations

import math
from typing import Any

from hwmodels.kernel import Kernel, Lowered
from twin.network.graph import Layer
from twin.runtimes.cmsis_nn.elementwise import OPERATIONS
from twin.runtimes.cmsis_nn.sequences import CODE, entry
from twin.runtimes.lowering import Codes, Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import draft_kernel, join
from twin.runtimes.lowering.nests import closing, load, repeat, step, store
from twin.runtimes.reference.reduce import lower_mean_in_order

_CALL_INSTRUCTIONS = 70
"""Prologue, arguments and epilogue of a call, those of CMSIS-NN's element-wise functions."""

_ROW = "mov r1, r9; ldr lr, [sp, #24]; add r8, r8, r10; wls lr, lr, 1f"
"""Once per repetition of an operand that is shorter than the other."""

_READ = join(CODE["elementwise"].predicate, "vpst; vldrbt.s32 q2, [r3]; vadd.i32 q2, q2, r4")
_WRITE = ("vadd.i32 q2, q2, r6; vmax.s32 q2, q2, q5; vmin.s32 q2, q2, q6; sub r8, r10, r2;"
          "subs r2, #4; vpst; vstrbt.32 q2, [r8]; le lr, 0b")
"""As CMSIS-NN's are compiled: under a predicate of four lanes, kept in a core register."""

_SHIFT = "vshl.s32 {v}, {v}, r3"
_SCALE = ("vqrdmulh.s32 {v}, {v}, r7; vand q7, {v}, q4; vshr.s32 q7, q7, #31;"
          "vqadd.s32 {v}, {v}, q7; vrshl.s32 {v}, {v}, q4")
_RESCALED = join(_SHIFT.format(v="q2"), _SCALE.format(v="q2"))
_SUM, _PRODUCT = OPERATIONS["add"].four_mve, OPERATIONS["mul"].four_mve
_SUM_CONSTANT = join(_READ, _RESCALED, "vadd.i32 q2, q2, q3", _RESCALED, _WRITE)
_PRODUCT_CONSTANT = join(_READ, "vmul.i32 q2, q2, q3", _RESCALED, _WRITE)
_RESCALE = join(_READ, _RESCALED, _WRITE)
_EXTREME = ("vldrb.8 q0, [r0], #16; vldrb.8 q1, [r1], #16; vmin.s8 q0, q0, q1;"
            "vstrb.8 q0, [r8], #16; letp lr, 0b")
_EXTREME_CONSTANT = ("vldrb.8 q0, [r0], #16; vmin.s8 q0, q0, q1; vstrb.8 q0, [r8], #16;"
                     "letp lr, 0b")
_TABLE = "ldrb r3, [r0], #1; ldrsb r3, [r4, r3]; strb r3, [r8], #1; le lr, 0b"
_TO_BYTES = ("vldrw.u32 q2, [r0], #16; vmul.f32 q2, q2, r4; vcvtn.s32.f32 q2, q2;"
             "vadd.i32 q2, q2, r6; vmax.s32 q2, q2, q5; vmin.s32 q2, q2, q6; vstrb.32 q2, [r8], #4;"
             "letp lr, 0b")
_TO_FLOATS = ("vldrb.s32 q2, [r0], #4; vadd.i32 q2, q2, r4; vcvt.f32.s32 q2, q2;"
              "vmul.f32 q2, q2, r5; vstrw.32 q2, [r8], #16; letp lr, 0b")

_PAIRS = {"add": (_SUM, _SUM_CONSTANT, 4), "sub": (_SUM, _SUM_CONSTANT, 4),
          "mul": (_PRODUCT, _PRODUCT_CONSTANT, 4), "minimum": (_EXTREME, _EXTREME_CONSTANT, 16),
          "maximum": (_EXTREME, _EXTREME_CONSTANT, 16)}
"""Loop of two operands, of one and a constant, and elements a turn."""


def _lower_pair(site: Site) -> Lowered:
    """Lower an operator of two operands; a shorter one is read again for every repetition."""
    both, constant, lanes = _PAIRS[site.op]
    names = {operand.name for operand in site.operands}
    other = "input2" if "input2" in names else "weights"
    count = math.prod(site.shape)
    sizes = [tensor.elements for tensor in site.reads[:2]]
    inner = min(count, *sizes)
    if inner == 1:
        long = "input" if sizes[0] >= sizes[1] else other
        return (_build(site.layer, site, "elementwise", constant, count, lanes, {long: 1}),)
    short = {name: size < count for name, size in zip(("input", other), sizes, strict=True)}
    return (_build(site.layer, site, "elementwise", both, inner, lanes, dict.fromkeys(short, 1),
                   rows=-(-count // inner), repeated=short),)


def _lower_rescaled(site: Site) -> Lowered:
    """Lower relu or relu6: bytes rescaled and clamped."""
    return (_build(site.layer, site, "activation", _RESCALE, _count(site), 4, {"input": 1}),)


def _lower_table(site: Site) -> Lowered:
    """Lower a function of one byte: a table, whose own lines are omitted."""
    return (_build(site.layer, site, "activation", _TABLE, _count(site), 1, {"input": 1}),)


def _lower_quantize(site: Site) -> Lowered:
    """Lower quantising: floats scaled and rounded, bytes rescaled."""
    source = site.source.dtype
    code, width = (_TO_BYTES, 4) if source == "float32" else (_RESCALE, 1)
    return (_build(site.layer, site, "quantize", code, _count(site), 4, {"input": width}),)


def _lower_dequantize(site: Site) -> Lowered:
    """Lower dequantising: four bytes become four floats."""
    return (_build(site.layer, site, "quantize", _TO_FLOATS, _count(site), 4, {"input": 1},
                   output_bytes=4),)


def _count(site: Site) -> int:
    return math.prod(site.shape)


def _build(layer: Layer, site: Site, family: str, code: str, count: int, lanes: int,
           reads: dict[str, int], *, rows: int = 1, repeated: dict[str, bool] | None = None,
           output_bytes: int = 1) -> Kernel:
    """Return one loop over `count` elements, run `rows` times; `reads` are bytes by operand."""
    turns, left = divmod(count, lanes)
    repeated = repeated or {}

    def moves(elements: int, first: int, **steps: int) -> list[Any]:
        found: list[Any] = []
        for make, name, width in (*((load, name, width) for name, width in reads.items()),
                                  (store, "output", output_bytes)):
            size = elements * width
            piece = next(one for one in (16, 8, 4, 2, 1) if size % one == 0)
            row = {} if repeated.get(name) else {"row": count * width}
            found += [make(name, piece, first * width + start,
                           **{axis: many * width for axis, many in steps.items()}, **row)
                      for start in range(0, size, piece)]
        return found

    return draft_kernel(
        f"helium_{layer.op}", family, site, entry("dsp", _CALL_INSTRUCTIONS, 1),
        repeat("row", rows, step("row", _ROW),
               repeat("vector", -(-count // lanes), closing("elements", code)),
               repeat("turn", turns, *moves(lanes, 0, turn=lanes)),
               *(moves(left, turns * lanes) if left else ())), assumed=True)


_PAIR: Codes = {"mve": Lowering(lower=_lower_pair)}
_LOOKUP: Codes = {"mve": Lowering(lower=_lower_table)}

KERNELS: Kernels = {
    "add": _PAIR,
    "dequantize": {"mve": Lowering(lower=_lower_dequantize)},
    "hard_swish": _LOOKUP,
    "logistic": _LOOKUP,
    "maximum": _PAIR,
    "mean": {"mve": Lowering(lower=lower_mean_in_order)},
    "minimum": _PAIR,
    "mul": _PAIR,
    "quantize": {"mve": Lowering(lower=_lower_quantize)},
    "relu": {"mve": Lowering(lower=_lower_rescaled)},
    "relu6": {"mve": Lowering(lower=_lower_rescaled)},
    "sub": _PAIR,
    "tanh": _LOOKUP,
}
