"""Blocks: what an iteration of a loop accesses, known without running it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from hwmodels.frozen import frozen
from hwmodels.nest.stream import Stream, Tree

MOST_SPREAD = 4096

MOST_STARTS = 128
"""Runs of a stream's addresses beyond which no blocks are made of them."""


@frozen
class Block:
    """Bytes that one iteration of a loop touches without leaving a line between them out.

    Parameters
    ----------
    operand
        Position of its operand in the kernel.
    write
        Store or load.
    steps_bytes
        Address step of each loop around and of the loop itself, outermost first.
    address
        Lowest one at index zero of every loop.
    reach_bytes
        From there to the highest one.
    """

    operand: int
    write: bool
    steps_bytes: tuple[int, ...]
    address: int
    reach_bytes: int


Runs = dict[tuple[int, bool, tuple[int, ...]], list[tuple[int, int]]]
"""First and last addresses, by operand, whether stored to, and steps."""


def join_runs(streams: Iterable[tuple[Stream, tuple[int, ...]]], depth: int, line_bytes: int,
              most: int) -> Runs:
    """Join what streams of one manner touch in an iteration, where no line lies between.

    Parameters
    ----------
    streams : iterable of (Stream, tuple of int)
        With extents of the loops inside.
    most
        Pieces beyond which nothing is joined.

    Returns
    -------
    dict of tuple to list of (int, int)
        Empty where a guard makes it uncertain, or there are too many pieces.
    """
    alike: Runs = {}
    for stream, extents in streams:
        starts, reach = spread_steps(stream.steps_bytes[depth + 1:], extents, line_bytes,
                                     MOST_STARTS)
        most -= len(starts)
        if stream.guards or not starts or most < 0:
            return {}
        address = stream.address
        alike.setdefault((stream.operand, stream.write, stream.steps_bytes[:depth + 1]), []).extend(
            [(address + start, address + start + reach) for start in starts])
    return {key: join_spans(spans, line_bytes) for key, spans in alike.items()}


def join_spans(spans: list[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Join spans of numbers no further apart than a gap."""
    spans.sort()
    joined: list[tuple[int, int]] = []
    first, last = spans[0]
    for low, high in spans:
        if low > last + gap:
            joined.append((first, last))
            first, last = low, high
        elif high > last:
            last = high
    joined.append((first, last))
    return joined


def make_blocks(runs: Runs) -> list[Block]:
    """Make blocks of what streams touch."""
    return [Block(operand=operand, write=write, address=low, steps_bytes=steps,
                  reach_bytes=high - low)
            for (operand, write, steps), spans in runs.items() for low, high in spans]


def walk_extents(tree: Tree, extents: tuple[int, ...],
                 ) -> list[tuple[Stream, tuple[int, ...]]]:
    """Return the streams of a tree, each with the extents of the loops inside around it."""
    found: list[tuple[Stream, tuple[int, ...]]] = []
    for part in tree:
        if isinstance(part, Stream):
            found.append((part, extents))
        else:
            found += walk_extents(part.body, (*extents, part.extent))
    return found


@lru_cache(maxsize=MOST_SPREAD)
def spread_steps(steps_bytes: tuple[int, ...], extents: tuple[int, ...], line_bytes: int,
                 most: int, *, covers: bool = False) -> tuple[tuple[int, ...], int]:
    """Return where runs of addresses over inner loops begin, and the reach of each.

    Shortest steps first; the run is in every line it has. Where there are more than `most`, there
    are no starts, or runs that `covers` larger steps, too.
    """
    starts: tuple[int, ...] = (0,)
    reach = 0
    for size, step, extent in sorted(zip(map(abs, steps_bytes), steps_bytes, extents,
                                         strict=True)):
        if step < 0:
            starts = tuple([start + step * (extent - 1) for start in starts])
        if size <= reach + line_bytes or (covers and len(starts) * extent > most):
            reach += size * (extent - 1)
        elif len(starts) * extent <= most:
            starts = tuple([start + size * turn for start in starts for turn in range(extent)])
        else:
            return (), 0
    return starts, reach


def moving_lines(runs: Runs, line_bytes: int) -> float:
    """Lines that an iteration of a loop enters."""
    return sum([min(abs(steps[-1]), high - low + line_bytes)
                for (*_, steps), spans in runs.items() for low, high in spans]) / line_bytes
