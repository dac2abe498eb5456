"""ONNX operators one by one: what they read as, and that the graph computes the same numbers.

Expected numbers are the ONNX reference evaluator's, on the file as it is.
"""

import numpy as np
import pytest
from made_onnx import (
    assert_computes_the_same,
    described,
    helper,
    node,
    onnx,
    save,
    weights,
)

from twin.deployment.deploy import deploy
from twin.errors import ModelError
from twin.network.operators import graph_macs
from twin.network.readers import read_model
from twin.pricing.inference import predict

IMAGE = {"x": [1, 4, 6, 5]}
ROWS = {"x": [1, 6, 8]}
TWO = {"two": np.float32(2), "low": np.float32(-0.5), "high": np.float32(0.7)}
SHAPED = {"axes1": np.array([1]), "axes2": np.array([2]), "last": np.array([-1]),
          "times": np.array([1, 2, 1]), "grown": np.array([3, 6, 8])}

CASES = {  # name: (nodes, input, output, constants, opset, expected operators)
    **{op: ([node("Abs", "x", "a"), node("Add", "a two", "b"), node(op, "b", "y")], ROWS,
            {"y": [1, 6, 8]}, TWO, 17, ["abs", "add", canonical])
       for op, canonical in (("Neg", "neg"), ("Exp", "exp"), ("Log", "log"), ("Sqrt", "sqrt"),
                             ("Sin", "sin"), ("Cos", "cos"), ("Floor", "floor"), ("Ceil", "ceil"),
                             ("Elu", "elu"))},
    "powers": ([node("Abs", "x", "a"), node("Pow", "a two", "b"), node("Pow", "b half", "c"),
                node("Pow", "c high", "y")], ROWS, {"y": [1, 6, 8]},
               {**TWO, "half": np.float32(.5)}, 17, ["abs", "square", "sqrt", "pow"]),
    "division": ([node("Exp", "x", "a"), node("Div", "x a", "y")], ROWS, {"y": [1, 6, 8]}, {}, 17,
                 ["exp", "div"]),
    "comparisons": (
        [node("Greater", "x low", "a"), node("Less", "x high", "b"), node("And", "a b", "c"),
         node("Not", "c", "d"), node("LessOrEqual", "x two", "e"), node("Or", "d e", "f"),
         node("Where", "f x low", "y")], ROWS, {"y": [1, 6, 8]}, TWO, 17,
        ["greater", "less", "logical_and", "logical_not", "less_equal", "logical_or", "select"]),
    "reductions": (
        [node("ReduceSum", "x axes2", "a", keepdims=1), node("ReduceMin", "x", "b", axes=[2]),
         node("ReduceMax", "x", "c", axes=[2]), node("Mul", "a b", "d"), node("Add", "d c", "y")],
        ROWS, {"y": [1, 6, 1]}, SHAPED, 17, ["sum", "reduce_min", "reduce_max", "mul", "add"]),
    "length of a vector": ([node("ReduceL2", "x", "y", axes=[2])], ROWS, {"y": [1, 6, 1]}, {}, 17,
                           ["mul", "sum", "sqrt"]),
    "repetition": ([node("Tile", "x times", "a"), node("ReduceMean", "a", "b", axes=[1]),
                    node("Expand", "b grown", "y")], {"x": [1, 3, 8]}, {"y": [3, 6, 8]},
                   SHAPED, 17, ["tile", "mean", "broadcast_to"]),
    "gathered": ([node("Gather", "x one", "a", axis=1), node("Gather", "a some", "y", axis=1)],
                 ROWS, {"y": [1, 3]}, {"one": np.array(2), "some": np.array([5, 0, 3])}, 17,
                 ["gather", "gather"]),
    "products of two": ([node("Transpose", "x", "t", perm=[0, 2, 1]), node("MatMul", "x t", "m"),
                         node("Softmax", "m", "s"), node("MatMul", "s x", "y")], ROWS,
                        {"y": [1, 6, 8]}, {}, 17,
                        ["transpose", "batch_matmul", "softmax", "batch_matmul"]),
    # The transposed result is one stored channels last.
    "einsum": ([node("Einsum", "x x", "y", equation="bij,bkj->bki")], ROWS, {"y": [1, 6, 6]}, {},
               17, ["transpose", "batch_matmul"]),
    "blocks": ([node("SpaceToDepth", "x", "d", blocksize=2), node("Relu", "d", "r"),
                node("DepthToSpace", "r", "y", blocksize=2)], {"x": [1, 4, 6, 4]},
               {"y": [1, 4, 6, 4]}, {}, 17, ["space_to_depth", "relu", "depth_to_space"]),
    "norm of its own": ([node("BatchNormalization", "x g b m v", "y")], IMAGE,
                        {"y": [1, 4, 6, 5]},
                        {"g": weights(4), "b": weights(4), "m": weights(4),
                         "v": abs(weights(4)) + 1}, 17, ["mul", "add"]),
    "instance norm": ([node("Conv", "x w", "c"), node("InstanceNormalization", "c g b", "y")],
                      IMAGE, {"y": [1, 4, 6, 5]},
                      {"w": weights(4, 4, 1, 1), "g": weights(4), "b": weights(4)}, 17,
                      ["conv_2d", "mean", "sub", "square", "mean", "add", "sqrt", "div", "mul",
                       "add"]),
    "group norm": ([node("Conv", "x w", "c"), node("GroupNormalization", "c g b", "y",
                                                   num_groups=2)],
                   IMAGE, {"y": [1, 4, 6, 5]},
                   {"w": weights(4, 4, 1, 1), "g": weights(4), "b": weights(4)}, 21,
                   ["conv_2d", "transpose", "mean", "sub", "square", "mean", "add", "sqrt", "div",
                    "mul", "add"]),
    "matrix product with factors": (
        [node("Gemm", "x w c", "y", transA=1, alpha=0.5, beta=2.0)], {"x": [1, 6]},
        {"y": [6, 5]}, {"w": weights(1, 5), "c": weights(6, 1)}, 17,
        ["fully_connected", "mul", "mul", "add"]),
    "many operands": ([node("Exp", "x", "a"), node("Sum", "x a x", "b"), node("Max", "b x a", "c"),
                       node("Mean", "a b c", "y")], ROWS, {"y": [1, 6, 8]}, {}, 17,
                      ["exp", "add", "add", "maximum", "maximum", "add", "add", "mul"]),
    "enlarged signal": ([node("Conv", "x w", "c"), node("Resize", "c  scales", "y")],
                        {"x": [1, 3, 8]}, {"y": [1, 4, 16]},
                        {"w": weights(4, 3, 1), "scales": np.array([1, 1, 2], np.float32)}, 17,
                        ["conv_2d", "resize_nearest"]),
    "last place": ([node("ArgMax", "x", "a", axis=2, keepdims=0), node("Cast", "a", "y", to=1)],
                   ROWS, {"y": [1, 6]}, {}, 17, ["arg_max", "cast"]),
    "choice by a constant": (
        [helper.make_node("If", ["yes"], ["c"],
                          then_branch=helper.make_graph([node("Neg", "x", "t")], "then", [], [
                              helper.make_tensor_value_info("t", 1, [1, 6, 8])]),
                          else_branch=helper.make_graph([node("Exp", "x", "e")], "else", [], [
                              helper.make_tensor_value_info("e", 1, [1, 6, 8])])),
         node("Abs", "c", "y")], ROWS, {"y": [1, 6, 8]}, {"yes": np.array(True)}, 17,
        ["neg", "abs"]),
}
# Names in a row split without the empty one of an absent input.
CASES["enlarged signal"][0][1].input.insert(1, "")


