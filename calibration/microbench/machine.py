"""What micro-benchmarks found of a machine: memories with their caches, rates of its core."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from calibration.measurement.measurement import Measurement
from calibration.microbench.probes import BRANCHES, Reading, main_counter, read_probes
from hwmodels.frozen import frozen

HIT_SHARE = 0.1
"""Below this share of a full miss, a working set is taken as held by the cache."""

LEAST_MAC = 1e-3
"""Less than this per multiply-accumulate is a probe that was compiled to nothing."""

RISE, RISE_TIMED = 1.02, 1.25
NOTICED = 0.3
"""A level of memory ends where a step costs this factor, the larger one by a timer of a busy
machine, and this much more than before."""


@frozen
class Level:
    """A level of memory as a chase sees it: it holds `size_bytes`, a step in it costs `cost`."""

    size_bytes: int
    cost: float


@frozen
class MemoryFound:
    """What micro-benchmarks found of one memory.

    Parameters
    ----------
    levels
        Nearest first; the last one's size is only what was tried.
    line_bytes
        What one miss brings; None where nothing misses.
    ways
        Lines of one set that stay; None where nothing misses, or never in what was tried.
    ways_tried
        Most lines of one set that were tried.
    miss_cost
        A step that misses waits for this much more than one that hits.
    read_bytes, write_bytes
        Bytes per count, streamed from the whole extent.
    """

    name: str
    levels: tuple[Level, ...]
    line_bytes: int | None
    ways: int | None
    ways_tried: int
    miss_cost: float
    read_bytes: float | None
    write_bytes: float | None


@frozen
class Machine:
    """What micro-benchmarks found.

    Parameters
    ----------
    counter, kind
        What costs are counted in, and whether that was measured or simulated.
    memories
        By data accesses.
    code
        By fetches of instructions; their costs are per byte.
    macs
        Multiply-accumulates per count by type, from registers.
    fed_macs
        int8, by the kernels' inner loop, operands loaded.
    branch, call
        A taken branch; a call with its return.
    """

    counter: str
    kind: str
    memories: tuple[MemoryFound, ...]
    code: tuple[MemoryFound, ...]
    macs: Mapping[str, float]
    fed_macs: float | None
    branch: float | None
    call: float | None


def describe_machine(measurement: Measurement, where: str = "measurement") -> Machine:
    """Return what a measurement of micro-benchmarks says about a machine.

    Raises
    ------
    MeasurementError
        As `read_probes`.
    """
    readings = read_probes(measurement, where)

    def single(group: str) -> float | None:
        return next((one.cost for one in readings if one.probe.group == group), None)

    loop, branch, call, dot = (single(group) for group in ("loop", "branch", "call", "dot"))
    counter = main_counter(measurement)
    rise = RISE_TIMED if counter == "timer_ticks" else RISE
    return Machine(
        counter=counter, kind=measurement.header.kind,
        memories=tuple(_describe_memory(name, readings, rise)
                       for name in _names(readings, "chase")),
        code=tuple(_describe_code(name, readings, rise) for name in _names(readings, "fetch")),
        macs={one.probe.dtype: 1 / cost for one in readings if one.probe.group == "mac"
              and (cost := one.cost - (loop or 0.0) / one.probe.macs) > LEAST_MAC},
        fed_macs=1 / dot if dot else None,
        branch=None if branch is None or loop is None else branch - loop / BRANCHES,
        call=None if call is None or loop is None else call - loop)


def _names(readings: Iterable[Reading], group: str) -> tuple[str, ...]:
    groups = ("chase", "shuffled") if group == "chase" else (group,)
    return tuple(dict.fromkeys(one.probe.memory for one in readings if one.probe.group in groups))


def _describe_memory(name: str, readings: Sequence[Reading], rise: float) -> MemoryFound:
    mine = [one for one in readings if one.probe.memory == name]
    chases = [one for one in mine if one.probe.group in ("chase", "shuffled")]
    curves: dict[int, dict[int, float]] = {}
    for one in chases:
        curves.setdefault(one.probe.stride_bytes, {})[one.probe.extent_bytes] = one.cost
    widest = max(one.probe.extent_bytes for one in chases)
    strides = {stride: curve[widest] for stride, curve in curves.items() if widest in curve}
    levels = _choose_levels([find_levels(curve, rise) for curve in curves.values()
                             if len(curve) > 1] or [find_levels(curves[min(curves)], rise)])
    line, miss = _find_line(strides, levels[0].cost, rise)
    conflicts = {one.probe.units: one.cost for one in mine if one.probe.group == "conflict"}
    return MemoryFound(
        name=name, levels=levels, line_bytes=line, miss_cost=miss,
        ways=_find_ways(conflicts, levels[0].cost, miss) if line is not None else None,
        ways_tried=max(conflicts, default=0), read_bytes=_find_rate(mine, "read"),
        write_bytes=_find_rate(mine, "write"))


def _choose_levels(found: Sequence[tuple[Level, ...]]) -> tuple[Level, ...]:
    """Return the curve of most levels, of these the one whose first level is smallest.

    Steps below a line miss seldom, so that a rise may not show; steps above one use few lines of
    a fully associative cache, which then seems larger.
    """
    return max(found, key=lambda levels: (len(levels), -levels[0].size_bytes))


def _describe_code(name: str, readings: Sequence[Reading], rise: float) -> MemoryFound:
    sizes = {one.probe.extent_bytes: one.cost for one in readings
             if one.probe.group == "fetch" and one.probe.memory == name}
    # a cache holds the code around the slide, too, so never a power of two of slide
    levels = tuple(replace(level, size_bytes=1 << (level.size_bytes - 1).bit_length())
                   for level in find_levels(sizes, rise, noticed=NOTICED / 8))
    return MemoryFound(name=name, levels=levels, line_bytes=None, ways=None, ways_tried=0,
                       miss_cost=levels[-1].cost - levels[0].cost, read_bytes=1 / levels[-1].cost,
                       write_bytes=None)


def find_levels(costs: Mapping[int, float], rise: float = RISE,
                noticed: float = NOTICED) -> tuple[Level, ...]:
    """Return the levels of memory behind the cost of a step by bytes gone over.

    Parameters
    ----------
    costs
        Cost of a step by extent in bytes; extents double.
    rise, noticed
        Least factor, and least difference in the unit of the costs, that is a rise.

    Returns
    -------
    tuple of Level
        At least one.

    Notes
    -----
    While costs still rise from one extent to the next, they belong to no level: part of such a
    working set stays, as under a replacement that is not LRU.
    """
    def rises(before: float, after: float) -> bool:
        return after > rise * before and after > before + noticed

    sizes = sorted(costs)
    levels, held = [], [sizes[0]]
    for size, following in zip(sizes[1:], [*sizes[2:], None], strict=False):
        if not rises(_typical(costs, held), costs[size]):
            held.append(size)
        elif following is None or not rises(costs[size], costs[following]):
            levels.append(Level(size_bytes=held[-1], cost=_typical(costs, held)))
            held = [size]
    return (*levels, Level(size_bytes=held[-1], cost=_typical(costs, held)))


def _typical(costs: Mapping[int, float], sizes: Sequence[int]) -> float:
    return float(np.median([costs[size] for size in sizes]))


def _find_line(strides: Mapping[int, float], hit: float, rise: float) -> tuple[int | None, float]:
    """Return the stride from which on every access misses, and what a miss waits for."""
    miss = max(strides.values()) - hit
    if miss < NOTICED or miss < (rise - 1) * hit:
        return None, 0.0
    line = min(stride for stride, cost in strides.items() if cost - hit >= 0.9 * miss)
    return (line if len(strides) > 1 else None), miss


def _find_ways(conflicts: Mapping[int, float], hit: float, miss: float) -> int | None:
    """Most lines of one set that stay; None when all that were tried do, or none was."""
    held = [lines for lines, cost in conflicts.items() if cost - hit <= HIT_SHARE * miss]
    if not held or max(held) == max(conflicts):
        return None
    return max(held)


def _find_rate(readings: Iterable[Reading], group: str) -> float | None:
    found = [one for one in readings if one.probe.group == group]
    if not found:
        return None
    cost = max(found, key=lambda one: one.probe.extent_bytes).cost
    return 1 / cost if cost > 0 else None
