"""Pooling, plain C: one channel of one output position at a time.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference: pooling.h;
integer_ops/pooling.h.
"""

from __future__ import annotations

from hwmodels.kernel import Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import block, join
from twin.runtimes.lowering.geometry import (
    Geometry,
    output_steps,
    over_pixels,
    over_window,
    read_geometry,
    window_bounds,
    window_load,
)
from twin.runtimes.lowering.nests import closing, repeat, store
from twin.runtimes.reference.sequences import Counts, Machine, Table, choose_machine

_Levels = dict[str, Table]

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
_ROW: Table = {"thumb2": (5, 4, 11), "thumb1": (6, 5, 14), "rv32": (2, 2, 16)}
_CALL: Counts = (16, 13, 25)
_DIVISION = {"thumb2": "sdiv r1, r1, r3", "rv32": "div a1, a1, a3"}
_LONG_DIVISION = 60  # shift-and-subtract of a small sum by a small count (assumed)


def _lower_average(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower average pooling: sum and count over the window inside the input, then divide."""
    machine = choose_machine(graph, layer, site)
    soft = machine.number == "soft"
    inner = join(machine.load(machine.element_bytes), machine.math(*["add"] * (2 if soft else 1)))
    divide = machine.math("div", *["compare"] * (3 * soft)) if machine.is_float else (
        _DIVISION.get(machine.dialect, machine.routine(_LONG_DIVISION)))
    return _lower("AveragePool", machine, read_geometry(graph, layer), _AVERAGE, inner, divide)


def _lower_max(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower maximum pooling."""
    machine = choose_machine(graph, layer, site)
    inner = join(machine.load(machine.element_bytes), machine.math("compare"))
    finish = machine.math("compare", "compare") if machine.number == "soft" else ""
    return _lower("MaxPool", machine, read_geometry(graph, layer), _MAXIMUM, inner, finish)


def _lower(name: str, machine: Machine, shape: Geometry, levels: _Levels, inner: str,
           finish: str) -> tuple[Kernel, ...]:
    pixels, rows = shape.batches * shape.pixels, shape.batches * shape.output_rows
    channels, size = shape.input_channels, machine.element_bytes
    window_rows = shape.window_rows * shape.batches * channels
    return machine.kernel(
        f"{machine.namespace}::{name}", "pool", _CALL,
        *over_pixels(shape, repeat(
            "channel", channels,
            block("window position", join(inner, machine.loop(levels["position"])),
                  shape.taps_inside * shape.batches * channels, window_rows),
            over_window(shape, window_load(shape, window_bounds(shape), size, size, channel=size)),
            block("window row", machine.loop(levels["window_row"]), window_rows,
                  pixels * channels),
            closing("output", join(finish, machine.store(size),
                                   machine.loop(levels["output"]))),
            store("output", size, 0, channel=size, **output_steps(shape, size)))),
        block("pixel", machine.loop(levels["pixel"]), pixels, rows),
        block("row", machine.loop(_ROW), rows, shape.batches))


KERNELS: Kernels = {
    "average_pool_2d": {"c": Lowering(lower=_lower_average)},
    "max_pool_2d": {"c": Lowering(lower=_lower_max)},
}
