"""How fast epochs run: `python -m benchmarks.speed.npu_speed`.

Two hundred published epochs (profiled and compiled ones of the N6) through `run_epochs`, the numba
kernel alone, and the SimPy specification on the same plans; medians of the same process. The
ticks of kernel and specification are asserted equal, so that speed work cannot change a result.
"""

from __future__ import annotations

import sys

from benchmarks.speed.__main__ import median_s
from calibration.datasets.npu import read_compiled_epochs, read_measured_epochs
from hwmodels.board.file import load_board
from hwmodels.kernels.npu_streams import run_streams
from hwmodels.npu.run import run_epochs
from hwmodels.npu.streams import form_streams
from hwmodels.npu.timing import plan_epoch
from hwmodels.reference.npu import ReferenceEpoch

EPOCHS = 200
LIMIT_S = 0.050
SPECIFIED = 20
"""Epochs the specification runs: it is slow."""


def main() -> int:
    """Print the figures; returns 1 when two hundred epochs take longer than the limit."""
    npu = load_board("stm32n6570_dk").npu
    assert npu is not None
    epochs = [row.epoch for row in read_measured_epochs() if row.epoch.kind == "hw"]
    epochs = (epochs + [row.epoch for row in read_compiled_epochs()])[:EPOCHS]
    plans = [plan_epoch(epoch, form_streams(epoch.engines, npu), npu) for epoch in epochs]

    def run_kernel() -> list[int]:
        return [run_streams(plan.nodes, plan.links, len(plan.channels), len(plan.pools))[1]
                for plan in plans]

    ticks = run_kernel()
    for plan, expected in zip(plans[:SPECIFIED], ticks[:SPECIFIED], strict=True):
        assert ReferenceEpoch(plan).run() == expected, plan.names
    steps = sum(int(plan.nodes[:, 0].sum()) for plan in plans)
    few = sum(int(plan.nodes[:, 0].sum()) for plan in plans[:SPECIFIED])
    whole_s = median_s(lambda: run_epochs(epochs, npu), 9)
    kernel_s = median_s(run_kernel, 9)
    reference_s = median_s(lambda: [ReferenceEpoch(plan).run() for plan in plans[:SPECIFIED]], 3)
    print(f"run_epochs, {EPOCHS} epochs, {steps} steps: {whole_s * 1e3:.1f} ms "
          f"(limit {LIMIT_S * 1e3:.0f})\nkernel alone: {kernel_s * 1e3:.1f} ms, "
          f"{steps / kernel_s / 1e6:.1f} M steps/s\nSimPy specification: "
          f"{few / reference_s / 1e6:.3f} M steps/s, {SPECIFIED} epochs of equal ticks")
    return int(whole_s > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
