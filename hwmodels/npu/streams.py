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

from collections.abc import Iterable
from dataclasses import dataclass

from hwmodels.board.npu import BURST_BEATS, Interface, Npu, NpuCache, Pool
from hwmodels.npu.epoch import NpuCacheRun, StreamEngine

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
    engines = tuple(engines)
    pools = {pool.name: pool for pool in npu.pools}
    interfaces = {interface.name: interface for interface in npu.interfaces}
    bound = [(engine, pools.get(engine.pool) or npu.pool(engine.pool),
              interfaces.get(engine.interface) or npu.interface(engine.interface))
             for engine in engines]
    cached = [engine for engine, pool, _ in bound if _is_cached(pool, npu)]
    kept = "nothing"
    if npu.cache is not None and cached:
        if sum(engine.bytes for engine in cached) <= npu.cache.size_bytes:
            kept = "all"
        elif sum(_window_bytes(engine, npu.cache) for engine in cached) <= npu.cache.size_bytes:
            kept = "windows"
    outside = [pool.name for _, pool, _ in bound if pool.external and pool.shared]
    return tuple(_form_stream(*parts, npu, kept, alone=outside.count(parts[1].name) < 2)
                 for parts in bound)


def _window_bytes(engine: StreamEngine, cache: NpuCache) -> int:
    """Return what of a walk must stay in the cache for each line to be fetched once a pass."""
    if engine.pattern == "contiguous":
        return cache.line_bytes
    return engine.window_bytes or engine.bytes


def _is_cached(pool: Pool, npu: Npu) -> bool:
    return pool.cacheable and npu.cache is not None and npu.cache.enabled


def _form_stream(engine: StreamEngine, pool: Pool, interface: Interface, npu: Npu,
                 kept: str, *, alone: bool) -> Stream:
    width, reads = interface.width_bytes, engine.direction == "in"
    run = engine.bytes if engine.pattern == "contiguous" else engine.run_bytes
    runs, rest = divmod(engine.bytes, run) if run else (0, 0)
    bursts = split_run(run, width, pool.burst_max_beats)
    if runs * engine.repeats != 1 or rest:
        last = split_run(rest, width, pool.burst_max_beats)
        one, two, four, eight = (engine.repeats * (runs * n + m)
                                 for n, m in zip(bursts, last, strict=True))
        bursts = (one, two, four, eight)
    beats = bursts[0] + 2 * bursts[1] + 4 * bursts[2] + 8 * bursts[3]
    runs += 1 if rest else 0
    pool_bytes, misses, hits = beats * width, 0, 0
    accesses = 0 if engine.pattern == "contiguous" else runs * engine.repeats
    if npu.cache is not None and _is_cached(pool, npu):
        misses, hits, accesses = _look_up(engine, run, runs, npu.cache.line_bytes, kept)
        pool_bytes = misses * npu.cache.line_bytes
        if engine.pattern == "contiguous":
            pool_bytes = min(pool_bytes, beats * width)
        elif not reads:
            pool_bytes, accesses = 2 * pool_bytes, 2 * accesses
    latency = pool.clock_ratio * (pool.read_latency_cycles if reads else
                                  pool.write_latency_cycles)
    total = sum(bursts)
    if not alone:
        accesses = max(accesses, misses or total)
    channel_cycles = beats + (0.0 if reads else interface.write_gap_cycles * total)
    pool_cycles = pool.clock_ratio * pool_bytes / min(width, pool.bytes_per_cycle)
    if pool.external:
        pool_cycles += latency * accesses
    in_flight = max(0, total - hits) if reads else 0
    rate = npu.engine_bytes_per_cycle
    if engine.operand == "weights" and npu.staging is None:
        rate = min(rate, npu.weight_bytes_per_cycle)
    elif reads and engine.pattern == "strided":
        rate = npu.strided_read_bytes_per_cycle or rate
    return Stream(
        engine=engine, pool=pool, interface=interface, bursts=bursts, beats=beats,
        wanted_bytes=engine.bytes * engine.repeats, pool_bytes=pool_bytes, misses=misses,
        hits=hits, channel_cycles=channel_cycles, pool_cycles=pool_cycles,
        fetch_cycles=max(channel_cycles, pool_cycles,
                         in_flight * latency / npu.engine_outstanding),
        hand_cycles=engine.bytes * engine.repeats / rate,
        latency_cycles=latency)


def _look_up(engine: StreamEngine, run_bytes: int, runs: int, line_bytes: int,
             kept: str) -> tuple[int, int, int]:
    """Lines missed and hit, and the misses that do not follow the line before."""
    requests = runs * -(-run_bytes // line_bytes)
    visits, follows = requests, engine.pattern == "contiguous"
    if not follows and 0 < engine.stride_bytes <= line_bytes:
        visits, follows = -(-runs * engine.stride_bytes // line_bytes), True
    once = visits if engine.pattern == "strided" else min(visits, -(-engine.bytes // line_bytes))
    misses = {"all": once, "windows": once * engine.repeats,
              "nothing": visits * engine.repeats}[kept]
    return misses, requests * engine.repeats - misses, 0 if follows else misses


def count_cache(streams: Iterable[Stream]) -> NpuCacheRun:
    """Return the counters of the NPU cache over the streams of an epoch."""
    counts = {"in": [0, 0], "out": [0, 0]}
    for stream in streams:
        counts[stream.engine.direction][0] += stream.hits
        counts[stream.engine.direction][1] += stream.misses
    return NpuCacheRun(read_hit=counts["in"][0], read_miss=counts["in"][1],
                       write_hit=counts["out"][0], write_miss=counts["out"][1])
