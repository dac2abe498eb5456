"""Blocks: what an iteration of a loop touches, told without running it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from hwmodels.kernel import Guard
from hwmodels.nest.rewrite import class_of_lines
from hwmodels.nest.stream import Stream, Tree

EVER = 1 << 60
ANY_PART = 1 << 30

MOST_SPREAD = 4096

MAX_BLOCKS = 64
"""Blocks of a loop above which it is not tried as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """What of a cache blocks depend on.

    Parameters
    ----------
    line_bytes, sets, ways : int
        Of the cache.
    allocates : bool
        Stores do, or there are none.
    hits_change : bool
        Whether a touch that finds its line changes what leaves next.
    sets_apart : bool
        Whether what one set evicts hangs on nothing outside it.
    """

    line_bytes: int
    sets: int
    ways: int
    allocates: bool
    hits_change: bool
    sets_apart: bool


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Streams of a leaf that are always in one line, or in lines with none between left out.

    Parameters
    ----------
    operand, write, steps_bytes, address, reach_bytes, guards
        As of a block.
    first_place, last_place : int
        Of the first and the last such stream in the leaf.
    """

    operand: int
    write: bool
    steps_bytes: tuple[int, ...]
    address: int
    first_place: int
    last_place: int
    reach_bytes: int = 0
    guards: tuple[Guard, ...] = ()


def find_pieces(leaf: Sequence[Stream], line_bytes: int) -> list[Piece]:
    """Join the streams of a leaf that are always in one line; what is between them may not be."""
    places: dict[object, list[int]] = {}
    for place, stream in enumerate(leaf):
        places.setdefault(class_of_lines(stream, line_bytes, place), []).append(place)
    return [Piece(operand=leaf[first].operand, write=leaf[first].write,
                  steps_bytes=leaf[first].steps_bytes, address=leaf[first].address,
                  guards=leaf[first].guards, first_place=first, last_place=last)
            for first, *_, last in ((*members, members[-1]) for members in places.values())]


def join_pieces(pieces: Sequence[Piece], geometry: Geometry) -> list[Piece]:
    """Join pieces of one manner with no line between them, and no other piece in their order.

    Where lines of one iteration are in sets of their own, which of them comes first tells nothing;
    places of a joined piece stand to those of others as those of each of its pieces do.
    """
    alike: dict[object, list[Piece]] = {}
    for piece in pieces:
        alike.setdefault((piece.operand, piece.write, piece.steps_bytes, piece.guards), []).append(
            piece)
    joined: list[Piece] = []
    for members in alike.values():
        members.sort(key=lambda piece: piece.address)
        spans = [[members[0]]]
        for piece in members[1:]:
            near = piece.address - spans[-1][-1].address <= geometry.line_bytes
            short = piece.address - spans[-1][0].address < geometry.line_bytes * (geometry.sets - 1)
            if near and short:
                spans[-1].append(piece)
            else:
                spans.append([piece])
        joined += [one for span in spans for one in _join_span(span, pieces)]
    return sorted(joined, key=lambda piece: piece.first_place)


def _join_span(span: Sequence[Piece], pieces: Sequence[Piece]) -> Sequence[Piece]:
    """Join pieces, unless another one comes between the first or the last touches of them."""
    firsts = sorted(piece.first_place for piece in span)
    lasts = sorted(piece.last_place for piece in span)
    own = set(map(id, span))
    if len(span) == 1 or any(
            firsts[0] < piece.first_place < firsts[-1] or lasts[0] < piece.last_place < lasts[-1]
            for piece in pieces if id(piece) not in own):
        return span
    return [replace(span[0], reach_bytes=span[-1].address - span[0].address,
                    first_place=firsts[0], last_place=lasts[-1])]


def count_iterations(pieces: Sequence[Piece], depth: int, geometry: Geometry) -> int:
    """Return the iterations of a leaf that touch about six lines in ten sets, at least one."""
    lines = moving = 0.0
    for piece in pieces:
        step = abs(piece.steps_bytes[depth]) if len(piece.steps_bytes) > depth else 0
        lines += 1 + piece.reach_bytes / geometry.line_bytes
        moving += min(step / geometry.line_bytes, 1 + piece.reach_bytes / geometry.line_bytes)
    if not moving:
        return EVER
    return max(1, int((0.6 * geometry.sets - lines) / moving))


def find_blocks(body: Tree, depth: int, geometry: Geometry) -> list[Block]:
    """Find what one iteration of a loop touches, as blocks.

    Parameters
    ----------
    body : tuple of Repeat or Stream
        The loop's body.
    depth : int
        Of the loop's index.
    geometry : Geometry
        Of the cache.

    Returns
    -------
    list of Block
        By part and address; empty when a guard or a store that does not allocate makes the
        outcome uncertain, or when sets would see more than a line or two anyway.
    """
    parts = [list(walk_extents((inner,), ())) for inner in body]
    stored = {stream.operand for part in parts for stream, _ in part if stream.write}
    if stored and not geometry.allocates:
        return []
    loaded = {stream.operand for part in parts for stream, _ in part if not stream.write}
    # Order between parts matters where loads and stores mix, or between sets.
    mixed = stored & loaded if geometry.sets_apart else stored | loaded
    runs = join_runs(((stream, number if stream.operand in mixed else ANY_PART, extents)
                      for number, part in enumerate(parts) for stream, extents in part),
                     depth, geometry.line_bytes, 16 * MAX_BLOCKS)
    if not runs or sum(map(len, runs.values())) > MAX_BLOCKS:
        return []
    # Where parts are told apart, each has room for its lines.
    lines = _count_lines(runs, geometry.line_bytes) if geometry.sets_apart else sum(
        [high // geometry.line_bytes - low // geometry.line_bytes + 1
         for spans in runs.values() for low, high in spans])
    return make_blocks(runs) if lines <= 3 * geometry.sets // 2 else []


Runs = dict[tuple[int, int, bool, tuple[int, ...]], list[tuple[int, int]]]
"""First and last addresses, by part, operand, whether stored to, and steps."""


def join_runs(streams: Iterable[tuple[Stream, int, tuple[int, ...]]], depth: int, line_bytes: int,
              most: int) -> Runs:
    """Join what streams of one part and manner touch in an iteration, where no line lies between.

    Parameters
    ----------
    streams : iterable of (Stream, int, tuple of int)
        With the part each is of, and extents of the loops inside.
    depth : int
        Of the loop.
    line_bytes : int
        Of the cache.
    most : int
        Pieces beyond which nothing is joined.

    Returns
    -------
    dict of tuple to list of (int, int)
        Empty where a guard makes it uncertain, or there are too many pieces.
    """
    alike: Runs = {}
    for stream, part, extents in streams:
        starts, reach = spread_steps(stream.steps_bytes[depth + 1:], extents, line_bytes)
        most -= len(starts)
        if stream.guards or not starts or most < 0:
            return {}
        address = stream.address
        alike.setdefault((part, stream.operand, stream.write, stream.steps_bytes[:depth + 1]),
                         []).extend([(address + start, address + start + reach)
                                     for start in starts])
    return {key: _join_spans(spans, line_bytes) for key, spans in alike.items()}


def _join_spans(spans: list[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
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
    """Make blocks of what streams touch, by part."""
    return [Block(part=part, operand=operand, write=write, address=low, steps_bytes=steps,
                  reach_bytes=high - low)
            for (part, operand, write, steps), spans in sorted(
                runs.items(), key=lambda item: item[0][0]) for low, high in spans]


def _count_lines(runs: Runs, line_bytes: int) -> int:
    """Count the lines touched, each once."""
    lines: dict[int, list[tuple[int, int]]] = {}
    for (_, operand, *_), spans in runs.items():
        lines.setdefault(operand, []).extend(
            [(low // line_bytes, high // line_bytes) for low, high in spans])
    return sum([last - first + 1 for spans in lines.values()
                for first, last in _join_spans(spans, 0)])


def choose_chunk(blocks: Sequence[Block], geometry: Geometry) -> int:
    """Return the iterations that touch about half as many lines as there are sets, at least one."""
    moving = moving_lines(blocks, geometry.line_bytes)
    if not moving:
        return EVER
    runs: Runs = {}
    for block in blocks:
        runs.setdefault((0, block.operand, False, ()), []).append(
            (block.address, block.address + block.reach_bytes))
    return max(1, int((geometry.sets / 2 - _count_lines(runs, geometry.line_bytes)) / moving) + 1)


def walk_extents(tree: Tree,
                 extents: tuple[int, ...]) -> Iterable[tuple[Stream, tuple[int, ...]]]:
    """Yield the streams of a tree, each with the extents of the loops inside around it."""
    for part in tree:
        if isinstance(part, Stream):
            yield part, extents
        else:
            yield from walk_extents(part.body, (*extents, part.extent))


@lru_cache(maxsize=MOST_SPREAD)
def spread_steps(steps_bytes: tuple[int, ...], extents: tuple[int, ...],
                 line_bytes: int) -> tuple[tuple[int, ...], int]:
    """Return where runs of addresses over inner loops begin, and the reach of each.

    Shortest steps first; the run is in every line it has. No starts: too many.
    """
    starts: tuple[int, ...] = (0,)
    reach = 0
    for size, step, extent in sorted(zip(map(abs, steps_bytes), steps_bytes, extents,
                                         strict=True)):
        if step < 0:
            starts = tuple([start + step * (extent - 1) for start in starts])
        if size <= reach + line_bytes:
            reach += size * (extent - 1)
        elif len(starts) * extent <= 2 * MAX_BLOCKS:
            starts = tuple([start + size * turn for start in starts for turn in range(extent)])
        else:
            return (), 0
    return starts, reach


def moving_lines(blocks: Iterable[Block], line_bytes: int) -> float:
    """Lines that blocks enter in an iteration of their loop."""
    return sum(min(abs(block.steps_bytes[-1]), block.reach_bytes + line_bytes)
               for block in blocks) / line_bytes
