"""Epochs of a spiking network on the N6, phase by phase, beside one-layer graphs of ours.

The table prints host cycles before, during and after each epoch, not what an epoch computes; the
network's dense layers and element-wise ones are told apart by how long they take. The tools are
older (1.1.0) than any version of our runtime, so this is a check, not a judgement.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping

import numpy as np

from calibration.datasets.tables import read_table
from twin.deployment.deploy import deploy
from twin.network.graph import Graph
from twin.network.zoo.builder import Builder
from twin.pricing.inference import predict

PHASES = ("pre", "core", "post")
_INPUTS = 784


def compare_phases() -> list[tuple[str, int, Mapping[str, float], Mapping[str, float]]]:
    """Return (what, published epochs, their median host cycles by phase, ours)."""
    rows = [row for row in read_table("n6_snn_layers").rows
            if row["engine"] == "npu" and row["type"] == "epoch"]
    found = []
    for model, units in (("snn_mnist_quant_1000_1", 1000), ("snn_mnist_quant_100_1", 100)):
        theirs = [{phase: row[f"cpu_cycles_{phase}"] for phase in PHASES}
                  for row in rows if row["model"] == model]
        # A dense layer reads 784 bytes a unit from flash, an element-wise one at most 4.
        kinds: tuple[tuple[str, Callable[[float], bool], Graph], ...] = (
            (f"dense {_INPUTS} to {units}", lambda core, n=units: core > 1000 * n,
             _dense(units)),
            (f"add of {units}", lambda core, n=units: core < 500 + 2 * n, _add(units)))
        for what, belongs, graph in kinds:
            chosen = [phases for phases in theirs if belongs(phases["core"])]
            found.append((what, len(chosen), {phase: statistics.median(
                phases[phase] for phases in chosen) for phase in PHASES}, _ours(graph)))
    return found


def compare_dense() -> list[tuple[str, int, float, float]]:
    """Return (what, published layers, their median cycles on the Cortex-M55, ours as stated).

    The largest read weights from flash, line by line; those of 10 outputs stay in the cache.
    """
    rows = [row for row in read_table("n6_snn_layers").rows
            if row["engine"] == "cpu_m55" and row["c_layer_type"] == "Dense"]
    found = []
    for inputs, outputs in ((100, 10), (1000, 10), (_INPUTS, 100), (_INPUTS, 1000), (1000, 1000)):
        theirs = [row["cpu_cycles_core"] for row in rows
                  if row["macc"] == (inputs + 1) * outputs]
        deployment = deploy(_dense(outputs, inputs), "stm32n6570_dk", runtime="st-edge-ai@3.0.0",
                            weights="flash")
        found.append((f"dense {inputs} to {outputs}", len(theirs), statistics.median(theirs),
                      predict(deployment).cycles))
    return found


def compare_elementwise() -> list[tuple[str, int, float, float]]:
    """Return (what, published layers, their median cycles on the Cortex-M55, ours as stated).

    Of a thousand and a hundred elements; of pairs, one operand may be a constant of one element.
    """
    rows = [row for row in read_table("n6_snn_layers").rows if row["engine"] == "cpu_m55"]
    found = []
    for units in (1000, 100):
        for what, read, kind, constants in (
                ("add", "int8", "Eltwise/add", 0), ("add of a constant", "int8", "Eltwise/add", 1),
                ("mul", "int8", "Eltwise/mul", 0), ("mul by a constant", "int8", "Eltwise/mul", 1),
                ("minimum of a constant", "int8", "Eltwise/min", 1),
                ("logistic", "int8", "Nonlinearity", 0), ("dequantize", "int8", "Conversion", 0),
                ("quantize", "f32", "Conversion", 0)):
            theirs = [row["cpu_cycles_core"] for row in rows
                      if (row["model"], row["c_layer_type"], row["input0"], str(row["rom_bytes"]))
                      == (f"snn_mnist_quant_{units}_1", kind, f"{read}(1x{units})", str(constants))]
            graph = _elementwise(what.partition(" ")[0], units, read, constants)
            deployment = deploy(graph, "stm32n6570_dk", runtime="st-edge-ai@3.0.0")
            found.append((f"{what}, {units} elements", len(theirs), statistics.median(theirs),
                          predict(deployment).cycles))
    return found


def _ours(graph: Graph) -> dict[str, float]:
    deployment = deploy(graph, "stm32n6570_dk", runtime="neural-art", weights="flash")
    epoch = predict(deployment).tasks[0]
    assert epoch.kind == "hw"
    return {"pre": epoch.pre_cpu_cycles, "core": epoch.core_cpu_cycles,
            "post": epoch.post_cpu_cycles}


def _dense(units: int, inputs: int = _INPUTS) -> Graph:
    net = Builder("fully_connected", 0)
    return net.finish(net.fully_connected(net.input((1, inputs)), units))


def _add(units: int) -> Graph:
    net = Builder("add", 0)
    return net.finish(net.add(net.input((1, units)), net.input((1, units))))


def _elementwise(op: str, units: int, read: str, constants: int) -> Graph:
    """Return a layer of so many elements; of a pair one may be a constant of one element."""
    net = Builder(op, 0)
    shape, pair = (1, units), op in ("add", "mul", "minimum")
    inputs = [net.input(shape, {"f32": "float32"}.get(read, read)) for _ in range(
        1 + pair - constants)]
    inputs += [net.tensor("constant", (1,), data=np.zeros(1, np.int8)) for _ in range(constants)]
    return net.finish(net.layer(op, inputs, shape,
                                dtype="float32" if op == "dequantize" else "int8"))
