"""Set-associative caches fed by access nests: exact counts, state carried from kernel to kernel.

    state = new_state(cache)
    counts, state = simulate_nests(cache, kernel.nests, kernel.operands, state)

A line buffer is a cache of one line: `line_buffer_of(memory)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hwmodels.board.facts import Cache, Memory
from hwmodels.board.policies import MOST_TREE_WAYS, policies_of
from hwmodels.cache import AccessCounts
from hwmodels.cache.running import Call, number_owners, run_plans
from hwmodels.errors import BoardError, KernelError, check_known, check_word
from hwmodels.frozen import NamedTexts, entity
from hwmodels.kernel import Kernel, Nest, Operand
from hwmodels.nest.plan import plan_nests

SEED = 0xACE1
"""Default start of the LFSR; any non-zero 16-bit value."""

METHODS = ("runs", "accesses")
"""Ways to simulate, both exact: without iterations that change nothing; one access after the
other."""

STATE_HEAD = 8
"""Words of a state before its entries; the first is the LFSR, or the next way where one counter
serves all sets."""


@entity
class CacheState:
    """Contents of a cache between two kernels.

    Parameters
    ----------
    shape
        (sets, ways, line bytes, replacement) the words are of.
    words : ndarray of int64, read-only
        As `hwmodels.kernels.cache_words` has them, under one policy behind the other.
    owners : tuple of (str, str)
        (memory, role) of each owner number lines are marked with.
    """

    shape: tuple[int, int, int, str]
    words: np.ndarray
    owners: NamedTexts = ()

    def __eq__(self, other: object) -> bool:
        """Whether shape, owners and every word of both are the same."""
        if not isinstance(other, CacheState):
            return NotImplemented
        return (self.shape == other.shape and self.owners == other.owners
                and np.array_equal(self.words, other.words))


def line_buffer_of(memory: Memory) -> Cache:
    """Return the one-line cache a memory's line buffer is; its read misses are array reads."""
    return Cache(name=f"{memory.name} line buffer", size_bytes=memory.read_bytes,
                 line_bytes=memory.read_bytes, ways=1, allocate="read", write="through")


def new_state(cache: Cache, seed: int = SEED) -> CacheState:
    """Return an empty (cold) cache.

    Parameters
    ----------
    cache
        Its geometry and policy.
    seed
        Start of the LFSR, 1 to 65535.

    Returns
    -------
    CacheState
        No line valid.

    """
    check_cache(cache)
    if not 0 < seed < 1 << 16:
        raise BoardError(f"cache {cache.name!r}: LFSR seed {seed}; accepted: 1 to 65535")
    entries, policies = cache.sets * cache.ways, policies_of(cache.replacement)
    words = np.zeros((len(policies), STATE_HEAD + entries + cache.sets), dtype=np.int64)
    words[:, 0] = [seed if one.start is None else one.start for one in policies]
    words[:, STATE_HEAD:STATE_HEAD + entries] = -1
    words.flags.writeable = False
    return CacheState(shape=_shape(cache), words=words.ravel())


def check_cache(cache: Cache) -> None:
    """Refuse a cache whose geometry or policy the model cannot run.

    Raises
    ------
    BoardError
        Naming the cache, the value and what would be accepted.
    """
    where = f"cache {cache.name!r}"
    if cache.line_bytes < 1 or cache.line_bytes & (cache.line_bytes - 1):
        raise BoardError(f"{where}: line of {cache.line_bytes} bytes; accepted: a power of two")
    if cache.ways < 1 or cache.sets < 1:
        raise BoardError(f"{where}: {cache.size_bytes} bytes in {cache.ways} ways of "
                         f"{cache.line_bytes} bytes; accepted: at least one set of one way")
    if cache.size_bytes != cache.sets * cache.ways * cache.line_bytes:
        raise BoardError(f"{where}: {cache.size_bytes} bytes; accepted: a multiple of ways x "
                         f"line ({cache.ways * cache.line_bytes})")
    for policy in policies_of(cache.replacement, where):
        if not policy.takes(cache.ways):
            raise BoardError(
                f"{where}: tree pseudo-LRU of {cache.ways} ways; accepted: a power of two up to "
                f"{MOST_TREE_WAYS}" if policy.tree else
                f"{where}: {policy.name} chooses a way that none of {cache.ways} is; accepted: as "
                "many as it is made for")
    check_word(f"{where}: write", cache.write, ("back", "through"), BoardError)
    check_word(f"{where}: allocate", cache.allocate, ("read", "read_write"), BoardError)


