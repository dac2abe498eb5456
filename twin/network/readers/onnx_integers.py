"""ONNX operators on quantised data, rewritten as dequantise, float operator, quantise.

So the two ways of writing an integer network become one. Quantisers of Microsoft's domain, which
16-bit and 4-bit networks use below opset 21, become the standard ones.
"""

from __future__ import annotations

import numpy as np

from twin.errors import ModelError
from twin.network.readers.onnx_nodes import MICROSOFT, Node, OnnxModel

_OPERATORS: dict[str, tuple[str, tuple[int, ...], int]] = {
    # float operator, places of (data, scale, zero point), place of the result's scale
    "QLinearConv": ("Conv", (0, 3), 6), "QLinearMatMul": ("MatMul", (0, 3), 6),
    "QGemm": ("Gemm", (0, 3), 7), "QLinearAdd": ("Add", (0, 3), 6),
    "QLinearMul": ("Mul", (0, 3), 6), "QLinearSigmoid": ("Sigmoid", (0,), 3),
    "QLinearLeakyRelu": ("LeakyRelu", (0,), 3), "QLinearSoftmax": ("Softmax", (0,), 3),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", (0,), 3),
    "QLinearAveragePool": ("AveragePool", (0,), 3), "QLinearConcat": ("Concat", (), 0),
}


def split_integer_operator(model: OnnxModel, node: Node) -> list[Node]:
    """Rewrite a node on quantised data as dequantise, float operator, quantise.

    Raises
    ------
    ModelError
        When a scale is computed at run time.
    """
    short = node.op.removeprefix(f"{MICROSOFT}.")
    if short in ("QuantizeLinear", "DequantizeLinear"):
        node.op = short
        return [node]
    pairs = _OPERATORS.get(short)
    if pairs is None or (node.op != short) != (short not in ("QLinearConv", "QLinearMatMul")):
        return [node]
    if node.attributes.get("channels_last"):
        return [node]
    op, data_places, result = pairs
    if short == "QLinearConcat":
        data_places, result = tuple(range(2, len(node.inputs), 3)), 0
    before, real_inputs = [], []
    for place in data_places:
        name, scale, zero = node.inputs[place:place + 3]
        real = f"{node.outputs[0]}/input{place}"
        # Axis 0 is where QLinearConv keeps output channels, the last where a product does.
        axis = 0 if short == "QLinearConv" else -1
        before.append(Node(op="DequantizeLinear", name="", inputs=[name, scale, zero],
                           outputs=[real], attributes={"axis": axis}))
        real_inputs.append(real)
    bias_place = {"QLinearConv": 8, "QGemm": 6}.get(short)
    if bias_place is not None and node.input(bias_place):
        before.append(_real_bias(model, node, node.inputs[bias_place]))
        real_inputs.append(before[-1].outputs[0])
    real_output = f"{node.outputs[0]}/real"
    attributes = {key: value for key, value in node.attributes.items() if key != "channels_last"}
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


def merge_quantizers(model: OnnxModel) -> None:
    """Let readers of one value share its quantiser where exporters wrote one for each."""
    renamed: dict[str, str] = {}
    known: dict[tuple[object, ...], str] = {}
    kept = []
    for node in model.nodes:
        node.inputs = [renamed.get(name, name) for name in node.inputs]
        if node.op == "QuantizeLinear" and node.outputs[0] not in model.outputs:
            amounts = [model.constants.get(name) for name in node.inputs[1:3]]
            if all(values is not None for values in amounts):
                key = (node.inputs[0], node.attributes.get("axis", 1),
                       *((str(values.dtype), values.tobytes()) for values in amounts
                         if values is not None))
                if key in known:
                    renamed[node.outputs[0]] = known[key]
                    continue
                known[key] = node.outputs[0]
        kept.append(node)
    model.nodes = kept
