"""Element-wise arithmetic and activations, plain C: one element at a time.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference: add.h, sub.h, mul.h,
leaky_relu.h, prelu.h, hard_swish.h, logistic.h, tanh.h; integer_ops/add.h, integer_ops/mul.h,
integer_ops/logistic.h, integer_ops/tanh.h; micro/kernels/activations_common.cc.
"""

from __future__ import annotations

import math
from typing import Any

from hwmodels.kernel import Lowered
from twin.network.graph import Shape
from twin.runtimes.lowering import Codes, Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import block, join
from twin.runtimes.lowering.nests import by_axis, load, over_axes, repeat, store, strides
from twin.runtimes.reference.sequences import COUNTS, Counts, Machine, Table, choose_machine

_COUNTS = COUNTS["elementwise"]

_FIXED_POINT_MULTIPLY = {"thumb2": 12, "thumb1": 58, "rv32": 13}
"""One saturating doubling high multiply of gemmlowp's fixed-point functions."""

_CALL: Counts = (8, 6, 14)
_WIDTHS = {"int8": 1, "uint8": 1, "bool": 1, "int16": 2, "float16": 2}
"""Bytes of what is written in another type; of others 4."""


def _lower_add(site: Site) -> Lowered:
    """Lower an addition or subtraction: int8 operands and result are rescaled."""
    machine = choose_machine(site)
    code = join(machine.requantise(3), machine.math("add"), _soft_clamp(machine))
    return _lower_pair("reference_ops::Sub" if site.op == "sub" else "reference_ops::Add",
                       machine, code, _COUNTS["add"])


def _lower_mul(site: Site) -> Lowered:
    """Lower a multiplication: an int8 product is rescaled once."""
    machine = choose_machine(site)
    code = join(machine.requantise(), machine.math("mul"), _soft_clamp(machine))
    return _lower_pair("reference_ops::Mul", machine, code, _COUNTS["multiply"])


def _lower_maximum(site: Site) -> Lowered:
    """Lower an element-wise maximum or minimum: indices computed as for a broadcast (assumed)."""
    machine = choose_machine(site)
    code = join(machine.math("compare"), machine.loop(_COUNTS["indexed"]))
    return _lower_elements("MaximumMinimumBroadcastSlow", machine, code,
                           _COUNTS["relu"], operands=("input", "input2"),
                           family="elementwise", assumed=True)


def _lower_relu(site: Site) -> Lowered:
    """Lower relu, relu6 or leaky relu: int8 elements are rescaled, then clamped."""
    machine = choose_machine(site)
    code = join(machine.math(*["compare"] * (2 if site.op == "relu6" else 1),
                             *["mul"] * (site.op == "leaky_relu")), machine.requantise())
    name = {"relu": "ReluQuantized", "relu6": "Relu6Quantized"}.get(site.op, "QuantizeLeakyRelu")
    return _lower_elements(name, machine, code, _COUNTS["relu"])


def _lower_prelu(site: Site) -> Lowered:
    """Lower prelu: broadcast indices per element, negative ones scaled by a slope (assumed)."""
    machine = choose_machine(site)
    code = join(machine.load(machine.weight_bytes), machine.math("compare", "mul"),
                machine.requantise(), machine.loop(_COUNTS["indexed"]))
    return _lower_elements("BroadcastPrelu4DSlow", machine, code, _COUNTS["relu"],
                           operands=("input", "weights"), assumed=True)


def _lower_logistic(site: Site) -> Lowered:
    """Lower logistic, tanh or hard swish (assumed).

    Fixed point: an exponential and a reciprocal take about 23 high multiplies; hard swish three.
    """
    machine, hard = choose_machine(site), site.op == "hard_swish"
    if not machine.is_float:
        multiply = machine.routine(_FIXED_POINT_MULTIPLY[machine.dialect])
        code = join(machine.requantise(), *[multiply] * (3 if hard else 23))
    elif hard:
        code = machine.math("add", "compare", "compare", "mul", "mul")
    else:
        code = join(machine.exponential(), machine.math("add", "div"))
    name = {"logistic": "Logistic", "tanh": "Tanh"}.get(site.op, "HardSwish")
    return _lower_elements(f"reference_ops::{name}", machine, code, _COUNTS["relu"], assumed=True)


_DOUBLES = {"thumb2": (30, 52, 20), "thumb1": (43, 297, 51), "rv32": (47, 201, 53)}
"""Integer to double, multiply, double to float: instructions, by dialect (in software even
beside a single-precision FPU)."""


