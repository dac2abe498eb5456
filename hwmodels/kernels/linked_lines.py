"""Compiled: a fully associative cache under LRU as a linked list, where moving entries takes long.

`links` holds the newest and the oldest way, for each way the next older and the next newer one, in
which way a line was found last, by its low bits, and room to put entries in order again; nothing at
all where entries are moved, as `touch_stream` does.
"""

from hwmodels.kernels.cache_words import BYPASS, EMPTY, HIT, READ_FILL, WRITE_FILL
from hwmodels.kernels.compiled import Integer, Words, compile_inline
from hwmodels.kernels.touch_stream import meet_line

ENTRIES = 8
NEWEST, OLDEST, WAYS = 0, 1, 2
HINTS = 256


def room_for_links(ways: int) -> int:
    """Return the length of `links`."""
    return WAYS + 3 * ways + HINTS


@compile_inline
def link_lines(state: Words, links: Words, ways: Integer) -> None:
    """Make the list of entries in order of use, newest first."""
    if links.shape[0] == 0:
        return
    links[NEWEST], links[OLDEST] = 0, ways - 1
    for way in range(ways):
        links[WAYS + way] = way + 1
        links[WAYS + ways + way] = way - 1
        if state[ENTRIES + way] >= 0:
            links[WAYS + 2 * ways + (state[ENTRIES + way] >> 8 & HINTS - 1)] = way


@compile_inline
def order_lines(state: Words, links: Words, ways: Integer) -> None:
    """Put entries in order of use again, newest first."""
    if links.shape[0] == 0:
        return
    room, way = WAYS + 2 * ways + HINTS, links[NEWEST]
    for place in range(ways):
        links[room + place] = state[ENTRIES + way]
        way = links[WAYS + way]
    for place in range(ways):
        state[ENTRIES + place] = links[room + place]


@compile_inline
def move_to_newest(way: Integer, links: Words, ways: Integer) -> None:
    """Make a way the newest."""
    if way != links[NEWEST]:
        older, newer = links[WAYS + way], links[WAYS + ways + way]
        links[WAYS + newer] = older
        if way == links[OLDEST]:
            links[OLDEST] = newer
        else:
            links[WAYS + ways + older] = newer
        links[WAYS + way] = links[NEWEST]
        links[WAYS + ways + links[NEWEST]] = way
        links[NEWEST] = way


@compile_inline
def meet_linked(line: Integer, write: Integer, owner: Integer, geometry: Words, state: Words,
                links: Words) -> tuple[Integer, Integer]:
    """Look a line up; return as `meet_line` does."""
    if links.shape[0] == 0:
        return meet_line(line, write, owner, geometry, state)
    ways = geometry[1]
    hint = WAYS + 2 * ways + (line & HINTS - 1)
    entry = line << 8 | owner << 1 | (write & geometry[4])
    found, left, way = HIT, EMPTY, links[hint]
    if state[ENTRIES + way] >> 8 != line:
        way = 0
        while way < ways and state[ENTRIES + way] >> 8 != line:
            way += 1
        if way == ways:
            if write and not geometry[5]:
                return BYPASS, EMPTY
            found = WRITE_FILL if write else READ_FILL
            way = links[OLDEST]
            left = state[ENTRIES + way]
        links[hint] = way
    if write or found != HIT:
        state[ENTRIES + way] = entry
    move_to_newest(way, links, ways)
    return found, left
