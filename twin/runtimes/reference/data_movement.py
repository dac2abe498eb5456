"""Operators that only move data, plain C: runs through memcpy, or one element at a time.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference: concatenation.h, pad.h,
slice.h, strided_slice.h, transpose.h, resize_nearest_neighbor.h, resize_bilinear.h;
micro/kernels/split.cc, reshape.cc.
"""

from __future__ import annotations

import math
from typing import Any

from hwmodels.kernel import Lowered
from twin.network.graph import Shape
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import block, join
from twin.runtimes.lowering.libc import copy_blocks, copy_moves, run_drafts, split_runs
from twin.runtimes.lowering.nests import bound, by_axis, load, over_axes, repeat, store, strides
from twin.runtimes.reference.sequences import COUNTS, Counts, choose_machine

_COUNTS = COUNTS["data_movement"]

_COPY = "data_copy"
_CALL: Counts = (12, 9, 20)


def _lower_copy(site: Site) -> Lowered:
    """Lower a copy, or a reshape that cannot share memory: one memcpy of the output's size."""
    machine = choose_machine(site)
    size = min(site.output.size_bytes, site.source.size_bytes)
    return machine.kernel(
        "memcpy", "data_movement", _CALL, *copy_blocks(machine.dialect, size, 1),
        *copy_moves(machine.dialect, size, load("input", 1), store("output", 1)),
        assumed=site.layer.assumed)


def _lower_concatenation(site: Site) -> Lowered:
    """Lower a concatenation: of each input, one run per outer index."""
    parts = [tensor.shape for tensor in site.reads]
    whole = site.shape
    return _lower_runs("reference_ops::Concatenation", site, parts, whole, True)


def _lower_split(site: Site) -> Lowered:
    """Lower a split: of each output, one run per outer index."""
    parts = [tensor.shape for tensor in site.writes]
    whole = site.source.shape
    return _lower_runs("SplitImpl", site, parts, whole, False)


def _lower_runs(name: str, site: Site, parts: list[Shape], whole: Shape, joined: bool) -> Lowered:
    machine = choose_machine(site)
    outer, runs = split_runs(parts, whole, site.layer.option("axis", len(whole) - 1),
                             machine.element_bytes)
    each = block("run", machine.loop(_COUNTS["run"]), outer, min(1, outer), _COPY)
    return machine.kernel(
        name, "data_movement", _CALL,
        *[one for run in runs for one in (each, *copy_blocks(machine.dialect, run, outer))],
        *run_drafts(machine.dialect, outer, runs, joined))


def _lower_slice(site: Site) -> Lowered:
    """Lower a slice, strided or not: one element at a time."""
    source = site.source.shape
    begin = site.layer.option("begin", (0,) * len(source))
    every = site.layer.option("strides", (1,) * len(source))
    steps = strides(source)
    return _lower_moved(
        "reference_ops::Slice", site,
        sum(first * step for first, step in zip(begin, steps, strict=False)),
        [step * stride for step, stride in zip(steps, every, strict=False)])


def _lower_transpose(site: Site) -> Lowered:
    """Lower a transposition: one element at a time, in the order of the output."""
    source = site.source.shape
    perm = site.layer.option("perm", tuple(reversed(range(len(source)))))
    steps = strides(source)
    return _lower_moved("reference_ops::Transpose", site, 0, [steps[axis] for axis in perm])


def _lower_moved(name: str, site: Site, first: int, steps: list[int]) -> Lowered:
    machine = choose_machine(site)
    shape, size = site.shape, machine.element_bytes
    count = math.prod(shape)
    if len(steps) != len(shape):  # axes of length one dropped: the bytes stay in order
        first, steps = 0, strides(shape)
    drafts = over_axes(shape, load("input", size, first * size, **by_axis(steps, size)),
                       store("output", size, **by_axis(strides(shape), size)))
    code = join(machine.load(size), machine.store(size), machine.loop(_COUNTS["moved"]))
    return machine.kernel(name, "data_movement", _CALL,
                          block("element", code, count, 1, _COPY), *drafts)


