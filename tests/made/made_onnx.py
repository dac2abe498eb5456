"""Small .onnx files, and what they compute beside what their graphs do."""

import numpy as np
import pytest

from twin.network.readers import read_model
from twin.network.writers.tflite import write_tflite

onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def weights(*shape):
    scale = np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 1
    return (np.random.default_rng(sum(shape)).normal(size=shape) / scale).astype(np.float32)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def save(folder, nodes, inputs, outputs, constants, kind=TensorProto.FLOAT, opset=17):
    graph = helper.make_graph(
        nodes, "made", [helper.make_tensor_value_info(n, kind, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, kind, s) for n, s in outputs.items()],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)])
    path = folder / "made.onnx"
    onnx.save(model, path)
    return path


def described(graph):
    return [f"{layer.op} {layer.activation}" if layer.activation else layer.op
            for layer in graph.layers]


def channels_last(values, rank):
    if values.ndim == 4:
        return values.transpose(0, 2, 3, 1)
    return values.transpose(0, 2, 1)[:, None] if values.ndim == 3 and rank == 4 else values


def assert_computes_the_same(path, x, folder, plain=False, atol=1e-5):
    """The reference evaluator on the file against LiteRT on the graph written as .tflite."""
    interpreter_module = pytest.importorskip(
        "ai_edge_litert.interpreter", reason="no TensorFlow Lite interpreter is installed")
    from onnx.reference import ReferenceEvaluator

    graph = read_model(path)
    model = onnx.load(path)
    (expected,) = ReferenceEvaluator(model).run(None, {model.graph.input[0].name: x})
    write_tflite(graph, folder / "made.tflite")
    interpreter = interpreter_module.Interpreter(str(folder / "made.tflite"))
    interpreter.allocate_tensors()
    stored = tuple(graph.tensors[graph.inputs[0]].shape)
    fed = x if plain or stored == x.shape else channels_last(x, len(stored))
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], fed)
    interpreter.invoke()
    given = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    if given.shape != expected.shape or (given.ndim == 4 and not np.allclose(
            given, expected, atol=atol)):
        expected = channels_last(expected, given.ndim)
    # Sums of up to 96 products of float32 in another order.
    np.testing.assert_allclose(given, expected, atol=atol, rtol=1e-5)
