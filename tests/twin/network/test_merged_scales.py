"""A product and a sum by constants, what is left of a batch norm, as one layer."""

from __future__ import annotations

import numpy as np
import pytest

from twin.deployment.core import lower_network
from twin.deployment.deploy import deploy
from twin.network.graph import Graph
from twin.network.operators import is_alias
from twin.network.rewrites.merged_scales import merge_scales
from twin.network.zoo.builder import Builder


def scaled(*, constant: bool = True, read_twice: bool = False) -> Graph:
    """Return a network that multiplies and adds by channel."""
    net = Builder("scaled", seed=1)
    source = net.input((1, 4, 4, 8))
    factor, shift = (net.tensor(name, (8,), data=np.ones(8, np.int8)) for name in "ab")
    product = net.layer("mul", (source, factor), (1, 4, 4, 8))
    total = net.layer("add", (product, shift if constant else source), (1, 4, 4, 8))
    return net.finish(net.layer("add", (total, product if read_twice else source), (1, 4, 4, 8)))


def test_the_sum_is_merged_into_the_product() -> None:
    graph = scaled()
    merged = merge_scales(graph)
    assert [is_alias(layer) for layer in merged.layers] == [False, True, False]
    assert merged.layers[1].inputs == graph.layers[0].outputs
    assert merged.tensors == graph.tensors and merged.sha256 != graph.sha256
    assert merge_scales(merged) is merged


@pytest.mark.parametrize("changes", [{"constant": False}, {"read_twice": True}])
def test_sums_of_activations_and_products_read_elsewhere_stay(changes: dict[str, bool]) -> None:
    graph = scaled(**changes)
    assert merge_scales(graph) is graph


def test_releases_up_to_8_1_merge_them_and_later_ones_do_not() -> None:
    for release, kernels in (("7.3.0", 2), ("8.1.0", 2), ("9.0.0", 3), ("10.2.0", 3)):
        placed = deploy(scaled(), "nucleo_u575zi_q", runtime=f"x-cube-ai@{release}")
        assert sum(len(layer) for layer in lower_network(placed)) == kernels
