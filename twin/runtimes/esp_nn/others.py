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
from collections.abc import Mapping
from functools import partial
from typing import Any

from hwmodels.isa import Extension
from hwmodels.kernel import Lowered
from twin.runtimes.esp_nn import p4
from twin.runtimes.esp_nn_ansi.kernels import KERNELS as ANSI
from twin.runtimes.esp_nn_ansi.kernels import (
    dense_accesses,
    element_accesses,
    lower_softmax,
    pool_accesses,
)
from twin.runtimes.esp_nn_ansi.sequences import (
    LEVELS,
    Level,
    call_level,
    has_offset,
    looped,
    run_through,
)
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import build_kernel
from twin.runtimes.lowering.nests import resolve

_LEVELS = LEVELS["others"]


def _lower_elements(part: str, levels: dict[str, Any], site: Site) -> Lowered:
    """Lower an addition, multiplication or relu6: some elements a turn, the rest one by one."""
    turn, single, lanes = levels["elements"][site.op]
    count, clamps = math.prod(site.shape), site.op == "relu6"
    turns, left = divmod(count, lanes)
    steady = run_through if clamps and part == "esp32s3" else looped
    return (build_kernel(
        f"esp_nn_{site.op}_s8_{part}", "activation" if clamps else "elementwise",
        site, (call_level(Level(alu=8) if clamps else Level(alu=30, load=8, store=10)),
               steady("elements", turn, turns, 1), run_through("left over", single, left, 1)),
        resolve(*element_accesses(site, lanes if part == "esp32s3" or clamps
                                  else 1))),)


def _lower_pool_pie(site: Site) -> Lowered:
    """Lower pooling: eight channels at once, widened to words for an average."""
    shape, levels = site.geometry, _LEVELS["pools"][site.op]
    lanes = 8 if shape.input_channels % 8 == 0 else 4
    if shape.input_channels % 4:
        return ANSI[site.op]["c"].lower(site)
    groups, pixels = shape.input_channels // lanes, shape.positions
    rows = shape.rows_run * groups
    return (build_kernel(
        f"esp_nn_{site.op.split('_', maxsplit=1)[0]}_pool_s8_esp32s3", "pool", site,
        (call_level(Level(alu=40, load=10, store=20)),
         run_through("window position", levels["tap"], shape.taps_run * groups,
                     rows),
         looped("window row", levels["row"], rows, pixels * groups),
         looped("output", levels["output"], pixels * groups, pixels),
         looped("pixel", levels["pixel"], pixels, shape.output_rows)),
        resolve(*pool_accesses(shape, lanes))),)


def _lower_dense_pie(site: Site) -> Lowered:
    """Lower a fully connected layer: sums of weights first, then sixteen products at a time."""
    vectors, rows, columns = site.weight_rows
    outputs, (whole, left) = vectors * rows, divmod(columns, 16)
    return (build_kernel(
        "esp_nn_fully_connected_s8_esp32s3", "fully_connected", site,
        (call_level(Level(alu=40, load=12, store=10)),
         run_through("sums of weights", _LEVELS["sum"],
                     outputs * columns * has_offset(site), outputs),
         run_through("multiply-accumulate, 32", _LEVELS["pair"], outputs * (whole // 2), outputs),
         run_through("multiply-accumulate", Level(vload=2, vmac=1, valu=1), outputs * (whole % 2)),
         run_through("left over", _LEVELS["left"], outputs * left, outputs),
         looped("output", _LEVELS["dense_output"], outputs, vectors)),
        resolve(*dense_accesses(site.layer, vectors, rows, columns, 16)), outputs * columns),)


_ELEMENTS: Mapping[Extension, Lowering] = {
    "pie": Lowering(lower=partial(_lower_elements, "esp32s3", _LEVELS)),
    "xesp": Lowering(lower=partial(_lower_elements, "esp32p4", LEVELS["p4"]))}
SOFTMAX: Mapping[Extension, Lowering] = {
    "c": Lowering(lower=partial(lower_softmax, "esp_nn_softmax_s8_opt", _LEVELS["softmax"])),
    "xesp": Lowering(lower=partial(lower_softmax, "esp_nn_softmax_s8_esp32p4",
                                   LEVELS["p4"]["softmax"]))}
"""Exponentials kept in scratch; on the ESP32-S3 but for the largest of a row as in generic C."""

KERNELS: Kernels = {
    "add": {**ANSI["add"], **_ELEMENTS},
    "average_pool_2d": {**ANSI["average_pool_2d"], "pie": Lowering(lower=_lower_pool_pie),
                        "xesp": p4.POOL},
    "fully_connected": {**ANSI["fully_connected"], "pie": Lowering(lower=_lower_dense_pie),
                        "xesp": p4.DENSE},
    "max_pool_2d": {**ANSI["max_pool_2d"], "pie": Lowering(lower=_lower_pool_pie),
                    "xesp": p4.POOL},
    "mul": {**ANSI["mul"], **_ELEMENTS},
    "relu6": {**ANSI["relu6"], **_ELEMENTS},
    "softmax": SOFTMAX,
}
