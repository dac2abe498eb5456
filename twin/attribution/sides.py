"""One side of a comparison: a prediction or a measurement, in whole cycles, ns and nJ."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calibration.measurement.measurement import (
    HEADER_FILE,
    SAMPLES_FILE,
    Measurement,
    read_measurement,
)
from hwmodels.counts import apportion
from twin.errors import UsageError
from twin.learning.folders import find_folder
from twin.prediction.document import to_document
from twin.prediction.prediction import Prediction

UNITS = {"cycles": "cycles", "instructions": "instructions", "time": "ns", "energy": "nJ"}
"""Quantities two sides are compared in, and their unit: whole numbers, so that sums are exact."""

LARGEST = 1e15
"""Largest amount a document may hold, in its own unit."""

NS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
NJ = {"j": 1e9, "mj": 1e6, "uj": 1e3, "nj": 1.0}
TIMES = ("latency", "duration", "time")
CYCLES = ("cpu_cycles", "cycles")
INSTRUCTIONS = ("instructions",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A layer, an epoch, or the whole network, on one side.

    Parameters
    ----------
    index : int or None
        In the model; None is the whole network.
    name, op : str
        As the side has them; "" is not known.
    amounts : mapping of str to int
        By quantity, in its unit; one that is not known is left out.
    causes : mapping of str to mapping
        By quantity: cause -> amount, summing to `amounts`; causes of epochs name their clock, as
        "mac@npu". Empty for a measurement.
    counts : mapping of str to float
        Counters of a measurement (medians), events and instructions of a prediction.
    """

    index: int | None
    name: str = ""
    op: str = ""
    amounts: Mapping[str, int]
    causes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A prediction or a measurement, as it is compared.

    Parameters
    ----------
    kind : str
        "predicted", "measured", "simulated" or "published".
    source : str
        File or folder, or "" for one made in memory.
    part : str
        What parts are: "layer" or "epoch".
    parts : tuple of Part
        In order.
    whole : Part
        One inference.
    clock : str
        Of cycles: the core's.
    sizes : mapping of str to int
        "ram_bytes" and "flash_bytes", where known.
    interval_us : tuple of float or None
        Of the time of one inference, where the prediction has one.
    calibration : str
        Overlay behind a prediction, "" without.
    spread : float
        p95 / p50 - 1 of a measurement's main counter; 0 where there is one run.
    runs : int
        Of a measurement.
    """

    kind: str
    source: str
    model: str
    model_sha256: str | None
    architecture_id: str | None
    board: str
    runtime: str
    temperature: str | None
    clocks_hz: Mapping[str, float]
    placement: Mapping[str, str]
    part: str
    parts: tuple[Part, ...]
    whole: Part
    clock: str = "cpu"
    environment: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    interval_us: tuple[float, float] | None = None
    calibration: str = ""
    spread: float = 0.0
    runs: int = 0

    @property
    def predicted(self) -> bool:
        """Whether it is a prediction."""
        return self.kind == "predicted"

    @property
    def label(self) -> str:
        """What it is, in a few words."""
        return self.source or f"{self.model} on {self.board}"


# --- predictions -----------------------------------------------------------------------------

def side_of_prediction(prediction: Prediction) -> Side:
    """Return a prediction as a side."""
    return side_of_document(to_document(prediction), "")


def side_of_document(document: Mapping[str, Any], source: str) -> Side:
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
    if kind != "predicted" or document.get("schema") != 1:
        raise UsageError(f"{where}: kind is {kind!r}, schema {document.get('schema')!r}; accepted: "
                         "a prediction of schema 1, as `twin predict MODEL -b BOARD --json` "
                         "writes it")
    try:
        return _read_document(document, source)
    except KeyError as error:
        raise UsageError(f"{where}: not a whole prediction: key {error.args[0]!r} is missing"
                         ) from error
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise UsageError(f"{where}: not a prediction as `twin predict --json` writes it: {error}"
                         ) from error


def _read_document(document: Mapping[str, Any], source: str) -> Side:
    epochs = document.get("epochs")
    units: list[Mapping[str, Any]] = list(epochs if epochs else document["layers"])
    total = document["total"]
    clocks = {line["clock"] for unit in units for line in unit["bill"] if line.get("cycles")}
    clock = next(iter(clocks)) if len(clocks) == 1 else "cpu"
    # Cycles of two clocks are never added: then time is compared, and energy.
    parts = _exact_parts(units, clock if len(clocks) == 1 and not epochs else "", bool(epochs))
    time_us = total["time_us"]
    model = document["model"]
    return Side(
        kind="predicted", source=source, model=str(model["name"]),
        model_sha256=str(model["sha256"]), architecture_id=str(model["architecture_id"]),
        board=str(document["board"]), runtime=str(document["runtime"]),
        temperature=str(document["temperature"]),
        clocks_hz={name: max(_amount(hertz, name), 1.0)
                   for name, hertz in document["clocks_hz"].items()},
        placement={role: str(name) for role, name in document["placement"].items()},
        part="epoch" if epochs else "layer", parts=parts,
        whole=sum_parts(parts), clock=clock,
        sizes={name: int(_amount(document[name], name)) for name in ("ram_bytes", "flash_bytes")},
        interval_us=(_amount(time_us["low"], "low"), _amount(time_us["high"], "high"))
        if isinstance(time_us, dict) else None,
        calibration=str(document.get("calibration", {}).get("overlay", "")))


def _exact_parts(units: list[Mapping[str, Any]], clock: str,
                 epochs: bool) -> tuple[Part, ...]:
    """Round times and energies so that lines sum to parts, parts to the total."""
    amounts: list[dict[str, int]] = [{} for _ in units]
    causes: list[dict[str, dict[str, int]]] = [{} for _ in units]
    for quantity, key, scale in (("time", "time_us", 1e3), ("energy", "energy_uj", 1e3)):
        values = [_value(unit[key]) for unit in units]
        if any(value is None for value in values):
            continue
        wholes = apportion([scale * _amount(value, key) for value in values])
        for place, (unit, whole) in enumerate(zip(units, wholes, strict=True)):
            lines: dict[str, float] = {}
            for line in unit["bill"]:
                cause = f"{line['cause']}@{line['clock']}" if epochs else str(line["cause"])
                lines[cause] = lines.get(cause, 0.0) + scale * _amount(line[key], key)
            amounts[place][quantity] = whole
            if lines and abs(math.fsum(lines.values()) - whole) > 1 + 1e-6 * whole:
                raise ValueError(f"{key} of {unit['name']!r} is not the sum of its bill")
            if lines:
                shares = apportion(lines.values(), whole)
                causes[place][quantity] = dict(zip(lines, shares, strict=True))
    if clock:
        for place, unit in enumerate(units):
            found: dict[str, int] = {}
            for line in unit["bill"]:
                cycles = round(_amount(line["cycles"], "cycles"))
                cause = str(line["cause"])
                found[cause] = found.get(cause, 0) + cycles
            causes[place]["cycles"] = found
            amounts[place]["cycles"] = sum(found.values())
            amounts[place]["instructions"] = round(
                _amount(unit["instructions"], "instructions"))
    return tuple(Part(
        index=int(unit["index"]), name=str(unit["name"]),
        op=str(unit.get("op", unit.get("kind", ""))),
        amounts=amounts[place], causes=causes[place], counts=_events(unit))
        for place, unit in enumerate(units))


def _amount(value: Any, key: str) -> float:
    """Return an amount; null in a bill is nothing.

    Raises
    ------
    ValueError
        When it is none: what is written by hand may be anything.
    """
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) \
            or not 0 <= value <= LARGEST:
        raise ValueError(f"{key} is {value!r}; accepted: 0 to {LARGEST:g}")
    return float(value)


def _value(quantity: Any) -> float | None:
    return quantity["value"] if isinstance(quantity, dict) else quantity


def _events(unit: Mapping[str, Any]) -> dict[str, float]:
    found = {name: _amount(count["occurred"], name)
             for name, count in unit.get("counts", {}).items()}
    return found | {"instructions": _amount(unit.get("instructions"), "instructions")}


def sum_parts(parts: Iterable[Part]) -> Part:
    """Add parts to the whole network; a quantity one of them lacks is not known."""
    parts = tuple(parts)
    names = [name for name in UNITS if all(name in part.amounts for part in parts)]
    causes: dict[str, dict[str, int]] = {name: {} for name in names}
    counts: dict[str, float] = {}
    for part in parts:
        for name in names:
            for cause, amount in part.causes.get(name, {}).items():
                causes[name][cause] = causes[name].get(cause, 0) + amount
        for event, count in part.counts.items():
            counts[event] = counts.get(event, 0.0) + count
    return Part(index=None, amounts={name: sum(part.amounts[name] for part in parts)
                                     for name in names}, causes=causes, counts=counts)


# --- measurements ----------------------------------------------------------------------------

def side_of_measurement(measurement: Measurement, source: str = "",
                        percent: float = 50) -> Side:
    """Return a measurement as a side: medians over its runs, or another percentile.

    Raises
    ------
    UsageError
        When it has no cycles, time, energy or instructions to compare.
    """
    header = measurement.header
    clocks = dict(header.clocks_hz)
    epochs = bool(measurement.count("core_npu_cycles")) or any(
        measurement.count("pre_cycles", index) for index in measurement.layers)
    parts = tuple(part for part in (_measured_part(measurement, index, clocks, epochs, percent)
                                    for index in measurement.layers) if part.amounts)
    whole = _measured_part(measurement, None, clocks, epochs, percent)
    if parts:
        summed = sum_parts(parts)
        whole = Part(index=None, counts=whole.counts,
                     amounts={**summed.amounts, **whole.amounts})
    if not whole.amounts:
        raise UsageError(f"{source or 'measurement'}: has no cycles, time, energy or instructions; "
                         f"its counters: {', '.join(measurement.counters) or 'none'}")
    main = next((name for name in (*CYCLES, *TIMES, *INSTRUCTIONS, "timer_ticks")
                 if measurement.count(name)), None)
    return Side(
        kind=header.kind, source=source, model=header.model, model_sha256=header.model_sha256,
        architecture_id=header.architecture_id, board=header.board, runtime=header.runtime,
        temperature=header.temperature, clocks_hz=clocks, placement=dict(header.placement),
        part="epoch" if epochs else "layer", parts=parts, whole=whole,
        environment=dict(header.environment),
        spread=max(measurement.summarise(main).tail_spread, 0.0) if main else 0.0,
        runs=measurement.count(main) if main else len(measurement.runs))


def _measured_part(measurement: Measurement, index: int | None, clocks: Mapping[str, float],
                   epochs: bool, percent: float) -> Part:
    counts = {name: measurement.percentile(name, percent, index) for name in measurement.counters
              if measurement.count(name, index)}
    units = {sample.counter: sample.unit.lower() for sample in measurement.samples}
    amounts: dict[str, int] = {}
    cycles = next((counts[name] for name in CYCLES if name in counts), None)
    if cycles is not None and not epochs:
        amounts["cycles"] = round(cycles)
    instructions = next((counts[name] for name in INSTRUCTIONS if name in counts), None)
    if instructions is not None:
        amounts["instructions"] = round(instructions)
    time_ns = _time_ns(counts, units, clocks, cycles)
    if time_ns is not None:
        amounts["time"] = round(time_ns)
    if "energy" in counts and units["energy"] in NJ:
        amounts["energy"] = round(counts["energy"] * NJ[units["energy"]])
    name, _, op = dict(measurement.header.environment).get(f"epoch {index}", "").partition(" ")
    return Part(index=index, name=name, op=op, amounts=amounts, counts=counts)


def _time_ns(counts: Mapping[str, float], units: Mapping[str, str], clocks: Mapping[str, float],
             cycles: float | None) -> float | None:
    """Time of a part: told, by epoch phases, by the timer, or by cycles and their clock."""
    for name in TIMES:
        if name in counts and units[name] in NS:
            return counts[name] * NS[units[name]]
    phases = [counts[name] for name in ("pre_cycles", "core_cycles", "post_cycles")
              if name in counts]
    if phases and "cpu" in clocks:
        return math.fsum(phases) / clocks["cpu"] * 1e9
    if cycles is not None and "cpu" in clocks:
        return cycles / clocks["cpu"] * 1e9
    if "timer_ticks" in counts and "timer" in clocks and "instructions" not in counts:
        return counts["timer_ticks"] / clocks["timer"] * 1e9
    return None


# --- files -----------------------------------------------------------------------------------

def read_side(path: str | Path) -> Side:
    """Read a side from what a command wrote: a prediction's JSON or a measurement folder.

    Raises
    ------
    TwinError
        When it is neither, saying what was expected.
    """
    path = Path(path)
    if path.is_dir():
        folder = find_folder(path)
        return side_of_measurement(read_measurement(folder), str(folder))
    if path.name in (HEADER_FILE, SAMPLES_FILE):
        raise UsageError(f"{path}: is a part of a measurement; give its folder: {path.parent}")
    return side_of_document(read_document(path), str(path))


def read_document(path: Path) -> Mapping[str, Any]:
    """Read a JSON object from a file.

    Raises
    ------
    UsageError
        When it cannot be read or is none.
    """
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not a prediction: not JSON ({error}); accepted: what `twin "
                         "predict MODEL -b BOARD --json` writes, or a measurement folder"
                         ) from error
    if not isinstance(document, dict):
        raise UsageError(f"{path}: not a prediction: a JSON object is expected")
    return document
