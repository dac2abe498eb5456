"""Elements that change their place: padding, slices, joints, blocks, images of another size.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference and micro/kernels: pad.h,
slice.h, strided_slice.h, concatenation.cc, split.cc, pack.cc, unpack.cc, gather.cc, transpose.h,
space_to_depth.h, depth_to_space.h, resize_bilinear.h, resize_nearest_neighbor.h, reshape.cc.
"""

from __future__ import annotations

import math

from twin.network.graph import DTYPE_BITS, Graph, Layer, Tensor
from twin.runtimes.counted.copies import count_copies
from twin.runtimes.counted.work import Terms, Work


def _ends(graph: Graph, layer: Layer) -> tuple[Tensor, Tensor]:
    return graph.tensors[layer.inputs[0]], graph.tensors[layer.outputs[0]]


def _width(tensor: Tensor) -> int:
    return DTYPE_BITS[tensor.dtype] // 8


def describe_reshape(graph: Graph, layer: Layer) -> Work:
    """Return the work of copying a tensor whole, and of its shape."""
    source, target = _ends(graph, layer)
    named = layer.option("of", "reshape")
    return Work(variant=named, terms={
        "call": 1, "dimension": len(target.shape), "dimension before": len(source.shape),
        **count_copies(source.size_bytes, 1)})


def describe_pad(graph: Graph, layer: Layer) -> Work:
    """Return the work of padding: elements inside and around, runs that are copied and filled."""
    source, target = _ends(graph, layer)
    mode, paddings = layer.option("mode", "constant"), tuple(layer.option("paddings", ()))
    deep = sum(paddings[-1])
    run = source.shape[-1] if deep else math.prod(source.shape[-2:])
    runs = source.elements // run
    beside = target.shape[-1] * (1 if deep else sum(paddings[-2]) if len(paddings) > 1 else 0)
    return Work(variant=f"{source.dtype} {mode}", path="deep" if deep else "", terms={
        "call": 1, "element": target.elements, "inside": source.elements,
        "row": target.elements // target.shape[-1], "run": runs,
        "filled": target.elements - source.elements, "filled word": beside // 4 * runs,
        "filled byte": beside % 4 * runs, **count_copies(run * _width(source), runs)})


