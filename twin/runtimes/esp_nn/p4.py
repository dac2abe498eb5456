"""ESP-NN's vectors on the ESP32-P4: C with 16 lanes of 8 bits, requantised in scalar code.

References
----------
espressif/esp-nn d45b843: src/*/esp_nn_*_esp32p4.c; convolutions of 1x1, of rows of 16 values and
more, and of windows copied to a column; depthwise of 16 channels at once.
"""

from __future__ import annotations

import math

from hwmodels.kernel import Block, Kernel
from twin.network.graph import Graph, Layer
from twin.network.operators import traits
from twin.runtimes.esp_nn_ansi.kernels import dense_accesses, element_accesses, pool_accesses
from twin.runtimes.esp_nn_ansi.sequences import (
    INT8,
    LEVELS,
    Level,
    call_level,
    has_offset,
    looped,
    run_through,
)
from twin.runtimes.lowering import Lowering, Site
from twin.runtimes.lowering.blocks import build_kernel
from twin.runtimes.lowering.geometry import Geometry, read_geometry
from twin.runtimes.lowering.nests import resolve
from twin.runtimes.reference.windows import conv_accesses, depthwise_accesses

LANES = 16
_LEVELS = LEVELS["p4"]


def _dot(name: str, length: int, times: int) -> tuple[Block, ...]:
    """Return a dot product so often: 16 values a turn, the first before it, the rest after."""
    turns, left = divmod(length, LANES)
    return (run_through(f"{name} entered", _LEVELS["dot_entered"], times if turns else 0),
            looped(f"{name}, sixteen", _LEVELS["dot"], times * max(0, turns - 1), times),
            looped(f"{name} left over", _LEVELS["left"], times * left, times))


def lower_conv(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a convolution by the size of its window, as the library chooses."""
    shape = read_geometry(graph, layer)
    depth, pixels = shape.input_channels, shape.pixels * shape.batches
    outputs = pixels * shape.output_channels
    row, window = shape.kernel_columns * depth, shape.kernel_rows * shape.kernel_columns * depth
    padded = any(shape.window.padding)
    blocks: tuple[Block, ...] = (
        call_level(Level(alu=60, load=30, store=20)),
        run_through("sums of filters", _LEVELS["sum"],
                    shape.output_channels * window * has_offset(graph, layer), 1))
    if shape.is_pointwise and shape.window.stride == (1, 1):
        blocks += (_batch_blocks(shape, pixels) if depth < LANES
                   else _dot("window", window, outputs))
    elif row >= LANES and not padded:
        rows = shape.kernel_rows
        blocks += (*_dot("row", row, outputs * rows),
                   looped("window row", _LEVELS["window_row"], outputs * rows, outputs))
    else:
        blocks += (looped("window copied", _LEVELS["copy"], pixels * window, pixels),
                   *_dot("window", window, outputs))
    blocks += (looped("output", _LEVELS["output"], outputs, pixels),
               looped("pixel", _LEVELS["pixel"], pixels, shape.output_rows))
    return (build_kernel(
        "esp_nn_conv_s8_esp32p4", "pointwise" if shape.is_pointwise else "conv", site, blocks,
        resolve(*conv_accesses(INT8, shape, 1)),
        shape.taps_inside * shape.batches * shape.output_channels * depth),)


def _batch_blocks(shape: Geometry, pixels: int) -> tuple[Block, ...]:
    """Return vectors of 16 positions, turned, filters broadcast value by value."""
    batches = math.ceil(pixels / LANES)
    filters = batches * shape.output_channels
    return (run_through("transposed", _LEVELS["copy"],
                        batches * LANES * shape.input_channels, batches),
            looped("broadcast", _LEVELS["broadcast"], filters * shape.input_channels, filters),
            run_through("sums stored", _LEVELS["extract"], filters))


def lower_depthwise(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a depthwise convolution of a filter a channel, in vectors of 16 channels."""
    shape = read_geometry(graph, layer)
    groups, pixels = math.ceil(shape.output_channels / LANES), shape.pixels * shape.batches
    taps, rows = (extent * shape.batches * groups
                  for extent in (shape.taps_inside, shape.window_rows))
    channels = pixels * shape.output_channels
    filters = shape.output_channels * shape.kernel_rows * shape.kernel_columns
    blocks = (
        call_level(Level(alu=70, load=30, store=20)),
        run_through("sums of filters", _LEVELS["sum"], filters, 1),
        looped("window position", _LEVELS["lanes_tap"], taps, rows),
        looped("window row", _LEVELS["lanes_row"], rows, pixels * groups),
        run_through("sums stored", _LEVELS["extract"], pixels * groups),
        looped("output", _LEVELS["channel"], channels, pixels * groups),
        looped("pixel", _LEVELS["pixel"], pixels, shape.output_rows))
    return (build_kernel(
        "esp_nn_depthwise_conv_s8_esp32p4", "depthwise", site, blocks,
        resolve(*depthwise_accesses(INT8, shape)),
        shape.taps_inside * shape.batches * shape.output_channels),)


def lower_dense(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a fully connected layer."""
    rows, columns = graph.input(layer, 1).shape[-2:]
    vectors = graph.input(layer).elements // columns
    outputs = vectors * rows
    return (build_kernel(
        "esp_nn_fully_connected_s8_esp32p4", "fully_connected", site,
        (call_level(Level(alu=40, load=12, store=10)),
         run_through("sums of weights", _LEVELS["sum"],
                     outputs * columns * has_offset(graph, layer), outputs),
         *_dot("row", columns, outputs), looped("output", _LEVELS["output"], outputs, vectors)),
        resolve(*dense_accesses(layer, vectors, rows, columns, LANES)), outputs * columns),)


def lower_elements(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower an addition, multiplication or relu6."""
    count = math.prod(graph.output(layer).shape)
    lanes = LANES if traits(layer).clamps else 1
    turns, left = divmod(count, lanes)
    return (build_kernel(
        f"esp_nn_{layer.op}_s8_esp32p4", "activation" if lanes > 1 else "elementwise", site,
        (call_level(Level(alu=20, load=4, store=4)),
         looped("elements", _LEVELS["elements"][layer.op], turns, 1),
         looped("left over", _LEVELS["elements"]["left"], left, 1)),
        resolve(*element_accesses(graph, layer, site, lanes))),)


def lower_pool(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower pooling in vectors of 16 channels, averages divided one by one."""
    shape, levels = read_geometry(graph, layer), _LEVELS["pools"][layer.op]
    groups, pixels = math.ceil(shape.input_channels / LANES), shape.pixels * shape.batches
    rows = shape.window_rows * shape.batches * groups
    lanes = next(one for one in (16, 8, 4, 2, 1) if shape.input_channels % one == 0)
    return (build_kernel(
        f"esp_nn_{layer.op.split('_', maxsplit=1)[0]}_pool_s8_esp32p4", "pool", site,
        (call_level(Level(alu=40, load=10, store=20)),
         looped("window position", levels["tap"], shape.taps_inside * shape.batches * groups, rows),
         looped("window row", levels["row"], rows, pixels * groups),
         looped("output", levels["output"], pixels * groups, pixels),
         looped("channel", levels["channel"], pixels * shape.input_channels, pixels * groups)),
        resolve(*pool_accesses(shape, lanes))),)


CONV, DEPTHWISE, DENSE, ELEMENTS, POOL = (Lowering(lower=one) for one in (
    lower_conv, lower_depthwise, lower_dense, lower_elements, lower_pool))
