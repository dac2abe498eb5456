"""ESP-NN's other operators: ANSI C on RISC-V, 8 or 16 lanes on the ESP32-S3.

References
----------
espressif/esp-nn 1.2.3: src/basic_math/esp_nn_add_s8_esp32s3.S, esp_nn_mul_s8_esp32s3.S;
src/activation_functions/esp_nn_relu_s8_esp32s3.S; src/pooling/esp_nn_avg_pool_s8_esp32s3.S,
esp_nn_max_pool_s8_esp32s3.S; src/fully_connected/esp_nn_fully_connected_esp32s3.c;
src/softmax/esp_nn_softmax_opt.c, esp_nn_softmax_s8_esp32s3.c.
"""

from __future__ import annotations

import math

from hwmodels.kernel import Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.esp_nn_ansi.kernels import KERNELS as ANSI
from twin.runtimes.esp_nn_ansi.kernels import (
    dense_accesses,
    element_accesses,
    lower_softmax,
    pool_accesses,
)
from twin.runtimes.esp_nn_ansi.sequences import (
    Level,
    call_level,
    has_offset,
    looped,
    run_through,
)
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import build_kernel
from twin.runtimes.lowering.geometry import read_geometry
from twin.runtimes.lowering.nests import resolve

_SOFTMAX = {"element": Level(alu=276, load=20, store=7, high=21),
            "row": Level(alu=128, load=11, store=12, high=15),
            "call": Level(alu=67, load=15, store=23)}

_ELEMENTS = {
    "add": (Level(alu=121, load=14, store=4, mul=48, vload=10, vstore=1, valu=96),
            Level(alu=48, load=20, store=1, mul=6), 8),
    "mul": (Level(alu=52, load=4, store=3, mul=16, vload=7, vstore=1, valu=41),
            Level(alu=30, load=11, store=1, mul=3), 8),
    "relu6": (Level(vload=1, vstore=1, valu=2), Level(alu=4, load=1, store=1), 16)}
"""A turn of eight or sixteen elements, one element left over, elements a turn."""

_POOLS = {
    "average_pool_2d": {"tap": Level(vload=1, valu=6), "row": Level(alu=20, load=9, mul=2),
                        "output": Level(alu=45, load=4, store=2, div=8, vstore=1, valu=24),
                        "pixel": Level(alu=22, load=14, store=12)},
    "max_pool_2d": {"tap": Level(alu=1, vload=1, valu=1), "row": Level(alu=9, load=3, mul=1),
                    "output": Level(alu=6, load=4, store=2, vstore=1, valu=3),
                    "pixel": Level(alu=16, load=14, store=10)}}
_DENSE_OUTPUT = Level(alu=46, load=5, store=2, mul=2, vload=3, vmac=1, valu=3)
_PAIR = Level(vload=4, vmac=2, valu=2)
_SUM, _LEFT = Level(alu=2, load=1), Level(alu=5, load=2, mul=1)


def _lower_elements_pie(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower an addition, multiplication or relu6: eight or sixteen elements a turn."""
    turn, single, lanes = _ELEMENTS[layer.op]
    count = math.prod(graph.output(layer).shape)
    turns, left = divmod(count, lanes)
    steady = run_through if layer.op == "relu6" else looped
    return (build_kernel(
        f"esp_nn_{layer.op}_s8_esp32s3", "activation" if layer.op == "relu6" else "elementwise",
        site, (call_level(Level(alu=30, load=8, store=10)),
               steady("elements", turn, turns, 1), run_through("left over", single, left, 1)),
        resolve(*element_accesses(graph, layer, site, lanes))),)


def _lower_pool_pie(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower pooling: eight channels at once, widened to words for an average."""
    shape, levels = read_geometry(graph, layer), _POOLS[layer.op]
    lanes = 8 if shape.input_channels % 8 == 0 else 4
    if shape.input_channels % 4:
        return ANSI[layer.op]["c"].lower(graph, layer, site)
    groups, pixels = shape.input_channels // lanes, shape.pixels * shape.batches
    rows = shape.window_rows * shape.batches * groups
    return (build_kernel(
        f"esp_nn_{layer.op.split('_', maxsplit=1)[0]}_pool_s8_esp32s3", "pool", site,
        (call_level(Level(alu=40, load=10, store=20)),
         run_through("window position", levels["tap"], shape.taps_inside * shape.batches * groups,
                     rows),
         looped("window row", levels["row"], rows, pixels * groups),
         looped("output", levels["output"], pixels * groups, pixels),
         looped("pixel", levels["pixel"], pixels, shape.output_rows)),
        resolve(*pool_accesses(shape, lanes))),)


def _lower_dense_pie(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a fully connected layer: sums of weights first, then sixteen products at a time."""
    rows, columns = graph.input(layer, 1).shape[-2:]
    vectors = graph.input(layer).elements // columns
    outputs, (whole, left) = vectors * rows, divmod(columns, 16)
    return (build_kernel(
        "esp_nn_fully_connected_s8_esp32s3", "fully_connected", site,
        (call_level(Level(alu=40, load=12, store=10)),
         run_through("sums of weights", _SUM,
                     outputs * columns * has_offset(graph, layer), outputs),
         run_through("multiply-accumulate, 32", _PAIR, outputs * (whole // 2), outputs),
         run_through("multiply-accumulate", Level(vload=2, vmac=1, valu=1), outputs * (whole % 2)),
         run_through("left over", _LEFT, outputs * left, outputs),
         looped("output", _DENSE_OUTPUT, outputs, vectors)),
        resolve(*dense_accesses(layer, vectors, rows, columns, 16)), outputs * columns),)


def _lower_softmax(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a softmax: exponentials kept in scratch; on the S3 but for the largest the same."""
    return lower_softmax("esp_nn_softmax_s8_opt", _SOFTMAX, graph, layer, site)


KERNELS: Kernels = {
    "add": {**ANSI["add"], "pie": Lowering(lower=_lower_elements_pie)},
    "average_pool_2d": {**ANSI["average_pool_2d"], "pie": Lowering(lower=_lower_pool_pie)},
    "fully_connected": {**ANSI["fully_connected"], "pie": Lowering(lower=_lower_dense_pie)},
    "max_pool_2d": {**ANSI["max_pool_2d"], "pie": Lowering(lower=_lower_pool_pie)},
    "mul": {**ANSI["mul"], "pie": Lowering(lower=_lower_elements_pie)},
    "relu6": {**ANSI["relu6"], "pie": Lowering(lower=_lower_elements_pie)},
    "softmax": {"c": Lowering(lower=_lower_softmax)},
}
