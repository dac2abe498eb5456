"""Absolute value, plain C: one element at a time, each through a function object.

References
----------
tensorflow/tflite-micro, tensorflow/lite/micro/kernels/elementwise.cc: AbsEval, AbsEvalQuantized.
"""

from __future__ import annotations

from hwmodels.kernel import Lowered
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import join
from twin.runtimes.lowering.nests import closing, load, repeat, store
from twin.runtimes.reference.sequences import COUNTS, choose_machine

_COUNTS = COUNTS["unary"]


def _lower(site: Site) -> Lowered:
    """Integers have their offset taken off and are rescaled; floats lose their sign."""
    machine = choose_machine(site)
    size = machine.element_bytes
    element = join(machine.load(size), machine.requantise(), machine.store(size),
                   machine.loop(_COUNTS["element"]))
    return machine.kernel(
        "AbsEval", "elementwise", (8, 6, 14),
        repeat("element", site.output.elements,
               closing("element", element),
               load("input", size, element=size), store("output", size, element=size)),
        assumed=True)


KERNELS: Kernels = {
    "abs": {"c": Lowering(lower=_lower)},
}
