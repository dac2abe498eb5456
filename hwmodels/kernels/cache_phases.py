"""Compiled: cut a loop into phases; no set sees more lines than it has ways in one."""

from hwmodels.kernels.compiled import Integer, Table, Words, compile_inline, compile_kept

ENDS, PLAIN = 1, 2
"""Of a row: the entry ends here; its iterations are in no phase."""

MOST_PLAIN = 32
"""Thrice the iterations that may fit nowhere before others make up for them."""


@compile_inline
def add_lines(first: Integer, last: Integer, origin: Integer, stamps: Words, counts: Words,
              sets: Integer, ways: Integer, phase: Integer) -> bool:
    """Note lines of a phase; False when a set would hold more of them than it has ways."""
    for line in range(first, last + 1):
        if stamps[line - origin] != phase:
            stamps[line - origin] = phase
            counts[line % sets] += 1
            if counts[line % sets] > ways:
                return False
    return True


@compile_inline
def clear(counts: Words) -> None:
    """Set counts to zero (a loop compiles ten times faster than a slice)."""
    for index in range(len(counts)):
        counts[index] = 0


@compile_inline
def add_iteration(spans: Table, steps: Table, windows: Table, bases: Words, shift: Integer,
                  turn: Integer, alone: Integer, stamps: Words, counts: Words, sets: Integer,
                  ways: Integer, phase: Integer) -> bool:
    """Note lines of an iteration; False when one does not fit. Not `alone`: the one before is."""
    loop = steps.shape[1] - 1
    for span in range(len(spans)):
        operand = spans[span, 2]
        step = steps[span, loop]
        base = bases[span] + turn * step
        first = max(windows[operand, 0], (spans[span, 0] + base) >> shift)
        last = min(windows[operand, 1], (spans[span, 1] + base) >> shift)
        if not alone:
            # Lines of the iteration before are noted already.
            if step == 0:
                continue
            if step > 0:
                first = max(first, ((spans[span, 1] + base - step) >> shift) + 1)
            else:
                last = min(last, ((spans[span, 0] + base - step) >> shift) - 1)
        if not add_lines(first, last, windows[operand, 0] - windows[operand, 2], stamps, counts,
                         sets, ways, phase):
            return False
    return True


@compile_inline
def place_spans(spans: Table, steps: Table, index: Words, bases: Words) -> None:
    """Work out where each span begins for the indices of the loops around."""
    for span in range(len(spans)):
        bases[span] = 0
        for loop in range(steps.shape[1] - 1):
            bases[span] += steps[span, loop] * index[loop]


@compile_inline
def enter_next(index: Words, extents: Words, loops: Integer) -> bool:
    """Go on to the next entry of the loop; False when the loops around are over."""
    loop = loops - 1
    while loop >= 0 and index[loop] + 1 == extents[loop]:
        index[loop] = 0
        loop -= 1
    if loop < 0:
        return False
    index[loop] += 1
    return True


@compile_inline
def add_rows(rows: Table, filled: Integer, start: Integer, turn: Integer) -> Integer:
    """Add a phase of iterations [start, turn), or one that fits nowhere; return rows filled."""
    if turn == start:
        if turn == 0 or rows[filled - 1, 3] != PLAIN:
            rows[filled, 1], rows[filled, 3] = turn, PLAIN
            filled += 1
        rows[filled - 1, 2] += 1
        return filled
    rows[filled, 0], rows[filled, 1] = start, start + 1
    rows[filled, 2] = max(0, turn - start - 2)
    if turn - start > 1:
        filled += 1
        rows[filled, 0] = turn - 1
    return filled + 1


@compile_kept
def cut_phases(spans: Table, steps: Table, windows: Table, extents: Words, shift: Integer,
               sets: Integer, ways: Integer, rows: Table, index: Words, bases: Words, counts: Words,
               stamps: Words) -> Integer:
    """Cut every entry of a loop into phases, greedily.

    Parameters
    ----------
    spans : ndarray of int64, (spans, 3)
        First and last byte one iteration touches with all indices zero, and the operand.
    steps : ndarray of int64, (spans, loops)
        Address step per loop around, outermost first; the loop itself last.
    windows : ndarray of int64, (operands, 3)
        First and last line of each operand, and where its stamps start.
    extents : ndarray of int64, (loops,)
        Of the loops around and the loop itself.
    shift, sets, ways : int
        log2 of the line, geometry.
    rows : ndarray of int64, (room, 4)
        Zeros; filled: a full iteration, iterations after it that need only what moves (first,
        number), ENDS and PLAIN. What is PLAIN has no full iteration: in each of its iterations a
        set sees more lines than it has ways.
    index, bases, counts, stamps : ndarray of int64
        Zeros: per loop, per span, per set, per line.

    Returns
    -------
    int
        Rows filled; -1 when there is no room, or more than a quarter of the iterations fit nowhere.
    """
    loops = len(extents) - 1
    phase = filled = spare = 0
    while True:
        place_spans(spans, steps, index, bases)
        start, turn = 0, 0
        phase += 1
        clear(counts)
        while turn < extents[loops]:
            fits = add_iteration(spans, steps, windows, bases, shift, turn, turn == start, stamps,
                                 counts, sets, ways, phase)
            if fits:
                turn += 1
                spare += 1
            if not fits or turn == extents[loops]:
                if filled + 2 > len(rows):
                    return -1
                filled = add_rows(rows, filled, start, turn)
                spare -= 3 if turn == start else 0
                if spare < -MOST_PLAIN:
                    return -1
                turn += 1 if turn == start else 0
                start = turn
                phase += 1
                clear(counts)
        rows[filled - 1, 3] |= ENDS
        if not enter_next(index, extents, loops):
            return filled
