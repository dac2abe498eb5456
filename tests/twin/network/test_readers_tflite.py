"""The .tflite reader: what it reads, and that everything else is a ModelError."""

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_graphs import (
    QUANTIZED,
    assert_same_graph,
    conv_graph,
    model_file,
    needs_models,
    one_layer,
    tensor,
)

from twin.errors import ModelError, UsageError
from twin.network import zoo
from twin.network.graph import Graph, Layer, Quantization, Tensor, Window
from twin.network.operators import graph_macs, list_states
from twin.network.readers import read_model
from twin.network.rewrites.rewrite import rewrite_network
from twin.network.writers import tflite as writer
from twin.network.writers import write_model
from twin.network.writers.tflite import encode_tflite, write_tflite
from twin.network.writers.tflite_operators import ENCODERS, Encoded


def read_back(graph, folder):
    path = folder / "made.tflite"
    write_tflite(graph, path)
    return read_model(path)


@pytest.mark.parametrize("dtype, weights", [
    ("int8", "int8"), ("int8", "int4"), ("int16", "int8"), ("uint8", "uint8"),
    ("float32", "float32"), ("float32", "int8")])
def test_types_come_back_with_data_and_scales(dtype, weights, tmp_path):
    graph = conv_graph(dtype, weights)
    assert_same_graph(graph, read_back(graph, tmp_path))


def test_float16_weights_stay_behind_their_dequantize(tmp_path):
    stored = tensor((5, 4), "float16", "random", name="stored")
    graph = Graph(
        name="half", source="half", sha256="", inputs=(0,), outputs=(3,),
        tensors=(tensor((1, 4), "float32", name="x"), stored,
                 tensor((5, 4), "float32", name="weights"), tensor((1, 5), "float32", name="y")),
        layers=(Layer(index=0, name="weights", op="dequantize", inputs=(1,), outputs=(2,)),
                Layer(index=1, name="y", op="fully_connected", inputs=(0, 2), outputs=(3,))))
    back = read_back(graph, tmp_path)
    assert [layer.op for layer in back.layers] == ["dequantize", "fully_connected"]
    assert back.tensors[back.layers[0].inputs[0]].dtype == "float16"
    assert graph_macs(back) == 20