def _lower_quantize(site: Site) -> Lowered:
    """Lower quantisation: floats divided, rounded and clamped; integers rescaled."""
    machine = choose_machine(site)
    code = (join(machine.math("div"), machine.routine(14), machine.math("convert"))
            if machine.is_float else machine.requantise())
    return _lower_elements("reference_ops::AffineQuantize", machine, code,
                           _COUNTS["quantize"], family="quantize")


def _lower_dequantize(site: Site) -> Lowered:
    """Lower dequantisation: the scale is a double, so each element takes three library calls."""
    machine = choose_machine(site)
    code = join(*[machine.routine(size) for size in _DOUBLES[machine.dialect]])
    return _lower_elements("reference_ops::Dequantize", machine, code,
                           _COUNTS["dequantize"], family="quantize")


def _soft_clamp(machine: Machine) -> str:
    return machine.math("compare", "compare") if machine.number == "soft" else ""


def _lower_pair(name: str, machine: Machine, code: str, counts: Table) -> Lowered:
    if machine.at.source.shape != machine.at.input(1).shape:
        code = join(code, machine.loop(_COUNTS["indexed"]))
    return _lower_elements(name, machine, code, counts, operands=("input", "input2"),
                           family="elementwise")


def _lower_elements(name: str, machine: Machine, code: str, counts: Table, *,
                    operands: tuple[str, ...] = ("input",),
                    family: str = "activation", assumed: bool = False) -> Lowered:
    """Return a loop over the elements; all but pairs read their input in the result's shape."""
    site, size = machine.at, machine.element_bytes
    output = site.output
    write = _WIDTHS.get(output.dtype, 4) if family == "quantize" else size
    known = {operand.name for operand in site.operands}
    reads = []
    for place, operand in zip(site.layer.inputs, operands, strict=False):
        shape = site.graph.tensors[place].shape if operand != "input" or (
            family == "elementwise") else output.shape
        width = machine.weight_bytes if operand == "weights" else size
        stands_in = operand == "input2" and operand not in known
        reads.append(("weights" if stands_in else operand, width, shape))
    body = join(*[machine.load(size) for operand in operands if operand != "weights"], code,
                machine.store(write), machine.loop(counts))
    return machine.kernel(name, family, _CALL, block("element", body, output.elements, 1),
                          *_drafts(output.shape, reads, write), assumed=assumed)


def _drafts(shape: Shape, reads: list[tuple[str, int, Shape]], write_bytes: int) -> tuple[Any, ...]:
    """Return reads (operand, width, shape) and the store of every output element.

    Where shapes differ, axes of extent one are read again.
    """
    if all(source == shape for _, _, source in reads):
        return (repeat("element", math.prod(shape),
                       *[load(operand, width, element=width) for operand, width, _ in reads],
                       store("output", write_bytes, element=write_bytes)),)
    rank = len(shape)
    return over_axes(
        shape, *[load(operand, width, **_steps(source, rank, width))
                 for operand, width, source in reads],
        store("output", write_bytes, **_steps(shape, rank, write_bytes)))


def _steps(source: Shape, rank: int, width_bytes: int) -> dict[str, int]:
    padded = (1,) * (rank - len(source)) + source
    return by_axis((step if extent > 1 else 0
                    for step, extent in zip(strides(padded), padded, strict=True)), width_bytes)


_CURVE: Codes = {"c": Lowering(lower=_lower_logistic)}
_RECTIFIER: Codes = {"c": Lowering(lower=_lower_relu)}

KERNELS: Kernels = {
    "add": {"c": Lowering(lower=_lower_add)},
    "dequantize": {"c": Lowering(lower=_lower_dequantize)},
    "hard_swish": _CURVE,
    "leaky_relu": _RECTIFIER,
    "logistic": _CURVE,
    "maximum": {"c": Lowering(lower=_lower_maximum)},
    "minimum": {"c": Lowering(lower=_lower_maximum)},
    "mul": {"c": Lowering(lower=_lower_mul)},
    "prelu": {"c": Lowering(lower=_lower_prelu)},
    "quantize": {"c": Lowering(lower=_lower_quantize)},
    "relu": _RECTIFIER,
    "relu6": _RECTIFIER,
    "sub": {"c": Lowering(lower=_lower_add)},
    "tanh": _CURVE,
}
