"""What TensorFlow Lite Micro asks of its arena: structures, kernel data and scratch, by release.

Sizes are facts of `arena.yaml`; this is the order and the conditions in which `AllocateTensors`
asks for them. Ignores compression, control flow and offline-planned tensors.

References
----------
tflite-micro: micro_interpreter.cc, micro_allocator.cc, kernels/*.cc and kernels/cmsis_nn/*.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from hwmodels.file_cache import read_yaml_once
from hwmodels.files import JsonObject
from hwmodels.frozen import frozen
from twin.network.graph import Graph, GraphLayer, Layer, Tensor
from twin.network.operators import list_states
from twin.runtimes.lowering import has_extension
from twin.runtimes.tflm.scratch import is_speed_sum, list_scratch

ALIGNMENT_BYTES = 16
"""MicroArenaBufferAlignment(): of kernel data, variables and planned buffers."""

KINDS = ("interpreter", "eval tensors", "nodes", "kernel data", "variables", "inputs and outputs")
"""What persistent bytes are of, in the order they are asked for; kernel data are builtin options,
OpData and per-channel parameters, and handles of scratch buffers."""

Ask = tuple[str, int, int]
"""Kind, bytes and alignment of one AllocatePersistentBuffer."""


TENSOR_BYTES = 250
"""Of a tensor in a .tflite file, its share of operators and metadata included: 22 published files
of five layers and more take 113 to 547, half of them 187 to 287."""


def measure_file(graph: Graph) -> int:
    """Return the bytes of a network's .tflite file; estimated where it was read from none.

    A changed network keeps what its file had beside constants and scales.
    """
    beside = graph.overhead_bytes
    return graph.constant_bytes + (TENSOR_BYTES * len(graph.tensors) if beside is None else beside)


@frozen
class ArenaAsks:
    """What a network asks of the arena.

    Parameters
    ----------
    persistent : tuple of (str, int, int)
        Kind, bytes and alignment, in order.
    scratch
        Bytes of scratch buffers by position of their layer.
    planning_bytes
        What is asked for, and given back, while the plan is made.
    unknown
        What is asked for besides, of unknown size.
    """

    persistent: tuple[Ask, ...]
    scratch: Mapping[int, tuple[int, ...]]
    planning_bytes: int
    unknown: tuple[str, ...]


def list_asks(graph: Graph, kernels: str, release: str, isa: str, *,
              recording: bool = False) -> ArenaAsks:
    """Return what a network asks of the arena; `recording`: in TFLM's own benchmark tool."""
    facts = read_facts(release)
    known = facts["operators"]
    named = [*map(_operator, graph.layers)]
    if graph.left_out is None:  # converters write what options say as tensors
        tensors = len(graph.tensors) + sum(facts["shape_operands"].get(name, 0) for name in named)
    else:
        tensors = len(graph.tensors) + graph.left_out[0]
        named += graph.left_out[1]
    rows = [row for name in named if (row := known.get(name)) is not None]
    scratch = {position: asked for position, layer in enumerate(graph.layers)
               if (asked := list_scratch(GraphLayer(graph, layer), kernels, isa,
                                         newer=facts["newer"]))}
    persistent: list[Ask] = [("interpreter", size, 4)
                             for size in facts["recording" if recording else "structures"][:3]]
    if recording:
        persistent += [("interpreter", size, ALIGNMENT_BYTES)
                       for size in facts["resource_variables"]]
    persistent += [("interpreter", facts["structures"][3], 4),
                   ("interpreter", facts["subgraph"], 4),
                   ("eval tensors", facts["eval_tensor"] * tensors, 4),
                   ("nodes", facts["node"] * len(named), 4)]
    persistent += [("kernel data", row[0], row[1]) for row in rows if row[0]]
    data = [row[2] if isinstance(row[2], int) else row[2].get(kernels, row[2]["reference"])
            for row in rows]
    persistent += [("kernel data", size, ALIGNMENT_BYTES) for size in data if size]
    for layer in graph.layers:
        persistent += [("kernel data", size, ALIGNMENT_BYTES)
                       for size in _prepared(GraphLayer(graph, layer), kernels, isa,
                                             newer=facts["newer"])]
    count = sum(map(len, scratch.values()))
    persistent += [("kernel data", facts["scratch_handle"] * count, 4)] if count else []
    persistent += [("variables", graph.tensors[i].size_bytes, ALIGNMENT_BYTES)
                   for i in list_states(graph)]
    planning = facts["planning"]
    planned = sum(not tensor.is_constant for tensor in graph.tensors) - len(list_states(graph))
    for ends in (graph.inputs, graph.outputs):
        persistent.append(("inputs and outputs", 4 * len(ends), ALIGNMENT_BYTES))
        persistent += [("inputs and outputs", size, 4) for i in ends
                       for size in _described(graph.tensors[i], facts)]
    return ArenaAsks(
        persistent=tuple(persistent), scratch=scratch,
        planning_bytes=planning["request"] * (planning["spare_requests"] + count) + 4
        + planning["tensor"] * (tensors + count) + planning["buffer"] * (planned + count),
        unknown=tuple(dict.fromkeys((
            *(f"kernel data of {name}" for name in named if not known.get(name)),
            *("scratch of ESP-NN's vector kernels" for name in named
              if kernels == "esp-nn" and has_extension(isa, "pie") and name.endswith("conv_2d"))))))


