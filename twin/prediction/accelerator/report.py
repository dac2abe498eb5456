"""The profiler's report of an accelerator, predicted: every line per epoch and of the whole model.

Counters carry the names a measurement gives them (`calibration.importers.neural_art_profiler`), so
the two stand side by side. MCU cycles are the host's clock, NPU cycles the accelerator's; time is
added across them, cycles never.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from calibration.importers.neural_art_lines import ENGINES, PHASES
from calibration.measurement.measurement import Measurement
from hwmodels.counts import apportion
from hwmodels.npu import BURST_BEATS, EpochRun
from hwmodels.quantities import join_words
from twin.deployment.costs import EpochPrediction
from twin.errors import UsageError
from twin.prediction.prediction import Prediction

Counters = Mapping[str, float]
"""Value by counter, as a measurement names it; one that is not known is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochSheet:
    """One epoch, predicted or measured.

    Parameters
    ----------
    index : int
        Place in the inference: the profiler's c_idx.
    title : str
        Its name.
    kind : str
        "HW", "SW", "HYBRID" or "COPY".
    counters : mapping
        What was counted.
    """

    index: int
    title: str
    kind: str
    counters: Counters


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSheet:
    """A whole inference: its epochs and their totals.

    Parameters
    ----------
    host_hz, npu_hz : float
        Clocks of the host core and of the accelerator.
    epochs : tuple of EpochSheet
        In order.
    totals : mapping
        Counters of the whole network.
    """

    host_hz: float
    npu_hz: float
    epochs: tuple[EpochSheet, ...]
    totals: Counters


def make_sheet(prediction: Prediction) -> ModelSheet:
    """Return what the profiler would report of a predicted inference.

    Parameters
    ----------
    prediction : Prediction
        Of a runtime that offloads.

    Returns
    -------
    ModelSheet
        Ops count a multiply-accumulate as two, as the tool does.
    """
    board = prediction.deployment.board
    assert board.npu is not None, "only an accelerator has epochs"
    epochs = round_phases(
        EpochSheet(index=epoch.index, title=epoch.name.replace("epoch_", "EpochBlock_"),
                   kind=epoch.kind.upper(), counters=_count_epoch(epoch))
        for epoch in prediction.epochs)
    return ModelSheet(host_hz=board.clock(board.core.clock).frequency_hz,
                      npu_hz=board.npu.frequency_hz, epochs=epochs,
                      totals=total_counters(epochs, prediction.time_us, board.npu.frequency_hz))


def read_sheet(measurement: Measurement) -> ModelSheet:
    """Return the report a measurement was taken from, its counters by epoch.

    Raises
    ------
    UsageError
        When it has no epochs or names no clocks.
    """
    clocks = dict(measurement.header.clocks_hz)
    missing = [name for name in ("cpu", "npu") if name not in clocks]
    if not measurement.layers or missing:
        lacks = "has no epochs" if not measurement.layers else \
            f"does not say at what {join_words(missing)} clock it ran"
        raise UsageError(f"{measurement.header.source}: {lacks}; accepted: a log of "
                         "npu_profiler.py that does, by `twin import npu-profiler LOG`")
    names = dict(measurement.header.environment)
    counted: dict[int | None, dict[str, float]] = {}
    for sample in measurement.samples:
        counted.setdefault(sample.layer, {})[sample.counter] = sample.value
    epochs = []
    for index in measurement.layers:
        title, _, kind = names.get(f"epoch {index}", f"epoch {index} HW").rpartition(" ")
        epochs.append(EpochSheet(index=index, title=title, kind=kind, counters=counted[index]))
    return ModelSheet(host_hz=clocks["cpu"], npu_hz=clocks["npu"], epochs=tuple(epochs),
                      totals=counted.get(None, {}))


def total_counters(epochs: tuple[EpochSheet, ...], time_us: float, npu_hz: float) -> Counters:
    """Sum the counters of epochs to those of the whole network."""
    def total(*names: str) -> float:
        return math.fsum(sheet.counters.get(name, 0.0) for sheet in epochs for name in names)

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
    for name in dict.fromkeys(name for sheet in epochs for name in sheet.counters
                              if name.startswith("pool_")):
        totals[name] = total(name)
    return totals


def round_phases(epochs: Iterable[EpochSheet]) -> tuple[EpochSheet, ...]:
    """Round MCU cycles as a whole inference, so that what is printed of epochs sums to totals."""
    sheets = tuple(epochs)
    keys = [(place, name) for place, sheet in enumerate(sheets) for name in (
        f"{phase}_cycles" for phase in PHASES) if name in sheet.counters]
    whole = dict(zip(keys, apportion([sheets[place].counters[name] for place, name in keys]),
                     strict=True))
    return tuple(replace(sheet, counters={
        name: float(whole.get((place, name), value)) for name, value in sheet.counters.items()})
        for place, sheet in enumerate(sheets))


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
