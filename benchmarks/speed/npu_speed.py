"""How fast epochs run: `python -m benchmarks.speed.npu_speed`.

A network of two hundred epochs, three in four different, deployed and predicted in process; two
hundred published epochs (profiled and compiled ones of the N6) through `run_tasks`; the compiled
loop alone, and the SimPy specification on the same plans. Medians of processor time in one process,
so that a busy machine judges as an idle one does. The ticks of kernel and specification are
asserted equal, so that speed work cannot change a result.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.oracles.npu import ReferenceEpoch
from benchmarks.speed.processor_time import median_cpu_s
from hwmodels.board.file import load_board
from hwmodels.kernels.npu_streams import run_streams
from hwmodels.schedule.run import forget_tasks, run_tasks
from hwmodels.schedule.task import Task
from hwmodels.schedule.timing import Plan, plan_task
from tests.oracles.neural_art_epochs import read_compiled_epochs, read_measured_epochs
from twin.deployment.deploy import deploy
from twin.network.graph import Graph, Layer, Tensor, Window
from twin.pricing.prediction import predict

EPOCHS = 200
LIMIT_S = 0.020
SPECIFIED = 20
"""Epochs the specification runs: it is slow."""


def build_network(layers: int) -> Graph:
    """Return a chain of 1x1 and depthwise 3x3 convolutions that widens every fourth layer."""
    width, last = 16, 0
    tensors = [Tensor(name="input", shape=(1, 8, 8, width), dtype="int8")]
    made = []
    for index in range(layers):
        depthwise = index % 2 == 1
        inputs, width = width, width + 8 * (index % 4 == 0)
        shape = (1, 3, 3, width) if depthwise else (width, 1, 1, inputs)
        tensors += [_constant(shape, "int8"), _constant((width,), "int32"),
                    Tensor(name=f"{index}", shape=(1, 8, 8, width), dtype="int8")]
        made.append(Layer(
            index=index, name=f"{index}", activation="relu6",
            op="depthwise_conv_2d" if depthwise else "conv_2d", groups=width if depthwise else 1,
            inputs=(last, len(tensors) - 3, len(tensors) - 2), outputs=(len(tensors) - 1,),
            window=Window(kernel=(3, 3) if depthwise else (1, 1))))
        last = len(tensors) - 1
    return Graph(name="deep", source="made", sha256="0" * 64, tensors=tuple(tensors),
                 layers=tuple(made), inputs=(0,), outputs=(last,))


def _constant(shape: tuple[int, ...], dtype: str) -> Tensor:
    return Tensor(name="", shape=shape, dtype=dtype,
                  data=np.broadcast_to(np.ones(1, dtype), shape))


def list_published() -> list[Task]:
    """Return published epochs, profiled and compiled ones."""
    measured = [row for row in read_measured_epochs() if row.epoch.kind == "hw"]
    return [row.epoch for row in (*measured, *read_compiled_epochs())][:EPOCHS]


def run_plans(plans: Sequence[Plan]) -> list[int]:
    """Return the ticks each plan takes in the compiled loop, equal to the specification's."""
    return [run_streams(plan.nodes, plan.links, len(plan.channels), len(plan.pools))[1]
            for plan in plans]


def count_steps(plans: Sequence[Plan]) -> int:
    """Return the steps of all nodes."""
    return sum(int(plan.nodes[:, 0].sum()) for plan in plans)


def check_ticks(plans: Sequence[Plan]) -> list[int]:
    """Return the ticks of plans, and hold the first of them to the specification."""
    ticks = run_plans(plans)
    for plan, expected in zip(plans[:SPECIFIED], ticks[:SPECIFIED], strict=True):
        assert ReferenceEpoch(plan).run() == expected, plan.names
    return ticks


def time_reference(plans: Sequence[Plan]) -> float:
    """Return the seconds the specification takes for plans."""
    return median_cpu_s(lambda: [ReferenceEpoch(plan).run() for plan in plans], 3)


def main() -> int:
    """Print the figures; returns 1 when two hundred epochs take longer than the limit."""
    board, graph = load_board("stm32n6570_dk"), build_network(EPOCHS)
    npu = board.npu
    assert npu is not None
    epochs = list_published()
    plans = [plan_task(epoch, npu) for epoch in epochs]
    check_ticks(plans)
    deployment = deploy(graph, board, runtime="neural-art")
    assert len(predict(deployment).tasks) == EPOCHS + 1, "and one that copies the input"
    steps, few = count_steps(plans), count_steps(plans[:SPECIFIED])

    def anew(run: Callable[[], object]) -> float:
        return median_cpu_s(lambda: (forget_tasks(), run()), 9)

    predict_s = anew(lambda: predict(deployment))
    both_s = anew(lambda: predict(deploy(graph, board, runtime="neural-art")))
    whole_s = anew(lambda: run_tasks(epochs, npu))
    kernel_s = median_cpu_s(lambda: run_plans(plans), 9)
    reference_s = time_reference(plans[:SPECIFIED])
    print(f"predict, {EPOCHS} epochs: {predict_s * 1e3:.1f} ms (limit {LIMIT_S * 1e3:.0f}), with "
          f"its deployment {both_s * 1e3:.1f} ms\nrun_tasks, {EPOCHS} published epochs, {steps} "
          f"steps: {whole_s * 1e3:.1f} ms\nkernel alone: {kernel_s * 1e3:.1f} ms, "
          f"{steps / kernel_s / 1e6:.1f} M steps/s\nSimPy specification: "
          f"{few / reference_s / 1e6:.3f} M steps/s, {SPECIFIED} epochs of equal ticks")
    return int(predict_s > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
