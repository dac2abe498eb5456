"""Trees of address streams flattened to the integer arrays the cache kernel interprets."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from hwmodels.board.facts import Cache
from hwmodels.kernel import Guard
from hwmodels.nest.stream import Stream, Tree

LOOP, END, LEAF, PHASE, PHASE_END = range(5)
"""Operations: enter a loop, close it, run a loop that holds nothing but streams, take the next
row of a phase table, go on to another row unless the entry ends."""

FULL, MIDDLE = -1, -2
"""Extents that the row of the phase table in force gives."""

EVER = 1 << 60

POLICIES = {"lru": 0, "plru": 1, "round_robin": 2, "fifo": 2, "lfsr": 3}
"""Replacement policies by the kernel's number; without invalidations a per-set round robin
replaces in order of arrival, so it and FIFO are one."""

MAX_OWNERS = 127
HEADER_WORDS, TREE_WORDS, RECORD_WORDS, SET_WORDS = 32, 64, 16, 8
MARK_WORD, OPERAND_WORD, WRITE_WORD, POLICY_WORD = 5, 6, 4, 6
REPLACEMENT_WORD, STAMP_WORD, CLOCK_WORD = 5, 7, 26
"""Places in a record and a set, and in the header, as the kernel has them."""

ANY_PART = 1 << 30

MAX_BLOCKS = 64
"""Blocks of a loop above which it is not tried as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Bytes that one iteration of a loop touches without leaving a line between them out.

    Parameters
    ----------
    part : int
        Which part of the loop's body touches them; `ANY_PART`: several may.
    operand : int
        Position of its operand in the kernel.
    write : bool
        Store or load.
    steps_bytes : tuple of int
        Address step of each loop around and of the loop itself, outermost first.
    address : int
        Lowest one at index zero of every loop.
    reach_bytes : int
        From there to the highest one.
    guards : tuple of Guard
        Of a stream; a block of several has none.
    """

    part: int
    operand: int
    write: bool
    steps_bytes: tuple[int, ...]
    address: int
    reach_bytes: int
    guards: tuple[Guard, ...] = ()


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
    records : slice
        The records, `RECORD_WORDS` each.
    misses, leaving, deep, sets : slice
        Three counters per operand, two per owner, two for each depth per operand, and the sets.
    spare : list of ndarray
        Arrays that earlier runs are done with.
    """

    front: np.ndarray
    words: int
    records: slice
    misses: slice
    leaving: slice
    deep: slice
    sets: slice
    spare: list[np.ndarray] = field(default_factory=list)

    def take_memory(self) -> np.ndarray:
        """Return the array to run in; its notes are older than any stamp to come."""
        memory = self.spare.pop() if self.spare else np.zeros(self.words, dtype=np.int64)
        stamp = memory[STAMP_WORD]
        memory[:len(self.front)] = self.front
        memory[STAMP_WORD] = stamp
        return memory

    def give_back(self, memory: np.ndarray) -> None:
        """Keep the array of a finished run for the next one."""
        if not self.spare:
            self.spare.append(memory)


@dataclass(slots=True, kw_only=True)
class _Flat:
    """What flattening has made so far."""

    line_bytes: int
    sets: int
    allocates: bool
    grouped: bool
    code: list[list[int]] = field(default_factory=list)
    places: list[tuple[Stream | Block, int]] = field(default_factory=list)
    phases: list[np.ndarray] = field(default_factory=list)


def flatten_tree(tree: Tree, cache: Cache, operands: int, *, allocates: bool = True,
                 grouped: bool = True) -> Program:
    """Flatten a tree of streams.

    Parameters
    ----------
    tree : tuple of Repeat or Stream
        In program order.
    cache : Cache
        What it runs through.
    operands : int
        Number of operands its streams count from.
    allocates : bool
        Stores that miss allocate, or there are none.
    grouped : bool
        Whether loops may be run line by line; if not, every access is looked up.

    Returns
    -------
    Program
        Neighbouring streams outside a loop become a leaf of one iteration.
    """
    flat = _Flat(line_bytes=cache.line_bytes, sets=cache.sets, allocates=allocates,
                 grouped=grouped)
    _flatten_body(tree, 0, flat)
    depths = max([len(place.steps_bytes) for place, _ in flat.places], default=0) + 1
    records: list[list[int]] = []
    guards: list[Guard] = []
    for place, depth in flat.places:
        records.append(_record(place, _pad(place.steps_bytes, depths)[depth], len(guards)))
        guards += place.guards
    front = {
        "code": flat.code, "work": records,
        "steps": [_pad(place.steps_bytes, depths) for place, _ in flat.places],
        "guards": [[guard.offset, guard.limit, *_pad(guard.steps, depths)] for guard in guards],
        "rows": [row for rows in flat.phases for row in rows.tolist()],
        "cursors": [[row] for row in itertools.accumulate(map(len, flat.phases), initial=0)],
        "loops": [[0] * 9] * (depths + 1),
        "misses": [[0] * 3] * operands, "leaving": [[0] * 2] * (MAX_OWNERS + 1),
        "deep": [[0] * 2 * (cache.ways + 1)] * operands,
        # Entries come most recent first; the kernel keeps times of touch.
        "sets": [[0] * (SET_WORDS + cache.ways) + [-way for way in range(cache.ways)]]
                * cache.sets,
    }
    rooms = {
        "lists": (cache.sets + 1) * depths, "active": len(records),
        "clashes": cache.sets * (depths + 1), "known": 5 * depths * cache.sets,
        "notes": 3 * (4 * cache.sets + 2 * len(records)),
    }
    return _lay_out(cache, depths, allocates, {
        name: np.array(rows, dtype=np.int64).ravel() for name, rows in front.items()}, rooms)


