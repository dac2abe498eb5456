"""Zoo networks against published figures of the architectures."""

import json
from pathlib import Path

import numpy as np
import pytest
from made_graphs import MLPERF_TINY, model_file, needs_models

import calibration
from twin.errors import ModelError
from twin.network import zoo
from twin.network.operators import graph_macs, graph_parameters
from twin.network.readers import read_model
from twin.network.readers.verification import verify_graph
from twin.network.zoo import networks

LAYER_LISTS = Path(calibration.__file__).parent / "datasets" / "stm32_zoo" / "layers"


@pytest.mark.parametrize("name, macs, parameters", [
    # MLPerf Tiny reference models: counted in the files of mlcommons/tiny at 1afd2c98.
    ("kws", 2_656_768, 22_604), ("ic", 12_501_632, 77_706), ("vww", 7_489_664, 210_850),
    ("ad", 264_192, 265_864), ("sww", 826_368, 46_883),
    ("ds_cnn", 2_656_768, 22_604), ("resnet8", 12_501_632, 77_706),
    ("autoencoder", 264_192, 265_864)])
def test_mlperf_tiny_networks_count_as_their_files(name, macs, parameters):
    graph = verify_graph(zoo.build(name))
    assert (graph_macs(graph), graph_parameters(graph)) == (macs, parameters)


def _batch_norm_channels(graph):
    return sum(graph.layer_outputs(layer)[0].shape[-1] for layer in graph.layers
               if layer.op in ("conv_2d", "depthwise_conv_2d"))


def test_mobilenet_v1_counts_as_published():
    graph = verify_graph(zoo.build("mobilenet_v1_1.0_224"))
    assert round(graph_macs(graph) / 1e6) == 569  # Howard et al. 2017, table 8
    # keras.applications.MobileNet: 4,253,864 parameters, of which a folded batch normalisation
    # leaves one of four per channel.
    assert graph_parameters(graph) + 3 * _batch_norm_channels(graph) == 4_253_864


def test_mobilenet_v2_counts_as_published():
    graph = verify_graph(zoo.build("mobilenet_v2_1.0_224"))
    assert round(graph_macs(graph) / 1e9, 3) == 0.301  # torchvision, MobileNet_V2_Weights _ops
    # torchvision's 3,504,872 count two values per normalised channel, folding leaves one.
    assert graph_parameters(graph) + _batch_norm_channels(graph) == 3_504_872


def test_squeezenet_counts_as_published():
    graph = verify_graph(zoo.build("squeezenet1.1"))
    assert round(graph_macs(graph) / 1e9, 3) == 0.349  # torchvision, SqueezeNet1_1_Weights _ops
    assert graph_parameters(graph) == 1_235_496  # torchvision, num_params


@pytest.mark.parametrize("file, build", [
    ("mobilenet_v1_0.25_224_fft_int8__3ba588edd9",
     lambda: networks.mobilenet_v1("x", 0.25, 224, 101)),
    ("mobilenet_v1_0.5_224_fft_int8__7c641c7ae6", lambda: networks.mobilenet_v1("x", 0.5, 224, 39)),
    ("mobilenet_v1_0.25_96_fft_int8__acc0f0e2f6", lambda: networks.mobilenet_v1("x", 0.25, 96, 5)),
    ("squeezenetv1.1_224_tfs_int8__07957ed169", lambda: networks.squeezenet("x", 224, 39)),
    ("squeezenet_v1.1_128_int8__6826910d55", lambda: networks.squeezenet("x", 128, 101))])
def test_other_widths_and_resolutions_count_as_the_model_zoo_of_st(file, build):
    stated = json.loads((LAYER_LISTS / f"{file}.json").read_text())
    graph = build()
    assert (graph_macs(graph), graph_parameters(graph)) == (stated["macs"], stated["params"])


def test_vww_keeps_its_live_channels():
    graph = zoo.build("vww")
    for index, live in zip(range(10, 27, 2), (60, 106, 57, 30, 19, 17, 27, 31, 22), strict=True):
        weights = graph.tensors[graph.layers[index].inputs[1]].data
        alive = weights.reshape(len(weights), -1).any(axis=1)
        assert alive.sum() == live
        reader = graph.layers[index + 2 if index < 26 else 29]
        read = graph.tensors[reader.inputs[1]].data
        assert not read[..., ~alive].any()


@needs_models
@pytest.mark.parametrize("name", MLPERF_TINY)
def test_the_five_have_the_architecture_of_the_reference_files(name):
    assert zoo.build(name).architecture_id == read_model(model_file(name)).architecture_id


def test_a_shallower_mobilenet_lacks_the_last_blocks_that_keep_their_shape():
    whole = zoo.build("mobilenet_v1_0.25_32")

    def blocks(graph):
        convs = [layer for layer in graph.layers if layer.op == "depthwise_conv_2d"]
        return [(graph.input(one).shape, graph.output(graph.layers[one.index + 1]).shape)
                for one in convs]

    for depth in range(*networks.MOBILENET_V1_DEPTHS):
        kept = blocks(whole)
        for _ in range(13 - depth):
            last = max(place for place, (read, wrote) in enumerate(kept) if read == wrote)
            del kept[last]
        assert blocks(networks.mobilenet_v1("x", 0.25, 32, blocks=depth)) == kept


def test_the_same_name_builds_the_same_graph_and_another_name_does_not():
    first, second, other = zoo.build("kws"), zoo.build("kws"), zoo.build("ds_cnn")
    assert first.sha256 == second.sha256 != other.sha256
    assert first.architecture_id == other.architecture_id
    np.testing.assert_array_equal(first.tensors[1].data, second.tensors[1].data)


def test_names_are_known_in_any_width_and_resolution():
    assert all(zoo.is_known(name) for name in zoo.NAMES)
    assert zoo.is_known("mobilenet_v2_0.75_160") and not zoo.is_known("mobilenet_v3_1.0_224")
    with pytest.raises(ModelError, match="did you mean"):
        zoo.build("mobilenet_v3_1.0_224")


def test_efficientnet_counts_as_published():
    graph = verify_graph(zoo.build("efficientnet_lite0"))
    # timm, efficientnet_lite0: 4,652,008 parameters, two values per normalised channel.
    assert graph_parameters(graph) + _batch_norm_channels(graph) == 4_652_008
    assert round(graph_macs(graph) / 1e9, 1) == 0.4


def test_detectors_count_as_published():
    first = verify_graph(zoo.build("ssd_mobilenet_v1_1.0_300"))
    # Howard et al. 2017, table 13: 1.2 billion mult-adds, 6.8 million parameters.
    assert round(graph_macs(first) / 1e9, 1) == 1.2
    assert round(graph_parameters(first) / 1e6, 1) == 6.8
    # 19 x 19 positions of three boxes, then maps halved down to one position of six.
    assert first.tensors[first.layers[-1].inputs[2]].shape == (1917, 4)
    second = verify_graph(zoo.build("ssdlite_mobilenet_v2_1.0_320"))
    # Sandler et al. 2018, table 6: 0.8 billion, 4.3 million.
    assert round(graph_macs(second) / 1e9, 1) == 0.8
    assert graph_parameters(second) == pytest.approx(4.3e6, rel=0.05)


def test_the_keyword_transformer_counts_as_published():
    # Berg et al. 2021, table 1: 607 thousand parameters; places and normalisations are constants.
    graph = verify_graph(zoo.build("kwt1"))
    assert graph_parameters(graph) == pytest.approx(607e3, rel=0.01)
