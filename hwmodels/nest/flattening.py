"""How the nests of a kernel are simulated.

Trees of address streams are flattened to the integer arrays the cache kernel interprets. What a
loop becomes hangs on its size in lines, not on where its operands are nor on the size of the cache:
it is sketched once, and sketches are put together to programs.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from hwmodels.board.facts import Cache
from hwmodels.board.policies import POLICIES
from hwmodels.kernel import Guard, Operand
from hwmodels.nest.blocks import (
    EVER,
    UNPACED,
    Manner,
    Pace,
    find_blocks,
    find_pieces,
    join_pieces,
    pace_pieces,
)
from hwmodels.nest.passes import MAX_DIMENSIONS, find_movers
from hwmodels.nest.program import (
    MAX_OWNERS,
    MOST_SHARERS,
    OWNER_ROOM,
    RECORD_WORDS,
    Parts,
    Program,
    lay_out,
)
from hwmodels.nest.sketch import (
    LEAF,
    MOVER,
    STREAM,
    TOLD,
    Numbers,
    Sketch,
    insert_sketches,
    settle_sketch,
)
from hwmodels.nest.stream import Repeat, Stream, Tree, keep_by_body
from hwmodels.nest.windows import count_words, find_windows

LOOP, END, _, PHASE, PHASE_END, PASSES, PASSES_END = range(7)
"""Operations: enter a loop, close it, run a loop that holds nothing but streams (`LEAF`), take the
next row of a phase table, go on to another row unless the entry ends; enter a loop run as passes,
close it."""

FULL, MIDDLE, PLAIN = -1, -2, -3
"""Extents that the row of the phase table in force gives."""

NO_LOOP = 0
"""Extent of what is in no loop."""

UNBOUNDED = 1 << 40
"""Sets of a cache in which no piece of a leaf is too long."""


@dataclass(slots=True, kw_only=True)
class _Flat:
    """What flattening has made so far."""

    manner: Manner
    sets: int
    sketched: bool
    code: list[Sequence[int]] = field(default_factory=list)
    paces: list[Pace] = field(default_factory=list)
    records: list[Sequence[int]] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    steps: list[tuple[int, ...]] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    inner: list[tuple[int, int]] = field(default_factory=list)
    phases: list[np.ndarray] = field(default_factory=list)
    skipped: list[tuple[int, bool, int]] = field(default_factory=list)
    others: list[tuple[Sketch, Numbers, Numbers]] = field(default_factory=list)
    before: Numbers = (0, 0, 0, 0)
    enough_sets: int = 0


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
    policy = POLICIES[cache.replacement]
    flat = _Flat(sets=cache.sets, sketched=True, manner=Manner(
        line_bytes=cache.line_bytes, allocates=allocates, grouped=grouped,
        hits_change=policy.hits_change, sets_apart=policy.sets_apart))
    if _has_phases(tree):
        _flatten_body(tree, 0, flat)
    else:
        _insert_sketch(flat, tree, NO_LOOP, 0, False)
    sketch = settle_sketch(insert_sketches(_make_sketch(flat), flat.others), cache.sets)
    windows = find_windows(operands, cache.line_bytes) if (
        grouped and not policy.hits_change) else []
    rooms, passes = _make_rooms(sketch, cache, len(operands), allocates)
    rooms["settled"] = sum([2 * count_words(lines) for _, lines, *_ in windows])
    parts = Parts(rooms=rooms, depths=_count_depths(sketch), allocates=allocates, passes=passes,
                  filled=_fill_front(flat, sketch, cache, windows, len(operands)))
    return lay_out(cache, parts, (sketch.kinds == TOLD) & bool(windows), flat.skipped)


def _count_depths(sketch: Sketch) -> int:
    """Loops around the innermost stream, and one."""
    return int(sketch.steps.shape[1]) + 1


def _fill_front(flat: _Flat, sketch: Sketch, cache: Cache, windows: list[list[int]],
                operands: int) -> dict[str, np.ndarray]:
    """Return what a program's front holds, in order."""
    depths = _count_depths(sketch)
    steps = np.zeros((len(sketch.steps), depths), dtype=np.int64)
    steps[:, :-1] = sketch.steps
    guards = np.zeros((len(sketch.guards), 2 + depths), dtype=np.int64)
    guards[:, :sketch.guards.shape[1]] = sketch.guards
    return {
        "code": sketch.code.ravel(),
        "cursors": np.array([*itertools.accumulate(map(len, flat.phases), initial=0)],
                            dtype=np.int64),
        "loops": np.zeros(9 * (depths + 1), dtype=np.int64),
        "misses": np.zeros(3 * operands, dtype=np.int64),
        "leaving": np.zeros(2 * (MAX_OWNERS + 1), dtype=np.int64),
        # From here on a run leaves all as it was, or stamped, or filled in before it is used.
        "work": sketch.records.ravel(),
        "guards": guards.ravel(),
        "steps": steps.ravel(),
        "rows": np.concatenate([*flat.phases, _NO_ROWS]).ravel(),
        "inner": sketch.inner.ravel(),
        "windows": np.array(windows, dtype=np.int64).ravel(),
    }


