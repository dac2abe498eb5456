"""Files as exporters write them (`tests/exports`), whole and damaged."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from made_loops import Subgraph, write_subgraphs
from made_onnx import described, node, numpy_helper, onnx, save, weights
from typer.testing import CliRunner

import twin
from hwmodels.quantities import format_time
from twin.api.commands.predict import describe_numbers
from twin.api.live.reading import Reader
from twin.cli import app
from twin.deployment.deploy import deploy
from twin.errors import ModelError, RuntimeRefusedError
from twin.network.operators import graph_macs, graph_parameters, list_states
from twin.network.readers import read_model
from twin.pricing.inference import predict

EXPORTS = Path(__file__).parents[2] / "exports"
CNN = ["conv_2d relu", "max_pool_2d", "reshape", "fully_connected", "softmax"]


@pytest.mark.parametrize(("file", "dtype"), [
    ("cnn_qop_s8.onnx", "int8"), ("cnn_qop_u8.onnx", "uint8")])
def test_integer_operators_that_end_in_softmax_are_read(file, dtype):
    graph = read_model(EXPORTS / file)
    assert described(graph) == ["quantize", "conv_2d", *CNN[1:], "dequantize"]
    assert graph.output(graph.layers[-2]).dtype == dtype
    assert predict(deploy(graph, "nucleo_u575zi_q")).time_us > 0


@pytest.mark.parametrize("file", ["cnn_batch.onnx", "torch_cnn.onnx", "torch_attention.onnx"])
def test_an_open_batch_is_bound_to_one_and_said(file):
    graph = read_model(EXPORTS / file)
    assert all(graph.tensors[i].shape[0] == 1 for i in (*graph.inputs, *graph.outputs))
    assert [note for note in graph.notes if "'batch' of 'x' is open and taken to be 1" in note]
    assert predict(deploy(graph, "nucleo_u575zi_q")).time_us > 0


def test_other_open_dimensions_are_refused(tmp_path):
    for shape in ([1, "n"], ["b", "n"], ["n"]):
        path = save(tmp_path, [node("Relu", "x", "y")], {"x": shape}, {"y": shape}, {})
        with pytest.raises(ModelError, match=r"dynamic shape .*'n'"):
            read_model(path)


def test_weights_beside_the_model_are_its_own():
    beside = read_model(EXPORTS / "cnn_external.onnx")
    assert described(beside) == CNN
    stored = np.fromfile(EXPORTS / "oext.onnx.data", np.float32, 4 * 2 * 3 * 3)
    kernel = beside.tensors[beside.layers[0].inputs[1]].data
    assert np.array_equal(kernel, stored.reshape(4, 2, 3, 3).transpose(0, 2, 3, 1))


def external(folder, name="v", **changed):
    """A copy of the model, one of its tensors stated in another way."""
    model = onnx.load(EXPORTS / "cnn_external.onnx", load_external_data=False)
    stated = next(t for t in model.graph.initializer if t.name == name).external_data
    for entry in stated:
        entry.value = changed.get(entry.key, entry.value)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def _link(folder):
    (folder / "link.data").symlink_to(folder.parent / "secret.data")


EXTERNAL = {
    "missing": ({"location": "none.data"}, None, "'none.data' beside the model: no such file"),
    "a folder": ({"location": "."}, None, "is a directory"),
    "above": ({"location": "../secret.data"}, None, "outside the model's folder"),
    "absolute": ({"location": "/etc/passwd"}, None, "outside the model's folder"),
    "through a link": ({"location": "link.data"}, _link, "outside the model's folder"),
    "too short": ({"offset": "400"}, None, "768 bytes from byte 400 .* the file has 1,100"),
    "before": ({"offset": "-4"}, None, "from byte -4"),
    "another length": ({"length": "760"}, None, "760 are stated"),
    "no number": ({"offset": "first"}, None, "must be whole numbers"),
    "null byte": ({"location": "a\0b"}, None, "null"),
}


@pytest.mark.parametrize("case", EXTERNAL)
def test_weights_beside_are_refused_in_a_line(case, tmp_path):
    changed, prepare, message = EXTERNAL[case]
    (tmp_path / "secret.data").write_bytes(b"\0" * 2000)
    folder = tmp_path / "inside"
    folder.mkdir()
    shutil.copy(EXPORTS / "oext.onnx.data", folder)
    if prepare is not None:
        prepare(folder)
    with pytest.raises(ModelError, match=message) as caught:
        read_model(external(folder, **changed))
    assert "tensor 'v'" in str(caught.value) and "\n" not in str(caught.value)


def test_many_tensors_of_one_file_have_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr("twin.network.readers.onnx_external.LARGEST_BYTES", 1090)
    shutil.copy(EXPORTS / "oext.onnx.data", tmp_path)
    with pytest.raises(ModelError, match="at most 1,090"):
        read_model(external(tmp_path))


def test_an_upload_reaches_no_other_file(tmp_path):
    """Each upload lies in a folder of its own; another's is outside."""
    one, other = tmp_path / ("a" * 64), tmp_path / ("b" * 64)
    one.mkdir()
    other.mkdir()
    shutil.copy(EXPORTS / "oext.onnx.data", other)
    for location, message in ((f"../{other.name}/oext.onnx.data", "outside the model's folder"),
                              ("oext.onnx.data", "no such file")):
        external(one, "w", location=location)
        refused = Reader(tmp_path).answer({"do": "model", "name": f"upload:{one.name}"})
        assert message in refused["refused"] and str(tmp_path) not in refused["refused"]


