"""Set-associative caches fed by access nests: exact counts, state carried from kernel to kernel.

    state = new_state(cache)
    counts, state = simulate_nests(cache, kernel.nests, kernel.operands, state)

A line buffer is a cache of one line: `line_buffer_of(memory)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from hwmodels.board.facts import Cache, Memory
from hwmodels.board.policies import MOST_TREE_WAYS, POLICIES, policy_of
from hwmodels.cache.counts import AccessCounts, OperandCounts, OwnerCounts
from hwmodels.errors import BoardError, KernelError, did_you_mean
from hwmodels.kernel import Nest, Operand
from hwmodels.nest.plan import Placed, Plan, find_plan
from hwmodels.nest.program import (
    CLOCK_WORD,
    MARK_WORD,
    MAX_OWNERS,
    OPERAND_WORD,
    OWNERS_WORD,
    RECORD_WORDS,
    WRITE_WORD,
    Program,
)
from hwmodels.nest.stream import Traffic

STATE_HEAD = 8
"""Words of a state before its entries; the first is the LFSR, or the next way where one
counter serves all sets."""

SEED = 0xACE1
"""Default start of the LFSR; any non-zero 16-bit value."""

MOST_KEPT = 1 << 12
"""Counts of owners kept, for most runs are made again."""

MOST_PLACED = 8
"""Sequences of owners for which a plan is kept with its marks."""

METHODS = ("auto", "accesses", "runs", "phases")
"""Ways to simulate, all exact; "auto" is the fastest, "phases" where LRU allows it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CacheState:
    """Contents of a cache between two kernels.

    Parameters
    ----------
    shape : tuple
        (sets, ways, line bytes, replacement) the words are of.
    words : ndarray of int64, read-only
        As `hwmodels.kernels.cache_nest` lays them out.
    owners : tuple of (str, str)
        (memory, role) of each owner number lines are marked with.
    """

    shape: tuple[int, int, int, str]
    words: np.ndarray
    owners: tuple[tuple[str, str], ...] = ()

    def __eq__(self, other: object) -> bool:
        """Whether shape, owners and every word of both are the same."""
        if not isinstance(other, CacheState):
            return NotImplemented
        return (self.shape == other.shape and self.owners == other.owners
                and np.array_equal(self.words, other.words))

    def __hash__(self) -> int:
        """Hash what equality compares."""
        return hash((self.shape, self.owners, self.words.tobytes()))


def line_buffer_of(memory: Memory) -> Cache:
    """Return the one-line cache a memory's line buffer is; its read misses are array reads."""
    return Cache(name=f"{memory.name} line buffer", size_bytes=memory.read_bytes,
                 line_bytes=memory.read_bytes, ways=1, allocate="read", write="through")


def new_state(cache: Cache, seed: int = SEED) -> CacheState:
    """Return an empty (cold) cache.

    Parameters
    ----------
    cache : Cache
        Its geometry and policy.
    seed : int
        Start of the LFSR, 1 to 65535.

    Returns
    -------
    CacheState
        No line valid.

    """
    check_cache(cache)
    if not 0 < seed < 1 << 16:
        raise BoardError(f"cache {cache.name!r}: LFSR seed {seed}; accepted: 1 to 65535")
    entries = cache.sets * cache.ways
    words = np.zeros(STATE_HEAD + entries + cache.sets, dtype=np.int64)
    start = POLICIES[cache.replacement].start
    words[0] = seed if start is None else start
    words[STATE_HEAD:STATE_HEAD + entries] = -1
    words.flags.writeable = False
    return CacheState(shape=_shape(cache), words=words)


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
    if not policy_of(cache.replacement, where).takes(cache.ways):
        raise BoardError(f"{where}: tree pseudo-LRU of {cache.ways} ways; accepted: a power of "
                         f"two up to {MOST_TREE_WAYS}")
    if cache.write not in ("back", "through"):
        raise BoardError(f"{where}: write {cache.write!r}; accepted: back, through")
    if cache.allocate not in ("read", "read_write"):
        raise BoardError(f"{where}: allocate {cache.allocate!r}; accepted: read, read_write")


