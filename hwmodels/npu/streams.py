"""What one stream engine asks of its interface and pool: bursts, bytes, lines of the NPU cache.

A contiguous walk is one run of all its bytes, aligned to a burst; any other walk is a run of
`run_bytes` after another, each in beats of its own. A run becomes the longest bursts of 8, 4, 2
and 1 beats that fit. Alone, in NPU cycles, with r NPU cycles in one of the pool's clock:

    channel    beats + write gap x bursts
    pool       r x max(beats, pool bytes / bytes per cycle), and r x latency for each access of
               its own where the pool is outside the chip: a run, or a line that does not follow
    fetch      max(channel, pool, and for reads bursts x r x latency / outstanding)
    hand       bytes / rate of an engine, or of weights: between the engine and the units
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hwmodels.board.npu import BURST_BEATS, Interface, Npu, Pool
from hwmodels.npu.epoch import NpuCacheRun, StreamEngine
from hwmodels.npu.machine import Flags, Floats, Ints, Machine, read_machine
from hwmodels.npu.table import EngineColumns, read_engines

Bursts = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The traffic of one engine over an epoch.

    Parameters
    ----------
    engine : StreamEngine
        Whose.
    pool, interface : Pool, Interface
        What it is bound to.
    bursts : tuple of int
        By length, in the order of `BURST_BEATS`.
    beats : int
        On the interface.
    wanted_bytes : int
        Asked for, all passes.
    pool_bytes : int
        Moved by the pool: whole beats, or whole lines where the cache misses.
    misses, hits : int
        Lines of the NPU cache; both 0 where it is not in the way.
    channel_cycles, pool_cycles, fetch_cycles, hand_cycles, latency_cycles : float
        NPU cycles it takes alone, by the equations of the module.
    """

    engine: StreamEngine
    pool: Pool
    interface: Interface
    bursts: Bursts
    beats: int
    wanted_bytes: int
    pool_bytes: int
    misses: int
    hits: int
    channel_cycles: float
    pool_cycles: float
    fetch_cycles: float
    hand_cycles: float
    latency_cycles: float


