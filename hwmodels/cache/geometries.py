"""Many cache geometries over one walk of a network's accesses.

Most touches find the line their set was touched with last, and such a touch changes no cache of at
least as many sets, whatever its policy: no other line of the set has come since. So the touches
are walked once through a direct-mapped filter of the fewest sets asked for, and every geometry
runs only over what the filter misses. Counts of misses stay exact.

References: Puzak, Analysis of cache replacement algorithms (1985), trace stripping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hwmodels.board.facts import Cache
from hwmodels.cache.running import describe_cache
from hwmodels.cache.set_associative import new_state
from hwmodels.cache.touches import HIT, Touches, visit_touches
from hwmodels.errors import BoardError
from hwmodels.kernel import Nest, Operand


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """Nests to walk, and which of their operands count.

    Parameters
    ----------
    nests, operands
        As of a kernel.
    chosen : tuple of bool
        Operands whose touches reach the cache.
    counted : bool
        Whether their misses count: data, and not the code that shares the cache.
    """

    nests: tuple[Nest, ...]
    operands: tuple[Operand, ...]
    chosen: tuple[bool, ...]
    counted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stripped:
    """Touches a filter missed, pass after pass.

    Parameters
    ----------
    line_bytes, sets : int
        Of the filter: what caches run over it must have, and the fewest sets.
    lines : ndarray of int64, (touches,)
        In order.
    counted : ndarray of bool, (touches,)
        Those of the last pass whose misses count.
    """

    line_bytes: int
    sets: int
    lines: np.ndarray
    counted: np.ndarray


def strip_touches(walks: Iterable[Walked], line_bytes: int, sets: int,
                  passes: int = 2) -> Stripped:
    """Walk nests through a direct-mapped filter and keep what it misses.

    Parameters
    ----------
    walks : iterable of Walked
        In program order; stores allocate.
    line_bytes, sets : int
        Of the filter, sets a power of two.
    passes : int
        Times all is walked: two for a warm cache.

    Returns
    -------
    Stripped
        For `sweep_misses`.
    """
    filter_ = Cache(name="filter", size_bytes=sets * line_bytes, line_bytes=line_bytes, ways=1)
    state, kept, counted = new_state(filter_), [], []
    known = tuple(walks)
    for turn in range(passes):
        for walk in known:
            pieces: list[np.ndarray] = []
            state = visit_touches(filter_, walk.nests, walk.operands, state, _keep(pieces),
                                  walk.chosen)
            kept += pieces
            count = sum(map(len, pieces))
            counted.append(np.full(count, walk.counted and turn == passes - 1))
    none = np.zeros(0, np.int64)
    return Stripped(line_bytes=line_bytes, sets=sets, lines=np.concatenate([none, *kept]),
                    counted=np.concatenate([none.astype(bool), *counted]))


def sweep_misses(stripped: Stripped, caches: Sequence[Cache]) -> tuple[int, ...]:
    """Return the misses of caches over stripped touches.

    Parameters
    ----------
    stripped : Stripped
        Of a network.
    caches : sequence of Cache
        Their lines are the filter's, their sets a multiple of the filter's.

    Returns
    -------
    tuple of int
        In the last pass, of what counts; one per cache.

    Raises
    ------
    BoardError
        When the touches were stripped for other caches.

    Notes
    -----
    From fewer sets to more; before caches of more sets, the touches are stripped once more.
    """
    misses = [0] * len(caches)
    for place in sorted(range(len(caches)), key=lambda place: fewest_sets([caches[place]])):
        cache = caches[place]
        if cache.line_bytes != stripped.line_bytes or cache.sets % stripped.sets:
            raise BoardError(
                f"cache {cache.name!r}: {cache.sets} sets of {cache.line_bytes} bytes; accepted: "
                f"a multiple of {stripped.sets} sets of {stripped.line_bytes}")
        if fewest_sets([cache]) > stripped.sets:
            stripped = _strip_further(stripped, fewest_sets([cache]))
        misses[place] = int((_missed(stripped, cache) & stripped.counted).sum())
    return tuple(misses)


def fewest_sets(caches: Sequence[Cache]) -> int:
    """Return sets of a filter that serves all these caches: the largest power of two in all."""
    return int(np.gcd.reduce([cache.sets & -cache.sets for cache in caches]))


def _strip_further(stripped: Stripped, sets: int) -> Stripped:
    filter_ = Cache(name="filter", size_bytes=sets * stripped.line_bytes, ways=1,
                    line_bytes=stripped.line_bytes)
    kept = _missed(stripped, filter_)
    return Stripped(line_bytes=stripped.line_bytes, sets=sets, lines=stripped.lines[kept],
                    counted=stripped.counted[kept])


def _missed(stripped: Stripped, cache: Cache) -> np.ndarray:
    from hwmodels.kernels import touch_stream

    found, left = np.empty_like(stripped.lines), np.empty_like(stripped.lines)
    touch_stream.meet_touches(
        len(stripped.lines), stripped.lines, np.zeros_like(stripped.lines),
        np.zeros(1, np.int64), describe_cache(cache), new_state(cache).words.copy(), found, left)
    missed: np.ndarray = found != HIT
    return missed


def _keep(pieces: list[np.ndarray]) -> Callable[[Touches], None]:
    return lambda touches: pieces.append(touches.lines[touches.found != HIT].copy())
