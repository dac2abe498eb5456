"""ESP-DL's files: nodes become layers, and what is no such file is refused in one line."""

import pytest

import twin
from tests.made.made_espdl import EspDl, small_model
from twin.errors import ModelError
from twin.network.operators import graph_macs
from twin.network.readers import read_model


def written(tmp_path, content, name="net.espdl"):
    (tmp_path / name).write_bytes(content)
    return tmp_path / name


@pytest.fixture
def content():
    return small_model().finish(["image"], ["out"])


def test_nodes_become_layers_of_their_shapes_and_scales(tmp_path, content):
    graph = read_model(written(tmp_path, content))
    assert [layer.op for layer in graph.layers] == [
        "conv_2d", "depthwise_conv_2d", "prelu", "slice", "slice", "concatenation", "mean",
        "transpose", "reshape", "fully_connected"]
    first = graph.layers[0]
    assert (first.activation, first.window.padding) == ("relu", (1, 1, 1, 1))
    assert graph.tensors[first.inputs[1]].shape == (24, 3, 3, 3)
    assert graph.tensors[first.outputs[0]].quantization.scales == (2.0 ** -7,)
    assert graph.layers[4].option("begin", ()) == (0, 0, 0, 8)
    assert graph_macs(graph) == 64 * 27 * 24 + 16 * 9 * 24 + 240
    assert graph.name == "net" and "for times, not results" in graph.notes[0]


def test_the_first_bytes_say_what_it_is(tmp_path, content):
    assert read_model(written(tmp_path, content, "net.bytes")).layers


def test_a_file_is_predicted_on_both_chips_and_refused_on_others(tmp_path, content):
    path = written(tmp_path, content)
    for board in ("esp32s3_devkitc", "esp32p4_function_ev"):
        assert twin.predict(twin.deploy(path, board, runtime="esp-dl")).time_us > 0
        assert twin.deploy(path, board).runtime.name == "esp-dl"     # a file of its own
    for named in ({"runtime": "esp-dl"}, {}):
        with pytest.raises(twin.errors.RuntimeRefusedError, match="of ESP32-S3 and ESP32-P4"):
            twin.predict(twin.deploy(path, "esp32c3_devkitm", **named))


@pytest.mark.parametrize(("change", "message"), [
    (lambda one: one[:4] + b"\1" + one[5:], "is encrypted; accepted: the .espdl exported"),
    (lambda one: b"EDL9" + one[4:], "no ESP-DL model of version 2"),
    (lambda one: one[:300], "malformed at"),
    (lambda one: one[:16], "malformed at header"),
])
def test_damaged_files_are_refused(tmp_path, content, change, message):
    with pytest.raises(ModelError, match=message) as refused:
        read_model(written(tmp_path, change(content)))
    assert "\n" not in str(refused.value)


def test_no_cut_of_a_file_ends_otherwise_than_in_one_line(tmp_path, content):
    for end in range(16, len(content), 97):
        with pytest.raises(ModelError) as refused:
            read_model(written(tmp_path, content[:end]))
        assert "\n" not in str(refused.value)


def test_unknown_nodes_are_listed_or_assumed(tmp_path):
    model = EspDl()
    model.value("in", (1, 4, 4, 2))
    model.value("out", (1, 4, 4, 2))
    model.node("InsertZeros", ["in"], ["out"])
    path = written(tmp_path, model.finish(["in"], ["out"]))
    with pytest.raises(ModelError, match="0 InsertZeros"):
        read_model(path)
    (layer,) = read_model(path, assume_unsupported="copy").layers
    assert layer.op == "copy" and layer.assumed
