"""Operators of .onnx files by family: reader and writer derive from these rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Row(NamedTuple):
    """An operator: its name in the file, ours, its family, attributes that are options.

    `written` is whether files with it are written, too, in operator set 17.
    """

    name: str
    op: str
    family: str
    attributes: Mapping[str, float]
    written: bool


def _family(family: str, ops: Mapping[str, str], *, written: bool = False,
            **attributes: float) -> Iterator[Row]:
    for name, op in ops.items():
        yield Row(name, op, family, attributes, written)


def _alike(*names: str) -> dict[str, str]:
    return {name: name.lower() for name in names}


ROWS = (
    *_family("pool", {"AveragePool": "average_pool_2d", "MaxPool": "max_pool_2d"}, written=True),
    *_family("reduction", {"ReduceMean": "mean", "ReduceMax": "reduce_max"}, written=True),
    *_family("reduction", {"ReduceMin": "reduce_min", "ReduceSum": "sum"}),
    *_family("choice", {"ArgMax": "arg_max", "ArgMin": "arg_min"}),
    *_family("pair", {**_alike("Add", "Sub", "Mul"), "Min": "minimum", "Max": "maximum"},
             written=True),
    *_family("pair", {
        **_alike("Div", "Equal", "Greater", "Less"), "Mod": "floor_mod",
        "GreaterOrEqual": "greater_equal", "LessOrEqual": "less_equal", "And": "logical_and",
        "Or": "logical_or", "Xor": "not_equal"}),
    *_family("unary", {**_alike("Tanh", "Relu"), "Sigmoid": "logistic", "HardSwish": "hard_swish"},
             written=True),
    *_family("unary", {"LeakyRelu": "leaky_relu"}, written=True, alpha=0.01),
    *_family("unary", {
        **_alike("Neg", "Abs", "Exp", "Log", "Sqrt", "Sin", "Cos", "Floor", "Ceil", "Round", "Elu",
                 "Gelu", "Erf", "Softplus", "Softsign", "Selu", "Celu", "Mish", "Reciprocal",
                 "Sign"),
        "Not": "logical_not", "CumSum": "cumsum", "HardSigmoid": "hard_sigmoid"}),
)
"""Operators of these families, by the file's name and by ours."""

RESIZES = {"nearest": "resize_nearest", "linear": "resize_bilinear"}
"""Operators by the `mode` of a Resize."""
