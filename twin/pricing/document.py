"""A prediction as the JSON document the project publishes a schema for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hwmodels.counts import Bill
from hwmodels.files import JsonObject
from twin.deployment.costs import TaskPrediction
from twin.documents import ABSENT, Interval, fill, make_schema
from twin.pricing import document_types as types
from twin.pricing.ledger import Line as Booked
from twin.pricing.ledger import (
    bill_time_us,
    cycles_by_clock,
    line_energy_uj,
    line_time_us,
    make_ledger,
)
from twin.pricing.prediction import Prediction
from twin.pricing.utilisation import USES, find_utilisation

TASK_WORDS = ("epoch", "task")
"""Words makers of accelerators have for a task; a document lists them under its plural."""


def load_schema() -> JsonObject:
    """Return the JSON Schema (draft 2020-12) predictions conform to."""
    return make_schema("prediction", types.PredictionDocument)


def to_document(prediction: Prediction) -> JsonObject:
    """Write a prediction as a document of the published schema.

    Notes
    -----
    Cycles are integers by largest remainder and sum exactly, per clock, from lines to layers to
    total. Times and energies are real numbers; energy is null where it is not known.
    """
    deployment, sure = prediction.deployment, prediction.certainty
    ledger = make_ledger(prediction)
    executes = {"parameters": None} if deployment.target.executes else {}
    return fill(
        types.PredictionDocument, prediction, model=fill(types.Model, deployment.graph, **executes),
        supply=fill(types.Supply, deployment.board.power, note=prediction.voltage or ABSENT),
        layers=[_layer(prediction, position, lines)
                for position, lines in enumerate(ledger.layers)],
        **_accelerated(prediction),
        setup=_account(types.Account, prediction, prediction.setup, ledger.setup),
        total=_account(types.Total, prediction, prediction.bill, ledger.total,
                       time_us=prediction.time_us, energy_uj=prediction.energy_uj,
                       **_intervals(sure)))


def _intervals(sure: Any) -> JsonObject:
    """Return the keys of both intervals, null at stated prices."""
    return {f"{name}_interval_{unit}": None if (
        interval := getattr(sure, f"{name}_{unit}", None)) is None else fill(Interval, interval)
        for name, unit in (("time", "us"), ("energy", "uj"))}


def _layer(prediction: Prediction, position: int, lines: Mapping[Booked, int]) -> JsonObject:
    sure, layer = prediction.certainty, prediction.layers[position]
    cycles = cycles_by_clock(lines)
    return fill(types.Layer, layer, **_named(prediction, list(layer.tasks) or ABSENT),
                cycles=cycles.get(layer.clock, 0), cycles_by_clock=cycles,
                **_uses(prediction, position),
                macs_per_byte=layer.arithmetic_intensity, largest_cause=layer.largest_cause,
                **_intervals(sure.layers[position] if sure else None),
                bill=_bill(prediction, layer.bill, lines))


def _uses(prediction: Prediction, position: int) -> JsonObject:
    """Return how well a layer uses the accelerator, none of it where it never ran there."""
    used = find_utilisation(prediction.tasks, position) if prediction.tasks else None
    return {name: ABSENT if used is None else getattr(used, name) for name in USES}


def _accelerated(prediction: Prediction) -> JsonObject:
    if prediction.coverage is None:
        return dict.fromkeys(("pools", "npu_energy_uj", "npu_energy_interval_uj",
                              *(f"{word}s" for word in TASK_WORDS)), ABSENT)
    deployment = prediction.deployment
    own = prediction.compiler.describe_runs([task.run for task in prediction.tasks])
    listed = [_task(prediction, *one) for one in zip(
        prediction.tasks, _task_intervals(prediction), own, strict=True)]
    energy, interval = deployment.target.estimate_energy(
        deployment.board, prediction.bill) or (None, None)
    return {
        "pools": [
            {"name": name, "used_bytes": used,
             "size_bytes": deployment.board.accelerator.pool(name).size_bytes}
            for name, used in deployment.plan.used],
        "npu_energy_uj": energy,
        "npu_energy_interval_uj": None if interval is None else fill(Interval, interval),
        **_named(prediction, listed)}


def _named(prediction: Prediction, listed: Any) -> JsonObject:
    """Return what is listed by task under its maker's word for them."""
    own = prediction.compiler.task_name if prediction.tasks else "task"
    return {f"{name}s": listed if name == own else ABSENT for name in TASK_WORDS}


def _task_intervals(prediction: Prediction) -> Sequence[Any]:
    sure = prediction.certainty
    return sure.tasks if sure is not None and sure.tasks else [None] * len(prediction.tasks)


def _task(prediction: Prediction, task: TaskPrediction, interval: Any,
          own: JsonObject) -> JsonObject:
    absent: JsonObject = dict.fromkeys(("max_cycles", "engines", "busif", "npu_cache",
                                             "pmu"), ABSENT)
    return fill(
        types.Task, task, **(absent | own),
        time_interval_us=None if interval is None else fill(Interval, interval),
        bill=[{"cause": cause, "clock": clock,
               "time_us": line_time_us(prediction, clock, task.bill.cycles(clock, cause)),
               "energy_uj": line_energy_uj(task.bill, clock, cause)}
              for clock in task.bill.clocks() for cause in task.bill.causes()])


def _account(shape: Any, prediction: Prediction, bill: Bill, lines: Mapping[Booked, int],
             **total: Any) -> JsonObject:
    return fill(shape, bill, **{
        "time_us": bill_time_us(prediction, bill), "energy_uj": bill.energy_uj(),
        "cycles": cycles_by_clock(lines), "bill": _bill(prediction, bill, lines), **total})


def _bill(prediction: Prediction, bill: Bill, lines: Mapping[Booked, int]) -> list[JsonObject]:
    return [{
        "cause": cause, "clock": clock, "cycles": cycles,
        "time_us": line_time_us(prediction, clock, bill.cycles(clock, cause)),
        "energy_uj": line_energy_uj(bill, clock, cause),
    } for (clock, cause), cycles in lines.items()]