def split_run(run_bytes: int, width_bytes: int, max_beats: int) -> Bursts:
    """Return the bursts of one run, by length.

    Parameters
    ----------
    run_bytes : int
        Contiguous bytes, aligned.
    width_bytes : int
        Of a beat.
    max_beats : int
        Longest burst, one of `BURST_BEATS`.

    Returns
    -------
    tuple of int
        How many bursts of 1, 2, 4 and 8 beats.
    """
    left = -(-run_bytes // width_bytes)
    counts = [0, 0, 0, 0]
    for position in (3, 2, 1, 0):
        length = BURST_BEATS[position]
        if length <= max_beats:
            counts[position], left = divmod(left, length)
    return counts[0], counts[1], counts[2], counts[3]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StreamColumns:
    """The traffic of engines of epochs, as a `Stream` has it of one.

    Parameters
    ----------
    bursts : ndarray of int, (4, engines)
        By length.
    total, beats, wanted_bytes, pool_bytes, misses, hits : ndarray of int, (engines,)
        Of bursts, and as of a `Stream`.
    channel_cycles, pool_cycles, fetch_cycles, hand_cycles, latency_cycles : ndarray of float
        NPU cycles it takes alone. Of many machines those of pool, fetch and latency are of shape
        (n, engines).
    """

    bursts: Ints
    total: Ints
    beats: Ints
    wanted_bytes: Ints
    pool_bytes: Ints
    misses: Ints
    hits: Ints
    channel_cycles: Floats
    pool_cycles: Floats
    fetch_cycles: Floats
    hand_cycles: Floats
    latency_cycles: Floats


def form_streams(engines: Iterable[StreamEngine], npu: Npu) -> tuple[Stream, ...]:
    """Return the traffic of engines, the cache shared by all of them.

    Parameters
    ----------
    engines : iterable of StreamEngine
        Of one epoch.
    npu : Npu
        The machine.

    Returns
    -------
    tuple of Stream
        In the same order.
    """
    engines, machine = tuple(engines), read_machine(npu)
    columns = read_engines([engines], machine)
    return show_streams(engines, stream_engines(columns, machine), range(len(engines)), npu)


def show_streams(engines: Sequence[StreamEngine], columns: StreamColumns, places: range,
                 npu: Npu) -> tuple[Stream, ...]:
    """Return the traffic of engines, which stand at some places of columns."""
    own = slice(places.start, places.stop)
    values = [column[own].tolist() for column in (
        columns.beats, columns.wanted_bytes, columns.pool_bytes, columns.misses, columns.hits,
        columns.channel_cycles, columns.pool_cycles, columns.fetch_cycles, columns.hand_cycles,
        columns.latency_cycles)]
    return tuple(
        Stream(engine=engine, pool=npu.pool(engine.pool),
               interface=npu.interface(engine.interface), bursts=(one, two, four, eight),
               beats=beats, wanted_bytes=wanted, pool_bytes=moved, misses=misses, hits=hits,
               channel_cycles=channel, pool_cycles=pool, fetch_cycles=fetch, hand_cycles=hand,
               latency_cycles=latency)
        for engine, (one, two, four, eight), beats, wanted, moved, misses, hits, channel, pool,
        fetch, hand, latency in zip(engines, columns.bursts[:, own].T.tolist(), *values,
                                    strict=True))


def stream_engines(engines: EngineColumns, machine: Machine) -> StreamColumns:
    """Return the traffic of the engines of epochs.

    Parameters
    ----------
    engines : EngineColumns
        Of epochs that run one after another.
    machine : Machine
        What they run on.

    Notes
    -----
    The cache starts every epoch without the lines it needs: weights differ from epoch to epoch.
    It writes back and allocates on writes (its driver cleans it by address). Where all cached
    bytes of the epoch fit, a line misses once; where only the windows its engines walk do, once a
    pass. Else every visit of a line misses, as in a least-recently-used cache walked in a circle;
    runs that follow within a line are one visit. Runs whose stride is not known are lines apart.
    A contiguous walk shares its last line with what comes behind it and is charged its own bytes;
    a line written in parts is fetched before and written back after. Where engines take turns on a
    `shared` memory outside the chip, one's accesses end the other's run: each pays the latency.
    """
    npu, pool, out = machine.npu, engines.pool, engines.out
    width, external = machine.width[engines.interface], machine.external[engines.pool]
    run = np.where(engines.contiguous, engines.bytes, engines.run_bytes)
    runs, rest = engines.bytes // np.maximum(1, run), engines.bytes % np.maximum(1, run)
    longest = machine.longest[pool]
    bursts = engines.repeats * (runs * _split_runs(run, width, longest)
                                + _split_runs(rest, width, longest))
    total, beats = bursts.sum(axis=0), np.array(BURST_BEATS) @ bursts
    runs = runs + (rest > 0)
    accesses = np.where(engines.contiguous, 0, runs * engines.repeats)
    pool_bytes, misses, hits, accesses = _look_up(
        engines, machine, _Walk(run=run, runs=runs, moved=beats * width, accesses=accesses))
    ratio = machine.ratio[..., pool]
    latency = ratio * np.where(out, machine.write_latency[..., pool],
                               machine.read_latency[..., pool])
    accesses = np.where(_take_turns(engines, machine),
                        np.maximum(accesses, np.where(misses != 0, misses, total)), accesses)
    channel = beats + np.where(out, machine.gap[engines.interface] * total, 0.0)
    taken = ratio * pool_bytes / np.minimum(width, machine.bytes_per_cycle[pool])
    taken = np.where(external, taken + latency * accesses, taken)
    in_flight = np.where(out, 0, np.maximum(0, total - hits))
    wanted = engines.bytes * engines.repeats
    return StreamColumns(
        bursts=bursts, total=total, beats=beats, wanted_bytes=wanted, pool_bytes=pool_bytes,
        misses=misses, hits=hits, channel_cycles=channel, pool_cycles=taken,
        fetch_cycles=np.maximum(np.maximum(channel, taken),
                                in_flight * latency / npu.engine_outstanding),
        hand_cycles=wanted / _hand_rates(engines, npu), latency_cycles=latency)


def _split_runs(run_bytes: Ints, width: Ints, longest: Ints) -> Ints:
    """Bursts of runs by length, as `split_run` has them of one."""
    left = -(-run_bytes // width)
    counts = np.zeros((4, len(run_bytes)), np.int64)
    for position in (3, 2, 1, 0):
        length = BURST_BEATS[position]
        counts[position] = np.where(length <= longest, left // length, 0)
        left = left - counts[position] * length
    return counts


def _hand_rates(engines: EngineColumns, npu: Npu) -> Floats:
    """Bytes each engine passes between memory and units in a cycle."""
    rates = np.full(len(engines.bytes), float(npu.engine_bytes_per_cycle))
    streamed = engines.weights & (npu.staging is None)
    if npu.strided_read_bytes_per_cycle:
        rates[~engines.out & engines.strided] = npu.strided_read_bytes_per_cycle
    rates[streamed] = min(npu.engine_bytes_per_cycle, npu.weight_bytes_per_cycle)
    return rates


def _take_turns(engines: EngineColumns, machine: Machine) -> Flags:
    """Whether another engine of the epoch walks the same shared memory outside the chip."""
    apart = machine.external & machine.shared
    if not apart.any():
        return np.zeros(len(engines.pool), np.bool_)
    place = engines.epoch * len(apart) + engines.pool
    users = np.bincount(place, minlength=1)
    taken: Flags = apart[engines.pool] & (users[place] > 1)
    return taken


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Walk:
    """How engines walk: bytes of a run, runs of a pass, bytes of all beats, accesses."""

    run: Ints
    runs: Ints
    moved: Ints
    accesses: Ints


def _look_up(engines: EngineColumns, machine: Machine,
             walk: _Walk) -> tuple[Ints, Ints, Ints, Ints]:
    """Bytes the pools move, lines missed and hit, and the misses that do not follow another."""
    cache, held = machine.npu.cache, machine.cached[engines.pool]
    none = np.zeros_like(engines.bytes)
    if cache is None or not held.any():
        return walk.moved, none, none, walk.accesses
    line = cache.line_bytes
    requests = walk.runs * -(-walk.run // line)
    near = ~engines.contiguous & (engines.stride_bytes > 0) & (engines.stride_bytes <= line)
    visits = np.where(near, -(-walk.runs * engines.stride_bytes // line), requests)
    once = np.where(engines.strided, visits, np.minimum(visits, -(-engines.bytes // line)))
    whole = _sum_epochs(engines, np.where(held, engines.bytes, 0))
    window = np.where(engines.contiguous, line, np.where(
        engines.window_bytes != 0, engines.window_bytes, engines.bytes))
    windows = _sum_epochs(engines, np.where(held, window, 0))
    misses = np.where(whole <= cache.size_bytes, once, np.where(
        windows <= cache.size_bytes, once * engines.repeats, visits * engines.repeats))
    moved = misses * line
    moved = np.where(engines.contiguous, np.minimum(moved, walk.moved),
                     np.where(engines.out, 2 * moved, moved))
    accesses = np.where(engines.contiguous | near, 0, misses)
    accesses = np.where(engines.out & ~engines.contiguous, 2 * accesses, accesses)
    return (np.where(held, moved, walk.moved), np.where(held, misses, 0),
            np.where(held, requests * engines.repeats - misses, 0),
            np.where(held, accesses, walk.accesses))


def _sum_epochs(engines: EngineColumns, values: Ints) -> Ints:
    """Sum over the engines of an epoch, for each of them."""
    sums = np.zeros(len(engines.first) - 1, np.int64)
    np.add.at(sums, engines.epoch, values)
    found: Ints = sums[engines.epoch]
    return found


def count_cache(streams: Iterable[Stream]) -> NpuCacheRun:
    """Return the counters of the NPU cache over the streams of an epoch."""
    counts = {"in": [0, 0], "out": [0, 0]}
    for stream in streams:
        counts[stream.engine.direction][0] += stream.hits
        counts[stream.engine.direction][1] += stream.misses
    return NpuCacheRun(read_hit=counts["in"][0], read_miss=counts["in"][1],
                       write_hit=counts["out"][0], write_miss=counts["out"][1])
