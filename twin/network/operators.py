"""The operators a graph is made of: what each computes, holds and moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from hwmodels.errors import ExtensionError
from hwmodels.extensions import find_entries, take
from twin.network.graph import Graph, Layer, Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One canonical operator.

    Parameters
    ----------
    name : str
        Snake case; what `Layer.op` says.
    macs : callable
        (graph, layer) -> multiply-accumulates of the formula below.
    parameters : tuple of int
        Places in `Layer.inputs` of trained constants: weights and biases.
    alias : bool
        The output is the input's bytes under another shape: nothing is computed or moved.
    assumed : bool
        No published measurement stands behind the cost of this operator.
    """

    name: str
    macs: Callable[[Graph, Layer], int]
    parameters: tuple[int, ...] = ()
    alias: bool = False
    assumed: bool = False


def layer_macs(graph: Graph, layer: Layer) -> int:
    """Multiply-accumulates of a layer.

    Parameters
    ----------
    graph : Graph
        The network.
    layer : Layer
        One of its layers.

    Returns
    -------
    int
        Multiply-accumulates; one MAC is one.

    Notes
    -----
    Convolution: output elements x kernel window x input channels / groups, padded positions
    counted. Transposed convolution: input elements x kernel window x output channels. Fully
    connected: rows x inputs x outputs. Element-wise operators, pooling and softmax count none.

    References
    ----------
    MLPerf Tiny counts its reference models this way.
    """
    return layer.repeats * OPERATORS[layer.op].macs(graph, layer)


def graph_macs(graph: Graph) -> int:
    """Multiply-accumulates of the whole network."""
    return sum(layer_macs(graph, layer) for layer in graph.layers)


def graph_parameters(graph: Graph) -> int:
    """Trained values of the network; a tensor two layers share counts once."""
    shared = {i for layer in graph.layers for i in _parameter_ids(graph, layer)}
    return sum(graph.tensors[i].elements for i in shared)


def is_alias(layer: Layer) -> bool:
    """Whether the layer only renames its input: no data is moved."""
    return OPERATORS[layer.op].alias


def is_assumed(layer: Layer) -> bool:
    """Whether no measurement stands behind this layer's cost."""
    return layer.assumed or OPERATORS[layer.op].assumed


def bytes_moved(graph: Graph, layer: Layer) -> int:
    """Return inputs, weights and outputs of a layer in bytes, each once at its stored width."""
    if is_alias(layer):
        return 0
    read = {i for i in layer.inputs if i >= 0}
    return layer.repeats * sum(graph.tensors[i].size_bytes for i in (*sorted(read), *layer.outputs))


@lru_cache(maxsize=8)
def list_work(graph: Graph) -> tuple[tuple[int, int], ...]:
    """Return multiply-accumulates and bytes moved of each layer."""
    return tuple((layer_macs(graph, layer), bytes_moved(graph, layer)) for layer in graph.layers)


def _parameter_ids(graph: Graph, layer: Layer) -> list[int]:
    places = OPERATORS[layer.op].parameters
    return [layer.inputs[place] for place in places
            if place < len(layer.inputs) and layer.inputs[place] >= 0
            and graph.tensors[layer.inputs[place]].is_constant]


def _input(graph: Graph, layer: Layer, place: int = 0) -> Tensor:
    return graph.tensors[layer.inputs[place]]


def _output(graph: Graph, layer: Layer) -> Tensor:
    return graph.tensors[layer.outputs[0]]


def _nothing(graph: Graph, layer: Layer) -> int:
    return 0


def _conv_macs(graph: Graph, layer: Layer) -> int:
    weights = _input(graph, layer, 1)
    return _output(graph, layer).elements * weights.elements // weights.shape[0]


def _depthwise_macs(graph: Graph, layer: Layer) -> int:
    weights = _input(graph, layer, 1)
    return _output(graph, layer).elements * weights.shape[1] * weights.shape[2]


def _transpose_conv_macs(graph: Graph, layer: Layer) -> int:
    weights = _input(graph, layer, 1)
    return _input(graph, layer).elements * weights.elements // weights.shape[3]


def _fully_connected_macs(graph: Graph, layer: Layer) -> int:
    return _output(graph, layer).elements * _input(graph, layer, 1).shape[-1]


def _batch_matmul_macs(graph: Graph, layer: Layer) -> int:
    left = _input(graph, layer).shape
    depth = left[-2] if layer.option("adj_x", False) else left[-1]
    return _output(graph, layer).elements * depth


def _svdf_macs(graph: Graph, layer: Layer) -> int:
    # Each of units x rank filters takes one dot product over the features of this step and one
    # over its memory of past steps.
    return _input(graph, layer, 1).elements + _input(graph, layer, 2).elements


def _recurrent_macs(graph: Graph, layer: Layer) -> int:
    steps = _input(graph, layer).elements // _input(graph, layer, 1).shape[-1]
    return steps * (_input(graph, layer, 1).elements + _input(graph, layer, 2).elements)


def _stated_macs(graph: Graph, layer: Layer) -> int:
    return int(layer.option("macs", 0))


def _operator(name: str, macs: Callable[[Graph, Layer], int] = _nothing,
              *, parameters: tuple[int, ...] = (), alias: bool = False,
              assumed: bool = False) -> Operator:
    return Operator(name=name, macs=macs, parameters=parameters, alias=alias, assumed=assumed)


UNARY = ("abs", "neg", "exp", "log", "sqrt", "rsqrt", "square", "sin", "cos", "floor", "ceil",
         "round", "elu", "gelu", "logical_not", "erf", "hard_sigmoid", "softplus", "softsign",
         "selu", "celu", "mish", "reciprocal", "sign", "clip")