def test_sparse_weights_are_refused_in_a_line(tmp_path):
    path = save(tmp_path, [node("MatMul", "x v", "y")], {"x": [1, 4]}, {"y": [1, 2]}, {})
    model = onnx.load(path)
    model.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(1, np.float32), "v"),
        numpy_helper.from_array(np.array([3])), [4, 2]))
    onnx.save(model, path)
    with pytest.raises(ModelError, match="tensor 'v' is stored sparse; export with dense"):
        read_model(path)


def test_malformed_is_what_the_checker_rejects(tmp_path):
    bad = save(tmp_path, [node("Relu", "x", "y", slope=0.1)], {"x": [1, 4]}, {"y": [1, 4]}, {})
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(str(bad))
    with pytest.raises(ModelError, match="malformed: Unrecognized attribute"):
        read_model(bad)
    odd = save(tmp_path, [node("MatMul", "x v", "y")], {"x": [1, 4]}, {"y": [1, 2]},
               {"v": weights(5, 2)})
    onnx.checker.check_model(str(odd))
    with pytest.raises(ModelError, match="MatMul 'y': inputs do not fit: "):
        read_model(odd)
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(ModelError, match="not an ONNX file"):
        read_model(tmp_path / "text.onnx")


@pytest.mark.parametrize(("file", "macs"), [
    ("cnn_dyn_s8.onnx", 64 * 4 * 18 + 64 * 3), ("mlp_dyn_pc.onnx", 16 * 8 + 8 * 4),
    ("lstm_dyn_s8.onnx", 20 * 32 * (6 + 8) + 8 * 3)])
def test_integers_found_at_run_time_are_read_and_refused_with_what_to_export(file, macs):
    graph = read_model(EXPORTS / file)
    kept = [tensor for tensor in graph.tensors if tensor.quantization is not None]
    assert kept and all(weights.dtype == "int8" for weights in kept) and graph_macs(graph) == macs
    with pytest.raises(RuntimeRefusedError, match="quantize_static") as caught:
        deploy(graph, "nucleo_u575zi_q")
    assert "layer 0" in str(caught.value) and "batch" not in str(caught.value)


def test_a_dynamic_lstm_with_scales_by_channel_says_what_to_export():
    with pytest.raises(ModelError, match="quantize_dynamic without per_channel, quantize_static"):
        read_model(EXPORTS / "lstm_dyn_pc.onnx")


@pytest.mark.parametrize("file", ["attention_float.tflite", "attention_int8.tflite"])
def test_shapes_left_open_inside_follow_from_the_input(file):
    graph, frozen = read_model(EXPORTS / file), read_model(EXPORTS / "attention_frozen.tflite")
    assert graph_macs(graph) == graph_macs(frozen)
    products = {graph.output(layer).shape for layer in graph.layers
                if layer.op == "fully_connected"}
    assert {(8, 16), (8, 4)} <= products
    (note,) = graph.notes
    assert "stored as [1, 1], follow from the input ([8, 16])" in note and not frozen.notes
    assert predict(deploy(graph, "nucleo_u575zi_q")).time_us > 0


