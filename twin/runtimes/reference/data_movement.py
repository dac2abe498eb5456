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

from hwmodels.kernel import Block, Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.dialect import block, join
from twin.runtimes.cmsis_nn.libc import copy_blocks, copy_moves
from twin.runtimes.cmsis_nn.nests import bound, load, repeat, resolve, store
from twin.runtimes.lowering import Site
from twin.runtimes.reference.sequences import (
    Counts,
    Machine,
    arithmetic,
    bookkeeping,
    call_block,
    choose_machine,
    load_text,
    looped,
    make_kernel,
    store_text,
)

_COPY = "data_copy"
_CALL: Counts = (12, 9, 20)
_RUN: dict[str, Counts] = {"thumb2": (3, 1, 7), "thumb1": (4, 1, 10), "rv32": (3, 1, 8)}
_MOVED: dict[str, Counts] = {"thumb2": (1, 0, 6), "thumb1": (2, 0, 9), "rv32": (1, 0, 6)}
_PADDED: dict[str, Counts] = {"thumb2": (4, 0, 12), "thumb1": (6, 1, 16), "rv32": (3, 0, 12)}
_PIXEL: dict[str, Counts] = {"thumb2": (10, 4, 26), "thumb1": (14, 6, 38), "rv32": (9, 4, 28)}
_BLEND: dict[str, Counts] = {"thumb2": (8, 1, 26), "thumb1": (12, 3, 40), "rv32": (8, 1, 28),
                             "thumb2 float": (8, 0, 18)}
"""Bookkeeping per copied run, per moved element, per element tested against the padding, per
resized pixel, per interpolated element."""


