"""Counters of an accelerator, predicted: those of its own profiler, of each task and of all.

MCU cycles are the host's clock, NPU cycles the accelerator's; time is added across them, cycles
never.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from hwmodels.quantities import apportion
from twin.network.graph import Tensor
from twin.pricing.prediction import Prediction
from twin.runtimes.compiler import Compiler
from twin.runtimes.task_lines import PHASES, Counters


def count_tasks(prediction: Prediction) -> tuple[Counters, ...]:
    """Return what the accelerator's profiler would count of each task of a predicted inference.

    Parameters
    ----------
    prediction
        On an accelerator.

    Returns
    -------
    tuple of Counters
        In order; ops count a multiply-accumulate as two, as tools do.
    """
    tasks, compiler = prediction.tasks, prediction.runtime.compiler
    return round_phases(own | {
        "ops": float(sum(2 * unit.macs + unit.ops for unit in task.run.task.units)),
        "pre_cycles": task.pre_cpu_cycles, "core_cycles": task.core_cpu_cycles,
        "post_cycles": task.post_cpu_cycles} for task, own in zip(
            tasks, compiler.count_runs([task.run for task in tasks]), strict=True))


def total_counters(tasks: Sequence[Counters], time_us: float, npu_hz: float,
                   summed: tuple[str, ...] = Compiler.summed) -> Counters:
    """Sum the counters of tasks to those of the whole network; `summed` as the compiler says."""
    def total(*names: str) -> float:
        return math.fsum(counters.get(name, 0.0) for counters in tasks for name in names)

    known = {name for counters in tasks for name in counters}
    totals = {name: total(name) for name in ("max_cycles", "compute_cycles") if name in known} | {
        "ops": total("ops"), "duration": time_us,
        "core_npu_cycles": total("core_npu_cycles"), "core_cycles": total("core_cycles"),
        "npu_core_duration": total("core_npu_cycles") / npu_hz * 1e6,
        "npu_cycles": time_us * 1e-6 * npu_hz,
        "cpu_cycles": total("pre_cycles", "core_cycles", "post_cycles"),
    }
    totals |= {f"{phase}_share": 100 * total(f"{phase}_cycles") / totals["cpu_cycles"]
               for phase in PHASES if totals["cpu_cycles"]}
    for name in dict.fromkeys(name for counters in tasks for name in counters
                              if name.startswith(summed)):
        totals[name] = total(name)
    return totals


def round_phases(tasks: Iterable[Counters]) -> tuple[Counters, ...]:
    """Round MCU cycles as a whole inference, so that what is printed of tasks sums to totals."""
    counted = tuple(tasks)
    keys = [(place, f"{phase}_cycles") for place, counters in enumerate(counted)
            for phase in PHASES if f"{phase}_cycles" in counters]
    whole = dict(zip(keys, apportion([counted[place][name] for place, name in keys]), strict=True))
    return tuple({name: float(whole.get((place, name), value))
                  for name, value in counters.items()} for place, counters in enumerate(counted))


def describe_head(prediction: Prediction) -> list[str]:
    """Return the initial part of the profiler's report: inputs and outputs, nodes, device."""
    deployment, graph = prediction.deployment, prediction.graph
    board = deployment.board
    ends = [(letter, place + 1, len(ids), graph.tensors[i])
            for letter, ids in (("I", graph.inputs), ("O", graph.outputs))
            for place, i in enumerate(ids)]
    clocks = ",".join(f"{clock.name}_freq={clock.frequency_hz * 1e-6:g}MHz"
                      for clock in board.clocks)
    return [
        f"Summary '{graph.name}' - predicted, no device was asked",
        *(f"{letter}[{place}/{count}] '{tensor.name}' : {_describe_tensor(tensor)}, activations"
          for letter, place, count, tensor in ends),
        f"n_nodes          : {len(prediction.tasks)}",
        f"activations      : {deployment.placement.arena_bytes}",
        f"tools            : {deployment.runtime.identity}",
        f"device.desc      : {board.soc} on {board.name}, {board.core.model}",
        f"device.attrs     : {clocks}"]


def _describe_tensor(tensor: Tensor) -> str:
    """Return type, shape, size and scale of a tensor, as ST's tools write them."""
    quantization = tensor.quantization
    scale = "" if quantization is None else (
        f", QLinear({quantization.scales[0]:.9f},{quantization.zero_points[0]},{tensor.dtype})")
    return (f"{tensor.dtype}[{','.join(map(str, tensor.shape))}], {tensor.size_bytes} Bytes{scale}")
