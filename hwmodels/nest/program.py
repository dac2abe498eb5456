"""Programs: flattened nests, laid out as the one array that cache kernels work in.

They are made where every operand begins in line zero, and then moved to where operands are: all
else hangs on the shape of nests alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from hwmodels.board.facts import Cache
from hwmodels.board.policies import POLICIES
from hwmodels.nest.windows import WINDOW_WORDS, find_alone, place_windows, share_lines

MAX_OWNERS = 127
HEADER_WORDS, TREE_WORDS, RECORD_WORDS, SET_WORDS = 46, 64, 16, 10
MARK_WORD, OPERAND_WORD, WRITE_WORD, POLICY_WORD = 5, 6, 4, 6
SETS_WORD, SET_SIZE_WORD, WORK_WORD, OWNERS_WORD, HITS_CHANGE_WORD = 1, 8, 11, 29, 36
FIRSTS_WORD, WINDOWS_WORD, SHARED_WORD, WORDS_WORD, BITS_WORD = 39, 40, 44, 45, 7
"""Places in a record, and in the header, as the kernel has them."""

STATE_HEAD = 8
"""Words of a state before its entries; the first is the LFSR, or the next way where one counter
serves all sets."""

MOST_SHARERS = 16
"""Notes of a set that the kernel puts in order, twice."""

OWNER_ROOM = 16
"""Owners up to which passes keep counters of every set."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Program:
    """A flattened tree, laid out as the one array `hwmodels.kernels.cache_nest` works in.

    Parameters
    ----------
    front : ndarray of int64
        How the array begins: header, operations, records of streams and blocks, their steps,
        guards, phase tables, loops, counters.
    words : int
        Size of the array; what follows the front is room for notes, told from stale ones by
        their stamps. Sets lie
        behind the last of the programs that are run one behind the other.
    changing : int
        Words at the beginning of the front that a run changes and does not put back.
    records : slice
        The records, `RECORD_WORDS` each.
    misses, leaving, firsts : slice
        Three counters per operand, two per owner, and room for the first lines of each set; none
        of those where order of touches alone does not tell what leaves.
    passes : bool
        Some loop is run as passes.
    operands, told : ndarray
        Of each record, its operand, and whether bits tell if its lines are there.
    stored : tuple of int
        Operands stored to, where windows tell of their lines.
    skipped : tuple of (int, bool, int)
        Operand, whether stores, and lines filled by phases that are not run: the counters begin
        with them.
    """

    front: np.ndarray
    words: int
    changing: int
    records: slice
    misses: slice
    leaving: slice
    firsts: slice
    passes: bool
    operands: np.ndarray
    told: np.ndarray
    stored: tuple[int, ...]
    skipped: tuple[tuple[int, bool, int], ...] = ()

    @property
    def has_firsts(self) -> bool:
        """Whether there is room for the first lines of sets."""
        return bool(self.firsts.start < self.firsts.stop)

    def move(self, lines: Sequence[int], line_bytes: int) -> Program:
        """Return the same program with each operand as many lines further on."""
        moved, far = self.front.copy(), np.array(lines, dtype=np.int64)
        records = moved[self.records].reshape(-1, RECORD_WORDS)
        records[:, 0] += far[self.operands] * line_bytes
        windows = moved[moved[WINDOWS_WORD]:moved[WINDOWS_WORD + 1]].reshape(-1, WINDOW_WORDS)
        if len(windows):
            windows[:, 0] += far
            windows[:, 2:4] -= far[:, None]
            windows[:, 4:] = find_alone(windows[:, :2].tolist())
            records[self.told, BITS_WORD] -= far[self.operands[self.told]]
            moved[SHARED_WORD] = share_lines(windows[list(self.stored)])
        return replace(self, front=moved)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a program is laid out of.

    Parameters
    ----------
    filled : dict of str to ndarray of int64
        What its front holds, by name.
    rooms : dict of str to int
        Words behind it.
    depths : int
        Loops around the innermost stream, and one.
    allocates : bool
        Stores that miss allocate, or there are none.
    passes : tuple of (int, int, int)
        Words of a set in a loop run as passes, of its counters, and its snapshots.
    """

    filled: dict[str, np.ndarray]
    rooms: dict[str, int]
    depths: int
    allocates: bool
    passes: tuple[int, int, int]


def lay_out(cache: Cache, parts: Parts, told: np.ndarray,
            skipped: Sequence[tuple[int, bool, int]]) -> Program:
    """Put the parts, then the rooms, behind a header that says where each begins.

    Parameters
    ----------
    cache : Cache
        Geometry and policy.
    parts : Parts
        Of the program.
    told : ndarray of bool
        Of the program.
    skipped : sequence of (int, bool, int)
        Of the program.
    """
    filled = parts.filled
    for operand, write, lines in skipped:
        filled["misses"][3 * operand + write] += lines
    places, end = {}, HEADER_WORDS + TREE_WORDS
    for name, size in (*((name, len(part)) for name, part in filled.items()),
                       *parts.rooms.items()):
        places[name] = slice(end, end + size)
        end += size
    # The outermost loop sees all sets: the first clashes are all stamped zero.
    filled["loops"][5] = places["clashes"].start
    work = filled["work"].reshape(-1, RECORD_WORDS)
    whose, stored = work[:, OPERAND_WORD].copy(), ()
    if len(filled["windows"]):
        place_windows(filled["windows"], places["settled"].start)
        work[told, BITS_WORD] = filled["windows"].reshape(-1, WINDOW_WORDS)[
            whose[told], 2 + work[told, WRITE_WORD]]
        stored = tuple(sorted({*whose[work[:, WRITE_WORD] > 0].tolist()}))
    header = _make_header(cache, parts, places, end)
    header += _tree_masks(cache.ways if POLICIES[cache.replacement].tree else 1)
    return Program(front=np.concatenate([np.array(header, dtype=np.int64), *filled.values()]),
                   words=end, changing=places["work"].start, records=places["work"],
                   misses=places["misses"], leaving=places["leaving"],
                   firsts=places["firsts"], passes="passes" in places, operands=whose,
                   told=told, stored=stored, skipped=tuple(skipped))


def _make_header(cache: Cache, parts: Parts, places: dict[str, slice], end: int) -> list[int]:
    """Say where each part begins, in the order of `hwmodels.kernels.cache_words`."""
    start = {name: place.start for name, place in places.items()}
    policy = POLICIES[cache.replacement]
    mask = cache.sets - 1 if cache.sets & (cache.sets - 1) == 0 else -1
    header = [0, cache.sets, mask, cache.ways, cache.line_bytes.bit_length() - 1,
              policy.number, parts.allocates, 0, SET_WORDS + cache.ways,
              start["code"], places["code"].stop, start["work"], start["steps"], parts.depths,
              start["guards"], 2 + parts.depths, start["rows"], start["cursors"], start["loops"],
              start["lists"], start["active"], start["misses"],
              start["leaving"] - start["misses"],
              start["clashes"], start["known"], 0,
              0, start["notes"], 0, 0, start["inner"],
              start.get("passes", end), *parts.passes, start["nexts"]]
    return header + [0] * (HITS_CHANGE_WORD - len(header)) + [
        policy.hits_change, not policy.sets_apart,
        places["notes"].stop - start["notes"] - 4 * MOST_SHARERS, 0,
        start["windows"], places["windows"].stop, start["settled"], places["settled"].stop, 0, end]


@lru_cache
def _tree_masks(ways: int) -> list[int]:
    """Per way, the bits of a pseudo-LRU tree its touch keeps and those it sets.

    Every node above the way points to its other half: right is one.
    """
    masks = []
    for way in range(TREE_WORDS // 2):
        keep, point, node, half = -1, 0, 1, ways // 2
        while half:
            keep &= ~(1 << node)
            right = bool(way & half)
            point |= 0 if right else 1 << node
            node, half = 2 * node + right, half // 2
        masks += [keep, point]
    return masks
