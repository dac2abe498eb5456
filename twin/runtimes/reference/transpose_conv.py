"""Transposed convolution, plain C: every input element adds its window into 32-bit scratch.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference: transpose_conv.h,
integer_ops/transpose_conv.h (float adds into the output itself).
"""

from __future__ import annotations

from hwmodels.kernel import Lowered
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import block, join
from twin.runtimes.lowering.geometry import Geometry
from twin.runtimes.lowering.nests import Repeat, bound, closing, load, repeat, store
from twin.runtimes.reference.sequences import CALL_COUNTS, COUNTS, Machine, choose_machine
from twin.runtimes.reference.windows import multiply_once

_COUNTS = COUNTS["transpose_conv"]


def _lower(site: Site) -> Lowered:
    """Lower a transposed convolution (counts assumed)."""
    machine, shape = choose_machine(site), site.geometry
    target = "output" if machine.is_float else "scratch"
    reads = (shape.batches * shape.input_rows * shape.input_columns * shape.input_channels)
    taps = shape.window_taps
    products = reads * taps * shape.output_channels
    outputs = shape.outputs
    inner = join(machine.load(machine.element_bytes), machine.load(machine.weight_bytes),
                 machine.load(4), multiply_once(machine), machine.store(4),
                 machine.loop(_COUNTS["tap"]))
    finish = join(machine.load(4, 1 + shape.has_bias), "" if machine.is_float
                  else machine.load(4, 2), machine.requantise(),
                  machine.store(machine.element_bytes), machine.loop(_COUNTS["output"]))
    return machine.kernel(
        f"{machine.namespace}::TransposeConv", "conv", CALL_COUNTS,
        repeat("element", outputs,
               closing("clear", join(machine.store(4), machine.loop((0, 0, 2)))),
               store(target, 4, 0, element=4)),
        block("add product", inner, products, reads * taps),
        block("window position", machine.loop(_COUNTS["level"]), reads * taps, reads),
        block("input element", machine.spend(_COUNTS["level"]), reads),
        _scatter(machine, shape, target),
        block("output", finish, outputs, 1),
        _finish(machine, shape, target),
        macs=products, assumed=True)


def _scratch_bytes(site: Site) -> int:
    """Working memory: a 32-bit accumulator per output (64-bit beside int16); none for floats."""
    output = site.output
    return 0 if output.dtype == "float32" else output.elements * (
        8 if output.dtype == "int16" else 4)


def _scatter(machine: Machine, shape: Geometry, target: str) -> Repeat:
    """Every input element adds its window to the positions it falls on."""
    channels, wide, size = shape.output_channels, machine.weight_bytes, machine.element_bytes
    depth, window = shape.input_channels, shape.window
    line = shape.output_columns * channels * 4
    down = bound(-window.padding[0], shape.output_rows, row=window.stride[0], ky=1)
    along = bound(-window.padding[2], shape.output_columns, column=window.stride[1], kx=1)
    place = {"batch": shape.output_rows * line, "row": window.stride[0] * line, "ky": line,
             "column": window.stride[1] * channels * 4, "kx": channels * 4, "out": 4}
    first = -window.padding[0] * line - window.padding[2] * channels * 4
    pixel = depth * size
    body = [move._replace(bounds=(down, along)) for move in (
        load("input", size, 0, batch=shape.input_rows * shape.input_columns * pixel,
             row=shape.input_columns * pixel, column=pixel, channel=size),
        load("weights", wide, 0, out=shape.window_taps * depth * wide,
             ky=shape.kernel_columns * depth * wide, kx=depth * wide, channel=wide),
        load(target, 4, first, **place), store(target, 4, first, **place))]
    return repeat("batch", shape.batches, repeat("row", shape.input_rows, repeat(
        "column", shape.input_columns, repeat("channel", depth, repeat(
            "ky", shape.kernel_rows, repeat("kx", shape.kernel_columns, repeat(
                "out", channels, *body)))))))


def _finish(machine: Machine, shape: Geometry, target: str) -> Repeat:
    channels, size = shape.output_channels, machine.element_bytes
    bias = [load("bias", machine.bias_bytes, 0, out=machine.bias_bytes)] if shape.has_bias else []
    scales = [] if machine.is_float else [
        load("parameters", 4, part, out=4) for part in (0, 4 * channels)]
    return repeat("position", shape.positions, repeat(
        "out", channels, load(target, 4, 0, position=4 * channels, out=4), *bias, *scales,
        store("output", size, 0, position=channels * size, out=size)))


KERNELS: Kernels = {
    "transpose_conv_2d": {"c": Lowering(lower=_lower, scratch_bytes=_scratch_bytes)},
}
