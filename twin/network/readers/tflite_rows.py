"""Operators of .tflite files by fields and constants: reader and writer derive from these rows.

What needs more than a row (windows, slices, paddings, splits, softmax) stands in `tflite_operators`
of readers and of writers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, NamedTuple

from hwmodels.frozen import frozen
from twin.errors import ModelError
from twin.network.graph import GraphLayer, Layer, Options, Shape
from twin.network.operators import OPERATORS, Form, list_form
from twin.network.readers.refusal import UnsupportedError
from twin.network.readers.tflite_nodes import ACTIVATIONS, Converter, Node, data_all, data_first

Derive = Callable[[GraphLayer], Any]
ACTIVATION_NUMBERS = {name: number for number, name in ACTIVATIONS.items()}


class Field(NamedTuple):
    """A field of an options table: its name in the schema, the layer's option, how it is read."""

    name: str
    option: str
    read: Callable[[Node, Any], Any] = lambda node, value: value
    missing: Any = None


class Constant(NamedTuple):
    """What the second input holds: its name, the values to write, and what it says when read."""

    name: str
    values: Derive
    read: Callable[[Node], Any] | None = None


@frozen
class Row:
    """An operator of the file as a layer, and back.

    Parameters
    ----------
    builtin, op
        Its name in the schema, and ours.
    table
        Of its options.
    fields
        Of the table, both ways.
    refused
        Fields that must be zero, and what they are where they are not.
    constant
        Of a second input, which the layer does not keep.
    derived
        step -> further fields to write.
    """

    builtin: str
    op: str
    table: str | None = None
    fields: tuple[Field, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    constant: Constant | None = None
    derived: Callable[[GraphLayer], Options] = lambda step: {}

    def read(self, node: Node) -> Layer:
        """Return the layer of a node."""
        text: Options = {}
        if self.constant is not None and self.constant.read is not None:
            text[self.constant.name] = self.constant.read(node)
        if self.table is not None and (self.fields or self.refused):
            options = node.options(self.table)
            for name, reason in self.refused.items():
                if _get(options, name):
                    raise UnsupportedError(reason)
            text |= {one.option: one.read(node, _get(options, one.name)) for one in self.fields}
        return node.layer(self.op, node.inputs if self.constant is None else node.inputs[:1],
                          **text)

    def options(self, step: GraphLayer) -> Options:
        """Return the fields to write for a layer."""
        return {one.name: ACTIVATION_NUMBERS[step.layer.activation] if one is ACTIVATION
                else step.option(one.option, one.missing) for one in self.fields
                } | self.derived(step)


def _get(options: Any, name: str) -> Any:
    return getattr(options, "".join(part.capitalize() for part in name.split("_")))()


def _rank(node: Node) -> int:
    return len(node.shape(0))


def _flag(name: str) -> Field:
    return Field(name, name, lambda node, value: bool(value), False)


def _made(step: GraphLayer) -> Shape:
    return step.shape


def _times(step: GraphLayer) -> list[int]:
    return [size // before for size, before in zip(step.shape, step.source.shape, strict=True)]


def refuse_to_write(step: GraphLayer, why: str) -> ModelError:
    """Return the error that names a layer and goes on with a reason."""
    layer = step.layer
    return ModelError(f"{step.graph.name}: layer {layer.index} {layer.op} {layer.name!r}{why}")


def _check_order(step: GraphLayer) -> Options:
    if step.option("order", "dcr") != "dcr":
        raise refuse_to_write(step, ": .tflite splits blocks before channels")
    return {}


ACTIVATION = Field("fused_activation_function", "activation", Node.activation)
_AXIS = Field("axis", "axis", lambda node, value: node.axis(value, _rank(node)))
_PACKED = Field("axis", "axis", lambda node, value: node.axis(value, _rank(node) + 1))
_AXES = Constant("axes", lambda step: step.option("axes"),
                 lambda node: tuple(sorted(set(node.axes(1, _rank(node))))))
_CHOSEN = Constant("axis", lambda step: step.option("axis"),
                   lambda node: node.axes(1, _rank(node))[0])
_PERM = Constant("perm", lambda step: step.option("perm"), lambda node: node.axes(1, _rank(node)))
_SIZE = Constant("size", lambda step: step.shape[1:3])
_BLOCK = Field("block_size", "block")

PLAIN: Mapping[str, str | None] = {
    **dict.fromkeys((
        "relu", "relu6", "tanh", "logistic", "prelu", "abs", "neg", "exp", "log", "sqrt", "rsqrt",
        "square", "sin", "cos", "floor", "ceil", "round", "elu", "gelu", "logical_not",
        "floor_div", "floor_mod", "squared_difference", "equal", "not_equal", "greater",
        "greater_equal", "less", "less_equal", "logical_and", "logical_or", "pow", "sign",
        "log_softmax", "cast")),
    **dict.fromkeys(("minimum", "maximum"), "MaximumMinimumOptions"),
    "hard_swish": "HardSwishOptions", "quantize": "QuantizeOptions",
    "dequantize": "DequantizeOptions",
}
"""Operators a file has under the same name in capitals, and the empty options it has of them."""

ROWS = (
    *(Row(builtin=op.upper(), op=op, table=table) for op, table in PLAIN.items()),
    *(Row(builtin=op.upper(), op=op, table=f"{op.capitalize()}Options", fields=(ACTIVATION,))
      for op in ("add", "sub", "mul")),
    Row(builtin="DIV", op="div", table="DivOptions", derived=lambda step: {
        ACTIVATION.name: ACTIVATION_NUMBERS[step.layer.activation]}),
    Row(builtin="SELECT_V2", op="select"),
    Row(builtin="FULLY_CONNECTED", op="fully_connected", table="FullyConnectedOptions",
        fields=(ACTIVATION,), refused={"weights_format": "shuffled weights"},
        derived=lambda step: {"keep_num_dims": len(step.shape) > 2}),
    Row(builtin="BATCH_MATMUL", op="batch_matmul", table="BatchMatMulOptions",
        fields=(_flag("adj_x"), _flag("adj_y"))),
    *(Row(builtin=op.upper(), op=op, table="ReducerOptions", constant=_AXES,
          fields=(_flag("keep_dims"),)) for op in list_form(Form.REDUCE)),
    Row(builtin="CONCATENATION", op="concatenation", table="ConcatenationOptions",
        fields=(_AXIS, ACTIVATION)),
    Row(builtin="RESHAPE", op="reshape", table="ReshapeOptions", constant=Constant("shape", _made),
        derived=lambda step: {"new_shape": step.shape}),
    Row(builtin="TRANSPOSE", op="transpose", table="TransposeOptions", constant=_PERM),
    Row(builtin="LEAKY_RELU", op="leaky_relu", table="LeakyReluOptions",
        fields=(Field("alpha", "alpha"),)),
    *(Row(builtin=builtin, op=op, table=table, constant=_SIZE,
          fields=(_flag("align_corners"), _flag("half_pixel_centers"))) for builtin, op, table in (
        ("RESIZE_NEAREST_NEIGHBOR", "resize_nearest", "ResizeNearestNeighborOptions"),
        ("RESIZE_BILINEAR", "resize_bilinear", "ResizeBilinearOptions"))),
    *(Row(builtin=op.upper(), op=op, table=table, constant=_CHOSEN, derived=lambda step: {
        "output_type": 4 if step.output.dtype == "int64" else 2})
      for op, table in (("arg_max", "ArgMaxOptions"), ("arg_min", "ArgMinOptions"))),
    Row(builtin="PACK", op="pack", table="PackOptions", fields=(_PACKED,),
        derived=lambda step: {"values_count": len(step.layer.inputs)}),
    Row(builtin="UNPACK", op="unpack", table="UnpackOptions", fields=(_AXIS,),
        derived=lambda step: {"num": len(step.layer.outputs)}),
    Row(builtin="GATHER", op="gather", table="GatherOptions", fields=(_AXIS,),
        refused={"batch_dims": "batch dimensions"}),
    Row(builtin="SPACE_TO_DEPTH", op="space_to_depth", table="SpaceToDepthOptions",
        fields=(_BLOCK,), derived=_check_order),
    Row(builtin="DEPTH_TO_SPACE", op="depth_to_space", table="DepthToSpaceOptions",
        fields=(_BLOCK,), derived=_check_order),
    Row(builtin="TILE", op="tile", table="TileOptions", constant=Constant("times", _times)),
    Row(builtin="BROADCAST_TO", op="broadcast_to", table="BroadcastToOptions",
        constant=Constant("shape", _made)),
    Row(builtin="SVDF", op="svdf", table="SVDFOptions", fields=(Field("rank", "rank"), ACTIVATION)),
)
"""Both ways, by the file's name and by ours."""

_WHOLE = ("fully_connected", "batch_matmul", "concatenation", "pack", "gather", "svdf")


def list_converters() -> dict[str, Converter]:
    """Return how each row is read; all inputs are data of what broadcasts, and of few others."""
    return {row.builtin: (data_all if row.op in _WHOLE or (
        OPERATORS[row.op].form is Form.BROADCAST) else data_first)(row.read) for row in ROWS}