def _record(place: Stream | Block, step: int, first_guard: int) -> list[int]:
    log_step = step.bit_length() - 1 if step > 0 and step & (step - 1) == 0 else -1
    reach, part = (place.reach_bytes, place.part) if isinstance(place, Block) else (0, 0)
    follows = isinstance(place, Stream) and place.follows
    return [place.address, step, log_step, reach, place.write, 0, place.operand, follows,
            2 * place.operand + place.write, part, 0, EVER, 0, first_guard,
            first_guard + len(place.guards), 0]


def _lay_out(cache: Cache, depths: int, allocates: bool, parts: dict[str, np.ndarray],
             rooms: dict[str, int]) -> Program:
    """Put the parts, then the rooms, behind a header that says where each begins."""
    places, end = {}, HEADER_WORDS + TREE_WORDS
    for name, size in (*((name, len(part)) for name, part in parts.items()), *rooms.items()):
        places[name] = slice(end, end + size)
        end += size
    start = {name: place.start for name, place in places.items()}
    mask = cache.sets - 1 if cache.sets & (cache.sets - 1) == 0 else -1
    header = [0, cache.sets, mask, cache.ways, cache.line_bytes.bit_length() - 1,
              POLICIES[cache.replacement], allocates, 0, len(parts["sets"]) // cache.sets,
              start["code"], places["code"].stop, start["work"], start["steps"], depths,
              start["guards"], 2 + depths, start["rows"], start["cursors"], start["loops"],
              start["lists"], start["active"], start["misses"], start["leaving"],
              start["clashes"], start["known"], start["sets"],
              0, start["notes"], start["deep"]]
    header += [0] * (HEADER_WORDS - len(header)) + _tree_masks(
        cache.ways if cache.replacement == "plru" else 1)
    # The outermost loop sees all sets: the first clashes are all stamped zero.
    parts["loops"][5] = start["clashes"]
    return Program(front=np.concatenate([np.array(header, dtype=np.int64), *parts.values()]),
                   words=end, records=places["work"], misses=places["misses"], leaving=places["leaving"],
                   deep=places["deep"], sets=places["sets"])


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
        if part.rows is None:
            _flatten_loop(part.body, part.extent, depth, flat)
            continue
        start = len(flat.code)
        flat.code.append([PHASE, 0, len(flat.phases), 0, 0, 0, 0, 0, 0])
        flat.phases.append(part.rows)
        _flatten_loop(part.body, FULL, depth, flat)
        _flatten_loop(part.middle, MIDDLE, depth, flat)
        flat.code.append([PHASE_END, 0, 0, 0, 0, start, 0, 0, 0])
    _flatten_leaf(run, 1, depth, flat)


def _flatten_loop(body: Tree, extent: int, depth: int, flat: _Flat) -> None:
    leaf = [inner for inner in body if isinstance(inner, Stream)]
    if len(leaf) == len(body):
        _flatten_leaf(leaf, extent, depth, flat)
        return
    blocks = find_blocks(body, depth, flat) if flat.grouped else []
    chunk = _choose_chunk(blocks, flat)
    places = _place_blocks(blocks, depth, flat)
    start, first = len(flat.code), len(flat.places)
    flat.code.append([])
    _flatten_body(body, depth + 1, flat)
    last, end = len(flat.places), len(flat.code)
    flat.code[start] = [LOOP, extent, depth, first, last, end, *places, chunk]
    flat.code.append([END, extent, depth, first, last, start, *places, chunk])


def _flatten_leaf(leaf: list[Stream], extent: int, depth: int, flat: _Flat) -> None:
    if not leaf:
        return
    steps = [_pad(stream.steps_bytes, depth + 1)[depth] for stream in leaf]
    settled = flat.grouped and (flat.allocates or not any(stream.write for stream in leaf))
    blocks: list[Block] = []
    chunk = 1
    if settled and len(leaf) == 1 and steps[0] >= 0:
        chunk = EVER
    elif settled and extent != 1:
        blocks = _merge_blocks([_block_of(stream, depth) for stream in leaf], flat.line_bytes)
        chunk = _choose_chunk(blocks, flat)
        if 2 * _moving_lines(blocks, flat.line_bytes) > len(leaf):
            # Most accesses are the first of a line anyway.
            blocks, chunk = [], 1
    places = _place_blocks(blocks, depth, flat)
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