def describe_slice(graph: Graph, layer: Layer) -> Work:
    """Return the work of taking a box, with strides or without."""
    source, target = _ends(graph, layer)
    whole = target.shape[-1] if target.shape else 1
    strides = layer.option("strides", ())
    name = "strided" if layer.option("strided", False) or set(strides) != {1} else "box"
    return Work(variant=f"{source.dtype} {name}", terms={
        "call": 1, "element": target.elements, "row": target.elements // whole})


def describe_concatenation(graph: Graph, layer: Layer) -> Work:
    """Return the work of joining: a copy of each input for each outer index."""
    axis = layer.option("axis", 0)
    target = graph.tensors[layer.outputs[0]]
    outer = math.prod(target.shape[:axis])
    terms = count_copies(0, 0)
    for place in layer.inputs:
        source = graph.tensors[place]
        terms += count_copies(source.size_bytes // outer, outer)
    return Work(variant="any", terms={
        "call": 1, "part": len(layer.inputs), "outer": outer, **terms})


def describe_split(graph: Graph, layer: Layer) -> Work:
    """Return the work of parting along an axis: loops over elements."""
    source = graph.tensors[layer.inputs[0]]
    axis, parts = layer.option("axis", 0), len(layer.outputs)
    outer = math.prod(source.shape[:axis])
    return Work(variant=source.dtype, terms={
        "call": 1, "part": parts, "run": outer * parts, "element": source.elements})


def describe_stack(graph: Graph, layer: Layer) -> Work:
    """Return the work of stacking or unstacking tensors."""
    axis = layer.option("axis", 0)
    whole = graph.tensors[(layer.outputs if layer.op == "pack" else layer.inputs)[0]]
    parts = len(layer.inputs if layer.op == "pack" else layer.outputs)
    outer = math.prod(whole.shape[:axis])
    return Work(variant=whole.dtype, terms={
        "call": 1, "part": parts, "run": outer * parts, "element": whole.elements})


def describe_gather(graph: Graph, layer: Layer) -> Work:
    """Return the work of picking along an axis: one copy for each pick."""
    source, target = _ends(graph, layer)
    axis = layer.option("axis", 0)
    inner = math.prod(source.shape[axis + 1:])
    return Work(variant="any", terms={
        "call": 1, **count_copies(inner * _width(source), target.elements // inner)})


def describe_scattered(graph: Graph, layer: Layer) -> Work:
    """Return the work of elements at places the data name: one copy for each (assumed)."""
    target = graph.tensors[layer.outputs[0]]
    return Work(variant="any", terms={
        "call": 1, **count_copies(_width(target) or 1, target.elements)})


def describe_blocks(graph: Graph, layer: Layer) -> Work:
    """Return the work of moving blocks between space and depth: one element at a time."""
    source, target = _ends(graph, layer)
    shallow = min(source.shape[-1], target.shape[-1])
    pixels = source.elements // shallow
    wide = source if source.shape[-1] == shallow else target
    return Work(variant=source.dtype, terms={
        "call": 1, "line": pixels // wide.shape[2], "pixel": pixels, "element": source.elements})


def describe_batches(graph: Graph, layer: Layer) -> Work:
    """Return the work of moving blocks between space and batch: one copy for each pixel."""
    source, target = _ends(graph, layer)
    depth = source.shape[-1]
    pixels = max(source.elements, target.elements) // depth
    return Work(variant=source.dtype, terms={
        "call": 1, "pixel": pixels, **count_copies(depth * _width(source), pixels)})


def describe_transpose(graph: Graph, layer: Layer) -> Work:
    """Return the work of a permutation: one element at a time, or rows where the last stays."""
    source, target = _ends(graph, layer)
    rank, perm = len(source.shape), tuple(layer.option("perm", ()))
    kept = bool(perm) and perm[-1] == rank - 1
    rows = target.elements // target.shape[-1]
    return Work(variant=f"{source.dtype} {rank}{' rows' if kept else ''}", terms={
        "call": 1, "element": target.elements, "row": rows,
        "plane": rows // target.shape[-2] if rank > 1 else 1,
        "source row": source.elements // source.shape[-1],
        **(count_copies(target.shape[-1] * _width(target), rows) if kept else {})})


def describe_resize(graph: Graph, layer: Layer) -> Work:
    """Return the work of resizing an image: per pixel, per row of pixels, per element."""
    source, target = _ends(graph, layer)
    rows, pixels = target.shape[1], target.shape[1] * target.shape[2]
    if layer.op == "resize_nearest":
        depth = target.shape[-1] * _width(target)
        return Work(variant=source.dtype, terms={
            "call": 1, "line": rows, "pixel": pixels, **count_copies(depth, pixels)})
    return Work(variant=source.dtype, terms={
        "call": 1, "line": rows, "pixel": pixels, "element": target.elements})


FAMILY = "data_movement"

TERMS: Terms = {
    **dict.fromkeys(("reshape", "reshape_copy", "read_variable", "assign_variable"),
                    describe_reshape), "pad": describe_pad,
    **dict.fromkeys(("gather_nd", "scatter_nd"), describe_scattered),
    **dict.fromkeys(("slice", "tile", "broadcast_to"), describe_slice),
    "concatenation": describe_concatenation, "split": describe_split, "pack": describe_stack,
    "unpack": describe_stack, "gather": describe_gather, "transpose": describe_transpose,
    **dict.fromkeys(("space_to_depth", "depth_to_space"), describe_blocks),
    **dict.fromkeys(("space_to_batch_nd", "batch_to_space_nd"), describe_batches),
    **dict.fromkeys(("resize_nearest", "resize_bilinear"), describe_resize),
}
