"""Sides that were read: a folder of samples, measured or simulated, and a published row."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from calibration.measurement.measurement import (
    HEADER_FILE,
    SAMPLES_FILE,
    TICKS_BY_MS,
    TIMED_BY_MS,
    Measurement,
    read_measurement,
)
from calibration.measurement.quality import Finding, find_levels
from twin.attribution.folders import find_folder
from twin.attribution.predicted import read_document, side_of_document
from twin.attribution.side import Part, Side, Work, sum_parts
from twin.deployment.stated import LISTED
from twin.errors import UsageError

if TYPE_CHECKING:
    from calibration.datasets import PublishedRow

NS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
NJ = {"j": 1e9, "mj": 1e6, "uj": 1e3, "nj": 1.0}
TIMES = ("latency", "duration", "time")
RUN_COUNTERS = ("latency", "timer_ticks", "cpu_cycles")
"""Counters that tell of drift and scatter, best first."""

CYCLES = ("cpu_cycles", "cycles")
INSTRUCTIONS = ("instructions",)
PHASES = ("pre_cycles", "core_cycles", "post_cycles", "extra_pre_cycles", "extra_core_cycles",
          "extra_post_cycles")
"""Core cycles of a task; a hybrid one's extra tasks count to its phases."""


def side_of_measurement(measurement: Measurement, source: str = "", percent: float = 50) -> Side:
    """Return a measurement as a side: medians over its runs, or another percentile.

    Raises
    ------
    UsageError
        When it has no cycles, time, energy or instructions to compare.
    """
    header = measurement.header
    clocks = header.clocks
    facts = header.facts
    tasks = measurement.part != "layer"
    parts = tuple(part for part in (_measured_part(measurement, index, clocks, tasks, percent)
                                    for index in measurement.layers) if part.amounts)
    whole = _measured_part(measurement, None, clocks, tasks, percent)
    if parts:
        summed = sum_parts(parts)
        whole = Part(index=None, counts=whole.counts, amounts={**summed.amounts, **whole.amounts})
    if not whole.amounts:
        hint = "; ticks become times by `twin import --clock`" \
            if "timer_ticks" in measurement.counters else ""
        raise UsageError(f"{source or 'measurement'}: has no cycles, time, energy or instructions; "
                         f"its counters: {', '.join(measurement.counters) or 'none'}{hint}")
    main = next((name for name in (*CYCLES, *TIMES, *INSTRUCTIONS, "timer_ticks")
                 if measurement.count(name)), None)
    return Side(
        kind=header.kind, source=source, model=header.model, model_sha256=header.model_sha256,
        architecture_id=header.architecture_id, board=header.board, runtime=header.runtime,
        temperature=header.temperature, clocks_hz=clocks, placement=dict(header.placement),
        part=measurement.part, parts=parts, whole=whole,
        environment=facts, work=_read_work(measurement),
        unsteady=find_unsteady(measurement),
        spread=max(measurement.summarise(main).tail_spread, 0.0) if main else 0.0,
        runs=max(measurement.count(main) if main else len(measurement.runs), 1))


def sum_runs(measurement: Measurement) -> np.ndarray | None:
    """Return the runs of the whole network; of a log of layers alone, their sum in each run."""
    for places in ((None,), measurement.layers):
        for name in RUN_COUNTERS:
            rows = [measurement.values(name, layer) for layer in places
                    if measurement.count(name, layer) >= 2]
            if rows and len(rows) == len(places) and len({len(row) for row in rows}) == 1:
                values = np.sum(rows, axis=0)
                return values if float(np.median(values)) > 0 else None
    return None


def find_unsteady(measurement: Measurement) -> tuple[Finding, ...]:
    """Return a first run unlike the rest, a step or drift, and two kinds of runs."""
    values = sum_runs(measurement)
    return () if values is None else tuple(
        find_levels(values, cycles=measurement.count("cpu_cycles") > 0))


def _read_work(measurement: Measurement) -> Work:
    """Return what a log says of the network besides its name."""
    header = measurement.header
    facts = header.facts
    named = header.runtime.startswith(LISTED) and facts.get("operators")
    macs = next((total for name in ("macs", "estimated_macs")
                 if (total := _total(measurement, name))), None)
    return Work(
        operators=tuple(facts["operators"].split(",")) if named else (), macs=macs,
        layer_macs={index: float(measurement.values("estimated_macs", index)[0])
                    for index in measurement.layers if measurement.count("estimated_macs", index)},
        operations=_total(measurement, "ops"),
        input_elements=tuple(sorted(
            math.prod(int(extent) for extent in shape.split(",") if extent)
            for shape in re.findall(r"\[([\d,]+)\]", facts["inputs"]))) if facts.get("inputs")
        else None)


def _total(measurement: Measurement, counter: str) -> float | None:
    if measurement.count(counter):
        return float(measurement.values(counter)[0])
    parts = [float(measurement.values(counter, layer)[0]) for layer in measurement.layers
             if measurement.count(counter, layer)]
    return math.fsum(parts) if parts else None


