"""Rewrites of networks: shapes that hold together, numbers that are what they were, reasons."""

import numpy as np
import pytest

from twin.errors import AlreadySoError, NotApplicableError, UsageError
from twin.network import zoo
from twin.network.arithmetic import run_network
from twin.network.graph import Graph
from twin.network.operators import graph_macs, graph_parameters
from twin.network.rewrites.rewrite import (
    EFFORTS,
    find_rewrites,
    list_rewrites,
    load_rewrite,
    rewrite_network,
)
from twin.network.rewrites.width import prune_channels


def random_input(graph: Graph, seed: int = 0) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.integers(-128, 128, graph.tensors[i].shape).astype(graph.tensors[i].dtype)
            if graph.tensors[i].dtype != "float32"
            else random.uniform(-1, 1, graph.tensors[i].shape).astype(np.float32)
            for i in graph.inputs]


def answer(graph: Graph, inputs: list[np.ndarray]) -> np.ndarray:
    return run_network(graph, inputs)[graph.outputs[0]]


def test_every_file_that_names_a_path_is_found() -> None:
    assert {"network.width", "network.prune", "network.resolution", "network.batch",
            "network.precision", "network.weights", "network.fusion",
            "network.layout"} <= set(find_rewrites())
    for rewrite in list_rewrites():
        assert rewrite.effort in EFFORTS and rewrite.does and rewrite.accepted
    with pytest.raises(UsageError, match=r"did you mean network\.width"):
        load_rewrite("network.widht")


@pytest.mark.parametrize("model, path, value, like", [
    ("mobilenet_v1_1.0_224", "network.resolution", "96", "mobilenet_v1_1.0_96"),
    ("mobilenet_v2_0.35_96", "network.resolution", "64", "mobilenet_v2_0.35_64"),
    ("squeezenet1.1", "network.resolution", "128", "squeezenet1.1_128"),
    ("mobilenet_v1_1.0_96", "network.width", "0.25", "mobilenet_v1_0.25_96")])
def test_a_changed_network_has_the_shapes_of_one_built_so(model, path, value, like) -> None:
    changed = rewrite_network(zoo.build(model), {path: value})
    assert changed.architecture_id == zoo.build(like).architecture_id
    assert changed.sha256 != zoo.build(model).sha256
    assert f"{path}={value}" in changed.notes[0]


def test_channels_that_are_pruned_are_those_of_the_least_norm() -> None:
    # Every channel of a sum goes in all layers that write it: half the filters, a quarter of the
    # weights between two such layers.
    graph = zoo.build("ic")
    changed = prune_channels(graph, 0.5)
    widths = [changed.tensors[layer.outputs[0]].shape[-1] for layer in changed.layers]
    assert widths[:5] == [8, 8, 8, 8, 16]
    first = graph.tensors[graph.layers[0].inputs[1]]
    kept = changed.tensors[changed.layers[0].inputs[1]]
    assert first.data is not None and kept.data is not None
    assert {row.tobytes() for row in kept.data} <= {row.tobytes() for row in first.data}
    assert answer(changed, random_input(changed)).shape == (1, 10)


def test_channels_of_zeros_go_first_and_change_nothing() -> None:
    # The reference vww has 632 dead channels; drop as many by norm as one layer has dead ones.
    graph = zoo.build("vww")
    dropped = rewrite_network(graph, {"network.dead_channels": "dropped"})
    assert np.array_equal(answer(graph, random_input(graph)), answer(dropped, random_input(graph)))
    assert graph_macs(dropped) < graph_macs(graph)


def test_flattened_channels_go_with_the_columns_that_read_them() -> None:
    graph = zoo.build("sww")  # Its classifier reads 32 flattened values.
    changed = rewrite_network(graph, {"network.prune": "0.5"})
    classifier = next(layer for layer in changed.layers if layer.op == "fully_connected")
    source = changed.tensors[classifier.inputs[0]]
    assert changed.tensors[classifier.inputs[1]].shape[-1] == source.shape[-1]
    assert answer(changed, random_input(changed)).shape == (1, 3)


