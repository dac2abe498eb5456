"""Weights of less than a byte: stored packed, read apart, and said to be assumed."""

import numpy as np
import pytest
from made_graphs import conv_graph

from twin.deployment.core import lower_network
from twin.deployment.deploy import deploy


@pytest.mark.parametrize("runtime", ["tflm-cmsis-nn@2023", "tflm-cmsis-nn@2026", "x-cube-ai"])
def test_four_bit_weights_are_half_as_large_and_assumed(runtime):
    packed, whole = (conv_graph(weights=kind) for kind in ("int4", "int8"))
    assert packed.tensors[1].data.dtype == np.int8
    for graph, assumed in ((packed, True), (whole, False)):
        deployment = deploy(graph, "nucleo_l4r5zi", runtime=runtime)
        (kernels,) = lower_network(deployment)
        assert all(kernel.assumed for kernel in kernels) == assumed
    assert packed.tensors[1].size_bytes == whole.tensors[1].size_bytes // 2


@pytest.mark.parametrize("board", ["nucleo_l4r5zi", "rpi_pico"])
def test_packed_weights_are_read_once_and_taken_apart_into_scratch(board):
    graph = conv_graph(weights="int4")
    deployment = deploy(graph, board, runtime="tflm-reference@2026")
    ((first, *kernels),) = lower_network(deployment)
    elements = graph.tensors[1].elements
    assert first.name == "UnpackDenseInt4IntoInt8"
    # A packed byte is read once, two bytes are written for it.
    assert first.blocks[1].trips == elements // 2 and first.blocks[1].cause == "weight_decode"
    read, written = first.operands
    assert (read.role, read.memory) == ("weights", "flash") and read.size_bytes * 2 == elements
    assert written.role == "scratch" and written.memory == "sram"
    for kernel in kernels:
        (weights,) = (one for one in kernel.operands if one.name == "weights")
        assert (weights.memory, weights.address) == ("sram", written.address)
    whole = deploy(conv_graph(weights="int8"), board, runtime="tflm-reference@2026")
    more = deployment.placement.scratch_bytes - whole.placement.scratch_bytes
    assert elements <= more < elements + 16


def test_loops_of_cmsis_nn_take_weights_apart_each_time_and_need_no_room():
    graph = conv_graph(weights="int4")
    packed, whole = (deploy(one, "nucleo_l4r5zi", runtime="cmsis-nn")
                     for one in (graph, conv_graph(weights="int8")))
    assert packed.placement.scratch_bytes == whole.placement.scratch_bytes
    ((first, *_),) = lower_network(packed)
    split = first.blocks[-1]
    # 8 x 6 outputs, two at once, of so many pairs of weights.
    assert split.cause == "weight_decode"
    assert split.trips == 8 * 6 // 2 * graph.tensors[1].elements // 2