def simulate_nests(cache: Cache, nests: Sequence[Nest], operands: Sequence[Operand],
                   state: CacheState, cached: Sequence[bool] | None = None,
                   method: str = "auto") -> tuple[AccessCounts, CacheState]:
    """Run a kernel's accesses through a cache.

    Parameters
    ----------
    cache : Cache
        Geometry and policies; switched off, every operand is only counted.
    nests : sequence of Loop or Access
        In program order.
    operands : sequence of Operand
        What they touch.
    state : CacheState
        From `new_state` or the kernel before; not changed.
    cached : sequence of bool, optional
        Per operand, whether its memory is looked up in this cache; by default all are. The
        others are only counted.
    method : str
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
    looked_up = _check_call(cache, operands, state, cached, method)
    plan = find_plan(nests, operands, looked_up, cache,
                     "phases" if method == "auto" else method)
    placed = plan.placed.get(state.owners)
    if placed is None:
        placed = _place(plan, cache, operands, looked_up, state.owners)
    words = state.words.copy()
    misses, leaving, touches = run_program(plan.program, placed.front, words,
                                           len(placed.owners))
    counts = AccessCounts(
        operands=tuple([count(*found) for count, *found in zip(
            placed.counts, misses[::3], misses[1::3], misses[2::3], strict=True)]),
        owners=tuple([_count_owner(*owner, evicted, written) for owner, evicted, written
                      in zip(placed.owners, leaving[::2], leaving[1::2], strict=False)
                      if evicted]),
        simulated_touches=touches)
    return counts, CacheState(shape=state.shape, words=words, owners=placed.owners)


def _check_call(cache: Cache, operands: Sequence[Operand], state: CacheState,
                cached: Sequence[bool] | None, method: str) -> tuple[bool, ...]:
    """Return which operands are looked up; refuse what does not fit."""
    if state.shape != _shape(cache):
        raise BoardError(f"cache {cache.name!r}: the state is of a cache of (sets, ways, line "
                         f"bytes, replacement) {state.shape}; accepted: {_shape(cache)}")
    if method not in METHODS:
        raise KernelError(f"method {method!r}; {did_you_mean(method, METHODS)}")
    looked_up = tuple(cached) if cached is not None else (True,) * len(operands)
    if len(looked_up) != len(operands):
        raise KernelError(f"{len(looked_up)} cached flags for {len(operands)} operands")
    return looked_up if cache.enabled else (False,) * len(operands)


def clean_state(state: CacheState, invalidate: bool = False) -> tuple[AccessCounts, CacheState]:
    """Write every dirty line back (and empty the cache), as cache maintenance does.

    Parameters
    ----------
    state : CacheState
        Not changed.
    invalidate : bool
        Whether lines are dropped, too.

    Returns
    -------
    AccessCounts
        Write-backs by owner; evictions count the lines cleaned.
    CacheState
        Nothing dirty. An emptied cache keeps its LFSR; round robin starts again at way zero.
    """
    sets, ways = state.shape[:2]
    words = state.words.copy()
    entries = words[STATE_HEAD:STATE_HEAD + sets * ways]
    dirty = (entries >= 0) & (entries & 1 == 1)
    counts = np.bincount((entries[dirty] >> 1) & MAX_OWNERS, minlength=len(state.owners))
    if invalidate:
        entries[:] = -1
        words[STATE_HEAD + sets * ways:] = 0
        start = POLICIES[state.shape[3]].start
        words[0] = words[0] if start is None else start
    else:
        entries[dirty] -= 1
    words.flags.writeable = False
    owners = tuple(OwnerCounts(memory=memory, role=role, evictions=count, write_backs=count)
                   for (memory, role), count in zip(state.owners, counts.tolist(), strict=True)
                   if count)
    return AccessCounts(operands=(), owners=owners), replace(state, words=words)


def _shape(cache: Cache) -> tuple[int, int, int, str]:
    return cache.sets, cache.ways, cache.line_bytes, cache.replacement


def _number_owners(known: tuple[tuple[str, str], ...], operands: Sequence[Operand],
                   looked_up: Sequence[bool]) -> tuple[tuple[tuple[str, str], ...], np.ndarray]:
    """Extend the owners by this kernel's operands; return them and each operand's number."""
    owners = list(known)
    numbers = np.zeros(len(operands), dtype=np.int64)
    for position, (operand, chosen) in enumerate(zip(operands, looked_up, strict=True)):
        owner = (operand.memory, operand.role)
        if chosen and owner not in owners:
            owners.append(owner)
        if chosen:
            numbers[position] = owners.index(owner)
    if len(owners) > MAX_OWNERS:
        raise KernelError(f"{len(owners)} pairs of memory and role; accepted: up to {MAX_OWNERS}")
    return tuple(owners), numbers


def _place(plan: Plan, cache: Cache, operands: Sequence[Operand], looked_up: Sequence[bool],
           known: tuple[tuple[str, str], ...]) -> Placed:
    """Give a plan's lines numbers of owners behind those of earlier kernels."""
    owners, numbers = _number_owners(known, operands, looked_up)
    front = plan.program.front.copy()
    records = front[plan.program.records].reshape(-1, RECORD_WORDS)
    records[:, MARK_WORD] = numbers[records[:, OPERAND_WORD]] << 1
    if cache.write == "back":
        records[:, MARK_WORD] |= records[:, WRITE_WORD]
    front[OWNERS_WORD] = len(owners)
    leaving = front[plan.program.leaving].reshape(-1, 2)
    for operand, write, lines in plan.program.skipped:
        # As many leave as came: those that stay are of the phases after them.
        leaving[numbers[operand]] += lines, lines * (write and cache.write == "back")
    placed = Placed(front=front, owners=owners, counts=tuple(
        _operand_counts(cache, *row)
        for row in zip(operands, looked_up, plan.traffic, strict=True)))
    if len(plan.placed) >= MOST_PLACED:
        plan.placed.clear()
    plan.placed[known] = placed
    return placed


