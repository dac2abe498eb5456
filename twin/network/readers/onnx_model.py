"""An .onnx file made ready to convert: checked, folded, with every shape known.

Operators on quantised data (QLinearConv ...) are rewritten as dequantise, float operator,
quantise, so that the two ways of writing an int8 network become one.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hwmodels.errors import extra_missing
from twin.errors import ModelError
from twin.network.readers.model_file import read_bytes

DTYPES = {1: "float32", 2: "uint8", 3: "int8", 5: "int16", 6: "int32", 7: "int64", 9: "bool",
          10: "float16", 11: "float64", 12: "uint32", 22: "int4"}
"""TensorProto.DataType by number."""

MICROSOFT = "com.microsoft"
_FOLDING_ROUNDS = 8
_NEVER_FOLDED = {"DequantizeLinear", "If", "Loop", "Scan"}


@dataclass(slots=True)
class Node:
    """An operator of the file.

    Parameters
    ----------
    op : str
        Type, with its domain in front unless it is the standard one.
    name : str
        As the file names it, may be empty.
    inputs, outputs : list of str
        Value names; "" is absent.
    attributes : dict
        Plain Python values.
    """

    op: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)
    proto: Any = None

    def input(self, place: int) -> str:
        """Return the name of an input, "" when absent."""
        return self.inputs[place] if place < len(self.inputs) else ""


@dataclass(slots=True)
class OnnxModel:
    """A prepared file: nodes in execution order and what is known of every value."""

    path: str
    content: bytes
    opset: int
    nodes: list[Node]
    constants: dict[str, np.ndarray]
    shapes: dict[str, tuple[int, ...]]
    dtypes: dict[str, str]
    inputs: list[str]
    outputs: list[str]

    def consumers(self) -> Mapping[str, list[Node]]:
        """Nodes that read each value."""
        readers: dict[str, list[Node]] = defaultdict(list)
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                if name:
                    readers[name].append(node)
        return readers


def load_onnx(path: str) -> OnnxModel:
    """Read and prepare an .onnx file.

    Parameters
    ----------
    path : str
        Of the file.

    Returns
    -------
    OnnxModel
        With constants folded and static shapes.

    Raises
    ------
    ModelError
        When it is malformed, or a shape is not static with batch 1.
    ToolMissingError
        Without the `onnx` extra.
    """
    try:
        import onnx
    except ImportError:
        raise extra_missing(".onnx files", "the package onnx", "onnx") from None
    content = read_bytes(path)
    try:
        proto = onnx.load_model_from_string(content)
        if not proto.graph.node:
            raise ModelError(f"{path}: no operators; is it an ONNX file?")
        onnx.checker.check_model(proto)
        model = _prepare(path, content, proto)
    except ModelError:
        raise
    except Exception as error:
        # protobuf, the checker and shape inference each raise their own kinds.
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise ModelError(f"{path}: malformed: {reason}") from None
    return model


def _prepare(path: str, content: bytes, proto: Any) -> OnnxModel:
    import onnx

    if any(tensor.data_location == onnx.TensorProto.EXTERNAL
           for tensor in proto.graph.initializer):
        raise ModelError(f"{path}: weights are in a second file; save with "
                         "onnx.save(..., save_as_external_data=False)")
    opsets = {entry.domain: entry.version for entry in proto.opset_import}
    constants = {tensor.name: onnx.numpy_helper.to_array(tensor)
                 for tensor in proto.graph.initializer}
    inputs = [value.name for value in proto.graph.input if value.name not in constants]
    _check_inputs(path, proto, set(inputs))
    model = OnnxModel(path=path, content=content, opset=opsets.get("", opsets.get("ai.onnx", 1)),
                      nodes=[_node(entry) for entry in proto.graph.node], constants=constants,
                      shapes={}, dtypes={}, inputs=inputs,
                      outputs=[value.name for value in proto.graph.output])
    model.nodes = list(itertools.chain.from_iterable(
        _without_integer_operator(model, node) for node in model.nodes))
    _drop_identities(model)
    for _ in range(_FOLDING_ROUNDS):
        _infer(model, proto)
        if not _fold(model):
            break
    return model


def _node(entry: Any) -> Node:
    import onnx

    attributes = {}
    for attribute in entry.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            value = value.decode(errors="replace")
        attributes[attribute.name] = value
    op = entry.op_type if entry.domain in ("", "ai.onnx") else f"{entry.domain}.{entry.op_type}"
    return Node(op=op, name=entry.name, inputs=list(entry.input), outputs=list(entry.output),
                attributes=attributes, proto=entry)


def _check_inputs(path: str, proto: Any, names: set[str]) -> None:
    recurrent = {name for node in proto.graph.node if node.op_type in ("LSTM", "GRU")
                 for name in node.input}
    for value in proto.graph.input:
        if value.name not in names:
            continue
        if not value.type.tensor_type.HasField("shape"):
            raise ModelError(f"{path}: input {value.name!r} has no shape; export it with one")
        dimensions = value.type.tensor_type.shape.dim
        shape = [dim.dim_value if dim.HasField("dim_value") else (dim.dim_param or "?")
                 for dim in dimensions]
        if any(not isinstance(size, int) or size < 1 for size in shape):
            raise ModelError(
                f"{path}: input {value.name!r} has dynamic shape {shape}; fix every dimension, "
                "with onnx.tools.update_model_dims or by exporting without dynamic axes")
        # Recurrent operators put time first and batch second.
        batch = shape[1] if value.name in recurrent and len(shape) == 3 else shape[:1] or [1]
        if len(shape) > 1 and batch not in (1, [1]):
            raise ModelError(f"{path}: input {value.name!r} has batch {shape[0]}; export the "
                             "model with batch 1")


def _constant(model: OnnxModel, name: str) -> np.ndarray | None:
    return model.constants.get(name)


def _without_integer_operator(model: OnnxModel, node: Node) -> list[Node]:
    """Rewrite a node on quantised data as dequantise, float operator, quantise."""
    short = node.op.removeprefix(f"{MICROSOFT}.")
    pairs = _INTEGER_OPERATORS.get(short)
    if pairs is None or (node.op != short) != (short not in ("QLinearConv", "QLinearMatMul")):
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
    if node.attributes.get("channels_last"):
        return [node]
    return [*before,
            Node(op=op, name=node.name, inputs=real_inputs, outputs=[real_output],
                 attributes=attributes),
            Node(op="QuantizeLinear", name="", inputs=[real_output, node.input(result),
                                                       node.input(result + 1)],
                 outputs=node.outputs)]


_INTEGER_OPERATORS: dict[str, tuple[str, tuple[int, ...], int]] = {
    # float operator, places of (data, scale, zero point), place of the result's scale
    "QLinearConv": ("Conv", (0, 3), 6), "QLinearMatMul": ("MatMul", (0, 3), 6),
    "QGemm": ("Gemm", (0, 3), 7), "QLinearAdd": ("Add", (0, 3), 6),
    "QLinearMul": ("Mul", (0, 3), 6), "QLinearSigmoid": ("Sigmoid", (0,), 3),
    "QLinearLeakyRelu": ("LeakyRelu", (0,), 3), "QLinearSoftmax": ("Softmax", (0,), 3),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", (0,), 3),
    "QLinearAveragePool": ("AveragePool", (0,), 3), "QLinearConcat": ("Concat", (), 0),
}


def _real_bias(model: OnnxModel, node: Node, bias: str) -> Node:
    """Dequantise an int32 bias, whose scale is input scale x weight scale by definition."""
    scales = [_constant(model, node.inputs[place]) for place in (1, 4)]
    if scales[0] is None or scales[1] is None:
        raise ModelError(f"{model.path}: node {node.name!r} {node.op}: scales must be constants")
    name = f"{bias}/scale"
    model.constants[name] = (scales[0] * scales[1]).astype(np.float32)
    model.constants[f"{bias}/zero"] = np.zeros(model.constants[name].shape, np.int32)
    return Node(op="DequantizeLinear", name="", inputs=[bias, name, f"{bias}/zero"],
                outputs=[f"{bias}/real"], attributes={"axis": 0})


def _drop_identities(model: OnnxModel) -> None:
    renamed: dict[str, str] = {}
    kept = []
    for node in model.nodes:
        node.inputs = [renamed.get(name, name) for name in node.inputs]
        if node.op in ("Identity", "Dropout") and node.outputs[0] not in model.outputs:
            renamed[node.outputs[0]] = node.inputs[0]
        elif node.op == "Constant":
            model.constants[node.outputs[0]] = _constant_value(model, node)
        else:
            kept.append(node)
    model.nodes = kept


def _constant_value(model: OnnxModel, node: Node) -> np.ndarray:
    import onnx

    for key, value in node.attributes.items():
        if key == "value":
            return onnx.numpy_helper.to_array(value)
        if key in ("value_float", "value_floats"):
            return np.asarray(value, np.float32)
        if key in ("value_int", "value_ints"):
            return np.asarray(value, np.int64)
    raise ModelError(f"{model.path}: Constant {node.outputs[0]!r}: only dense numbers are read")


def _infer(model: OnnxModel, proto: Any) -> None:
    """Shapes and types of every value, from the nodes as they now are."""
    import onnx

    # Shape inference reads small constants (shapes, axes) only: weights go as declarations.
    small = {name: value for name, value in model.constants.items() if value.size <= 64}
    declared = [onnx.helper.make_tensor_value_info(
        name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in model.constants.items() if value.size > 64]
    inputs = [value for value in proto.graph.input if value.name in model.inputs]
    computed = {name for node in model.nodes for name in node.outputs} - set(model.outputs)
    graph = onnx.helper.make_graph(
        [_to_proto(node) for node in model.nodes], "prepared", [*inputs, *declared],
        list(proto.graph.output),
        initializer=[onnx.numpy_helper.from_array(value, name) for name, value in small.items()],
        value_info=[value for value in proto.graph.value_info if value.name in computed])
    bare = onnx.helper.make_model(graph, opset_imports=proto.opset_import)
    inferred = onnx.shape_inference.infer_shapes(bare, data_prop=True).graph
    for name, constant in model.constants.items():
        model.shapes[name], model.dtypes[name] = constant.shape, str(constant.dtype)
    for value in itertools.chain(inferred.input, inferred.value_info, inferred.output):
        kind = value.type.tensor_type
        model.dtypes[value.name] = DTYPES.get(kind.elem_type, str(kind.elem_type))
        if kind.HasField("shape") and all(dim.dim_value > 0 for dim in kind.shape.dim):
            model.shapes[value.name] = tuple(dim.dim_value for dim in kind.shape.dim)


def _to_proto(node: Node) -> Any:
    import onnx

    if node.proto is not None:
        copy = onnx.NodeProto()
        copy.CopyFrom(node.proto)
        del copy.input[:]
        copy.input.extend(node.inputs)
        return copy
    domain, _, op = node.op.rpartition(".")
    return onnx.helper.make_node(op, node.inputs, node.outputs, name=node.name, domain=domain,
                                 **node.attributes)


def _fold(model: OnnxModel) -> bool:
    """Evaluate nodes whose inputs are all known; return whether any were."""
    from onnx.reference import ReferenceEvaluator

    kept = []
    for node in model.nodes:
        known = [model.constants.get(name) for name in node.inputs if name]
        if node.op == "Shape" and node.inputs[0] in model.shapes:
            shape = model.shapes[node.inputs[0]]
            chosen = shape[node.attributes.get("start", 0):node.attributes.get("end", len(shape))]
            model.constants[node.outputs[0]] = np.asarray(chosen, np.int64)
        elif ("." in node.op or node.op in _NEVER_FOLDED
              or any(value is None for value in known)):
            kept.append(node)
        else:
            feeds = {name: model.constants[name] for name in node.inputs if name}
            results = ReferenceEvaluator(
                _to_proto(node), opsets={"": model.opset}).run(None, feeds)
            model.constants.update(zip(node.outputs, map(np.asarray, results), strict=False))
    folded = len(kept) < len(model.nodes)
    model.nodes = kept
    return folded


def check_shapes(model: OnnxModel) -> None:
    """Refuse a model in which a value that is read has no static shape."""
    unknown = [f"{node.op} {name!r}" for node in model.nodes
               for name in _used(model, node.outputs) if name not in model.shapes]
    if unknown:
        raise ModelError(f"{model.path}: shapes that depend on the data: {', '.join(unknown)}; "
                         "only static shapes are read")


def _used(model: OnnxModel, names: Iterable[str]) -> list[str]:
    read = {name for node in model.nodes for name in node.inputs} | set(model.outputs)
    return [name for name in names if name in read]
