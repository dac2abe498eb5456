"""A compiled MobileNetV2 as a graph again, rebuilt from the bytes of its epochs.

The published table gives each epoch's operations and bytes, not its layers. In a network of 1x1 and
depthwise 3x3 convolutions those tell the shapes: outputs / positions are the channels, weights /
channels the inputs; a depthwise kernel has 9 weights a channel, 18 where it strides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from calibration.datasets.tables import read_table
from hwmodels.board.file import load_board
from twin.network.graph import Graph
from twin.network.zoo.builder import Builder
from twin.runtimes import load_runtime
from twin.runtimes.compiler import Planner

COMPILED = "mobilenet_v2_0.5_128 (3.0.0, default)"
_SIDE, _CHANNELS = 128, 3


def compare_compute_cycles() -> list[tuple[int, int]]:
    """Return (ours, the compiler's) compute cycles of each epoch with convolutions."""
    rows = [row for row in read_table("n6_compiler_epochs").rows
            if row["model"] == COMPILED and "Conv" in str(row["op_kinds"])]
    npu = load_board("stm32n6570_dk").npu
    offload = load_runtime("neural-art@3.0.0-default").offload
    assert npu is not None and offload is not None
    graph = _rebuild(rows)
    planner = Planner(npu=npu, offload=offload, weights="flash", arena="npu_ram")
    steps = offload.rules.schedule(graph, planner, {}, offload.rules.group(graph, planner))
    ours = [max(unit.compute_cycles or 0 for unit in step.task.units)
            for step in steps if step.task is not None and step.task.kind != "copy"]
    assert len(ours) == len(rows), "an epoch of ours for each of the compiler's"
    return [(mine, row["compute_cycles"]) for mine, row in zip(ours, rows, strict=True)]


def _rebuild(rows: list[Mapping[str, object]]) -> Graph:
    """Return the chain of layers; a 1x1 convolution that narrows ends a block."""
    net = Builder("rebuilt", 0)
    last = block = net.input((1, _SIDE, _SIDE, _CHANNELS))
    for number, row in enumerate(rows):
        moved = json.loads(row["mem_json"])
        weights, outputs = moved["octoFlash_reads"], moved["npuRAM5_writes"]
        side, channels = net.shape(last)[2:]
        if number == 0:
            last = net.conv(last, 8, 3, 2, activation="relu6")
        elif weights in (9 * channels, 18 * channels):
            last = net.depthwise(last, 3, weights // (9 * channels), activation="relu6")
        else:
            if number == len(rows) - 1:  # After the average, which is no epoch with a convolution.
                last, side = net.input((1, 1, 1, channels)), 1
            narrows = outputs // side**2 < channels
            last = net.conv(last, outputs // side**2, 1, activation=None if narrows else "relu6")
            if json.loads(str(row["op_kinds"])).get("Add", 0) > 1:
                last = net.add(last, block)
            block = last if narrows else block
    return net.finish(last)
