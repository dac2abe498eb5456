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

from hwmodels.kernel import Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.lowering import Codes, Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import block, join
from twin.runtimes.lowering.nests import by_axis, load, over_axes, repeat, store, strides
from twin.runtimes.reference.sequences import (
    Counts,
    Machine,
    arithmetic,
    call_block,
    choose_machine,
    exponential,
    load_text,
    looped,
    make_kernel,
    requantise,
    routine,
    store_text,
)

_Counts = dict[str, Counts]

_ADD: _Counts = {"thumb2": (8, 0, 16), "thumb1": (13, 0, 21), "rv32": (12, 0, 17),
                 "thumb2 float": (2, 0, 10), "thumb2 soft": (2, 0, 10),
                 "thumb1 soft": (3, 0, 14), "rv32 soft": (2, 0, 10)}
_MULTIPLY: _Counts = {"thumb2": (5, 0, 10), "thumb1": (7, 0, 15), "rv32": (7, 0, 11),
                      "thumb2 float": (2, 0, 10), "thumb2 soft": (2, 0, 10),
                      "thumb1 soft": (3, 0, 14), "rv32 soft": (2, 0, 10)}
_RELU: _Counts = {"thumb2": (4, 0, 9), "thumb1": (6, 0, 12), "rv32": (6, 0, 8),
                  "thumb2 float": (0, 0, 2), "thumb2 soft": (0, 0, 5), "thumb1 soft": (0, 0, 8),
                  "rv32 soft": (0, 0, 6)}
_INDEXED: _Counts = {"thumb2": (8, 3, 16), "thumb1": (11, 4, 24), "rv32": (8, 3, 18)}
"""Bookkeeping per element. Indexed: what a broadcast adds, three multidimensional indices."""

_FIXED_POINT_MULTIPLY = {"thumb2": 12, "thumb1": 58, "rv32": 13}
"""One saturating doubling high multiply of gemmlowp's fixed-point functions."""

_CALL: Counts = (8, 6, 14)