"""Operators of one operand, element by element, that are rarer than the activations."""

PAIRED = ("div", "floor_div", "floor_mod", "squared_difference", "equal", "not_equal", "greater",
          "greater_equal", "less", "less_equal", "logical_and", "logical_or", "pow")
"""Operators of two operands that broadcast, besides add, sub, mul, minimum and maximum."""

class Operators(dict[str, Operator]):
    """Operators by name: the project's, and those of extensions when they are asked for."""

    def is_ours(self, name: str) -> bool:
        """Whether the project itself has the operator."""
        return super().__contains__(name)

    def __contains__(self, name: object) -> bool:
        """Whether a graph may hold the operator."""
        return super().__contains__(name) or name in find_entries("twin.operators")

    def __missing__(self, name: str) -> Operator:
        """Return the operator of an extension."""
        if name not in find_entries("twin.operators"):
            raise KeyError(name)
        found = take("twin.operators", name, "OPERATOR")
        if not isinstance(found, Operator) or found.name != name:
            raise ExtensionError(f"twin.operators: OPERATOR of {name} is no Operator of that name")
        return found


OPERATORS = Operators({operator.name: operator for operator in (
    _operator("function", _stated_macs),
    _operator("conv_2d", _conv_macs, parameters=(1, 2)),
    _operator("depthwise_conv_2d", _depthwise_macs, parameters=(1, 2)),
    _operator("transpose_conv_2d", _transpose_conv_macs, parameters=(1, 2), assumed=True),
    _operator("fully_connected", _fully_connected_macs, parameters=(1, 2)),
    _operator("batch_matmul", _batch_matmul_macs, assumed=True),
    _operator("average_pool_2d"),
    _operator("max_pool_2d"),
    *(_operator(name) for name in ("mean", "reduce_max")),
    *(_operator(name, assumed=True) for name in (
        "reduce_min", "sum", "arg_max", "arg_min")),
    _operator("add"),
    _operator("sub", assumed=True),
    _operator("mul"),
    _operator("minimum"),
    _operator("maximum"),
    _operator("concatenation"),
    *(_operator(name, assumed=True) for name in (
        "split", "slice", "pack", "unpack", "gather", "space_to_depth", "depth_to_space",
        "space_to_batch_nd", "batch_to_space_nd", "tile", "broadcast_to", "gather_nd",
        "scatter_nd", "cumsum", "top_k", "read_variable", "assign_variable",
        "non_max_suppression", "detection_postprocess")),
    _operator("pad"),
    _operator("reshape", alias=True),
    _operator("reshape_copy"),
    _operator("transpose"),
    _operator("softmax"),
    _operator("logistic"),
    _operator("relu"),
    _operator("relu6"),
    _operator("leaky_relu", assumed=True),
    _operator("prelu", parameters=(1,), assumed=True),
    _operator("hard_swish", assumed=True),
    _operator("tanh", assumed=True),
    *(_operator(name, assumed=True) for name in (*UNARY, *PAIRED)),
    _operator("select", assumed=True),
    _operator("cast", assumed=True),
    *(_operator(name, assumed=True) for name in (
        "log_softmax", "l2_normalization")),
    _operator("resize_nearest", assumed=True),
    _operator("resize_bilinear", assumed=True),
    _operator("quantize"),
    _operator("dequantize"),
    _operator("svdf", _svdf_macs, parameters=(1, 2, 3), assumed=True),
    _operator("lstm", _recurrent_macs, parameters=(1, 2, 3), assumed=True),
    _operator("gru", _recurrent_macs, parameters=(1, 2, 3), assumed=True),
    _operator("rnn", _recurrent_macs, parameters=(1, 2, 3), assumed=True),
    _operator("copy", assumed=True),
)})
"""Every operator a graph may hold.

Layouts and inputs
    Activations are NHWC. conv_2d: data, weights [out, kh, kw, in / groups], bias;
    depthwise_conv_2d: data, weights [1, kh, kw, in x multiplier], bias; transpose_conv_2d: data,
    weights [out, kh, kw, in], bias; fully_connected: data, weights [out, in], bias; prelu: data,
    slopes; svdf: data, weights_feature [units x rank, in], weights_time [units x rank, memory],
    bias, state; lstm, gru and rnn: data, weights [gates x hidden, in], recurrent weights
    [gates x hidden, hidden], bias [gates x hidden], hidden state, cell state (lstm). lstm gates
    are ordered input, forget, cell, output; gru update, reset, hidden; results are all steps or
    the last, then last states. gather_nd and scatter_nd: data, places (and what is written);
    non_max_suppression: boxes, scores; detection_postprocess: boxes, scores, anchors;
    assign_variable: value. Shapes, axes and amounts are options, never inputs.
Options
    mean, reduce_max, reduce_min, sum: axes, keep_dims; concatenation, split, softmax, arg_max,
    arg_min, pack, unpack, gather, top_k: axis (never negative); space_to_depth, depth_to_space:
    block; space_to_batch_nd: block, paddings; batch_to_space_nd: block, crops; softmax: beta;
    slice: begin, strides; pad: paddings, mode, value; transpose: perm; leaky_relu: alpha; resize_*:
    align_corners, half_pixel_centers; batch_matmul: adj_x, adj_y; svdf: rank; average_pool_2d:
    count_include_pad; clip: low, high (absent: none); depth_to_space: order (crd: channels split
    first); lstm, gru, rnn: reverse; detection_postprocess: classes, detections, regular;
    copy: of (what the file called it).
"""
