"""Epochs of an accelerator side by side: every line of its profiler's report, and the whole model.

MCU and NPU cycles are never added; a hybrid epoch's extra epochs count to its phases. The whole
model is the sum of the epochs, so that what is shown adds up; totals only the report knows stand
beside it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from calibration.importers.neural_art_lines import ENGINES
from calibration.measurement.measurement import Measurement
from hwmodels.frozen import frozen
from hwmodels.schedule import BURST_BEATS
from twin.attribution.pairing import Pair, pair_parts
from twin.attribution.side import Part, Side

Counters = Mapping[str, float]
PHASES = ("pre", "core", "post")
_ENGINE = re.compile(r"engine_(\d+)_(in|out)(?:_busif\d+_\w+)?_active_cycles")
_POOLS = (r"pool_\w+?", "pools (total)")
_CACHE = tuple(f"npu_cache_{name}" for name in (
    "read_hit", "read_miss", "read_alloc_miss", "read_evict",
    "write_hit", "write_miss", "write_alloc_miss", "write_through"))


@frozen
class Figure:
    """One line of a report on both sides; None is not there."""

    first: float | None
    second: float | None

    @property
    def ratio(self) -> float | None:
        """First over second; None when either is not known or the second is nothing."""
        if self.first is None or not self.second:
            return None
        return self.first / self.second


@frozen
class EpochPair:
    """An epoch on both sides; `lines` are its report, by name."""

    first: Part | None
    second: Part | None
    lines: Mapping[str, Figure]


@frozen
class EpochReport:
    """Two inferences of an accelerator, line by line.

    Parameters
    ----------
    pairs
        In order; an epoch of one side only has no other.
    whole
        Sums over all epochs of each side.
    stated
        Totals only a report states: durations and shares.
    paired_by
        "name", "index" or "order".
    gaps
        Why the measurement is not whole; the sums are then over the epochs both have, and totals
        a report states are omitted.
    """

    pairs: tuple[EpochPair, ...]
    whole: Mapping[str, Figure]
    stated: Mapping[str, Figure]
    paired_by: str
    gaps: tuple[str, ...] = ()


def report_epochs(first: Side, second: Side, *, gaps: Sequence[str] = ()) -> EpochReport:
    """Set the epochs of two inferences beside each other, line by line.

    Parameters
    ----------
    gaps
        What the second lacks, of `find_gaps`.

    Returns
    -------
    EpochReport
        Epochs paired as `twin.attribution.pairing` says.
    """
    pairing = pair_parts(first, second)
    pairs: tuple[Pair, ...] = pairing.pairs
    described = [EpochPair(first=ours, second=theirs, lines=_figures(
        *(describe_epoch(one.counts) if one else {} for one in (ours, theirs))))
        for ours, theirs in pairs]
    sides: tuple[Sequence[Part], ...] = (first.parts, second.parts)
    if gaps:
        both = [(ours, theirs) for ours, theirs in pairs
                if ours is not None and theirs is not None and _is_counted(theirs)]
        sides = ([ours for ours, _ in both], [theirs for _, theirs in both])
    return EpochReport(
        pairs=tuple(described), paired_by=pairing.by, gaps=tuple(gaps),
        whole=_figures(*(_describe_sum(epochs) for epochs in sides)),
        stated={} if gaps else _figures(*(dict(_describe_totals(side.whole.counts))
                                          for side in (first, second))))


def find_gaps(measured: Measurement) -> tuple[str, ...]:
    """Return what a measurement of epochs lacks: what its log lacked, what its folder lost.

    Parameters
    ----------
    measured
        Whose header names every epoch of the log.
    """
    facts = dict(measured.header.environment)
    found = [text for text in facts.get("remarks", "").split("; ") if text.startswith("partial")]
    named = {int(key.removeprefix("epoch ")) for key in facts if key.startswith("epoch ")}
    lost = sorted(named - set(measured.layers))
    if lost:
        found.append(f"the folder has lost {len(lost)} of {len(named)} epochs its log had")
    elif named and not found and not measured.count("core_npu_cycles"):
        found.append("the folder has lost the totals its log had")
    return tuple(found)


def _is_counted(epoch: Part) -> bool:
    """Whether an epoch was read to its end: its phases, and its pools where it has an NPU part."""
    return "post_cycles" in epoch.counts and (
        "core_npu_cycles" not in epoch.counts
        or any(name.startswith("pool_") for name in epoch.counts))


def _figures(ours: Mapping[str, float], theirs: Mapping[str, float]) -> dict[str, Figure]:
    return {name: Figure(first=ours.get(name), second=theirs.get(name))
            for name in dict.fromkeys((*theirs, *ours))}


def _describe_sum(epochs: Sequence[Part]) -> dict[str, float]:
    # The busiest engine is one epoch's: which it is changes from epoch to epoch.
    return {name: value for name, value in describe_epoch(sum_counters(epochs)).items()
            if not name.endswith("busiest")}


def sum_counters(epochs: Sequence[Part]) -> Counters:
    """Return the counters of epochs, added; engines stay apart by number and pool."""
    totals: dict[str, list[float]] = {}
    for epoch in epochs:
        for name, value in epoch.counts.items():
            totals.setdefault(name, []).append(value)
    return {name: math.fsum(values) for name, values in totals.items()}


def describe_epoch(counters: Counters) -> dict[str, float]:
    """Return the lines of an epoch's report: phases, core, traffic, engines, cache, pools.

    Parameters
    ----------
    counters
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
    yield from _describe_moves(counters, r"busif\d+", "busif (total)", BURST_BEATS)
    yield from _describe_engines(counters)
    for name in _CACHE:
        if name in counters:
            yield f"NPU cache, {name.removeprefix('npu_cache_').replace('_', ' ')}", counters[name]
    yield from _describe_moves(counters, *_POOLS)


def _describe_moves(counters: Counters, pattern: str, total: str,
                    bursts: Sequence[int] = ()) -> Iterator[tuple[str, float]]:
    """Bytes each interface or pool moved, its bursts where they are counted, and all together."""
    stems = sorted({match[1] for name in counters
                    if (match := re.fullmatch(f"({pattern})_(?:read|write)_bytes", name))})
    for way in ("read", "write") if stems else ():
        moved = {stem: counters.get(f"{stem}_{way}_bytes", 0.0) for stem in stems}
        for stem, amount in moved.items():
            label = stem.replace("pool_", "pool ", 1)
            yield f"{label}, {way}, bytes", amount
            for beats in bursts:
                yield f"{label}, {way}, bursts of {beats}", counters.get(
                    f"{stem}_{way}_bursts_{beats}", 0.0)
        yield f"{total}, {way}, bytes", math.fsum(moved.values())


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


def _describe_totals(totals: Counters) -> Iterator[tuple[str, float]]:
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
    yield from _describe_moves(totals, *_POOLS)