def run_program(program: Program, front: np.ndarray,
                words: np.ndarray, known: int) -> tuple[list[int], list[int], int]:
    """Run a program.

    Parameters
    ----------
    program : Program
        Flattened for the cache.
    front : ndarray of int64
        The program's, with the marks of lines' owners in its records.
    words : ndarray of int64
        State before; the state after, in place.
    known : int
        Owners there are, those of earlier kernels included.

    Returns
    -------
    misses, leaving : list of int
        Three counters for each operand, two for each owner.
    touches : int
        Look-ups made.
    """
    from hwmodels.kernels.compiled import RUN_PROGRAM

    memory = program.take_memory(front)
    RUN_PROGRAM(memory, words)
    words.flags.writeable = False
    found = (memory[program.misses].tolist(), memory[program.leaving][:2 * known].tolist(),
             int(memory[CLOCK_WORD]))
    program.give_back(memory)
    return found


@lru_cache(maxsize=MOST_KEPT)
def _count_owner(memory: str, role: str, evicted: int, written: int) -> OwnerCounts:
    return OwnerCounts(memory=memory, role=role, evictions=evicted, write_backs=written)


def _operand_counts(cache: Cache, operand: Operand, cached: bool,
                    traffic: Traffic) -> Callable[[int, int, int], OperandCounts]:
    """Return what makes an operand's counts of its misses; the last ones made are kept."""
    make = partial(
        OperandCounts, operand=operand.name, role=operand.role, memory=operand.memory,
        cached=cached, reads=traffic.reads, writes=traffic.writes, read_bytes=traffic.read_bytes,
        write_bytes=traffic.write_bytes, read_touches=traffic.read_touches if cached else 0,
        write_touches=traffic.write_touches if cached else 0)
    # Under write-back bypasses alone are passed on.
    passed = None if cached and cache.write == "back" else traffic.write_touches * cached

    @lru_cache(maxsize=2)
    def count(read: int, write: int, bypass: int) -> OperandCounts:
        return make(read_misses=read, write_misses=write, write_bypasses=bypass,
                    write_throughs=bypass if passed is None else passed)

    return count
