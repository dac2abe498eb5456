"""Written files read back to the same graph, whole or not at all."""

import numpy as np
import pytest
from made_graphs import QUANTIZED, assert_same_graph, conv_graph, one_layer, tensor

from twin.errors import ModelError
from twin.network import zoo
from twin.network.graph import Window
from twin.network.operators import list_states
from twin.network.readers import read_model
from twin.network.writers import write_model
from twin.network.writers.onnx import encode_onnx
from twin.network.writers.tflite import encode_tflite

FORMATS = ("tflite", "onnx")
NETWORKS = ("kws", "ic", "vww", "ad", "sww", "mobilenet_v1_0.25_96", "mobilenet_v2_0.35_96",
            "squeezenet1.1_64")


def read_back(graph, folder, suffix):
    path = folder / f"made.{suffix}"
    write_model(graph, path)
    return read_model(path)


@pytest.fixture(autouse=True)
def _onnx_is_there(request):
    if "onnx" in request.node.name:
        pytest.importorskip("onnx", reason="the onnx extra is not installed")


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("name", NETWORKS)
def test_zoo_networks_come_back(name, suffix, tmp_path):
    graph = zoo.build(name)
    assert_same_graph(graph, read_back(graph, tmp_path, suffix))


VECTOR, IMAGE = (1, 6), (1, 8, 6, 4)
LAYERS = {  # name: (op, input shapes, constant shapes, output shapes, layer)
    "transposed convolution": ("transpose_conv_2d", [(1, 4, 3, 5)], [(2, 2, 2, 5), (2,)],
                               [(1, 8, 6, 2)],
                               {"window": Window(kernel=(2, 2), stride=(2, 2))}),
    "dilated convolution": ("conv_2d", [IMAGE], [(3, 3, 3, 4), (3,)], [(1, 4, 2, 3)],
                            {"window": Window(kernel=(3, 3), dilation=(2, 2))}),
    "grouped convolution": ("conv_2d", [IMAGE], [(6, 1, 1, 2), (6,)], [(1, 8, 6, 6)],
                            {"window": Window(kernel=(1, 1)), "groups": 2}),
    "depthwise, two filters each": ("depthwise_conv_2d", [IMAGE], [(1, 3, 3, 8), (8,)],
                                    [(1, 6, 4, 8)], {"window": Window(kernel=(3, 3)),
                                                     "groups": 4, "activation": "relu6"}),
    "fully connected": ("fully_connected", [VECTOR], [(3, 6), (3,)], [(1, 3)],
                        {"activation": "relu_n1_to_1"}),
    "average pool": ("average_pool_2d", [IMAGE], [], [(1, 4, 3, 4)],
                     {"window": Window(kernel=(2, 2), stride=(2, 2))}),
    "max pool": ("max_pool_2d", [IMAGE], [], [IMAGE],
                 {"window": Window(kernel=(3, 3), padding=(1, 1, 1, 1))}),
    "mean": ("mean", [IMAGE], [], [(1, 4)], {"options": {"axes": (1, 2), "keep_dims": False}}),
    "reduce max": ("reduce_max", [IMAGE], [], [(1, 1, 1, 4)],
                   {"options": {"axes": (1, 2), "keep_dims": True}}),
    "add": ("add", [IMAGE, IMAGE], [], [IMAGE], {"activation": "relu"}),
    "sub": ("sub", [IMAGE, (1, 1, 1, 4)], [], [IMAGE], {}),
    "mul by channel": ("mul", [IMAGE], [(4,)], [IMAGE], {}),
    "minimum": ("minimum", [IMAGE], [(1,)], [IMAGE], {}),
    "maximum": ("maximum", [IMAGE], [()], [IMAGE], {}),
    "concatenation": ("concatenation", [IMAGE, IMAGE], [], [(1, 8, 6, 8)],
                      {"options": {"axis": 3}}),
    "split": ("split", [IMAGE], [], [(1, 8, 6, 1), (1, 8, 6, 3)], {"options": {"axis": 3}}),
    "slice": ("slice", [IMAGE], [], [(1, 4, 6, 4)],
              {"options": {"begin": (0, 2, 0, 0), "strides": (1, 1, 1, 1)}}),
    "strided slice": ("slice", [IMAGE], [], [(1, 4, 3, 4)],
                      {"options": {"begin": (0, 1, 0, 0), "strides": (1, 2, 2, 1)}}),
    "pad": ("pad", [IMAGE], [], [(1, 10, 9, 4)],
            {"options": {"paddings": ((0, 0), (1, 1), (1, 2), (0, 0)), "mode": "constant",
                         "value": 0.0}}),
    "mirror pad": ("pad", [IMAGE], [], [(1, 10, 6, 4)],
                   {"options": {"paddings": ((0, 0), (1, 1), (0, 0), (0, 0)), "mode": "mirror",
                                "value": 0.0}}),
    "flatten": ("reshape", [IMAGE], [], [(1, 192)], {}),
    "unflatten": ("reshape", [(1, 192)], [], [IMAGE], {}),
    "transpose": ("transpose", [IMAGE], [], [(1, 6, 8, 4)], {"options": {"perm": (0, 2, 1, 3)}}),
    "softmax": ("softmax", [VECTOR], [], [VECTOR], {"options": {"axis": 1, "beta": 1.0}}),
    "logistic": ("logistic", [IMAGE], [], [IMAGE], {}),
    "relu": ("relu", [IMAGE], [], [IMAGE], {}),
    "relu6": ("relu6", [IMAGE], [], [IMAGE], {}),
    "tanh": ("tanh", [VECTOR], [], [VECTOR], {}),
    "hard swish": ("hard_swish", [IMAGE], [], [IMAGE], {}),
    "leaky relu": ("leaky_relu", [IMAGE], [], [IMAGE], {"options": {"alpha": 0.125}}),
    "prelu": ("prelu", [IMAGE], [(4,)], [IMAGE], {}),
    "nearest": ("resize_nearest", [IMAGE], [], [(1, 16, 12, 4)],
                {"options": {"align_corners": False, "half_pixel_centers": True}}),
    "bilinear": ("resize_bilinear", [IMAGE], [], [(1, 16, 12, 4)],
                 {"options": {"align_corners": True, "half_pixel_centers": False}}),
    "matmul": ("batch_matmul", [(1, 4, 3), (1, 3, 5)], [], [(1, 4, 5)],
               {"options": {"adj_x": False, "adj_y": False}}),
}


