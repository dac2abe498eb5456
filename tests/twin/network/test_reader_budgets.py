"""Files of a few bytes that ask for gigabytes: refused before anything is made of them."""

import json

import numpy as np
import pytest
from made_onnx import helper, node, onnx, save

from twin.errors import ModelError
from twin.network.readers import read_model
from twin.network.readers.budget import MAX_OPERATORS, Budget

HUGE = np.array([2**20, 2**12], np.int64)


def doubled(turns):
    """A vector joined to itself again and again."""
    nodes = [node("Concat", f"v{turn} v{turn}", f"v{turn + 1}", axis=0) for turn in range(turns)]
    return [*nodes, node("Cast", f"v{turns}", "f", to=1), node("ReduceMax", "f", "m"),
            node("Mul", "x m", "y")], {"v0": np.arange(8)}


BOMBS = {
    "tiled": ([node("Tile", "one times", "t"), node("ReduceMax", "t", "m"),
               node("Mul", "x m", "y")],
              {"one": np.ones((1, 1), np.float32), "times": HUGE}),
    "counted": ([node("Range", "zero end step", "r"), node("Cast", "r", "f", to=1),
                 node("ReduceMax", "f", "m"), node("Mul", "x m", "y")],
                {"zero": np.array(0), "end": np.array(2**40), "step": np.array(1)}),
    "expanded": ([node("Expand", "one times", "t"), node("ReduceMax", "t", "m"),
                  node("Mul", "x m", "y")], {"one": np.ones(1, np.float32), "times": HUGE}),
    "filled": ([node("ConstantOfShape", "times", "t"), node("ReduceMax", "t", "m"),
                node("Mul", "x m", "y")], {"times": HUGE}),
    "doubled": doubled(40),
    "spread": ([node("Add", "row column", "t"), node("ReduceMax", "t", "m"),
                node("Mul", "x m", "y")],
               {"row": np.ones((1, 2**14), np.float32), "column": np.ones((2**14, 1), np.float32)}),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_folding_has_a_budget(bomb, tmp_path):
    nodes, constants = BOMBS[bomb]
    path = save(tmp_path, nodes, {"x": [1, 4]}, {"y": [1, 4]}, constants)
    with pytest.raises(ModelError, match=r"makes .* bytes out of constants; at most"):
        read_model(path)


def test_random_tensors_are_not_made(tmp_path):
    path = save(tmp_path, [node("RandomNormal", "", "r", shape=[2**16, 2**14]),
                           node("ReduceMax", "r", "m"), node("Mul", "x m", "y")],
                {"x": [1, 4]}, {"y": [1, 4]}, {})
    with pytest.raises(ModelError, match="RandomNormal"):
        read_model(path)


def test_functions_that_call_each_other_twice_are_counted_first(tmp_path):
    functions = [helper.make_function(
        "made", f"F{depth}", ["a"], ["c"],
        [helper.make_node(f"F{depth + 1}", ["a"], ["b"], domain="made"),
         helper.make_node(f"F{depth + 1}", ["b"], ["c"], domain="made")],
        [helper.make_opsetid("made", 1)]) for depth in range(40)]
    functions.append(helper.make_function("made", "F40", ["a"], ["c"], [node("Neg", "a", "c")],
                                          [helper.make_opsetid("", 17)]))
    graph = helper.make_graph(
        [helper.make_node("F0", ["x"], ["y"], domain="made")], "made",
        [helper.make_tensor_value_info("x", 1, [1, 4])],
        [helper.make_tensor_value_info("y", 1, [1, 4])])
    path = tmp_path / "made.onnx"
    onnx.save(helper.make_model(
        graph, functions=functions, ir_version=8,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("made", 1)]), path)
    with pytest.raises(ModelError, match=f"operators; at most {MAX_OPERATORS:,}"):
        read_model(path)


def test_a_small_function_is_put_where_it_is_called(tmp_path):
    function = helper.make_function("made", "F", ["a"], ["c"], [
        node("Neg", "a", "b"), node("Exp", "b", "c")], [helper.make_opsetid("", 17)])
    graph = helper.make_graph(
        [helper.make_node("F", ["x"], ["y"], domain="made")], "made",
        [helper.make_tensor_value_info("x", 1, [1, 4])],
        [helper.make_tensor_value_info("y", 1, [1, 4])])
    path = tmp_path / "made.onnx"
    onnx.save(helper.make_model(
        graph, functions=[function], ir_version=8,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("made", 1)]), path)
    assert [layer.op for layer in read_model(path).layers] == ["neg", "exp"]