def _lower_pad(site: Site) -> Lowered:
    """Lower padding: every output element is tested, then copied or filled."""
    machine = choose_machine(site)
    source, shape = (tensor.shape for tensor in site.ends)
    size, count = machine.element_bytes, math.prod(shape)
    before = [pair[0] for pair in site.layer.option("paddings", ((0, 0),) * len(shape))]
    steps = strides(source)
    read = load("input", size, -size * sum(a * b for a, b in zip(before, steps, strict=True)),
                **by_axis(steps, size))
    read = read._replace(bounds=tuple(
        bound(-first, extent, **{f"axis{axis}": 1})
        for axis, (first, extent) in enumerate(zip(before, source, strict=True))))
    drafts = over_axes(shape, read, store("output", size, **by_axis(strides(shape), size)))
    test = join(machine.spend(_COUNTS["padded"]), machine.store(size), machine.loop((0, 0, 3)))
    return machine.kernel(
        "reference_ops::Pad", "data_movement", _CALL,
        block("element", test, count, min(1, count), _COPY),
        block("copy element", machine.load(size), math.prod(source), cause=_COPY), *drafts)


def _lower_resize_nearest(site: Site) -> Lowered:
    """Lower nearest-neighbour resizing: all channels of a pixel in one memcpy (assumed)."""
    machine = choose_machine(site)
    run = site.output.channels * machine.element_bytes
    pixels = site.output.rows
    return machine.kernel(
        "reference_ops::ResizeNearestNeighbor", "data_movement", _CALL,
        block("pixel", machine.loop(_COUNTS["pixel"]), pixels, 1, _COPY),
        *copy_blocks(machine.dialect, run, pixels),
        *_resize_drafts(site, lambda read, write: list(
            copy_moves(machine.dialect, run, read, write)), machine.element_bytes),
        assumed=True)


def _lower_resize_bilinear(site: Site) -> Lowered:
    """Lower bilinear resizing: four neighbours weighted per element (assumed)."""
    machine = choose_machine(site)
    output = site.output
    size, channels = machine.element_bytes, output.channels
    code = join(machine.load(size, 4), machine.math(*["mul", "mul", "add"] * 4),
                machine.store(size), machine.loop(_COUNTS["blend"]))
    pixels = output.elements // channels

    def moves(read: Any, write: Any) -> list[Any]:
        sides = [side._replace(width_bytes=size, steps_bytes={**side.steps_bytes, "channel": size})
                 for side in (read, write)]
        return [repeat("channel", channels, *[sides[0]] * 4, sides[1])]

    return machine.kernel(
        "reference_ops::ResizeBilinear", "data_movement", _CALL,
        block("pixel", machine.loop(_COUNTS["pixel"]), pixels, 1),
        block("interpolate", code, output.elements, pixels),
        *_resize_drafts(site, moves, size), assumed=True)


def _resize_drafts(site: Site, moves: Any, size: int) -> list[Any]:
    """Pixels of the output; a source row and column serves scale neighbouring ones.

    Where the scale is not a whole number the source advances evenly over its extent.
    """
    batch, rows, columns, channels = site.source.shape
    _, out_rows, out_columns, _ = site.shape
    down, along = max(1, out_rows // rows), max(1, out_columns // columns)
    whole = rows * down == out_rows and columns * along == out_columns
    pixel = channels * size
    step_row, step_column = columns * pixel, pixel
    if not whole:
        down = along = 1
        step_row = (rows // out_rows if rows > out_rows else 0) * columns * pixel
        step_column = (columns // out_columns if columns > out_columns else 0) * pixel
    read = load("input", 1, 0, batch=rows * columns * pixel, row=step_row, column=step_column)
    write = store("output", 1, 0, batch=out_rows * out_columns * pixel,
                  row=down * out_columns * pixel, down=out_columns * pixel, column=along * pixel,
                  along=pixel)
    return [repeat("batch", batch, repeat("row", out_rows // down, repeat(
        "down", down, repeat("column", out_columns // along, repeat(
            "along", along, *moves(read, write))))))]


KERNELS: Kernels = {
    "concatenation": {"c": Lowering(lower=_lower_concatenation)},
    "copy": {"c": Lowering(lower=_lower_copy)},
    "pad": {"c": Lowering(lower=_lower_pad)},
    "reshape": {"c": Lowering(lower=_lower_copy)},
    "resize_bilinear": {"c": Lowering(lower=_lower_resize_bilinear)},
    "resize_nearest": {"c": Lowering(lower=_lower_resize_nearest)},
    "slice": {"c": Lowering(lower=_lower_slice)},
    "split": {"c": Lowering(lower=_lower_split)},
    "transpose": {"c": Lowering(lower=_lower_transpose)},
}
