"""Pooling and reductions, plain C: one channel of one output position at a time.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference: pooling.h, reduce.h;
integer_ops/pooling.h, integer_ops/mean.h.
"""

from __future__ import annotations

import math
from typing import Any

from hwmodels.kernel import Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.dialect import block, join
from twin.runtimes.cmsis_nn.geometry import Geometry, read_geometry
from twin.runtimes.cmsis_nn.nests import bound, load, repeat, resolve, store
from twin.runtimes.lowering import Site
from twin.runtimes.reference.sequences import (
    Counts,
    Machine,
    arithmetic,
    call_block,
    choose_machine,
    load_text,
    looped,
    make_kernel,
    requantise,
    routine,
    store_text,
)

_Levels = dict[str, dict[str, Counts]]

_AVERAGE: _Levels = {
    "position": {"thumb2": (0, 0, 5), "thumb1": (0, 0, 6), "rv32": (0, 0, 4),
                 "thumb2 float": (0, 0, 5), "thumb2 soft": (0, 0, 9)},
    "window_row": {"thumb2": (0, 0, 9), "thumb1": (0, 0, 9), "rv32": (0, 0, 7),
                   "thumb2 float": (0, 0, 8), "thumb2 soft": (5, 1, 10)},
    "output": {"thumb2": (13, 2, 39), "thumb1": (18, 2, 56), "rv32": (6, 0, 39),
               "thumb2 float": (4, 0, 19), "thumb2 soft": (11, 3, 23)},
    "pixel": {"thumb2": (3, 4, 9), "thumb1": (7, 6, 15), "rv32": (7, 7, 11),
              "thumb2 float": (13, 3, 28), "thumb2 soft": (17, 9, 28)},
}
_MAXIMUM: _Levels = {
    "position": {"thumb2": (0, 0, 6), "thumb1": (0, 0, 9), "rv32": (0, 0, 8),
                 "thumb2 float": (0, 0, 3), "thumb2 soft": (0, 0, 7)},
    "window_row": {"thumb2": (0, 0, 8), "thumb1": (1, 0, 12), "rv32": (0, 0, 6),
                   "thumb2 float": (0, 0, 10), "thumb2 soft": (3, 1, 10)},
    "output": {"thumb2": (11, 2, 32), "thumb1": (15, 2, 54), "rv32": (7, 1, 37),
               "thumb2 float": (5, 2, 20), "thumb2 soft": (13, 5, 23)},
    "pixel": {"thumb2": (4, 3, 12), "thumb1": (7, 6, 18), "rv32": (5, 5, 13),
              "thumb2 float": (15, 4, 28), "thumb2 soft": (15, 9, 29)},
}
_ROW: dict[str, Counts] = {"thumb2": (5, 4, 11), "thumb1": (6, 5, 14), "rv32": (2, 2, 16)}
_CALL: Counts = (16, 13, 25)
_DIVISION = {"thumb2": "sdiv r1, r1, r3", "rv32": "div a1, a1, a3"}
_LONG_DIVISION = 60  # shift-and-subtract of a small sum by a small count (assumed)


