"""Epochs of an accelerator side by side: every line of its profiler's report, and the whole model.

MCU and NPU cycles are never added; a hybrid epoch's extra epochs count to its phases. The whole
model is the sum of the epochs, so that what is shown adds up; totals only the report knows stand
beside it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from calibration.importers.npu_lines import ENGINES
from calibration.measurement.measurement import Measurement
from twin.attribution.layers import Figure
from twin.prediction.accelerator.report import Counters, EpochSheet, ModelSheet

PHASES = ("pre", "core", "post")
_ENGINE = re.compile(r"engine_(\d+)_(in|out)_(busif\d+)_(\w+)_active_cycles")
_CACHE = tuple(f"npu_cache_{name}" for name in (
    "read_hit", "read_miss", "read_alloc_miss", "read_evict",
    "write_hit", "write_miss", "write_alloc_miss", "write_through"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochPair:
    """An epoch on both sides; `lines` are its report, by name."""

    predicted: EpochSheet | None
    measured: EpochSheet | None
    lines: Mapping[str, Figure]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochComparison:
    """Two inferences of an accelerator.

    Parameters
    ----------
    kind : str
        Of the measured one.
    pairs : tuple of EpochPair
        In order; an epoch of one side only has no other.
    whole : mapping of str to Figure
        Sums over all epochs of each side.
    stated : mapping of str to Figure
        Totals only a report states: durations and shares.
    paired_by : str
        "name" or "order".
    gaps : tuple of str
        Why the measurement is not whole; the sums are then over the epochs both have, and totals
        a report states are left out.
    """

    kind: str
    pairs: tuple[EpochPair, ...]
    whole: Mapping[str, Figure]
    stated: Mapping[str, Figure]
    paired_by: str
    gaps: tuple[str, ...] = ()


def compare_epochs(predicted: ModelSheet, measured: ModelSheet, *,
                   kind: str = "measured", gaps: Sequence[str] = ()) -> EpochComparison:
    """Pair the epochs of two inferences, line by line.

    Parameters
    ----------
    predicted, measured : ModelSheet
        Of the same network; see `twin.attribution.agreement`.
    kind : str
        Of the measured one.
    gaps : sequence of str
        What the measured one lacks, of `find_gaps`.

    Returns
    -------
    EpochComparison
        Epochs paired by the number in their name where both come from one compilation, else in
        order.
    """
    pairs, by = _pair(predicted.epochs, measured.epochs)
    described = [EpochPair(predicted=ours, measured=theirs, lines=_figures(
        describe_epoch(ours.counters) if ours else {},
        describe_epoch(theirs.counters) if theirs else {})) for ours, theirs in pairs]
    sides: tuple[Sequence[EpochSheet], ...] = (predicted.epochs, measured.epochs)
    if gaps:
        both = [(ours, theirs) for ours, theirs in pairs
                if ours is not None and theirs is not None and _is_counted(theirs)]
        sides = ([ours for ours, _ in both], [theirs for _, theirs in both])
    return EpochComparison(
        kind=kind, pairs=tuple(described), paired_by=by, gaps=tuple(gaps),
        whole=_figures(*(_describe_sum(epochs) for epochs in sides)),
        stated={} if gaps else _figures(*(dict(_describe_totals(sheet))
                                          for sheet in (predicted, measured))))


def find_gaps(measured: Measurement) -> tuple[str, ...]:
    """Return what a measurement of epochs lacks: what its log lacked, what its folder lost.

    Parameters
    ----------
    measured : Measurement
        Whose header names every epoch of the log.
    """
    told = dict(measured.header.environment)
    found = [text for text in told.get("remarks", "").split("; ") if text.startswith("partial")]
    named = {int(key.removeprefix("epoch ")) for key in told if key.startswith("epoch ")}
    lost = sorted(named - set(measured.layers))
    if lost:
        found.append(f"the folder has lost {len(lost)} of {len(named)} epochs its log had")
    elif named and not found and not measured.count("core_npu_cycles"):
        found.append("the folder has lost the totals its log had")
    return tuple(found)


def _is_counted(epoch: EpochSheet) -> bool:
    """Whether an epoch was read to its end: its phases, and its pools where it has an NPU part."""
    return "post_cycles" in epoch.counters and (
        "core_npu_cycles" not in epoch.counters
        or any(name.startswith("pool_") for name in epoch.counters))


def _pair(ours: Sequence[EpochSheet], theirs: Sequence[EpochSheet]
          ) -> tuple[list[tuple[EpochSheet | None, EpochSheet | None]], str]:
    names = [{epoch.title: epoch for epoch in side} for side in (ours, theirs)]
    shared = names[0].keys() & names[1].keys()
    same = [title for title in shared if names[0][title].kind == names[1][title].kind]
    if shared and len(same) == len(shared) and len(shared) >= 0.9 * max(len(ours), len(theirs)):
        titles = [*names[1], *(title for title in names[0] if title not in names[1])]
        return [(names[0].get(title), names[1].get(title)) for title in titles], "name"
    longest = max(len(ours), len(theirs))
    return [(ours[place] if place < len(ours) else None,
             theirs[place] if place < len(theirs) else None) for place in range(longest)], "order"


def _figures(ours: Mapping[str, float], theirs: Mapping[str, float]) -> dict[str, Figure]:
    return {name: Figure(predicted=ours.get(name), measured=theirs.get(name))
            for name in dict.fromkeys((*theirs, *ours))}


def _describe_sum(epochs: Sequence[EpochSheet]) -> dict[str, float]:
    # The busiest engine is one epoch's: which it is changes from epoch to epoch.
    return {name: value for name, value in describe_epoch(sum_counters(epochs)).items()
            if not name.endswith("busiest")}


def sum_counters(epochs: Sequence[EpochSheet]) -> Counters:
    """Return the counters of epochs, added; engines stay apart by number and pool."""
    totals: dict[str, list[float]] = {}
    for epoch in epochs:
        for name, value in epoch.counters.items():
            totals.setdefault(name, []).append(value)
    return {name: math.fsum(values) for name, values in totals.items()}


def describe_epoch(counters: Counters) -> dict[str, float]:
    """Return the lines of an epoch's report: phases, core, traffic, engines, cache, pools.

    Parameters
    ----------
    counters : Counters
        Of one epoch, or of several added.

    Returns
    -------
    dict of str to float
        By what a line is called; sums of lines are lines of their own. What is not known is left
        out.
    """
    return dict(_describe(counters))


def _describe(counters: Counters) -> Iterator[tuple[str, float]]:
    phases = {phase: counters[f"{phase}_cycles"] + counters.get(f"extra_{phase}_cycles", 0.0)
              for phase in PHASES if f"{phase}_cycles" in counters}
    for phase, cycles in phases.items():
        yield f"{phase}, MCU cycles", cycles
    if phases:
        yield "pre + core + post, MCU cycles", math.fsum(phases.values())
    for name, label in (("core_npu_cycles", "core, NPU cycles"),
                        ("compute_cycles", "compute, NPU cycles"),
                        ("max_cycles", "max of the compiler, NPU cycles"), ("ops", "ops")):
        if name in counters:
            yield label, counters[name]
    if counters.get("core_npu_cycles") and "compute_cycles" in counters:
        yield "compute cycles ratio (core only), %", \
            100 * counters["compute_cycles"] / counters["core_npu_cycles"]
    yield from _describe_traffic(counters)
    yield from _describe_engines(counters)
    for name in _CACHE:
        if name in counters:
            yield f"NPU cache, {name.removeprefix('npu_cache_').replace('_', ' ')}", counters[name]
    yield from _describe_pools(counters)


def _describe_traffic(counters: Counters) -> Iterator[tuple[str, float]]:
    names = sorted({match[1] for name in counters
                    if (match := re.fullmatch(r"(busif\d+)_(read|write)_bytes", name))})
    for way in ("read", "write"):
        moved = [counters.get(f"{name}_{way}_bytes", 0.0) for name in names]
        for name, amount in zip(names, moved, strict=True):
            yield f"{name}, {way}, bytes", amount
            for beats in (1, 2, 4, 8):
                yield f"{name}, {way}, bursts of {beats}", counters.get(
                    f"{name}_{way}_bursts_{beats}", 0.0)
        if names:
            yield f"busif (total), {way}, bytes", math.fsum(moved)


def _describe_engines(counters: Counters) -> Iterator[tuple[str, float]]:
    """Engines by direction: two schedules number them differently."""
    found: dict[str, list[float]] = {"in": [], "out": []}
    for name, value in counters.items():
        if match := _ENGINE.fullmatch(name):
            found[match[2]].append(value)
    for way, cycles in found.items():
        if cycles:
            yield f"stream engines {way}, active NPU cycles", math.fsum(cycles)
            yield f"stream engines {way}, busiest", max(cycles)
    if (count := counters.get(ENGINES)) is not None:
        yield "stream engines", count


def _describe_pools(counters: Counters) -> Iterator[tuple[str, float]]:
    names = sorted({match[1] for name in counters
                    if (match := re.fullmatch(r"pool_(\w+)_(?:read|write)_bytes", name))})
    for way in ("read", "write") if names else ():
        moved = {name: counters.get(f"pool_{name}_{way}_bytes", 0.0) for name in names}
        yield from ((f"pool {name}, {way}, bytes", amount) for name, amount in moved.items())
        yield f"pools (total), {way}, bytes", math.fsum(moved.values())


def _describe_totals(sheet: ModelSheet) -> Iterator[tuple[str, float]]:
    totals = sheet.totals
    for name, label, factor in (("duration", "duration, ms", 1e-3),
                                ("npu_core_duration", "NPU core, ms", 1e-3),
                                ("cpu_cycles", "MCU cycles", 1.0),
                                ("npu_cycles", "NPU cycles, software epochs included", 1.0)):
        if name in totals:
            yield label, totals[name] * factor
    for phase in PHASES:
        if f"{phase}_share" in totals:
            yield f"{phase}, % of MCU cycles", totals[f"{phase}_share"]
    if totals.get("duration"):
        yield "inf/s", 1e6 / totals["duration"]
    # Of all epochs, software ones too, whose own pools no profiler prints.
    yield from _describe_pools(totals)
