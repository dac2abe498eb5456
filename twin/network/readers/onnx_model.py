"""An .onnx file made ready to convert: checked, folded, with every shape known."""

from __future__ import annotations

import itertools
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from hwmodels.errors import need_extra
from twin.errors import ModelError
from twin.network.model_file import read_bytes
from twin.network.readers.budget import Budget, check_operators
from twin.network.readers.onnx_external import take_external_data
from twin.network.readers.onnx_integers import (
    join_dynamic,
    merge_quantizers,
    move_integers,
    split_integer_operator,
)
from twin.network.readers.onnx_nodes import Node, OnnxModel
from twin.network.readers.onnx_shapes import list_unknown, settle_shapes

_RECURRENT = ("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM")


def load_onnx(path: str, content: bytes | None = None) -> OnnxModel:
    """Read and prepare an .onnx file.

    Parameters
    ----------
    content
        What it would hold, where it is inside another.

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
    with need_extra(".onnx files", "the package onnx", "onnx"):
        import onnx
    content = read_bytes(path) if content is None else content
    what = "not an ONNX file"
    try:
        proto = onnx.load_model_from_string(content)
        if not proto.graph.node:
            raise ModelError(f"{path}: no operators; is it an ONNX file?")
        for one in proto.graph.sparse_initializer:
            raise ModelError(f"{path}: tensor {one.values.name!r} is stored sparse; export with "
                             "dense weights")
        content += take_external_data(path, proto)
        _check_order(path, proto.graph)
        axes = _take_early_axes(proto)
        what = "malformed"
        onnx.checker.check_model(proto)
        what = "cannot be read"
        model = _prepare(path, content, proto, axes)
    except ModelError:
        raise
    except Exception as error:
        # protobuf, the checker and shape inference each raise their own kinds.
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise ModelError(f"{path}: {what}: {reason}") from None
    return model


def _take_early_axes(proto: Any) -> dict[str, int]:
    """Take the axes of quantisers out of files whose opset knows none yet, by what they write.

    Notes
    -----
    onnxruntime writes per-channel quantisers into files of opset 10 to 12 and reads them back.
    """
    early = any(entry.domain in ("", "ai.onnx") and entry.version < 13
                for entry in proto.opset_import)
    axes: dict[str, int] = {}
    for node in proto.graph.node if early else ():
        if node.op_type in ("QuantizeLinear", "DequantizeLinear") and not node.domain:
            kept = [attribute for attribute in node.attribute if attribute.name != "axis"]
            if len(kept) < len(node.attribute):
                axes[node.output[0]] = next(
                    attribute.i for attribute in node.attribute if attribute.name == "axis")
                del node.attribute[:]
                node.attribute.extend(kept)
    return axes


def _prepare(path: str, content: bytes, proto: Any, axes: dict[str, int]) -> OnnxModel:
    import onnx

    proto = _inline_functions(path, proto)
    check_operators(path, len(proto.graph.node))
    opsets = {entry.domain: entry.version for entry in proto.opset_import}
    constants = {tensor.name: onnx.numpy_helper.to_array(tensor)
                 for tensor in proto.graph.initializer}
    inputs = [value.name for value in proto.graph.input if value.name not in constants]
    notes = _check_inputs(path, proto, set(inputs))
    model = OnnxModel(path=path, content=content, opset=opsets.get("", opsets.get("ai.onnx", 1)),
                      nodes=[], constants=constants, shapes={}, dtypes={}, inputs=inputs,
                      outputs=[value.name for value in proto.graph.output], notes=notes)
    model.nodes = _make_nodes(model, proto.graph)
    join_dynamic(model)
    for node in model.nodes:
        if node.outputs and node.result in axes:
            node.attributes["axis"] = axes[node.result]
    settle_shapes(model, proto, lambda graph: _make_nodes(model, graph), Budget(path, len(content)))
    merge_quantizers(model)
    move_integers(model)
    return model


def _inline_functions(path: str, proto: Any) -> Any:
    """Put the bodies of the file's own functions where they are called, if they are not many."""
    if not proto.functions:
        return proto
    import onnx.inliner

    bodies = {(function.domain, function.name): function for function in proto.functions}
    sizes: dict[tuple[str, str], int] = {}

    def count(nodes: Any, depth: int) -> int:
        if depth > len(bodies):
            raise ModelError(f"{path}: a function that calls itself")
        total = 0
        for node in nodes:
            key = (node.domain, node.op_type)
            if key in bodies and key not in sizes:
                sizes[key] = count(bodies[key].node, depth + 1)
            total += sizes.get(key, 1)
            for attribute in node.attribute:
                total += count(attribute.g.node, depth)
            check_operators(path, total)
        return total

    count(proto.graph.node, 0)
    return onnx.inliner.inline_local_functions(proto)


