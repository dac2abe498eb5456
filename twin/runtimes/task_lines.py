"""Lines of an accelerator's report by what they are called, from the counters of its tasks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

Counters = Mapping[str, float]
"""Value by counter, as a measurement names it; one that is not known is omitted."""

PHASES = ("pre", "core", "post")
"""Of a task, as the host meets them."""

CYCLES = (("core_npu_cycles", "core, NPU cycles"), ("compute_cycles", "compute, NPU cycles"))
"""Counters that are lines by themselves, and what the lines are called."""

_POOLS = (r"pool_\w+?", "pools (total)")


def describe_task(counters: Counters, cycles: Sequence[tuple[str, str]] = CYCLES,
                  more: Iterable[tuple[str, float]] = ()) -> Iterator[tuple[str, float]]:
    """Yield phases, core and pools; of a compiler `more`, before the pools.

    A task the host steps counts its extra ones to its phases.
    """
    phases = {phase: counters[f"{phase}_cycles"] + counters.get(f"extra_{phase}_cycles", 0.0)
              for phase in PHASES if f"{phase}_cycles" in counters}
    for phase, spent in phases.items():
        yield f"{phase}, MCU cycles", spent
    if phases:
        yield "pre + core + post, MCU cycles", math.fsum(phases.values())
    for name, label in cycles:
        if name in counters:
            yield label, counters[name]
    if counters.get("core_npu_cycles") and "compute_cycles" in counters:
        yield "compute cycles ratio (core only), %", \
            100 * counters["compute_cycles"] / counters["core_npu_cycles"]
    yield from more
    yield from describe_moves(counters, *_POOLS)


def describe_moves(counters: Counters, pattern: str, total: str,
                   bursts: Sequence[int] = ()) -> Iterator[tuple[str, float]]:
    """Yield bytes each interface or pool moved, its bursts where they are counted, and all."""
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


def describe_totals(totals: Counters, host_task: str) -> Iterator[tuple[str, float]]:
    """Yield durations, cycles and shares of the whole inference."""
    for name, label, factor in (("duration", "duration, ms", 1e-3),
                                ("npu_core_duration", "NPU core, ms", 1e-3),
                                ("cpu_cycles", "MCU cycles", 1.0),
                                ("npu_cycles", f"NPU cycles, {host_task}s included", 1.0)):
        if name in totals:
            yield label, totals[name] * factor
    for phase in PHASES:
        if f"{phase}_share" in totals:
            yield f"{phase}, % of MCU cycles", totals[f"{phase}_share"]
    if totals.get("duration"):
        yield "inf/s", 1e6 / totals["duration"]
    # Of all tasks, the host's too, whose own pools no profiler prints.
    yield from describe_moves(totals, *_POOLS)
