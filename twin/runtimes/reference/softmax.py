"""Softmax, plain C: gemmlowp's fixed point for int8, `expf` for floats.

References
----------
tensorflow/tflite-micro, tensorflow/lite/kernels/internal/reference/softmax.h. The int8 algorithm
is the one CMSIS-NN's scalar function shares.
"""

from __future__ import annotations

from dataclasses import replace

from hwmodels.kernel import Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.softmax import lower_scalar
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import block, join, spills
from twin.runtimes.lowering.nests import load, repeat, resolve, store
from twin.runtimes.reference.sequences import (
    PLAIN_ISA,
    arithmetic,
    call_block,
    choose_machine,
    exponential,
    load_text,
    looped,
    make_kernel,
    store_text,
)


def _lower(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a softmax over the last axis."""
    machine = choose_machine(graph, layer, site)
    if not machine.is_float:
        plain = replace(site, isa=PLAIN_ISA[machine.dialect])
        return tuple(replace(kernel, name="reference_ops::Softmax",
                             assumed=kernel.assumed or machine.number == "int16"
                             or site.isa == "x86-64")
                     for kernel in lower_scalar(graph, layer, plain))
    tensor = graph.tensors[layer.inputs[0]]
    width = tensor.shape[-1]
    rows, dialect = tensor.elements // width, machine.dialect
    close = looped(dialect, (0, 0, 2))
    blocks = (
        call_block(machine, (6, 5, 12)),
        block("row", spills(dialect, 3, 3, 12), rows),
        block("maximum", join(load_text(machine, 4), arithmetic(machine, "compare"), close),
              rows * width, rows),
        block("exponential", join(
            load_text(machine, 4), arithmetic(machine, "add"), arithmetic(machine, "mul"),
            exponential(machine), arithmetic(machine, "add"), store_text(machine, 4), close),
            rows * width, rows),
        block("divide", join(load_text(machine, 4), arithmetic(machine, "div"),
                             store_text(machine, 4), close), rows * width, rows),
    )
    steps = {"row": 4 * width, "element": 4}
    read, write = load("input", 4, 0, **steps), store("output", 4, 0, **steps)
    nest = repeat("row", rows, repeat("element", width, read),
                  repeat("element", width, read, write),
                  repeat("element", width, load("output", 4, 0, **steps), write))
    return (make_kernel("reference_ops::Softmax", "softmax", machine, site, blocks,
                        resolve(nest)),)


KERNELS: Kernels = {
    "softmax": {"c": Lowering(lower=_lower)},
}
