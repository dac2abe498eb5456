"""The figures of Arm's PMU, predicted: cycles active, beats by port and direction, units busy."""

from __future__ import annotations

from collections.abc import Mapping

from hwmodels.schedule import TaskRun

_PORTS = {"axi0": "axi0", "axi1": "axi1", "sram": "sram", "ext": "ext"}


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
        port = transfer.port.name.rstrip("0123456789")
        port = transfer.port.name if port == "axi" else port
        way = "rd_data_beat_received" if transfer.transfer.direction == "in" else (
            "wr_data_beat_written")
        name = f"{_PORTS.get(port, port)}_{way}"
        found[name] = found.get(name, 0.0) + transfer.beats
    return found


def total_counters(totals: Mapping[str, float]) -> list[str]:
    """Return the lines ml-embedded-evaluation-kit prints of an inference."""
    return [f"NPU {name.removeprefix('npu_').upper()}: {value:.0f}"
            for name, value in sorted(totals.items())]