@pytest.mark.parametrize("case", CASES)
def test_operators_read_as_canonical_ones_and_compute_the_same(case, tmp_path):
    nodes, inputs, outputs, constants, opset, expected = CASES[case]
    path = save(tmp_path, nodes, inputs, outputs, constants, opset=opset)
    assert [one for one in described(read_model(path)) if one != "reshape"] == expected
    (shape,) = inputs.values()
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    assert_computes_the_same(path, x, tmp_path)


RARER = {"HardSigmoid": "hard_sigmoid", "Softplus": "softplus", "Softsign": "softsign",
         "Selu": "selu", "Celu": "celu", "Mish": "mish", "Reciprocal": "reciprocal",
         "Sign": "sign", "Erf": "erf", "Gelu": "gelu", "LogSoftmax": "log_softmax"}


@pytest.mark.parametrize("op", RARER)
def test_rarer_functions_are_layers_that_are_priced(op, tmp_path):
    path = save(tmp_path, [node(op, "x", "y")], ROWS, {"y": [1, 6, 8]}, {}, opset=20)
    graph = read_model(path)
    assert described(graph) == [RARER[op]]
    prediction = predict(deploy(graph, "nucleo_l4r5zi", runtime="x-cube-ai"))
    assert prediction.time_us > 0 and prediction.layers[0].assumed


