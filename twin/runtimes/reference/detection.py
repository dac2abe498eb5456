"""Boxes of a detector: decoded from anchors, then thinned by overlap; plain C, all assumed.

How many boxes pass the threshold, and so how many overlaps are worked out, the data decide: as
many are taken to pass as are reported, each compared with all reported before it.

References
----------
tensorflow/tflite-micro, tensorflow/lite/micro/kernels/detection_postprocess.cc:
DecodeCenterSizeBoxes, NonMaxSuppressionMultiClassFastHelper, NonMaxSuppressionSingleClassHelper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hwmodels.kernel import Lowered
from twin.network.graph import Graph
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import block, join, plain
from twin.runtimes.lowering.nests import load, repeat, store
from twin.runtimes.reference.sequences import COUNTS, Counts, Machine

_COUNTS = COUNTS["detection"]

_CALL: Counts = (60, 50, 120)


def _machine(site: Site) -> Machine:
    """Boxes are worked out in float32, whatever the network's type."""
    return Machine(plain(site.dialect), "float" if site.fpu else "soft", site=site)


def _operations(machine: Machine, **counts: int) -> str:
    return machine.math(*[name for name, count in counts.items() for _ in range(count)])


def _overlaps(machine: Machine, kept: int) -> Any:
    """Intersection over union of each pair of kept boxes."""
    code = join(machine.load(4, 8), _operations(machine, compare=6, add=7, mul=3, div=1),
                machine.loop(_COUNTS["pair"]))
    return block("overlap", code, kept * kept // 2, min(1, kept // 2))


def _sort(machine: Machine, scores: int, kept: int) -> Any:
    """Sort partially: every score against the least kept, and a heap of the kept ones."""
    code = join(machine.load(4), machine.math("compare"), machine.loop(_COUNTS["score"]))
    heap = kept * max(1, math.ceil(math.log2(max(2, kept))))
    return block("sort", code, scores + 2 * heap, 1)


def read_all(graph: Graph, ids: Sequence[int], names: Sequence[str]) -> list[Any]:
    """Return loads of every element of some tensors, in order."""
    return [repeat("read", tensor.elements, load(name, tensor.element_bytes, 0,
                                                 read=tensor.element_bytes))
            for tensor, name in zip((graph.tensors[i] for i in ids), names, strict=True)]


def write_all(site: Site) -> list[Any]:
    """Return stores of every result, in order."""
    return [repeat("result", tensor.size_bytes // 4,
                   store(f"output{place + 1}" if place else "output", 4, 0, result=4))
            for place, tensor in enumerate(site.writes)]


def _lower_postprocess(site: Site) -> Lowered:
    """Decode every anchor's box, find the best class of each, keep the best boxes."""
    machine = _machine(site)
    boxes = site.source.shape[-2]
    scores = site.input(1)
    kept = max(1, site.writes[0].shape[-2])
    classes = scores.channels
    integers = scores.dtype != "float32"
    turned = machine.math("add", "mul") if integers else ""
    decode = join(machine.load(4, 8), machine.exponential(), machine.exponential(),
                  *[turned] * 4, _operations(machine, mul=8, add=8, div=4),
                  *[machine.store(4)] * 4, machine.loop(_COUNTS["box"]))
    each = join(machine.load(4), turned, machine.math("compare", "compare"),
                machine.loop(_COUNTS["score"]))
    runs = classes if site.layer.option("regular", False) else 1
    return machine.kernel(
        "TFLite_Detection_PostProcess", "data_movement", _CALL,
        block("decode", decode, boxes, 1), block("scores", each, boxes * classes, boxes),
        _sort(machine, boxes * runs, kept), _overlaps(machine, kept * runs),
        *read_all(site.graph, site.layer.inputs[:3], ("input", "input2", "input3")),
        *write_all(site),
        assumed=True)


def _lower_suppression(site: Site) -> Lowered:
    """Sort the scores of each class, and compare the boxes that may be kept."""
    machine = _machine(site)
    scores = site.input(1)
    runs = math.prod(scores.shape[:-1])
    kept = max(1, site.writes[0].shape[0] // runs)
    overlaps = _overlaps(machine, kept)
    return machine.kernel(
        "NonMaxSuppression", "data_movement", _CALL, _sort(machine, scores.elements, kept * runs),
        block("overlap", overlaps.code, overlaps.trips * runs, min(runs, overlaps.trips * runs)),
        *read_all(site.graph, site.layer.inputs[:2], ("input", "input2")), *write_all(site),
        assumed=True)


KERNELS: Kernels = {
    "detection_postprocess": {"c": Lowering(lower=_lower_postprocess)},
    "non_max_suppression": {"c": Lowering(lower=_lower_suppression)},
}
