"""The operators a graph is made of: what each computes, holds and moves.

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
    read_variable: state, what fills it first; assign_variable: value. Shapes, axes and amounts
    are options, never inputs.
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

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any

from hwmodels.errors import ExtensionError
from hwmodels.extensions import find_entries, take
from hwmodels.file_cache import read_yaml_once
from hwmodels.frozen import frozen
from hwmodels.quantities import Ends
from twin.network.graph import Graph, Layer, TensorIds


class Form(Enum):
    """How what an operator writes follows from what it reads.

    Notes
    -----
    WINDOW: of what a window sees that slides over rows and columns; PRODUCT: each row times a
    matrix; ELEMENTWISE: each element of one operand by itself; BROADCAST: elements of several
    operands, which broadcast; ROWS: each row as a whole, the shape stays; REDUCE: without the axes
    of the option `axes`; RESIZE: rows and columns repeated, omitted or interpolated; JOIN:
    operands side by side along the option `axis`; CUT: a part of the operand, or several; PAD: the
    operand with a border; PERMUTE: axes in the order of the option `perm`; RESHAPE: the same
    elements in the same order; COPY: an operator nobody knows, taken for a copy; RECURRENT: steps
    in sequence with a state between them; OTHER: rewrites leave such layers alone.
    """

    (WINDOW, PRODUCT, ELEMENTWISE, BROADCAST, ROWS, REDUCE, RESIZE, JOIN, CUT, PAD, PERMUTE,
     RESHAPE, COPY, RECURRENT, OTHER) = range(15)


@frozen
class Operator:
    """One canonical operator: all the project asks of it without its name.

    Parameters
    ----------
    name
        Snake case; what `Layer.op` says.
    macs
        (graph, layer) -> multiply-accumulates of the formula below.
    form
        How its output follows from its inputs: shapes, channels and patches go by it.
    parameters
        Places in `Layer.inputs` of trained constants: weights and biases.
    states
        Places in `Layer.inputs` of what is kept between inferences.
    operands
        What kernels call the inputs; empty: input, input2, ...
    filters
        Axis of the weights along which its filters lie; 0: each reads all channels, else its own.
    roles
        Roles of an accelerator's units that compute it, the one that fits best first.
    fuses_clamp
        Whether kernels of libraries clamp what it writes (`Layer.activation`).
    clamps
        Whether it is such a clamp, from zero on.
    takes_largest
        Whether an output is the largest of what it reads, so the lowest value there is never shows.
    keeps_scale
        Whether its output has the quantisation of its input.
    span : (float, float) or None
        Range its 8-bit output is quantised to, where libraries demand one.
    converts
        Whether it changes the numbers' type or scale, and nothing else.
    alias
        The output is the input's bytes under another shape: nothing is computed or moved.
    assumed
        No published measurement stands behind the cost of this operator.
    tflm_only
        Only TFLite Micro has a kernel for it.
    code_of
        Runtime whose compiler wrote it: code for an accelerator, which no other runs.
    short
        Its name where a terminal is narrow; "": the name.
    words
        Parts of the names of functions that compute it, by spaces, in small letters; "": the name.
    """

    name: str
    macs: Callable[[Graph, Layer], int]
    form: Form = Form.OTHER
    parameters: TensorIds = ()
    states: TensorIds = ()
    operands: tuple[str, ...] = ()
    filters: int | None = None
    roles: tuple[str, ...] = ()
    fuses_clamp: bool = False
    clamps: bool = False
    takes_largest: bool = False
    keeps_scale: bool = False
    span: Ends | None = None
    converts: bool = False
    alias: bool = False
    assumed: bool = False
    tflm_only: bool = False
    code_of: str = ""
    short: str = ""
    plural: str = ""
    words: str = ""

    @property
    def is_convolution(self) -> bool:
        """Whether filters slide over an image, dense or by channel."""
        return self.form is Form.WINDOW and self.filters is not None

    @property
    def is_depthwise(self) -> bool:
        """Whether each filter reads a channel of its own."""
        return bool(self.filters)

    @property
    def is_pool(self) -> bool:
        """Whether a window slides that has no weights."""
        return self.form is Form.WINDOW and self.filters is None

    @property
    def sums_products(self) -> bool:
        """Whether each output is a sum over weights (a transposed convolution scatters instead)."""
        return self.filters is not None and self.form is not Form.OTHER


def list_form(*forms: Form) -> tuple[str, ...]:
    """Return the project's operators of some forms."""
    return tuple(name for name, operator in OPERATORS.items() if operator.form in forms)


def layer_macs(graph: Graph, layer: Layer) -> int:
    """Multiply-accumulates of a layer; one MAC is one.

    Notes
    -----
    Convolution: output elements x kernel window x input channels / groups, padded positions
    counted. Transposed convolution: input elements x kernel window x output channels. Fully
    connected: rows x inputs x outputs. Element-wise operators, pooling and softmax count none.

    References
    ----------
    MLPerf Tiny counts its reference models this way.
    """
    return layer.repeats * traits(layer).macs(graph, layer)


def graph_macs(graph: Graph) -> int:
    """Multiply-accumulates of the whole network."""
    return sum(layer_macs(graph, layer) for layer in graph.layers)


