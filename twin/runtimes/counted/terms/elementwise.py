"""One result per element: of one operand, of two that broadcast, of three.

References
----------
tensorflow/tflite-micro, tensorflow/lite/micro/kernels and tensorflow/lite/kernels/internal:
elementwise.cc, add.h, mul.h, sub.h, div.h, maximum_minimum.h, comparisons.h, squared_difference.cc.
"""

from __future__ import annotations

import math

from twin.network.graph import Graph, Layer
from twin.runtimes.counted.work import Terms, Work


def describe_unary(graph: Graph, layer: Layer) -> Work:
    """Return the work of one result per element of one operand."""
    source, target = graph.tensors[layer.inputs[0]], graph.tensors[layer.outputs[0]]
    types = source.dtype if source.dtype == target.dtype else f"{source.dtype} {target.dtype}"
    return Work(variant=types, terms={"call": 1, "element": target.elements})


def describe_paired(graph: Graph, layer: Layer) -> Work:
    """Return the work of one result per element of two operands that may broadcast."""
    first, second = (graph.tensors[place] for place in layer.inputs[:2])
    target = graph.tensors[layer.outputs[0]]
    if first.shape == second.shape:
        return Work(variant=f"{first.dtype} same", terms={
            "call": 1, "dimension": len(target.shape), "element": target.elements,
            "rest": target.elements % 4})
    narrow = min(first, second, key=lambda tensor: tensor.elements)
    last = narrow.shape[-1] if narrow.shape else 1
    if narrow.elements == 1:
        return Work(variant=f"{first.dtype} scalar", terms={"call": 1, "element": target.elements})
    rows = math.prod(target.shape[:-1])
    path = "row" if last == target.shape[-1] else "column"
    return Work(variant=f"{first.dtype} {path}",
                terms={"call": 1, "row": rows, "element": target.elements})


def describe_selection(graph: Graph, layer: Layer) -> Work:
    """Return the work of choosing between two operands, element by element."""
    first, target = graph.tensors[layer.inputs[1]], graph.tensors[layer.outputs[0]]
    shapes = {graph.tensors[place].shape for place in layer.inputs[:3]}
    return Work(variant=f"{first.dtype} {'same' if len(shapes) == 1 else 'broadcast'}", terms={
        "call": 1, "element": target.elements})


UNARY = ("abs", "neg", "exp", "log", "sqrt", "rsqrt", "square", "sin", "cos", "floor", "ceil",
         "round", "elu", "gelu", "logical_not", "relu", "relu6", "leaky_relu", "logistic", "tanh",
         "hard_swish", "cast", "quantize", "dequantize", "erf", "hard_sigmoid", "softplus",
         "softsign", "selu", "celu", "mish", "reciprocal", "sign", "clip", "cumsum", "pow")
PAIRED = ("add", "sub", "mul", "div", "minimum", "maximum", "squared_difference", "floor_div",
          "floor_mod", "equal", "not_equal", "greater", "greater_equal", "less", "less_equal",
          "logical_and", "logical_or", "prelu")

FAMILY = "elementwise"

TERMS: Terms = {**dict.fromkeys(UNARY, describe_unary), **dict.fromkeys(PAIRED, describe_paired),
                "select": describe_selection}