def lower_copy(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a copy, or a reshape that cannot share memory: one memcpy of the output's size."""
    machine = choose_machine(graph, layer, site)
    size = min(graph.tensors[layer.outputs[0]].size_bytes,
               graph.tensors[layer.inputs[0]].size_bytes)
    return (make_kernel(
        "memcpy", "data_movement", machine, site,
        (call_block(machine, _CALL), *copy_blocks(machine.dialect, size, 1)),
        resolve(*copy_moves(machine.dialect, size, load("input", 1), store("output", 1))),
        assumed=layer.assumed),)


def lower_concatenation(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a concatenation: of each input, one run per outer index.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `concatenation` with option `axis`.
    site : Site
        Operands: input, input2, ..., output.
    """
    machine = choose_machine(graph, layer, site)
    shapes = [graph.tensors[place].shape for place in layer.inputs]
    return (_lower_runs("reference_ops::Concatenation", machine, layer, site, shapes,
                        graph.tensors[layer.outputs[0]].shape, "input"),)


def lower_split(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a split: of each output, one run per outer index.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `split` with option `axis`.
    site : Site
        Operands: input, output, output2, ...
    """
    machine = choose_machine(graph, layer, site)
    shapes = [graph.tensors[place].shape for place in layer.outputs]
    return (_lower_runs("SplitImpl", machine, layer, site, shapes,
                        graph.tensors[layer.inputs[0]].shape, "output"),)


def _lower_runs(name: str, machine: Machine, layer: Layer, site: Site,
                parts: list[tuple[int, ...]], whole: tuple[int, ...], side: str) -> Kernel:
    axis = layer.option("axis", len(whole) - 1)
    size = machine.element_bytes
    outer, stride = math.prod(whole[:axis]), math.prod(whole[axis:]) * size
    blocks: list[Block] = [call_block(machine, _CALL)]
    drafts: list[Any] = []
    start = 0
    for place, shape in enumerate(parts):
        run = math.prod(shape[axis:]) * size
        operand = side if place == 0 else f"{side}{place + 1}"
        blocks += (block("run", looped(machine.dialect, machine.pick(_RUN)), outer,
                         min(1, outer), _COPY), *copy_blocks(machine.dialect, run, outer))
        small, large = (0, {"outer": run}), (start, {"outer": stride})
        read, write = (small, large) if side == "input" else (large, small)
        drafts.append(repeat("outer", outer, *copy_moves(
            machine.dialect, run,
            load(operand if side == "input" else "input", 1, read[0], **read[1]),
            store("output" if side == "input" else operand, 1, write[0], **write[1]))))
        start += run
    return make_kernel(name, "data_movement", machine, site, tuple(blocks), resolve(*drafts))


def lower_slice(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a slice, strided or not: one element at a time.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `slice` with options `begin` and `strides`.
    site : Site
        Operands: input, output.
    """
    source = graph.tensors[layer.inputs[0]].shape
    begin = layer.option("begin", (0,) * len(source))
    strides = layer.option("strides", (1,) * len(source))
    steps = _strides(source)
    return (_lower_moved(
        "reference_ops::Slice", graph, layer, site,
        sum(first * step for first, step in zip(begin, steps, strict=False)),
        [step * stride for step, stride in zip(steps, strides, strict=False)]),)


def lower_transpose(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a transposition: one element at a time, in the order of the output.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `transpose` with option `perm`.
    site : Site
        Operands: input, output.
    """
    source = graph.tensors[layer.inputs[0]].shape
    perm = layer.option("perm", tuple(reversed(range(len(source)))))
    steps = _strides(source)
    return (_lower_moved("reference_ops::Transpose", graph, layer, site, 0,
                         [steps[axis] for axis in perm]),)


def _lower_moved(name: str, graph: Graph, layer: Layer, site: Site, first: int,
                 steps: list[int]) -> Kernel:
    machine = choose_machine(graph, layer, site)
    shape, size = graph.tensors[layer.outputs[0]].shape, machine.element_bytes
    count = math.prod(shape)
    axes = [f"axis{place}" for place in range(len(shape))]
    if len(steps) != len(shape):  # axes of length one dropped: the bytes stay in order
        first, steps = 0, _strides(shape)
    body: list[Any] = [
        load("input", size, first * size,
             **{name: step * size for name, step in zip(axes, steps, strict=True)}),
        store("output", size, 0,
              **{name: step * size for name, step in zip(axes, _strides(shape), strict=True)})]
    for axis, extent in reversed(list(zip(axes, shape, strict=True))):
        body = [repeat(axis, extent, *body)]
    code = join(load_text(machine, size), store_text(machine, size),
                looped(machine.dialect, machine.pick(_MOVED)))
    return make_kernel(name, "data_movement", machine, site, (
        call_block(machine, _CALL), block("element", code, count, min(1, count), _COPY)),
        resolve(*body))


def lower_pad(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower padding: every output element is tested, then copied or filled.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `pad` with option `paddings`, (before, after) by axis.
    site : Site
        Operands: input, output.
    """
    machine = choose_machine(graph, layer, site)
    source, shape = (graph.tensors[i].shape for i in (layer.inputs[0], layer.outputs[0]))
    size, count = machine.element_bytes, math.prod(shape)
    before = [pair[0] for pair in layer.option("paddings", ((0, 0),) * len(shape))]
    axes = [f"axis{place}" for place in range(len(shape))]
    steps = _strides(source)
    read = load("input", size, -size * sum(a * b for a, b in zip(before, steps, strict=True)),
                **{axis: step * size for axis, step in zip(axes, steps, strict=True)})
    read = read._replace(bounds=tuple(
        bound(-first, extent, **{axis: 1}) for axis, first, extent in zip(
            axes, before, source, strict=True)))
    body: list[Any] = [read, store("output", size, 0, **{
        axis: step * size for axis, step in zip(axes, _strides(shape), strict=True)})]
    for axis, extent in reversed(list(zip(axes, shape, strict=True))):
        body = [repeat(axis, extent, *body)]
    dialect, copied = machine.dialect, math.prod(source)
    blocks = (
        call_block(machine, _CALL),
        block("element", join(bookkeeping(dialect, machine.pick(_PADDED)),
                              store_text(machine, size), looped(dialect, (0, 0, 3))), count,
              min(1, count), _COPY),
        block("copy element", load_text(machine, size), copied, cause=_COPY),
    )
    return (make_kernel("reference_ops::Pad", "data_movement", machine, site, blocks,
                        resolve(*body)),)


def lower_resize_nearest(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower nearest-neighbour resizing: all channels of a pixel in one memcpy (assumed).

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `resize_nearest`.
    site : Site
        Operands: input, output.
    """
    machine = choose_machine(graph, layer, site)
    run = graph.tensors[layer.outputs[0]].shape[-1] * machine.element_bytes
    pixels = graph.tensors[layer.outputs[0]].elements // graph.tensors[layer.outputs[0]].shape[-1]
    pixel = looped(machine.dialect, machine.pick(_PIXEL))
    nests = resolve(*_resize_drafts(graph, layer, lambda read, write: list(
        copy_moves(machine.dialect, run, read, write)), machine.element_bytes))
    return (make_kernel("reference_ops::ResizeNearestNeighbor", "data_movement", machine, site, (
        call_block(machine, _CALL), block("pixel", pixel, pixels, 1, _COPY),
        *copy_blocks(machine.dialect, run, pixels)), nests, assumed=True),)


def lower_resize_bilinear(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower bilinear resizing: four neighbours weighted per element (assumed).

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `resize_bilinear`.
    site : Site
        Operands: input, output.
    """
    machine = choose_machine(graph, layer, site)
    output = graph.tensors[layer.outputs[0]]
    size, channels = machine.element_bytes, output.shape[-1]
    weigh = join(*[join(arithmetic(machine, "mul"), arithmetic(machine, "mul"),
                        arithmetic(machine, "add"))] * 4) if machine.is_float else ""
    code = join(load_text(machine, size, 4), weigh, store_text(machine, size),
                looped(machine.dialect, machine.pick(_BLEND)))
    pixels = output.elements // channels

    def moves(read: Any, write: Any) -> list[Any]:
        sides = [side._replace(width_bytes=size, steps_bytes={**side.steps_bytes, "channel": size})
                 for side in (read, write)]
        return [repeat("channel", channels, *[sides[0]] * 4, sides[1])]

    return (make_kernel("reference_ops::ResizeBilinear", "data_movement", machine, site, (
        call_block(machine, _CALL),
        block("pixel", looped(machine.dialect, machine.pick(_PIXEL)), pixels, 1),
        block("interpolate", code, output.elements, pixels)),
        resolve(*_resize_drafts(graph, layer, moves, size)), assumed=True),)


def _resize_drafts(graph: Graph, layer: Layer, moves: Any, size: int) -> list[Any]:
    """Pixels of the output; a source row and column serves scale neighbouring ones.

    Where the scale is no whole number the source advances evenly over its extent.
    """
    batch, rows, columns, channels = graph.tensors[layer.inputs[0]].shape
    _, out_rows, out_columns, _ = graph.tensors[layer.outputs[0]].shape
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


def _strides(shape: tuple[int, ...]) -> list[int]:
    """Elements between neighbours along each axis."""
    return [math.prod(shape[place + 1:]) for place in range(len(shape))]
