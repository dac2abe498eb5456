"""A timeline for chrome://tracing and Perfetto: the JSON trace format.

On an accelerator one row per engine and unit; on a core layers, and what each spends its time on.

References
----------
Trace Event Format: "X" is a complete event with ts and dur in microseconds, "C" a counter,
"M" names processes and threads.
"""

from __future__ import annotations

from hwmodels.files import JsonObject
from twin.pricing.accelerator.timeline import HOST, Span, list_spans, sample_bandwidth
from twin.pricing.ledger import bill_time_us
from twin.pricing.prediction import LayerPrediction, Prediction

_CHANNELS, _TASKS = 3, 4
"""Processes of channels and tasks, behind the host and its units."""

_PROCESS_OF = {HOST: 1, "unit": 2, "engine": 3}


def make_trace(prediction: Prediction) -> JsonObject:
    """Return the trace of an inference.

    Returns
    -------
    dict
        Of plain JSON types: tasks, host phases, units, engines, and pool bandwidth; on a core
        layers, causes, bytes alive, MACs and power.
    """
    deployment = prediction.deployment
    events = _accelerated_events(prediction) if prediction.tasks else _core_events(prediction)
    return {"traceEvents": events, "displayTimeUnit": "ns",
            "otherData": {"kind": prediction.kind, "model": deployment.graph.name,
                          "board": deployment.board.name,
                          "runtime": deployment.runtime.identity,
                          "temperature": prediction.temperature}}


def _core_events(prediction: Prediction) -> list[JsonObject]:
    """Layers one after the other; below each its causes, whose order inside it is not known."""
    board = prediction.board
    rows = ("layers", "causes, as shares of their layer in no order")
    events: list[JsonObject] = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": board.core.model}}]
    events += [{"ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": {"name": row}}
               for tid, row in enumerate(rows, 1)]
    start = 0.0
    for layer in prediction.layers:
        end = start + layer.time_us
        events.append({
            "ph": "X", "name": f"{layer.index} {layer.op}", "cat": layer.bound or "alias",
            "pid": 1, "tid": 1, **_place(start, end), "args": {
                "name": layer.name, "macs": layer.macs, "cycles": round(layer.cycles),
                "energy_uj": layer.energy_uj, "assumed": layer.assumed}})
        at = start
        for cause in layer.bill.causes():
            spent = bill_time_us(prediction, layer.bill, cause)
            if spent > 0:
                events.append({"ph": "X", "name": cause, "cat": "cause", "pid": 1, "tid": 2,
                               **_place(at, min(at + spent, end))})
                at += spent
        events += [{"ph": "C", "name": name, "pid": 1, "ts": round(start, 4), "args": {name: value}}
                   for name, value in _levels(layer).items()]
        start = end
    return events


def _levels(layer: LayerPrediction) -> dict[str, float]:
    """Return what is drawn as a line: bytes alive, MACs a cycle, power where energy is known."""
    levels = {"bytes alive": float(layer.live_bytes)} if layer.live_bytes is not None else {}
    levels["MAC per cycle"] = layer.macs / layer.cycles if layer.cycles else 0.0
    if layer.energy_uj is not None and layer.time_us:
        levels["power, mW"] = 1e3 * layer.energy_uj / layer.time_us
    return levels


def _accelerated_events(prediction: Prediction) -> list[JsonObject]:
    spans = list_spans(prediction)
    rows = _number_rows(spans)
    events = [{"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
              for pid, name in enumerate(("host", "units", f"{prediction.compiler.channel_name}s",
                                          f"{prediction.compiler.task_name}s"), 1)]
    events += [{"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": row}}
               for row, (pid, tid) in rows.items()]
    events += [{"ph": "X", "name": task.name, "cat": task.kind, "pid": _TASKS,
                "tid": 1, **_place(task.start_us, task.start_us + task.time_us),
                "args": {"layers": ", ".join(map(str, task.run.task.layers)),
                         "core_npu_cycles": task.run.core_npu_cycles}}
               for task in prediction.tasks]
    events += [_span_event(span, *rows[span.row]) for span in spans]
    for pool, rates in sample_bandwidth(spans, prediction.time_us).items():
        width_us = prediction.time_us / len(rates)
        events += [{"ph": "C", "name": f"{pool} MB/s", "pid": _CHANNELS,
                    "ts": place * width_us, "args": {"MB/s": rate}}
                   for place, rate in enumerate(rates)]
    return events


def _number_rows(spans: tuple[Span, ...]) -> dict[str, tuple[int, int]]:
    """Process and thread of each row: host, units and engines in name order."""
    rows: dict[str, tuple[int, int]] = {}
    kinds = {span.row: span.kind for span in spans}
    for row in sorted(kinds):
        rows[row] = (_PROCESS_OF[kinds[row]], len(rows) + 1)
    return rows


def _place(start_us: float, end_us: float) -> dict[str, float]:
    """Begin and length in whole tenths of a nanosecond, so that neighbours never overlap."""
    start = round(start_us, 4)
    return {"ts": start, "dur": round(round(end_us, 4) - start, 4)}


def _span_event(span: Span, pid: int, tid: int) -> JsonObject:
    event: JsonObject = {"ph": "X", "name": span.label, "pid": pid, "tid": tid,
                             **_place(span.start_us, span.end_us)}
    if span.bytes:
        event["args"] = {"bytes": span.bytes, "pool": span.pool}
    return event