@lru_cache(maxsize=1)
def _read() -> JsonObject:
    return read_yaml_once(Path(__file__).with_name("arena.yaml"))["releases"]


def read_facts(release: str) -> JsonObject:
    """Return the sizes of a release; a null is an operator it does not have."""
    facts = _read()[release]
    if "like" not in facts:
        return facts
    like = read_facts(facts["like"])
    return {**like, **facts, "operators": {**like["operators"], **facts["operators"]}}


def list_releases() -> tuple[str, ...]:
    """Return the releases whose sizes are known."""
    return tuple(_read())


def _operator(layer: Layer) -> str:
    if layer.op == "pad" and layer.option("mode", "constant") != "constant":
        return "mirror_pad"
    return "strided_slice" if layer.op == "slice" and layer.option("strided") else layer.op


def _described(tensor: Tensor, facts: Mapping[str, Any]) -> Iterator[int]:
    """Sizes of a persistent TfLiteTensor and of its quantisation."""
    yield facts["tensor"]
    if tensor.quantization is not None:
        yield facts["affine_quantization"]
        yield 4 + 4 * len(tensor.quantization.scales)


def _prepared(site: GraphLayer, kernels: str, isa: str, *, newer: bool) -> Iterator[int]:
    """Sizes a kernel's Prepare asks for besides its OpData."""
    data = site.source
    quantised = data.dtype in ("int8", "int16")
    if site.op == "transpose_conv_2d" or (
            site.op in ("conv_2d", "depthwise_conv_2d")
            and (quantised or kernels != "cmsis-nn")):
        yield from [4 * site.output.channels] * 2
    elif site.op == "fully_connected" and quantised:
        scales = site.weights.quantization
        if newer and scales is not None and len(scales.scales) > 1:
            yield from [4 * len(scales.scales)] * 2
        if (size := is_speed_sum(site, kernels, isa)):
            yield size
    elif site.op == "softmax" and data.dtype == "int16":
        yield from (1026, 1026)  # int16 look-up tables of 513 entries
    elif site.op == "svdf" and kernels == "cmsis-nn" and quantised:
        if (size := is_speed_sum(site, kernels, isa)):
            yield size
    elif site.op == "concatenation" and data.dtype == "int8" and not newer:
        yield from [4 * len(site.layer.inputs)] * 2
    elif site.op == "gather":
        yield 4 + 4 * len(site.shape)
    elif site.op == "batch_matmul":
        yield from _transposed(site, kernels, quantised)
    elif site.op == "lstm" and kernels == "cmsis-nn" and quantised:
        units = site.output.channels
        yield from [units * (4 if data.dtype == "int8" else 8)] * 8


def _transposed(site: GraphLayer, kernels: str, quantised: bool) -> Iterator[int]:
    """Sizes of batch_matmul's transposed operands (eval tensor, shape, data) and quantisation."""
    sides = [site.input(place) for place, transposed in (
        (0, site.option("adj_x", False)), (1, not site.option("adj_y", False))) if transposed]
    copies = [size for side in sides for size in (12, 4 + 4 * len(side.shape), side.size_bytes)]
    own = [28] if quantised else []
    shape = 4 + 4 * len(site.shape)
    yield from (*copies, shape, *own) if kernels == "cmsis-nn" else (*own, *copies, shape)
