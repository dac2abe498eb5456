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
from hwmodels.nest.program import (
    MAX_OWNERS,
    MOST_SHARERS,
    OWNER_ROOM,
    Parts,
    Program,
    lay_out,
)
from hwmodels.nest.rewrite import walk_streams
from hwmodels.nest.stream import Repeat, Stream, Tree
from hwmodels.nest.windows import count_words, find_windows

LOOP, END, LEAF, PHASE, PHASE_END, PASSES, PASSES_END = range(7)
"""Operations: enter a loop, close it, run a loop that holds nothing but streams, take the next
row of a phase table, go on to another row unless the entry ends; enter a loop run as passes,
close it."""

FULL, MIDDLE, PLAIN = -1, -2, -3
"""Extents that the row of the phase table in force gives."""

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
    """Flatten a tree of streams, where all operands begin in line zero.

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
    front = _fill_front(flat, cache, operands, depths)
    rooms, passes = _make_rooms(flat, cache, len(operands), depths)
    rooms["settled"] = sum([2 * count_words(lines) for _, lines, *_ in front["windows"]])
    parts = Parts(rooms=rooms, depths=depths, allocates=allocates, passes=passes, filled={
        name: np.array(rows, dtype=np.int64).ravel() for name, rows in front.items()})
    settled = bool(front["windows"])
    return lay_out(
        cache, parts, (np.array([place.operand for place, _ in flat.places], dtype=np.int64),
                       np.array([settled and isinstance(place, (Block, Piece))
                                 for place, _ in flat.places], dtype=bool)),
        tuple(sorted({stream.operand for stream in walk_streams(tree) if stream.write})),
        flat.skipped)


def _fill_front(flat: _Flat, cache: Cache, operands: Sequence[Operand],
                depths: int) -> dict[str, list[list[int]]]:
    """Return what a program's front holds, in order."""
    records: list[list[int]] = []
    guards: list[Guard] = []
    inner: list[list[int]] = []
    windows = find_windows(operands, cache.line_bytes) if flat.grouped and not (
        flat.geometry.hits_change) else []
    for place, depth in flat.places:
        step = place.steps_bytes[depth] if depth < len(place.steps_bytes) else 0
        if isinstance(place, Mover):
            records.append(_record_mover(place, step, len(guards), len(inner)))
            inner += [[*one] for one in place.inner]
            inner += [[1, 0]] * (MAX_DIMENSIONS - len(place.inner))
        else:
            records.append(_record(place, step, len(guards), bool(windows)))
            guards += place.guards
    return {
        "code": flat.code,
        "cursors": [[row] for row in itertools.accumulate(map(len, flat.phases), initial=0)],
        "loops": [[0] * 9] * (depths + 1),
        "misses": [[0] * 3] * len(operands), "leaving": [[0] * 2] * (MAX_OWNERS + 1),
        # From here on a run leaves all as it was, or stamped, or filled in before it is used.
        "work": records,
        "guards": [[guard.offset, guard.limit, *_pad(guard.steps, depths)] for guard in guards],
        "steps": [_pad(place.steps_bytes, depths) for place, _ in flat.places],
        "rows": [row for rows in flat.phases for row in rows.tolist()],
        "inner": inner, "windows": windows,
    }


def _make_rooms(flat: _Flat, cache: Cache, operands: int,
                depths: int) -> tuple[dict[str, int], tuple[int, int, int]]:
    """Return what room a program takes behind its front, and what of passes its header says."""
    records, policy = len(flat.places), POLICIES[cache.replacement]
    rooms = {
        "lists": (cache.sets + 1) * depths, "active": records, "nexts": records,
        "clashes": cache.sets * (depths + 1), "known": 5 * depths * cache.sets,
        "notes": 4 * (MOST_SHARERS + 4 * cache.sets + cache.sets * cache.ways + 2 * records),
    }
    tally = 3 * operands + 2 * OWNER_ROOM
    snapshots = 2 if policy.stack else min(cache.ways, 8) + 1
    pass_words = 3 + tally + snapshots * (cache.ways + 1 + tally)
    if flat.passes:
        rooms["passes"] = cache.sets * pass_words
    rooms["firsts"] = cache.sets * (1 + 2 * cache.ways) * (
        flat.geometry.allocates and policy.stack)
    return rooms, (pass_words, tally, snapshots)


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
    line_bytes = flat.geometry.line_bytes
    settled = flat.grouped and (flat.geometry.allocates or not any(stream.write for stream in leaf))
    pieces: list[Piece] = []
    chunk = 1
    if settled and len(leaf) == 1 and (
            len(leaf[0].steps_bytes) <= depth or leaf[0].steps_bytes[depth] >= 0):
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
def _record(place: Stream | Block | Piece, step: int, first_guard: int,
            told: bool) -> list[int]:
    log_step = step.bit_length() - 1 if step > 0 and step & (step - 1) == 0 else -1
    part = bits = 0
    reach = 0 if isinstance(place, Stream) else place.reach_bytes
    kind = 2 * place.operand + place.write
    if isinstance(place, Stream):
        bits = int(place.follows)
    elif isinstance(place, Piece):
        kind, part = place.first_place, place.last_place
    else:
        part = place.part
        kind = part if told else kind
    return [place.address, step, log_step, reach, place.write, 0, place.operand, bits,
            kind, part, 0, EVER, 0, first_guard,
            first_guard + len(place.guards), 0]


def _record_mover(mover: Mover, step: int, first_guard: int, first_inner: int) -> list[int]:
    return [mover.address, step, -1, mover.reach_bytes, 0, 0, mover.operand, 0, 0,
            mover.unit_bytes, 0, EVER, 0, first_guard, first_guard, first_inner]
