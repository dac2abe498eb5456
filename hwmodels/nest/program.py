"""How the nests of a kernel are simulated.

Trees of address streams are flattened once to the integer arrays the cache kernel interprets, then
reused.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hwmodels.board.facts import Cache
from hwmodels.board.policies import POLICIES
from hwmodels.kernel import Guard, Operand
from hwmodels.nest.blocks import (
    EVER,
    Block,
    Geometry,
    Piece,
    choose_chunk,
    count_iterations,
    find_blocks,
    find_pieces,
    join_pieces,
)
from hwmodels.nest.passes import MAX_DIMENSIONS, Mover, find_movers
from hwmodels.nest.rewrite import walk_streams
from hwmodels.nest.stream import Repeat, Stream, Tree
from hwmodels.nest.windows import count_words, find_windows, place_windows, share_lines

LOOP, END, LEAF, PHASE, PHASE_END, PASSES, PASSES_END = range(7)
"""Operations: enter a loop, close it, run a loop that holds nothing but streams, take the next
row of a phase table, go on to another row unless the entry ends; enter a loop run as passes,
close it."""

FULL, MIDDLE, PLAIN = -1, -2, -3
"""Extents that the row of the phase table in force gives."""

MAX_OWNERS = 127
MOST_SPARE_WORDS = 1 << 17
"""Size up to which the array of a finished run is kept: a megabyte for each of many programs."""

HEADER_WORDS, TREE_WORDS, RECORD_WORDS, SET_WORDS = 45, 64, 16, 10
MARK_WORD, OPERAND_WORD, WRITE_WORD, POLICY_WORD, TALLY_WORD = 5, 6, 4, 6, 7
STAMP_WORD, CLOCK_WORD, OWNERS_WORD, HITS_CHANGE_WORD, FIRSTS_WORD = 7, 26, 29, 36, 39
WINDOWS_WORD, SETTLED_WORD, SHARED_WORD, BITS_WORD, KIND_WORD = 40, 42, 44, 7, 8
"""Places in a record and a set, and in the header, as the kernel has them."""

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
        guards, phase tables, loops, counters, sets.
    words : int
        Size of the array; what follows the front is room for notes, told from stale ones by
        their stamps.
    changing : int
        Words at the beginning of the front that a run changes and does not put back.
    records : slice
        The records, `RECORD_WORDS` each.
    misses, leaving, sets, firsts : slice
        Three counters per operand, two per owner, the sets, and room for the first lines of each;
        none of those where order of touches alone does not tell what leaves.
    passes : bool
        Some loop is run as passes.
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
    sets: slice
    firsts: slice
    passes: bool
    skipped: tuple[tuple[int, bool, int], ...] = ()

    @property
    def has_firsts(self) -> bool:
        """Whether there is room for the first lines of sets."""
        return bool(self.firsts.start < self.firsts.stop)


@dataclass(slots=True, kw_only=True)
class _Flat:
    """What flattening has made so far."""

    geometry: Geometry
    grouped: bool
    code: list[list[int]] = field(default_factory=list)
    places: list[tuple[Stream | Block | Piece | Mover, int]] = field(default_factory=list)
    phases: list[np.ndarray] = field(default_factory=list)
    passes: bool = False
    skipped: list[tuple[int, bool, int]] = field(default_factory=list)


def flatten_tree(tree: Tree, cache: Cache, operands: Sequence[Operand], *,
                 allocates: bool = True, grouped: bool = True) -> Program:
    """Flatten a tree of streams.

    Parameters
    ----------
    tree : tuple of Repeat or Stream
        In program order.
    cache : Cache
        What it runs through.
    operands : sequence of Operand
        Those its streams are of.
    allocates : bool
        Stores that miss allocate, or there are none.
    grouped : bool
        Whether loops may be run line by line; if not, every access is looked up.

    Returns
    -------
    Program
        Neighbouring streams outside a loop become a leaf of one iteration.
    """
    flat = _Flat(grouped=grouped, geometry=Geometry(
        line_bytes=cache.line_bytes, sets=cache.sets, ways=cache.ways, allocates=allocates,
        hits_change=POLICIES[cache.replacement].hits_change,
        sets_apart=POLICIES[cache.replacement].sets_apart))
    _flatten_body(tree, 0, flat)
    depths = max([len(place.steps_bytes) for place, _ in flat.places], default=0) + 1
    records: list[list[int]] = []
    guards: list[Guard] = []
    inner: list[tuple[int, int]] = []
    for place, depth in flat.places:
        step = _pad(place.steps_bytes, depths)[depth]
        if isinstance(place, Mover):
            records.append(_record_mover(place, step, len(guards), len(inner)))
            inner += place.inner + ((1, 0),) * (MAX_DIMENSIONS - len(place.inner))
        else:
            records.append(_record(place, step, len(guards)))
            guards += place.guards
    front = {
        "code": flat.code,
        "cursors": [[row] for row in itertools.accumulate(map(len, flat.phases), initial=0)],
        "loops": [[0] * 9] * (depths + 1),
        "misses": [[0] * 3] * len(operands), "leaving": [[0] * 2] * (MAX_OWNERS + 1),
        # From here on a run leaves all as it was, or stamped, or filled in before it is used.
        "work": records,
        "guards": [[guard.offset, guard.limit, *_pad(guard.steps, depths)] for guard in guards],
        "steps": [_pad(place.steps_bytes, depths) for place, _ in flat.places],
        "rows": [row for rows in flat.phases for row in rows.tolist()],
        "inner": inner,
        "windows": find_windows(operands, cache.line_bytes) if flat.grouped and not (
            flat.geometry.hits_change) else [],
    }
    rooms = {
        "lists": (cache.sets + 1) * depths, "active": len(records), "nexts": len(records),
        "clashes": cache.sets * (depths + 1), "known": 5 * depths * cache.sets,
        "notes": 4 * (MOST_SHARERS + 4 * cache.sets + cache.sets * cache.ways
                      + 2 * len(records)),
    }
    tally = 3 * len(operands) + 2 * OWNER_ROOM
    snapshots = 2 if POLICIES[cache.replacement].stack else min(cache.ways, 8) + 1
    pass_words = 3 + tally + snapshots * (cache.ways + 1 + tally)
    if flat.passes:
        rooms["passes"] = cache.sets * pass_words
    rooms["firsts"] = cache.sets * (1 + 2 * cache.ways) * (
        allocates and POLICIES[cache.replacement].stack)
    rooms["settled"] = sum(2 * count_words(lines) for _, lines, *_ in front["windows"])
    parts = {name: np.array(rows, dtype=np.int64).ravel() for name, rows in front.items()}
    parts["sets"] = np.zeros(cache.sets * (SET_WORDS + cache.ways), dtype=np.int64)
    program = _lay_out(cache, depths, allocates, (pass_words, tally, snapshots), parts, rooms,
                       flat.skipped)
    if flat.grouped and not flat.geometry.hits_change:
        _place_records(program, [place for place, _ in flat.places], tree)
    return program


def _record(place: Stream | Block | Piece, step: int, first_guard: int) -> list[int]:
    log_step = step.bit_length() - 1 if step > 0 and step & (step - 1) == 0 else -1
    reach = 0 if isinstance(place, Stream) else place.reach_bytes
    part = place.part if isinstance(place, Block) else 0
    kind = 2 * place.operand + place.write
    if isinstance(place, Piece):
        kind, part = place.first_place, place.last_place
    follows = isinstance(place, Stream) and place.follows
    return [place.address, step, log_step, reach, place.write, 0, place.operand, follows,
            kind, part, 0, EVER, 0, first_guard,
            first_guard + len(place.guards), 0]


def _record_mover(mover: Mover, step: int, first_guard: int, first_inner: int) -> list[int]:
    return [mover.address, step, -1, mover.reach_bytes, 0, 0, 0, 0, 0, mover.unit_bytes, 0, EVER,
            0, first_guard, first_guard, first_inner]


def _lay_out(cache: Cache, depths: int, allocates: bool, passes: tuple[int, int, int],
             parts: dict[str, np.ndarray], rooms: dict[str, int],
             skipped: Sequence[tuple[int, bool, int]]) -> Program:
    """Put the parts, then the rooms, behind a header that says where each begins."""
    for operand, write, lines in skipped:
        parts["misses"][3 * operand + write] += lines
    places, end = {}, HEADER_WORDS + TREE_WORDS
    for name, size in (*((name, len(part)) for name, part in parts.items()), *rooms.items()):
        places[name] = slice(end, end + size)
        end += size
    start = {name: place.start for name, place in places.items()}
    policy = POLICIES[cache.replacement]
    mask = cache.sets - 1 if cache.sets & (cache.sets - 1) == 0 else -1
    header = [0, cache.sets, mask, cache.ways, cache.line_bytes.bit_length() - 1,
              policy.number, allocates, 0, len(parts["sets"]) // cache.sets,
              start["code"], places["code"].stop, start["work"], start["steps"], depths,
              start["guards"], 2 + depths, start["rows"], start["cursors"], start["loops"],
              start["lists"], start["active"], start["misses"],
              start["leaving"] - start["misses"],
              start["clashes"], start["known"], start["sets"],
              0, start["notes"], 0, 0, start["inner"],
              start.get("passes", end), *passes]
    header += [start["nexts"]]
    header += [0] * (HITS_CHANGE_WORD - len(header)) + [
        policy.hits_change, not policy.sets_apart,
        places["notes"].stop - start["notes"] - 4 * MOST_SHARERS, 0,
        start["windows"], places["windows"].stop, start["settled"], places["settled"].stop, 0]
    header += _tree_masks(cache.ways if policy.tree else 1)
    # The outermost loop sees all sets: the first clashes are all stamped zero.
    parts["loops"][5] = start["clashes"]
    sets = parts["sets"].reshape(cache.sets, -1)
    sets[:, TALLY_WORD] = start["misses"]
    return Program(front=np.concatenate([np.array(header, dtype=np.int64), *parts.values()]),
                   words=end, changing=start["work"], records=places["work"],
                   misses=places["misses"], leaving=places["leaving"], sets=places["sets"],
                   firsts=places["firsts"], passes="passes" in rooms, skipped=tuple(skipped))


def _place_records(program: Program, places: Sequence[object], tree: Tree) -> None:
    """Say where the bits of blocks and pieces are, and whether operands stored to share lines."""
    front = program.front
    windows = place_windows(front[front[WINDOWS_WORD]:front[WINDOWS_WORD + 1]],
                            int(front[SETTLED_WORD]))
    records = front[program.records].reshape(-1, RECORD_WORDS)
    for record, place in zip(records, places, strict=True):
        if isinstance(place, (Block, Piece)):
            record[BITS_WORD] = windows[place.operand, 2 + place.write]
        if isinstance(place, Block):
            record[KIND_WORD] = place.part
    front[SHARED_WORD] = share_lines(windows[sorted(
        {stream.operand for stream in walk_streams(tree) if stream.write})])


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


def _flatten_body(body: Tree, depth: int, flat: _Flat) -> None:
    run: list[Stream] = []
    for part in body:
        if isinstance(part, Stream):
            run.append(part)
            continue
        _flatten_leaf(run, 1, depth, flat)
        run = []
        flat.skipped += part.skipped
        if part.rows is None:
            _flatten_loop(part.body, part.extent, depth, flat, part.passes)
            continue
        start = len(flat.code)
        flat.code.append([PHASE, 0, len(flat.phases), 0, 0, 0, 0, 0, 0])
        flat.phases.append(part.rows)
        _flatten_loop(part.body, FULL, depth, flat)
        _flatten_loop(part.middle, MIDDLE, depth, flat)
        _flatten_loop(part.plain, PLAIN, depth, flat)
        flat.code.append([PHASE_END, 0, 0, 0, 0, start, 0, 0, 0])
    _flatten_leaf(run, 1, depth, flat)


def _flatten_loop(body: Tree, extent: int, depth: int, flat: _Flat,
                  passes: bool = False) -> None:
    leaf = [inner for inner in body if isinstance(inner, Stream)]
    if len(leaf) == len(body):
        _flatten_leaf(leaf, extent, depth, flat)
        return
    # Lines that phases left out fill are counted for all sets: a loop around them leaves none out.
    blocks = find_blocks(body, depth, flat.geometry) if flat.grouped and not (
        passes or _leaves_out(body)) else []
    chunk = _has_phases(body) if passes else choose_chunk(blocks, flat.geometry)
    places = _place_movers(body, depth, flat) if passes else _place_blocks(blocks, depth, flat)
    start, first = len(flat.code), len(flat.places)
    flat.code.append([])
    _flatten_body(body, depth + 1, flat)
    last, end = len(flat.places), len(flat.code)
    enter, close = (PASSES, PASSES_END) if passes else (LOOP, END)
    flat.code[start] = [enter, extent, depth, first, last, end, *places, chunk]
    flat.code.append([close, extent, depth, first, last, start, *places, chunk])


def _has_phases(body: Tree) -> int:
    """One where a loop's body takes rows of a table, and none of it may be left out; else zero."""
    return int(any(part.rows is not None or _has_phases(part.body)
                   for part in body if isinstance(part, Repeat)))


