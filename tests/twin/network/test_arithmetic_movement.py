"""Operators that move values, against the TensorFlow Lite interpreter."""

import numpy as np
import pytest
from made_graphs import one_layer, tensor

from twin.network.arithmetic import run_network
from twin.network.writers.tflite import encode_tflite

CASES = {
    "slice": ((1, 6, 5, 4), (1, 2, 5, 3), {"begin": (0, 1, 0, 1), "strides": (1, 3, 1, 1)}),
    "transpose": ((1, 6, 5, 4), (1, 4, 6, 5), {"perm": (0, 3, 1, 2)}),
    "tile": ((1, 2, 3, 4), (1, 4, 3, 8), {}),
    "broadcast_to": ((1, 1, 4), (3, 2, 4), {}),
    "space_to_depth": ((1, 4, 6, 3), (1, 2, 3, 12), {"block": 2}),
    "depth_to_space": ((1, 2, 3, 12), (1, 4, 6, 3), {"block": 2}),
    "minimum": ((1, 2, 3, 4), (1, 2, 3, 4), {}), "maximum": ((1, 2, 3, 4), (1, 2, 3, 4), {}),
}


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("op", CASES)
def test_values_end_where_the_interpreter_puts_them(op, dtype):
    module = pytest.importorskip("ai_edge_litert.interpreter",
                                 reason="no TensorFlow Lite interpreter is installed")
    source, made, options = CASES[op]
    operands = 2 if op in ("minimum", "maximum") else 1
    graph = one_layer(op, [tensor(source, dtype)] * operands, [tensor(made, dtype)],
                      options=options)
    random = np.random.default_rng(0)
    inputs = [random.integers(-128, 128, source).astype(dtype) for _ in range(operands)]
    computed = run_network(graph, inputs)[graph.outputs[0]]
    interpreter = module.Interpreter(model_content=encode_tflite(graph))
    interpreter.allocate_tensors()
    for detail, values in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], values)
    interpreter.invoke()
    expected = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_array_equal(computed, expected)
    assert computed.dtype == expected.dtype


def test_channels_may_be_split_first():
    graph = one_layer("depth_to_space", [tensor((1, 1, 1, 8))], [tensor((1, 2, 2, 2))],
                      options={"block": 2, "order": "crd"})
    (values,) = run_network(graph, [np.arange(8, dtype=np.int8).reshape(1, 1, 1, 8)])[1]
    # Channel 0 is spread from the first four values, channel 1 from the others.
    np.testing.assert_array_equal(values[..., 0], [[0, 1], [2, 3]])
    np.testing.assert_array_equal(values[..., 1], [[4, 5], [6, 7]])
