"""The figures of Arm's PMU, predicted: cycles active, beats by port and direction, units busy."""

from __future__ import annotations

from collections.abc import Mapping

from hwmodels.schedule import TaskRun

FIGURES = ("npu_active", "axi", "sram_", "ext_", "mac_", "ao_", "wd_")
"""How the names of the PMU's figures begin."""


def count_run(run: TaskRun) -> dict[str, float]:
    """Return the counters of one task, by the PMU's names in lower case.

    Beats are of the port's width, summed over ports to the same memory.
    """
    if run.task.on_host:
        return {}
    found: dict[str, float] = {"npu_active": float(run.core_npu_cycles)}
    for work, name in (("MAC", "mac_active"), ("OUTPUT", "ao_active"), ("DECODER", "wd_active")):
        busy = [unit.compute_cycles or 0 for unit in run.task.units if unit.kind == work]
        found[name] = float(sum(busy))
    for transfer in run.transfers:
        port = transfer.port.name  # Several ports to one memory count as one, as the PMU sums them.
        port = port if port.startswith("axi") else port.rstrip("0123456789")
        way = "rd_data_beat_received" if transfer.transfer.direction == "in" else (
            "wr_data_beat_written")
        name = f"{port}_{way}"
        found[name] = found.get(name, 0.0) + transfer.beats
    return found


def list_totals(totals: Mapping[str, float]) -> list[str]:
    """Return the lines ml-embedded-evaluation-kit prints of an inference.

    The NPU is idle from its last beat until the host has taken the interrupt.
    """
    idle = round(totals.get("post_share", 0.0) / 100 * totals.get("npu_cycles", 0.0))
    totals = {"npu_idle": idle, **totals}
    totals["npu_total"] = round(totals.get("npu_active", 0.0)) + totals["npu_idle"]
    shown = [name for name in totals if name.startswith((*FIGURES, "npu_idle", "npu_total"))]
    return ["Profile for Inference:", *(f"NPU {name.removeprefix('npu_').upper()}: "
                                        f"{totals[name]:.0f}" for name in shown)]
