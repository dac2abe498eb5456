"""Sides that were computed: a prediction, its JSON document, a compiler's tasks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibration.measurement.measurement import BOARD_HASH
from hwmodels.board.file import hash_board
from hwmodels.errors import reworded
from hwmodels.files import MISSHAPEN, DocumentError, JsonObject, read_json
from hwmodels.quantities import Ends, apportion, sum_by_key
from twin.attribution.side import Part, Side, Work, sum_parts
from twin.deployment.choice import compiler_of, find_compiler
from twin.errors import ModelError, UsageError
from twin.network.operators import graph_macs, layer_macs
from twin.pricing.document import TASK_WORDS, to_document
from twin.pricing.prediction import Prediction

if TYPE_CHECKING:
    from hwmodels.board.facts import Board

RENAMED = {"dcache_refill": "data_refill"}
"""Causes by the names older documents have."""

LARGEST = 1e15
"""Largest amount a document may hold, in its own unit."""

SCHEMAS = (1, 2)
"""Of predictions that are read."""


def profile_tasks(side: Side) -> list[list[str]]:
    """Return the tasks of an accelerator, each as the lines its compiler's profiler prints."""
    compiler = compiler_of(side.runtime)
    return [compiler.list_task(part.name, part.op, part.index or 0, part.counts, side.whole.counts,
                               side.clocks_hz) for part in side.parts]


def profile_whole(side: Side) -> list[str]:
    """Return what the profiler prints of the whole model."""
    return compiler_of(side.runtime).list_model(side.whole.counts, side.clocks_hz)


def side_of_prediction(prediction: Prediction, beside: Side | None = None) -> Side:
    """Return a prediction as a side, by its layers where the one it goes beside is by layers."""
    layers = beside is not None and beside.part == "layer"
    side = _read_document(to_document(prediction), "", layers=layers)
    graph, board = prediction.graph, prediction.board
    work = replace(side.work, macs=float(graph_macs(graph)), layer_macs={
        place: float(layer_macs(graph, layer)) for place, layer in enumerate(graph.layers)},
        operators=tuple(layer.op for layer in graph.layers),
        input_elements=tuple(sorted(math.prod(graph.tensors[index].shape)
                                    for index in graph.inputs)))
    side = replace(side, work=work, clocks_hz=dict(side.clocks_hz) | _name_clocks(board),
                   environment={BOARD_HASH: hash_board(board)})
    if not prediction.tasks:
        return side
    from twin.pricing.accelerator.report import count_tasks, total_counters

    counted = count_tasks(prediction)
    totals = total_counters(counted, prediction.time_us, board.accelerator.frequency_hz,
                            prediction.runtime.compiler.summed)
    if layers:
        return replace(side, whole=replace(side.whole, counts={**side.whole.counts, **totals}))
    parts = tuple(replace(part, counts=counts)
                  for part, counts in zip(side.parts, counted, strict=True))
    return replace(side, parts=parts, whole=replace(side.whole, counts=totals),
                   work=replace(work, operations=totals["ops"]))


def _name_clocks(board: Board) -> dict[str, float]:
    """Clocks by the names measurements give them: cpu and npu."""
    found = {"cpu": board.core_clock.frequency_hz}
    return found if board.npu is None else found | {"npu": board.npu.frequency_hz}