def _lower_add(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower an addition or subtraction: int8 operands and result are rescaled."""
    machine = choose_machine(graph, layer, site)
    code = join(*[requantise(machine)] * 3, arithmetic(machine, "add") if machine.is_float else "",
                _soft_clamp(machine))
    name = "reference_ops::Sub" if layer.op == "sub" else "reference_ops::Add"
    return (_lower_pair(name, graph, layer, site, machine, code, _ADD),)


def _lower_mul(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a multiplication: an int8 product is rescaled once."""
    machine = choose_machine(graph, layer, site)
    code = join(requantise(machine), arithmetic(machine, "mul") if machine.is_float else "",
                _soft_clamp(machine))
    return (_lower_pair("reference_ops::Mul", graph, layer, site, machine, code, _MULTIPLY),)


def _lower_maximum(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower an element-wise maximum or minimum: indices computed as for a broadcast (assumed)."""
    machine = choose_machine(graph, layer, site)
    code = join(arithmetic(machine, "compare") if machine.is_float else "",
                looped(machine.dialect, machine.pick(_INDEXED)))
    shapes = [graph.tensors[place].shape for place in (*layer.inputs[:2], layer.outputs[0])]
    return (_lower_elements("MaximumMinimumBroadcastSlow", machine, site, code, _RELU, shapes[2], (
        ("input", machine.element_bytes, shapes[0]),
        ("input2", machine.element_bytes, shapes[1])), "elementwise", True),)


def _lower_relu(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower relu, relu6 or leaky relu: int8 elements are rescaled, then clamped."""
    machine = choose_machine(graph, layer, site)
    bounds = 2 if layer.op == "relu6" else 1
    code = (join(*[arithmetic(machine, "compare")] * bounds,
                 arithmetic(machine, "mul") if layer.op == "leaky_relu" else "")
            if machine.is_float else requantise(machine))
    name = {"relu": "ReluQuantized", "relu6": "Relu6Quantized"}.get(layer.op, "QuantizeLeakyRelu")
    return (_lower_single(name, graph, layer, site, machine, code, _RELU),)


def _lower_prelu(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower prelu: broadcast indices per element, negative ones scaled by a slope (assumed)."""
    machine = choose_machine(graph, layer, site)
    code = join(load_text(machine, machine.weight_bytes),
                join(arithmetic(machine, "compare"), arithmetic(machine, "mul"))
                if machine.is_float else requantise(machine),
                looped(machine.dialect, machine.pick(_INDEXED)))
    shape = graph.tensors[layer.outputs[0]].shape
    slopes = graph.tensors[layer.inputs[1]].shape
    return (_lower_elements("BroadcastPrelu4DSlow", machine, site, code, _RELU, shape,
                            (("input", machine.element_bytes, shape),
                             ("weights", machine.weight_bytes, slopes)), "activation", True),)


def _lower_logistic(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower logistic, tanh or hard swish (assumed).

    Fixed point: an exponential and a reciprocal take about 23 high multiplies; hard swish three.
    """
    machine = choose_machine(graph, layer, site)
    multiply = routine(machine.dialect, _FIXED_POINT_MULTIPLY[machine.dialect])
    if layer.op == "hard_swish":
        code = (join(*[arithmetic(machine, one) for one in ("add", "compare", "compare", "mul",
                                                            "mul")])
                if machine.is_float else join(requantise(machine), *[multiply] * 3))
    elif machine.is_float:
        code = join(exponential(machine), arithmetic(machine, "add"), arithmetic(machine, "div"))
    else:
        code = join(requantise(machine), *[multiply] * 23)
    name = {"logistic": "Logistic", "tanh": "Tanh"}.get(layer.op, "HardSwish")
    return (_lower_single(f"reference_ops::{name}", graph, layer, site, machine, code, _RELU,
                          assumed=True),)


def _lower_quantize(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower quantisation: floats divided, rounded and clamped; integers rescaled."""
    machine = choose_machine(graph, layer, site)
    width = _width(graph.tensors[layer.outputs[0]].dtype)
    code = (join(arithmetic(machine, "div"), routine(machine.dialect, 14),
                 arithmetic(machine, "convert")) if machine.is_float else requantise(machine))
    return (_lower_single("reference_ops::AffineQuantize", graph, layer, site, machine, code,
                          _QUANTIZE, width, "quantize"),)


_QUANTIZE: _Counts = {"thumb2": (4, 0, 9), "thumb1": (5, 0, 12), "rv32": (4, 0, 10),
                      "thumb2 float": (0, 0, 9), "thumb2 soft": (0, 0, 8),
                      "thumb1 soft": (1, 0, 12), "rv32 soft": (0, 0, 10)}
_DEQUANTIZE: _Counts = {"thumb2": (0, 0, 5), "thumb1": (1, 0, 7), "rv32": (0, 0, 6)}
_DOUBLES = {"thumb2": (30, 52, 20), "thumb1": (43, 297, 51), "rv32": (47, 201, 53)}
"""Integer to double, multiply, double to float: instructions, by dialect (in software even
beside a single-precision FPU)."""


def _lower_dequantize(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower dequantisation: the scale is a double, so each element takes three library calls."""
    machine = choose_machine(graph, layer, site)
    code = join(*[routine(machine.dialect, size) for size in _DOUBLES[machine.dialect]])
    return (_lower_single("reference_ops::Dequantize", graph, layer, site, machine, code,
                          _DEQUANTIZE, _width(graph.tensors[layer.outputs[0]].dtype),
                          "quantize"),)


def _width(dtype: str) -> int:
    return {"int8": 1, "uint8": 1, "bool": 1, "int16": 2, "float16": 2}.get(dtype, 4)


def _soft_clamp(machine: Machine) -> str:
    return join(*[arithmetic(machine, "compare")] * 2) if machine.number == "soft" else ""


def _lower_single(name: str, graph: Graph, layer: Layer, site: Site, machine: Machine, code: str,
                  counts: _Counts, store_bytes: int = 0, family: str = "activation",
                  assumed: bool = False) -> Kernel:
    shape = graph.tensors[layer.outputs[0]].shape
    return _lower_elements(name, machine, site, code, counts, shape,
                           (("input", machine.element_bytes, shape),), family, assumed,
                           store_bytes)


def _lower_pair(name: str, graph: Graph, layer: Layer, site: Site, machine: Machine, code: str,
                counts: _Counts) -> Kernel:
    shape = graph.tensors[layer.outputs[0]].shape
    shapes = [graph.tensors[place].shape for place in layer.inputs[:2]]
    if shapes[0] != shapes[1]:
        code = join(code, looped(machine.dialect, machine.pick(_INDEXED)))
    return _lower_elements(name, machine, site, code, counts, shape, (
        ("input", machine.element_bytes, shapes[0]),
        ("input2", machine.element_bytes, shapes[1])), "elementwise")


def _lower_elements(name: str, machine: Machine, site: Site, code: str, counts: _Counts,
                    shape: tuple[int, ...], reads: tuple[tuple[str, int, tuple[int, ...]], ...],
                    family: str, assumed: bool = False, store_bytes: int = 0) -> Kernel:
    count = math.prod(shape)
    write = store_bytes or machine.element_bytes
    body = join(*[load_text(machine, width) for operand, width, _ in reads
                  if operand != "weights"], code, store_text(machine, write),
                looped(machine.dialect, machine.pick(counts)))
    names = {operand.name for operand in site.operands}
    reads = tuple((operand if operand in names else "weights" if operand == "input2" else operand,
                   width, source) for operand, width, source in reads)
    return make_kernel(name, family, machine, site, call_block(machine, _CALL),
                       block("element", body, count, 1), *_drafts(shape, reads, write),
                       assumed=assumed)


def _drafts(shape: tuple[int, ...], reads: tuple[tuple[str, int, tuple[int, ...]], ...],
            write_bytes: int) -> tuple[Any, ...]:
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


def _steps(source: tuple[int, ...], rank: int, width_bytes: int) -> dict[str, int]:
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
