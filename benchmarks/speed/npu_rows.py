"""Epochs of an accelerator beside their specification in SimPy."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.speed import npu_speed
from benchmarks.speed.npu_speed import EPOCHS, SPECIFIED
from benchmarks.speed.processor_time import median_cpu_s
from benchmarks.speed.row import Row
from hwmodels.board.file import load_board
from hwmodels.schedule.timing import plan_task
from twin.deployment.deploy import deploy
from twin.pricing.prediction import predict


def measure() -> Iterator[Row]:
    """Yield the rows of accelerators."""
    board = load_board("stm32n6570_dk")
    deployment = deploy(npu_speed.build_network(EPOCHS), board, runtime="neural-art")
    predicted = predict(deployment)
    yield Row(name=f"accelerator, {EPOCHS} epochs predicted", unit="ms", limit=20.0,
              events={"epochs": len(predicted.tasks),
                      "time_ns": round(1e3 * sum(epoch.time_us for epoch in predicted.tasks))},
              figure=median_cpu_s(lambda: predict(deployment), 9) * 1e3)
    npu = board.npu
    assert npu is not None
    plans = [plan_task(epoch, npu) for epoch in npu_speed.list_published()]
    ticks = npu_speed.check_ticks(plans)
    steps, few = npu_speed.count_steps(plans), npu_speed.count_steps(plans[:SPECIFIED])
    ours_s = median_cpu_s(lambda: npu_speed.run_plans(plans), 9)
    theirs = few / npu_speed.time_reference(plans[:SPECIFIED])
    yield Row(name="accelerator, steps of published epochs", unit="M/s", peer="SimPy",
              figure=steps / ours_s / 1e6, theirs=theirs / 1e6,
              events={"steps": steps, "ticks": sum(ticks)})