def test_fusing_and_taking_apart_are_inverse() -> None:
    graph = zoo.build("kws")
    apart = rewrite_network(graph, {"network.fusion": "none"})
    assert [layer.op for layer in apart.layers[:3]] == ["pad", "conv_2d", "relu"]
    again = rewrite_network(apart, {"network.fusion": "all"})
    assert again.architecture_id == graph.architecture_id
    # Scales are those of what the clamp writes, so only values below zero are cut: the same bits.
    assert np.array_equal(answer(graph, random_input(graph)), answer(apart, random_input(graph)))


def test_sums_of_two_activations_say_why_they_stay() -> None:
    with pytest.raises(NotApplicableError, match="no kernel library of a core adds while it conv"):
        rewrite_network(zoo.build("ic"), {"network.fusion": "add"})


def test_floats_and_back_keep_the_weights() -> None:
    graph = zoo.build("kws")
    floats = rewrite_network(graph, {"network.precision": "float32"})
    back = rewrite_network(floats, {"network.precision": "int8"})
    assert back.architecture_id == graph.architecture_id
    weights = [one.tensors[one.layers[1].inputs[1]] for one in (graph, back)]
    real = [one.data * np.asarray(one.quantization.scales, np.float64) for one in weights]
    step = max(weights[1].quantization.scales)
    assert np.abs(real[0] - real[1]).max() <= step / 2 + 1e-7