_NO_ROWS = np.zeros((0, 4), dtype=np.int64)


def _make_rooms(sketch: Sketch, cache: Cache, operands: int,
                allocates: bool) -> tuple[dict[str, int], tuple[int, int, int]]:
    """Return what room a program takes behind its front, and what of passes its header says."""
    policy = POLICIES[cache.replacement]
    records, depths = len(sketch.records), _count_depths(sketch)
    rooms = {
        "lists": (cache.sets + 1) * depths, "active": records, "nexts": records,
        "clashes": cache.sets * (depths + 1), "known": 5 * depths * cache.sets,
        "notes": 4 * (MOST_SHARERS + 4 * cache.sets + cache.sets * cache.ways + 2 * records),
    }
    tally = 3 * operands + 2 * OWNER_ROOM
    snapshots = 1 if policy.stack else min(cache.ways, 8) + 1
    pass_words = 4 + snapshots * (2 + cache.ways + tally)
    if (sketch.code[:, 0] == PASSES).any():
        rooms["passes"] = cache.sets * pass_words
    rooms["firsts"] = cache.sets * (1 + 2 * cache.ways) * (allocates and policy.stack)
    return rooms, (pass_words, tally, snapshots)


def _make_sketch(flat: _Flat) -> Sketch:
    """Make arrays of what flattening has made."""
    depths = max(map(len, flat.steps), default=0)
    return Sketch(
        code=np.array(flat.code, dtype=np.int64).reshape(-1, 9),
        paces=np.array([(pace.lines, pace.apart, pace.entered, pace.share, pace.more)
                        for pace in flat.paces], dtype=np.float64).reshape(-1, 5),
        records=np.array(flat.records, dtype=np.int64).reshape(-1, RECORD_WORDS),
        kinds=np.array(flat.kinds, dtype=np.int64),
        steps=np.array([steps + (0,) * (depths - len(steps)) for steps in flat.steps],
                       dtype=np.int64).reshape(len(flat.steps), depths),
        guards=np.array([(guard.offset, guard.limit, *guard.steps, *(0,) * (
            depths - len(guard.steps))) for guard in flat.guards],
            dtype=np.int64).reshape(len(flat.guards), 2 + depths),
        inner=np.array(flat.inner, dtype=np.int64).reshape(-1, 2), enough_sets=flat.enough_sets)


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
            _flatten_loop(part.body, flat, part.extent, depth, part.passes)
            continue
        start = _numbers(flat)[0]
        _add_operation(flat, (PHASE, 0, len(flat.phases), 0, 0, 0, 0, 0, 0))
        flat.phases.append(part.rows)
        _flatten_loop(part.body, flat, FULL, depth)
        _flatten_loop(part.middle, flat, MIDDLE, depth)
        _flatten_loop(part.plain, flat, PLAIN, depth)
        _add_operation(flat, (PHASE_END, 0, 0, 0, 0, start, 0, 0, 0))
    _flatten_leaf(run, 1, depth, flat)


