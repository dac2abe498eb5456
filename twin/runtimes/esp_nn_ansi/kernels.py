"""ESP-NN in plain C: one output at a time, positions outside the input omitted by the loops' ends.

References
----------
espressif/esp-nn 1.2.3, src/*/esp_nn_*_ansi.c.
"""

from __future__ import annotations

import math
from typing import Any

from hwmodels.kernel import Blocks, Lowered
from twin.network.graph import Layer
from twin.runtimes.esp_nn_ansi.sequences import (
    INT8,
    LEVELS,
    Level,
    call_level,
    check_core,
    innermost,
    looped,
)
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import build_kernel
from twin.runtimes.lowering.geometry import (
    Geometry,
    has_bias,
    output_steps,
    over_pixels,
    over_window,
    window_bounds,
    window_load,
)
from twin.runtimes.lowering.nests import count_blocks, load, repeat, resolve, store
from twin.runtimes.reference.windows import conv_accesses, depthwise_accesses, output_moves

_LEVELS = LEVELS["ansi"]

_MAC = ("lb a3, 0(t2); lb s7, 0(a2); addi a2, a2, 1; add a3, a3, s10; mul a3, a3, s7;"
        "addi t2, t2, 1; add a0, a0, a3")
_DENSE = ("lb a5, 0(a2); lb a3, 0(a4); addi a4, a4, 1; add a5, a5, s7; add a3, a3, s9;"
          "mul a5, a5, a3; addi a2, a2, 1; add a0, a0, a5")
_TAP = ("lb a3, 0(t2); lb s7, 0(a2); add a2, a2, s8; add a3, a3, s10; mul a3, a3, s7;"
        "add t2, t2, s9; addi a4, a4, 1; add a0, a0, a3")
_SUM = "lb a3, 0(t2); add t2, t2, s9; addi a4, a4, 1; add a0, a0, a3"
_LARGEST = ("lb a3, 0(t2); add t2, t2, s9; addi a4, a4, 1; slli a3, a3, 24; srai a3, a3, 24;"
            "slt a5, a0, a3; sub a0, a0, a5; add a0, a0, a3")

_POOLS = {"average_pool_2d": ("esp_nn_avg_pool_s8_ansi", 0, _SUM),
          "max_pool_2d": ("esp_nn_max_pool_s8_ansi", 1, _LARGEST)}


def _lower_conv(site: Site) -> Lowered:
    """Lower a convolution: channels of the input innermost."""
    check_core(site)
    shape = site.geometry
    depth = shape.input_channels // site.layer.groups
    outputs = shape.outputs
    taps = shape.products
    inner = (innermost("multiply-accumulate", _MAC, taps * depth, taps, site, 2),
             looped("window position", _LEVELS["conv"]["tap"], taps,
                    _rows(shape, shape.output_channels)))
    return (build_kernel(
        "esp_nn_conv_s8_ansi", "pointwise" if shape.is_pointwise else "conv", site,
        (*inner, *window_blocks(shape, _LEVELS["conv"], shape.output_channels, outputs)),
        resolve(*conv_accesses(INT8, shape, site.layer.groups)), taps * depth),)


def _lower_depthwise(site: Site) -> Lowered:
    """Lower a depthwise convolution: the window innermost."""
    check_core(site)
    shape = site.geometry
    outputs = shape.outputs
    taps = shape.products
    rows = _rows(shape, shape.output_channels)
    turns = shape.positions * shape.input_channels
    return (build_kernel(
        "esp_nn_depthwise_conv_s8_ansi", "depthwise", site,
        (innermost("multiply-accumulate", _TAP, taps, rows, site, 2),
         *window_blocks(shape, _LEVELS["depthwise"], shape.output_channels, outputs),
         looped("channel", _LEVELS["depthwise"]["channel"], turns, shape.positions)),
        resolve(*depthwise_accesses(INT8, shape)), taps),)


def _rows(shape: Geometry, channels: int) -> int:
    return shape.rows_run * channels


def window_blocks(shape: Geometry, levels: dict[str, Level], channels: int,
                  outputs: int) -> Blocks:
    """Return the levels around a window: its rows, outputs, pixels, lines, the call.

    Parameters
    ----------
    levels
        By name; no "row" where a kernel has no such loop.
    channels, outputs
        Turns of the loop over channels in a pixel, and in all.
    """
    pixels, lines = shape.positions, shape.output_rows * shape.batches
    rows = () if "row" not in levels else (
        looped("window row", levels["row"], _rows(shape, channels), outputs),)
    return (call_level(levels["call"]), *rows, looped("output", levels["output"], outputs, pixels),
            looped("pixel", levels["pixel"], pixels, lines),
            looped("row", levels["line"], lines, shape.batches))


