"""Trees of address streams flattened to the integer arrays the cache kernels interpret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hwmodels.kernel import Guard
from hwmodels.nest import Stream, Tree

LOOP, END, LEAF = 0, 1, 2
"""Operations: enter a loop, close it, run a loop that holds nothing but streams."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Program:
    """A flattened tree.

    Parameters
    ----------
    code : ndarray of int64, (operations, 6)
        Operation, extent, depth of its index, first stream, stream after the last, position of
        its partner (LOOP and END).
    records : ndarray of int64, (streams, 16)
        Address, step in the stream's leaf, log2 of that step (-1: no power of two), write, 0,
        operand, follows, and room for where the stream is.
    steps : ndarray of int64, (streams, depths)
        Address step per depth.
    guards : ndarray of int64, (guards, 2)
        Offset and limit.
    guard_steps : ndarray of int64, (guards, depths)
        Step of the guarded index per depth.
    guard_ranges : ndarray of int64, (streams, 2)
        First guard of a stream, guard after its last.
    """

    code: np.ndarray
    records: np.ndarray
    steps: np.ndarray
    guards: np.ndarray
    guard_steps: np.ndarray
    guard_ranges: np.ndarray


def flatten_tree(tree: Tree) -> Program:
    """Flatten a tree of streams to arrays.

    Parameters
    ----------
    tree : tuple of Repeat or Stream
        In program order.

    Returns
    -------
    Program
        Neighbouring streams outside a loop become a leaf of one iteration.
    """
    code: list[list[int]] = []
    streams: list[tuple[Stream, int]] = []
    _flatten_body(tree, 0, code, streams)
    depths = max([len(stream.steps_bytes) for stream, _ in streams], default=0) + 1
    rows: list[list[int]] = []
    ranges: list[list[int]] = []
    guards: list[Guard] = []
    for stream, depth in streams:
        step = _pad(stream.steps_bytes, depths)[depth]
        log_step = step.bit_length() - 1 if step > 0 and step & (step - 1) == 0 else -1
        rows.append([stream.address, step, log_step, stream.write, 0, stream.operand,
                     stream.follows, *[0] * 9])
        ranges.append([len(guards), len(guards) + len(stream.guards)])
        guards += stream.guards
    return Program(
        code=_table(code, 6), records=_table(rows, 16),
        steps=_table([_pad(stream.steps_bytes, depths) for stream, _ in streams], depths),
        guards=_table([[guard.offset, guard.limit] for guard in guards], 2),
        guard_steps=_table([_pad(guard.steps, depths) for guard in guards], depths),
        guard_ranges=_table(ranges, 2))


def _flatten_body(body: Tree, depth: int, code: list[list[int]], streams: list[tuple[Stream, int]]) -> None:
    run: list[Stream] = []
    for part in body:
        if isinstance(part, Stream):
            run.append(part)
            continue
        _flatten_leaf(run, 1, depth, code, streams)
        run = []
        leaf = [inner for inner in part.body if isinstance(inner, Stream)]
        if len(leaf) == len(part.body):
            _flatten_leaf(leaf, part.extent, depth, code, streams)
        else:
            start, first = len(code), len(streams)
            code.append([])
            _flatten_body(part.body, depth + 1, code, streams)
            code[start] = [LOOP, part.extent, depth, first, len(streams), len(code)]
            code.append([END, part.extent, depth, first, len(streams), start])
    _flatten_leaf(run, 1, depth, code, streams)


def _flatten_leaf(leaf: Sequence[Stream], extent: int, depth: int, code: list[list[int]],
                  streams: list[tuple[Stream, int]]) -> None:
    if leaf:
        first = len(streams)
        streams.extend((stream, depth) for stream in leaf)
        code.append([LEAF, extent, depth, first, len(streams), 0])


def _pad(steps: tuple[int, ...], depths: int) -> list[int]:
    return [*steps, *[0] * (depths - len(steps))]


def _table(rows: list[list[int]], columns: int) -> np.ndarray:
    return np.array(rows, dtype=np.int64).reshape(len(rows), columns)