def test_what_is_found_among_many_is_priced(tmp_path):
    path = save(tmp_path, [node("TopK", "x k", "v i", axis=-1), node("CumSum", "v axis", "c"),
                           node("GatherElements", "x i", "g", axis=2), node("Add", "c g", "y")],
                ROWS, {"y": [1, 6, 3]}, {"k": np.array([3]), "axis": np.array(2)})
    graph = read_model(path)
    assert described(graph) == ["top_k", "cumsum", "gather_nd", "add"]
    assert len(graph.layers[0].outputs) == 2
    assert predict(deploy(graph, "nucleo_l4r5zi", runtime="x-cube-ai")).time_us > 0


def layer_norm(whole):
    """A layer normalisation between two products, as one operator or spelt out."""
    middle = [node("LayerNormalization", "p g b", "n", axis=-1, epsilon=1e-5)] if whole else [
        node("ReduceMean", "p", "m", axes=[-1]), node("Sub", "p m", "d"),
        node("Pow", "d two", "s"), node("ReduceMean", "s", "v", axes=[-1]),
        node("Add", "v tiny", "e"), node("Sqrt", "e", "r"), node("Div", "d r", "q"),
        node("Mul", "q g", "k"), node("Add", "k b", "n")]
    constants = {"w": weights(8, 8), "g": weights(8), "b": weights(8), "two": np.float32(2),
                 "tiny": np.float32(1e-5)}
    return [node("MatMul", "x w", "p"), *middle, node("MatMul", "n w", "y")], constants


def test_a_normalisation_reads_alike_as_one_operator_and_spelt_out(tmp_path):
    read = []
    for whole in (True, False):
        nodes, constants = layer_norm(whole)
        path = save(tmp_path, nodes, ROWS, {"y": [1, 6, 8]}, constants)
        read.append(read_model(path))
        x = np.random.default_rng(1).normal(size=(1, 6, 8)).astype(np.float32)
        assert_computes_the_same(path, x, tmp_path)
    assert read[0].architecture_id == read[1].architecture_id


ROOT_2, ROOT_PI = np.float32(np.sqrt(2)), np.float32(np.sqrt(2 / np.pi))
GELUS = {
    "exact": [node("Div", "p root2", "a"), node("Erf", "a", "e"), node("Add", "e one", "f"),
              node("Mul", "p f", "g"), node("Mul", "g half", "q")],
    "half first": [node("Mul", "p half", "h"), node("Div", "p root2", "a"), node("Erf", "a", "e"),
                   node("Add", "e one", "f"), node("Mul", "h f", "q")],
    "tanh": [node("Mul", "p p", "s"), node("Mul", "s p", "t"), node("Mul", "t small", "u"),
             node("Add", "p u", "v"), node("Mul", "v rootpi", "w2"), node("Tanh", "w2", "e"),
             node("Add", "e one", "f"), node("Mul", "p half", "h"), node("Mul", "h f", "q")],
}
GELU_CONSTANTS = {"root2": ROOT_2, "one": np.float32(1), "half": np.float32(.5),
                  "small": np.float32(0.044715), "rootpi": ROOT_PI, "w": weights(8, 8)}


@pytest.mark.parametrize("case", GELUS)
def test_gelus_that_are_spelt_out_become_one_layer(case, tmp_path):
    path = save(tmp_path, [node("MatMul", "x w", "p"), *GELUS[case]], ROWS, {"q": [1, 6, 8]},
                GELU_CONSTANTS)
    assert described(read_model(path)) == ["fully_connected", "gelu"]


