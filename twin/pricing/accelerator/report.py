"""The profiler's report of an accelerator, predicted: every line per epoch and of the whole model.

Counters carry the names a measurement gives them (`calibration.importers.neural_art_profiler`), so
the two stand side by side. MCU cycles are the host's clock, NPU cycles the accelerator's; time is
added across them, cycles never.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from calibration.importers.neural_art_lines import ENGINES, PHASES
from hwmodels.npu import BURST_BEATS, EpochRun
from hwmodels.quantities import apportion
from twin.deployment.costs import EpochPrediction
from twin.pricing.prediction import Prediction

Counters = Mapping[str, float]
"""Value by counter, as a measurement names it; one that is not known is left out."""


def count_epochs(prediction: Prediction) -> tuple[Counters, ...]:
    """Return what the profiler would count of each epoch of a predicted inference.

    Parameters
    ----------
    prediction : Prediction
        Of a runtime that offloads.

    Returns
    -------
    tuple of Counters
        In order; ops count a multiply-accumulate as two, as the tool does.
    """
    return round_phases(_count_epoch(epoch) for epoch in prediction.epochs)


def total_counters(epochs: Sequence[Counters], time_us: float, npu_hz: float) -> Counters:
    """Sum the counters of epochs to those of the whole network."""
    def total(*names: str) -> float:
        return math.fsum(counters.get(name, 0.0) for counters in epochs for name in names)

    totals = {
        "max_cycles": total("max_cycles"), "compute_cycles": total("compute_cycles"),
        "ops": total("ops"), "duration": time_us,
        "core_npu_cycles": total("core_npu_cycles"), "core_cycles": total("core_cycles"),
        "npu_core_duration": total("core_npu_cycles") / npu_hz * 1e6,
        "npu_cycles": time_us * 1e-6 * npu_hz,
        "cpu_cycles": total("pre_cycles", "core_cycles", "post_cycles"),
    }
    totals |= {f"{phase}_share": 100 * total(f"{phase}_cycles") / totals["cpu_cycles"]
               for phase in PHASES if totals["cpu_cycles"]}
    for name in dict.fromkeys(name for counters in epochs for name in counters
                              if name.startswith("pool_")):
        totals[name] = total(name)
    return totals


def round_phases(epochs: Iterable[Counters]) -> tuple[Counters, ...]:
    """Round MCU cycles as a whole inference, so that what is printed of epochs sums to totals."""
    counted = tuple(epochs)
    keys = [(place, f"{phase}_cycles") for place, counters in enumerate(counted)
            for phase in PHASES if f"{phase}_cycles" in counters]
    whole = dict(zip(keys, apportion([counted[place][name] for place, name in keys]),
                     strict=True))
    return tuple({name: float(whole.get((place, name), value))
                  for name, value in counters.items()} for place, counters in enumerate(counted))


def _count_epoch(epoch: EpochPrediction) -> Counters:
    run = epoch.run
    return count_run(run) | {
        "ops": float(sum(2 * unit.macs + unit.ops for unit in run.epoch.units)),
        "compute_cycles": run.compute_cycles, "max_cycles": run.max_cycles,
        "pre_cycles": epoch.pre_cpu_cycles, "core_cycles": epoch.core_cpu_cycles,
        "post_cycles": epoch.post_cpu_cycles}


def count_run(run: EpochRun) -> dict[str, float]:
    """Return what the profiler counts of an epoch the hardware model ran, by its names for it."""
    counters = _count_mapping(run)
    if not run.engines:
        return counters
    # The profiler numbers interfaces, whatever the board calls them.
    interfaces = {part.name: f"busif{place}" for place, part in enumerate(run.interfaces)}
    counters["core_npu_cycles"] = run.core_npu_cycles
    for pool in run.pools:
        for name in (f"compiler_pool_{pool.name}", f"pool_{pool.name}"):
            counters[f"{name}_read_bytes"] = pool.read_bytes
            counters[f"{name}_write_bytes"] = pool.write_bytes
    for part, name in zip(run.interfaces, interfaces.values(), strict=True):
        for way, moved, bursts in (("read", part.read_bytes, part.read_bursts),
                                   ("write", part.write_bytes, part.write_bursts)):
            counters[f"{name}_{way}_bytes"] = moved
            counters |= {f"{name}_{way}_bursts_{beats}": count
                         for beats, count in zip(BURST_BEATS, bursts, strict=True)}
    for engine in run.engines:
        name = (f"engine_{engine.index}_{engine.direction}_{interfaces[engine.interface]}_"
                f"{engine.pool}")
        counters[f"{name}_active_cycles"] = engine.active_cycles
        counters[f"{name}_buffer_bytes"] = engine.buffer_bytes
    cache = run.cache
    counters |= {f"npu_cache_{name}": float(getattr(cache, name)) for name in (
        "read_hit", "read_miss", "read_alloc_miss", "read_evict",
        "write_hit", "write_miss", "write_alloc_miss", "write_through")}
    return counters


def _count_mapping(run: EpochRun) -> dict[str, float]:
    """Operations and units, stream engines among them, as the profiler lists them."""
    epoch = run.epoch
    prefix = "sw" if epoch.kind in ("sw", "hybrid") else "hw"
    counters = {f"operation_{prefix}.{name}": float(count) for name, count in epoch.operations}
    ways = [engine.direction for engine in epoch.engines]
    for name, way in (("dmain", "in"), ("dmaout", "out")):
        if way in ways:
            counters[f"operation_hw.{name}"] = float(ways.count(way))
    if epoch.kind in ("sw", "hybrid"):
        counters["unit_PROCESSOR"] = 1.0
    for unit in epoch.units:
        key = f"unit_{unit.kind}"
        counters[key] = counters.get(key, 0.0) + unit.count
    if ways:
        counters[ENGINES] = float(len(ways))
    return counters
