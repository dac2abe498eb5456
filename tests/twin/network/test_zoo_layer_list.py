"""Layer lists: shapes in, a connected graph out."""

import json
from pathlib import Path

import pytest

import calibration
from twin.errors import ModelError
from twin.network import zoo
from twin.network.operators import graph_macs, graph_parameters
from twin.network.readers import read_model
from twin.network.rewrites.dead_channels import drop_dead_channels

FOLDER = Path(calibration.__file__).parent / "datasets" / "stm32_zoo" / "layers"
ONE_OF_EACH = sorted({path.name[:14]: path for path in sorted(FOLDER.glob("*.json"))
                      if "params" in json.loads(path.read_text())}.values())


def test_the_lists_are_here():
    assert len(list(FOLDER.glob("*.json"))) == 80


def test_a_list_without_its_outputs_counts_as_stated():
    path = FOLDER / "tiny_yolo_v2_224_int8.json"
    assert graph_macs(read_model(path)) == json.loads(path.read_text())["macs"]


@pytest.mark.parametrize("path", ONE_OF_EACH, ids=lambda path: path.stem)
def test_lists_count_as_stated_and_every_tensor_is_read(path):
    stated = json.loads(path.read_text())
    graph = read_model(path)
    assert graph_macs(graph) == stated["macs"]
    assert graph_parameters(graph) == stated["params"]
    read = {i for layer in graph.layers for i in layer.inputs} | set(graph.outputs)
    assert read == set(range(len(graph.tensors)))
    assert [list(graph.tensors[i].shape) for i in graph.outputs] == [
        shape for shape, _ in stated["outputs"]]
    assert drop_dead_channels(graph) is graph  # random weights leave no dead channels


def test_a_list_of_vww_has_the_architecture_of_vww():
    graph = read_model(FOLDER / "mobilenet_v1_0.25_96_int8__488d74f38f.json")
    assert graph.architecture_id == zoo.build("vww").architecture_id


def _edges(name):
    """Layers each sum adds up, by index of the layer that made the operand."""
    graph = read_model(next(FOLDER.glob(f"{name}__*.json")))
    makers = {i: layer.index for layer in graph.layers for i in layer.outputs}
    return [tuple(makers[i] for i in layer.inputs) for layer in graph.layers
            if layer.op == "add"]


def test_residuals_are_connected_as_in_the_zoo():
    # A quantize comes first in the list, so every index is one more than in resnet8.
    resnet = zoo.build("resnet8")
    makers = {i: layer.index for layer in resnet.layers for i in layer.outputs}
    expected = [tuple(sorted(makers[i] + 1 for i in layer.inputs)) for layer in resnet.layers
                if layer.op == "add"]
    assert _edges("resnet_v1_8_32_tfs_int8") == expected
    # miniresnet: each stack adds its 1x1 shortcut (4, 8, 12, 16) to its last convolution.
    assert _edges("miniresnet_2stacks_64x50_int8") == [(4, 6), (8, 10), (12, 14), (16, 18)]


def test_a_list_may_say_what_a_layer_reads(tmp_path):
    document = json.loads((FOLDER / "st_resnetpico_actrelu_pt_224_int8.json").read_text())
    path = tmp_path / "list.json"
    path.write_text(json.dumps(document))
    graph = read_model(path)
    first = next(layer for layer in graph.layers if layer.op == "add")
    stated = next(entry for entry in document["layers"] if entry["op"] == "ADD")
    makers = {layer.outputs[0]: layer.index for layer in graph.layers}
    assert [makers[i] for i in first.inputs] == stated["from"]
    assert first.activation == "relu"
    pool = next(layer for layer in graph.layers if layer.op == "max_pool_2d")
    assert pool.window.kernel == (3, 3) and any(pool.window.padding)
    for places, said in (([90], "accepted: numbers of layers"), ([-1], "is")):
        document["layers"][3]["from"] = places
        path.write_text(json.dumps(document))
        with pytest.raises(ModelError, match=rf"layer 3 CONV_2D: .*{said}"):
            read_model(path)


def test_a_detectors_anchors_pyramid_and_outputs_are_read():
    graph = read_model(next(FOLDER.glob("ssd_mobilenet_v2_fpnlite*.json")))
    grown = [layer for layer in graph.layers if layer.op in ("tile", "resize_bilinear")]
    assert [graph.output(layer).shape for layer in grown] == [
        (1, 6, 6, 5, 4), (1, 3, 3, 5, 4), (1, 2, 2, 5, 4), (1, 12, 12, 128), (1, 12, 12, 5, 4),
        (1, 24, 24, 128), (1, 24, 24, 5, 4)]
    assert all((graph.input(layer).data is not None) == (layer.op == "tile") for layer in grown)
    joined = [layer for layer in graph.layers if layer.op == "concatenation"]
    assert [(len(layer.inputs), layer.option("axis")) for layer in joined] == [(5, 1)] * 3


@pytest.mark.parametrize("spoil, message", [
    (lambda d: d["layers"].append({"op": "EINSUM", "inp": [], "out": [], "dt": "i8"}),
     "1 operator is not supported: 10 EINSUM"),
    (lambda d: d.update(macs=1), "macs says 1, the layers make"),
    (lambda d: d["layers"][1].update(stride=[1, 1]), "layer 1 CONV_2D: output"),
    (lambda d: d["layers"][1].update(inp=[[1, 7, 7, 7]]), "no tensor of shape"),
    (lambda d: d["layers"][1].pop("w"), "not a layer list: layer 1 CONV_2D: 'w' is missing"),
    (lambda d: d["layers"][1].update(act="SWISH"), "layer 1 CONV_2D: act 'SWISH'; accepted: NONE"),
    (lambda d: d["inputs"][0].__setitem__(1, "i9"), "inputs: type 'i9'; accepted: i8, u8, f32"),
    (lambda d: d.pop("layers"), "not a layer list: 'layers' is missing")])
def test_lists_that_contradict_themselves_are_refused(spoil, message, tmp_path):
    document = json.loads(next(FOLDER.glob("st_mnist*.json")).read_text())
    spoil(document)
    path = tmp_path / "list.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError) as caught:
        read_model(path)
    assert message in str(caught.value) and str(path) in str(caught.value)


def test_unknown_operators_become_assumed_copies_when_asked(tmp_path):
    document = json.loads(next(FOLDER.glob("st_mnist*.json")).read_text())
    document["layers"].append({"op": "EXP", "inp": [[1, 36]], "out": [[1, 36]], "dt": "f32"})
    path = tmp_path / "list.json"
    path.write_text(json.dumps(document))
    last = read_model(path, assume_unsupported="copy").layers[-1]
    assert (last.op, last.assumed, last.option("of")) == ("copy", True, "EXP")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"name": "x"}', "\x00"])
def test_other_json_is_refused(content, tmp_path):
    path = tmp_path / "list.json"
    path.write_text(content)
    with pytest.raises(ModelError, match=r"not a layer list|file is empty"):
        read_model(path)