def simulate_nests(cache: Cache, nests: Sequence[Nest], operands: Sequence[Operand],
                   state: CacheState, cached: Sequence[bool] | None = None,
                   method: str = "runs") -> tuple[AccessCounts, CacheState]:
    """Run a kernel's accesses through a cache.

    Parameters
    ----------
    cache
        Geometry and policies; switched off, every operand is only counted.
    nests : sequence of Loop or Access
        In program order.
    state
        From `new_state` or the kernel before; not changed.
    cached
        Per operand, whether its memory is looked up in this cache; by default all are. The
        others are only counted.
    method
        One of `METHODS`; results are identical.

    Returns
    -------
    AccessCounts
        Per operand and per owner.
    CacheState
        After the kernel.

    Raises
    ------
    KernelError
        When a nest is malformed or leaves its operand.
    BoardError
        When the state belongs to another cache.

    Notes
    -----
    An access touches every line it overlaps, in ascending order. A load or an allocating store
    that misses fills an empty way if there is one, the lowest first, and else replaces. A store
    marks its line dirty under write-back and makes its operand the line's owner; a load owns
    only the line it fills. A store that does not allocate changes nothing.
    """
    (counts,), state = _simulate(cache, [(nests, operands, cached)], state, method)
    return counts, state


def simulate_kernels(cache: Cache, kernels: Sequence[Kernel], state: CacheState,
                     cached: Sequence[tuple[bool, ...]] | None = None, method: str = "runs",
                     ) -> tuple[tuple[AccessCounts, ...], CacheState]:
    """Run kernels' accesses through a cache, one kernel behind the other, by one call for all.

    Parameters
    ----------
    cache, state, method
        As for `simulate_nests`. Under several policies (`hwmodels.board.policies.policies_of`)
        all is counted for each.
    kernels
        In order.
    cached
        Per kernel and operand, whether its memory is looked up; by default all are.

    Returns
    -------
    tuple of AccessCounts
        Per policy and kernel, as `simulate_nests` has them.
    CacheState
        After the last.
    """
    return _simulate(cache, [
        (kernel.nests, kernel.operands, looked_up) for kernel, looked_up in zip(
            kernels, cached or (None,) * len(kernels), strict=True)], state, method)


def _simulate(
        cache: Cache,
        kernels: Sequence[tuple[Sequence[Nest], Sequence[Operand], Sequence[bool] | None]],
        state: CacheState, method: str) -> tuple[tuple[AccessCounts, ...], CacheState]:
    """Run accesses of kernels from a state; return what each counts and the state after them."""
    if not kernels:
        return (), state
    check_known("method", method, METHODS, KernelError)
    calls: list[Call] = []
    for nests, operands, cached in kernels:
        looked_up = (True,) * len(operands) if cached is None else tuple(cached)
        if len(looked_up) != len(operands):
            raise KernelError(f"{len(looked_up)} cached flags for {len(operands)} operands")
        if not cache.enabled:
            looked_up = (False,) * len(operands)
        plan = plan_nests(tuple(nests), tuple(operands), looked_up, cache, method)
        calls.append((plan, operands, looked_up))
    if state.shape != _shape(cache):
        raise BoardError(f"cache {cache.name!r}: the state is of a cache of (sets, ways, line "
                         f"bytes, replacement) {state.shape}; accepted: {_shape(cache)}")
    # Owners of all are numbered before the first runs.
    owners, numbers = number_owners(
        state.owners, [one for _, operands, _ in calls for one in operands],
        [chosen for *_, looked_up in calls for chosen in looked_up])
    words = state.words.copy()
    found = run_plans(cache, calls, owners, numbers, words)
    words.flags.writeable = False
    return found, CacheState(shape=state.shape, words=words, owners=owners)


def _shape(cache: Cache) -> tuple[int, int, int, str]:
    return cache.sets, cache.ways, cache.line_bytes, cache.replacement
