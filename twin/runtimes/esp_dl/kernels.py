"""ESP-DL's int8 kernels: a filter of 16 outputs by 16 bytes, multiplied by one input broadcast.

The assembly walks all filters of a layer for every output pixel, so filters larger than the data
cache come from the external memory again and again. The ESP32-P4's code has the instructions of
the ESP32-S3's but where an output is finished.

References
----------
espressif/esp-dl 12c0616d: esp-dl/dl/base/dl_base.hpp (conv_operation_shell),
esp-dl/dl/base/isa/tie728/dl_tie728_s8.S, dl_tie728_s8_conv2d.S, dl_tie728_s8_depthwise_conv2d.S,
dl_tie728_s8_add.S, dl_tie728_lut.S; isa/esp32p4/dl_esp32p4_s8.S and the like
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from hwmodels.file_cache import read_yaml_once
from hwmodels.kernel import Blocks, Lowered
from twin.errors import RuntimeRefusedError
from twin.network.operators import traits
from twin.runtimes.esp_nn.others import KERNELS as NN
from twin.runtimes.esp_nn.windows import widest
from twin.runtimes.esp_nn_ansi.kernels import dense_accesses, element_accesses
from twin.runtimes.esp_nn_ansi.sequences import Level, call_level, looped, run_through
from twin.runtimes.lowering import Kernels, Lowering, Site, has_extension
from twin.runtimes.lowering.blocks import build_kernel
from twin.runtimes.lowering.geometry import (
    Geometry,
    output_steps,
    over_pixels,
    over_window,
    window_bounds,
    window_load,
)
from twin.runtimes.lowering.nests import load, repeat, resolve, store

LANES = 16
"""Bytes of a vector; numbers of two bytes are half as many."""
_LEVELS = {name: Level(**level) for name, level in read_yaml_once(
    Path(__file__).with_name("levels.yaml")).items()}


def _output(site: Site) -> Level:
    """Return what finishes 16 outputs."""
    return _LEVELS["output_xesp" if has_extension(site.isa, "xesp") else "output"]


def _products(site: Site, depth: int, taps: int, groups: int, rest: int,
              pixels: int) -> Blocks:
    """Return the products of all pixels: 16 outputs a vector, then the rest one by one."""
    sixteens, left = divmod(depth, LANES)
    return (
        run_through("window position", _LEVELS["tap"], taps * groups, pixels * groups),
        run_through("multiply-accumulate", _LEVELS["sixteen"], taps * groups * sixteens,
                    taps * groups),
        run_through("channels left over", _LEVELS["left"], taps * groups * left,
                    taps * groups if left else 0),
        looped("output, sixteen", _output(site), pixels * groups, pixels),
        run_through("multiply-accumulate, one output", _LEVELS["dot"],
                    taps * rest * math.ceil(depth / LANES), pixels * rest),
        looped("output left over", _LEVELS["output_left"], pixels * rest, pixels if rest else 0),
        looped("pixel", _LEVELS["pixel"], pixels, 1))


def _lower_conv(site: Site) -> Lowered:
    """Lower a convolution: 16 outputs a vector, pixel by pixel."""
    shape = site.geometry
    depth, pixels = shape.input_channels // site.layer.groups, shape.positions
    taps, size = shape.taps_run, site.source.element_bytes
    groups, rest = divmod(shape.output_channels, LANES // size)
    return (build_kernel(
        "dl_s8_conv2d", "pointwise" if shape.is_pointwise else "conv", site,
        (call_level(_LEVELS["call"]), *_products(site, depth, taps, groups, rest, pixels)),
        resolve(*_conv_accesses(shape, depth, size)), taps * shape.output_channels * depth),)


def _conv_accesses(shape: Geometry, depth: int, size: int) -> Any:
    """Return accesses: filters lie as outputs of a group, side by side, for each input channel."""
    lanes, wide, window = (widest(shape.output_channels * size), widest(depth * size), shape.window)
    row, bounds = window.kernel[1] * depth, window_bounds(shape)
    return over_pixels(shape, repeat(
        "out", shape.output_channels * size // lanes,
        over_window(shape, repeat(
            "part", depth * size // wide, window_load(shape, bounds, wide, size, part=wide),
            repeat("lane", wide // size, load(
                "weights", lanes, 0, out=window.kernel[0] * row * lanes, ky=row * lanes,
                kx=depth * lanes, part=wide // size * lanes, lane=lanes)._replace(
                    bounds=bounds)))),
        store("output", lanes, 0, **output_steps(shape, size), out=lanes)))


def _lower_depthwise(site: Site) -> Lowered:
    """Lower a convolution of each channel: 16 channels a vector."""
    shape = site.geometry
    channels, pixels = shape.output_channels, shape.positions
    size, taps = site.source.element_bytes, shape.taps_run
    groups = math.ceil(channels * size / LANES)
    wide, bounds = widest(channels * size), window_bounds(shape)
    own = channels == shape.input_channels
    return (build_kernel(
        "dl_s8_depthwise_conv2d", "depthwise", site,
        (call_level(_LEVELS["call"]),
         run_through("multiply-accumulate", _LEVELS["channel_tap"], taps * groups, pixels * groups),
         looped("output, sixteen", _output(site), pixels * groups, pixels),
         looped("pixel", _LEVELS["pixel"], pixels, 1)),
        resolve(*over_pixels(shape, repeat(
            "out", channels * size // wide, over_window(
                shape, window_load(shape, bounds, wide if own else size, size, out=wide * own),
                load("weights", wide, 0, out=wide, ky=shape.kernel_columns * channels * size,
                     kx=channels * size)._replace(bounds=bounds)),
            store("output", wide, 0, **output_steps(shape, size), out=wide)))),
        taps * channels),)


def _lower_dense(site: Site) -> Lowered:
    """Lower a fully connected layer, which is a convolution of a pixel a row."""
    vectors, rows, columns = site.weight_rows
    groups, rest = divmod(rows, LANES)
    return (build_kernel(
        "dl_s8_conv2d", "fully_connected", site,
        (call_level(_LEVELS["call"]), *_products(site, columns, vectors, groups, rest, vectors)),
        resolve(*dense_accesses(site.layer, vectors, rows, columns, LANES)),
        vectors * rows * columns),)


def _lower_matmul(site: Site) -> Lowered:
    """Lower a product of two computed matrices by the same kernel, a row a pixel."""
    *_, columns, rows = site.input(1).shape
    vectors, size = site.source.elements // columns, site.source.element_bytes
    matrices = max(1, site.input(1).elements // (columns * rows))
    groups, rest = divmod(rows, LANES // size)
    lanes, wide, each = widest(rows * size), widest(columns * size), vectors // matrices
    nest = repeat("matrix", matrices, repeat("vector", each, repeat(
        "out", rows * size // lanes, repeat(
            "part", columns * size // wide, load(
                "input", wide, 0, matrix=each * columns * size, vector=columns * size, part=wide),
            repeat("lane", wide // size, load(
                "input2", lanes, 0, matrix=columns * rows * size, out=columns * lanes,
                part=wide // size * lanes, lane=lanes))),
        store("output", lanes, 0, matrix=each * rows * size, vector=rows * size, out=lanes))))
    return (build_kernel(
        "dl_s8_conv2d", "fully_connected", site,
        (call_level(_LEVELS["call"]), *_products(site, columns, vectors, groups, rest, vectors)),
        resolve(nest), vectors * rows * columns),)


def _lower_elements(site: Site) -> Lowered:
    """Lower what goes element by element: sums and products by 16, all else by a table."""
    level = site.op if site.op in _LEVELS else "clamp" if traits(site.layer).clamps else "table"
    turns, left = divmod(site.output.size_bytes, LANES)
    return (build_kernel(
        f"dl_s8_{level}", "elementwise", site,
        (call_level(_LEVELS["call"]), looped("elements", _LEVELS[level], turns, 1),
         looped("elements left over", _LEVELS["single"], left, 1 if left else 0)),
        resolve(*element_accesses(site, LANES))),)


def _refuse(site: Site) -> Lowered:
    raise RuntimeRefusedError(f"layer {site.layer.name}: ESP-DL's kernels are vector code of "
                              f"ESP32-S3 and ESP32-P4, not plain C or {site.isa}; accepted: a "
                              "board of these with its vectors, or another library of "
                              "`twin runtimes`")


def _with(lower: Any) -> dict[Any, Lowering]:
    return {"c": Lowering(lower=_refuse), **dict.fromkeys(("pie", "xesp"), Lowering(lower=lower))}


KERNELS: Kernels = {
    "conv_2d": _with(_lower_conv),
    "depthwise_conv_2d": _with(_lower_depthwise),
    "fully_connected": _with(_lower_dense),
    "batch_matmul": _with(_lower_matmul),
    "add": _with(_lower_elements),
    "sub": _with(_lower_elements),
    "mul": _with(_lower_elements),
    "relu": _with(_lower_elements),
    "relu6": _with(_lower_elements),
    "prelu": _with(_lower_elements),
    "quantize": _with(_lower_elements),
    "logistic": _with(_lower_elements),
    "tanh": _with(_lower_elements),
    "hard_swish": _with(_lower_elements),
    "gelu": _with(_lower_elements),
    "average_pool_2d": NN["average_pool_2d"],
    "max_pool_2d": NN["max_pool_2d"],
    "softmax": NN["softmax"],
}
