"""Blocks: what an iteration of a loop touches, told without running it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from hwmodels.nest.rewrite import class_of_lines
from hwmodels.nest.stream import Stream, Tree, keep_by_body

EVER = 1 << 60
ANY_PART = 1 << 30

MOST_SPREAD = 4096

MAX_BLOCKS = 64
"""Blocks of a loop above which it is not tried as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """What of a cache and its use the flattened form of a loop hangs on, whatever its size.

    Parameters
    ----------
    line_bytes : int
        Of the cache.
    allocates : bool
        Stores do, or there are none.
    hits_change : bool
        Whether a touch that finds its line changes what leaves next.
    sets_apart : bool
        Whether what one set evicts hangs on nothing outside it.
    grouped : bool
        Whether loops may be run line by line; if not, every access is looked up.
    """

    line_bytes: int
    allocates: bool
    hits_change: bool
    sets_apart: bool
    grouped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """From how many sets on iterations of a loop are tried at once, and how many.

    Parameters
    ----------
    lines : int
        That an iteration touches; more than half as many again as there are sets are not tried.
    apart : float
        Those of them that are told apart.
    entered : float
        That it enters.
    share : float
        Of the sets that the iterations tried may touch.
    more : int
        Iterations tried beyond.
    """

    lines: int = 0
    apart: float = 0
    entered: float = 0
    share: float = 0
    more: int = 0


UNPACED = Pace()
"""Of an operation that says itself how many."""


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
    """

    part: int
    operand: int
    write: bool
    steps_bytes: tuple[int, ...]
    address: int
    reach_bytes: int


Piece = tuple[Stream, int, int, int]
"""Streams of a leaf that are always in one line, or in lines with none between left out: the one
at the lowest address, how far they reach from there, places of the first and the last of them."""


@keep_by_body
def find_pieces(leaf: Tree, line_bytes: int) -> list[Piece]:
    """Join the streams of a leaf that are always in one line; what is between them may not be."""
    places: dict[object, tuple[Stream, list[int]]] = {}
    for place, stream in enumerate(leaf):
        assert isinstance(stream, Stream), "leaves hold nothing else"
        places.setdefault(class_of_lines(stream, line_bytes, place),
                          (stream, []))[1].append(place)
    return [(lead, 0, members[0], members[-1]) for lead, members in places.values()]


def join_pieces(pieces: Sequence[Piece], line_bytes: int, sets: int) -> tuple[list[Piece], int]:
    """Join pieces of one manner with no line between them, and no other piece in their order.

    Where lines of one iteration are in sets of their own, which of them comes first tells nothing;
    places of a joined piece stand to those of others as those of each of its pieces do.

    Parameters
    ----------
    pieces : sequence of (Stream, int, int, int)
        Of `find_pieces`.
    line_bytes, sets : int
        Of the cache.

    Returns
    -------
    list of (Stream, int, int, int)
        Joined, in the order of first places.
    int
        Sets from which on the outcome is the same.
    """
    alike: dict[object, list[Piece]] = {}
    for piece in pieces:
        lead = piece[0]
        manner = lead.operand, lead.write, lead.steps_bytes, lead.guards
        alike.setdefault(manner, []).append(piece)
    firsts = {piece[2]: number for number, piece in enumerate(pieces)}
    lasts = {last: number for number, last in enumerate(sorted([piece[3] for piece in pieces]))}
    joined: list[Piece] = []
    enough = 0
    for members in alike.values():
        members.sort(key=lambda piece: piece[0].address)
        spans = [[members[0]]]
        for piece in members[1:]:
            reach = piece[0].address - spans[-1][0][0].address
            near = piece[0].address - spans[-1][-1][0].address <= line_bytes
            enough = max(enough, near * (reach // line_bytes + 2))
            if near and reach < line_bytes * (sets - 1):
                spans[-1].append(piece)
            else:
                spans.append([piece])
        joined += [one for span in spans for one in _join_span(span, firsts, lasts)]
    return sorted(joined, key=lambda piece: piece[2]), enough


def _join_span(span: list[Piece], firsts: dict[int, int], lasts: dict[int, int]) -> list[Piece]:
    """Join pieces, unless another one comes between the first or the last touches of them."""
    if len(span) == 1:
        return span
    begun, ended = sorted([piece[2] for piece in span]), sorted([piece[3] for piece in span])
    if (firsts[begun[-1]] - firsts[begun[0]] >= len(span)
            or lasts[ended[-1]] - lasts[ended[0]] >= len(span)):
        return span
    return [(span[0][0], span[-1][0].address - span[0][0].address, begun[0], ended[-1])]


def pace_pieces(pieces: Sequence[Piece], depth: int, line_bytes: int) -> Pace:
    """Return as many iterations of a leaf as touch about six lines in ten sets, at least one."""
    lines = entered = 0.0
    for lead, reach, _, _ in pieces:
        step = abs(lead.steps_bytes[depth]) if len(lead.steps_bytes) > depth else 0
        lines += 1 + reach / line_bytes
        entered += min(step / line_bytes, 1 + reach / line_bytes)
    return Pace(apart=lines, entered=entered, share=0.6)


@keep_by_body
def find_blocks(body: Tree, depth: int, line_bytes: int, allocates: bool,
                sets_apart: bool) -> tuple[Runs, Pace]:
    """Find what one iteration of a loop touches, as blocks.

    Parameters
    ----------
    body : tuple of Repeat or Stream
        The loop's body.
    depth : int
        Of the loop's index.
    line_bytes, allocates, sets_apart
        As of a `Manner`.

    Returns
    -------
    dict of tuple to list of (int, int)
        Empty when a guard or a store that does not allocate makes the outcome uncertain, or there
        are too many.
    Pace
        As many iterations as touch about half as many lines as there are sets, at least one;
        where sets would see more than a line or two anyway, none is tried.
    """
    parts = [walk_extents((inner,), ()) for inner in body]
    stored = {stream.operand for part in parts for stream, _ in part if stream.write}
    if stored and not allocates:
        return {}, UNPACED
    loaded = {stream.operand for part in parts for stream, _ in part if not stream.write}
    # Order between parts matters where loads and stores mix, or between sets.
    mixed = stored & loaded if sets_apart else stored | loaded
    runs = join_runs([(stream, number if stream.operand in mixed else ANY_PART, extents)
                      for number, part in enumerate(parts) for stream, extents in part],
                     depth, line_bytes, 16 * MAX_BLOCKS)
    if not runs or sum(map(len, runs.values())) > MAX_BLOCKS:
        return {}, UNPACED
    apart = count_lines(runs, line_bytes)
    # Where parts are told apart, each has room for its lines.
    lines = apart if sets_apart else sum(
        [high // line_bytes - low // line_bytes + 1
         for spans in runs.values() for low, high in spans])
    return runs, Pace(lines=lines, apart=apart, entered=moving_lines(runs, line_bytes), share=0.5,
                      more=1)


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


def count_lines(runs: Runs, line_bytes: int) -> int:
    """Count the lines touched, each once."""
    lines: dict[int, list[tuple[int, int]]] = {}
    for (_, operand, *_), spans in runs.items():
        lines.setdefault(operand, []).extend(
            [(low // line_bytes, high // line_bytes) for low, high in spans])
    return sum([last - first + 1 for spans in lines.values()
                for first, last in _join_spans(spans, 0)])


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


def moving_lines(runs: Runs, line_bytes: int) -> float:
    """Lines that an iteration of a loop enters."""
    return sum([min(abs(steps[-1]), high - low + line_bytes)
                for (*_, steps), spans in runs.items() for low, high in spans]) / line_bytes