def _leaves_out(body: Tree) -> bool:
    """Whether phases are left out of a loop."""
    return any(bool(part.skipped) or _leaves_out(part.body)
               for part in body if isinstance(part, Repeat))


def _place_movers(body: Tree, depth: int, flat: _Flat) -> tuple[int, int]:
    """Place what a loop run as passes moves; return where it begins and ends."""
    first = len(flat.places)
    movers = find_movers(body, depth, flat.geometry.line_bytes)
    assert movers is not None, "only loops whose movers are known are marked"
    flat.places.extend((mover, depth) for mover in movers)
    flat.passes = True
    return first, len(flat.places)


def _flatten_leaf(leaf: list[Stream], extent: int, depth: int, flat: _Flat) -> None:
    if not leaf:
        return
    steps = [_pad(stream.steps_bytes, depth + 1)[depth] for stream in leaf]
    line_bytes = flat.geometry.line_bytes
    settled = flat.grouped and (flat.geometry.allocates or not any(stream.write for stream in leaf))
    pieces: list[Piece] = []
    chunk = 1
    if settled and len(leaf) == 1 and steps[0] >= 0:
        chunk = EVER
    elif settled and extent != 1:
        pieces = find_pieces(leaf, line_bytes)
        if flat.geometry.hits_change:
            pieces = join_pieces(pieces, flat.geometry)
        chunk = count_iterations(pieces, depth, flat.geometry)
    places = len(flat.places), len(flat.places) + len(pieces)
    flat.places.extend((piece, depth) for piece in pieces)
    first = len(flat.places)
    flat.places.extend((stream, depth) for stream in leaf)
    guarded = any(stream.guards for stream in leaf)
    flat.code.append([LEAF, extent, depth, first, len(flat.places), guarded, *places, chunk])


def _place_blocks(blocks: list[Block], depth: int, flat: _Flat) -> tuple[int, int]:
    """Place the blocks a loop moves, then the others; return where each of the two begin."""
    still = [block for block in blocks if not block.steps_bytes[-1] and not block.guards]
    moving = [block for block in blocks if block.steps_bytes[-1] or block.guards]
    first = len(flat.places)
    flat.places.extend((block, depth) for block in (*moving, *still))
    return first, first + len(moving)


def _pad(steps: tuple[int, ...], depths: int) -> list[int]:
    return [*steps, *[0] * (depths - len(steps))]
