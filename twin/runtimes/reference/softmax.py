"""Softmax, plain C: gemmlowp's fixed point for int8, `expf` for floats.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference/softmax.h. The int8 algorithm
is the one CMSIS-NN's scalar function shares.
"""

from __future__ import annotations

from dataclasses import replace

from hwmodels.isa import load_isa, plain_isa
from hwmodels.kernel import Lowered
from twin.runtimes.cmsis_nn.softmax import lower_scalar
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import join, spills
from twin.runtimes.lowering.nests import closing, load, repeat, step, store
from twin.runtimes.reference.sequences import choose_machine


def _lower(site: Site) -> Lowered:
    """Lower a softmax over the last axis."""
    machine = choose_machine(site)
    if not machine.is_float:
        plain = replace(site, isa=plain_isa(machine.dialect))
        return tuple(replace(kernel, name="reference_ops::Softmax",
                             assumed=kernel.assumed or machine.number == "int16"
                             or load_isa(site.isa).assumed)
                     for kernel in lower_scalar(plain))
    tensor = site.source
    width = tensor.channels
    rows, dialect = tensor.elements // width, machine.dialect
    close = machine.loop((0, 0, 2))
    steps = {"row": 4 * width, "element": 4}
    read, write = load("input", 4, 0, **steps), store("output", 4, 0, **steps)
    one, add = machine.load(4), machine.math("add")
    return machine.kernel(
        "reference_ops::Softmax", "softmax", (6, 5, 12),
        repeat("row", rows,
               step("row", spills(dialect, 3, 3, 12)),
               repeat("element", width,
                      closing("maximum", join(one, machine.math("compare"), close)), read),
               repeat("element", width,
                      closing("exponential", join(
                          one, add, machine.math("mul"), machine.exponential(), add,
                          machine.store(4), close)), read, write),
               repeat("element", width,
                      closing("divide", join(one, machine.math("div"), machine.store(4), close)),
                      load("output", 4, 0, **steps), write)))


KERNELS: Kernels = {
    "softmax": {"c": Lowering(lower=_lower)},
}
