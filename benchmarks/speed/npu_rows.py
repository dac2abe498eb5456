"""Two hundred published epochs of the N6, and a network of as many, beside their specification.

Profiled and compiled ones; three in four of the network's differ. The ticks of kernel and
specification, in SimPy, are asserted equal, so that speed work cannot change a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.oracles.npu import ReferenceEpoch
from benchmarks.speed.row import Row, median_cpu_s
from hwmodels.board.file import load_board
from hwmodels.kernels.npu_streams import run_streams
from hwmodels.schedule.task import Task
from hwmodels.schedule.timing import Plan, plan_task
from tests.oracles.neural_art_epochs import read_compiled_epochs, read_measured_epochs
from twin.deployment.deploy import deploy
from twin.network.graph import Graph
from twin.network.zoo.builder import Builder
from twin.pricing.inference import predict

EPOCHS = 200
SPECIFIED = 20
"""Epochs the specification runs: it is slow."""


def build_network(layers: int) -> Graph:
    """Return a chain of 1x1 and depthwise 3x3 convolutions that widens every fourth layer."""
    net, width = Builder("deep", 0), 16
    last = net.input((1, 8, 8, width))
    for index in range(layers):
        width += 8 * (index % 4 == 0)
        last = (net.depthwise(last, 3, activation="relu6") if index % 2 else
                net.conv(last, width, 1, activation="relu6"))
    return net.finish(last)


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


def measure() -> Iterator[Row]:
    """Yield the rows of accelerators."""
    board = load_board("stm32n6570_dk")
    deployment = deploy(build_network(EPOCHS), board, runtime="neural-art")
    predicted = predict(deployment)
    yield Row(name=f"accelerator, {EPOCHS} epochs predicted", unit="ms", limit=20.0,
              events={"epochs": len(predicted.tasks),
                      "time_ns": round(1e3 * sum(epoch.time_us for epoch in predicted.tasks))},
              figure=median_cpu_s(lambda: predict(deployment), 9) * 1e3)
    npu = board.npu
    assert npu is not None
    plans = [plan_task(epoch, npu) for epoch in list_published()]
    ticks = check_ticks(plans)
    steps, few = count_steps(plans), count_steps(plans[:SPECIFIED])
    ours_s = median_cpu_s(lambda: run_plans(plans), 9)
    theirs = few / time_reference(plans[:SPECIFIED])
    yield Row(name="accelerator, steps of published epochs", unit="M/s", peer="SimPy",
              figure=steps / ours_s / 1e6, theirs=theirs / 1e6,
              events={"steps": steps, "ticks": sum(ticks)})
