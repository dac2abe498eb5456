"""What ST's tools say of an epoch: the compiler's estimate, and the counters of its profiler.

Counters carry the names a measurement gives them (`calibration.importers.neural_art_profiler`), so
the two stand side by side. The compiler estimates, in NPU cycles,

    max_cycles = max(compute_cycles, over pools: beats x frequency ratio)

A beat moves up to `byte_width_bytes`; every run of a walk that is not contiguous takes beats of
its own. Some compiler versions add the reads and writes of a pool, others take the longer
(`Npu.sums_directions`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

from calibration.importers.neural_art_lines import ENGINES
from hwmodels.files import JsonObject
from hwmodels.quantities import sum_by_key
from hwmodels.schedule import BURST_BEATS, Npu, Task, TaskRun, Transfer
from hwmodels.schedule.traffic import TransferRun
from hwmodels.schedule.units import estimate_unit_cycles
from twin.runtimes.task_lines import CYCLES, Counters, describe_moves, describe_task

_ENGINE = re.compile(r"engine_(\d+)_(in|out)(?:_busif\d+_\w+)?_active_cycles")

CACHE = ("read_hit", "read_miss", "read_alloc_miss", "read_evict", "write_hit", "write_miss",
         "write_alloc_miss", "write_through")
"""Counters of the NPU cache, as its monitor names them; what is not modelled is 0."""


def estimate_max_cycles(task: Task, npu: Npu) -> int:
    """Return the compiler's estimate of an epoch, by the equation of the module."""
    longest = max((estimate_unit_cycles(work, npu) for work in task.units), default=0)
    beats = sum_by_key(_lane_beats(one, npu) for one in task.transfers)
    return max([longest, *(int(count * npu.pool(name).frequency_ratio)
                           for (name, _), count in beats.items())])


def _lane_beats(one: Transfer, npu: Npu) -> tuple[tuple[str, object], int]:
    """Return what carries a transfer (a pool, and its direction or channel), and its beats."""
    pool = npu.pool(one.pool)
    lane = one.direction if pool.serialises and not npu.sums_directions else None
    return ((pool.name, lane if pool.serialises else one.channel),
            _count_beats(one, pool.byte_width_bytes))


