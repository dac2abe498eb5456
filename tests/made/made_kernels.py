"""Loops of no use, for what compiles them: each with words, a table and a number, not zero."""

import numpy as np

from hwmodels.kernels.compiled import (
    Integer,
    Table,
    Words,
    compile_kept,
    compile_part,
)

LIMIT = 7
FIRST, SECOND = np.arange(2, dtype=np.uint64)


@compile_part
def share(total: Integer, parts: Integer) -> tuple[Integer, Integer]:
    """Quotient and rest, both rounded down."""
    return total // parts, total % parts


@compile_part
def is_small(number: Integer) -> bool:
    """Whether a number is within the limit."""
    return -LIMIT <= number <= LIMIT


@compile_kept
def divide(words: Words, table: Table, number: Integer) -> Integer:
    """Divide with every sign."""
    total = 0
    for place in range(len(words)):
        quotient, rest = share(words[place], number)
        words[place] = quotient
        total += rest
    total += share(number, -LIMIT)[1]
    return total


@compile_kept
def branch(words: Words, table: Table, number: Integer) -> Integer:
    """Decide in all ways."""
    found = (words[0] and number) or words[1]
    count = 0
    while True:
        count += 1
        if count > LIMIT or (is_small(words[count]) and not number & 1):
            break
        if words[count] in (0, 1) and words[count] not in (1, 5):
            continue
        words[count] = -1 if words[count] < 0 else words[count] >> 2
    met = False
    for one in range(number, number + 2):
        if one == LIMIT or words[1] > one:
            met = True
            break
    words[2] = met
    if words[5] > words[6] and not met:
        words[5], words[6] = words[6], words[5]
    words[3], words[4] = words[4], words[3]
    return found + count + (1 if met else 0)


@compile_kept
def index(words: Words, table: Table, number: Integer) -> Integer:
    """Count from the end, in rows and backwards."""
    last = np.uint64(len(words)) - np.uint64(1)
    at = np.uint64(0)
    while at < last:
        words[at] ^= words[at + SECOND] << 1
        at += SECOND
    total = words[-1] + words[len(words) - 1] + words[number % 5 - 5]
    for row in range(table.shape[0]):
        for column in range(table.shape[1] - 1, -1, -1):
            table[row, column] = total - table[row - 1, column]
            total += max(table[row, column], number, 3) - min(row, column)
    return abs(total) & 0xFFFF | ~number


@compile_kept
def widen(words: Words, table: Table, number: Integer) -> Integer:
    """Give variables and results that begin as truth values."""
    kept = number > 3
    kept = words[0] if kept else kept
    words[1] = kept
    first = second = number
    first += 1
    for _ in range(2):
        first *= 3
    if words[5] > 0:
        return first > second
    return first


@compile_part
def count_down(words: Words, number: Integer) -> Integer:
    """Change every word of an array; return the last."""
    for place in range(len(words)):
        words[place] -= number
    return words[-1]


@compile_kept
def go_on(words: Words, table: Table, number: Integer) -> Integer:
    """Call with what follows a word, counted from either end."""
    total = count_down(words[FIRST:], number) + count_down(words[-2:], number)
    return total + count_down(words[number % 12:], number)
