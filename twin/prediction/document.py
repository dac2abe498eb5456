"""A prediction as the JSON document the project publishes a schema for."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from calibration.fitting.intervals import Interval
from hwmodels.counts import Bill, Counts
from hwmodels.errors import STEERING
from hwmodels.files import read_json
from hwmodels.npu import EpochRun
from twin.deployment.costs import EpochPrediction
from twin.network.operators import graph_macs, graph_parameters
from twin.prediction.certainty import Certainty
from twin.prediction.ledger import (
    Line,
    bill_energy_uj,
    bill_time_us,
    cycles_by_clock,
    explain_time,
    line_energy_uj,
    line_time_us,
    make_ledger,
)
from twin.prediction.prediction import LayerPrediction, Prediction

SCHEMA = 2
"""Version of the document; raised when a reader of the old one would misread the new.

2: a time or energy is a number whatever the calibration, its interval a key of its own; in 1 both
were one object where prices were learnt.
"""


def load_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) predictions conform to."""
    return read_json(Path(__file__).parents[1] / "schema" / "prediction.schema.json")


def to_document(prediction: Prediction) -> dict[str, Any]:
    """Write a prediction as a document of the published schema.

    Parameters
    ----------
    prediction : Prediction
        What to write.

    Returns
    -------
    dict
        Of plain JSON types; the same prediction gives the same bytes.

    Notes
    -----
    Cycles are integers by largest remainder and sum exactly, per clock, from lines to layers to
    total. Times and energies are real numbers; energy is null where it is not known.
    """
    deployment, sure = prediction.deployment, prediction.certainty
    board = deployment.board
    ledger = make_ledger(prediction)
    return {
        "schema": SCHEMA,
        "kind": prediction.kind,
        "temperature": prediction.temperature,
        "model": {
            "name": deployment.graph.name,
            "sha256": deployment.graph.sha256,
            "architecture_id": deployment.graph.architecture_id,
            "macs": graph_macs(deployment.graph),
            "parameters": None if deployment.target.executes
            else graph_parameters(deployment.graph),
        },
        "board": board.name,
        "runtime": deployment.runtime.identity,
        "clocks_hz": {clock.name: _number(clock.frequency_hz) for clock in board.clocks},
        "supply": {"voltage_v": board.power.voltage_v, "regulator": board.power.regulator,
                   "voltage_scale": board.power.voltage_scale,
                   **({"note": prediction.voltage} if prediction.voltage else {})},
        "placement": {"weights": deployment.weights_named, "arena": deployment.arena_named,
                      "code": deployment.code},
        "layers": [_layer(prediction, position, lines)
                   for position, lines in enumerate(ledger.layers)],
        **_accelerated(prediction),
        "setup": _account(prediction, prediction.setup, ledger.setup),
        "total": {**_account(prediction, prediction.bill, ledger.total),
                  "time_us": prediction.time_us,
                  "time_interval_us": _interval(sure.time_us if sure else None),
                  "energy_uj": prediction.energy_uj,
                  "energy_interval_uj": _interval(sure.energy_uj if sure else None)},
        "ram_bytes": prediction.ram_bytes,
        "ram_available_bytes": prediction.ram_available_bytes,
        "ram_parts": {f"{name}_bytes": size for name, size in deployment.ram_parts.items()},
        "scratch_bytes": deployment.placement.scratch_bytes,
        "flash_bytes": prediction.flash_bytes,
        "flash_available_bytes": prediction.flash_available_bytes,
        "explanation": explain_time(prediction),
        "warnings": list(prediction.warnings),
        **({} if sure is None else {"calibration": _calibration(sure)}),
    }


def _calibration(sure: Certainty) -> dict[str, Any]:
    """Return what the intervals rest on."""
    return {"overlay": sure.calibration, "basis": sure.basis,
            "extrapolating": list(sure.extrapolating), "unidentified": list(sure.unidentified),
            **({"doubtful": list(sure.doubtful)} if sure.doubtful else {}),
            **({"powers": sure.powers} if sure.powers else {})}


