"""ESP-NN's vectors on the ESP32-P4: C with 16 lanes of 8 bits, requantised in scalar code.

References
----------
espressif/esp-nn d45b843: src/*/esp_nn_*_esp32p4.c; convolutions of 1x1, of rows of 16 values and
more, and of windows copied to a column; depthwise of 16 channels at once.
"""

from __future__ import annotations

from dataclasses import replace

from hwmodels.kernel import Block, Blocks, Lowered
from twin.runtimes.esp_nn_ansi.kernels import dense_accesses, pool_accesses
from twin.runtimes.esp_nn_ansi.sequences import (
    INT8,
    LEVELS,
    call_level,
    has_offset,
    looped,
    run_through,
)
from twin.runtimes.lowering import Lowering, Site
from twin.runtimes.lowering.blocks import build_kernel
from twin.runtimes.lowering.geometry import Geometry
from twin.runtimes.lowering.nests import resolve
from twin.runtimes.reference.windows import conv_accesses, depthwise_accesses

LANES = 16
_LEVELS = LEVELS["p4"]


def _loop(name: str, level: str, trips: int, entries: int) -> Block:
    return looped(name, _LEVELS[level], trips, entries)


def _dot(name: str, length: int, times: int) -> Blocks:
    """Return a dot product so often: 32 or 16 values a turn, the first before it, the rest after.

    The loop of 32 takes sixteen more behind it; what is left is multiplied one by one.
    """
    wide = "thirty_two" if length >= 2 * LANES else "sixteen"
    turns = length // (2 * LANES if length >= 2 * LANES else LANES)
    half = length >= 2 * LANES and length // LANES % 2
    return (run_through(f"{name} entered", _LEVELS[f"{wide}_entered"], times if turns else 0),
            _loop(f"{name}, {wide.replace('_', '-')}", wide, times * max(0, turns - 1), times),
            run_through(f"{name}, sixteen more", _LEVELS["half"], times if half else 0),
            _loop(f"{name} left over", "one", times * (length % LANES), times))


def _rest(name: str, length: int, times: int) -> Blocks:
    """Return what loops of 16 leave of a row so often: four a turn, then one by one."""
    fours, ones = divmod(length % LANES, 4)
    return (run_through(f"{name} left over", _LEVELS["rest_entered"],
                        times if length % LANES else 0),
            _loop(f"{name}, four", "four", times * fours, times),
            _loop(f"{name}, one", "one", times * ones, times))


def lower_conv(first: bool, site: Site) -> Lowered:
    """Lower a convolution by the size of its window, as the library chooses; 1.1.0 is the `first`.

    That multiplies positions and rows of fewer than 16 values one by one.
    """
    shape = site.geometry
    depth, pixels = shape.input_channels, shape.positions
    row = shape.kernel_columns * depth
    if shape.is_pointwise and shape.window.stride == (1, 1):
        blocks = (_batch_blocks(shape, pixels) if depth < LANES and not first
                  else _pixel_blocks(shape, pixels))
    elif (first or row >= LANES) and not any(shape.window.padding[::2]):
        blocks = _row_blocks(shape, row)
    elif row * shape.kernel_rows >= LANES:
        blocks = _column_blocks(shape, pixels, row * shape.kernel_rows)
    else:
        blocks = _tile_blocks(shape)
    return (build_kernel(
        "esp_nn_conv_s8_esp32p4", "pointwise" if shape.is_pointwise else "conv", site,
        (call_level(_LEVELS["call"]), *blocks), resolve(*conv_accesses(INT8, shape, 1)),
        shape.products * depth),)


