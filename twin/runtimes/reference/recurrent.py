"""Recurrent operators, plain C: products of rows, then element-wise steps; all assumed.

References
----------
tensorflow/tflite-micro, tensorflow/lite/micro/kernels: svdf_common.cc, lstm_eval.h.
"""

from __future__ import annotations

from hwmodels.kernel import Lowered
from twin.runtimes.lowering import Codes, Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import block, join
from twin.runtimes.lowering.nests import closing, load, repeat, store
from twin.runtimes.reference.products import product_blocks
from twin.runtimes.reference.sequences import COUNTS, Counts, Machine, choose_machine

_COUNTS = COUNTS["recurrent"]

_GATES = {"lstm": 4, "gru": 3, "rnn": 1}
_CALL: Counts = (15, 10, 22)


def _lower_svdf(site: Site) -> Lowered:
    """Lower an SVDF step: shift the memory, project the features, filter over time, sum by rank."""
    machine = choose_machine(site)
    filters, inputs = site.weights.shape
    memory = site.input(2).channels
    outputs = site.output.elements
    size = machine.element_bytes
    batches = max(1, site.source.elements // inputs)
    shift = join(machine.load(size), machine.store(size), machine.loop(_COUNTS["shift"]))
    wide, time = machine.weight_bytes, site.input(2).element_bytes
    return machine.kernel(
        "EvalIntegerSVDF", "recurrent", _CALL,
        repeat("batch", batches,
               repeat("filter", filters,
                      *product_blocks(machine, batches, filters, inputs, False),
                      repeat("depth", inputs,
                             load("input", size, 0, batch=inputs * size, depth=size),
                             load("weights", wide, 0, filter=inputs * wide, depth=wide))),
               repeat("memory", filters * memory, closing("shift memory", shift, "data_copy")),
               repeat("filter", filters,
                      *product_blocks(machine, batches, filters, memory, False),
                      repeat("depth", memory,
                             load("weights2", time, 0, filter=memory * time, depth=time))),
               block("sum by rank", _step(machine, 1), outputs, batches),
               repeat("out", outputs // batches,
                      store("output", size, 0, batch=outputs // batches * size, out=size))),
        macs=batches * filters * (inputs + memory), assumed=True)


def _lower_gates(site: Site) -> Lowered:
    """Lower an LSTM or GRU: per time step the gates' products, activations and the state."""
    machine = choose_machine(site)
    rows, inputs = site.weights.shape[-2:]
    hidden = rows // _GATES[site.op]
    steps = max(1, site.source.elements // inputs)
    size, wide = machine.element_bytes, machine.weight_bytes
    outputs = site.output.elements
    kept = min(steps, max(1, outputs // hidden))
    return machine.kernel(
        site.op, "recurrent", _CALL,
        repeat("step", steps,
               repeat("row", rows,
                      *product_blocks(machine, steps, rows, inputs, True),
                      repeat("depth", inputs,
                             load("input", size, 0, step=inputs * size, depth=size),
                             load("weights", wide, 0, row=inputs * wide, depth=wide))),
               repeat("row", rows,
                      *product_blocks(machine, steps, rows, hidden, False),
                      repeat("depth", hidden,
                             load("weights2", wide, 0, row=hidden * wide, depth=wide))),
               repeat("gate", rows, closing("gate", join(_activation(machine), _step(machine, 1)))),
               repeat("out", hidden,
                      closing("state", join(_activation(machine), _step(machine, 3))),
                      store("output", size, 0, step=hidden * size if kept == steps else 0,
                            out=size))),
        macs=steps * rows * (inputs + hidden), assumed=True)


def _scratch_bytes_gates(site: Site) -> int:
    """Working memory: a 32-bit result per gate row."""
    return 4 * site.weights.shape[-2]


def _scratch_bytes_svdf(site: Site) -> int:
    """Working memory: a 32-bit result per filter, and per output."""
    return 4 * (site.weights.shape[0] + site.output.elements)


def _step(machine: Machine, products: int) -> str:
    one = join(machine.math("mul", "add"), machine.requantise())
    return join(*[one] * products, machine.loop(_COUNTS["step"]))


def _activation(machine: Machine) -> str:
    if machine.is_float:
        return join(machine.exponential(), machine.math("add", "div"))
    return machine.routine(40)  # a table of 512 values, interpolated


_GATED: Codes = {"c": Lowering(lower=_lower_gates, scratch_bytes=_scratch_bytes_gates)}

KERNELS: Kernels = {
    "gru": _GATED,
    "lstm": _GATED,
    "rnn": _GATED,
    "svdf": {"c": Lowering(lower=_lower_svdf, scratch_bytes=_scratch_bytes_svdf)},
}