def dump_document(document: Mapping[str, Any]) -> str:
    """Write a document as text: the same document gives the same bytes; none steers a terminal."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return STEERING.sub(lambda found: found[0] if found[0] == "\n" else json.dumps(found[0])[1:-1],
                        text)


def _interval(interval: Interval | None) -> dict[str, float] | None:
    return None if interval is None else {
        "low": interval.low, "high": interval.high, "level": interval.level}


def _layer(prediction: Prediction, position: int, lines: Mapping[Line, int]) -> dict[str, Any]:
    layer: LayerPrediction = prediction.layers[position]
    sure = prediction.certainty.layers[position] if prediction.certainty else None
    return {
        "index": layer.index,
        "name": layer.name,
        "op": layer.op,
        "output_shape": list(layer.output_shape),
        "macs": layer.macs,
        "bytes_moved": layer.bytes_moved,
        "cycles": cycles_by_clock(lines).get(layer.clock, 0),
        "clock": layer.clock,
        "cycles_by_clock": cycles_by_clock(lines),
        "time_us": layer.time_us,
        "time_interval_us": _interval(sure.time_us if sure else None),
        "energy_uj": layer.energy_uj,
        "energy_interval_uj": _interval(sure.energy_uj if sure else None),
        "alias": layer.alias,
        "assumed": layer.assumed,
        **({"repeats": layer.repeats} if layer.repeats > 1 else {}),
        "bound": layer.bound or None,
        "kernels": list(layer.kernels),
        "instructions": _number(layer.instructions),
        "miss_rate": layer.miss_rate,
        "live_bytes": layer.live_bytes,
        **({"epochs": list(layer.epochs)} if layer.epochs else {}),
        "bill": _bill(prediction, layer.bill, lines),
        "counts": _counts(layer.counts),
    }


def _accelerated(prediction: Prediction) -> dict[str, Any]:
    coverage = prediction.coverage
    if coverage is None:
        return {}
    deployment, npu = prediction.deployment, prediction.deployment.board.npu
    energy = deployment.target.estimate_energy(deployment.board, prediction.bill)
    return {
        "pools": [] if npu is None else [
            {"name": name, "used_bytes": used, "size_bytes": npu.pool(name).size_bytes}
            for name, used in deployment.plan.used],
        "npu_energy_uj": None if energy is None else energy[0],
        "npu_energy_interval_uj": None if energy is None else _interval(energy[1]),
        "epochs": [_epoch(prediction, epoch, interval) for epoch, interval in zip(
            prediction.epochs, _epoch_intervals(prediction), strict=True)],
        "coverage": {
            "npu_layers": coverage.npu_layers, "host_layers": coverage.host_layers,
            "npu_us": coverage.npu_us, "host_us": coverage.host_us,
            "hand_over_us": coverage.hand_over_us,
        },
    }


def _epoch_intervals(prediction: Prediction) -> Sequence[Interval | None]:
    sure = prediction.certainty
    return sure.epochs if sure is not None and sure.epochs else [None] * len(prediction.epochs)


def _epoch(prediction: Prediction, epoch: EpochPrediction,
           interval: Interval | None) -> dict[str, Any]:
    return {
        "index": epoch.index, "name": epoch.name, "kind": epoch.kind,
        "layers": list(epoch.run.epoch.layers), "start_us": epoch.start_us,
        "time_us": epoch.time_us, "time_interval_us": _interval(interval),
        "energy_uj": bill_energy_uj(epoch.bill),
        "pre_cpu_cycles": _number(epoch.pre_cpu_cycles),
        "post_cpu_cycles": _number(epoch.post_cpu_cycles),
        "core_npu_cycles": epoch.run.core_npu_cycles, "compute_cycles": epoch.run.compute_cycles,
        "max_cycles": epoch.run.max_cycles,
        "bill": [{"cause": cause, "clock": clock,
                  "time_us": line_time_us(prediction, clock, epoch.bill.cycles(clock, cause)),
                  "energy_uj": line_energy_uj(epoch.bill, clock, cause)}
                 for clock in epoch.bill.clocks() for cause in epoch.bill.causes()],
        **_work(epoch.run),
    }


def _work(run: EpochRun) -> dict[str, Any]:
    """Units, stream engines, interfaces, pools, cache and bill of an epoch's core."""
    return {
        "units": [{"kind": unit.kind, "count": unit.count, "macs": unit.macs, "ops": unit.ops}
                  for unit in run.epoch.units],
        "engines": [{"index": engine.index, "direction": engine.direction,
                     "busif": engine.interface, "pool": engine.pool, "bytes": engine.bytes,
                     "buffer_bytes": engine.buffer_bytes, "active_cycles": engine.active_cycles,
                     "bursts": list(engine.bursts)} for engine in run.engines],
        "busif": [{"name": part.name, "read_bytes": part.read_bytes,
                   "write_bytes": part.write_bytes, "read_bursts": list(part.read_bursts),
                   "write_bursts": list(part.write_bursts)} for part in run.interfaces],
        "pools": [{"name": pool.name, "read_bytes": pool.read_bytes,
                   "write_bytes": pool.write_bytes, "mb_per_s": pool.mb_per_s}
                  for pool in run.pools],
        "npu_cache": asdict(run.cache),
        "exposed": [{"resource": item.resource, "cause": item.cause,
                     "npu_cycles": item.npu_cycles} for item in run.exposed],
    }


def _account(prediction: Prediction, bill: Bill, lines: Mapping[Line, int]) -> dict[str, Any]:
    return {
        "time_us": bill_time_us(prediction, bill),
        "energy_uj": bill_energy_uj(bill),
        "cycles": cycles_by_clock(lines),
        "bill": _bill(prediction, bill, lines),
    }


def _bill(prediction: Prediction, bill: Bill, lines: Mapping[Line, int]) -> list[dict[str, Any]]:
    return [{
        "cause": cause,
        "clock": clock,
        "cycles": cycles,
        "time_us": line_time_us(prediction, clock, bill.cycles(clock, cause)),
        "energy_uj": line_energy_uj(bill, clock, cause),
    } for (clock, cause), cycles in lines.items()]


def _counts(counts: Counts) -> dict[str, dict[str, float]]:
    sums: dict[str, list[list[float]]] = {}
    for line in counts.lines:
        occurred, exposed = sums.setdefault(line.event, [[], []])
        occurred.append(line.occurred)
        exposed.append(line.exposed)
    return {event: {"occurred": _number(math.fsum(occurred)),
                    "exposed": _number(math.fsum(exposed))}
            for event, (occurred, exposed) in sums.items()}


def _number(value: float) -> float:
    """Write a whole number as an integer."""
    return int(value) if float(value).is_integer() else value