def test_lstm_gates_are_stacked(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    gates = {place: random.normal(size=shape).astype(np.float32) for place, shape in
             [(i, (4, 3)) for i in range(1, 5)] + [(i, (4, 4)) for i in range(5, 9)]
             + [(i, (4,)) for i in range(12, 16)]}
    tensors = [Tensor(name="x", shape=(1, 7, 3), dtype="float32")]
    tensors += [Tensor(name=f"gate{i}", shape=v.shape, dtype="float32", data=v)
                for i, v in gates.items()]
    tensors += [Tensor(name=name, shape=(1, 4), dtype="float32") for name in ("h", "c")]
    tensors += [Tensor(name="y", shape=(1, 7, 4), dtype="float32")]
    at = dict(zip(gates, range(1, 13), strict=True)) | {0: 0, 18: 13, 19: 14}
    graph = Graph(name="lstm", source="lstm", sha256="", tensors=tuple(tensors), inputs=(0,),
                  outputs=(15,), layers=(Layer(index=0, name="y", op="lstm", inputs=(0,),
                                               outputs=(15,)),))
    monkeypatch.setitem(ENCODERS, "lstm", lambda step: Encoded(
        builtin="UNIDIRECTIONAL_SEQUENCE_LSTM", outputs=(15,),
        inputs=tuple(at.get(place, -1) for place in range(24))))
    back = read_back(graph, tmp_path)
    data, weights, recurrent, bias, *_ = back.layer_inputs(back.layers[0])
    np.testing.assert_array_equal(weights.data, np.concatenate([gates[i] for i in (1, 2, 3, 4)]))
    np.testing.assert_array_equal(recurrent.data, np.concatenate([gates[i] for i in range(5, 9)]))
    assert bias.shape == (16,) and data.shape == (1, 7, 3)
    assert list_states(back) == back.layers[0].inputs[4:]
    assert graph_macs(back) == 7 * (16 * 3 + 16 * 4)


def _encoded_as(monkeypatch, builtin, inputs=None):
    monkeypatch.setitem(ENCODERS, "relu", lambda step: Encoded(
        builtin=builtin, inputs=inputs or step.layer.inputs, outputs=step.layer.outputs))


def _relu_graph():
    return one_layer("relu", [tensor((1, 4), name="x")], [tensor((1, 4), name="y")])


def test_unknown_operators_are_all_listed_or_assumed_copies(tmp_path, monkeypatch):
    graph = _relu_graph()
    second = Layer(index=1, name="z", op="relu", inputs=(1,), outputs=(2,))
    graph = replace(graph, tensors=(*graph.tensors, tensor((1, 4), name="z")), outputs=(2,),
                    layers=(*graph.layers, second))
    _encoded_as(monkeypatch, "RANK")
    path = tmp_path / "made.tflite"
    write_tflite(graph, path)
    with pytest.raises(ModelError, match=r"made.tflite: 2 operators .* 0 RANK, 1 RANK") as caught:
        read_model(path)
    assert caught.value.exit_code == 3
    copied = read_model(path, assume_unsupported="copy")
    assert [(layer.op, layer.assumed, layer.option("of")) for layer in copied.layers] == [
        ("copy", True, "RANK")] * 2
    with pytest.raises(UsageError, match="accepted: copy"):
        read_model(path, assume_unsupported="guess")


def test_operators_that_run_subgraphs_are_named(tmp_path, monkeypatch):
    _encoded_as(monkeypatch, "STABLEHLO_SORT")
    with pytest.raises(ModelError, match="operator 0 STABLEHLO_SORT runs another subgraph"):
        read_back(_relu_graph(), tmp_path)


def test_shape_arithmetic_is_left_out(tmp_path, monkeypatch):
    shape = Tensor(name="shape", shape=(2,), dtype="int32")
    graph = Graph(
        name="made", source="", sha256="", inputs=(0,), outputs=(2,),
        tensors=(tensor((1, 4), name="x"), shape, tensor((1, 4), name="y")),
        layers=(Layer(index=0, name="shape", op="relu", inputs=(0,), outputs=(1,)),
                Layer(index=1, name="y", op="tanh", inputs=(0,), outputs=(2,))))
    _encoded_as(monkeypatch, "SHAPE")
    monkeypatch.setitem(ENCODERS, "tanh", lambda step: Encoded(
        builtin="RESHAPE", inputs=(0, 1), outputs=(2,)))
    back = read_back(graph, tmp_path)
    assert [layer.op for layer in back.layers] == ["reshape"]
    assert len(back.tensors) == 2


def _with_signature(monkeypatch, signature):
    def write(builder, tensor, buffer, variable):
        name = builder.CreateString(tensor.name)
        shape = writer._integers(builder, tensor.shape)
        open_shape = writer._integers(builder, signature)
        return writer._table(builder, "Tensor", shape=shape, name=name, buffer=buffer,
                             type=9, shape_signature=open_shape)

    monkeypatch.setattr(writer, "_write_tensor", write)


def test_open_batch_of_one_is_read(tmp_path, monkeypatch):
    _with_signature(monkeypatch, (-1, 4))
    assert read_back(_relu_graph(), tmp_path).tensors[0].shape == (1, 4)


@pytest.mark.parametrize("signature", [(1, -1), (-1, -1)])
def test_other_dynamic_dimensions_are_refused(signature, tmp_path, monkeypatch):
    _with_signature(monkeypatch, signature)
    with pytest.raises(ModelError, match=r"operator 0 RELU: tensor \d 'y?x?': dynamic shape"):
        read_back(_relu_graph(), tmp_path)


def test_a_batch_in_a_file_is_one_of_network_batch(tmp_path):
    for name, suffix in (("kws", "tflite"), ("ic", "tflite"), ("kws", "onnx")):
        plain = rewrite_network(read_model(name), {"network.precision": "float32"}
                                if suffix == "onnx" else {})
        changed = rewrite_network(plain, {"network.batch": "3"})
        write_model(changed, tmp_path / f"b.{suffix}")
        read = read_model(tmp_path / f"b.{suffix}")
        assert [layer.op for layer in read.layers] == [layer.op for layer in changed.layers]
        assert all(read.layer_outputs(one)[0].shape == changed.layer_outputs(other)[0].shape
                   for one, other in zip(read.layers, changed.layers, strict=True))
        assert read.notes[-1] == "input: a batch of 3; figures are of all 3 inputs"


def test_rows_that_are_no_batch_are_refused_or_said(tmp_path):
    mixed = one_layer("max_pool_2d", [tensor((2, 4, 4, 3))], [tensor((2, 4, 4, 3))],
                      window=Window(kernel=(1, 1)))
    flat = replace(mixed, tensors=(*mixed.tensors, tensor((1, 96))), layers=(*mixed.layers, Layer(
        index=1, name="flat", op="reshape", inputs=(1,), outputs=(2,))), outputs=(2,))
    with pytest.raises(ModelError, match=r"batch 2 of its input: .*export the model with batch 1"):
        read_back(flat, tmp_path)
    rows = read_back(one_layer("relu", [tensor((2, 4))], [tensor((2, 4))]), tmp_path)
    assert rows.tensors[0].shape == (2, 4)  # Rows of a matrix are no batch of images.


def test_a_bias_has_its_scales_along_its_only_axis(tmp_path):
    wrong = Quantization(scales=(0.5,) * 4, zero_points=(0,) * 4, axis=3)
    graph = conv_graph()
    spoilt = replace(graph, tensors=(*graph.tensors[:2], replace(
        graph.tensors[2], quantization=wrong), graph.tensors[3]))
    assert read_back(spoilt, tmp_path).tensors[2].quantization == replace(wrong, axis=0)


WRONG = {
    "output shape": (lambda g: replace(g, tensors=(*g.tensors[:3], replace(
        g.tensors[3], shape=(1, 8, 7, 4)))), "operator 0 conv_2d 't3': output width is 7"),
    "missing bias values": (lambda g: replace(g, tensors=(*g.tensors[:2], replace(
        g.tensors[2], shape=(5,)), g.tensors[3])), "tensor 2 't2': 16 bytes of data, expected 20"),
    "scales": (lambda g: replace(g, tensors=(*g.tensors[:2], replace(
        g.tensors[2], quantization=replace(QUANTIZED, scales=(-1.0,))), g.tensors[3])),
        "tensor 2 't2': scales must be positive"),
    "cycle": (lambda g: replace(g, layers=(replace(g.layers[0], inputs=(3, 1, 2)),)),
              "reads tensor 3 't3' before any operator writes it"),
    "no operators": (lambda g: replace(g, layers=()), "no operators"),
    "absent data": (lambda g: replace(g, layers=(replace(g.layers[0], inputs=(-1, 1, 2)),)),
                    "input 0 is missing"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_graphs_are_refused_by_name(case, tmp_path):
    spoil, message = WRONG[case]
    good = conv_graph()
    path = tmp_path / "made.tflite"
    try:
        write_tflite(spoil(good), path)
    except AssertionError:
        pytest.fail("the writer cannot make this file")
    with pytest.raises(ModelError) as caught:
        read_model(path)
    assert message in str(caught.value) and str(path) in str(caught.value)


def test_files_that_are_no_models(tmp_path):
    empty, short, other = (tmp_path / name for name in ("e.tflite", "s.tflite", "o.tflite"))
    empty.touch()
    short.write_bytes(b"\0\0\0\0TFL3")
    other.write_bytes(b"PK\3\4 a zip file, perhaps")
    huge = tmp_path / "huge.tflite"
    huge.touch()
    os.truncate(huge, 2**31)  # sparse: takes no room
    (tmp_path / "folder.tflite").mkdir()
    for path, message in ((empty, "file is empty"), (short, "no subgraph"),
                          (other, "not a TensorFlow Lite file"),
                          (huge, "2,147,483,648 bytes; at most"),
                          (tmp_path / "folder.tflite", "a directory"),
                          (tmp_path / "none.tflite", "no such file")):
        with pytest.raises(ModelError, match=message) as caught:
            read_model(path)
        assert str(path) in str(caught.value)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """Content of a written file, and a place to damage it in."""
    return encode_tflite(zoo.build("kws")), tmp_path_factory.mktemp("damaged") / "kws.tflite"


def _graph_or_error(path, content):
    path.write_bytes(content)
    try:
        graph = read_model(path)
    except ModelError as error:
        assert str(path) in str(error)
    else:
        assert isinstance(graph, Graph) and len(graph.architecture_id) == 12


@settings(max_examples=150, derandomize=True)
@given(length=st.integers(0, 43_000))
def test_truncations_give_a_graph_or_a_model_error(damaged, length):
    content, path = damaged
    _graph_or_error(path, content[:length])


@settings(max_examples=250, derandomize=True)
@given(changes=st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 255)), min_size=1,
                        max_size=8), anywhere=st.booleans())
def test_flipped_bytes_give_a_graph_or_a_model_error(damaged, changes, anywhere):
    content, path = damaged
    changed = bytearray(content)
    for place, value in changes:
        # The structure sits in the first kilobytes; weights follow.
        changed[place % (len(changed) if anywhere else 12_000)] = value
    _graph_or_error(path, bytes(changed))


@needs_models
@pytest.mark.parametrize("name", ["kws", "ic", "vww", "ad", "sww"])
def test_reference_files_read_back_after_writing(name, tmp_path):
    graph = read_model(model_file(name))
    assert_same_graph(graph, read_back(graph, tmp_path))


def test_rows_of_vectors_are_said_to_be_read_as_such(tmp_path):
    graph = one_layer("fully_connected", [tensor((64, 32)), tensor((10, 32), "int8", "random"),
                                          tensor((10,), "int32", "random")], [tensor((64, 10))])
    write_tflite(graph, tmp_path / "rows.tflite")
    note, = read_model(tmp_path / "rows.tflite").notes
    assert "[64, 32] is read as 64 rows of 32" in note and "export [1, 32]" in note