def _lower_dense(site: Site) -> Lowered:
    """Lower a fully connected layer."""
    check_core(site)
    vectors, rows, columns = site.weight_rows
    outputs = vectors * rows
    return (build_kernel(
        "esp_nn_fully_connected_s8_ansi", "fully_connected", site,
        (call_level(_LEVELS["dense_call"]),
         innermost("multiply-accumulate", _DENSE, outputs * columns, outputs, site, 2),
         looped("output", _LEVELS["dense_output"], outputs, vectors)),
        resolve(*dense_accesses(site.layer, vectors, rows, columns, 1)), outputs * columns),)


def dense_accesses(layer: Layer, vectors: int, rows: int, columns: int, width: int) -> list[Any]:
    """Return the accesses of a matrix product, `width` bytes at a time."""
    return [repeat("vector", vectors, repeat(
        "out", rows,
        *(repeat("depth", extent, load("input", wide, first, vector=columns, depth=wide),
                 load("weights", wide, first, out=columns, depth=wide))
          for extent, first, wide in ((columns // width, 0, width),
                                      (columns % width, columns - columns % width, 1))),
        *[move for move in output_moves(INT8, has_bias(layer), rows, {"vector": rows, "out": 1},
                                        out=1) if move.operand != "parameters"]))]


def _lower_pool(site: Site) -> Lowered:
    """Lower average or maximum pooling."""
    check_core(site)
    name, which, text = _POOLS[site.op]
    shape = site.geometry
    channels = shape.input_channels
    taps = shape.taps_run * channels
    levels = {level: both[which] for level, both in _LEVELS["pool"].items()}
    outputs = shape.positions * channels
    return (build_kernel(
        name, "pool", site,
        (innermost("window position", text, taps, _rows(shape, channels), site, 1),
         *window_blocks(shape, levels, channels, outputs)),
        resolve(*pool_accesses(shape, 1))),)


def pool_accesses(shape: Geometry, width: int) -> Any:
    """Return the accesses of pooling, `width` channels at a time."""
    return over_pixels(shape, repeat(
        "channel", -(-shape.input_channels // width),
        over_window(shape, window_load(shape, window_bounds(shape), width, 1, channel=width)),
        store("output", width, 0, channel=width, **output_steps(shape, 1))))


def _lower_elements(site: Site) -> Lowered:
    """Lower an addition, a multiplication or relu6."""
    check_core(site)
    name, level, call = _LEVELS["elements"][site.op]
    count = math.prod(site.shape)
    return (build_kernel(
        name, "activation" if "relu" in name else "elementwise", site,
        (call_level(call), looped("element", level, count, 1)),
        resolve(*element_accesses(site, 1))),)


def element_accesses(site: Site, width: int) -> list[Any]:
    """Return loads of the operands and the store of a result, `width` elements at a time."""
    count = math.prod(site.shape)
    names = [one.name for one in site.operands if one.name in ("input", "input2", "weights")]
    sizes = {name: math.prod(site.input(place).shape) for place, name in enumerate(names)}
    found, (turns, left) = [], divmod(count, width)
    for extent, first, wide in ((turns, 0, width), (left, turns * width, 1)):
        moves = []
        for name in names:
            same = sizes.get(name, 0) >= count
            moves.append(load(name, wide if same else 1, first * same, element=wide * same))
        found.append(repeat("element", extent, *moves, store("output", wide, first, element=wide)))
    return found


def _lower_softmax(site: Site) -> Lowered:
    """Lower a softmax over the last axis."""
    return lower_softmax("esp_nn_softmax_s8_ansi", _LEVELS["softmax"], site)


def lower_softmax(name: str, levels: dict[str, Level], site: Site) -> Lowered:
    """Return a softmax: three passes over a row (largest, sum, results)."""
    check_core(site)
    tensor = site.source
    width = tensor.channels
    rows = tensor.elements // width
    steps = {"row": width, "element": 1}
    read = load("input", 1, 0, **steps)
    return (build_kernel(
        name, "softmax", site,
        count_blocks(call_level(levels["call"]), looped("row", levels["row"], rows, 1),
                     looped("element", levels["element"], rows * width, rows)),
        resolve(repeat("row", rows, repeat("element", width, read), repeat("element", width, read),
                       repeat("element", width, read, store("output", 1, 0, **steps))))),)


KERNELS: Kernels = {
    "add": {"c": Lowering(lower=_lower_elements)},
    "average_pool_2d": {"c": Lowering(lower=_lower_pool)},
    "conv_2d": {"c": Lowering(lower=_lower_conv)},
    "depthwise_conv_2d": {"c": Lowering(lower=_lower_depthwise)},
    "fully_connected": {"c": Lowering(lower=_lower_dense)},
    "max_pool_2d": {"c": Lowering(lower=_lower_pool)},
    "mul": {"c": Lowering(lower=_lower_elements)},
    "relu6": {"c": Lowering(lower=_lower_elements)},
    "softmax": {"c": Lowering(lower=_lower_softmax)},
}