def test_what_only_looks_like_a_gelu_stays(tmp_path):
    wrong = {**GELU_CONSTANTS, "root2": np.float32(1.0)}
    path = save(tmp_path, [node("MatMul", "x w", "p"), *GELUS["exact"]], ROWS, {"q": [1, 6, 8]},
                wrong)
    assert "erf" in described(read_model(path))


def test_shapes_that_the_file_computes_are_folded(tmp_path):
    # As PyTorch writes x.view(x.shape[0], -1, 2) and a grid of positions.
    nodes = [node("Shape", "x", "s"), node("Gather", "s zero", "n"),
             node("Unsqueeze", "n axis", "a"),
             node("Concat", "a minus two", "to", axis=0), node("Reshape", "x to", "r"),
             node("Shape", "r", "t"), node("Gather", "t one", "m"),
             node("Range", "zero m one", "i"), node("Cast", "i", "f", to=1),
             node("Unsqueeze", "f back", "g"), node("ConstantOfShape", "two", "z"),
             node("Add", "g z", "h"), node("Add", "r h", "y")]
    path = save(tmp_path, nodes, ROWS, {"y": [1, 24, 2]},
                {"zero": np.array(0), "one": np.array(1), "axis": np.array([0]),
                 "back": np.array([1]), "minus": np.array([-1]), "two": np.array([2])})
    assert described(read_model(path)) == ["reshape", "add"]
    x = np.random.default_rng(1).normal(size=(1, 6, 8)).astype(np.float32)
    assert_computes_the_same(path, x, tmp_path)