def find_blocks(body: Tree, depth: int, flat: _Flat) -> list[Block]:
    """Find what one iteration of a loop touches, as blocks.

    Parameters
    ----------
    body : tuple of Repeat or Stream
        The loop's body.
    depth : int
        Of the loop's index.
    flat : _Flat
        For the geometry of the cache.

    Returns
    -------
    list of Block
        By part and address; empty when a guard or a store that does not allocate makes the
        outcome uncertain, or when sets would see more than a line or two anyway.
    """
    parts = [list(_walk((inner,), ())) for inner in body]
    stored = {stream.operand for part in parts for stream, _ in part if stream.write}
    loaded = {stream.operand for part in parts for stream, _ in part if not stream.write}
    found: list[Block] = []
    for number, part in enumerate(parts):
        for stream, extents in part:
            # Order between parts matters where loads and stores mix.
            order = number if stream.operand in stored & loaded else ANY_PART
            own = _blocks_of(stream, order, depth, extents, flat.line_bytes)
            found += own
            if (stream.guards or not own or len(found) > 16 * MAX_BLOCKS
                    or (stream.write and not flat.allocates)):
                return []
    merged = _merge_blocks(found, flat.line_bytes)
    lines = _count_lines(merged, flat.line_bytes)
    return merged if len(merged) <= MAX_BLOCKS and lines <= 3 * flat.sets // 2 else []


def _merge_blocks(blocks: Iterable[Block], line_bytes: int) -> list[Block]:
    """Join blocks of one part and manner that no line lies between."""
    alike: dict[tuple[object, ...], list[Block]] = {}
    for block in blocks:
        alike.setdefault((block.part, block.operand, block.write, block.steps_bytes,
                          block.guards), []).append(block)
    merged: list[Block] = []
    for members in alike.values():
        lead = members[0]
        spans: list[list[int]] = []
        for low, high in sorted((block.address, block.address + block.reach_bytes)
                                for block in members):
            if spans and low <= spans[-1][1] + line_bytes:
                spans[-1][1] = max(spans[-1][1], high)
            else:
                spans.append([low, high])
        merged += [Block(part=lead.part, operand=lead.operand, write=lead.write, address=low,
                         steps_bytes=lead.steps_bytes, reach_bytes=high - low,
                         guards=lead.guards) for low, high in spans]
    merged.sort(key=lambda block: block.part)
    return merged


def _count_lines(blocks: Iterable[Block], line_bytes: int) -> int:
    return len({(block.operand, line) for block in blocks for line in range(
        block.address // line_bytes, (block.address + block.reach_bytes) // line_bytes + 1)})


def _choose_chunk(blocks: Sequence[Block], flat: _Flat) -> int:
    """Iterations that touch about half as many lines as there are sets, at least one."""
    moving = _moving_lines(blocks, flat.line_bytes)
    if not moving:
        return EVER
    return max(1, int((flat.sets / 2 - _count_lines(blocks, flat.line_bytes)) / moving) + 1)


def _walk(tree: Tree, extents: tuple[int, ...]) -> Iterable[tuple[Stream, tuple[int, ...]]]:
    for part in tree:
        if isinstance(part, Stream):
            yield part, extents
        else:
            yield from _walk(part.body, (*extents, part.extent))


def _blocks_of(stream: Stream, part: int, depth: int, extents: tuple[int, ...],
               line_bytes: int) -> list[Block]:
    """Blocks of one stream over the loops inside, shortest steps first; none if too many."""
    starts, reach = [stream.address], 0
    for size, step, extent in sorted(zip(map(abs, stream.steps_bytes[depth + 1:]),
                                         stream.steps_bytes[depth + 1:], extents, strict=True)):
        if step < 0:
            starts = [start + step * (extent - 1) for start in starts]
        if size <= reach + line_bytes:
            reach += size * (extent - 1)
        elif len(starts) * extent <= 2 * MAX_BLOCKS:
            starts = [start + size * turn for start in starts for turn in range(extent)]
        else:
            return []
    return [Block(part=part, operand=stream.operand, write=stream.write, address=start,
                  steps_bytes=stream.steps_bytes[:depth + 1], reach_bytes=reach)
            for start in starts]


def _block_of(stream: Stream, depth: int) -> Block:
    """The block one stream touches in an iteration of its leaf."""
    return Block(part=0, operand=stream.operand, write=stream.write, address=stream.address,
                 steps_bytes=tuple(_pad(stream.steps_bytes, depth + 1)), reach_bytes=0,
                 guards=stream.guards)


def _moving_lines(blocks: Iterable[Block], line_bytes: int) -> float:
    """Lines that blocks enter in an iteration of their loop."""
    return sum(min(abs(block.steps_bytes[-1]), block.reach_bytes + line_bytes)
               for block in blocks) / line_bytes


def _pad(steps: tuple[int, ...], depths: int) -> list[int]:
    return [*steps, *[0] * (depths - len(steps))]