def _count_beats(transfer: Transfer, width: int) -> int:
    """Beats of a transfer in the compiler's width of a pool, a last part dropped."""
    run = max(1, transfer.run_bytes)
    if transfer.pattern == "contiguous" or run >= transfer.bytes:
        return transfer.repeats * transfer.bytes // width
    return transfer.repeats * (transfer.bytes // run) * -(-run // width)


def describe_counters(counters: Counters) -> dict[str, float]:
    """Return the lines of an epoch's report by name, of one or of several added."""
    return dict(describe_task(counters, (
        *CYCLES, ("max_cycles", "max of the compiler, NPU cycles"), ("ops", "ops")),
        _describe_machine(counters)))


def _describe_machine(counters: Counters) -> Iterator[tuple[str, float]]:
    """Yield interfaces, engines by direction, as two schedules number them differently, cache."""
    yield from describe_moves(counters, r"busif\d+", "busif (total)", BURST_BEATS)
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
    for name in CACHE:
        if (count := counters.get(f"npu_cache_{name}")) is not None:
            yield f"NPU cache, {name.replace('_', ' ')}", count


def describe_runs(runs: Iterable[TaskRun]) -> list[JsonObject]:
    """Return what a document says of epochs: estimate, engines, bus interfaces, NPU cache.

    An engine's bytes are whole beats of its interface; bursts are by length.
    """
    return [{"max_cycles": estimate_max_cycles(run.task, run.npu),
             "engines": [{
                 "index": one.transfer.channel, "direction": one.transfer.direction,
                 "busif": one.transfer.port, "pool": one.transfer.pool, "bytes": _moved(one),
                 "buffer_bytes": one.transfer.buffer_bytes,
                 "active_cycles": active_cycles(one, run), "bursts": list(one.bursts)}
                 for one in run.transfers],
             "busif": _sum_interfaces(run),
             "npu_cache": {name: _count_cache(run).get(name, 0) for name in CACHE}}
            for run in runs]


def active_cycles(one: TransferRun, run: TaskRun) -> int:
    """Return the cycles an engine had a burst under way, as a debug unit counts them.

    Notes
    -----
    An engine in is active while it fetches and while the units take what it fetched, and stalled
    while its buffer is full; an engine out is active while it is open, as it waits for data:

        in   min(core, start + latency + fetch + max(compute, hand))        out   core
    """
    if one.transfer.direction == "out":
        return run.core_npu_cycles
    own = one.latency_cycles + one.fetch_cycles + max(run.compute_cycles, one.hand_cycles)
    return min(run.core_npu_cycles, run.task.start_cycles + math.ceil(own))


def _moved(one: TransferRun) -> int:
    return one.beats * one.port.width_bytes


def _sum_interfaces(run: TaskRun) -> list[JsonObject]:
    """Bytes and bursts of all interfaces of the machine; none without engines and units."""
    found: list[JsonObject] = []
    for port in () if run.task.on_host else run.npu.interfaces:
        entry: JsonObject = {"name": port.name}
        for way, direction in (("read", "in"), ("write", "out")):
            own = [one for one in run.transfers
                   if (one.transfer.port, one.transfer.direction) == (port.name, direction)]
            entry[f"{way}_bytes"] = sum(map(_moved, own))
            entry[f"{way}_bursts"] = [sum(one.bursts[place] for one in own) for place in range(4)]
        found.append(entry)
    return found


def _count_cache(run: TaskRun) -> dict[str, int]:
    return sum_by_key(
        (f"{'read' if one.transfer.direction == 'in' else 'write'}_{name}", amount)
        for one in run.transfers for name, amount in (("hit", one.hits), ("miss", one.misses)))


def count_runs(runs: Iterable[TaskRun]) -> list[dict[str, float]]:
    """Return what the profiler counts of epochs, by its names."""
    return [_count_run(run) for run in runs]


def _count_run(run: TaskRun) -> dict[str, float]:
    counters = _count_mapping(run.task) | {
        "compute_cycles": run.compute_cycles,
        "max_cycles": estimate_max_cycles(run.task, run.npu)}
    if not run.transfers:
        return counters
    counters["core_npu_cycles"] = run.core_npu_cycles
    for pool in run.pools:
        for name in (f"compiler_pool_{pool.name}", f"pool_{pool.name}"):
            counters[f"{name}_read_bytes"] = pool.read_bytes
            counters[f"{name}_write_bytes"] = pool.write_bytes
    # The profiler numbers interfaces, whatever the board calls them.
    numbers = {port.name: f"busif{place}" for place, port in enumerate(run.npu.interfaces)}
    for part in _sum_interfaces(run):
        for way in ("read", "write"):
            name = f"{numbers[part['name']]}_{way}"
            counters[f"{name}_bytes"] = part[f"{way}_bytes"]
            counters |= {f"{name}_bursts_{beats}": count for beats, count in zip(
                BURST_BEATS, part[f"{way}_bursts"], strict=True)}
    for one in run.transfers:
        engine = one.transfer
        name = f"engine_{engine.channel}_{engine.direction}_{numbers[engine.port]}_{engine.pool}"
        counters[f"{name}_active_cycles"] = active_cycles(one, run)
        counters[f"{name}_buffer_bytes"] = engine.buffer_bytes
    cache = _count_cache(run)
    return counters | {f"npu_cache_{name}": float(cache.get(name, 0)) for name in CACHE}


def _count_mapping(task: Task) -> dict[str, float]:
    """Operations and units, stream engines among them, as the profiler lists them."""
    hosted = task.kind in ("sw", "hybrid")
    counters = {f"operation_{'sw' if hosted else 'hw'}.{name}": float(count)
                for name, count in task.operations}
    ways = [one.direction for one in task.transfers]
    counters |= {f"operation_hw.{name}": float(ways.count(way))
                 for name, way in (("dmain", "in"), ("dmaout", "out")) if way in ways}
    if hosted:
        counters["unit_PROCESSOR"] = 1.0
    for unit in task.units:
        key = f"unit_{unit.kind}"
        counters[key] = counters.get(key, 0.0) + unit.count
    return counters | ({ENGINES: float(len(ways))} if ways else {})
