"""Maximum pooling: the first position copied, the others compared, then one clamp.

References
----------
ARM-software/CMSIS-NN 6.0, Source/PoolingFunctions/arm_max_pool_s8.c.
"""

from __future__ import annotations

from hwmodels.kernel import Lowered
from twin.runtimes.cmsis_nn.sequences import (
    CODE,
    bookkeeping,
    entry,
    row_load,
    row_moves,
    row_store,
    vectors,
)
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import BRANCH, block, draft_kernel, join, plain
from twin.runtimes.lowering.geometry import (
    needed_bounds,
    output_steps,
    over_pixels,
    over_window,
    window_bounds,
    window_load,
)
from twin.runtimes.lowering.libc import copy_blocks, copy_moves
from twin.runtimes.lowering.nests import bound, closing, guarded, load, repeat, step, store

_CODE = CODE["max_pool"]


def _lower(site: Site) -> Lowered:
    """Four channels of a position at a time; at an edge every position inside is a comparison."""
    shape, dialect = site.geometry, site.dialect
    text, end, channels = plain(dialect), BRANCH[dialect], shape.input_channels
    pixels = shape.positions
    later = shape.taps_run - pixels
    steps, needed = output_steps(shape), needed_bounds(shape)
    inside = (*needed, bound(-1, 1 << 30, ky=shape.kernel_columns, kx=1))
    compared = [repeat("c", count, *[
        one._replace(offset_bytes=one.offset_bytes + done + width * k, bounds=inside)
        for one in (load("output", width, c=size, **steps),
                    window_load(shape, needed, width, 1, c=size),
                    store("output", width, c=size, **steps)) for k in range(times)])
        for count, done, size, width, times in _parts(channels, text)]
    clamped = [repeat("element", count, closing(name, code[text]), *[
        one("output", width, done + width * k, element=size)
        for one in (load, store) for k in range(times)])
        for (count, done, size, width, times), (name, code) in zip(
            _parts(pixels * channels, text),
            (("clamp four", _CODE.clamp_4), ("clamp", _CODE.clamp_1)), strict=True)]
    quads, rest = divmod(channels, 4)
    return (draft_kernel(
        "arm_max_pool_s8", "pool", site,
        entry(dialect, 60, 1),
        *over_pixels(
            shape,
            block("pixel", join(bookkeeping(dialect, 14, 6, 53, 3), end), pixels, 1),
            block("window row", join(bookkeeping(dialect, 4, 1, 4), end),
                  shape.rows_run, pixels),
            *copy_blocks(dialect, channels, pixels),
            *copy_moves(dialect, channels, window_load(shape, needed), store("output", 1, **steps)),
            block("position", join(bookkeeping(dialect, 3, 1, 6), end), later, pixels),
            block("compare four", _CODE.compare_4[text], later * quads, later),
            block("compare", _CODE.compare_1[text], later * rest, later),
            over_window(shape, *compared)),
        *clamped),)


def _parts(count: int, text: str) -> tuple[tuple[int, int, int, int, int], ...]:
    """Four at once, then single: how many, first byte, bytes each, width, accesses."""
    quads, rest = divmod(count, 4)
    return (quads, 0, 4, *((4, 1) if text == "thumb2" else (1, 4))), (rest, 4 * quads, 1, 1, 1)


def _lower_mve(site: Site) -> Lowered:
    """Sixteen channels of a position at a time.

    The first position of a window only writes; as accesses it reads the output too.
    """
    shape = site.geometry
    rows, places = shape.batches * shape.output_rows, shape.positions
    window_rows = shape.rows_run
    compared = shape.taps_run - places
    bounds, output = window_bounds(shape), output_steps(shape)
    size, per_place = shape.pixels * shape.input_channels, vectors(shape.input_channels)
    result = [window_load(shape, bounds, 16), guarded(row_load("output", 0, **output), *bounds),
              guarded(row_store("output", 0, **output), *bounds)]
    return (draft_kernel(
        "arm_max_pool_s8", "pool", site,
        repeat("batch", shape.batches,
               step("call", _CODE.entry_mve, "kernel_call"),
               block("output row", _CODE.row_mve, rows, shape.batches),
               block("output position", _CODE.position_mve, places, rows),
               block("copy 16", _CODE.copy_mve, places * per_place, places, "data_copy"),
               block("window row", _CODE.window_row_mve, window_rows, places),
               block("window position", _CODE.tap_mve, compared, window_rows),
               block("compare 16", _CODE.compare_mve, compared * per_place, compared),
               repeat("row", shape.output_rows, repeat("column", shape.output_columns, over_window(
                   shape, *row_moves(shape.input_channels, *result)))),
               repeat("vector", vectors(size), closing("clamp 16", _CODE.clamp_mve)),
               *row_moves(size, row_load("output", 0, batch=size),
                          row_store("output", 0, batch=size)))),)


KERNELS: Kernels = {
    "max_pool_2d": {"c": Lowering(lower=_lower), "mve": Lowering(lower=_lower_mve)},
}
