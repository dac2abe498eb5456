"""What one stream engine asks of its interface and pool: bursts, bytes, lines of the NPU cache.

A contiguous walk is one run of all its bytes, aligned to a burst; any other walk is a run of
`run_bytes` after another, each in beats of its own. A run becomes the longest bursts of 8, 4, 2
and 1 beats that fit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hwmodels.npu.epoch import BURST_BEATS, NpuCacheRun, StreamEngine
from hwmodels.npu.machine import Npu

Bursts = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The traffic of one engine over an epoch.

    Parameters
    ----------
    engine : StreamEngine
        Whose.
    runs : int
        Contiguous pieces, all passes.
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
    """

    engine: StreamEngine
    runs: int
    bursts: Bursts
    beats: int
    wanted_bytes: int
    pool_bytes: int
    misses: int = 0
    hits: int = 0


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
    Passes after the first hit when all cached bytes of the epoch fit, and miss otherwise, as a
    least-recently-used cache does with a cyclic walk. Writes pass through without allocating
    (assumption: no published counter shows otherwise).
    """
    engines = tuple(engines)
    cached = sum(engine.bytes for engine in engines
                 if engine.direction == "in" and _is_cached(engine, npu))
    fits = npu.cache is not None and cached <= npu.cache.size_bytes
    return tuple(_form_stream(engine, npu, fits) for engine in engines)


def _is_cached(engine: StreamEngine, npu: Npu) -> bool:
    return npu.cache is not None and npu.cache.enabled and npu.pool(engine.pool).cacheable


def _form_stream(engine: StreamEngine, npu: Npu, fits: bool) -> Stream:
    width = npu.interface(engine.interface).width_bytes
    run = engine.bytes if engine.pattern == "contiguous" else engine.run_bytes
    runs, rest = divmod(engine.bytes, run) if run else (0, 0)
    longest = npu.pool(engine.pool).burst_max_beats
    whole, last = split_run(run, width, longest), split_run(rest, width, longest)
    one, two, four, eight = (engine.repeats * (runs * n + m)
                             for n, m in zip(whole, last, strict=True))
    beats = one + 2 * two + 4 * four + 8 * eight
    runs += 1 if rest else 0
    stream = Stream(engine=engine, runs=runs * engine.repeats, bursts=(one, two, four, eight),
                    beats=beats, wanted_bytes=engine.bytes * engine.repeats,
                    pool_bytes=beats * width)
    if engine.direction == "out" or not _is_cached(engine, npu):
        return stream
    assert npu.cache is not None
    lines = runs * -(-run // npu.cache.line_bytes)
    misses = lines if fits else lines * engine.repeats
    return Stream(engine=engine, runs=stream.runs, bursts=stream.bursts, beats=beats,
                  wanted_bytes=stream.wanted_bytes, pool_bytes=misses * npu.cache.line_bytes,
                  misses=misses, hits=lines * engine.repeats - misses)


def count_cache(streams: Iterable[Stream], npu: Npu) -> NpuCacheRun:
    """Return the counters of the NPU cache over the streams of an epoch."""
    through = hits = misses = 0
    for stream in streams:
        hits, misses = hits + stream.hits, misses + stream.misses
        if stream.engine.direction == "out" and _is_cached(stream.engine, npu):
            through += sum(stream.bursts)
    return NpuCacheRun(read_hit=hits, read_miss=misses, write_through=through)
