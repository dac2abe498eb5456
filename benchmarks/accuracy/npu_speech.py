"""Streaming speech networks on the N6, built from their description: `python -m
benchmarks.accuracy.npu_speech`.

Three rows, published with time, host cycles and energy above the idle board. What a kernel of one
column takes, what the epoch controller spares and the accelerator's energy are derived from them,
so what is printed is in sample; the schedule is the twin's, nothing of it is fitted.
"""

from __future__ import annotations

import math
import sys
import zlib
from dataclasses import replace

import numpy as np

from calibration.datasets.tables import read_table
from hwmodels.frozen import frozen
from twin.deployment.deploy import deploy
from twin.network.graph import Graph
from twin.network.zoo.builder import Builder
from twin.pricing.inference import predict
from twin.pricing.prediction import Prediction

RUNTIME = "neural-art@3.0.0"
ROWS, CHANNELS, EARLIER = 257, 96, 5
"""Frequency bins, channels, and feature columns a block is handed from earlier steps."""


@frozen
class SpeechCase:
    """A published network and what is said of it.

    Parameters
    ----------
    name : str
        As published; "EC" is the epoch controller.
    measured_ms, measured_uj : float
        An inference; energy above idle at the board's input.
    measured_cpu_cycles : float
        Of the host.
    prediction : Prediction
        Of the same network.
    """

    name: str
    measured_ms: float
    measured_uj: float
    measured_cpu_cycles: float
    prediction: Prediction


def build_speech_network(blocks: int) -> Graph:
    """Return a speech network of so many blocks, as the table describes it.

    Parameters
    ----------
    blocks : int
        At least one.

    Returns
    -------
    Graph
        Inputs and outputs channel first, as an ONNX file has them.
    """
    name = f"speech_{blocks}_blocks.onnx"
    net = Builder(name, zlib.crc32(name.encode()))
    shape = (1, ROWS, 1, CHANNELS)

    def activate(tensor: int) -> int:
        slopes = net.tensor("slopes", (1, 1, CHANNELS), data=np.full((1, 1, CHANNELS), 32, np.int8))
        return net.layer("prelu", (tensor, slopes), shape)

    column = net.conv(net.input((1, ROWS, 1, 1)), CHANNELS, (3, 1), activation=None)
    outputs = []
    for _ in range(blocks):
        outputs.append(column)
        columns = [net.input(shape) for _ in range(EARLIER)]
        parts = [net.conv(each, CHANNELS, 1, activation=None) for each in (*columns, column)]
        total = parts[0]
        for part in parts[1:]:
            total = net.layer("add", (total, part), shape)
        inner = activate(net.conv(activate(total), CHANNELS, (3, 1), activation=None))
        column = net.layer("add", (column, inner), shape)
    mask = net.conv(column, 1, 1, activation=None)
    graph = net.finish(net.layer("logistic", (mask,), (1, ROWS, 1, 1)))
    return replace(graph, source=name, channel_first=True, outputs=(*outputs, *graph.outputs))


def list_speech_cases() -> tuple[SpeechCase, ...]:
    """Predict every published network."""
    cases = []
    for row in read_table("n6_speech_networks").rows:
        name = row["model"]
        blocks = int(name.removeprefix("n6net_b")[0])
        deployment = deploy(build_speech_network(blocks), "stm32n6570_dk", runtime=RUNTIME,
                            weights="npu_ram").replace(
            {"npu.epoch_controller": "(EC)" in name})
        cases.append(SpeechCase(
            name=name, measured_ms=float(row["latency_ms"] or 0),
            measured_uj=float(row["energy_uJ_per_inference_above_idle"] or 0),
            measured_cpu_cycles=float(row["m55_cycles_column_in_latency_csv"] or 0),
            prediction=predict(deployment)))
    return tuple(cases)


def print_cases() -> None:
    """Print each network's time, host cycles and energy beside the published ones."""
    lines = ["| network | measured, ms | twin, ms | error | host cycles, theirs / ours | epochs "
             "| measured, uJ | twin, uJ | error |", "|" + " --- |" * 9]
    for case in list_speech_cases():
        said = case.prediction
        host = sum(epoch.pre_cpu_cycles + epoch.post_cpu_cycles for epoch in said.tasks)
        lines.append(
            f"| {case.name} | {case.measured_ms:.3f} | {said.time_us / 1e3:.3f} | "
            f"{said.time_us / 1e3 / case.measured_ms - 1:+.1%} | "
            f"{case.measured_cpu_cycles:,.0f} / {host:,.0f} | {len(said.tasks)} | "
            f"{case.measured_uj:.1f} | {said.energy_uj or math.nan:.1f} | "
            f"{(said.energy_uj or math.nan) / case.measured_uj - 1:+.1%} |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    print_cases()