def lower_average_pool(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower average pooling: sum and count over the window inside the input, then divide.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        An `average_pool_2d`.
    site : Site
        Operands: input, output.
    """
    machine = choose_machine(graph, layer, site)
    if machine.is_float:
        inner = join(load_text(machine, 4), arithmetic(machine, "add"),
                     arithmetic(machine, "add") if machine.number == "soft" else "")
        divide = join(arithmetic(machine, "div"), *[arithmetic(machine, "compare")] * 3
                      if machine.number == "soft" else [])
    else:
        inner = load_text(machine, machine.element_bytes)
        divide = _DIVISION.get(machine.dialect, routine(machine.dialect, _LONG_DIVISION))
    name = f"{_namespace(machine)}::AveragePool"
    return (_lower(name, machine, read_geometry(graph, layer), site, _AVERAGE, inner, divide),)


def lower_max_pool(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower maximum pooling.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `max_pool_2d`.
    site : Site
        Operands: input, output.
    """
    machine = choose_machine(graph, layer, site)
    inner = join(load_text(machine, machine.element_bytes),
                 arithmetic(machine, "compare") if machine.is_float else "")
    finish = join(*[arithmetic(machine, "compare")] * 2) if machine.number == "soft" else ""
    name = f"{_namespace(machine)}::MaxPool"
    return (_lower(name, machine, read_geometry(graph, layer), site, _MAXIMUM, inner, finish),)


def _namespace(machine: Machine) -> str:
    return "reference_ops" if machine.is_float else "reference_integer_ops"


def _lower(name: str, machine: Machine, shape: Geometry, site: Site, levels: _Levels, inner: str,
           finish: str) -> Kernel:
    dialect = machine.dialect
    counts = {level: machine.pick(table) for level, table in levels.items()}
    pixels = shape.batches * shape.pixels
    outputs = pixels * shape.input_channels
    inside = shape.taps_inside * shape.batches * shape.input_channels
    window_rows = (sum(shape.row_taps) * shape.output_columns * shape.batches
                   * shape.input_channels)
    blocks = (
        call_block(machine, _CALL),
        block("window position", join(inner, looped(dialect, counts["position"])), inside,
              window_rows),
        block("window row", looped(dialect, counts["window_row"]), window_rows, outputs),
        block("output", join(finish, store_text(machine, machine.element_bytes),
                             looped(dialect, counts["output"])), outputs, pixels),
        block("pixel", looped(dialect, counts["pixel"]), pixels, shape.batches * shape.output_rows),
        block("row", looped(dialect, machine.pick(_ROW)), shape.batches * shape.output_rows,
              shape.batches),
    )
    return make_kernel(name, "pool", machine, site, blocks, resolve(_drafts(machine, shape)))


def _drafts(machine: Machine, shape: Geometry) -> Any:
    window, size = shape.window, machine.element_bytes
    pixel = shape.input_channels * size
    line = shape.input_columns * pixel
    data = load("input", size, -window.padding[0] * line - window.padding[2] * pixel,
                batch=shape.input_rows * line, row=window.stride[0] * line, ky=line,
                column=window.stride[1] * pixel, kx=pixel, channel=size)._replace(bounds=(
                    bound(-window.padding[0], shape.input_rows, row=window.stride[0], ky=1),
                    bound(-window.padding[2], shape.input_columns, column=window.stride[1], kx=1)))
    out = store("output", size, 0, batch=shape.pixels * pixel, row=shape.output_columns * pixel,
                column=pixel, channel=size)
    return repeat("batch", shape.batches, repeat("row", shape.output_rows, repeat(
        "column", shape.output_columns, repeat("channel", shape.input_channels, repeat(
            "ky", shape.kernel_rows, repeat("kx", shape.kernel_columns, data)), out))))


_SUM: dict[str, Counts] = {"thumb2": (0, 0, 5), "thumb1": (0, 0, 6), "rv32": (0, 0, 4)}
_ELEMENT: dict[str, Counts] = {"thumb2": (8, 4, 18), "thumb1": (11, 5, 26), "rv32": (8, 4, 20)}
_RESULT: dict[str, Counts] = {"thumb2": (8, 2, 18), "thumb1": (11, 3, 28), "rv32": (8, 2, 18)}
"""Per summed element of a spatial mean, per element of a general reduction (the output index is
computed from the input's, assumed), per result."""


def lower_mean(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a mean: over both spatial axes by plain sums, otherwise by the general reduction.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `mean` with option `axes`.
    site : Site
        Operands: input, output.
    """
    machine = choose_machine(graph, layer, site)
    spatial = tuple(sorted(_axes(graph, layer))) == (1, 2)
    add = arithmetic(machine, "add") if machine.is_float else ""
    divide = arithmetic(machine, "div") if machine.is_float else requantise(machine)
    return (_reduce("reference_ops::Mean", graph, layer, machine, site,
                    add, divide, _SUM if spatial else _ELEMENT, not spatial),)


def lower_reduce_max(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a maximum over axes by the general reduction.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `reduce_max` with option `axes`.
    site : Site
        Operands: input, output.
    """
    machine = choose_machine(graph, layer, site)
    compare = arithmetic(machine, "compare") if machine.is_float else ""
    return (_reduce("reference_ops::ReduceGeneric", graph, layer, machine, site, compare, "",
                    _ELEMENT, True),)


def _axes(graph: Graph, layer: Layer) -> tuple[int, ...]:
    rank = len(graph.tensors[layer.inputs[0]].shape)
    axes = layer.option("axes", layer.option("axis", tuple(range(1, rank - 1))))
    return tuple(axis % rank for axis in ((axes,) if isinstance(axes, int) else axes))


def _reduce(name: str, graph: Graph, layer: Layer, machine: Machine, site: Site, combine: str,
            finish: str, per_element: dict[str, Counts], assumed: bool) -> Kernel:
    source = graph.tensors[layer.inputs[0]]
    results = graph.tensors[layer.outputs[0]].elements
    size = machine.element_bytes
    blocks = (
        call_block(machine, _CALL),
        block("element", join(load_text(machine, size), combine,
                              looped(machine.dialect, machine.pick(per_element))),
              source.elements, results),
        block("result", join(finish, store_text(machine, size),
                             looped(machine.dialect, machine.pick(_RESULT))), results, 1),
    )
    nests = resolve(*_reduce_drafts(source.shape, _axes(graph, layer), size))
    return make_kernel(name, "reduce", machine, site, blocks, nests, assumed=assumed)


def _reduce_drafts(shape: tuple[int, ...], axes: tuple[int, ...], size: int) -> list[Any]:
    """Every result in turn: all elements that fall into it read, then it is stored."""
    steps = [size * math.prod(shape[axis + 1:]) for axis in range(len(shape))]
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    draft: Any = load("input", size, 0, **{f"axis{i}": steps[i] for i in range(len(shape))})
    for axis in reversed(axes):
        draft = repeat(f"axis{axis}", shape[axis], draft)
    out: dict[str, int] = {}
    width = size
    for axis in reversed(kept):
        out[f"axis{axis}"] = width
        width *= shape[axis]
    body: tuple[Any, ...] = (draft, store("output", size, 0, **out))
    for axis in reversed(kept):
        body = (repeat(f"axis{axis}", shape[axis], *body),)
    return list(body)
