"""Compiled: what kernels do to a cache under LRU, each known from one run from an empty cache.

Tables are explained in `hwmodels.cache.transfer`.
"""

from hwmodels.kernels.compiled import Integer, Words, compile_inline, compile_kept

FATE = 65535
"""Behind the first lines of a set, with the owners they have if they are not found: where the miss
of each is counted, shifted, and what becomes of the entry it finds. That is one of"""
GONE, STORED, STAYS = 0, 1, 2
"""the entry leaves as it was; it is stored to, which makes it a new one; it stays as it was, in the
way the number is above."""

SETS, SIZE, LEAVING, HEAD = 0, 1, 2, 3
"""Of a kernel: sets it comes to, counters it has, those of lines that leave; counters follow, the
last of them look-ups."""


@compile_inline
def count_leaving(counters: Words, at: Integer, entry: Integer) -> None:
    """Count an entry that leaves."""
    counters[at + 2 * ((entry >> 1) & 127)] += 1
    counters[at + 2 * ((entry >> 1) & 127) + 1] += entry & 1


@compile_inline
def take_entries(words: Words, base: Integer, ways: Integer, counters: Words,
                 room: Integer) -> Integer:
    """Put the entries of a set aside; return how many there are."""
    held = 0
    for way in range(ways):
        entry = words[base + way]
        counters[room + way] = entry
        held += 1 if entry >= 0 else 0
    return held


@compile_inline
def drop_entry(counters: Words, room: Integer, way: Integer, held: Integer) -> None:
    """Close the gap an entry leaves among those put aside."""
    while way < held:
        counters[room + way] = counters[room + way + 1]
        way += 1


@compile_inline
def renew_four(table: Words, first: Integer, words: Words, base: Integer, counters: Words,
               leaving: Integer) -> bool:
    """Bring a full set of four ways to after a kernel that comes to four others, if they are."""
    a, b, c, d = words[base], words[base + 1], words[base + 2], words[base + 3]
    found = d < 0
    for at in range(first, first + 4):
        line = table[at] >> 8
        found = found | (a >> 8 == line) | (b >> 8 == line) | (c >> 8 == line) | (d >> 8 == line)
    if found:
        return False
    for way in range(4):
        words[base + way] = table[first + 8 + way]
    mark = a & 255
    if (b & 255) == mark and (c & 255) == mark and (d & 255) == mark:
        counters[leaving + 2 * (mark >> 1)] += 4
        counters[leaving + 2 * (mark >> 1) + 1] += 4 * (mark & 1)
    else:
        count_leaving(counters, leaving, a)
        count_leaving(counters, leaving, b)
        count_leaving(counters, leaving, c)
        count_leaving(counters, leaving, d)
    return True


@compile_inline
def transfer_set(table: Words, at: Integer, ways: Integer, words: Words, counters: Words,
                 out: Integer, leaving: Integer, room: Integer) -> Integer:
    """Bring a set from before a kernel to after it; return where the next set's words begin.

    The entries the kernel has not come to yet stand in `room`, most recent first.
    """
    base, count = table[at], table[at + 1]
    first = at + 2
    last = first + 2 * count
    if count == 4 and ways == 4 and renew_four(table, first, words, base, counters, leaving):
        return last + count
    held = take_entries(words, base, ways, counters, room)
    for way in range(count):
        words[base + way] = table[last + way]
    for seen in range(count):
        line, way = table[first + seen] >> 8, 0
        while way < held and counters[room + way] >> 8 != line:
            way += 1
        if way < held:
            entry, found = counters[room + way], table[first + count + seen]
            fate = found & FATE
            counters[out + (found >> 16)] -= 1
            if fate >= STAYS:
                words[base + fate - STAYS] = entry
            elif fate == GONE:
                counters[leaving + 2 * ((table[first + seen] >> 1) & 127)] -= 1
                count_leaving(counters, leaving, entry)
            held -= 1
            drop_entry(counters, room, way, held)
        elif seen + held == ways:
            held -= 1
            count_leaving(counters, leaving, counters[room + held])
    for way in range(held):
        words[base + count + way] = counters[room + way]
    return last + count


@compile_kept
def transfer_state(kernels: Integer, ways: Integer, table: Words, words: Words,
                   counters: Words) -> None:
    """Bring a cache from before kernels to after them.

    Parameters
    ----------
    kernels, ways : int
        How many follow each other; geometry.
    table : ndarray of int64
        Of each kernel: sets it comes to, number of its counters and where those of lines that leave
        begin; what the counters are from an empty cache; of each set the place of its entries in
        the state, number of first lines, those, what is to be known of each, and as many entries
        of the end.
    words : ndarray of int64
        State of the cache, changed.
    counters : ndarray of int64
        Filled, one kernel's behind the other's, but for the last words, as many as there are ways:
        they are room.

    Notes
    -----
    Only the first lines of a set, as many as it has ways, may meet what was there before: each is
    hit if it is among what the ones before it did not drive out, and else drives the oldest line
    out that the kernel has not come to.
    """
    room = len(counters) - ways
    at = out = 0
    for _ in range(kernels):
        sets, size, leaving = table[at + SETS], table[at + SIZE], out + table[at + LEAVING]
        at += HEAD
        for place in range(size):
            counters[out + place] = table[at + place]
        at += size
        for _ in range(sets):
            at = transfer_set(table, at, ways, words, counters, out, leaving, room)
        out += size