def side_of_compiled(path: str, board: Board) -> tuple[Side, tuple[str, ...]]:
    """Return a network as its compiler laid it out, run by the hardware model, without causes.

    Parameters
    ----------
    path
        What the compiler wrote: `find_compiler` finds it.
    board
        With the accelerator that has the network's pools.

    Returns
    -------
    tuple of (Side, tuple of str)
        Compiler lines are the compiler's own, target lines the hardware model's; and what is not
        in the output.

    Raises
    ------
    ModelError
        When no compiler wrote it.
    UsageError
        When the board has no accelerator.
    """
    from hwmodels.schedule.run import run_tasks
    from twin.pricing.accelerator.report import round_phases, total_counters

    if (compiled_by := find_compiler(path)) is None:
        raise ModelError(f"{path}: no output of a compiler for accelerators (.json, .csv)")
    if board.npu is None:
        raise UsageError(f"{board.name} has no accelerator to run {path}; see twin boards")
    clocks, compiler = _name_clocks(board), compiled_by.compiler
    network = compiler.read(path, board.npu)
    runs = run_tasks(network.tasks, board.npu)
    cores_us = [run.core_npu_cycles / clocks["npu"] * 1e6 for run in runs]
    counted = round_phases({
        **own, **stated, "pre_cycles": run.pre_cpu_cycles,
        "core_cycles": core_us * 1e-6 * clocks["cpu"], "post_cycles": run.post_cpu_cycles}
        for stated, run, own, core_us in zip(network.stated, runs, compiler.count_runs(runs),
                                             cores_us, strict=True))
    parts = [Part(index=index, name=compiler.name_task(one.name), op=one.kind.upper(),
                  counts=counts,
                  amounts={"time": round(1e9 * (
                      (counts["pre_cycles"] + counts["post_cycles"]) / clocks["cpu"]
                      + counts.get("core_npu_cycles", 0.0) / clocks["npu"]))})
             for index, (one, counts) in enumerate(zip(network.tasks, counted, strict=True))]
    time_us = sum(core_us + (run.pre_cpu_cycles + run.post_cpu_cycles) / clocks["cpu"] * 1e6
                  for run, core_us in zip(runs, cores_us, strict=True))
    totals = total_counters(counted, time_us, clocks["npu"])
    return Side(
        kind="predicted", source="", model=network.name, model_sha256=None, architecture_id=None,
        board=board.name, runtime=compiled_by.name, temperature="warm", clocks_hz=clocks,
        placement={}, part=compiler.task_name, parts=tuple(parts),
        whole=replace(sum_parts(parts), counts=totals),
        work=Work(operations=totals["ops"])), network.notes


def side_of_document(document: JsonObject, source: str) -> Side:
    """Return a prediction's JSON document as a side.

    Raises
    ------
    UsageError
        When it is none, naming file and key.
    """
    where = source or "prediction"
    kind = document.get("kind")
    if kind == "what-if":
        raise UsageError(f"{where}: a what-if holds two predictions; give one of them, as "
                         "`twin predict ... --json` writes it")
    if kind != "predicted" or document.get("schema") not in SCHEMAS:
        raise UsageError(f"{where}: kind is {kind!r}, schema {document.get('schema')!r}; accepted: "
                         "a prediction of schema 1 or 2, as `twin predict MODEL -b BOARD --json` "
                         "writes it")
    try:
        return _read_document(document, source)
    except KeyError as error:
        raise UsageError(f"{where}: not a whole prediction: key {error.args[0]!r} is missing"
                         ) from error
    except MISSHAPEN as error:
        raise UsageError(f"{where}: not a prediction as `twin predict --json` writes it: {error}"
                         ) from error


def _read_document(document: JsonObject, source: str, *, layers: bool = False) -> Side:
    words = () if layers else TASK_WORDS
    part = next((word for word in words if document.get(f"{word}s")), "layer")
    tasks = part != "layer"
    units: list[JsonObject] = list(document[f"{part}s"])
    total = document["total"]
    clocks = {line["clock"] for unit in units for line in unit["bill"] if line.get("cycles")}
    clock = next(iter(clocks)) if len(clocks) == 1 else "cpu"
    # Cycles of two clocks are never added: then time is compared, and energy.
    parts = _exact_parts(units, clock if len(clocks) == 1 and not tasks else "",
                         compiler_of(str(document["runtime"])).name_task if tasks else None)
    model = document["model"]
    macs = {place: _amount(layer.get("macs"), "macs")
            for place, layer in enumerate(document["layers"])}
    return Side(
        kind="predicted", source=source, model=str(model["name"]),
        model_sha256=str(model["sha256"]), architecture_id=str(model["architecture_id"]),
        board=str(document["board"]), runtime=str(document["runtime"]),
        temperature=str(document["temperature"]), clocks_hz={name: max(_amount(hertz, name), 1.0)
                   for name, hertz in document["clocks_hz"].items()},
        work=Work(operators=tuple(str(layer["op"]) for layer in document["layers"]),
                  layer_macs=macs, macs=math.fsum(macs.values())),
        placement={role: str(name) for role, name in document["placement"].items()},
        part=part, parts=parts, whole=sum_parts(parts), clock=clock,
        sizes={name: int(_amount(document[name], name)) for name in ("ram_bytes", "flash_bytes")},
        interval_us=_interval(total, "time", "us"),
        energy_interval_uj=_interval(total, "energy", "uj"), level=_level(total),
        cycles={name: round(_amount(count, name)) for name, count in total["cycles"].items()},
        calibration=str(document.get("calibration", {}).get("overlay", "")),
        doubtful=tuple(map(str, document.get("calibration", {}).get("doubtful", ()))))