@pytest.mark.parametrize(("mode", "order"), [("DCR", None), ("CRD", "crd")])
def test_the_order_of_blocks_is_kept(mode, order, tmp_path):
    path = save(tmp_path, [node("DepthToSpace", "x", "y", blocksize=2, mode=mode)], IMAGE,
                {"y": [1, 1, 12, 10]}, {})
    (layer,) = read_model(path).layers
    assert layer.op == "depth_to_space" and layer.option("order") == order


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize(("op", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_recurrent_layers_in_both_directions(op, gates, layout, tmp_path):
    time, features, hidden = 7, 3, 4
    shape = [1, time, features] if layout else [time, 1, features]
    made = [1, time, 2, hidden] if layout else [time, 2, 1, hidden]
    path = save(tmp_path, [node(op, "x w r", "y", hidden_size=hidden, layout=layout,
                                direction="bidirectional")],
                {"x": shape}, {"y": made},
                {"w": weights(2, gates * hidden, features),
                 "r": weights(2, gates * hidden, hidden)})
    graph = read_model(path)
    name = op.lower()
    assert described(graph) == [name, name, "concatenation"]
    assert [layer.option("reverse", False) for layer in graph.layers] == [False, True, False]
    # Each direction takes every step: the length of the sequence is not a batch.
    assert graph_macs(graph) == 2 * time * gates * hidden * (features + hidden)


def test_a_batch_of_sequences_is_refused(tmp_path):
    path = save(tmp_path, [node("LSTM", "x w r", "y", hidden_size=4)], {"x": [7, 2, 3]},
                {"y": [7, 1, 2, 4]}, {"w": weights(1, 16, 3), "r": weights(1, 16, 4)})
    with pytest.raises(ModelError, match="batch"):
        read_model(path)


def test_states_that_come_from_outside_are_inputs(tmp_path):
    path = save(tmp_path, [node("LSTM", "x w r   h c", "y yh yc", hidden_size=4)],
                {"x": [7, 1, 3], "h": [1, 1, 4], "c": [1, 1, 4]},
                {"y": [7, 1, 1, 4], "yh": [1, 1, 4], "yc": [1, 1, 4]},
                {"w": weights(1, 16, 3), "r": weights(1, 16, 4)})
    model = onnx.load(path)
    del model.graph.node[0].input[3:]
    model.graph.node[0].input.extend(["", "", "h", "c"])
    onnx.save(model, path)
    graph = read_model(path)
    (layer,) = graph.layers
    assert len(layer.inputs) == 6 and len(layer.outputs) == 3 and len(graph.inputs) == 3


def test_boxes_kept_by_a_detector_are_as_many_as_may_be_and_said(tmp_path):
    graph = helper.make_graph(
        [node("NonMaxSuppression", "boxes scores most", "kept")], "made",
        [helper.make_tensor_value_info("boxes", 1, [1, 50, 4]),
         helper.make_tensor_value_info("scores", 1, [1, 3, 50])],
        [helper.make_tensor_value_info("kept", 7, ["n", 3])],
        [onnx.numpy_helper.from_array(np.array([10]), "most")])
    path = tmp_path / "made.onnx"
    onnx.save(helper.make_model(graph, ir_version=8,
                                opset_imports=[helper.make_opsetid("", 17)]), path)
    read = read_model(path)
    assert read.tensors[read.outputs[0]].shape == (30, 3)
    assert "the most it can (assumed)" in read.notes[0]


@pytest.mark.parametrize("kind", [np.int16, np.uint16])
def test_sixteen_bit_pairs_of_either_domain_read_as_integers(kind, tmp_path):
    constants = {"s": np.float32(0.01), "z": kind(0), "w": weights(4, 4, 3, 3),
                 "t": np.float32(0.02)}
    for domain, opset in (("com.microsoft", 17), ("", 21)):
        nodes = [node("QuantizeLinear", "x s z", "q", domain=domain),
                 node("DequantizeLinear", "q s z", "d", domain=domain),
                 node("Sigmoid", "d", "c"),
                 node("QuantizeLinear", "c t z", "r", domain=domain),
                 node("DequantizeLinear", "r t z", "y", domain=domain)]
        path = save(tmp_path, nodes, IMAGE, {"y": [1, 4, 6, 5]}, constants, opset=opset)
        graph = read_model(path)
        assert described(graph) == ["quantize", "logistic", "dequantize"]
        assert graph.tensors[graph.layers[1].outputs[0]].dtype == np.dtype(kind).name


def test_what_only_moves_values_moves_integers(tmp_path):
    # Quantisers around layers only: before a reshape, and behind a transpose.
    constants = {"s": np.float32(0.05), "z": np.int8(0), "w": np.ones((4, 4, 1, 1), np.int8),
                 "v": np.ones((5, 120), np.int8), "to": np.array([1, -1])}
    nodes = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d"),
             node("DequantizeLinear", "w s z", "wd"), node("Conv", "d wd", "c"),
             node("Transpose", "c", "t", perm=[0, 2, 1, 3]), node("Reshape", "t to", "t2"),
             node("QuantizeLinear", "t2 s z", "r"), node("DequantizeLinear", "r s z", "e"),
             node("Identity", "e", "e2"), node("Reshape", "e2 to", "f"),
             node("DequantizeLinear", "v s z", "vd"), node("Gemm", "f vd", "g", transB=1),
             node("QuantizeLinear", "g s z", "h"), node("DequantizeLinear", "h s z", "y")]
    graph = read_model(save(tmp_path, nodes, IMAGE, {"y": [1, 5]}, constants))
    assert [one for one in described(graph) if one not in ("reshape", "transpose")] == [
        "quantize", "conv_2d", "fully_connected", "dequantize"]
    assert all(graph.tensors[layer.outputs[0]].dtype == "int8" for layer in graph.layers[:-1])


def test_axes_of_quantisers_are_read_below_their_opset(tmp_path):
    constants = {"s": np.float32(0.05), "z": np.int8(0), "w": np.ones((4, 4, 1, 1), np.int8),
                 "t": np.full(4, 0.1, np.float32), "o": np.zeros(4, np.int8)}
    path = save(tmp_path, [
        node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d"),
        node("DequantizeLinear", "w t o", "wd", axis=0), node("Conv", "d wd", "c"),
        node("QuantizeLinear", "c s z", "r"), node("DequantizeLinear", "r s z", "y")],
        IMAGE, {"y": [1, 4, 6, 5]}, constants, opset=11)
    graph = read_model(path)
    assert described(graph) == ["quantize", "conv_2d", "dequantize"]
    assert graph.tensors[graph.layers[1].inputs[1]].quantization.axis == 0