def _pixel_blocks(shape: Geometry, pixels: int) -> Blocks:
    """Return a dot product for each output of a 1x1 convolution."""
    depth, outputs = shape.input_channels, shape.outputs
    return (_loop("sums of filters", "sum_four", shape.output_channels * depth // 4, 1),
            run_through("window entered", _LEVELS["sixteen_entered"],
                        outputs if depth >= LANES else 0),
            _loop("window, sixteen", "sixteen", outputs * max(0, depth // LANES - 1), outputs),
            *_rest("window", depth, outputs),
            _loop("output", "output", outputs, pixels),
            _loop("pixel", "pixel", pixels, shape.output_rows))


def _row_blocks(shape: Geometry, row: int) -> Blocks:
    """Return a dot product for each window row.

    Where windows reach past the input, its last column of outputs is computed in scalar code, its
    last row by the generic C, whose positions are counted as those of the column.
    """
    right, bottom = (int((outputs - 1) * stride + kernel > inputs) for outputs, stride, kernel,
                     inputs in zip((shape.output_columns, shape.output_rows),
                                   shape.window.stride[::-1], shape.window.kernel[::-1],
                                   (shape.input_columns, shape.input_rows), strict=True))
    channels, depth = shape.output_channels * shape.batches, shape.input_channels
    inside = (shape.output_rows - bottom) * (shape.output_columns - right)
    outputs, outside = inside * channels, (shape.pixels - inside) * channels
    rows, turns = outputs * shape.kernel_rows, row // LANES
    taps = sum(shape.row_taps) * sum(shape.column_taps) * channels - (rows * shape.kernel_columns)
    return (_loop("sums of filters", "sum_four",
                  shape.output_channels * row * shape.kernel_rows // 4, shape.output_channels),
            _loop("row, sixteen", "sixteen", rows * max(0, turns - 1), rows),
            *_rest("row", row, rows),
            _loop("window row", "window_row" if turns else "scalar_row", rows, outputs),
            _loop("output", "row_output", outputs + outside, shape.pixels),
            _loop("edge, four", "four_offset", taps * (depth // 4), taps),
            _loop("edge, one", "one_offset", taps * (depth % 4), taps),
            _loop("edge position", "edge_tap", taps, outside),
            _loop("edge row", "edge_row", outside * shape.kernel_rows, outside),
            _loop("pixel", "pixel", shape.positions, shape.output_rows))


def _tile_blocks(shape: Geometry) -> Blocks:
    """Return padded windows of fewer than 16 values: the input copied with 16 channels, by rows."""
    top, _, side, _ = shape.window.padding
    tile = replace(shape, input_rows=shape.input_rows + 2 * top, input_channels=LANES,
                   input_columns=shape.input_columns + 2 * side,
                   window=replace(shape.window, padding=(0, 0, 0, 0)))
    filters, row = shape.output_channels * shape.kernel_rows, shape.kernel_columns
    return (_loop("filters widened", "tile_position", filters * row, filters),
            _loop("input widened", "tile_position", shape.batches * tile.input_rows
                  * tile.input_columns, tile.input_rows), *_row_blocks(tile, row * LANES))


def _column_blocks(shape: Geometry, pixels: int, window: int) -> Blocks:
    """Return windows copied to a column each, and a dot product for each output."""
    outputs, taps = shape.outputs, shape.taps * shape.batches
    inside, depth = shape.taps_run, shape.input_channels
    return (_loop("sums of filters", "sum_one", shape.output_channels * window,
                  shape.output_channels),
            _loop("window copied", "copy", inside * depth, inside),
            _loop("window padded", "pad", (taps - inside) * depth, taps - inside),
            _loop("window position copied", "copied_tap", taps, pixels),
            _loop("window row copied", "copied_row", pixels * shape.kernel_rows, pixels),
            *_dot("window", window, outputs),
            _loop("output", "output", outputs, pixels),
            _loop("pixel", "copied_pixel", pixels, shape.output_rows))


def _batch_blocks(shape: Geometry, pixels: int) -> Blocks:
    """Return vectors of 16 positions, turned, filters broadcast value by value; scalar ends."""
    batches, left = divmod(pixels, LANES)
    depth, channels = shape.input_channels, shape.output_channels
    filters = batches * channels
    return (_loop("sums of filters", "sum_four", channels * depth // 4, channels),
            _loop("pointers", "pointers", batches * LANES, batches),
            _loop("transposed", "transposed", batches * LANES * depth, batches),
            _loop("broadcast", "broadcast", filters * depth, filters),
            _loop("sums stored", "extract", filters, batches),
            _loop("sixteen outputs", "batch_output", filters * LANES, filters),
            _loop("left over", "one", left * channels * depth, left * channels),
            _loop("output left over", "output", left * channels, left))


def lower_depthwise(site: Site) -> Lowered:
    """Lower a depthwise convolution of a filter a channel, in vectors of 16 channels.

    Eight channels or more behind the last sixteen are a vector too, fewer scalar. Windows at an
    edge sum their filters again where the input has an offset.
    """
    shape, offset = site.geometry, has_offset(site)
    pixels, channels = shape.positions, shape.output_channels
    groups, left = divmod(channels, LANES)
    groups, left = (groups + 1, 0) if left >= 8 else (groups, left)
    taps, rows = shape.taps_run, shape.rows_run
    full = [[place for place, inside in enumerate(counts) if inside == whole] for counts, whole in (
        (shape.row_taps, shape.kernel_rows), (shape.column_taps, shape.kernel_columns))]
    whole = len(full[0]) * len(full[1]) * shape.batches
    edge_taps = taps - whole * shape.window_taps
    edge_rows, lanes = rows - whole * shape.kernel_rows, channels - left
    filters = channels * shape.window_taps
    blocks = (
        call_level(_LEVELS["call"]),
        _loop("sums of filters", "sum_tap", filters * offset, channels * shape.kernel_rows),
        _loop("sums of filter rows", "sum_row", channels * shape.kernel_rows * offset, channels),
        _loop("sum of a channel", "sum_channel", channels, 1),
        _loop("window position", "lanes_tap", taps * groups, rows * groups),
        _loop("window row", "lanes_row", rows * groups, pixels * groups),
        _loop("sixteen", "lanes_group", pixels * groups, pixels),
        _loop("offset", "lanes_offset", whole * lanes, whole * groups),
        _loop("edge summed", "sum_tap", edge_taps * lanes * offset, edge_rows * lanes),
        _loop("edge row summed", "left_row", edge_rows * lanes * offset, (pixels - whole) * lanes),
        _loop("edge channel", "edge_channel", (pixels - whole) * lanes, pixels - whole),
        _loop("two outputs", "lanes_pair", pixels * (lanes // 2), pixels * groups),
        _loop("left over", "one_offset", taps * left, rows * left),
        _loop("left over row", "left_row", rows * left, pixels * left),
        _loop("output left over", "left_output", pixels * left, pixels),
        _loop("pixel", "lanes_pixel", pixels, shape.output_rows))
    return (build_kernel(
        "esp_nn_depthwise_conv_s8_esp32p4", "depthwise", site, blocks,
        resolve(*depthwise_accesses(INT8, shape)),
        shape.products),)


def lower_dense(site: Site) -> Lowered:
    """Lower a fully connected layer: vectors without an input offset, else scalar."""
    vectors, rows, columns = site.weight_rows
    outputs = vectors * rows
    products = (_loop("row", "one_offset", outputs * columns, outputs),) if has_offset(
        site) else _dot("row", columns, outputs)
    return (build_kernel(
        "esp_nn_fully_connected_s8_esp32p4", "fully_connected", site,
        (call_level(_LEVELS["call_flat"]), *products, _loop("output", "output", outputs, vectors)),
        resolve(*dense_accesses(site.layer, vectors, rows, columns, LANES)), outputs * columns),)


def lower_pool(site: Site) -> Lowered:
    """Lower pooling in vectors of 16 channels, averages divided one by one, scalar ends."""
    shape, levels = site.geometry, _LEVELS["pools"][site.op]
    (groups, left), pixels = divmod(shape.input_channels, LANES), shape.positions
    rows, taps = shape.rows_run, shape.taps_run
    lanes = next(one for one in (16, 8, 4, 2, 1) if shape.input_channels % one == 0)
    return (build_kernel(
        f"esp_nn_{site.op.split('_', maxsplit=1)[0]}_pool_s8_esp32p4", "pool", site,
        (call_level(_LEVELS["call_flat"]),
         looped("window position", levels["tap"], taps * groups, rows * groups),
         looped("window row", _LEVELS["lanes_row"], rows * groups, pixels * groups),
         looped("output", levels["output"], pixels * groups, pixels),
         looped("left over", _LEVELS["left_row"], taps * left, rows * left),
         *(looped(name, level, pixels * shape.input_channels, pixels)
           for name, level in levels.items() if name == "channel"),
         looped("pixel", levels["pixel"], pixels, shape.output_rows)),
        resolve(*pool_accesses(shape, lanes))),)


DENSE, POOL = Lowering(lower=lower_dense), Lowering(lower=lower_pool)
