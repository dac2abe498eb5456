"""What every rewrite makes of a small network, whole: layers, types, scales, values."""

import zlib
from pathlib import Path

import pytest
from made_outlines import compare_kept, outline

from twin.network import zoo
from twin.network.graph import Graph
from twin.network.rewrites.precision import change_precision
from twin.network.rewrites.rewrite import list_rewrites, rewrite_network

KEPT = Path(__file__).parent / "kept"


MADE = zoo.build("ic")


def written(graph: Graph) -> str:
    """Write a graph, of constants a checksum of their bytes."""
    return outline({
        "graph": (graph.inputs, graph.outputs, graph.notes),
        "layers": [(one.op, one.inputs, one.outputs, one.window, one.activation, one.groups,
                    one.options, one.repeats, one.assumed) for one in graph.layers],
        "tensors": [(one.shape, one.dtype, one.quantization if one.quantization is None else (
            one.quantization.scales[:3], one.quantization.zero_points[:3], one.quantization.axis),
            None if one.data is None else zlib.crc32(one.data.tobytes()))
            for one in graph.tensors]}, 400)


VALUES = {"network.resolution": "24", "network.width": "0.5", "network.prune": "0.25",
          "network.channels": "1:8", "network.layout": "channels_first", "network.fusion": "none",
          "network.patches": "2", "network.batch": "2", "network.weights": "int4"}


@pytest.mark.parametrize("path", VALUES)
def test_rewritten(path) -> None:
    compare_kept(KEPT / f"{path}.txt", written(rewrite_network(MADE, {path: VALUES[path]})))


@pytest.mark.parametrize("precision", ["int16x8", "float32", "float16"])
def test_precision(precision) -> None:
    """Also back to int8, by the ranges the file has and by those that are given."""
    changed = change_precision(MADE, precision)
    back = change_precision(changed, "int8", {changed.inputs[0]: (-1.0, 3.0)})
    compare_kept(KEPT / f"precision-{precision}.txt", written(changed) + written(back))


def test_every_rewrite_says_what_it_does() -> None:
    compare_kept(KEPT / "rewrites.txt", outline([
        (one.name, one.accepted, one.does, one.effort, one.costs, one.stage, one.rounds,
         one.neutral, one.values(MADE)) for one in list_rewrites()], 100))