def _measured_part(measurement: Measurement, index: int | None, clocks: Mapping[str, float],
                   tasks: bool, percent: float) -> Part:
    counts = {name: measurement.percentile(name, percent, index) for name in measurement.counters
              if measurement.count(name, index)}
    units = {sample.counter: sample.unit.lower() for sample in measurement.samples}
    amounts: dict[str, int] = {}
    cycles = next((counts[name] for name in CYCLES if name in counts), None)
    if cycles is not None and not tasks:
        amounts["cycles"] = round(cycles)
    instructions = next((counts[name] for name in INSTRUCTIONS if name in counts), None)
    if instructions is not None:
        amounts["instructions"] = round(instructions)
    time_ns = _time_ns(counts, units, clocks, cycles)
    if time_ns is not None:
        amounts["time"] = round(time_ns)
    if "energy" in counts and units["energy"] in NJ:
        amounts["energy"] = round(counts["energy"] * NJ[units["energy"]])
    name, _, op = measurement.task_names.get(-1 if index is None else index, "").partition(" ")
    return Part(index=index, name=name, op=op, amounts=amounts, counts=counts)


def _time_ns(counts: Mapping[str, float], units: Mapping[str, str], clocks: Mapping[str, float],
             cycles: float | None) -> float | None:
    """Time of a part: stated, by task phases, by the timer, or by cycles and their clock."""
    for name in TIMES:
        if name in counts and units[name] in NS:
            return counts[name] * NS[units[name]]
    phases = [counts[name] for name in PHASES if name in counts]
    if phases and "cpu" in clocks:
        return math.fsum(phases) / clocks["cpu"] * 1e9
    if cycles is not None and "cpu" in clocks:
        return cycles / clocks["cpu"] * 1e9
    if "timer_ticks" in counts and "timer" in clocks and "instructions" not in counts:
        return counts["timer_ticks"] / clocks["timer"] * 1e9
    return None


def side_of_published(row: PublishedRow) -> Side:
    """Return a published row as a side: one inference, and no causes."""
    amounts = {}
    if row.latency_ms is not None:
        amounts["time"] = round(row.latency_ms * 1e6)
    if row.energy_uj is not None and row.judges_energy:
        amounts["energy"] = round(row.energy_uj * 1e3)
    placement = {} if row.arena is None else {"arena": row.arena}
    return Side(
        kind="published", source=f"{row.dataset}:{row.line}", model=str(row.model),
        model_sha256=None, architecture_id=None, board=str(row.board), runtime=str(row.runtime),
        temperature="warm", placement=placement, part="layer", parts=(), runs=1,
        clocks_hz={} if row.clock_hz is None else {"cpu": row.clock_hz},
        whole=Part(index=None, amounts=amounts))


def read_side(path: str | Path) -> Side:
    """Read a side from what a command wrote: a prediction's JSON or a measurement folder.

    Raises
    ------
    TwinError
        When it is neither, saying what was expected.
    """
    path = Path(path)
    if path.is_dir() or path.name in (HEADER_FILE, SAMPLES_FILE):
        measurement, folder = read_folder(path)
        return side_of_measurement(measurement, str(folder))
    return side_of_document(read_document(path), str(path))


def read_folder(path: str | Path) -> tuple[Measurement, Path]:
    """Read a measurement folder, or the warm one of a campaign; return where it was found.

    Raises
    ------
    TwinError
        When it is none.
    """
    where = Path(path)
    if where.name in (HEADER_FILE, SAMPLES_FILE):
        raise UsageError(f"{path}: is a part of a measurement; give its folder: {where.parent}")
    if not where.is_dir():
        what = "is a file" if where.exists() else "does not exist"
        raise UsageError(f"{path}: {what}; accepted: a folder `twin measure` or `twin import` "
                         "wrote")
    folder = find_folder(where)
    return time_by_log(read_measurement(folder)), folder


def time_by_log(measurement: Measurement) -> Measurement:
    """Return a log in the time its own milliseconds give, where it was taken for another clock.

    Its ticks are as long as its milliseconds make them; its header says so (`TIMED_BY_MS`).
    """
    header, facts = measurement.header, measurement.header.facts
    match = re.match(r"([1-9]\d*) to ([1-9]\d*) Hz", facts.pop(TICKS_BY_MS, ""))
    clocks = header.clocks
    stated = clocks.get("timer")
    if match is None or not stated:
        return measurement
    hertz = float(f"{math.sqrt(float(match[1]) * float(match[2])):.3g}")
    facts[TIMED_BY_MS] = (
        f"times are the log's own milliseconds, which make its ticks {hertz / 1e6:.4g} MHz: it was "
        f"imported as one of {stated / 1e6:g} MHz (--anyway)")
    return replace(
        measurement, header=replace(header, environment=tuple(facts.items()),
                                    clocks_hz=tuple({**clocks, "timer": hertz}.items())),
        samples=tuple(replace(one, value=one.value * stated / hertz)
                      if one.counter == "latency" else one for one in measurement.samples))
