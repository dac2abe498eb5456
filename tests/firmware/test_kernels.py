"""Kernels and generated code on this machine, against the arithmetic in numpy."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from made_networks import ELEMENTWISE, WINDOWED, needs_make, random_network

from twin.network.arithmetic import run_network
from twin.network.operators import is_alias
from twin.network.zoo import build
from twin.program.image.compile.native import Model, build_kernels, build_library
from twin.program.image.compile.verification import random_input

pytestmark = needs_make
SEEDS = 16


def called_layers(graph):
    """Layers the firmware calls, in order."""
    return [layer for layer in graph.layers if not is_alias(layer)]


def run_library(graph, values, library):
    """Run a library on an input; return the output of every called layer."""
    model = Model.in_dll(ctypes.CDLL(str(library.resolve())), "model")
    arena = np.ctypeslib.as_array(model.arena, (model.arena_bytes,))
    arena[:] = 0xA5  # what no layer wrote must not matter
    arena[model.input_offset:model.input_offset + model.input_bytes] = np.frombuffer(
        values.tobytes(), np.uint8)
    outputs = []
    for place, layer in enumerate(called_layers(graph)):
        entry = model.layers[place]
        assert entry.index == layer.index
        entry.run()
        tensor = graph.tensors[layer.outputs[0]]
        raw = arena[entry.output_offset:entry.output_offset + entry.output_bytes].tobytes()
        outputs.append(np.frombuffer(raw, tensor.dtype).reshape(tensor.shape))
    return outputs


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    return build_kernels(tmp_path_factory.mktemp("kernels"))


def assert_equal(graph, kernels, folder, seed=0):
    values = random_input(graph, seed)
    expected = run_network(graph, [values])
    outputs = run_library(graph, values, build_library(graph, folder, kernels))
    for layer, output in zip(called_layers(graph), outputs, strict=True):
        np.testing.assert_array_equal(output, expected[layer.outputs[0]],
                                      err_msg=f"{layer.op} {layer.window}")
    return expected


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_networks_are_bit_exact(kernels, tmp_path, seed):
    assert_equal(random_network(seed), kernels, tmp_path, seed)


def test_random_networks_cover_every_kernel():
    """The seeds above run each kind several times, and vary its outputs."""
    seen: dict[str, int] = {}
    for seed in range(SEEDS):
        graph = random_network(seed)
        arrays = run_network(graph, [random_input(graph, seed)])
        for layer in graph.layers:
            seen[layer.op] = seen.get(layer.op, 0) + (np.ptp(arrays[layer.outputs[0]]) > 0)
    wanted = {"conv_2d", "depthwise_conv_2d", "fully_connected", "softmax", "mean",
              *WINDOWED[3:], *ELEMENTWISE}
    assert all(seen.get(op, 0) >= 3 for op in wanted), seen


@pytest.mark.parametrize("name", ["kws", "ic", "ad", "sww"])
def test_zoo_networks_are_bit_exact(kernels, tmp_path, name):
    assert_equal(build(name), kernels, tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_float_networks_agree_up_to_rounding(kernels, tmp_path, seed):
    """Each layer adds single-precision rounding of its sums: some 1e-5 after a dozen of them."""
    graph = random_network(seed, dtype="float32")
    values = random_input(graph, seed)
    expected = run_network(graph, [values])
    outputs = run_library(graph, values, build_library(graph, tmp_path, kernels))
    for layer, output in zip(called_layers(graph), outputs, strict=True):
        np.testing.assert_allclose(output, expected[layer.outputs[0]], rtol=2e-5, atol=2e-5,
                                   err_msg=layer.op)
