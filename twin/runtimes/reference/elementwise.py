"""Element-wise arithmetic and activations, plain C: one element at a time.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference: add.h, sub.h, mul.h,
leaky_relu.h, prelu.h, hard_swish.h, logistic.h, tanh.h; integer_ops/add.h, integer_ops/mul.h,
integer_ops/logistic.h, integer_ops/tanh.h; micro/kernels/activations_common.cc.
"""

from __future__ import annotations

from typing import Any

from hwmodels.kernel import Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.dialect import block, join
from twin.runtimes.cmsis_nn.nests import load, repeat, resolve, store
from twin.runtimes.lowering import Site
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


def lower_add(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower an addition or subtraction: int8 operands and result are rescaled.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        An `add` or `sub`.
    site : Site
        Operands: input, input2, output.
    """
    machine = choose_machine(graph, layer, site)
    code = join(*[requantise(machine)] * 3, arithmetic(machine, "add") if machine.is_float else "",
                _soft_clamp(machine))
    name = "reference_ops::Sub" if layer.op == "sub" else "reference_ops::Add"
    return (_lower_pair(name, graph, layer, site, machine, code, _ADD),)


def lower_mul(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a multiplication: an int8 product is rescaled once.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `mul`.
    site : Site
        Operands: input, input2, output.
    """
    machine = choose_machine(graph, layer, site)
    code = join(requantise(machine), arithmetic(machine, "mul") if machine.is_float else "",
                _soft_clamp(machine))
    return (_lower_pair("reference_ops::Mul", graph, layer, site, machine, code, _MULTIPLY),)


def lower_maximum(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower an element-wise maximum or minimum: indices computed as for a broadcast (assumed).

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `maximum` or `minimum`.
    site : Site
        Operands: input, input2, output.
    """
    machine = choose_machine(graph, layer, site)
    code = join(arithmetic(machine, "compare") if machine.is_float else "",
                looped(machine.dialect, machine.pick(_INDEXED)))
    shapes = [graph.tensors[place].shape for place in (*layer.inputs[:2], layer.outputs[0])]
    return (_lower_elements("MaximumMinimumBroadcastSlow", machine, site, code, _RELU, shapes[2], (
        ("input", machine.element_bytes, shapes[0]),
        ("input2", machine.element_bytes, shapes[1])), "elementwise", True),)


def lower_relu(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower relu, relu6 or leaky relu: int8 elements are rescaled, then clamped.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `relu`, `relu6` or `leaky_relu`.
    site : Site
        Operands: input, output.
    """
    machine = choose_machine(graph, layer, site)
    bounds = 2 if layer.op == "relu6" else 1
    code = (join(*[arithmetic(machine, "compare")] * bounds,
                 arithmetic(machine, "mul") if layer.op == "leaky_relu" else "")
            if machine.is_float else requantise(machine))
    name = {"relu": "ReluQuantized", "relu6": "Relu6Quantized"}.get(layer.op, "QuantizeLeakyRelu")
    return (_lower_single(name, graph, layer, site, machine, code, _RELU),)


def lower_prelu(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower prelu: broadcast indices per element, negative ones scaled by a slope (assumed).

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `prelu` with slopes per channel.
    site : Site
        Operands: input, weights, output.
    """
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


def lower_logistic(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower logistic, tanh or hard swish (assumed).

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `logistic`, `tanh` or `hard_swish`.
    site : Site
        Operands: input, output.

    Notes
    -----
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


def lower_quantize(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower quantisation: floats divided, rounded and clamped; integers rescaled.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `quantize`.
    site : Site
        Operands: input, output.
    """
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


def lower_dequantize(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower dequantisation: the scale is a double, so each element takes three library calls.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `dequantize`.
    site : Site
        Operands: input, output.
    """
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
    count = 1
    for extent in shape:
        count *= extent
    write = store_bytes or machine.element_bytes
    body = join(*[load_text(machine, width) for operand, width, _ in reads
                  if operand != "weights"], code, store_text(machine, write),
                looped(machine.dialect, machine.pick(counts)))
    names = {operand.name for operand in site.operands}
    reads = tuple((operand if operand in names else "weights" if operand == "input2" else operand,
                   width, source) for operand, width, source in reads)
    blocks = (call_block(machine, _CALL), block("element", body, count, min(1, count)))
    return make_kernel(name, family, machine, site, blocks,
                       resolve(*element_drafts(shape, reads, write)), assumed=assumed)


def element_drafts(shape: tuple[int, ...], reads: tuple[tuple[str, int, tuple[int, ...]], ...],
                   write_bytes: int) -> list[Any]:
    """Return reads and the store of every output element; broadcast axes are read again.

    Parameters
    ----------
    shape : tuple of int
        Of the output.
    reads : tuple of (operand, width in bytes, shape)
        What is read per element.
    write_bytes : int
        Of an output element.
    """
    rank = len(shape)
    axes = [f"axis{place}" for place in range(rank)]
    moves = [load(operand, width, 0, **_steps(source, rank, width))
             for operand, width, source in reads]
    moves.append(store("output", write_bytes, 0, **_steps(shape, rank, write_bytes)))
    if all(len(source) == rank and source == shape for _, _, source in reads):
        return _flat(shape, moves)
    body: list[Any] = list(moves)
    for name, extent in reversed(list(zip(axes, shape, strict=True))):
        body = [repeat(name, extent, *body)]
    return body


def _flat(shape: tuple[int, ...], moves: list[Any]) -> list[Any]:
    count = 1
    for extent in shape:
        count *= extent
    return [repeat("element", count, *[
        move._replace(steps_bytes={"element": move.width_bytes}) for move in moves])]


def _steps(source: tuple[int, ...], rank: int, width: int) -> dict[str, int]:
    padded = (1,) * (rank - len(source)) + tuple(source)
    steps: dict[str, int] = {}
    stride = width
    for place in reversed(range(rank)):
        steps[f"axis{place}"] = stride if padded[place] > 1 else 0
        stride *= padded[place]
    return steps