def _flatten_loop(body: Tree, flat: _Flat, extent: int, depth: int,
                  passes: bool = False) -> None:
    if not any([isinstance(inner, Repeat) for inner in body]):
        _flatten_leaf(cast("Sequence[Stream]", body), extent, depth, flat)
        return
    phases = _has_phases(body) if flat.sketched else 0
    if flat.sketched and not phases:
        _insert_sketch(flat, body, extent, depth, passes)
        return
    # The next row of phases is that of the next iteration of the loops around them, which leave
    # none out therefore; lines that phases left out fill are counted for all sets, too.
    pace, chunk = UNPACED, EVER
    first, moving = _numbers(flat)[1], 0
    if passes:
        chunk, moving = phases, _place_movers(body, depth, flat)
    elif flat.manner.grouped and not phases:
        pace, moving = _place_blocks(body, depth, flat)
    start, place = _numbers(flat)[:2]
    operation = len(flat.code)
    enter, close = (PASSES, PASSES_END) if passes else (LOOP, END)
    _add_operation(flat, (), pace)
    _flatten_body(body, depth + 1, flat)
    end, last, *_ = _numbers(flat)
    words = first, first + moving, chunk
    flat.code[operation] = (enter, extent, depth, place, last, end, *words)
    _add_operation(flat, (close, extent, depth, place, last, start, *words), pace)


def _insert_sketch(flat: _Flat, body: Tree, extent: int, depth: int, passes: bool) -> None:
    """Insert the sketch of a loop, which is made once."""
    sketch = _sketch_loop(body, extent, depth, passes, flat.manner, UNBOUNDED)
    if sketch.enough_sets > flat.sets:
        sketch = _sketch_loop(body, extent, depth, passes, flat.manner, flat.sets)
    flat.others.append((sketch, _own_numbers(flat), _numbers(flat)))
    operations, records, guards, inner = sketch.numbers
    flat.before = (flat.before[0] + operations, flat.before[1] + records,
                   flat.before[2] + guards, flat.before[3] + inner)


@keep_by_body
def _sketch_loop(body: Tree, extent: int, depth: int, passes: bool, manner: Manner,
                 sets: int) -> Sketch:
    """Return the sketch of a loop without phases, for a number of sets if that matters."""
    flat = _Flat(manner=manner, sets=sets, sketched=False)
    if extent == NO_LOOP:
        _flatten_body(body, depth, flat)
    else:
        _flatten_loop(body, flat, extent, depth, passes)
    return _make_sketch(flat)


def _own_numbers(flat: _Flat) -> Numbers:
    return len(flat.code), len(flat.records), len(flat.guards), len(flat.inner)


def _numbers(flat: _Flat) -> Numbers:
    """Count what has been made, sketches that go in between included."""
    operations, records, guards, inner = flat.before
    return (operations + len(flat.code), records + len(flat.records), guards + len(flat.guards),
            inner + len(flat.inner))


def _add_operation(flat: _Flat, words: Sequence[int], pace: Pace = UNPACED) -> None:
    flat.code.append(words)
    flat.paces.append(pace)


def _has_phases(body: Tree) -> int:
    """One where a loop's body takes rows of a table, and none of it may be left out; else zero."""
    return int(any([part.rows is not None or _has_phases(part.body)
                    for part in body if isinstance(part, Repeat)]))