def test_shapes_that_do_not_follow_are_refused(tmp_path):
    """Other axes are gathered into the amounts of a reshape, which then do not fit."""
    content = (EXPORTS / "attention_float.tflite").read_bytes()
    axes = [np.array([8, 0, axis], "<i4").tobytes() for axis in (1, 2)]  # length in bytes first
    assert axes[0] in content
    (tmp_path / "a.tflite").write_bytes(content.replace(*axes))
    with pytest.raises(ModelError, match=r"operator \d+ [A-Z_]+: tensor \d+ .*dynamic shape \[-1"):
        read_model(tmp_path / "a.tflite")


def test_weights_in_variables_nobody_fills_are_counted_and_said():
    lost, frozen = read_model(EXPORTS / "conv_variables.tflite"), read_model(
        EXPORTS / "conv_frozen.tflite")
    # The converter drops biases of zero from the frozen network.
    assert graph_parameters(lost) == graph_parameters(frozen) + 4 + 4 + 8 + 3
    (note,) = lost.notes
    assert "weights missing: operator 8 READ_VARIABLE and 7 more" in note and "13,404 bytes" in note
    flash = [deploy(graph, "nucleo_u575zi_q").flash_bytes for graph in (lost, frozen)]
    assert 0 <= flash[0] - flash[1] < 200
    assert len(list_states(lost)) == 8


def test_a_state_is_filled_from_the_file_and_has_one_home():
    graph = read_model(EXPORTS / "stream.tflite")
    assert described(graph).count("read_variable") == 2 and not graph.notes
    assert len(list_states(graph)) == 1
    reads = [layer.inputs for layer in graph.layers if layer.op == "read_variable"]
    assert reads[0] == reads[1] and graph.tensors[reads[0][1]].is_constant


def test_a_variable_of_open_size_is_refused(tmp_path):
    main = Subgraph()
    name = main.operator("VAR_HANDLE", [], (), dtype="resource", table="VarHandleOptions")
    weights = main.operator("READ_VARIABLE", [name], (4, 0))
    main.outputs = [main.operator("FULLY_CONNECTED", [main.input((1, 4)), weights], (1, 4),
                                  table="FullyConnectedOptions")]
    with pytest.raises(ModelError, match=r"READ_VARIABLE: tensor .*dynamic shape \[4, -1\]"):
        read_model(write_subgraphs(tmp_path / "a.tflite", [main]))


def test_numbers_beside_int8_say_what_they_cost():
    unsigned = deploy(EXPORTS / "cnn_qop_u8.onnx", "nucleo_u575zi_q")
    packed = deploy("kws", "nucleo_u575zi_q", runtime="cmsis-nn@6.0").replace(
        {"network.weights": "int4"})
    for deployment, name, path in ((unsigned, "uint8", "network.precision"),
                                   (packed, "int4", "network.weights")):
        prediction = twin.predict(deployment)
        other = twin.predict(deployment.replace({path: "int8"}))
        (line,) = describe_numbers(deployment)
        assert line == (f"numbers: {name} takes {prediction.time_us / other.time_us:.2g} times as "
                        f"long as int8, {format_time(other.time_us)}: --set {path}=int8")
        assert describe_numbers(other.deployment) == ()
        assert twin.check(deployment, max_ms=1e3).remarks[0] == line
        assert line in twin.report(deployment, changes=False)
    large = deploy("ic", "nucleo_u575zi_q", runtime="cmsis-nn@6.0").replace(
        {"network.weights": "int4"})
    assert describe_numbers(large) == ()


@pytest.mark.parametrize("words", [
    ("predict",), ("sweep",), ("select", "--no-advice", "--runtime", "default"),
    ("check", "--max-ms", "1"), ("advise", "--max-ms", "1", "--effort", "setting"),
    ("predict", "-b", "nucleo_l4r5zi"), ("whatif", "--set", "clocks.cpu.frequency_hz=80MHz")])
def test_every_command_says_what_numbers_cost(words):
    ended = CliRunner().invoke(app, [words[0], str(EXPORTS / "cnn_qop_u8.onnx"), "-b",
                                     "nucleo_u575zi_q", *words[1:]])
    assert "numbers: uint8 takes " in ended.stderr
