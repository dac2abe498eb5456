"""Absolute value, plain C: one element at a time, each through a function object.

References
----------
tensorflow/tflite-micro, tensorflow/lite/micro/kernels/elementwise.cc: AbsEval, AbsEvalQuantized.
"""

from __future__ import annotations

from hwmodels.kernel import Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import join
from twin.runtimes.lowering.nests import closing, load, repeat, store
from twin.runtimes.reference.sequences import Table, choose_machine

_ELEMENT: Table = {"thumb2": (6, 2, 18), "thumb1": (8, 3, 24), "rv32": (6, 2, 19)}
"""Stack loads, stack stores and register instructions per element: the call through the function
object, offsets and clamp (assumed)."""


def _lower(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Integers have their offset taken off and are rescaled; floats lose their sign."""
    machine = choose_machine(graph, layer, site)
    size = machine.element_bytes
    element = join(machine.load(size), machine.requantise(), machine.store(size),
                   machine.loop(_ELEMENT))
    return machine.kernel(
        "AbsEval", "elementwise", (8, 6, 14),
        repeat("element", graph.output(layer).elements,
               closing("element", element),
               load("input", size, element=size), store("output", size, element=size)),
        assumed=True)


KERNELS: Kernels = {
    "abs": {"c": Lowering(lower=_lower)},
}
