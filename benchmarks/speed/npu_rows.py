"""Epochs of an accelerator beside their specification in SimPy."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.oracles.npu import ReferenceEpoch
from benchmarks.speed.npu_speed import EPOCHS, SPECIFIED, build_network
from benchmarks.speed.processor_time import median_cpu_s
from benchmarks.speed.row import Row
from calibration.datasets.neural_art import read_compiled_epochs, read_measured_epochs
from hwmodels.board.file import load_board
from hwmodels.kernels.npu_streams import run_streams
from hwmodels.schedule.run import forget_tasks
from hwmodels.schedule.timing import plan_task
from twin.deployment.deployment import deploy
from twin.pricing.prediction import predict


def measure() -> Iterator[Row]:
    """Yield the rows of accelerators."""
    board = load_board("stm32n6570_dk")
    deployment = deploy(build_network(EPOCHS), board, runtime="neural-art")
    predicted = predict(deployment)
    events = {"epochs": len(predicted.epochs),
              "time_ns": round(1e3 * sum(epoch.time_us for epoch in predicted.epochs))}

    def predict_anew() -> None:
        forget_tasks()
        predict(deployment)

    yield Row(name=f"accelerator, {EPOCHS} epochs predicted", unit="ms", limit=20.0,
              figure=median_cpu_s(predict_anew, 9) * 1e3, events=events)
    yield Row(name=f"accelerator, {EPOCHS} epochs seen before", unit="ms", limit=20.0,
              figure=median_cpu_s(lambda: predict(deployment), 9) * 1e3, events=events)
    npu = board.npu
    assert npu is not None
    epochs = [row.epoch for row in read_measured_epochs() if row.epoch.kind == "hw"]
    epochs = (epochs + [row.epoch for row in read_compiled_epochs()])[:EPOCHS]
    plans = [plan_task(epoch, npu) for epoch in epochs]

    def run() -> list[int]:
        return [run_streams(plan.nodes, plan.links, len(plan.channels), len(plan.pools))[1]
                for plan in plans]

    ticks = run()
    for plan, expected in zip(plans[:SPECIFIED], ticks[:SPECIFIED], strict=True):
        assert ReferenceEpoch(plan).run() == expected, plan.names
    steps = sum(int(plan.nodes[:, 0].sum()) for plan in plans)
    few = sum(int(plan.nodes[:, 0].sum()) for plan in plans[:SPECIFIED])
    theirs = few / median_cpu_s(
        lambda: [ReferenceEpoch(plan).run() for plan in plans[:SPECIFIED]], 3)
    yield Row(name="accelerator, steps of published epochs", unit="M/s", peer="SimPy",
              figure=steps / median_cpu_s(run, 9) / 1e6, theirs=theirs / 1e6,
              events={"steps": steps, "ticks": sum(ticks)})
