"""Compiled: what kernels do to a cache under LRU, each known from one run from an empty cache.

Tables are explained in `hwmodels.cache.transfer`.
"""

from hwmodels.kernels.compiled import Integer, Words, compile_inline, compile_kept

LINE, MISS, FATE, OWNER, FIRST_WORDS = 0, 1, 2, 3, 4
"""Of a first line: its address over the line's bytes, where its miss is counted, what becomes of
the entry it finds, its owner if it is not found."""

STORED, GONE = -1, -2
"""Fates: the entry is stored to, which makes it a new one; it leaves as it was. Else it stays as it
was, in the way the number says."""

SETS, SIZE, LEAVING, HEAD = 0, 1, 2, 3
"""Of a kernel: sets it comes to, counters it has, those of lines that leave; counters follow."""


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
def transfer_set(table: Words, at: Integer, ways: Integer, words: Words, counters: Words,
                 out: Integer, leaving: Integer, room: Integer) -> Integer:
    """Bring a set from before a kernel to after it; return where the next set's words begin.

    The entries the kernel has not come to yet stand in `room`, most recent first.
    """
    base, count = table[at], table[at + 1]
    first = at + 2
    last = first + FIRST_WORDS * count
    held = take_entries(words, base, ways, counters, room)
    for way in range(count):
        words[base + way] = table[last + way]
    for seen in range(count):
        line, way = table[first + LINE], 0
        while way < held and counters[room + way] >> 8 != line:
            way += 1
        if way < held:
            entry, fate = counters[room + way], table[first + FATE]
            counters[out + table[first + MISS]] -= 1
            if fate >= 0:
                words[base + fate] = entry
            elif fate == GONE:
                counters[leaving + 2 * table[first + OWNER]] -= 1
                count_leaving(counters, leaving, entry)
            held -= 1
            drop_entry(counters, room, way, held)
        elif seen + held == ways:
            held -= 1
            count_leaving(counters, leaving, counters[room + held])
        first += FIRST_WORDS
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
        How many kernels; geometry.
    table : ndarray of int64
        Of each kernel its head, what its counters are from an empty cache, and its sets: place of
        its entries in the state, number of first lines, those, and as many entries of the end.
    words : ndarray of int64
        State of the cache, changed.
    counters : ndarray of int64
        Filled: the counters of each kernel, then `ways` words of room.

    Notes
    -----
    Only the first lines of a set, as many as it has ways, may meet what was there before: each is
    hit if it is among what the ones before it did not drive out, and else drives the oldest line
    out that the kernel has not come to.
    """
    room = counters.shape[0] - ways
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
