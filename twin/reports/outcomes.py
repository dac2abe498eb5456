"""Documents of what commands did: measured, learnt, read, built, ran, wrote."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibration.fitting.overlay import Learnt, Overlay
    from calibration.measurement.measurement import Measurement
    from hwmodels.board.facts import Board
    from twin.attribution.measured_layers import MeasuredLayer, MeasuredNetwork
    from twin.image.compile.build import Build
    from twin.image.compile.verification import BoardRun
    from twin.network.accuracy import Accuracy
    from twin.sessions.agreement import Agreement, Comparison
    from twin.studies.tune import Tuning

SCHEMA = 1
NORMAL_95 = 1.96
"""Half a 95 % interval of a normal distribution, in standard deviations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Files a command wrote; `met`: whether the limits hold, None where it was given none."""

    files: tuple[Path, ...]
    met: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flashed:
    """An image a programmer put on a board."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBoard:
    """A board file that was written, and the board it describes."""

    path: Path
    board: Board


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """Folders of kept runs that are gone; `really`: False where they would be."""

    folders: tuple[Path, ...]
    really: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Where the live what-if answers, and whether others than this machine may ask."""

    address: str
    open_wide: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracies:
    """How often a network is right before and after changes; None: nothing was changed."""

    model: str
    before: Accuracy
    after: Accuracy | None


def written_document(written: Written) -> dict[str, Any]:
    """Write which files there are now."""
    return {"schema": SCHEMA, "kind": "written", "files": [str(one) for one in written.files],
            "met": written.met}


def flashed_document(flashed: Flashed) -> dict[str, Any]:
    """Write what is where, and by which programmer."""
    return {"schema": SCHEMA, "kind": "flashed", "message": flashed.message}


def learnt_document(lesson: Any) -> dict[str, Any]:
    """Write what was read of a library in programs, kernel by kernel."""
    learnt = lesson.runtime.learnt
    return {"schema": SCHEMA, "kind": "learnt", "file": str(lesson.path),
            "runtime": lesson.runtime.identity, "core": learnt.core, "isa": learnt.isa,
            "sources": list(learnt.sources), "kernels": [{
                "op": one.op, "dtype": one.dtype, "function": one.name, "layers": one.layers,
                "shapes": one.distinct, "code_bytes": one.code_bytes, "error": one.residual}
                for one in learnt.kernels],
            "notes": list(lesson.notes)}


def tuning_document(tuned: Tuning) -> dict[str, Any]:
    """Write every build that was predicted, and what the best few came to."""
    return {"schema": SCHEMA, "kind": "tuning", "model": tuned.deployment.graph.name,
            "board": tuned.deployment.board.name, "virtual": tuned.virtual,
            "counter": tuned.kept.run.counter if tuned.kept.run else None,
            "best_was_best": tuned.best_was_best,
            **{f"{name}_right": dict(zip(("right", "judged"), getattr(tuned, name), strict=True))
               for name in ("layers", "pairs")},
            "kept": {"tile": tuned.kept.tile, "level": tuned.kept.level},
            "candidates": [{"tile": one.tile, "level": one.level, "predicted_cycles": one.cycles,
                            "ram_bytes": one.ram_bytes,
                            "counted": None if one.run is None else one.run.total}
                           for one in tuned.candidates]}


def compared_document(found: Comparison) -> dict[str, Any]:
    """Write how two kept runs differ: in what was asked, in what came out, and by cause."""
    from twin.attribution.document import difference_document

    return {"schema": SCHEMA, "kind": "sessions_compared", "asked": _changes(found.asked),
            "agreement": agreement_row(found.agreement),
            "difference": None if found.difference is None else difference_document(
                found.difference, None)}


def removed_document(gone: Removed) -> dict[str, Any]:
    """Write which folders are gone, or would be."""
    return {"schema": SCHEMA, "kind": "removed", "removed": gone.really,
            "folders": [str(one) for one in gone.folders]}


def serving_document(serving: Serving) -> dict[str, Any]:
    """Write where the page is."""
    return {"schema": SCHEMA, "kind": "serving", "address": serving.address,
            "open_wide": serving.open_wide}


def accuracy_document(found: Accuracies) -> dict[str, Any]:
    """Write how many answers were right."""
    def one(told: Accuracy) -> dict[str, Any]:
        return {**asdict(told), "share": told.share}

    return {"schema": SCHEMA, "kind": "accuracy", "model": found.model,
            "before": one(found.before),
            "after": None if found.after is None else one(found.after)}


def calibration_document(overlay: Overlay) -> dict[str, Any]:
    """Write what was learnt, and what of it is no finding."""
    return {"schema": SCHEMA, "kind": "calibration", **learning_row(overlay)}


def learning_row(overlay: Overlay) -> dict[str, Any]:
    """Write an overlay in short; what no row tells of is in its file only."""
    return {"library": overlay.library, "data": list(overlay.data.kinds),
            "rows": overlay.data.rows, "energy_rows": overlay.data.energy_rows,
            "entries": [{
                "board": one.board, "core": one.core, "runtime": one.runtime,
                "rows": one.time.rows, "network_sd": one.time.network_sd,
                "row_sd": one.time.row_sd,
                "factors": [*_factors(overlay.time_prices, one.time, "time"), *(
                    _factors(overlay.energy_prices, one.energy, "energy")
                    if one.energy is not None and one.energy.rows and not one.powers_of else ())],
                "log_residuals": dict(one.time.residuals)}
                for one in overlay.entries if one.time.rows or one.time.residuals]}


def energy_document(found: Any) -> dict[str, Any]:
    """Write energy per layer and inference as a meter saw it."""
    measured = found.measurement
    return {
        "schema": SCHEMA, "kind": "energy", "folder": str(found.folder),
        "layers": [{"layer": layer, "energy_uj": measured.percentile("energy", 50, layer),
                    "half_width_uj": NORMAL_95 * measured.percentile("energy_sd", 50, layer),
                    "runs": measured.count("energy", layer)}
                   for layer in (*measured.layers, None)],
        **{f"{name}_mw": measured.percentile(name, 50)
           for name in ("power_mean", "power_peak", "power_sd")},
        "idle_mw": found.idle_mw, "doubt": found.doubt, "remarks": list(found.remarks),
        "steps": [{"probe": one.probe.name, "power_mw": one.power_mw, "sd_mw": one.sd_mw}
                  for one in found.steps or ()]}


def imported_document(found: Any) -> dict[str, Any]:
    """Write what a log held."""
    measurement, header = found.measurement, found.measurement.header
    return {"schema": SCHEMA, "kind": "imported", "folder": str(found.folder),
            "measurement_kind": header.kind, "model": header.model, "board": header.board,
            "runtime": header.runtime, "runs": len(measurement.runs),
            "layers": len(measurement.layers), "counters": list(measurement.counters),
            "values": len(measurement.samples), "remarks": list(found.remarks)}


def measured_document(found: Any) -> dict[str, Any]:
    """Write what a board did, layer by layer."""
    return {"schema": SCHEMA, "kind": "measured", "folder": str(found.folder),
            "virtual": found.virtual, "model": found.graph.name,
            "networks": [_network(one) for one in found.networks]}


def machine_document(found: Any) -> dict[str, Any]:
    """Write what micro-benchmarks found, beside what the board file states."""
    machine = asdict(found.machine)
    kind = machine.pop("kind")
    return {"schema": SCHEMA, "kind": "machine", "folder": str(found.folder), "name": found.name,
            "measurement_kind": kind, **machine, "macs": dict(found.machine.macs),
            "stated": None if found.stated is None else {
                name: asdict(one) for name, one in found.stated.items()}}


def built_document(build: Build) -> dict[str, Any]:
    """Write an image and its sizes beside the predicted ones."""
    return {"schema": SCHEMA, "kind": "built", **_build(build)}


def run_document(run: BoardRun) -> dict[str, Any]:
    """Write what was counted, and whether outputs were right."""
    return {"schema": SCHEMA, "kind": "run", **_run(run)}


def builds_document(built: Any) -> dict[str, Any]:
    """Write builds of one network, each with its run."""
    return {"schema": SCHEMA, "kind": "builds", "builds": [
        {"built": _build(build), "run": _run(run)}
        for build, run in zip(built.builds, built.runs, strict=True)]}


def agreement_row(found: Agreement) -> dict[str, Any]:
    """Write how a result asked for again agrees with the one that was kept."""
    return {"run": found.name, "verb": found.verb, "same": found.is_same,
            "differences": _changes(found.differences), "differing": found.count,
            "versions": _changes(found.versions)}


def _changes(rows: tuple[tuple[str, str, str], ...]) -> list[dict[str, str]]:
    return [dict(zip(("name", "before", "now"), one, strict=True)) for one in rows]


def _factors(names: tuple[str, ...], learnt: Learnt, what: str) -> list[dict[str, Any]]:
    doubts, variances = learnt.doubtful(names), learnt.matrix().diagonal()
    return [{"price": name, "of": what, "factor": math.exp(log),
             "log_sd": math.sqrt(max(float(variance), 0.0)), "stated_log_sd": stated,
             "doubt": doubts.get(name)}
            for name, log, variance, stated in zip(names, learnt.log, variances, learnt.prior_sd,
                                                   strict=True)]


def _network(one: MeasuredNetwork) -> dict[str, Any]:
    header = one.measurement.header
    return {"temperature": header.temperature, "measurement_kind": header.kind,
            "board": header.board, "runtime": header.runtime, "counter": one.counter,
            "percentiles": _percentiles(one.measurement, one.counter),
            "overhead_share": one.overhead_share, "inference": _layer(one.whole),
            "layers": [_layer(layer) for layer in one.layers]}


def _percentiles(measurement: Measurement, counter: str) -> Mapping[str, float]:
    found = measurement.summarise(counter)
    return {"runs": found.count, **{name: getattr(found, name) for name in (
        "minimum", "p50", "p90", "p95", "p99", "maximum")}}


def _layer(layer: MeasuredLayer) -> dict[str, Any]:
    return {"layer": layer.index, "name": layer.name, "op": layer.op, "p50": layer.p50,
            "p95": layer.p95, "time_us": layer.time_us, "share": layer.share,
            "bottleneck": asdict(layer.bottleneck),
            "metrics": [asdict(one) for one in layer.metrics.values()]}


def _build(build: Build) -> dict[str, Any]:
    from twin.image.compile.plan import FIRMWARE

    placement = build.source.placement
    return {"image": str(build.image), "port": build.port.name, "compiler": build.compiler,
            "sizes": {f"{name}_bytes": getattr(build.sizes, f"{name}_bytes")
                      for name in ("code", "weights", "flash", "arena", "ram")},
            "predicted": {"code_bytes": FIRMWARE.code_bytes,
                          "weights_bytes": placement.weights_bytes,
                          "flash_bytes": build.predicted_flash_bytes,
                          "arena_bytes": placement.arena_bytes,
                          "ram_bytes": build.predicted_ram_bytes},
            "memories": [{"name": one.name, "used_bytes": one.used_bytes,
                          "size_bytes": one.size_bytes} for one in build.sizes.memories]}


def _run(run: BoardRun) -> dict[str, Any]:
    return {"counter": run.counter, "simulated": run.simulated, "right": run.is_right,
            "total": run.total, "outside": run.outside, "setup": run.setup,
            "layers": [{"layer": one.index, "op": one.op, "name": one.name, "count": one.count,
                        "equal": one.equal} for one in run.layers]}
