"""Trees of address streams flattened to the programs that `hwmodels.kernels.cache_nest` runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from hwmodels.kernel import Guard
from hwmodels.kernels.cache_words import END, INNERMOST, LOOP, NEVER, RECORD
from hwmodels.nest.stream import Repeat, Stream, Tree, moves_stream

HEADER_WORDS = 15
"""Before the parts of a program, as `hwmodels.kernels.cache_words` has them."""


@dataclass(slots=True, kw_only=True)
class _Flat:
    """What flattening has made so far."""

    in_order: bool
    code: list[tuple[int, ...]] = field(default_factory=list)
    streams: list[tuple[Stream, int]] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)


def flatten_tree(tree: Tree, sets: int, *, in_order: bool = False) -> np.ndarray:
    """Flatten a tree of streams.

    Parameters
    ----------
    tree : tuple of Repeat or Stream
        In program order.
    sets
        Of the cache it runs through.
    in_order
        Whether every access is looked up, one iteration after the other.

    Returns
    -------
    ndarray of int64, read-only
        A program but for its `COUNTERS` and `LEAVING` and the marks of its streams. Neighbouring
        streams outside a loop become an innermost loop of one iteration.
    """
    flat = _Flat(in_order=in_order)
    _flatten_body(tree, 0, flat)
    depths = 1 + max([len(stream.steps_bytes) for stream, _ in flat.streams], default=0)
    streams = len(flat.streams)
    records = np.zeros((streams, int(RECORD)), dtype=np.int64)
    steps = np.zeros((streams, depths), dtype=np.int64)
    guards = np.zeros((len(flat.guards), 2 + depths), dtype=np.int64)
    guard = 0
    for row, (stream, depth) in enumerate(flat.streams):
        moves = stream.steps_bytes
        step = moves[depth] if depth < len(moves) else 0
        log_step = step.bit_length() - 1 if step > 0 and step & (step - 1) == 0 else -1
        end = guard + len(stream.guards)
        records[row, :13] = (stream.address, step, log_step, stream.write, 0, stream.operand,
                             stream.follows, 0, NEVER, 0, 0, guard, end)
        steps[row, :len(moves)] = moves
        guard = end
    for row, condition in enumerate(flat.guards):
        guards[row, :2 + len(condition.steps)] = (condition.offset, condition.limit,
                                                  *condition.steps)
    parts = [np.array(flat.code, dtype=np.int64).ravel(), records.ravel(), steps.ravel(),
             guards.ravel(), *[np.zeros(size, dtype=np.int64) for size in (
                 3 * depths, streams, sets)]]
    code, at, moves_at, guards_at, loops, nexts, users, end = np.cumsum(
        [HEADER_WORDS, *map(len, parts)]).tolist()
    header = [code, at, at, moves_at, depths, guards_at, 2 + depths, loops, nexts, users, 0,
              0, end, in_order, 0]
    words = np.concatenate([np.array(header, dtype=np.int64), *parts])
    words.flags.writeable = False
    return words


def _flatten_body(body: Tree, depth: int, flat: _Flat) -> None:
    run: list[Stream] = []
    for part in body:
        if isinstance(part, Stream):
            run.append(part)
            continue
        _flatten_innermost(run, 1, depth, flat)
        run = []
        _flatten_loop(part.body, part.extent, depth, flat)
    _flatten_innermost(run, 1, depth, flat)


def _flatten_loop(body: Tree, extent: int, depth: int, flat: _Flat) -> None:
    if not any([isinstance(inner, Repeat) for inner in body]):
        _flatten_innermost(cast("Sequence[Stream]", body), extent, depth, flat)
        return
    start, first = len(flat.code), len(flat.streams)
    flat.code.append(())
    _flatten_body(body, depth + 1, flat)
    end, last = len(flat.code), len(flat.streams)
    still = not flat.in_order and not any(
        [moves_stream(stream, depth) for stream, _ in flat.streams[first:]])
    flat.code[start] = (LOOP, extent, depth, first, last, end, still)
    flat.code.append((END, extent, depth, first, last, start, still))


def _flatten_innermost(loop: Sequence[Stream], extent: int, depth: int, flat: _Flat) -> None:
    if not loop:
        return
    first = len(flat.streams)
    flat.streams += [(stream, depth) for stream in loop]
    guards = [guard for stream in loop for guard in stream.guards]
    flat.guards += guards
    flat.code.append((INNERMOST, extent, depth, first, len(flat.streams), bool(guards), 0))
