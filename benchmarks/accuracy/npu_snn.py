"""Epochs of a spiking network on the N6, phase by phase, beside one-layer graphs of ours.

The table prints host cycles before, during and after each epoch, not what an epoch computes; the
network's dense layers and element-wise ones are told apart by how long they take. The tools are
older (1.1.0) than any version of our runtime, so this is a check, not a judgement.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from calibration.datasets.tables import read_table
from twin.deployment.deploy import deploy
from twin.network.graph import Graph, Layer, Tensor
from twin.pricing.prediction import predict

PHASES = ("pre", "core", "post")
_INPUTS = 784


def compare_phases() -> list[tuple[str, int, Mapping[str, float], Mapping[str, float]]]:
    """Return (what, published epochs, their median host cycles by phase, ours)."""
    rows = [row for row in read_table("n6_snn_layers").rows
            if row["engine"] == "npu" and row["type"] == "epoch"]
    found = []
    for model, units in (("snn_mnist_quant_1000_1", 1000), ("snn_mnist_quant_100_1", 100)):
        theirs = [{phase: float(str(row[f"cpu_cycles_{phase}"])) for phase in PHASES}
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
        theirs = [float(str(row["cpu_cycles_core"])) for row in rows
                  if int(str(row["macc"])) == (inputs + 1) * outputs]
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
        made, scalar = _activation(units), _constant((1,), "int8")
        floats = replace(made, dtype="float32")
        for what, read, kind, rom_bytes, tensors in (
                ("add", "int8", "Eltwise/add", "0", (made, made, made)),
                ("add of a constant", "int8", "Eltwise/add", "1", (made, scalar, made)),
                ("mul", "int8", "Eltwise/mul", "0", (made, made, made)),
                ("mul by a constant", "int8", "Eltwise/mul", "1", (made, scalar, made)),
                ("minimum of a constant", "int8", "Eltwise/min", "1", (made, scalar, made)),
                ("logistic", "int8", "Nonlinearity", "0", (made, made)),
                ("dequantize", "int8", "Conversion", "0", (made, floats)),
                ("quantize", "f32", "Conversion", "0", (floats, made))):
            theirs = [float(str(row["cpu_cycles_core"])) for row in rows
                      if (row["model"], row["c_layer_type"], row["input0"], str(row["rom_bytes"]))
                      == (f"snn_mnist_quant_{units}_1", kind, f"{read}(1x{units})", rom_bytes)]
            graph = _graph(tensors, what.partition(" ")[0], tuple(range(len(tensors) - 1)))
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
    tensors = (_activation(inputs), _constant((units, inputs), "int8"),
               _constant((units,), "int32"), _activation(units))
    return _graph(tensors, "fully_connected", (0, 1, 2))


def _add(units: int) -> Graph:
    return _graph((_activation(units), _activation(units), _activation(units)), "add", (0, 1))


def _graph(tensors: tuple[Tensor, ...], op: str, inputs: tuple[int, ...]) -> Graph:
    last = len(tensors) - 1
    return Graph(
        name=op, source="rebuilt", sha256="0" * 64, tensors=tensors,
        layers=(Layer(index=0, name=op, op=op, inputs=inputs, outputs=(last,)),),
        inputs=tuple(i for i in inputs if not tensors[i].is_constant), outputs=(last,))


def _activation(elements: int) -> Tensor:
    return Tensor(name="", shape=(1, elements), dtype="int8")


def _constant(shape: tuple[int, ...], dtype: str) -> Tensor:
    return Tensor(name="", shape=shape, dtype=dtype,
                  data=np.broadcast_to(np.zeros(1, dtype), shape))