def _flatten_leaf(leaf: Sequence[Stream], extent: int, depth: int, flat: _Flat) -> None:
    if not leaf:
        return
    line_bytes, pace, chunk = flat.manner.line_bytes, UNPACED, 1
    settled = flat.manner.grouped and (
        flat.manner.allocates or not any([stream.write for stream in leaf]))
    first = last = _numbers(flat)[1]
    if settled and len(leaf) == 1 and (
            len(leaf[0].steps_bytes) <= depth or leaf[0].steps_bytes[depth] >= 0):
        chunk = EVER
    elif settled and extent != 1:
        pieces = find_pieces(tuple(leaf), line_bytes)
        if flat.manner.hits_change:
            pieces, enough = join_pieces(pieces, line_bytes, flat.sets)
            flat.enough_sets = max(flat.enough_sets, enough)
        pace, chunk = pace_pieces(pieces, depth, line_bytes), EVER
        for lead, reach, first_place, last_place in pieces:
            _add_record(flat, TOLD, lead, depth, reach, (0, first_place, last_place))
        last += len(pieces)
    for stream in leaf:
        _add_record(flat, STREAM, stream, depth, 0,
                    (int(stream.follows), 2 * stream.operand + stream.write, 0))
    end = _numbers(flat)[1]
    guarded = any([bool(stream.guards) for stream in leaf])
    _add_operation(flat, (LEAF, extent, depth, last, end, guarded, first, last, chunk), pace)


def _add_record(flat: _Flat, kind: int, stream: Stream, depth: int, reach: int,
                words: tuple[int, int, int]) -> None:
    """Add the record of a stream, or of the pieces it leads."""
    guards = flat.before[2] + len(flat.guards)
    flat.guards += stream.guards
    _append(flat, kind, stream.address, stream.steps_bytes, depth, reach,
            (stream.write, 0, stream.operand, *words), (guards, guards + len(stream.guards), 0))


def _append(flat: _Flat, kind: int, address: int, steps: tuple[int, ...], depth: int, reach: int,
            words: tuple[int, ...], ends: tuple[int, int, int]) -> None:
    step = steps[depth] if depth < len(steps) else 0
    log_step = step.bit_length() - 1 if (
        step > 0 and step & (step - 1) == 0 and kind != MOVER) else -1
    flat.records.append((address, step, log_step, reach, *words, 0, EVER, 0, *ends))
    flat.kinds.append(kind)
    flat.steps.append(steps)


def _place_blocks(body: Tree, depth: int, flat: _Flat) -> tuple[Pace, int]:
    """Place the blocks a loop moves, then the others; return how many it moves."""
    runs, pace = find_blocks(body, depth, flat.manner.line_bytes, flat.manner.allocates,
                             flat.manner.sets_apart)
    guards, first, moving = flat.before[2] + len(flat.guards), len(flat.records), 0
    ordered = sorted(runs.items(), key=lambda item: (not item[0][3][-1], item[0][0]))
    for (part, operand, write, steps), spans in ordered:
        kind = 2 * operand + write if flat.manner.hits_change else part
        for low, high in spans:
            _append(flat, TOLD, low, steps, depth, high - low,
                    (write, 0, operand, 0, kind, part), (guards, guards, 0))
        if steps[-1]:
            moving = len(flat.records) - first
    return pace, moving


def _place_movers(body: Tree, depth: int, flat: _Flat) -> int:
    """Place what a loop run as passes moves; return how many."""
    movers = find_movers(body, depth, flat.manner.line_bytes)
    assert movers is not None, "only loops whose movers are known are marked"
    guards = flat.before[2] + len(flat.guards)
    for mover in movers:
        inner = flat.before[3] + len(flat.inner)
        _append(flat, MOVER, mover.address, mover.steps_bytes, depth, mover.reach_bytes,
                (0, 0, mover.operand, 0, 0, mover.unit_bytes), (guards, guards, inner))
        flat.inner += [*mover.inner, *[(1, 0)] * (MAX_DIMENSIONS - len(mover.inner))]
    return len(movers)
