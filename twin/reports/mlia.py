"""A prediction in the standardized output of Arm's ML Inference Advisor (MLIA).

References
----------
MLIA output schema 1.2.0 and target schema 1.0.0, as the package `mlia` ships them: a result of
kind "performance" and mode "predicted", with metrics of the model and a breakdown per operator.
"""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from hwmodels.counts import Bill
from hwmodels.files import JsonObject
from twin.pricing.prediction import LayerPrediction, Prediction

SCHEMA = "1.2.0"

PRODUCER, LAYER = "twin", "twin_layer"

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Its time where none is stated: the same prediction then gives the same bytes."""


def to_mlia(prediction: Prediction, made_at: datetime = EPOCH) -> JsonObject:
    """Write a prediction as MLIA writes an analysis.

    Parameters
    ----------
    made_at
        Its timestamp, with a time zone.

    Notes
    -----
    Set-up is a metric of its own and in no other. Intervals are qualifiers of their metric.
    Operators on an accelerator have the placement "NPU", others "CPU".
    """
    deployment = prediction.deployment
    graph, board = deployment.graph, deployment.board
    named = [_identify(graph.source, layer) for layer in prediction.layers]
    written: JsonObject = {
        "schema_version": SCHEMA, "run_id": "", "timestamp": made_at.isoformat(),
        "tool": {"name": PRODUCER, "version": _version()},
        "target": _target(prediction),
        "model": {"name": graph.name, "format": _format(graph.source), "hash": graph.sha256},
        "context": {"runtime_configuration": {
            "runtime": deployment.runtime.identity, "weights": deployment.weights_named,
            "arena": deployment.arena_named, "temperature": prediction.temperature}},
        "backends": [{"id": PRODUCER, "name": deployment.runtime.identity, "version": _version(),
                      "configuration": {"board": board.name, "clocks_hz": board.hertz}}],
        "results": [{
            "kind": "performance", "producer": PRODUCER, "status": "ok", "mode": "predicted",
            "warnings": list(prediction.warnings), "metrics": _metrics(prediction),
            "entity_kinds": [] if _is_source(graph.source) else [{"id": LAYER}],
            "entities": [{
                "id": name, "kind": "source_operator" if _is_source(graph.source) else LAYER,
                "name": layer.op, "placement": _placement(prediction, layer)}
                for name, layer in zip(named, prediction.layers, strict=True)],
            "breakdowns": [{
                "entity_id": name, "metrics": _costs(layer), "qualifiers": {
                    "placement": _placement(prediction, layer),
                    "largest_cause": str(layer.largest_cause)}}
                for name, layer in zip(named, prediction.layers, strict=True)]}]}
    content = json.dumps(written, sort_keys=True)
    return written | {"run_id": str(uuid.uuid5(uuid.NAMESPACE_URL, content))}


def _is_source(source: str) -> bool:
    """Whether layers are the operators of the file, by their place: ONNX nodes are joined."""
    return not source.endswith(".onnx")


def _identify(source: str, layer: LayerPrediction) -> str:
    return f"source_operator/operator/{layer.index}" if _is_source(source) \
        else f"{LAYER}/{layer.index}"


def _metrics(prediction: Prediction) -> list[JsonObject]:
    time_us, energy_uj = prediction.time_us, prediction.energy_uj
    return [_metric("inference_time", time_us / 1e3, "ms", _bounds(prediction.time_interval, 1e-3)),
            _metric("inferences_per_second", 1e6 / time_us, "1/s") if time_us else
            _absent("inferences_per_second", "1/s", "no time"),
            _absent("energy", "mJ", "not known for this board") if energy_uj is None else
            _metric("energy", energy_uj / 1e3, "mJ", _bounds(prediction.energy_interval, 1e-3)),
            *_cycles(prediction.bill), *_cycles(prediction.setup, "setup_"),
            _metric("macs", prediction.macs, "count"),
            _metric("ram", prediction.ram_bytes, "bytes"),
            _metric("flash", prediction.flash_bytes, "bytes")]


def _costs(layer: LayerPrediction) -> list[JsonObject]:
    costs = [_metric("inference_time", layer.time_us / 1e3, "ms"),
             _metric("macs", layer.macs, "count"),
             _metric("bytes_moved", layer.bytes_moved, "bytes"), *_cycles(layer.bill)]
    if layer.energy_uj is not None:
        costs.append(_metric("energy", layer.energy_uj / 1e3, "mJ"))
    return costs


def _metric(name: str, value: float, unit: str, qualifiers: JsonObject | None = None) -> JsonObject:
    more = {"qualifiers": qualifiers} if qualifiers else {}
    return {"name": name, "value": value, "unit": unit, **more}


def _cycles(bill: Bill, phase: str = "") -> list[JsonObject]:
    return [_metric(f"{phase}{clock}_cycles", round(bill.cycles(clock)), "cycles")
            for clock in bill.clocks()]


def _absent(name: str, unit: str, reason: str) -> JsonObject:
    return {"name": name, "unit": unit, "availability": "unavailable", "reason": reason}


def _bounds(interval: Any, factor: float) -> JsonObject | None:
    return None if interval is None else {
        "low": interval.low * factor, "high": interval.high * factor, "level": interval.level}


def _placement(prediction: Prediction, layer: LayerPrediction) -> str:
    npu = prediction.board.npu
    return "NPU" if npu is not None and layer.bill.cycles(npu.clock) > 0 else "CPU"


def _target(prediction: Prediction) -> JsonObject:
    board = prediction.board
    family, _, model = board.core.model.partition("-")
    parts = [{"type": "cpu", "family": board.core.model if not model else f"{family}-{model[:1]}",
              "model": model or board.core.model}]
    if board.npu is not None:
        parts.append({"type": "npu", "family": board.npu.family})
    return {"profile_name": board.name, "target_type": board.core.model,
            "description": board.soc, "components": parts, "configuration": {
                "clocks_hz": board.hertz}}


def _format(source: str) -> str:
    return source.rpartition(".")[2] if source.endswith((".tflite", ".onnx")) else "tflite"


def _version() -> str:
    try:
        return version("embedded-twin")
    except PackageNotFoundError:
        return "not installed"
