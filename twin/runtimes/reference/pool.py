"""Pooling, plain C: one channel of one output position at a time.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference: pooling.h;
integer_ops/pooling.h.
"""

from __future__ import annotations

from hwmodels.kernel import Lowered
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import block, join
from twin.runtimes.lowering.geometry import (
    Geometry,
    output_steps,
    over_pixels,
    over_window,
    window_bounds,
    window_load,
)
from twin.runtimes.lowering.nests import closing, repeat, store
from twin.runtimes.reference.sequences import CODE, COUNTS, Counts, Machine, Table, choose_machine

_COUNTS = COUNTS["pool"]

_CALL: Counts = (16, 13, 25)
_LONG_DIVISION = 60  # shift-and-subtract of a small sum by a small count (assumed)


def _lower_average(site: Site) -> Lowered:
    """Lower average pooling: sum and count over the window inside the input, then divide."""
    machine = choose_machine(site)
    soft = machine.number == "soft"
    inner = join(machine.load(machine.element_bytes), machine.math(*["add"] * (2 if soft else 1)))
    divide = machine.math("div", *["compare"] * (3 * soft)) if machine.is_float else (
        CODE["division"].get(machine.dialect, machine.routine(_LONG_DIVISION)))
    return _lower("AveragePool", machine, site.geometry, _COUNTS["average"], inner, divide)


def _lower_max(site: Site) -> Lowered:
    """Lower maximum pooling."""
    machine = choose_machine(site)
    inner = join(machine.load(machine.element_bytes), machine.math("compare"))
    finish = machine.math("compare", "compare") if machine.number == "soft" else ""
    return _lower("MaxPool", machine, site.geometry, _COUNTS["maximum"], inner, finish)


def _lower(name: str, machine: Machine, shape: Geometry, levels: dict[str, Table], inner: str,
           finish: str) -> Lowered:
    pixels, rows = shape.positions, shape.batches * shape.output_rows
    channels, size = shape.input_channels, machine.element_bytes
    window_rows = shape.rows_run * channels
    return machine.kernel(
        f"{machine.namespace}::{name}", "pool", _CALL,
        *over_pixels(shape, repeat(
            "channel", channels,
            block("window position", join(inner, machine.loop(levels["position"])),
                  shape.taps_run * channels, window_rows),
            over_window(shape, window_load(shape, window_bounds(shape), size, size, channel=size)),
            block("window row", machine.loop(levels["window_row"]), window_rows,
                  pixels * channels),
            closing("output", join(finish, machine.store(size),
                                   machine.loop(levels["output"]))),
            store("output", size, 0, channel=size, **output_steps(shape, size)))),
        block("pixel", machine.loop(levels["pixel"]), pixels, rows),
        block("row", machine.loop(_COUNTS["row"]), rows, shape.batches))


KERNELS: Kernels = {
    "average_pool_2d": {"c": Lowering(lower=_lower_average)},
    "max_pool_2d": {"c": Lowering(lower=_lower_max)},
}
