"""The runtime a network gets, what is said of it, and what no runtime runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hwmodels.quantities import join_words
from twin.deployment.deployment import deploy
from twin.errors import DoesNotFitError, RuntimeRefusedError
from twin.network import zoo
from twin.network.graph import Graph
from twin.prediction.document import to_document
from twin.prediction.prediction import predict
from twin.reports.tables.report import header_pairs
from twin.runtimes import list_runtimes, load_runtime
from twin.runtimes.runtime import order_release

BOARD = "nucleo_l4r5zi"


def retyped(graph: Graph, indices, **changes) -> Graph:
    tensors = list(graph.tensors)
    for index in indices:
        tensors[index] = replace(tensors[index], **changes)
    return replace(graph, tensors=tuple(tensors))


@pytest.fixture(scope="module")
def kws():
    return zoo.build("kws")


def test_the_default_of_every_runtime_is_its_latest_release():
    names = {identity.partition("@")[0] for identity in list_runtimes()}
    for name in names - {"firmware"}:  # its versions are levels of optimisation
        releases = [one for one in list_runtimes() if one.startswith(f"{name}@")]
        # Counted releases have no learnt prices yet: asked for by name.
        latest = [one for one in releases if load_runtime(one).counted is None][-1]
        assert load_runtime(name).identity == latest
    assert load_runtime("x-cube-ai").version == "10.2.0"


def test_releases_are_ordered_as_versions():
    assert sorted(["a@10.0.0", "a@9.0.0", "a@9.1"], key=order_release) == [
        "a@9.0.0", "a@9.1", "a@10.0.0"]


def test_a_name_without_its_version_is_refused():
    with pytest.raises(RuntimeRefusedError, match=r"names no version; accepted: x-cube-ai for"):
        load_runtime("x-cube-ai@")


def test_a_float_island_is_told_with_its_layers(kws):
    last = kws.layers[-1]
    island = retyped(kws, (*last.inputs, *last.outputs), dtype="float32", quantization=None)
    prediction = predict(deploy(island, BOARD))
    assert "2 of 13 layers compute in float32 (11 fully_connected, 12 softmax)" in \
        prediction.warnings[0]
    assert prediction.deployment.runtime.name == "tflm-cmsis-nn"
    assert [layer.index for layer in prediction.layers if layer.assumed] == [11, 12]
    whole = predict(deploy(kws, BOARD))
    assert [layer.cycles for layer in prediction.layers[:10]] == [
        layer.cycles for layer in whole.layers[:10]]
    assert not deploy(kws, BOARD).notes
    assert not deploy(island, BOARD, runtime="float-reference").notes


def test_dynamic_range_models_are_refused_by_layer(kws):
    values = [index for index, tensor in enumerate(kws.tensors) if not tensor.is_constant]
    hybrid = retyped(kws, values, dtype="float32", quantization=None)
    with pytest.raises(RuntimeRefusedError, match=r"layer 0 conv_2d .*dynamic-range"):
        deploy(hybrid, BOARD)


def test_a_batch_within_a_network_is_refused_by_layer(kws):
    layer = kws.layers[4]
    batched = retyped(kws, (layer.inputs[0], layer.outputs[0]), shape=(4, 13, 3, 64))
    with pytest.raises(RuntimeRefusedError, match=r"layer 4 conv_2d .*a batch of 4"):
        deploy(batched, BOARD)


def test_what_does_not_fit_names_all_a_memory_holds():
    large = zoo.build("mobilenet_v2_1.0_224")
    with pytest.raises(DoesNotFitError, match=r"RAM \(arena, runtime and weights\) needs"):
        deploy(large, BOARD, weights="sram")
    with pytest.raises(DoesNotFitError, match=r"RAM \(arena and runtime\) needs"):
        deploy(large, BOARD)
    assert join_words(["a"]) == "a" and join_words([]) == ""


@pytest.mark.parametrize("weights", ["flash", "sram"])
def test_the_parts_of_ram_sum_to_it(kws, weights):
    prediction = predict(deploy(kws, BOARD, weights=weights))
    document = to_document(prediction)
    assert sum(document["ram_parts"].values()) == document["ram_bytes"] == prediction.ram_bytes
    assert bool(document["ram_parts"]["weights_bytes"]) == (weights == "sram")
    assert 0 < document["scratch_bytes"] <= document["ram_parts"]["arena_bytes"]
    shown = dict(header_pairs(prediction))[""]
    assert f"arena {document['ram_parts']['arena_bytes']:,} (scratch up to 256 of it)" in shown
