"""Weights of less than a byte: stored packed, read apart, and said to be assumed."""

import numpy as np
import pytest
from made_graphs import conv_graph

from twin.deployment.core import lower_network
from twin.deployment.deployment import deploy


@pytest.mark.parametrize("runtime", ["tflm-cmsis-nn@2023", "tflm-cmsis-nn@2026", "x-cube-ai"])
def test_four_bit_weights_are_half_as_large_and_assumed(runtime):
    packed, whole = (conv_graph(weights=kind) for kind in ("int4", "int8"))
    assert packed.tensors[1].data.dtype == np.int8
    for graph, assumed in ((packed, True), (whole, False)):
        deployment = deploy(graph, "nucleo_l4r5zi", runtime=runtime)
        (kernels,) = lower_network(deployment)
        assert all(kernel.assumed for kernel in kernels) == assumed
    assert packed.tensors[1].size_bytes == whole.tensors[1].size_bytes // 2
