"""Elements that change their place: padding, slices, joints, blocks, images of another size.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference and micro/kernels: pad.h,
slice.h, strided_slice.h, concatenation.cc, split.cc, pack.cc, unpack.cc, gather.cc, transpose.h,
space_to_depth.h, depth_to_space.h, space_to_batch_nd.h, resize_bilinear.h,
resize_nearest_neighbor.h, reshape.cc; ARM-software/CMSIS-NN: arm_pad_s8.c, arm_transpose_s8.c.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence

from twin.network.graph import GraphLayer, Tensor
from twin.runtimes.counted.copies import PERIOD, count_copies, count_fills
from twin.runtimes.counted.work import Terms, Work


def _count_levels(shape: Sequence[int]) -> dict[str, float]:
    """Return how often each loop of a nest over a shape begins, by its place from the inside."""
    started = list(itertools.accumulate(shape[:-1], lambda left, right: left * right, initial=1))
    return {f"loop {place}": count for place, count in enumerate(reversed(started))}


def describe_reshape(step: GraphLayer) -> Work:
    """Return the work of copying a tensor whole, and of its shape."""
    source, target = step.ends
    named = step.option("of", "reshape")
    types = f" {8 * source.element_bytes} bits" if named == "expand_dims" else ""
    return Work(variant=f"{named}{types}", terms={
        "call": 1, "dimension": len(target.shape), "dimension before": len(source.shape),
        **({"element": source.elements} if types else count_copies(source.size_bytes, 1))})


def describe_pad(step: GraphLayer) -> Work:
    """Return the work of padding: elements inside and around, runs that are copied and filled."""
    source, target = step.ends
    mode, paddings = step.option("mode", "constant"), tuple(step.option("paddings", ()))
    rank = len(source.shape)
    terms: dict[str, float] = {
        "call": 1, "element": target.elements, "inside": source.elements,
        "dimension": rank, **_count_levels(target.shape)}
    if mode != "constant":
        for place, (before, after) in enumerate(paddings):
            share = target.elements / target.shape[place]
            terms[f"outside {rank - 1 - place}"] = share * (before + after)
        terms["element dimension"] = target.elements * rank
        return Work(variant=f"{source.dtype} {mode}", terms=terms)
    path, own = "", Counter[str]()
    if source.dtype == "int8":
        deep = any(paddings[-1])
        path = f"int8 {'deep' if deep else 'runs'}"
        own = _count_runs(source, target, paddings, deep=deep)
        own["value"] = int(bool(step.option("value", 0)))
    for place, (before, after) in enumerate(paddings):  # An element is asked outermost first.
        terms[f"outside {rank - 1 - place}"] = (before + after) * math.prod(
            source.shape[:place]) * math.prod(target.shape[place + 1:])
    return Work(variant=source.dtype, path=path, own=own, terms=terms)


def _count_runs(source: Tensor, target: Tensor, paddings: Sequence[tuple[int, int]], *,
                deep: bool) -> Counter[str]:
    """Return CMSIS-NN's copies and fills: of rows, or of pixels where channels are padded.

    It pads the last four dimensions, whatever stands before them.
    """
    batch, height, width, depth = ((1,) * 4 + tuple(source.shape))[-4:]
    _, _, columns, channels = ((1,) * 4 + tuple(target.shape))[-4:]
    around = ([(0, 0)] * 4 + [(one[0], one[1]) for one in paddings])[-4:]
    rows, row = batch * height, columns * channels
    terms = Counter({"padded row": rows, "padded pixel": rows * width if deep else 0})
    inner, image = height * width * depth, math.prod(target.shape[-3:])
    terms["element"] = math.prod(target.shape[-4:])
    start = around[1][0] * row
    for side in around[1]:
        terms += count_fills(side * row, batch, step=image)
    for side in around[0]:
        terms += count_fills(side * image, 1, step=image)
    for place, side in enumerate(around[2]):
        at = start + (0 if place == 0 else (around[2][0] + width) * channels)
        terms += count_fills(side * channels, rows, step=row, start=at % 4)
    if not deep:
        terms["vector copy"] = rows * -(-width * depth // 16)
        return terms + count_copies(width * depth, rows, to_step=row, from_step=inner // height,
                                    to_start=(start + around[2][0] * channels) % 4)
    first = (start + around[2][0] * channels) % 4
    terms["vector copy"] = rows * width * -(-depth // 16)
    return (terms + count_fills(around[3][0], rows * width, step=channels, start=first)
            + count_copies(depth, rows * width, to_step=channels, from_step=depth,
                           to_start=(first + around[3][0]) % 4)
            + count_fills(around[3][1], rows * width, step=channels,
                          start=(first + around[3][0] + depth) % 4))


def describe_slice(step: GraphLayer) -> Work:
    """Return the work of taking a box: element by element, or with strides row by row."""
    source, target = step.ends
    strides, width = tuple(step.option("strides", ())), source.element_bytes
    begin = tuple(step.option("begin", ())) or (0,)
    terms: dict[str, float] = {
        "call": 1, "element": target.elements, "dimension": len(source.shape),
        **_count_levels((*(1,) * (5 - len(target.shape)), *target.shape))}
    if not step.option("strided", False) and not set(strides) - {1}:
        return Work(variant=f"{source.dtype} box", terms=terms)
    if strides and strides[-1] != 1:
        return Work(variant=f"{source.dtype} stepped", terms=terms)
    apart = strides[-2] if len(strides) > 1 else 1
    run = target.channels if target.shape else 1
    oldest = Work(variant=f"{8 * width} bits one by one", terms=terms)
    return Work(variant=f"{8 * width} bits strided", oldest=oldest, terms=terms | count_copies(
        run * width, target.elements // run, from_step=source.channels * width * apart,
        from_start=begin[-1] * width % 4))


def describe_concatenation(step: GraphLayer) -> Work:
    """Return the work of joining: a copy of each input for each outer index."""
    axis = step.option("axis", 0)
    target = step.output
    outer = math.prod(target.shape[:axis])
    terms, whole, before = count_copies(0, 0), target.size_bytes // outer, 0
    for tensor in step.reads:
        size = tensor.size_bytes // outer
        terms += count_copies(size, outer, to_step=whole, from_step=size, to_start=before % 4)
        before += size
    return Work(variant="any", terms={
        "call": 1, "part": len(step.layer.inputs), "outer": outer, "dimension": len(target.shape),
        "part dimension": len(step.layer.inputs) * len(target.shape), "axis": axis,
        "part outer": outer * len(step.layer.inputs), **terms})


def describe_split(step: GraphLayer) -> Work:
    """Return the work of parting along an axis: loops over elements."""
    source = step.source
    axis, parts = step.option("axis", 0), len(step.layer.outputs)
    outer = math.prod(source.shape[:axis])
    even = len({tensor.shape for tensor in step.writes}) == 1
    return Work(variant=source.dtype if even else f"{source.dtype} uneven", terms={
        "call": 1, "part": parts, "run": outer * parts, "element": source.elements,
        "outer": outer, "dimension": len(source.shape)})


def describe_stack(step: GraphLayer) -> Work:
    """Return the work of stacking or unstacking tensors."""
    axis = step.option("axis", 0)
    whole = step.graph.tensors[(step.layer.outputs if step.op == "pack" else step.layer.inputs)[0]]
    parts = len(step.layer.inputs if step.op == "pack" else step.layer.outputs)
    outer = math.prod(whole.shape[:axis])
    return Work(variant=whole.dtype, terms={
        "call": 1, "part": parts, "run": outer * parts, "element": whole.elements,
        "dimension": len(whole.shape)})


def describe_gather(step: GraphLayer) -> Work:
    """Return the work of picking along an axis: one copy for each pick, from any place alike."""
    source, target = step.ends
    axis = step.option("axis", 0)
    inner = math.prod(source.shape[axis + 1:])
    outer = math.prod(source.shape[:axis])
    size = inner * source.element_bytes
    copies = sum((count_copies(size, target.elements // inner, from_start=place * size % PERIOD)
                  for place in range(PERIOD)), Counter())
    return Work(variant="any", terms={
        "call": 1, "dimension": len(source.shape), "outer": outer,
        "wide copy": copies["copy"] / PERIOD * (source.element_bytes > 1),
        **{name: count / PERIOD for name, count in copies.items()}})


def describe_scattered(step: GraphLayer) -> Work:
    """Return the work of elements at places the data name: one copy for each (assumed)."""
    target = step.output
    return Work(variant="any", terms={
        "call": 1, **count_copies(target.element_bytes, target.elements)})


def describe_blocks(step: GraphLayer) -> Work:
    """Return the work of moving blocks between space and depth."""
    source, target = step.ends
    wide = source if step.op == "space_to_depth" else target
    return Work(variant=source.dtype, terms={
        "call": 1, "line": wide.shape[1], "pixel": wide.elements // wide.shape[3],
        "element": wide.elements})


def describe_batches(step: GraphLayer) -> Work:
    """Return the work of moving blocks between space and batch: one copy for each pixel."""
    source, target = step.ends
    depth = source.channels * source.element_bytes
    blocked = target if step.op == "space_to_batch_nd" else source
    pixels = blocked.rows
    moved = min(source.elements, target.elements) // source.channels
    terms: Counter[str] = Counter({
        "call": 1, "pixel": pixels, "batch": blocked.shape[0], "moved": moved,
        "line": math.prod(blocked.shape[:2])})
    terms += count_copies(depth, moved, from_step=depth)
    if step.op == "space_to_batch_nd":
        terms += count_fills(depth, pixels - moved, step=depth)
    return Work(variant=source.dtype, terms=terms)


def describe_transpose(step: GraphLayer) -> Work:
    """Return the work of a permutation: one element at a time in nested loops."""
    source, target = step.ends
    rank, perm = len(source.shape), tuple(step.option("perm", ()))
    path, own = "", {}
    if source.dtype == "int8" and 1 < rank <= 4:
        turned = perm[:2] == (0, 1)
        path = f"int8 {'turned' if rank == 2 or (rank == 4 and turned) else 'loops'} {rank}"
        own = {f"source {name}": count for name, count in _count_levels(source.shape).items()}
        own["vector column"] = -(-source.shape[-2] // 8) * source.elements / source.shape[-2]
        own["source column"] = source.elements / source.shape[-2]
    return Work(variant=f"{8 * source.element_bytes} bits {rank}", path=path, own=own, terms={
        "call": 1, "element": target.elements, **_count_levels(target.shape)})


def _count_division(dividend: int, divisor: int) -> int:
    """Return the steps of four bits in which libgcc divides floats without an FPU (Thumb-2)."""
    if not dividend or not divisor & (divisor - 1):
        return 0
    common = math.gcd(dividend, divisor)
    if divisor // common & (divisor // common - 1):
        return 6
    quotient = dividend // common
    return -(-(quotient // (quotient & -quotient)).bit_length() // 4)


def _read_resize(step: GraphLayer) -> tuple[bool, bool, list[tuple[int, int]]]:
    """Return whether corners and centres of pixels meet, and what rows and columns are scaled by.

    By as many places of the source as of the result: where corners meet, those between them.
    """
    source, target = step.ends
    corners, centres = (bool(step.option(name, False))
                        for name in ("align_corners", "half_pixel_centers"))
    return corners, centres, [
        (size - 1, places - 1) if corners and places > 1 else (size, places)
        for size, places in zip(source.shape[1:3], target.shape[1:3], strict=True)]


def describe_nearest(step: GraphLayer) -> Work:
    """Return the work of resizing to the nearest pixel: one code for all types and options.

    Each row and each pixel computes its source in float; without an FPU, what a division takes
    follows from the sizes, and what rounding takes from whether a place is before the first pixel
    or whole.
    """
    source, target = step.ends
    corners, centres, scales = _read_resize(step)
    depth, terms = target.channels * target.element_bytes, Counter[str]()
    rows = target.shape[1]
    pixels = rows * target.shape[2]
    for axis, often, (size, places) in zip((1, 2), (1, rows), scales, strict=True):
        at = [(2 * place + centres) * size for place in range(target.shape[axis])]
        terms += {"quotient step": often * target.shape[axis] * _count_division(size, places),
                  "place below one": often * sum(0 < one < 2 * places for one in at),
                  "whole place": often * sum(not one % (2 * places) for one in at if one),
                  "zero place": often * (not at[0])}
    return Work(variant="rounded" if corners else "floored", terms={
        "call": 1, "line": rows, "pixel": pixels, "centred pixel": pixels * centres,
        f"{source.dtype} pixel": pixels, **terms,
        **count_copies(depth, pixels, from_step=depth)})


def describe_resize(step: GraphLayer) -> Work:
    """Return the work of resizing an image: per pixel, per row of pixels, per element.

    A weight of zero is multiplied by sooner without an FPU: only places between pixels have none.
    """
    source, target = step.ends
    corners, centres, scales = _read_resize(step)
    between = [sum(((2 * place + centres) * size - places * centres) % (2 * places) > 0
                   for place in range(whole))
               for whole, (size, places) in zip(target.shape[1:3], scales, strict=True)]
    rows, pixels = target.shape[1], target.pixels
    return Work(variant=source.dtype, terms={
        "call": 1, "line": rows, "pixel": pixels, "element": target.elements,
        "centred pixel": pixels * centres, "cornered pixel": pixels * corners,
        "element between columns": target.elements * between[1] / target.shape[2],
        "element between": between[0] * between[1] * target.elements / pixels})


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
    "resize_nearest": describe_nearest, "resize_bilinear": describe_resize,
}