def made(case, dtype):
    op, inputs, constants, outputs, layer = LAYERS[case]
    weights = [tensor(shape, dtype if place == 0 or dtype == "float32" else "int32", "random")
               for place, shape in enumerate(constants)]
    # An .onnx file keeps scales in the conversions, which a lone reshape has none of.
    scale = None if op == "reshape" else QUANTIZED
    return one_layer(
        op, [*(tensor(shape, dtype, quantization=scale) for shape in inputs), *weights],
        [tensor(shape, dtype, quantization=scale) for shape in outputs], **dict(layer))


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("case", LAYERS)
def test_every_operator_comes_back(case, dtype, suffix, tmp_path):
    graph = made(case, dtype)
    assert_same_graph(graph, read_back(graph, tmp_path, suffix))


@pytest.mark.parametrize("op, shape, made_shape, options", [
    ("softmax", IMAGE, IMAGE, {"axis": 1, "beta": 1.0}),
    ("softmax", (1, 3, 6), (1, 3, 6), {"axis": 1, "beta": 1.0}),
    ("pad", IMAGE, (1, 9, 8, 4), {"paddings": ((0, 0), (1, 0), (0, 2), (0, 0)),
                                  "mode": "constant", "value": 1.5})])
def test_onnx_options_come_back(op, shape, made_shape, options, tmp_path):
    """An axis other than the last, a value other than zero; names of tensors, too."""
    graph = one_layer(op, [tensor(shape, "float32", name="x")],
                      [tensor(made_shape, "float32", name="y")], options=options)
    back = read_back(graph, tmp_path, "onnx")
    assert_same_graph(graph, back)
    assert [one.name for one in back.tensors] == ["x", "y"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_type_conversions_come_back(suffix, tmp_path):
    into = one_layer("quantize", [tensor(IMAGE, "float32")], [tensor(IMAGE)])
    again = one_layer("quantize", [tensor(IMAGE, "uint8")], [tensor(IMAGE)])
    out = one_layer("dequantize", [tensor(IMAGE)], [tensor(IMAGE, "float32")])
    for graph in (into, again, out):
        assert_same_graph(graph, read_back(graph, tmp_path, suffix))


def test_svdf_comes_back_with_its_state(tmp_path):
    graph = one_layer("svdf", [tensor((1, 10), name="x"), tensor((8, 10), data="random"),
                               tensor((8, 6), data="random"),
                               tensor((4,), "int32", "random"), tensor((1, 48), name="state")],
                      [tensor((1, 4), name="y")], options={"rank": 2}, activation="relu")
    graph = type(graph)(**{**{key: getattr(graph, key) for key in (
        "name", "source", "sha256", "tensors", "layers", "outputs")}, "inputs": (0,)})
    back = read_back(graph, tmp_path, "tflite")
    assert_same_graph(graph, back)
    assert [back.tensors[i].name for i in list_states(back)] == ["state"]


def test_the_same_graph_gives_the_same_bytes():
    assert encode_tflite(zoo.build("kws")) == encode_tflite(zoo.build("kws"))


def test_the_same_graph_gives_the_same_onnx_bytes():
    assert encode_onnx(zoo.build("kws")) == encode_onnx(zoo.build("kws"))


@pytest.mark.parametrize("graph, suffix, message", [
    (conv_graph(window=Window(kernel=(3, 3), padding=(2, 0, 1, 1))), "tflite",
     r"layer 0 conv_2d 't3': padding \(2, 0, 1, 1\) cannot be written as .tflite"),
    (one_layer("copy", [tensor(VECTOR)], [tensor(VECTOR)]), "tflite", "copy 't1' cannot be"),
    (one_layer("copy", [tensor(VECTOR)], [tensor(VECTOR)]), "onnx", "copy 't1' cannot be"),
    (conv_graph("int16"), "onnx", "type int16, int64"),
    (conv_graph(), "pb", "accepted: .tflite, .onnx")])
def test_what_a_format_cannot_say_is_refused_and_nothing_written(graph, suffix, message,
                                                                 tmp_path):
    path = tmp_path / f"made.{suffix}"
    path.write_bytes(b"older")
    with pytest.raises(ModelError, match=message):
        write_model(graph, path)
    assert path.read_bytes() == b"older" and list(tmp_path.iterdir()) == [path]


def test_an_unwritable_place_leaves_nothing_behind(tmp_path):
    with pytest.raises(ModelError, match="cannot be written"):
        write_model(conv_graph(), tmp_path / "no" / "folder.tflite")
    (tmp_path / "taken.tflite").mkdir()
    with pytest.raises(ModelError, match="cannot be written"):
        write_model(conv_graph(), tmp_path / "taken.tflite")
    assert [path.name for path in tmp_path.iterdir()] == ["taken.tflite"]


@pytest.mark.parametrize("name", ["kws", "ic", "vww", "ad", "sww"])
def test_written_tflite_files_run(name, tmp_path):
    interpreter_module = pytest.importorskip(
        "ai_edge_litert.interpreter", reason="no TensorFlow Lite interpreter is installed")
    graph = zoo.build(name)
    write_model(graph, tmp_path / "made.tflite")
    interpreter = interpreter_module.Interpreter(str(tmp_path / "made.tflite"))
    interpreter.allocate_tensors()
    interpreter.invoke()
    (output,) = interpreter.get_output_details()
    assert tuple(output["shape"]) == graph.tensors[graph.outputs[0]].shape
    assert np.ptp(interpreter.get_tensor(output["index"]).astype(int)) > 0
