"""The operator acme_gate: an activation below a threshold becomes the zero point.

`OPERATOR` is what a graph knows of it, `TFLITE` how a file's node becomes a layer, `KERNELS` how a
core runs it. The entry point's name is the operator's.
"""

from twin.network.operators import Operator
from twin.network.readers.tflite_nodes import data_first
from twin.runtimes.lowering import Kernels, Lowering
from twin.runtimes.lowering.blocks import join
from twin.runtimes.lowering.nests import closing, load, repeat, store
from twin.runtimes.reference.sequences import choose_machine

OPERATOR = Operator(name="acme_gate", macs=lambda graph, layer: 0, assumed=True)

TFLITE = {"CUSTOM AcmeGate": data_first(lambda node: node.layer("acme_gate", node.inputs[:1]))}


def _lower(site):
    """Load, compare, select, store: each element once."""
    machine = choose_machine(site)
    size = machine.element_bytes
    element = join(machine.load(size), machine.store(size), machine.loop((0, 0, 3)))
    return machine.kernel(
        "AcmeGateEval", "elementwise", (4, 3, 10),
        repeat("element", site.output.elements, closing("element", element),
               load("input", size, element=size), store("output", size, element=size)),
        assumed=True)


KERNELS: Kernels = {
    "acme_gate": {"c": Lowering(lower=_lower)},
}