def graph_parameters(graph: Graph) -> int:
    """Trained values of the network; a tensor two layers share counts once."""
    shared = {i for layer in graph.layers for i in _parameter_ids(graph, layer)}
    return sum(graph.tensors[i].elements for i in shared)


def parameter_bytes(graph: Graph, layers: Iterable[Layer]) -> int:
    """Return the bytes of the constants layers read, as often as they read them."""
    return sum(tensor.size_bytes for layer in layers for tensor in graph.layer_inputs(layer)
               if tensor is not None and tensor.is_constant)


def name_precision(graph: Graph) -> str:
    """Return the type of the weights, as "int8"; "mixed" when they differ, "none" without any."""
    types = {tensor.dtype for layer in graph.layers for tensor in graph.layer_inputs(layer)[1:2]
             if tensor is not None and tensor.is_constant and len(tensor.shape) > 1}
    return types.pop() if len(types) == 1 else "mixed" if types else "none"


@lru_cache(maxsize=8)
def list_states(graph: Graph) -> TensorIds:
    """Return the tensors a recurrent layer reads and rewrites from one inference to the next.

    Notes
    -----
    Read by a layer, yet neither constant, nor an input, nor written by any layer.
    """
    filled = {i for layer in graph.layers for i in layer.outputs} | set(graph.inputs)
    read = dict.fromkeys(
        layer.inputs[place] for layer in graph.layers if layer.op in OPERATORS
        for place in traits(layer).states if place < len(layer.inputs))
    return tuple(i for i in read if 0 <= i < len(graph.tensors) and i not in filled
                 and not graph.tensors[i].is_constant)


def traits(layer: Layer) -> Operator:
    """Return the row of a layer's operator."""
    return OPERATORS[layer.op]


def follow_aliases(graph: Graph) -> dict[int, int]:
    """Return the tensor each one that only renames another's data is, by the second name."""
    found: dict[int, int] = {}
    for layer in filter(is_alias, graph.layers):
        found[layer.target_id] = found.get(layer.source_id, layer.source_id)
    return found


def is_alias(layer: Layer) -> bool:
    """Whether the layer only renames its input: no data is moved."""
    return traits(layer).alias


def is_assumed(layer: Layer) -> bool:
    """Whether no measurement stands behind this layer's cost."""
    return layer.assumed or traits(layer).assumed


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
    places = traits(layer).parameters
    return [layer.inputs[place] for place in places
            if place < len(layer.inputs) and layer.inputs[place] >= 0
            and graph.input(layer, place).is_constant]


def _nothing(graph: Graph, layer: Layer) -> int:
    return 0


def _filter_macs(graph: Graph, layer: Layer) -> int:
    weights = graph.input(layer, 1)
    filters = weights.shape[traits(layer).filters or 0]
    return graph.output(layer).elements * weights.elements // filters


def _transpose_conv_macs(graph: Graph, layer: Layer) -> int:
    weights = graph.input(layer, 1)
    return graph.input(layer).elements * weights.elements // weights.shape[3]


def _batch_matmul_macs(graph: Graph, layer: Layer) -> int:
    left = graph.input(layer).shape
    depth = left[-2] if layer.option("adj_x", False) else left[-1]
    return graph.output(layer).elements * depth


def _svdf_macs(graph: Graph, layer: Layer) -> int:
    # Each of units x rank filters takes one dot product over the features of this step and one
    # over its memory of past steps.
    return graph.input(layer, 1).elements + graph.input(layer, 2).elements


def _recurrent_macs(graph: Graph, layer: Layer) -> int:
    steps = graph.input(layer).elements // graph.input(layer, 1).channels
    return steps * (graph.input(layer, 1).elements + graph.input(layer, 2).elements)


def _stated_macs(graph: Graph, layer: Layer) -> int:
    return int(layer.option("macs", 0))


ADD, MUL, PAD, SLICE, CONCATENATION = "add", "mul", "pad", "slice", "concatenation"
TRANSPOSE = "transpose"
RESHAPE, RESHAPE_COPY, COPY, FUNCTION = "reshape", "reshape_copy", "copy", "function"
"""Operators that rewrites put into a graph, or take out of it."""


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


_MACS: Mapping[str, Callable[[Graph, Layer], int]] = {
    "nothing": _nothing, "stated": _stated_macs, "filter": _filter_macs,
    "transpose_conv": _transpose_conv_macs, "batch_matmul": _batch_matmul_macs,
    "svdf": _svdf_macs, "recurrent": _recurrent_macs}


def _read_operator(name: str, *, macs: str = "nothing", form: str = "other",
                   **traits: Any) -> Operator:
    values: dict[str, Any] = {trait: tuple(value) if isinstance(value, list) else value
                              for trait, value in traits.items()}
    return Operator(name=name, macs=_MACS[macs], form=Form[form.upper()], **values)


OPERATORS = Operators({
    name: _read_operator(name, **row)
    for name, row in read_yaml_once(Path(__file__).with_name("operators.yaml")).items()})
"""Every operator a graph may hold."""

CLAMPS = tuple(name for name, operator in OPERATORS.items() if operator.clamps)
"""Operators that kernels of the layer before do, as its `activation`."""

ACTIVATION_BOUNDS = {"relu": (0.0, math.inf), "relu6": (0.0, 6.0), "relu_n1_to_1": (-1.0, 1.0)}
"""Real numbers a fused activation (`Layer.activation`) lets through, of those that clamp."""