def _find_interval(total: JsonObject, name: str, unit: str) -> Any:
    """Return the interval of a quantity; schema 1 had it in the quantity itself."""
    quantity = total[f"{name}_{unit}"]
    return quantity if isinstance(quantity, dict) else total.get(f"{name}_interval_{unit}")


def _interval(total: JsonObject, name: str, unit: str) -> Ends | None:
    found = _find_interval(total, name, unit)
    if found is None:
        return None
    return _amount(found["low"], "low"), _amount(found["high"], "high")


def _level(total: JsonObject) -> float | None:
    found = _find_interval(total, "time", "us")
    return None if found is None else _amount(found["level"], "level")


def _exact_parts(units: list[JsonObject], clock: str,
                 name_task: Callable[[str], str] | None) -> tuple[Part, ...]:
    """Round times and energies so that lines sum to parts, parts to the total."""
    amounts: list[dict[str, int]] = [{} for _ in units]
    causes: list[dict[str, dict[str, int]]] = [{} for _ in units]
    for quantity, key, scale in (("time", "time_us", 1e3), ("energy", "energy_uj", 1e3)):
        values = [_value(unit[key]) for unit in units]
        if any(value is None for value in values):
            continue
        wholes = apportion([scale * _amount(value, key) for value in values])
        for place, (unit, whole) in enumerate(zip(units, wholes, strict=True)):
            lines = sum_by_key((
                _cause(line) if name_task is None else f"{_cause(line)}@{line['clock']}",
                scale * _amount(line[key], key)) for line in unit["bill"])
            amounts[place][quantity] = whole
            if lines and abs(math.fsum(lines.values()) - whole) > 1 + 1e-6 * whole:
                raise ValueError(f"{key} of {unit['name']!r} is not the sum of its bill")
            if lines:
                shares = apportion(lines.values(), whole)
                causes[place][quantity] = dict(zip(lines, shares, strict=True))
    if clock:
        for place, unit in enumerate(units):
            found = causes[place]["cycles"] = sum_by_key(
                (_cause(line), round(_amount(line["cycles"], "cycles"))) for line in unit["bill"])
            amounts[place]["cycles"] = sum(found.values())
            amounts[place]["instructions"] = round(_amount(unit["instructions"], "instructions"))
    return tuple(Part(
        index=int(unit["index"]),
        name=str(unit["name"]) if name_task is None else name_task(str(unit["name"])),
        op=str(unit.get("op", "")) if name_task is None else str(unit["kind"]).upper(),
        moves=not unit.get("alias", False),
        amounts=amounts[place], causes=causes[place], counts=_events(unit))
        for place, unit in enumerate(units))


def _cause(line: JsonObject) -> str:
    """Return the cause of a line; a document written before it was renamed has the old name."""
    cause = str(line["cause"])
    return RENAMED.get(cause, cause)


def _amount(value: Any, key: str) -> float:
    """Return an amount; null in a bill is nothing.

    Raises
    ------
    ValueError
        When it is none: what is written by hand may be anything.
    """
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LARGEST:
        raise ValueError(f"{key} is {value!r}; accepted: 0 to {LARGEST:g}")
    return float(value)


def _value(quantity: Any) -> float | None:
    return quantity["value"] if isinstance(quantity, dict) else quantity


def _events(unit: JsonObject) -> dict[str, float]:
    found = {name: _amount(count["occurred"], name)
             for name, count in unit.get("counts", {}).items()}
    return found | {"instructions": _amount(unit.get("instructions"), "instructions")}


def read_document(path: Path) -> JsonObject:
    """Read a JSON object from a file.

    Raises
    ------
    UsageError
        When it cannot be read or is none.
    """
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder")
    with reworded(DocumentError, UsageError,
                  f"{path}: not a prediction: ",
                  "; accepted: what `twin predict MODEL -b BOARD --json` writes, or a "
                  "measurement folder"):
        document = read_json(path)
    if not isinstance(document, dict):
        raise UsageError(f"{path}: not a prediction: a JSON object is expected")
    return document
