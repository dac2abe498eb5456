"""Average pooling: channel by channel in C, sums of all channels with DSP, sixteen with Helium.

The Helium mix is gcc's at -O3: at -O2 the division loop stays rolled and spills, which the
Apollo510 measurement does not show.

References
----------
ARM-software/CMSIS-NN 6.0, Source/PoolingFunctions/arm_avgpool_s8.c.
"""

from __future__ import annotations

from typing import Any

from hwmodels.kernel import Lowered
from twin.runtimes.cmsis_nn.sequences import (
    CODE,
    bookkeeping,
    entry,
    floor_width,
    row_store,
    vectors,
)
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import BRANCH, block, draft_kernel, join
from twin.runtimes.lowering.geometry import (
    Geometry,
    needed_bounds,
    output_steps,
    over_pixels,
    over_window,
    window_bounds,
    window_load,
)
from twin.runtimes.lowering.nests import bound, closing, guarded, load, repeat, step, store

_CODE = CODE["average_pool"]


def _lower_c(site: Site) -> Lowered:
    """One channel of one position at a time."""
    shape, dialect = site.geometry, site.dialect
    channels, end = shape.input_channels, BRANCH[dialect]
    pixels, taps = shape.positions, shape.taps_run * channels
    lines = pixels * channels * shape.kernel_rows
    return (draft_kernel(
        "arm_avgpool_s8", "pool", site,
        entry(dialect, 70, 1),
        *over_pixels(
            shape,
            block("pixel", join(bookkeeping(dialect, 10, 6, 12), end), pixels, 1),
            repeat("c", channels,
                   closing("channel", join(bookkeeping(dialect, 4, 2, 7, 1), _CODE.average[dialect],
                                           end)),
                   repeat("ky", shape.kernel_rows,
                          closing("window row", join(bookkeeping(dialect, 0, 0, 6), end))),
                   block("position", _CODE.sum_tap[dialect], taps, lines),
                   block("position outside", _CODE.skip_tap[dialect],
                         shape.batches * shape.taps * channels - taps),
                   over_window(shape, window_load(shape, needed_bounds(shape), c=1)),
                   store("output", 1, c=1, **output_steps(shape))))),)


def _lower_dsp(site: Site) -> Lowered:
    """Return sums of all channels of a position in a buffer of 32-bit words."""
    shape, dialect = site.geometry, site.dialect
    channels, end = shape.input_channels, BRANCH[dialect]
    pixels = shape.positions
    later = shape.taps_run - pixels
    source = window_load(shape, needed_bounds(shape), c=1)
    read, write = load("scratch", 4, c=4), store("scratch", 4, c=4)
    not_first = bound(-1, 1 << 30, ky=shape.kernel_columns, kx=1)
    return (draft_kernel(
        "arm_avgpool_s8", "pool", site,
        entry(dialect, 70, 1),
        *over_pixels(
            shape,
            block("pixel", join(bookkeeping(dialect, 14, 8, 50), end), pixels, 1),
            block("window row", join(bookkeeping(dialect, 3, 1, 4), end),
                  shape.rows_run, pixels),
            repeat("c", channels, closing("first position", _CODE.first), write),
            block("position", join(bookkeeping(dialect, 1, 1, 10), end), later, pixels),
            block("accumulate", _CODE.accumulate, later * channels, later),
            over_window(shape, repeat(
                "c", channels, source, *[guarded(one, *source.bounds, not_first)
                                         for one in (read, write)])),
            repeat("c", channels, closing("divide", _CODE.divide), read,
                   store("output", 1, c=1, **output_steps(shape))))),)


def _scratch_bytes_dsp(site: Site) -> int:
    """Return a 32-bit sum per channel."""
    return 4 * site.geometry.input_channels


def _lower_mve(site: Site) -> Lowered:
    """Sixteen channels at a time; the sums stay in vector registers."""
    shape = site.geometry
    full, tail = divmod(shape.input_channels, 16)
    per_pixel = vectors(shape.input_channels)
    window_rows = shape.rows_run * per_pixel
    pixels, rows = shape.positions, shape.batches * shape.output_rows
    return (draft_kernel(
        "arm_avgpool_s8", "pool", site,
        block("call", _CODE.entry_mve, shape.batches, cause="kernel_call"),
        block("output row", _CODE.row_mve, rows, shape.batches),
        *over_pixels(
            shape,
            block("output position", _CODE.position_mve, pixels, rows),
            repeat("vector", per_pixel,
                   step("16 channels", _CODE.channels_mve),
                   block("window row", _CODE.window_row_mve, window_rows, pixels * per_pixel),
                   block("sum 16", _CODE.sum_mve, shape.taps_run * per_pixel,
                         window_rows),
                   closing("divide 16", join(_CODE.signs_mve, *[_CODE.divide_mve] * 4,
                                             _CODE.narrow_mve))),
            repeat("vector", full, *_vector(shape, 16, 0)),
            *(_vector(shape, floor_width(tail), 16 * full) if tail else ()))),)


def _vector(shape: Geometry, width_bytes: int, offset_bytes: int) -> list[Any]:
    """Return accesses of up to sixteen channels from `offset_bytes` on."""
    source = window_load(shape, window_bounds(shape), width_bytes, 1, vector=16)
    return [
        over_window(shape, source._replace(offset_bytes=source.offset_bytes + offset_bytes)),
        row_store("output", offset_bytes, vector=16, **output_steps(shape)
                  )._replace(width_bytes=width_bytes)]


KERNELS: Kernels = {
    "average_pool_2d": {
        "c": Lowering(lower=_lower_c),
        "dsp": Lowering(lower=_lower_dsp, scratch_bytes=_scratch_bytes_dsp),
        "mve": Lowering(lower=_lower_mve),
    },
}