def test_float_networks_answer_as_the_integers_they_were() -> None:
    graph = zoo.build("ad")
    floats = rewrite_network(graph, {"network.precision": "float32"})
    stored = [one // 4 for one in random_input(graph)]  # Small, so that no layer is at its ends.
    scale = graph.tensors[graph.inputs[0]].quantization
    real = [(one.astype(np.float32) - scale.zero_points[0]) * np.float32(scale.scales[0])
            for one in stored]
    out = graph.tensors[graph.outputs[0]].quantization
    expected = (answer(graph, stored).astype(np.float64) - out.zero_points[0]) * out.scales[0]
    found = answer(floats, real)
    assert np.abs(expected).max() > 20 * out.scales[0]
    assert np.abs(expected - found).max() < 4 * out.scales[0]


def test_weights_of_four_bits_are_at_most_half_a_step_off() -> None:
    graph = zoo.build("kws")
    changed = rewrite_network(graph, {"network.weights": "int4"})
    before, after = (one.tensors[one.layers[0].inputs[1]] for one in (graph, changed))
    assert after.dtype == "int4" and after.size_bytes * 2 == before.size_bytes
    old, new = (one.data * np.asarray(one.quantization.scales)[:, None, None, None]
                for one in (before, after))
    assert np.abs(old - new).max() <= max(after.quantization.scales) / 2 + 1e-7


def test_sixteen_bits_have_sums_of_sixty_four() -> None:
    changed = rewrite_network(zoo.build("kws"), {"network.precision": "int16x8"})
    layer = changed.layers[0]
    assert [changed.tensors[i].dtype for i in (*layer.inputs, *layer.outputs)] == [
        "int16", "int8", "int64", "int16"]
    assert changed.tensors[layer.inputs[0]].quantization.zero_points == (0,)


def test_a_batch_multiplies_work_and_no_weights() -> None:
    graph = zoo.build("kws")
    changed = rewrite_network(graph, {"network.batch": 4})
    assert graph_macs(changed) == 4 * graph_macs(graph)
    assert graph_parameters(changed) == graph_parameters(graph)


def test_layout_adds_transposes_and_takes_them_away() -> None:
    graph = zoo.build("ic")
    first = rewrite_network(graph, {"network.layout": "channels_first"})
    assert first.tensors[first.inputs[0]].shape == (1, 3, 32, 32)
    stored = random_input(graph)
    turned = [np.ascontiguousarray(one.transpose(0, 3, 1, 2)) for one in stored]
    assert np.array_equal(answer(graph, stored), answer(first, turned))
    last = rewrite_network(first, {"network.layout": "channels_last"})
    assert last.architecture_id == graph.architecture_id


@pytest.mark.parametrize("model, path, value, said", [
    ("ad", "network.resolution", "96", "no input that is one image"),
    ("sww", "network.resolution", "60x1", "weights are for 32 inputs"),
    ("lstm", "network.width", "0.5", "no channel of lstm can go"),
    ("lstm", "network.batch", "2", "keeps states"),
    ("lstm", "network.precision", "float32", "recurrent"),
    ("ad", "network.resolution", "75%", "no input that is one image"),
    ("ad", "network.patches", "2", "does not begin with a chain"),
    ("kws", "network.patches", "2", "16,000 are without patches"),
    ("kws", "network.patches", "2", "patches save no RAM here"),
    ("ic", "network.patches", "2:3", "a chain of 13 layers that can be split; accepted: 1, 4, 8")])
def test_what_does_not_apply_says_why(model, path, value, said) -> None:
    with pytest.raises(NotApplicableError, match=said):
        rewrite_network(zoo.build(model), {path: value})


@pytest.mark.parametrize("path, value, said", [
    ("network.precision", "int8", "already"),
    ("network.weights", "int8", "no 4-bit integer weights"),
    ("network.fusion", "all", "nothing left to fuse"),
    ("network.fusion", "activation", "no rectifier is a layer of its own"),
    ("network.fusion", "pad", "no padding ahead"),
    ("network.layout", "channels_last", "transposes neither"),
    ("network.dead_channels", "dropped", "no dead channels")])
def test_what_a_network_is_already_changes_nothing(path, value, said) -> None:
    graph = zoo.build("kws")
    with pytest.raises(AlreadySoError, match=said):
        rewrite = load_rewrite(path)
        rewrite.apply(graph, rewrite.read(value))
    neutral = {"network.width": 1, "network.prune": 0, "network.batch": 1, "network.patches": 1}
    assert rewrite_network(graph, {path: value, **neutral}) is graph


def test_weights_of_a_float_network_are_not_int8_already() -> None:
    with pytest.raises(NotApplicableError, match="no 4-bit integer weights"):
        rewrite_network(rewrite_network(zoo.build("kws"), {"network.precision": "float32"}),
                        {"network.weights": "int8"})


@pytest.mark.parametrize("path, value", [
    ("network.width", "2"), ("network.width", "wide"),
    ("network.resolution", "0"), ("network.resolution", "big"), ("network.batch", "0"),
    ("network.precision", "int7"), ("network.weights", "int2"), ("network.fusion", "half"),
    ("network.layout", "nchw"), ("network.dead_channels", "kept"), ("network.none", "1"),
    ("network.patches", "3x"), ("network.patches", "99")])
def test_values_that_cannot_be_name_what_is_accepted(path, value) -> None:
    with pytest.raises(UsageError, match=path):
        rewrite_network(zoo.build("kws"), {path: value})


@pytest.mark.parametrize("path, value", [
    ("network.batch", "9" * 5000), ("network.batch", "\u00b2"), ("network.patches", "9" * 5000),
    ("network.patches", "3x3:" + "9" * 5000), ("network.resolution", "9" * 5000)])
def test_numbers_of_thousands_of_digits_are_refused(path, value) -> None:
    with pytest.raises(UsageError, match="accepted"):
        rewrite_network(zoo.build("kws"), {path: value})


def test_a_share_of_the_resolution_is_of_both_sides() -> None:
    changed = rewrite_network(zoo.build("vww"), {"network.resolution": "75%"})
    assert changed.tensors[changed.inputs[0]].shape == (1, 72, 72, 3)
    with pytest.raises(UsageError, match="such as 75%"):
        rewrite_network(zoo.build("vww"), {"network.resolution": "0%"})