def test_many_operators_are_read_and_too_many_refused(tmp_path):
    def chain(count):
        nodes = [node("Neg", f"v{turn}", f"v{turn + 1}") for turn in range(count)]
        return save(tmp_path, nodes, {"v0": [1, 4]}, {f"v{count}": [1, 4]}, {})

    assert len(read_model(chain(3000)).layers) == 3000
    with pytest.raises(ModelError, match="operators; at most"):
        read_model(chain(MAX_OPERATORS + 1))


def test_a_budget_grows_with_the_file_and_is_used_up():
    small, large = Budget("a", 100), Budget("b", 2**30)
    large.take(2**31, "weights")
    with pytest.raises(ModelError, match="a: weights makes"):
        small.take(2**31, "weights")
    with pytest.raises(ModelError, match="b: more makes"):
        large.take(2**32, "more")


def write_list(tmp_path, inputs, layers):
    path = tmp_path / "bomb.json"
    path.write_text(json.dumps({"name": "x", "inputs": [[inputs, "i8"]], "macs": 0,
                                "layers": layers}))
    return path


ONE = [1, 8, 8, 4]


@pytest.mark.parametrize("layer,said", [
    ({"op": "CONV_2D", "inp": [ONE], "out": [[1, 8, 8, 10**9]], "dt": "i8", "pad": "SAME",
      "w": [10**9, 1, 1, 4], "stride": [1, 1], "act": "NONE"}, "weights of shape"),
    ({"op": "CONV_2D", "inp": [ONE], "out": [[1, 8, 8, 4]], "dt": "i8", "pad": "SAME",
      "w": [4, 10**5, 10**5, 4], "stride": [1, 1], "act": "NONE"}, "weights of shape"),
    ({"op": "FULLY_CONNECTED", "inp": [ONE], "out": [[1, 8, 8, 10**8]], "dt": "i8",
      "w": [10**8, 4]}, "weights of shape"),
    ({"op": "TRANSPOSE", "inp": [ONE], "out": [[4, 8, 8, 2]], "dt": "i8"}, "no permutation")])
def test_a_layer_list_of_a_few_bytes_makes_no_gigabytes(tmp_path, layer, said):
    with pytest.raises(ModelError, match=said):
        read_model(write_list(tmp_path, ONE, [layer]))


def test_a_list_of_many_layers_is_refused_unread(tmp_path):
    layer = {"op": "LOGISTIC", "inp": [ONE], "out": [ONE], "dt": "i8"}
    with pytest.raises(ModelError, match="operators; at most"):
        read_model(write_list(tmp_path, ONE, [layer] * (MAX_OPERATORS + 1)))


def test_a_transposition_is_found_without_trying_all(tmp_path):
    shape = [1] * 11 + [2]
    given = {"op": "TRANSPOSE", "inp": [shape], "out": [[2, *[1] * 11]], "dt": "i8"}
    graph = read_model(write_list(tmp_path, shape, [given]))
    assert dict(graph.layers[0].options)["perm"] == (11, *range(11))


@pytest.mark.parametrize("place", ["initializer", "constant", "branch"])
def test_a_file_elsewhere_is_never_opened(tmp_path, monkeypatch, place):
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    (tmp_path / "secret.bin").write_bytes(b"\0" * 4)
    tensor = onnx.TensorProto(name="c", data_type=1, dims=[1], data_location=1)
    tensor.external_data.add(key="location", value="../secret.bin")
    made = node("Constant", "", "c")
    made.attribute.append(helper.make_attribute("value", tensor))
    out = helper.make_tensor_value_info("c", 1, [1])
    branch = helper.make_graph([made], "branch", [], [out])
    chosen = helper.make_node("If", ["yes"], ["c"], then_branch=branch, else_branch=branch)
    nodes = {"initializer": [], "constant": [made], "branch": [chosen]}[place]
    graph = helper.make_graph(
        [*nodes, node("Add", "x c", "y")], "g",
        [helper.make_tensor_value_info("x", 1, [1])], [helper.make_tensor_value_info("y", 1, [1])],
        [tensor] if place == "initializer" else
        [helper.make_tensor("yes", 9, [], [True])] if place == "branch" else [])
    path = tmp_path / "inside" / "second.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    with pytest.raises(ModelError, match="outside the model's folder"):
        read_model(path)
