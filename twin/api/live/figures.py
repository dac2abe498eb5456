"""What the page receives of a prediction: plain numbers, in the order they are shown."""

from __future__ import annotations

import math

from calibration.fitting.intervals import Interval
from hwmodels.board.facts import Board
from hwmodels.counts import CAUSES
from hwmodels.files import JsonObject
from hwmodels.frozen import list_fields
from twin.pricing.batch import empty_batch, fill_row
from twin.pricing.grade import grade_energy, grade_prediction
from twin.pricing.ledger import bill_time_us, cause_times_us, explain_time, name_energies
from twin.pricing.prediction import LayerPrediction, Prediction
from twin.studies.rows import compare_as


def _tell_operating(board: Board) -> JsonObject:
    """Return clocks, voltage and wait states a board is at."""
    power = board.power
    return {
        "clocks": board.hertz, "core_clock": board.core.clock, "voltage_scale": power.voltage_scale,
        "core_voltage_v": power.core_voltage_v, "supply_v": power.voltage_v,
        "wait_states": {memory.name: memory.wait_states for memory in board.memories
                        if memory.wait_states},
    }


def tell_prediction(prediction: Prediction) -> JsonObject:
    """Return all the page shows of a prediction."""
    deployment, sure = prediction.deployment, prediction.certainty
    energies = [_quantity(*found) for found in name_energies(prediction).values()]
    batch = empty_batch(1, len(prediction.layers))
    fill_row(batch, 0, prediction)
    assert batch.layers is not None
    return {
        "time_us": _quantity(prediction.time_us, prediction.time_interval),
        "energy_uj": energies[0], "whole_uj": energies[-1],
        "energy_kind": compare_as("energy_uj", deployment.board.power.boundary),
        "cycles": _known(batch.cycles[0]),
        "causes": [{"cause": cause, "time_us": _known(time_us), "energy_uj": _known(pj * 1e-6)}
                   for cause, time_us, pj in zip(CAUSES, batch.cause_us[0], batch.cause_pj[0],
                                                 strict=True) if time_us or pj > 0],
        "layers": {name: [_known(value) for value in getattr(batch.layers, name)[0]]
                   for name in batch.layers.__dataclass_fields__},
        "operating": _tell_operating(deployment.board),
        "model": deployment.graph.name, "board": deployment.board.name,
        "runtime": deployment.runtime.identity, "structure": deployment.runtime.structure,
        "explanation": explain_time(prediction),
        "voltage_note": prediction.voltage, **list_fields(prediction, "kind", "clock", "macs"),
        "described": [_describe(prediction, layer) for layer in prediction.layers],
        "memory": tell_memory(prediction),
        "setup": {"time_us": bill_time_us(prediction, prediction.setup),
                  "energy_uj": prediction.setup.energy_uj()},
        "npu_energy_uj": _npu_energy(prediction), "warnings": list(prediction.warnings),
        "grades": {"time": grade_prediction(prediction), "energy": grade_energy(prediction)},
        "certainty": None if sure is None else {
            "basis": sure.basis, "level": sure.time_us.level,
            "calibration": sure.calibration, "extrapolating": list(sure.extrapolating)},
    }


def tell_memory(prediction: Prediction) -> JsonObject:
    """Return what is needed of RAM and flash, and what there is."""
    deployment = prediction.deployment
    return {
        **list_fields(prediction, "ram_bytes", "ram_available_bytes", "flash_bytes",
                      "flash_available_bytes"),
        "ram_parts": dict(deployment.ram_parts),
        "weights": deployment.weights_named, "arena": deployment.arena_named,
        "code": deployment.code,
    }


def _describe(prediction: Prediction, layer: LayerPrediction) -> JsonObject:
    return {
        **list_fields(layer, "index", "name", "op", "macs", "cycles", "clock", "bound", "miss_rate",
                      "alias", "assumed", "largest_cause"),
        "shape": "x".join(map(str, layer.output_shape)),
        "causes": {cause: time_us for cause, time_us in cause_times_us(
            prediction, layer.bill).items() if time_us},
    }


def _npu_energy(prediction: Prediction) -> JsonObject | None:
    """Return what an accelerator and its memories draw, which no total holds; None without."""
    if prediction.coverage is None:
        return None
    deployment = prediction.deployment
    found = deployment.target.estimate_energy(deployment.board, prediction.bill)
    return None if found is None else _quantity(*found)


def _quantity(value: float | None, held: Interval | None) -> JsonObject | None:
    return None if value is None else {
        "value": value, "low": None if held is None else held.low,
        "high": None if held is None else held.high}


def _known(value: float) -> float | None:
    """Return a number; None where it is not known."""
    number = float(value)
    return number if math.isfinite(number) else None
