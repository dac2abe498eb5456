"""ONNX operators on quantised data, rewritten as dequantise, float operator, quantise.

So the two ways of writing an integer network become one. Quantisers of Microsoft's domain, which
16-bit and 4-bit networks use below opset 21, become the standard ones.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hwmodels.file_cache import read_yaml_once
from twin.errors import ModelError
from twin.network.readers.onnx_nodes import MICROSOFT, Node, OnnxModel

_OPERATORS: dict[str, tuple[str, tuple[int, ...], int]] = read_yaml_once(
    Path(__file__).with_name("onnx_integers.yaml"))


def split_integer_operator(model: OnnxModel, node: Node) -> list[Node]:
    """Rewrite a node on quantised data as dequantise, float operator, quantise.

    Raises
    ------
    ModelError
        When a scale is computed at run time.
    """
    short = node.op.removeprefix(f"{MICROSOFT}.")
    if short == "DynamicQuantizeLSTM":
        return _real_recurrent(model, node)
    if short in ("QuantizeLinear", "DequantizeLinear"):
        node.op = short
        return [node]
    pairs = _OPERATORS.get(short)
    if pairs is None or (node.op != short) != (short not in ("QLinearConv", "QLinearMatMul")):
        return [node]
    if node.option("channels_last"):
        return [node]
    op, data_places, result = pairs
    if short == "QLinearConcat":
        data_places, result = tuple(range(2, len(node.inputs), 3)), 0
    before, real_inputs = [], []
    for place in data_places:
        name, scale, zero = node.inputs[place:place + 3]
        real = f"{node.result}/input{place}"
        # Axis 0 is where QLinearConv keeps output channels, the last where a product does.
        axis = 0 if short == "QLinearConv" else -1
        before.append(Node(op="DequantizeLinear", name="", inputs=[name, scale, zero],
                           outputs=[real], attributes={"axis": axis}))
        real_inputs.append(real)
    bias_place = {"QLinearConv": 8, "QGemm": 6}.get(short)
    if bias_place is not None and node.input(bias_place):
        before.append(_real_bias(model, node, node.inputs[bias_place]))
        real_inputs.append(before[-1].result)
    real_output = f"{node.result}/real"
    # QLinearSoftmax states the operator set its axis is meant in, which is the file's.
    attributes = {key: value for key, value in node.attributes.items()
                  if key not in ("channels_last", "opset")}
    return [*before,
            Node(op=op, name=node.name, inputs=real_inputs, outputs=[real_output],
                 attributes=attributes),
            Node(op="QuantizeLinear", name="", inputs=[real_output, node.input(result),
                                                       node.input(result + 1)],
                 outputs=node.outputs)]


def _real_bias(model: OnnxModel, node: Node, bias: str) -> Node:
    """Dequantise an int32 bias, whose scale is input scale x weight scale by definition."""
    scales = [model.constants.get(node.inputs[place]) for place in (1, 4)]
    if scales[0] is None or scales[1] is None:
        raise ModelError(f"{model.path}: node {node.name!r} {node.op}: scales must be constants")
    name = f"{bias}/scale"
    model.constants[name] = (scales[0] * scales[1]).astype(np.float32)
    model.constants[f"{bias}/zero"] = np.zeros(model.constants[name].shape, np.int32)
    return Node(op="DequantizeLinear", name="", inputs=[bias, name, f"{bias}/zero"],
                outputs=[f"{bias}/real"], attributes={"axis": 0})


def _real_recurrent(model: OnnxModel, node: Node) -> list[Node]:
    """Rewrite a DynamicQuantizeLSTM, whose weights are stored transposed, as one on real weights.

    Raises
    ------
    ModelError
        When weights are computed at run time, or each channel has a scale.
    """
    before = []
    for place, given in ((1, 8), (2, 10)):
        name, amounts = node.inputs[place], node.inputs[given:given + 2]
        stored = model.constants.get(name)
        if stored is None or any(model.constants.get(one, stored).ndim > 1 for one in amounts):
            raise ModelError(f"{model.path}: node {node.name!r} {node.op}: weights computed at run "
                             "time or with a scale for each channel; accepted: quantize_dynamic "
                             "without per_channel, quantize_static, or float32")
        rows = model.add_constant(f"{name}/rows", stored.transpose(0, 2, 1))
        before.append(_real_weights(model, rows, amounts, 1))
    return [*before, Node(op="LSTM", name=node.name, outputs=node.outputs,
                          inputs=[node.source, *(one.result for one in before),
                                  *node.inputs[3:8]], attributes=node.attributes)]


def _real_weights(model: OnnxModel, name: str, amounts: list[str], axis: int) -> Node:
    """Dequantise weights of an operator that quantises its data at run time."""
    real = f"{name}/real"
    model.dynamic.add(real)
    return Node(op="DequantizeLinear", name="", inputs=[name, *amounts], outputs=[real],
                attributes={"axis": axis})


def join_dynamic(model: OnnxModel) -> None:
    """Make one operator on float data and integer weights of each that quantises at run time.

    Notes
    -----
    onnxruntime's quantize_dynamic writes DynamicQuantizeLinear, ConvInteger or MatMulInteger, Cast
    to float, and Mul by the product of both scales.
    """
    makers, consumers = model.makers(), model.consumers()
    made: dict[int, list[Node]] = {}
    for node in model.nodes:
        quantizer, after = makers.get(node.input(0)), consumers.get(node.result, [])
        if (quantizer is None or quantizer.op != "DynamicQuantizeLinear"
                or node.op not in ("ConvInteger", "MatMulInteger")
                or [one.op for one in after] != ["Cast"]):
            continue
        scaled = consumers.get(after[0].result, [])
        factors = [makers.get(name) for one in scaled for name in one.inputs
                   if name != after[0].result]
        if [one.op for one in scaled] != ["Mul"] or not factors or factors[0] is None:
            continue
        scale = next((name for name in factors[0].inputs if name in model.constants), None)
        if scale is None or node.inputs[1] not in model.constants:
            continue
        convolves = node.op == "ConvInteger"
        weights = _real_weights(model, node.inputs[1], [scale, *node.inputs[3:4]],
                                0 if convolves else 1)
        made[id(node)] = [weights, Node(
            op=node.op.removesuffix("Integer"), name=node.name, attributes=node.attributes,
            inputs=[quantizer.source, weights.result], outputs=scaled[0].outputs)]
        for one in (after[0], scaled[0]):
            made[id(one)] = []
    if made:
        model.nodes = _drop_unread(model, [
            one for node in model.nodes for one in made.get(id(node), [node])])


def _drop_unread(model: OnnxModel, nodes: list[Node]) -> list[Node]:
    """Leave out what nobody reads any more."""
    read, kept = set(model.outputs), []
    for node in reversed(nodes):
        if read.intersection(node.outputs):
            read.update(node.inputs)
            kept.append(node)
    return kept[::-1]


_MOVING = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose"}
"""Operators that move values without looking at them: integers, or what they stand for."""


def move_integers(model: OnnxModel) -> None:
    """Let operators that only move values move the integers, where a quantiser is on one side only.

    Notes
    -----
    Exporters that quantise layers, not values, write dequantise, reshape, product; or convolution,
    transpose, quantise. Only one scale for a whole tensor may change places with its movement.
    """
    _dequantise_later(model)
    _quantise_earlier(model)


def _dequantise_later(model: OnnxModel) -> None:
    consumers = model.consumers()
    real: dict[str, Node] = {}
    made: list[Node] = []
    for node in model.nodes:
        made.append(node)
        if (node.op == "DequantizeLinear" and node.source not in model.constants
                and model.scalar(node.inputs[1]) is not None):
            real[node.result] = node
        before = real.get(node.input(0)) if node.op in _MOVING else None
        if before is None or any(reader.op == "QuantizeLinear"
                                 for reader in consumers.get(node.result, [])):
            continue
        integers = f"{node.result}/integers"
        after = Node(op="DequantizeLinear", name="", outputs=list(node.outputs[:1]),
                     inputs=[integers, *before.inputs[1:]])
        _describe(model, integers, node.result, model.dtypes[before.source])
        node.inputs, node.outputs = [before.source, *node.inputs[1:]], [integers]
        made.append(after)
        real[after.result] = after
    model.nodes = made


def _quantise_earlier(model: OnnxModel) -> None:
    consumers, makers = model.consumers(), model.makers()
    ends: dict[str, Node] = {}
    gone: set[int] = set()
    made: list[Node] = []

    def note(node: Node) -> None:
        source = node.source
        if len(consumers.get(source, [])) == 1 and source not in model.outputs:
            ends[source] = node

    for node in reversed(model.nodes):
        made.append(node)
        if node.op == "QuantizeLinear" and model.scalar(node.inputs[1]) is not None:
            note(node)
        end = ends.pop(node.result, None) if node.op in _MOVING else None
        maker = makers.get(node.input(0))
        if end is None or maker is None or maker.op == "DequantizeLinear":
            continue
        gone.add(id(end))
        integers = f"{end.result}/integers"
        first = Node(op="QuantizeLinear", name="", inputs=[node.source, *end.inputs[1:]],
                     outputs=[integers], attributes=dict(end.attributes))
        _describe(model, integers, node.source, model.dtypes[end.result])
        node.inputs, node.outputs = [integers, *node.inputs[1:]], end.outputs[:1]
        made.append(first)
        note(first)
    model.nodes = [node for node in reversed(made) if id(node) not in gone]


def _describe(model: OnnxModel, name: str, like: str, dtype: str) -> None:
    model.shapes[name], model.dtypes[name] = model.shapes[like], dtype


def merge_quantizers(model: OnnxModel) -> None:
    """Let readers of one value share its quantiser where exporters wrote one for each."""
    renamed: dict[str, str] = {}
    known: dict[tuple[object, ...], str] = {}
    kept = []
    for node in model.nodes:
        node.inputs = [renamed.get(name, name) for name in node.inputs]
        if node.op == "QuantizeLinear" and node.result not in model.outputs:
            amounts = [model.constants.get(name) for name in node.inputs[1:3]]
            if all(values is not None for values in amounts):
                key = (node.source, node.option("axis", 1),
                       *((str(values.dtype), values.tobytes()) for values in amounts
                         if values is not None))
                if key in known:
                    renamed[node.result] = known[key]
                    continue
                known[key] = node.result
        kept.append(node)
    model.nodes = kept
