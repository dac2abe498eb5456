"""A compiled MobileNetV2 as a graph again, rebuilt from the bytes of its epochs.

The published table gives each epoch's operations and bytes, not its layers. In a network of 1x1 and
depthwise 3x3 convolutions those tell the shapes: outputs / positions are the channels, weights /
channels the inputs; a depthwise kernel has 9 weights a channel, 18 where it strides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from calibration.datasets.tables import read_table
from hwmodels.board.file import load_board
from twin.network.graph import Graph, Layer, Tensor, Window
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
    return [(mine, int(str(row["compute_cycles"]))) for mine, row in zip(ours, rows, strict=True)]


def _rebuild(rows: list[Mapping[str, object]]) -> Graph:
    network = _Network()
    for number, row in enumerate(rows):
        moved = json.loads(str(row["mem_json"]))
        weights, outputs = moved["octoFlash_reads"], moved["npuRAM5_writes"]
        if number == 0:
            network.convolve("conv_2d", 3, 2, 8)
        elif weights in (9 * network.channels, 18 * network.channels):
            network.convolve("depthwise_conv_2d", 3, weights // (9 * network.channels),
                             network.channels)
        else:
            if number == len(rows) - 1:  # After the average.
                network.average()
            network.convolve("conv_2d", 1, 1, outputs // network.side**2)
            added = json.loads(str(row["op_kinds"])).get("Add", 0) > 1
            if added:
                network.add_earlier()
    return network.finish()


class _Network:
    """A chain of layers with residual additions, grown one by one."""

    def __init__(self) -> None:
        self.side, self.channels = _SIDE, _CHANNELS
        self.tensors = [_activation(self.side, self.channels)]
        self.layers: list[Layer] = []
        self.last = 0
        self.block = 0
        """Tensor a residual addition reads: the last one that was projected."""

    def convolve(self, op: str, kernel: int, stride: int, outputs: int) -> None:
        """Append a convolution with its bias; a 1x1 one that narrows ends a block."""
        narrows = kernel == 1 and outputs < self.channels
        shape = ((1, kernel, kernel, outputs) if op == "depthwise_conv_2d"
                 else (outputs, kernel, kernel, self.channels))
        constants = [_constant(shape, "int8"), _constant((outputs,), "int32")]
        places = (self.last, len(self.tensors), len(self.tensors) + 1)
        self.tensors += constants
        self.side //= stride
        self.channels = outputs
        before = self.block
        self._append(op, places, Window(kernel=(kernel, kernel), stride=(stride, stride)),
                     None if narrows else "relu6")
        self.previous, self.block = before, self.last if narrows else before

    def add_earlier(self) -> None:
        """Append the residual addition of a block."""
        self._append("add", (self.last, self.previous), None, None)
        self.block = self.last

    def average(self) -> None:
        """Reduce to one position; it is no epoch with a convolution, so it is omitted."""
        self.side = 1
        self.tensors.append(_activation(1, self.channels))
        self.last = len(self.tensors) - 1

    def finish(self) -> Graph:
        """Return the graph."""
        return Graph(name="rebuilt", source="rebuilt", sha256="0" * 64,
                     tensors=tuple(self.tensors), layers=tuple(self.layers), inputs=(0,),
                     outputs=(self.last,))

    def _append(self, op: str, inputs: tuple[int, ...], window: Window | None,
                activation: str | None) -> None:
        self.tensors.append(_activation(self.side, self.channels))
        self.last = len(self.tensors) - 1
        index = len(self.layers)
        self.layers.append(Layer(index=index, name=f"{op} {index}", op=op, inputs=inputs,
                                 outputs=(self.last,), window=window, activation=activation))


def _activation(side: int, channels: int) -> Tensor:
    return Tensor(name="", shape=(1, side, side, channels), dtype="int8")


def _constant(shape: tuple[int, ...], dtype: str) -> Tensor:
    return Tensor(name="", shape=shape, dtype=dtype,
                  data=np.broadcast_to(np.zeros(1, dtype), shape))