def _make_nodes(model: OnnxModel, graph: Any) -> list[Node]:
    """Nodes of a graph or a branch, without those that only rename or state constants."""
    import onnx

    for tensor in graph.initializer:
        if tensor.name not in model.constants:
            model.add_constant(tensor.name, onnx.numpy_helper.to_array(tensor))
    nodes = [_node(entry) for entry in graph.node]
    kept = {*model.outputs, *(value.name for value in graph.output)}
    return _drop_identities(model, kept, list(itertools.chain.from_iterable(
        split_integer_operator(model, node) for node in nodes)))


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


def _check_inputs(path: str, proto: Any, names: set[str]) -> list[str]:
    """Refuse inputs of open shape or several at a time; an open batch alone is bound to one."""
    notes = []
    recurrent = any(node.op_type in _RECURRENT for node in proto.graph.node)
    for value in proto.graph.input:
        if value.name not in names:
            continue
        if not value.type.tensor_type.HasField("shape"):
            raise ModelError(f"{path}: input {value.name!r} has no shape; export it with one")
        dimensions = value.type.tensor_type.shape.dim
        # Recurrent operators put time first and batch second, and states have layers first.
        open_axes = [axis for axis, dim in enumerate(dimensions) if dim.dim_value < 1]
        timed = recurrent and len(dimensions) == 3
        if len(dimensions) > 1 and open_axes in ([0], [1] if timed else [0]):
            batch = dimensions[open_axes[0]]
            notes.append(f"input: batch {batch.dim_param or '?'!r} of {value.name!r} is open and "
                         "taken to be 1")
            batch.dim_value = 1
        shape = [dim.dim_value if dim.HasField("dim_value") else (dim.dim_param or "?")
                 for dim in dimensions]
        if any(not isinstance(size, int) or size < 1 for size in shape):
            raise ModelError(
                f"{path}: input {value.name!r} has dynamic shape {shape}; fix every dimension, "
                "with onnx.tools.update_model_dims or by exporting without dynamic axes")
        if len(shape) > 1 and shape[0] != 1 and (recurrent and not (timed and shape[1] == 1)):
            raise ModelError(f"{path}: input {value.name!r} has batch {shape[0]}; export the "
                             f"model with batch 1: {shape} as {[1, *shape[1:]]}, or as "
                             f"{[1, *shape]} where the first axis is not a batch")
    return notes


def _check_order(path: str, graph: Any) -> None:
    """Refuse nodes that read what no node before them makes: a cycle, no such tensor, an order."""
    makers = {name: number for number, node in enumerate(graph.node) for name in node.output}
    known = {"", *(value.name for value in graph.input), *(one.name for one in graph.initializer),
             *(one.values.name for one in graph.sparse_initializer)}
    late: list[tuple[int, str]] = []
    for number, node in enumerate(graph.node):
        for name in node.input:
            if name not in known and name not in makers:
                raise ModelError(f"{path}: node {number} {node.op_type} {node.name!r} reads "
                                 f"{name!r}, which no node, input or initializer is")
            if name not in known and makers[name] >= number:
                late.append((number, name))
    if not late:
        return
    try:
        TopologicalSorter({number: [makers[name] for name in node.input if name not in known]
                           for number, node in enumerate(graph.node)}).prepare()
    except CycleError as error:
        around = " -> ".join(f"{one} {graph.node[one].op_type}" for one in error.args[1])
        raise ModelError(f"{path}: the graph has a cycle: node {around}; accepted: a graph without "
                         "one, loops as Loop, Scan or a recurrent operator") from None
    number, name = late[0]
    raise ModelError(f"{path}: node {number} {graph.node[number].op_type} reads {name!r}, which "
                     f"node {makers[name]} makes after it; accepted: nodes in the order they run")


def _drop_identities(model: OnnxModel, named: set[str], nodes: list[Node]) -> list[Node]:
    renamed: dict[str, str] = {}
    kept = []
    for node in nodes:
        node.inputs = [renamed.get(name, name) for name in node.inputs]
        if node.op in ("Identity", "Dropout") and node.result not in named:
            renamed[node.result] = node.source
        elif node.op == "Constant":
            model.add_constant(node.result, _constant_value(model, node))
        else:
            kept.append(node)
    return kept


def _constant_value(model: OnnxModel, node: Node) -> np.ndarray:
    import onnx

    for key, value in node.attributes.items():
        if key == "value":
            return onnx.numpy_helper.to_array(value)
        if key in ("value_float", "value_floats"):
            return np.asarray(value, np.float32)
        if key in ("value_int", "value_ints"):
            return np.asarray(value, np.int64)
    raise ModelError(f"{model.path}: Constant {node.result!r}: only dense numbers are read")


def check_shapes(model: OnnxModel) -> None:
    """Refuse a model in which a value that is read has no static shape.

    Raises
    ------
    ModelError
        Naming the values.
    """
    unknown = list_unknown(model)
    if unknown:
        raise ModelError(f"{model.path}: shapes that depend on the data: "
                         f"{', '.join(unknown[:8])}; only static shapes are read")
